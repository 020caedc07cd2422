//! Small functions that apply the rules: each operation by each type, with constants of each class,
//! with each kind of user, and in pairs.

use super::instance::{Instance, constants_of};
use super::operation::{Operation, Small, TRAP, operations};
use super::{atomics, control, frames, intrinsics, memory, rewrites, vectors};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{
    ConstantData, InstBuilder as _, InstructionData, MemFlagsData, Opcode, Type, Value, types,
};

/// A family of instances.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Family {
    /// An operation on parameters.
    Plain,
    /// An operation with a constant operand.
    Constants,
    /// An operation whose result has users of each kind.
    Users,
    /// An operation on the result of another one.
    Pairs,
    /// Vector operations in the lanes of a mask.
    Masked,
    /// Loads, stores and addresses.
    Memory,
    /// Vectors from memory to memory, and vectors with constant lanes.
    Vectors,
    /// Branches, calls and traps.
    Control,
    /// Atomic operations.
    Atomics,
    /// Calls of intrinsics.
    Intrinsics,
    /// Stack slots, saved registers, pools of constants.
    Frames,
    /// Functions that are longer than the reach of a branch.
    Long,
    /// Functions that the optimizer rewrites.
    Rewrites,
}

impl Family {
    /// All families.
    pub const ALL: [Self; 13] = [
        Self::Plain,
        Self::Constants,
        Self::Users,
        Self::Pairs,
        Self::Masked,
        Self::Memory,
        Self::Vectors,
        Self::Control,
        Self::Atomics,
        Self::Intrinsics,
        Self::Frames,
        Self::Long,
        Self::Rewrites,
    ];

    /// Returns the name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Constants => "constants",
            Self::Users => "users",
            Self::Pairs => "pairs",
            Self::Masked => "masked",
            Self::Memory => "memory",
            Self::Vectors => "vectors",
            Self::Control => "control",
            Self::Atomics => "atomics",
            Self::Intrinsics => "intrinsics",
            Self::Frames => "frames",
            Self::Long => "long",
            Self::Rewrites => "rewrites",
        }
    }

    /// Returns whether the compiler refuses some instances, because td declares their operations not
    /// legal at their types. The other families consist of legal operations.
    pub fn has_refusals(self) -> bool {
        matches!(self, Self::Plain | Self::Constants | Self::Users | Self::Masked)
    }

    /// Returns the instances of the family.
    pub fn instances(self) -> Vec<Instance> {
        match self {
            Self::Plain => plain(),
            Self::Constants => constants(),
            Self::Users => users(),
            Self::Pairs => pairs(),
            Self::Masked => masked(),
            Self::Memory => memory::instances(),
            Self::Vectors => vectors::instances(),
            Self::Control => control::instances(),
            Self::Atomics => atomics::instances(),
            Self::Intrinsics => intrinsics::instances(),
            Self::Frames => frames::instances(),
            Self::Long => frames::long(),
            Self::Rewrites => rewrites::instances(),
        }
    }
}

/// The type that describes an operation: the widest of its types.
fn main_type(operation: &Operation) -> Type {
    let all = operation.operands.iter().copied().chain(operation.results());
    all.max_by_key(|ty| ty.bits()).unwrap_or(types::INVALID)
}

/// Appends an operation. Its operands are new parameters, except the operands in `constants`, which
/// pairs operand numbers with values. Returns its results, or `None` if an operand has no
/// constants.
fn apply(small: &mut Small, operation: &Operation, constants: &[(usize, i64)]) -> Option<Vec<Value>> {
    let mut args = Vec::new();
    for (number, &ty) in operation.operands.iter().enumerate() {
        args.push(match constants.iter().find(|(at, _)| *at == number) {
            Some(&(_, value)) => small.constant(ty, value)?,
            None => small.param(ty),
        });
    }
    Some(operation.append(small, &args))
}

/// Returns the function that returns the results of an operation with these constant operands.
fn single(operation: &Operation, constants: &[(usize, i64)]) -> Option<Instance> {
    let mut small = Small::default();
    let results = apply(&mut small, operation, constants)?;
    small.ret(&results);
    let constant = match constants {
        [(_, value)] => Some(*value),
        _ => None,
    };
    Some(Instance {
        constant,
        ..Instance::new(small, main_type(operation))
    })
}

fn plain() -> Vec<Instance> {
    let mut list = Vec::new();
    for operation in operations() {
        list.extend(single(&operation, &[]));
        // All operands are the same value.
        if let [first, rest @ ..] = &operation.operands[..]
            && !rest.is_empty()
            && rest.iter().all(|ty| ty == first)
        {
            let mut small = Small::default();
            let value = small.param(*first);
            let results = operation.append(&mut small, &vec![value; rest.len() + 1]);
            small.ret(&results);
            list.push(Instance::new(small, main_type(&operation)));
        }
    }
    list
}

