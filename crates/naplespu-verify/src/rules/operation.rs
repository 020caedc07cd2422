//! CLIF operations with their types and immediates, and functions that consist of a few of them.

use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::immediates::{Ieee16, Ieee32, Ieee64, Uimm8};
use cranelift_codegen::ir::instructions::{InstructionFormat, ResolvedConstraint};
use cranelift_codegen::ir::{
    AbiParam, Block, ConstantData, ExtFuncData, ExternalName, FuncRef, Function, InstBuilder as _, InstructionData,
    Opcode, SigRef, Signature, TrapCode, Type, UserExternalName, UserFuncName, Value, types,
};
use cranelift_codegen::isa::CallConv;

/// The trap code of operations that need one.
pub const TRAP: TrapCode = TrapCode::unwrap_user(7);

/// The types of values in the functions that have a name.
const NAMED: [Type; 22] = [
    types::I8,
    types::I16,
    types::I32,
    types::I64,
    types::I128,
    types::F16,
    types::F32,
    types::F64,
    types::F128,
    types::I8X16,
    types::I16X16,
    types::I32X16,
    types::F32X16,
    types::I8X8,
    types::I16X4,
    types::I16X8,
    types::I32X2,
    types::I32X4,
    types::F32X4,
    types::I64X2,
    types::F64X2,
    types::I8X32,
];

/// Returns the types of values in the functions: each scalar type, and vectors of each shape.
pub fn all_types() -> impl Iterator<Item = Type> + Clone {
    let long = [types::I32, types::F32].into_iter().filter_map(|lane| lane.by(32));
    NAMED.into_iter().chain(long)
}

/// An immediate operand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Immediate {
    /// No immediate.
    None,
    /// A condition on integers.
    Int(IntCC),
    /// A condition on floats.
    Float(FloatCC),
    /// The number of a lane.
    Lane(u8),
    /// The source lanes of a shuffle.
    Mask([u8; 16]),
}

/// An operation that computes results from values: an opcode with types and an immediate.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Operation {
    /// The opcode.
    pub opcode: Opcode,
    /// The controlling type.
    pub ctrl: Type,
    /// The types of the operands.
    pub operands: Vec<Type>,
    /// The immediate.
    pub immediate: Immediate,
}

/// Source lanes of shuffles: identity, reversal, rotations, interleavings, repeated lanes, lanes of
/// both operands.
fn shuffles() -> Vec<[u8; 16]> {
    let mut list = Vec::new();
    let mut add = |f: &dyn Fn(u8) -> u8| list.push(std::array::from_fn(|lane| f(lane as u8) % 32));
    add(&|lane| lane);
    add(&|lane| lane + 16);
    add(&|lane| 15 - lane);
    add(&|lane| 31 - lane);
    add(&|_| 0);
    add(&|_| 13);
    add(&|_| 21);
    for by in [1, 4, 8, 15] {
        add(&|lane| lane + by);
        add(&|lane| (lane + by) % 16);
    }
    add(&|lane| lane / 2 + 16 * (lane % 2));
    add(&|lane| 8 + lane / 2 + 16 * (lane % 2));
    add(&|lane| 2 * lane);
    add(&|lane| 2 * lane + 1);
    add(&|lane| lane ^ 1);
    add(&|lane| lane ^ 3);
    add(&|lane| (lane & 12) + 3 - (lane & 3));
    add(&|lane| (7 * lane + 5) % 32);
    add(&|lane| if lane == 5 { 20 } else { lane });
    list
}

/// Returns the immediates of an opcode with this controlling type.
fn immediates(opcode: Opcode, ctrl: Type) -> Vec<Immediate> {
    match opcode.format() {
        InstructionFormat::IntCompare => IntCC::all().iter().map(|&cc| Immediate::Int(cc)).collect(),
        InstructionFormat::FloatCompare => FloatCC::all().iter().map(|&cc| Immediate::Float(cc)).collect(),
        InstructionFormat::BinaryImm8 | InstructionFormat::TernaryImm8 => {
            let count = ctrl.lane_count().max(1);
            let mut lanes: Vec<u32> = vec![0, 1, 2, count / 2, count.saturating_sub(2), count - 1];
            lanes.retain(|&lane| lane < count);
            lanes.sort_unstable();
            lanes.dedup();
            lanes.into_iter().map(|lane| Immediate::Lane(lane as u8)).collect()
        }
        InstructionFormat::Shuffle => shuffles().into_iter().map(Immediate::Mask).collect(),
        _ => vec![Immediate::None],
    }
}

