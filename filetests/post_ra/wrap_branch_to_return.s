// test post_ra wrap
// A branch to the return becomes a branch to its copy, after all other code.
L0:
    addi sp, sp, -64 ; enter
    store32 ra, 60(sp) ; enter
    beqz s0, L2
L1:
    jmpsr 0 ; call
L2:
    load32 ra, 60(sp) ; leave
    addi sp, sp, 64 ; leave
    jret
// becomes
// L0:
//     beqz s0, L3
// L2:
//     addi sp, sp, -64 ; enter
//     store32 ra, 60(sp) ; enter
//     jmpsr 0 ; call
// L1:
//     load32 ra, 60(sp) ; leave
//     addi sp, sp, 64 ; leave
//     jret
// L3:
//     jret
