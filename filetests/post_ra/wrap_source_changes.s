// test post_ra wrap
// The source of a copy changes before the frame is set up, so the copy gets a separate register in
// the early blocks.
L0:
    addi sp, sp, -64 ; enter
    store32 s50, 60(sp) ; enter
    store32 ra, 56(sp) ; enter
    move_i32 s50, s1
    addi s1, s0, 1
    beqz s50, L2
L1:
    move_i32 s0, s50
    jmpsr 0 ; call
    add_i32 s0, s0, s50
    jmp L3
L2:
    add_i32 s0, s1, s50
    jmp L3
L3:
    load32 ra, 56(sp) ; leave
    load32 s50, 60(sp) ; leave
    addi sp, sp, 64 ; leave
    jret
// becomes
// L0:
//     move_i32 s8, s1
//     addi s1, s0, 1
//     beqz s8, L1
// L2:
//     addi sp, sp, -64 ; enter
//     store32 s50, 60(sp) ; enter
//     store32 ra, 56(sp) ; enter
//     move_i32 s50, s8
//     move_i32 s0, s50
//     jmpsr 0 ; call
//     add_i32 s0, s0, s50
//     jmp L3
// L1:
//     add_i32 s0, s1, s8
//     jret
// L3:
//     load32 ra, 56(sp) ; leave
//     load32 s50, 60(sp) ; leave
//     addi sp, sp, 64 ; leave
//     jret
