//! A function of a family, what distinguishes it from others, and the constants to try.

use super::operation::Small;
use cranelift_codegen::ir::{Function, InstructionData, Type, types};
use rustc_hash::FxHasher;
use std::collections::HashSet;
use std::hash::{Hash as _, Hasher as _};

/// A function that applies rules.
#[derive(Clone, Debug)]
pub struct Instance {
    /// The function.
    pub func: Function,
    /// The constant operand, if the function has one.
    pub constant: Option<i64>,
    /// The type at which the function applies its main rule.
    pub ty: Type,
    /// Whether the function is proved even if its rules are proved at this type, because passes of
    /// the optimizer depend on more than the rules.
    pub is_distinct: bool,
}

impl Instance {
    /// Creates an instance without a constant operand, which is always proved.
    pub fn new(small: Small, ty: Type) -> Self {
        Self {
            func: small.func,
            constant: None,
            ty,
            is_distinct: true,
        }
    }
}

/// Hashes the opcode of an instruction, and its condition.
fn hash_operation(data: &InstructionData, hasher: &mut FxHasher) {
    data.opcode().hash(hasher);
    match *data {
        InstructionData::IntCompare { cond, .. } => cond.hash(hasher),
        InstructionData::FloatCompare { cond, .. } => cond.hash(hasher),
        _ => {}
    }
}

/// Returns the hash of the operations and signatures of a function, without its constants and
/// offsets.
pub fn shape(func: &Function) -> u64 {
    let mut hasher = FxHasher::default();
    for signature in func.dfg.signatures.values().chain([&func.signature]) {
        signature.hash(&mut hasher);
    }
    for block in func.layout.blocks() {
        for inst in func.layout.block_insts(block) {
            let data = &func.dfg.insts[inst];
            hash_operation(data, &mut hasher);
            match *data {
                InstructionData::BinaryImm8 { imm, .. } | InstructionData::TernaryImm8 { imm, .. } => {
                    imm.hash(&mut hasher)
                }
                InstructionData::Shuffle { imm, .. } => func.dfg.immediates.get(imm).hash(&mut hasher),
                InstructionData::Load { flags, .. } | InstructionData::Store { flags, .. } => {
                    func.dfg.mem_flags[flags].hash(&mut hasher);
                }
                _ => {}
            }
            for &value in func.dfg.inst_args(inst).iter().chain(func.dfg.inst_results(inst)) {
                (value, func.dfg.value_type(value)).hash(&mut hasher);
            }
        }
    }
    hasher.finish()
}

/// Returns the numbers of the operations of a function: opcodes with types and conditions.
pub fn operations_of(func: &Function) -> Vec<u64> {
    let mut list = Vec::new();
    for block in func.layout.blocks() {
        for inst in func.layout.block_insts(block) {
            let mut hasher = FxHasher::default();
            let data = &func.dfg.insts[inst];
            hash_operation(data, &mut hasher);
            if let InstructionData::UnaryImm { imm, .. } = *data {
                imm.hash(&mut hasher);
            }
            for &result in func.dfg.inst_results(inst) {
                func.dfg.value_type(result).hash(&mut hasher);
            }
            list.push(hasher.finish());
        }
    }
    list.sort_unstable();
    list
}

/// Returns a hash of the operations of a function in their order, with their constants and the
/// classes of their types: passes over CLIF treat the types of a class alike.
pub fn rewrite(func: &Function) -> u64 {
    let mut hasher = FxHasher::default();
    for block in func.layout.blocks() {
        for inst in func.layout.block_insts(block) {
            let data = &func.dfg.insts[inst];
            hash_operation(data, &mut hasher);
            if let InstructionData::UnaryImm { imm, .. } = *data {
                imm.hash(&mut hasher);
            }
            for &value in func.dfg.inst_args(inst).iter().chain(func.dfg.inst_results(inst)) {
                let ty = func.dfg.value_type(value);
                (ty.is_vector(), ty.is_float(), ty.lane_bits().max(16)).hash(&mut hasher);
                // The order of operands.
                value.hash(&mut hasher);
            }
        }
    }
    hasher.finish()
}

/// The constants at which the rules change: limits of immediates, of types and of shift amounts.
const LIMITS: [i64; 44] = [
    0,
    1,
    -1,
    2,
    -2,
    3,
    4,
    5,
    7,
    8,
    9,
    10,
    15,
    16,
    17,
    24,
    31,
    32,
    33,
    63,
    64,
    100,
    127,
    128,
    -127,
    -128,
    -129,
    255,
    256,
    -255,
    -256,
    -257,
    1000,
    32767,
    32768,
    -32768,
    -32769,
    65535,
    65536,
    0x7fff_ffff,
    -0x8000_0000,
    0xff_ffff,
    0x1234_5678,
    -0x1234_5679,
];
/// More limits, of types wider than a word.
const WIDE_LIMITS: [i64; 10] = [
    0xffff_ffff,
    0x8000_0000,
    1 << 32,
    1 << 33,
    (1 << 40) - 1,
    -(1 << 32),
    i64::MAX,
    i64::MIN,
    0x0123_4567_89ab_cdef,
    -0x0123_4567_89ab_cdef,
];
/// The constants of a machine immediate of nine bits.
const SHORT: std::ops::RangeInclusive<i64> = -256..=255;

/// Returns the upper words of special floats of a type: zeros, numbers, an infinity, NaNs.
fn float_constants(ty: Type) -> Vec<i64> {
    let f32 = [
        0,
        -0x8000_0000,
        0x3f80_0000,
        -0x4040_0000,
        0x4b00_0000,
        0x4f00_0000,
        0x7f80_0000,
        0x7fc0_0000,
        1,
    ];
    let f64 = [
        0,
        -0x8000_0000,
        0x3ff0_0000,
        -0x4008_0000,
        0x4330_0000,
        0x41e0_0000,
        0x7ff0_0000,
        0x7ff8_0000,
        1,
    ];
    let f16 = [0, -0x8000, 0x3c00, -0x4200, 0x6400, 0x7bff, 0x7c00, 0x7e00, 1];
    match ty.lane_type() {
        types::F16 => f16.to_vec(),
        types::F32 => f32.to_vec(),
        types::F64 => f64.to_vec(),
        _ => Vec::new(),
    }
}

/// Returns the constants to try with an integer type. The list for `i32` has every constant that an
/// immediate operand can have, and every power of two.
pub fn constants_of(ty: Type) -> Vec<i64> {
    if ty.lane_type().is_float() {
        return float_constants(ty);
    }
    let bits = ty.lane_bits();
    let mut list: Vec<i64> = LIMITS.to_vec();
    if ty == types::I32 {
        list.extend(SHORT);
        list.extend((0..32).flat_map(|bit| [1i64 << bit, (1i64 << bit) - 1, -(1i64 << bit)]));
    }
    if bits > 32 {
        list.extend(WIDE_LIMITS);
    }
    let keep = 64 - bits.min(64);
    let mut seen = HashSet::new();
    let truncated = list.into_iter().map(|value| value << keep >> keep);
    truncated.filter(|&value| seen.insert(value)).collect()
}
