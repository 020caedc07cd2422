//! Vectors that come from memory and go to memory, for which legalization chooses between registers
//! and lanes, and vectors whose lanes are constants.

use super::instance::Instance;
use super::operation::Small;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{
    ConstantData, Endianness, InstBuilder as _, InstructionData, MemFlagsData, Opcode, Type, Value, types,
};
use npu_mc::machine::LANES;

/// The types of vectors in memory, except the longest one. Bytes and halves of words in memory are
/// left to the family `memory`: a solver needs a minute for the sum of two such vectors.
const TYPES: [Type; 6] = [
    types::I64X2,
    types::I64X8,
    types::I32X2,
    types::I32X4,
    types::F32X4,
    types::F64X2,
];

/// Conditions of compares of two vectors in memory.
const CONDITIONS: [IntCC; 4] = [
    IntCC::Equal,
    IntCC::NotEqual,
    IntCC::SignedLessThan,
    IntCC::UnsignedGreaterThanOrEqual,
];

/// Operations on integers from two vectors in memory.
const BINARY: [Opcode; 6] = [
    Opcode::Iadd,
    Opcode::Isub,
    Opcode::Band,
    Opcode::Bor,
    Opcode::Bxor,
    Opcode::Umax,
];

/// Appends an aligned load from an address of its own.
fn loaded(small: &mut Small, ty: Type) -> Value {
    let pointer = small.param(types::I32);
    let flags = MemFlagsData::new().with_aligned();
    small.cursor().ins().load(ty, flags, pointer, 0)
}

/// Appends an aligned store of the value, and the return.
fn stored(small: &mut Small, value: Value) {
    let pointer = small.param(types::I32);
    let flags = MemFlagsData::new().with_aligned();
    small.cursor().ins().store(flags, value, pointer, 0);
    small.ret(&[]);
}

/// Returns the functions that load one or two vectors and store one.
fn memory_to_memory(ty: Type) -> Vec<Instance> {
    let mut out = Vec::new();
    let mut add = |build: &dyn Fn(&mut Small) -> Value| {
        let mut small = Small::default();
        let value = build(&mut small);
        stored(&mut small, value);
        out.push(Instance::new(small, ty));
    };
    let lane = ty.lane_type();
    add(&|small| loaded(small, ty));
    for opcode in if lane.is_int() { &BINARY[..] } else { &[] } {
        let opcode = *opcode;
        add(&|small| {
            let args = [loaded(small, ty), loaded(small, ty)];
            small.instruction(InstructionData::Binary { opcode, args }, ty)[0]
        });
    }
    add(&|small| {
        let (mask, x, y) = (loaded(small, ty), loaded(small, ty), loaded(small, ty));
        small.cursor().ins().bitselect(mask, x, y)
    });
    add(&|small| {
        let x = loaded(small, ty);
        small.cursor().ins().bnot(x)
    });
    // A lane of the first half and one of the second half.
    for number in [1, ty.lane_count() as u8 - 1] {
        add(&|small| {
            let (x, lane) = (loaded(small, ty), small.param(lane));
            small.cursor().ins().insertlane(x, lane, number)
        });
    }
    add(&|small| {
        let (x, number) = (loaded(small, ty), small.param(lane));
        let y = small.cursor().ins().splat(ty, number);
        small.cursor().ins().bxor(x, y)
    });
    add(&|small| {
        let x = loaded(small, ty);
        // Every byte differs from the others.
        let bytes: Vec<u8> = (0..ty.bytes()).map(|at| (at * 37 + 11) as u8).collect();
        let constant = small.func.dfg.constants.insert(ConstantData::from(bytes));
        let y = small.cursor().ins().vconst(ty, constant);
        small.cursor().ins().bxor(x, y)
    });
    if ty == types::I64X8 {
        for cond in CONDITIONS {
            add(&|small| {
                let (x, y) = (loaded(small, ty), loaded(small, ty));
                let mask = small.cursor().ins().icmp(cond, x, y);
                small.cursor().ins().bitselect(mask, x, y)
            });
        }
    }
    out
}

