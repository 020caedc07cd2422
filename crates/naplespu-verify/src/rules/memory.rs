//! Loads, stores and addresses: each opcode by each type, alignment, byte order, space and kind of
//! address.

use super::instance::Instance;
use super::operation::{Small, all_types};
use cranelift_codegen::ir::immediates::Offset32;
use cranelift_codegen::ir::instructions::InstructionFormat;
use cranelift_codegen::ir::{
    AliasRegion, AliasRegionData, Endianness, ExternalName, GlobalValueData, InstBuilder as _, InstructionData,
    MemFlagsData, Opcode, Signature, StackSlotData, StackSlotKind, Type, UserExternalName, Value, types,
};
use cranelift_codegen::isa::CallConv;
use npu_mc::machine::SCRATCHPAD_SPACE;

/// The kinds of address.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Address {
    /// A parameter.
    Param,
    /// The sum of a parameter and a constant.
    Sum(i64),
    /// The sum of two parameters.
    Indexed,
    /// The sum of a parameter and a multiple of another one.
    Scaled,
    /// A stack slot.
    Slot,
    /// A symbol.
    Symbol,
    /// A constant.
    Constant(i64),
    /// A parameter of 64 bits.
    Wide,
    /// The zero-extended sum of two numbers of 16 bits.
    Narrow,
    /// A multiple of a power of two plus a constant.
    Multiple(i64, i64),
    /// The sum of multiples of two powers of two.
    Multiples(i64, i64),
    /// One of two multiples of powers of two.
    Either(i64, i64),
    /// A distance in a stack slot with an alignment.
    InSlot(u8, i32),
}

impl Address {
    const ALL: [Self; 11] = [
        Self::Param,
        Self::Sum(8),
        Self::Sum(64),
        Self::Sum(1000),
        Self::Indexed,
        Self::Scaled,
        Self::Slot,
        Self::Symbol,
        Self::Constant(0x1000),
        Self::Wide,
        Self::Narrow,
    ];

    fn build(self, small: &mut Small) -> Value {
        let multiple = |small: &mut Small, of: i64| {
            let param = small.param(types::I32);
            let amount = small.cursor().ins().iconst(types::I32, i64::from(of.trailing_zeros()));
            small.cursor().ins().ishl(param, amount)
        };
        match self {
            Self::Multiple(of, more) => {
                let param = small.param(types::I32);
                let mask = small.cursor().ins().iconst(types::I32, -of & 0xffff_ffff);
                let address = small.cursor().ins().band(param, mask);
                let more = small.cursor().ins().iconst(types::I32, more);
                return small.cursor().ins().iadd(address, more);
            }
            Self::Multiples(first, second) => {
                let (first, second) = (multiple(small, first), multiple(small, second));
                return small.cursor().ins().iadd(first, second);
            }
            Self::Either(first, second) => {
                let (first, second) = (multiple(small, first), multiple(small, second));
                let which = small.param(types::I8);
                return small.cursor().ins().select(which, first, second);
            }
            Self::Narrow => {
                let (x, y) = (small.param(types::I16), small.param(types::I16));
                let sum = small.cursor().ins().iadd(x, y);
                return small.cursor().ins().uextend(types::I32, sum);
            }
            Self::InSlot(align, distance) => {
                let slot = StackSlotData::new(StackSlotKind::ExplicitSlot, 512, align);
                let slot = small.func.create_sized_stack_slot(slot);
                return small.cursor().ins().stack_addr(types::I32, slot, distance);
            }
            _ => {}
        }
        let param = match self {
            Self::Slot | Self::Symbol | Self::Constant(_) => None,
            Self::Wide => Some(small.param(types::I64)),
            _ => Some(small.param(types::I32)),
        };
        match (self, param) {
            (Self::Sum(by), Some(param)) => {
                let by = small.cursor().ins().iconst(types::I32, by);
                small.cursor().ins().iadd(param, by)
            }
            (Self::Indexed, Some(param)) => {
                let index = small.param(types::I32);
                small.cursor().ins().iadd(param, index)
            }
            (Self::Scaled, Some(param)) => {
                let index = small.param(types::I32);
                let by = small.cursor().ins().iconst(types::I32, 6);
                let scaled = small.cursor().ins().ishl(index, by);
                small.cursor().ins().iadd(param, scaled)
            }
            (_, Some(param)) => param,
            (Self::Slot, _) => {
                let slot = StackSlotData::new(StackSlotKind::ExplicitSlot, 512, 6);
                let slot = small.func.create_sized_stack_slot(slot);
                small.cursor().ins().stack_addr(types::I32, slot, 64)
            }
            (Self::Symbol, _) => symbol(small, types::I32),
            (Self::Constant(at), _) => small.cursor().ins().iconst(types::I32, at),
            _ => small.cursor().ins().iconst(types::I32, 0),
        }
    }
}

