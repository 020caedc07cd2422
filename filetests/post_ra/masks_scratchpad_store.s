// test post_ra masks
// A store of a vector to the scratchpad obeys the mask, so it must execute while the mask is all
// ones.
L0:
    move_i32 rm, s2
    add_i32.m v1, v2, v3
    movei rm, 65535
    store_v16i32_scratchpad v5, (s1)
    move_i32 rm, s2
    add_i32.m v4, v2, v3
    movei rm, 65535
    jret
// becomes
// L0:
//     store_v16i32_scratchpad v5, (s1)
//     move_i32 rm, s2
//     add_i32.m v1, v2, v3
//     add_i32.m v4, v2, v3
//     movei rm, 65535
//     jret