/// Loads that extend the lanes.
const EXTENDING: [Opcode; 6] = [
    Opcode::Uload8x8,
    Opcode::Sload8x8,
    Opcode::Uload16x4,
    Opcode::Sload16x4,
    Opcode::Uload32x2,
    Opcode::Sload32x2,
];

/// Returns a function that stores what such a load returns.
fn extended(opcode: Opcode) -> Option<Instance> {
    let mut small = Small::default();
    let pointer = small.param(types::I32);
    let flags = MemFlagsData::new().with_aligned();
    let data = InstructionData::Load {
        opcode,
        arg: pointer,
        flags: small.func.dfg.mem_flags.insert(flags).ok()?,
        offset: 0.into(),
    };
    let value = small.instruction(data, types::INVALID)[0];
    let ty = small.func.dfg.value_type(value);
    stored(&mut small, value);
    Some(Instance::new(small, ty))
}

/// Returns functions on vectors in memory with results of another type.
fn to_other_types() -> Vec<Instance> {
    let mut out = Vec::new();
    let pairwise = [Opcode::IaddPairwise, Opcode::Snarrow, Opcode::Unarrow, Opcode::Uunarrow];
    for ty in [types::I16X8, types::I32X4] {
        for opcode in pairwise {
            let mut small = Small::default();
            let args = [loaded(&mut small, ty), loaded(&mut small, ty)];
            let value = small.instruction(InstructionData::Binary { opcode, args }, ty)[0];
            stored(&mut small, value);
            out.push(Instance::new(small, ty));
        }
    }
    let mut small = Small::default();
    let (x, y) = (loaded(&mut small, types::I8X16), loaded(&mut small, types::I8X16));
    let value = small.cursor().ins().x86_pmaddubsw(x, y);
    stored(&mut small, value);
    out.push(Instance::new(small, types::I16X8));
    out.extend(EXTENDING.into_iter().filter_map(extended));
    // Casts between lanes of different widths, directly and around a bitwise operation.
    let casts = [
        (types::I64X2, types::I32X4),
        (types::I32X4, types::I64X2),
        (types::I64X2, types::I8X16),
        (types::I8X16, types::I64X2),
        (types::F64X2, types::I16X8),
        (types::I16X8, types::F64X2),
        (types::I32X4, types::I16X8),
    ];
    for (from, to) in casts {
        for (endianness, is_changed) in [
            (Endianness::Little, false),
            (Endianness::Little, true),
            (Endianness::Big, false),
        ] {
            if is_changed && !to.is_int() {
                continue;
            }
            let mut small = Small::default();
            let flags = MemFlagsData::new().with_endianness(endianness);
            let x = loaded(&mut small, from);
            let mut value = small.cursor().ins().bitcast(to, flags, x);
            if is_changed {
                let y = loaded(&mut small, from);
                let other = small.cursor().ins().bitcast(to, flags, y);
                value = small.cursor().ins().band_not(value, other);
            }
            stored(&mut small, value);
            out.push(Instance::new(small, to));
        }
    }
    out
}

/// Returns the functions that insert constants into vectors of constants.
fn constant_lanes() -> Vec<Instance> {
    let all = [types::I8, types::I16, types::I32].map(|lane| lane.by(LANES));
    let short = [types::I8X8, types::I16X8, types::I32X4].map(Some);
    let mut out = Vec::new();
    for ty in all.into_iter().chain(short).flatten() {
        for lanes in [vec![(0, 3)], vec![(1, -2)], vec![(2, 0x1234_5678), (3, -300)]] {
            let mut small = Small::default();
            let Some(mut vector) = small.constant(ty, 5) else {
                continue;
            };
            for (number, value) in lanes {
                if let Some(value) = small.constant(ty.lane_type(), value) {
                    vector = small.cursor().ins().insertlane(vector, value, number);
                }
            }
            let x = small.param(ty);
            let sum = small.cursor().ins().iadd(vector, x);
            small.ret(&[sum, vector]);
            out.push(Instance::new(small, ty));
        }
    }
    out
}

/// Returns the instances of vectors.
pub fn instances() -> Vec<Instance> {
    let mut out = constant_lanes();
    out.extend(to_other_types());
    for ty in TYPES.into_iter().chain(types::I64.by(LANES)) {
        out.extend(memory_to_memory(ty));
    }
    out
}
