// test post_ra sched
// Loads and stores that may overlap keep their order. Accesses with the same base and disjoint
// offsets need not.
L0:
    load32 s4, 0(s0)
    add_i32 s5, s4, s1
    store32 s5, 0(s0)
    load32 s6, 4(s0)
    load32 s7, 0(s2)
    add_i32 s0, s6, s7
    jret
// becomes
// L0:
//     load32 s4, (s0)
//     load32 s6, 4(s0)
//     add_i32 s5, s4, s1
//     store32 s5, (s0)
//     load32 s7, (s2)
//     add_i32 s0, s6, s7
//     jret
