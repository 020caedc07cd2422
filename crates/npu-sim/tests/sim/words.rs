//! Instruction words, by the formats of `docs/machine/formats.md`.

// V bits of the R format.
pub const VVV: u32 = 7;
pub const VVS: u32 = 6;
pub const SVV: u32 = 3;
pub const SVS: u32 = 2;
pub const SSV: u32 = 1;
pub const VSS: u32 = 4;
pub const SSS: u32 = 0;

pub fn rr(op: u32, dst: u32, src0: u32, src1: u32, v: u32) -> u32 {
    op << 24 | dst << 18 | src0 << 12 | src1 << 6 | v << 1
}

pub fn ri(op: u32, dst: u32, src0: u32, imm: i32) -> u32 {
    2 << 29 | op << 24 | dst << 18 | src0 << 12 | (imm as u32 & 0x1ff) << 3
}

pub fn mvi(op: u32, dst: u32, imm: u32, v: u32) -> u32 {
    0x60 << 24 | op << 24 | dst << 18 | imm << 2 | v << 1
}

pub fn mem(op: u32, reg: u32, base: u32, offset: i32) -> u32 {
    2 << 30 | op << 24 | reg << 18 | base << 12 | (offset as u32 & 0x1ff) << 3
}

pub fn spm(op: u32, reg: u32, base: u32, offset: i32) -> u32 {
    mem(op, reg, base, offset) | 2
}

pub fn ctl(op: u32, a: u32, b: u32) -> u32 {
    0x68 << 24 | op << 24 | a << 18 | b << 12
}

pub fn jba(op: u32, reg: u32, offset: i32) -> u32 {
    0x70 << 24 | op << 24 | reg << 18 | (offset as u32 & 0x3_ffff)
}

pub fn jra(op: u32, offset: i32) -> u32 {
    0x78 << 24 | op << 24 | (offset as u32 & 0x3_ffff)
}