/// Appends the address of a symbol.
fn symbol(small: &mut Small, ty: Type) -> Value {
    let name = small.func.declare_imported_user_function(UserExternalName::new(0, 7));
    let symbol = small.func.create_global_value(GlobalValueData::Symbol {
        name: ExternalName::user(name),
        offset: 16.into(),
        colocated: true,
        tls: false,
    });
    small.cursor().ins().symbol_value(ty, symbol)
}

/// The offsets to try: limits of the machine's offsets, and multiples of the access.
const OFFSETS: [i32; 16] = [
    0, 1, 4, 8, 64, -4, -64, 248, 252, 255, 256, 260, -256, -260, 4096, 100_000,
];

/// Declares the scratchpad.
pub fn space(small: &mut Small) -> AliasRegion {
    small.func.dfg.alias_regions.insert(AliasRegionData {
        user_id: SCRATCHPAD_SPACE,
        description: "scratchpad".into(),
    })
}

/// Returns the flags of accesses.
fn flags(small: &mut Small) -> Vec<MemFlagsData> {
    let region = space(small);
    let plain = MemFlagsData::new();
    let aligned = plain.with_aligned();
    let mut list = vec![
        aligned,
        plain,
        aligned.with_endianness(Endianness::Big),
        plain.with_endianness(Endianness::Big),
    ];
    list.push(aligned.with_alias_region(Some(region)));
    list.push(plain.with_alias_region(Some(region)));
    list
}

/// Returns the opcodes of loads and stores.
fn opcodes() -> impl Iterator<Item = Opcode> {
    let formats = [InstructionFormat::Load, InstructionFormat::Store];
    Opcode::all()
        .iter()
        .copied()
        .filter(move |opcode| formats.contains(&opcode.format()))
}

/// Returns the access functions of a combination; `signed` is a user that extends the result.
fn access(opcode: Opcode, ty: Type, flag: usize, address: Address, offset: i32, signed: bool) -> Option<Instance> {
    let mut small = Small::default();
    let value = (opcode.format() == InstructionFormat::Store).then(|| small.param(ty));
    let at = address.build(&mut small);
    let data = *flags(&mut small).get(flag)?;
    let flags = small.func.dfg.mem_flags.insert(data).ok()?;
    let offset = Offset32::new(offset);
    match value {
        Some(value) => {
            let args = [value, at];
            let data = InstructionData::Store {
                opcode,
                args,
                flags,
                offset,
            };
            small.instruction(data, ty);
            small.ret(&[]);
        }
        None => {
            let data = InstructionData::Load {
                opcode,
                arg: at,
                flags,
                offset,
            };
            let ctrl = if opcode.constraints().is_polymorphic() {
                ty
            } else {
                types::INVALID
            };
            let loaded = small.instruction(data, ctrl)[0];
            let narrow = small.func.dfg.value_type(loaded);
            let result = match signed {
                true if narrow.is_int() && !narrow.is_vector() && narrow.bits() < 32 => {
                    small.cursor().ins().sextend(types::I32, loaded)
                }
                true => return None,
                false => loaded,
            };
            small.ret(&[result]);
        }
    }
    Some(Instance::new(small, ty))
}

