// test post_ra relax
// A conditional branch out of reach becomes its inverse, which skips a far sequence.
L0:
    bnez s0, L1
    nop ; times 40000
L1:
    jret
// becomes
// L0:
//     beqz s0, L2
//     moveih tr, L1 ; far_high 8
//     moveil tr, L1 ; far_low 4
//     add_i32 tr, pc, tr
//     jmp tr
// L2:
//     nop ; times 40000
// L1:
//     jret
