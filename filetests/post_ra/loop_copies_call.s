// test post_ra loop_copies
// The iteration ends with a call, which clobbers its arguments.
L0:
    movei s0, 7
    jmp L1
L1:
    addi s52, s0, 3
    beqz s52, L3
L2:
    move_i32 s0, s50
    jmpsr 0 ; call
L4:
    jmp L1
L3:
    jret
// becomes
// L0:
//     movei s0, 7
//     jmp L1
// L1:
//     addi s52, s0, 3
//     beqz s52, L2
// L3:
//     move_i32 s0, s50
//     jmpsr 0 ; call
// L4:
//     jmp L1
// L2:
//     jret
