// test post_ra wrap
// The first block stores to the stack, so every path needs the frame.
L0:
    addi sp, sp, -64 ; enter
    store32 ra, 60(sp) ; enter
    store32 s0, 0(sp)
    beqz s0, L2
L1:
    jmpsr 0 ; call
L2:
    load32 ra, 60(sp) ; leave
    addi sp, sp, 64 ; leave
    jret
// becomes
// L0:
//     addi sp, sp, -64 ; enter
//     store32 ra, 60(sp) ; enter
//     store32 s0, (sp)
//     beqz s0, L1
// L2:
//     jmpsr 0 ; call
// L1:
//     load32 ra, 60(sp) ; leave
//     addi sp, sp, 64 ; leave
//     jret
