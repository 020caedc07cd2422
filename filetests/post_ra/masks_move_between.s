// test post_ra masks
// The unmasked move does not depend on the masked result, so it moves before the masked operations.
L0:
    move_i32 rm, s3
    add_i32 v0, v1, v2
    movei rm, 65535
    move_i32 v5, v6
    move_i32 rm, s3
    sub_i32 v3, v1, v2
    movei rm, 65535
    jret
// becomes
// L0:
//     move_i32 v5, v6
//     move_i32 rm, s3
//     add_i32 v0, v1, v2
//     sub_i32 v3, v1, v2
//     movei rm, 65535
//     jret