/// Returns whether the functions contain the opcode as an operation on values.
fn is_operation(opcode: Opcode) -> bool {
    let format = matches!(
        opcode.format(),
        InstructionFormat::Unary
            | InstructionFormat::Binary
            | InstructionFormat::Ternary
            | InstructionFormat::IntCompare
            | InstructionFormat::FloatCompare
            | InstructionFormat::BinaryImm8
            | InstructionFormat::TernaryImm8
            | InstructionFormat::Shuffle
            | InstructionFormat::IntAddTrap
    );
    // Dynamic vectors are vectors of a fixed size to the rules.
    format
        && opcode != Opcode::ExtractVector
        && !opcode.is_terminator()
        && !opcode.can_load()
        && !opcode.can_store()
        && opcode.constraints().num_fixed_results() > 0
}

/// Returns all operations on the types, valid or not: the verifier decides.
pub fn operations() -> Vec<Operation> {
    let mut list = Vec::new();
    for &opcode in Opcode::all().iter().filter(|&&opcode| is_operation(opcode)) {
        let constraints = opcode.constraints();
        let ctrls: Vec<Type> = match constraints.ctrl_typeset() {
            Some(set) => all_types().filter(|&ty| set.contains(ty)).collect(),
            None => vec![types::INVALID],
        };
        for ctrl in ctrls {
            let mut choices: Vec<Vec<Type>> = vec![Vec::new()];
            for number in 0..constraints.num_fixed_value_arguments() {
                let types: Vec<Type> = match constraints.value_argument_constraint(number, ctrl) {
                    ResolvedConstraint::Bound(ty) => vec![ty],
                    ResolvedConstraint::Free(set) => all_types().filter(|&ty| set.contains(ty)).collect(),
                };
                choices = choices
                    .into_iter()
                    .flat_map(|front| types.iter().map(move |&ty| [&front[..], &[ty]].concat()))
                    .collect();
            }
            for operands in choices {
                for immediate in immediates(opcode, ctrl) {
                    list.push(Operation {
                        opcode,
                        ctrl,
                        operands: operands.clone(),
                        immediate,
                    });
                }
            }
        }
    }
    list
}

impl Operation {
    /// Returns the types of the results.
    pub fn results(&self) -> Vec<Type> {
        let constraints = self.opcode.constraints();
        (0..constraints.num_fixed_results())
            .map(|number| constraints.result_type(number, self.ctrl))
            .collect()
    }

    /// Appends the operation. Returns its results.
    pub fn append(&self, small: &mut Small, args: &[Value]) -> Vec<Value> {
        let opcode = self.opcode;
        let two = || [args[0], args[1]];
        let data = match (opcode.format(), self.immediate) {
            (InstructionFormat::Unary, _) => InstructionData::Unary { opcode, arg: args[0] },
            (InstructionFormat::Ternary, _) => InstructionData::Ternary {
                opcode,
                args: [args[0], args[1], args[2]],
            },
            (_, Immediate::Int(cond)) => InstructionData::IntCompare {
                opcode,
                args: two(),
                cond,
            },
            (_, Immediate::Float(cond)) => InstructionData::FloatCompare {
                opcode,
                args: two(),
                cond,
            },
            (InstructionFormat::BinaryImm8, Immediate::Lane(lane)) => InstructionData::BinaryImm8 {
                opcode,
                arg: args[0],
                imm: lane as Uimm8,
            },
            (InstructionFormat::TernaryImm8, Immediate::Lane(lane)) => InstructionData::TernaryImm8 {
                opcode,
                args: two(),
                imm: lane as Uimm8,
            },
            (_, Immediate::Mask(mask)) => InstructionData::Shuffle {
                opcode,
                args: two(),
                imm: small.func.dfg.immediates.push(ConstantData::from(&mask[..])),
            },
            (InstructionFormat::IntAddTrap, _) => InstructionData::IntAddTrap {
                opcode,
                args: two(),
                code: TRAP,
            },
            _ => InstructionData::Binary { opcode, args: two() },
        };
        small.instruction(data, self.ctrl)
    }
}

