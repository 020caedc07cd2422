// test post_ra masks
// The masks differ, so only the restore between them is removed.
L0:
    move_i32 rm, s3
    add_i32 v0, v1, v2
    movei rm, 65535
    move_i32 rm, s4
    sub_i32 v3, v1, v2
    movei rm, 65535
    jret
// becomes
// L0:
//     move_i32 rm, s3
//     add_i32 v0, v1, v2
//     move_i32 rm, s4
//     sub_i32 v3, v1, v2
//     movei rm, 65535
//     jret
