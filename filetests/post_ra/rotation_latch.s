// test post_ra rotation
// The registers written on the back edge are dead after the loop, so the moves are hoisted above
// the branch, which becomes the back edge.
L0:
    movei s9, 0
L1:
    addi s2, s9, 1
    cmpeqi s3, s2, 10
    bnez s3, L3
L2:
    move_i32 s9, s2
    jmp L1
L3:
    jret
// becomes
// L0:
//     movei s9, 0
// L1:
//     addi s2, s9, 1
//     cmpeqi s3, s2, 10
//     move_i32 s9, s2
//     beqz s3, L1
// L3:
// L2:
//     jret
