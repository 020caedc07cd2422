// test finish masks
// The compare under the mask changes the register that the mask came from: the second mask is another one.
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
