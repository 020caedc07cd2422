// test post_ra rename
// The halves of a constant are a single value, which is renamed as a whole, and so are both
// operands of its user.
L0:
    moveih s10, 1
    moveil s10, 2
    add_i32 s11, s10, s10
    moveih s10, 3
    moveil s10, 4
    add_i32 s0, s11, s10
    jret
// becomes
// L0:
//     moveih s10, 1
//     moveil s10, 2
//     add_i32 s0, s10, s10
//     moveih s10, 3
//     moveil s10, 4
//     add_i32 s0, s0, s10
//     jret
