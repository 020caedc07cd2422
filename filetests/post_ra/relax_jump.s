// test post_ra relax
// A backward jump out of reach becomes a sequence, and the near branch stays.
L0:
    beqz s0, L1
    jmp L1
L1:
    nop ; times 40000
    jmp L0
// becomes
// L0:
//     beqz s0, L1
//     jmp L1
// L1:
//     nop ; times 40000
//     moveih tr, L0 ; far_high 8
//     moveil tr, L0 ; far_low 4
//     add_i32 tr, pc, tr
//     jmp tr
