// test post_ra relax
// Entries of a branch table stay single instructions and jump to a veneer after it, one for each
// target.
L0:
    jmp s5 ; glued
    jmp L1 ; glued ; entry L2
    jmp L1 ; glued ; entry L2
    jmp L3 ; entry L2
L2:
    nop ; times 40000
L1:
    jret
L3:
    jret
// becomes
// L0:
//     jmp s5 ; glued
//     jmp L4 ; entry L2 ; glued
//     jmp L4 ; entry L2 ; glued
//     jmp L5 ; entry L2
// L4:
//     moveih tr, L1 ; far_high 8
//     moveil tr, L1 ; far_low 4
//     add_i32 tr, pc, tr
//     jmp tr
// L5:
//     moveih tr, L3 ; far_high 8
//     moveil tr, L3 ; far_low 4
//     add_i32 tr, pc, tr
//     jmp tr
// L2:
//     nop ; times 40000
// L1:
//     jret
// L3:
//     jret
