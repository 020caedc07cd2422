// test post_ra copyprop
// The copy is read after its original was overwritten, so it stays.
L0:
    move_i32 s20, s0
    load32 s0, 0(s1)
    add_i32 s0, s0, s20
    jret
// becomes
// L0:
//     move_i32 s20, s0
//     load32 s0, (s1)
//     add_i32 s0, s0, s20
//     jret
