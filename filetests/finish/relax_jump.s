// test finish relax
// A jump back out of reach is a sequence alone; the near one stays.
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