/// Addresses with an alignment that lowering can derive, and addresses without one.
const ALIGNED: [Address; 22] = [
    Address::Multiple(2, 0),
    Address::Multiple(4, 0),
    Address::Multiple(4, 2),
    Address::Multiple(32, 8),
    Address::Multiple(64, 0),
    Address::Multiple(64, 4),
    Address::Multiple(64, 32),
    Address::Multiple(128, 64),
    Address::Multiples(64, 64),
    Address::Multiples(4, 64),
    Address::Multiples(64, 2),
    Address::Multiples(4, 8),
    Address::Either(64, 4),
    Address::Either(2, 64),
    Address::Either(4, 4),
    Address::InSlot(0, 0),
    Address::InSlot(2, 2),
    Address::InSlot(2, 4),
    Address::InSlot(6, 1),
    Address::InSlot(6, 4),
    Address::InSlot(6, 32),
    Address::InSlot(8, 64),
];

/// Returns the address operations alone.
fn addresses() -> Vec<Instance> {
    let all = Address::ALL.into_iter().map(|address| {
        let mut small = Small::default();
        let value = address.build(&mut small);
        small.ret(&[value]);
        Instance::new(small, types::I32)
    });
    let mut out: Vec<Instance> = all.collect();
    for ty in [types::I32, types::I64, types::I128] {
        for opcode in [
            Opcode::GetStackPointer,
            Opcode::GetFramePointer,
            Opcode::GetReturnAddress,
        ] {
            let mut small = Small::default();
            let value = small.instruction(InstructionData::NullAry { opcode }, ty);
            small.ret(&value);
            out.push(Instance::new(small, ty));
        }
        let mut small = Small::default();
        let slot = StackSlotData::new(StackSlotKind::ExplicitSlot, 512, 6);
        let slot = small.func.create_sized_stack_slot(slot);
        let value = small.cursor().ins().stack_addr(ty, slot, 64);
        small.ret(&[value]);
        out.push(Instance::new(small, ty));
        let mut small = Small::default();
        let value = symbol(&mut small, ty);
        small.ret(&[value]);
        out.push(Instance::new(small, ty));
        let mut small = Small::default();
        let signature = small.func.import_signature(Signature::new(CallConv::SystemV));
        let callee = small.callee(signature);
        let value = small.cursor().ins().func_addr(ty, callee);
        small.ret(&[value]);
        out.push(Instance::new(small, ty));
    }
    out
}

/// Returns the instances of memory.
pub fn instances() -> Vec<Instance> {
    let mut out = addresses();
    for opcode in opcodes() {
        let constraints = opcode.constraints();
        let types: Vec<Type> = match constraints.ctrl_typeset() {
            Some(set) => all_types().filter(|&ty| set.contains(ty)).collect(),
            None => vec![constraints.result_type(0, types::INVALID)],
        };
        for ty in types {
            for flag in 0..6 {
                for signed in [false, true] {
                    out.extend(access(opcode, ty, flag, Address::Param, 0, signed));
                }
                // Each address with one offset, and each offset with a parameter.
                // An unaligned vector is one sequence for each byte or word.
                let few = flag != 0 && ty.bits() > 64;
                for address in Address::ALL.into_iter().step_by(if few { 4 } else { 1 }) {
                    out.extend(access(opcode, ty, flag, address, 16, false));
                }
                // Without the flag, lowering derives the alignment from the address.
                if matches!(flag, 1 | 5)
                    && matches!(ty, types::I16 | types::I32 | types::I64 | types::I32X16 | types::I8X16)
                {
                    let (step, offsets): (usize, &[i32]) = if ty.is_vector() { (3, &[0]) } else { (1, &[0, 2, 4]) };
                    for address in ALIGNED.into_iter().step_by(step) {
                        for &offset in offsets {
                            out.extend(access(opcode, ty, flag, address, offset, false));
                        }
                    }
                }
                for offset in OFFSETS.into_iter().step_by(if few { 8 } else { 1 }) {
                    out.extend(access(opcode, ty, flag, Address::Param, offset, false));
                }
            }
        }
    }
    out
}