/// Returns the function of an operation on vectors with one operand that is a scalar in each lane.
fn with_splat(operation: &Operation, number: usize) -> Option<Instance> {
    if !operation.operands[number].is_vector() {
        return None;
    }
    let mut small = Small::default();
    let mut args = Vec::new();
    for (at, &ty) in operation.operands.iter().enumerate() {
        args.push(match at == number {
            true => {
                let scalar = small.param(ty.lane_type());
                small.cursor().ins().splat(ty, scalar)
            }
            false => small.param(ty),
        });
    }
    let results = operation.append(&mut small, &args);
    small.ret(&results);
    Some(Instance::new(small, main_type(operation)))
}

/// Pairs of constants.
const BOTH: [(i64, i64); 6] = [
    (0, 0),
    (5, 3),
    (-7, 2),
    (77, -1),
    (0x1234_5678, 9),
    (i64::MIN >> 20, 33),
];

fn constants() -> Vec<Instance> {
    let mut list = Vec::new();
    for operation in operations() {
        for (number, &ty) in operation.operands.iter().enumerate() {
            // Rules with immediates are about two operands.
            let values = match operation.operands.len() {
                2 => constants_of(ty),
                _ => vec![0, 1, -1, 77],
            };
            list.extend(
                values
                    .into_iter()
                    .filter_map(|value| single(&operation, &[(number, value)])),
            );
            list.extend(with_splat(&operation, number));
        }
        if operation.operands.len() == 2 {
            list.extend(
                BOTH.into_iter()
                    .filter_map(|(x, y)| single(&operation, &[(0, x), (1, y)])),
            );
        }
    }
    list
}

/// The users of a value.
#[derive(Clone, Copy)]
enum User {
    Branch,
    InvertedBranch,
    Select,
    TrapNonzero,
    TrapZero,
    ZeroExtend,
    SignExtend,
    Twice,
    Equal,
}

impl User {
    const ALL: [Self; 9] = [
        Self::Branch,
        Self::InvertedBranch,
        Self::Select,
        Self::TrapNonzero,
        Self::TrapZero,
        Self::ZeroExtend,
        Self::SignExtend,
        Self::Twice,
        Self::Equal,
    ];

    /// Uses a value. Returns `None` if values of the type have no such user.
    fn apply(self, small: &mut Small, value: Value) -> Option<()> {
        let ty = small.func.dfg.value_type(value);
        if !ty.is_int() {
            return None;
        }
        match self {
            Self::Branch | Self::InvertedBranch => branch(small, value, matches!(self, Self::InvertedBranch)),
            Self::Select => {
                let (a, b) = (small.param(types::I32), small.param(types::I32));
                let result = small.cursor().ins().select(value, a, b);
                small.ret(&[result]);
            }
            Self::TrapNonzero | Self::TrapZero => {
                match self {
                    Self::TrapZero => small.cursor().ins().trapz(value, TRAP),
                    _ => small.cursor().ins().trapnz(value, TRAP),
                };
                small.ret(&[]);
            }
            Self::ZeroExtend | Self::SignExtend => {
                let wide = [types::I32, types::I64]
                    .into_iter()
                    .filter(|wide| wide.bits() > ty.bits());
                let mut results = Vec::new();
                for wide in wide {
                    results.push(match self {
                        Self::ZeroExtend => small.cursor().ins().uextend(wide, value),
                        _ => small.cursor().ins().sextend(wide, value),
                    });
                }
                if results.is_empty() {
                    return None;
                }
                small.ret(&results);
            }
            Self::Twice => {
                let other = small.param(types::I32);
                let chosen = small.cursor().ins().select(value, other, other);
                small.ret(&[value, chosen]);
            }
            Self::Equal => {
                let zero = small.constant(ty, 0)?;
                let same = small.cursor().ins().icmp(IntCC::Equal, value, zero);
                small.ret(&[same]);
            }
        }
        Some(())
    }
}

/// Ends the function with a branch on the value.
fn branch(small: &mut Small, value: Value, inverted: bool) {
    let from = small.block;
    let first = small.next_block();
    let one = small.cursor().ins().iconst(types::I32, 1);
    small.ret(&[one]);
    let second = small.next_block();
    let two = small.cursor().ins().iconst(types::I32, 2);
    small.ret(&[two]);
    small.block = from;
    let (then, other) = if inverted { (second, first) } else { (first, second) };
    small.cursor().ins().brif(value, then, &[], other, &[]);
}

