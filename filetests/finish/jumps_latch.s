// test finish jumps
// What the way back writes nobody sees after the loop: it goes before the branch, which leads back itself.
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
