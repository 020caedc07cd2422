// test post_ra rotation
// The test at the start of the loop is duplicated at its end, so an iteration executes one branch.
L0:
    movei s1, 0
L1:
    cmplt_i32 s2, s1, s0
    beqz s2, L3
L2:
    store32 s1, (s1)
    addi s1, s1, 4
    jmp L1
L3:
    jret
// becomes
// L0:
//     movei s1, 0
// L1:
//     cmplt_i32 s2, s1, s0
//     beqz s2, L2
// L3:
//     store32 s1, (s1)
//     addi s1, s1, 4
//     cmplt_i32 s2, s1, s0
//     bnez s2, L3
// L2:
//     jret
