// test post_ra hazard
// A branch that reads the result waits for it.
L0:
    load32 s4, 0(s1)
    bnez s4, L1
L1:
    jret
// becomes
// L0:
//     load32 s4, (s1)
//     bnez s4, L1
// L1:
//     jret