/// Returns the operations of the families of users and pairs: those on integers of at most 64 bits
/// and on vectors of one register.
fn common(operation: &Operation) -> bool {
    let all = || operation.operands.iter().copied().chain(operation.results());
    let is_common = |ty: Type| {
        ty.lane_type().is_int() && matches!(ty.bits(), 8 | 32 | 64) && !ty.is_vector()
            || matches!(ty, types::I8X16 | types::I32X4 | types::I32X16 | types::I16X8)
    };
    let is_division = matches!(
        operation.opcode,
        Opcode::Udiv | Opcode::Sdiv | Opcode::Urem | Opcode::Srem | Opcode::Umulhi | Opcode::Smulhi
    );
    all().all(is_common) && !is_division
}

/// Constant operands of the family of users.
const USED: [i64; 8] = [0, 1, -1, 5, 200, 300, -256, 0x1234_5678];

fn users() -> Vec<Instance> {
    let mut list = Vec::new();
    for operation in operations() {
        if !operation.results()[0].is_int() || operation.operands.iter().any(|ty| ty.lane_bits() > 64) {
            continue;
        }
        let mut variants: Vec<Vec<(usize, i64)>> = vec![Vec::new()];
        if operation.operands.len() == 2 {
            variants.extend(USED.iter().flat_map(|&value| [vec![(0, value)], vec![(1, value)]]));
        }
        for user in User::ALL {
            for constants in &variants {
                let mut small = Small::default();
                let Some(results) = apply(&mut small, &operation, constants) else {
                    continue;
                };
                if user.apply(&mut small, results[0]).is_some() {
                    list.push(Instance {
                        constant: constants.first().map(|&(_, value)| value),
                        ..Instance::new(small, main_type(&operation))
                    });
                }
            }
        }
    }
    list
}

/// Every operation on the result of another one, with constants in some of them.
fn pairs() -> Vec<Instance> {
    let list: Vec<Operation> = operations().into_iter().filter(common).collect();
    let mut out = Vec::new();
    for outer in &list {
        for inner in &list {
            // Immediates of both would multiply the pairs.
            if is_later_immediate(inner) || (is_later_immediate(outer) && inner.operands.len() != 2) {
                continue;
            }
            let result = inner.results()[0];
            for (number, &ty) in outer.operands.iter().enumerate() {
                if ty == result {
                    out.extend(pair(outer, inner, number, None));
                    if outer.operands.len() == 2 && inner.operands.len() == 2 {
                        out.extend(
                            [(24, 8), (255, -1), (1, 31)]
                                .into_iter()
                                .filter_map(|both| pair(outer, inner, number, Some(both))),
                        );
                    }
                }
            }
        }
    }
    out
}

/// Returns whether another immediate of the same operation represents this one in pairs.
fn is_later_immediate(operation: &Operation) -> bool {
    use super::operation::Immediate;
    match operation.immediate {
        Immediate::Int(cc) => !matches!(cc, IntCC::Equal | IntCC::SignedLessThan | IntCC::UnsignedGreaterThan),
        Immediate::Lane(lane) => lane > 1,
        Immediate::Mask(mask) => mask[0] != 15,
        Immediate::Float(_) => true,
        Immediate::None => false,
    }
}

/// Returns the function with the inner operation as operand `number` of the outer one, optionally
/// with constants as the last operands.
fn pair(outer: &Operation, inner: &Operation, number: usize, constants: Option<(i64, i64)>) -> Option<Instance> {
    let mut small = Small::default();
    let last: Vec<(usize, i64)> = constants.iter().map(|&(value, _)| (1, value)).collect();
    let value = apply(&mut small, inner, &last)?[0];
    let mut args = Vec::new();
    for (at, &ty) in outer.operands.iter().enumerate() {
        args.push(match constants {
            _ if at == number => value,
            Some((_, value)) => small.constant(ty, value)?,
            None => small.param(ty),
        });
    }
    let results = outer.append(&mut small, &args);
    small.ret(&results);
    let ty = main_type(outer);
    Some(Instance {
        is_distinct: matches!(ty, types::I32 | types::I64) && constants.is_none(),
        ..Instance::new(small, ty)
    })
}

