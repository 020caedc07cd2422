// test post_ra wrap
// The path without a call has no frame: the return is duplicated, callee-saved registers are
// renamed there, and a live argument is moved where the frame is set up.
L0:
    addi sp, sp, -64 ; enter
    store32 s50, 60(sp) ; enter
    store32 s51, 56(sp) ; enter
    store32 ra, 52(sp) ; enter
    move_i32 s50, s1
    addi s51, s0, 1
    beqz s51, L2
L1:
    move_i32 s0, s51
    jmpsr 0 ; call
    add_i32 s0, s0, s50
    jmp L3
L2:
    movei s0, 0
    jmp L3
L3:
    load32 ra, 52(sp) ; leave
    load32 s51, 56(sp) ; leave
    load32 s50, 60(sp) ; leave
    addi sp, sp, 64 ; leave
    jret
// becomes
// L0:
//     addi s8, s0, 1
//     beqz s8, L1
// L2:
//     addi sp, sp, -64 ; enter
//     store32 s50, 60(sp) ; enter
//     store32 s51, 56(sp) ; enter
//     store32 ra, 52(sp) ; enter
//     move_i32 s50, s1
//     move_i32 s51, s8
//     move_i32 s0, s51
//     jmpsr 0 ; call
//     add_i32 s0, s0, s50
//     jmp L3
// L1:
//     movei s0, 0
//     jret
// L3:
//     load32 ra, 52(sp) ; leave
//     load32 s51, 56(sp) ; leave
//     load32 s50, 60(sp) ; leave
//     addi sp, sp, 64 ; leave
//     jret
