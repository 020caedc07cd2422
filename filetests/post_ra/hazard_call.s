// test post_ra hazard
// Four consecutive float results would make the return address late, and a function that returns at
// once would return to an old address. The move waits for the last of them.
L0:
    fadd_f32 s10, s2, s3
    fadd_f32 s11, s2, s4
    fadd_f32 s12, s3, s4
    fadd_f32 s13, s3, s5
    addi ra, pc, 8 ; glued
    jmp s9 ; call
    jret
// becomes
// L0:
//     fadd_f32 s10, s2, s3
//     fadd_f32 s11, s2, s4
//     fadd_f32 s12, s3, s4
//     fadd_f32 s13, s3, s5
//     move_i32 tr, s13
//     addi ra, pc, 8 ; glued
//     jmp s9 ; call
//     jret
