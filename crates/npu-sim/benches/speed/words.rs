//! Instruction words of the loops of both benchmarks.

pub fn rr(op: u32, dst: u32, src0: u32, src1: u32, v: u32) -> u32 {
    op << 24 | dst << 18 | src0 << 12 | src1 << 6 | v << 1
}

pub fn ri(op: u32, dst: u32, src0: u32, imm: i32) -> u32 {
    2 << 29 | op << 24 | dst << 18 | src0 << 12 | (imm as u32 & 0x1ff) << 3
}

pub fn mem(op: u32, reg: u32, base: u32, offset: i32) -> u32 {
    2 << 30 | op << 24 | reg << 18 | base << 12 | (offset as u32 & 0x1ff) << 3
}

pub fn bnez(reg: u32, offset: i32) -> u32 {
    0x76 << 24 | reg << 18 | (offset as u32 & 0x3_ffff)
}

/// Returns a loop of `body` with counter s1, which does not end within the limits.
pub fn looped(body: &[u32]) -> Vec<u32> {
    let mut words = body.to_vec();
    words.push(ri(5, 1, 1, 1));
    words.push(bnez(1, -4 * words.len() as i32));
    words
}

/// Returns dependent integer operations, with a branch that depends on their results.
pub fn mixed() -> [u32; 12] {
    [
        rr(4, 2, 2, 1, 0),
        rr(3, 3, 2, 4, 0),
        ri(11, 4, 3, 5),
        ri(10, 5, 3, 27),
        rr(1, 3, 4, 5, 0),
        rr(6, 6, 3, 2, 0),
        rr(18, 7, 6, 3, 0),
        ri(2, 8, 7, 1),
        bnez(8, 8),
        ri(4, 9, 9, 1),
        rr(5, 10, 9, 8, 0),
        rr(32, 11, 10, 0, 0),
    ]
}
