// test post_ra wrap
// An endless loop has no frame and reads a register that the frame saves, so nothing changes.
L0:
    addi sp, sp, -64 ; enter
    store32 s50, 60(sp) ; enter
    store32 ra, 56(sp) ; enter
    addi s50, s0, 1
    beqz s50, L3
L1:
    beqz s1, L4
L2:
    jmpsr 0 ; call
    add_i32 s0, s0, s50
    jmp L4
L3:
    store32 s50, 0(s2)
    jmp L3
L4:
    load32 ra, 56(sp) ; leave
    load32 s50, 60(sp) ; leave
    addi sp, sp, 64 ; leave
    jret
// becomes
// L0:
//     addi sp, sp, -64 ; enter
//     store32 s50, 60(sp) ; enter
//     store32 ra, 56(sp) ; enter
//     addi s50, s0, 1
//     beqz s50, L1
// L2:
//     beqz s1, L3
// L4:
//     jmpsr 0 ; call
//     add_i32 s0, s0, s50
//     jmp L3
// L1:
//     store32 s50, (s2)
//     jmp L1
// L3:
//     load32 ra, 56(sp) ; leave
//     load32 s50, 60(sp) ; leave
//     addi sp, sp, 64 ; leave
//     jret
