// test post_ra masks
// Two operations under the same mask set it once.
L0:
    move_i32 rm, s3
    add_i32 v0, v1, v2
    movei rm, 65535
    move_i32 rm, s3
    sub_i32 v3, v1, v2
    movei rm, 65535
    jret
// becomes
// L0:
//     move_i32 rm, s3
//     add_i32 v0, v1, v2
//     sub_i32 v3, v1, v2
//     movei rm, 65535
//     jret
