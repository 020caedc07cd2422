// test post_ra loop_copies
// The loop-carried value stays in the callee-saved register.
L0:
    addi sp, sp, -64 ; enter
    store32 s50, 60(sp) ; enter
    movei s9, 7
    movei s51, 0
L1:
    mulli s10, s9, 3
    addi s50, s10, 1
    move_i32 s0, s50
    jmpsr 0 ; call
L2:
    addi s51, s51, 1
    cmpeqi s11, s51, 9
    move_i32 s9, s50
    beqz s11, L1
L3:
    load32 s50, 60(sp) ; leave
    addi sp, sp, 64 ; leave
    jret
// becomes
// L0:
//     addi sp, sp, -64 ; enter
//     store32 s50, 60(sp) ; enter
//     movei s9, 7
//     move_i32 s50, s9
//     movei s51, 0
// L1:
//     mulli s10, s50, 3
//     addi s50, s10, 1
//     move_i32 s0, s50
//     jmpsr 0 ; call
// L2:
//     addi s51, s51, 1
//     cmpeqi s11, s51, 9
//     beqz s11, L1
// L3:
//     load32 s50, 60(sp) ; leave
//     addi sp, sp, 64 ; leave
//     jret
