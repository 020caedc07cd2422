// test post_ra rename
// A value that is live after the block keeps its register, and no other value gets this register.
L0:
    addi s1, s0, 1
    addi s2, s0, 2
    addi s3, s1, 3
    bnez s3, L1
    add_i32 s0, s1, s2
L1:
    jret
// becomes
// L0:
//     addi s1, s0, 1
//     addi s2, s0, 2
//     addi s3, s1, 3
//     bnez s3, L1
//     add_i32 s0, s1, s2
// L1:
//     jret