/// A function under construction. It has one block unless `branch` is called.
pub struct Small {
    /// The function.
    pub func: Function,
    /// The current block.
    pub block: Block,
    entry: Block,
}

impl Default for Small {
    fn default() -> Self {
        let mut func = Function::with_name_signature(UserFuncName::testcase("rule"), Signature::new(CallConv::SystemV));
        let block = func.dfg.make_block();
        func.layout.append_block(block);
        Self {
            func,
            block,
            entry: block,
        }
    }
}

impl Small {
    /// Adds a parameter.
    pub fn param(&mut self, ty: Type) -> Value {
        self.func.signature.params.push(AbiParam::new(ty));
        self.func.dfg.append_block_param(self.entry, ty)
    }

    /// Returns a cursor at the end of the current block.
    pub fn cursor(&mut self) -> FuncCursor<'_> {
        let block = self.block;
        FuncCursor::new(&mut self.func).at_bottom(block)
    }

    /// Declares an external function of the module.
    pub fn callee(&mut self, signature: SigRef) -> FuncRef {
        let name = self.func.declare_imported_user_function(UserExternalName::new(0, 3));
        self.func.import_function(ExtFuncData {
            name: ExternalName::user(name),
            signature,
            colocated: true,
            patchable: false,
        })
    }

    /// Appends an instruction. Returns its results.
    pub fn instruction(&mut self, data: InstructionData, ctrl: Type) -> Vec<Value> {
        let inst = self.func.dfg.make_inst(data);
        self.func.dfg.make_inst_results(inst, ctrl);
        self.func.layout.append_inst(inst, self.block);
        self.func.dfg.inst_results(inst).to_vec()
    }

    /// Appends a constant in each lane. The constant of a float type has these low bits, moved to the
    /// upper half of types of 64 bits. Returns `None` for `f128`.
    pub fn constant(&mut self, ty: Type, value: i64) -> Option<Value> {
        let lane = ty.lane_type();
        if !lane.is_int() {
            let mut cursor = self.cursor();
            let constant = match lane {
                types::F16 => cursor.ins().f16const(Ieee16::with_bits(value as u16)),
                types::F32 => cursor.ins().f32const(Ieee32::with_bits(value as u32)),
                types::F64 => cursor.ins().f64const(Ieee64::with_bits((value as u64) << 32)),
                _ => return None,
            };
            return Some(match ty.is_vector() {
                true => cursor.ins().splat(ty, constant),
                false => constant,
            });
        }
        let narrow = if lane == types::I128 { types::I64 } else { lane };
        let bits = narrow.bits();
        let value = if bits < 64 { value & ((1 << bits) - 1) } else { value };
        let mut cursor = self.cursor();
        let mut constant = cursor.ins().iconst(narrow, value);
        if lane == types::I128 {
            constant = cursor.ins().sextend(lane, constant);
        }
        if ty.is_vector() {
            constant = cursor.ins().splat(ty, constant);
        }
        Some(constant)
    }

    /// Adds a block, which becomes the current one.
    pub fn next_block(&mut self) -> Block {
        let block = self.func.dfg.make_block();
        self.func.layout.append_block(block);
        self.block = block;
        block
    }

    /// Ends the current block with a return of the values; the first return determines the
    /// signature.
    pub fn ret(&mut self, values: &[Value]) {
        if self.func.signature.returns.is_empty() {
            let types: Vec<Type> = values.iter().map(|&value| self.func.dfg.value_type(value)).collect();
            self.func.signature.returns.extend(types.into_iter().map(AbiParam::new));
        }
        self.cursor().ins().return_(values);
    }
}