/// Operations on lanes whose result is selected by a mask, like the machine's masked instructions.
fn masked() -> Vec<Instance> {
    let list: Vec<Operation> = operations();
    let is_lanes = |operation: &&Operation| {
        matches!(
            operation.ctrl,
            types::I32X16 | types::F32X16 | types::I8X16 | types::I16X8 | types::I32X4
        ) && operation.results() == [operation.ctrl]
    };
    let compares: Vec<&Operation> = list
        .iter()
        .filter(|operation| {
            matches!(operation.opcode, Opcode::Icmp | Opcode::Fcmp) && operation.operands[0].is_vector()
        })
        .collect();
    let mut out = Vec::new();
    for operation in list.iter().filter(is_lanes) {
        let int = operation.ctrl.as_int();
        let fits = compares.iter().filter(|compare| compare.results() == [int]);
        // Some conditions are enough: `Plain` has all.
        for compare in fits.step_by(4) {
            // Constants and the order of operands matter the same way at every type.
            let variants: &[(Option<i64>, bool)] = match operation.ctrl {
                types::I32X16 => &[(None, false), (None, true), (Some(3), false), (Some(0), false)],
                _ => &[(None, false)],
            };
            for &(constant, swapped) in variants {
                let mut small = Small::default();
                let sides: Vec<Value> = compare.operands.iter().map(|&ty| small.param(ty)).collect();
                let mask = compare.append(&mut small, &sides)[0];
                let mut args: Vec<Value> = operation.operands.iter().map(|&ty| small.param(ty)).collect();
                if let (Some(value), Some(last)) = (constant, args.len().checked_sub(1)) {
                    let Some(value) = small.constant(operation.operands[last], value) else {
                        continue;
                    };
                    args[last] = value;
                }
                let other = match operation.operands.first() {
                    Some(&ty) if ty == operation.ctrl => args[0],
                    _ => small.param(operation.ctrl),
                };
                let result = operation.append(&mut small, &args)[0];
                let mask = match operation.ctrl == int {
                    true => mask,
                    false => small.cursor().ins().bitcast(operation.ctrl, MemFlagsData::new(), mask),
                };
                let (a, b) = if swapped { (other, result) } else { (result, other) };
                let chosen = small.cursor().ins().bitselect(mask, a, b);
                small.ret(&[chosen]);
                out.push(Instance {
                    constant,
                    ..Instance::new(small, operation.ctrl)
                });
            }
        }
    }
    out.extend(masks());
    out
}

/// Compares as masks: combined with constant masks, as conditions, and as operands that select the
/// lanes of an operation.
fn masks() -> Vec<Instance> {
    let mut out = Vec::new();
    for ty in [types::I32X16, types::I8X16, types::I16X8, types::I32X4] {
        let compare = |small: &mut Small| {
            let (a, b) = (small.param(ty), small.param(ty));
            small.cursor().ins().icmp(IntCC::SignedLessThan, a, b)
        };
        let logic = [Opcode::Band, Opcode::Bor, Opcode::Bxor, Opcode::Iadd, Opcode::Isub];
        for opcode in logic {
            let binary = |small: &mut Small, args| small.instruction(InstructionData::Binary { opcode, args }, ty)[0];
            for constant in [0u32, 0xffff_ffff, 0x5a3c_0f81] {
                for swapped in [false, true] {
                    let mut small = Small::default();
                    let mask = compare(&mut small);
                    let lanes = (0..ty.lane_count()).map(|lane| if constant >> lane & 1 == 1 { 0xff } else { 0 });
                    let bytes: Vec<u8> = lanes
                        .flat_map(|byte| std::iter::repeat_n(byte, ty.lane_bits() as usize / 8))
                        .collect();
                    let handle = small.func.dfg.constants.insert(ConstantData::from(&bytes[..]));
                    let constant = small.cursor().ins().vconst(ty, handle);
                    let args = if swapped { [constant, mask] } else { [mask, constant] };
                    let result = binary(&mut small, args);
                    let bits = small.cursor().ins().vhigh_bits(types::I32, result);
                    small.ret(&[result, bits]);
                    out.push(Instance::new(small, ty));
                }
            }
            // Operands of the operation: a mask, a vector in the lanes of a mask.
            for is_masked in [false, true] {
                for splat in [false, true] {
                    let mut small = Small::default();
                    let a = small.param(ty);
                    let mut b = compare(&mut small);
                    if is_masked {
                        let mut value = small.param(if splat { ty.lane_type() } else { ty });
                        if splat {
                            value = small.cursor().ins().splat(ty, value);
                        }
                        b = small.cursor().ins().band(b, value);
                    } else if splat {
                        continue;
                    }
                    let result = binary(&mut small, [a, b]);
                    small.ret(&[result]);
                    out.push(Instance::new(small, ty));
                }
            }
        }
        for opcode in [Opcode::VanyTrue, Opcode::VallTrue] {
            for is_compare in [false, true] {
                for inverted in [false, true] {
                    let mut small = Small::default();
                    let arg = if is_compare {
                        compare(&mut small)
                    } else {
                        small.param(ty)
                    };
                    let flag = small.instruction(InstructionData::Unary { opcode, arg }, ty)[0];
                    branch(&mut small, flag, inverted);
                    out.push(Instance::new(small, ty));
                }
            }
        }
    }
    out
}
