// test post_ra wrap
// The block with the call is its own successor, so its frame setup would repeat in each iteration.
L0:
    addi sp, sp, -64 ; enter
    store32 ra, 60(sp) ; enter
    beqz s0, L2
L1:
    jmpsr 0 ; call
    bnez s0, L1
L2:
    load32 ra, 60(sp) ; leave
    addi sp, sp, 64 ; leave
    jret
// becomes
// L0:
//     addi sp, sp, -64 ; enter
//     store32 ra, 60(sp) ; enter
//     beqz s0, L1
// L2:
//     jmpsr 0 ; call
//     bnez s0, L2
// L1:
//     load32 ra, 60(sp) ; leave
//     addi sp, sp, 64 ; leave
//     jret
