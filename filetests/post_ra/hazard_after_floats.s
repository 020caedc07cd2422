// test post_ra hazard
// Results of the float unit have priority, so the sum can be late at the load, and the branch can
// lose it. The target of the other branch does not use the sum.
L0:
    fadd_f32 s10, s2, s3
    fadd_f32 s11, s2, s4
    addi s0, s0, 4
    bnez s9, L2
L1:
    addi s1, s1, 4
    bnez s8, L2
    jret
L2:
    load32 s5, (s0)
    fadd_f32 s6, s6, s5
    fadd_f32 s7, s7, s5
    fadd_f32 s7, s7, s6
    add_i32 s1, s1, s9
    jret
// becomes
// L0:
//     fadd_f32 s10, s2, s3
//     fadd_f32 s11, s2, s4
//     addi s0, s0, 4
//     movei tr, 0
//     bnez s9, L1
// L2:
//     addi s1, s1, 4
//     bnez s8, L1
//     jret
// L1:
//     load32 s5, (s0)
//     fadd_f32 s6, s6, s5
//     fadd_f32 s7, s7, s5
//     fadd_f32 s7, s7, s6
//     add_i32 s1, s1, s9
//     movei tr, 0
//     jret
