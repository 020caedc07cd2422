//! Straight-line machine code of any length, to measure how the passes over machine instructions
//! scale.

/// The names of the passes over machine instructions.
pub const PASSES: &[&str] = &[
    "copyprop",
    "wrap",
    "masks",
    "rotation",
    "loop_copies",
    "rename",
    "sched",
    "hazard",
    "relax",
];

/// Returns code that gives the passes work: moves, operations under two masks, loads and their
/// users.
pub fn straight_line(iterations: usize) -> String {
    let iteration = "move_i32 s20, s0
        add_i32 s21, s20, s1
        move_i32 s0, s21
        load32 s22, 0(s2)
        move_i32 rm, s3
        add_i32 v0, v1, v2
        movei rm, 65535
        move_i32 v5, v6
        move_i32 rm, s4
        sub_i32 v3, v1, v2
        movei rm, 65535
        mull_i32 s23, s22, s1
        store32 s23, 4(s2)\n";
    format!("L0:\n{}jret\n", iteration.repeat(iterations))
}
