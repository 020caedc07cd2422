// test post_ra masks
// The masked compare changes the register that contains the mask, so the second mask differs.
L0:
    move_i32 rm, s2
    cmpeq_i32 s2, v2, v3
    movei rm, 65535
    move_i32 rm, s2
    add_i32.m v4, v2, v3
    movei rm, 65535
    jret
// becomes
// L0:
//     move_i32 rm, s2
//     cmpeq_i32 s2, v2, v3
//     move_i32 rm, s2
//     add_i32.m v4, v2, v3
//     movei rm, 65535
//     jret
