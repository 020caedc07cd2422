//! Random programs: functions with loops, branches, accesses and calls, and arguments for them.
//!
//! A `Style` chooses the instructions and statements, so that each [`Strategy`] reaches other parts
//! of the compiler. Control flow is structured, and a function calls only functions with higher
//! numbers.
//!
//! | file | content |
//! |---|---|
//! | `params` | parameters, arguments, trip counts |
//! | `access` | addresses, loads, stores |
//! | `nest` | loops, branches, exits, checks |
//! | [`operations`] | cases of each operation on each vector type |

mod access;
mod nest;
pub mod operations;
pub(crate) mod params;

use crate::anything;
use crate::eval::{Call, Case, Floats};
use crate::instruction::{Generator, Style, Test, pure_opcodes};
use crate::random::Dice;
use cranelift_codegen::ir::condcodes::FloatCC;
use cranelift_codegen::ir::{
    AbiParam, Block, BlockArg, Endianness, ExternalName, Function, InstBuilder, MemFlagsData, Opcode, StackSlot,
    StackSlotData, StackSlotKind, Type, UserFuncName, Value, types,
};
use cranelift_naplespu::Isa;
use cranelift_naplespu::intrinsics;
use params::{BASES, Param};

/// A kind of programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strategy {
    /// Several functions on integers and floats of all widths.
    Scalars,
    /// Loops over memory, with all forms of counters, addresses, loop-carried values and exits. The
    /// arguments make each assumption of the optimizer true, barely true, or false.
    Loops,
    /// Several functions on vectors, with intrinsics and the lane mask.
    Vectors,
    /// A function over all of CLIF without calls.
    Anything,
}

/// A target with arguments.
type Target<'a> = (Block, &'a [Value]);

/// The intrinsics of programs.
const INTRINSICS: &str = "shufflei32 shufflef32 vector_mixi32 vector_mixf32 read_mask_reg createmaskv16i32 clzv16i32 \
    ctzv16i32 clzi32 ctzi32 mask_cmpi32_eq mask_cmpi32_sgt mask_cmpi32_ule mask_cmpf32_lt mask_cmpf32_ne raw_fadd \
    raw_fmul raw_fdiv raw_itof raw_ftoi write_mask_reg write_mask_regv16i32 block_storev16i32_masked";

/// Operations that are more frequent than others.
const COMMON: [Opcode; 16] = {
    use Opcode::*;
    [
        Iadd, Iadd, Isub, Imul, Band, Bor, Bxor, Ishl, Ushr, Sshr, Icmp, Select, Smin, Smax, Umin, Umax,
    ]
};

/// Other operations of loops that can be vectorized.
const PLAIN: [Opcode; 14] = {
    use Opcode::*;
    const FLOAT: Opcode = FcvtFromSint;
    [
        Iadd, Rotl, Rotr, Select, Ineg, Bnot, Iabs, Uextend, Sextend, Ireduce, Ireduce, FLOAT, Fneg, Fabs,
    ]
};

/// Operations of other loops.
const LOOPS: [Opcode; 17] = {
    use Opcode::*;
    [
        Clz, Ctz, Cls, Popcnt, Udiv, Urem, Sdiv, Srem, Umulhi, Smulhi, Bitselect, Bitcast, Fcopysign, Bmask, Uextend,
        Sextend, Ireduce,
    ]
};

const FLOAT_ARITHMETIC: [Opcode; 5] = [Opcode::Fadd, Opcode::Fsub, Opcode::Fmul, Opcode::Fmin, Opcode::Fmax];

impl Strategy {
    /// Generates the case of some bytes. Returns `None` if the function of [`Strategy::Anything`]
    /// cannot be made valid.
    pub fn case(self, data: &[u8], isa: &Isa) -> Option<Case> {
        let mut dice = Dice::new(data);
        let style = match self {
            Self::Loops => loops(&mut dice),
            Self::Scalars => scalars(&mut dice),
            Self::Vectors => vectors(&mut dice),
            Self::Anything => {
                return Some(Case {
                    functions: vec![anything::generate(&mut dice, isa)?],
                    calls: Vec::new(),
                    floats: Floats::Any,
                });
            }
        };
        let count = if style.memory { 1 } else { dice.range(1, 3) };
        let (mut functions, mut params) = (Vec::new(), Vec::new());
        for index in (0..count).rev() {
            let mut g = Generator::new(&mut dice, isa, style.clone());
            g.function(index, &functions);
            params = g.params;
            functions.insert(0, g.func);
        }
        let calls = if style.memory { 16 } else { 3 };
        Some(case(&mut dice, &style, functions, &params, calls))
    }
}

/// Chooses calls of the first function.
fn case(dice: &mut Dice<'_>, style: &Style, functions: Vec<Function>, params: &[Param], calls: usize) -> Case {
    let calls = (0..calls).map(|_| {
        let base = dice.one_of(&BASES);
        Call {
            args: params::arguments(dice, params, base),
            memory: style.memory.then(|| (base, dice.bits())),
        }
    });
    Case {
        calls: calls.collect(),
        functions,
        floats: style.floats,
    }
}

fn loops(dice: &mut Dice<'_>) -> Style {
    let plain = dice.chance(3, 4);
    let pure = plain && dice.chance(4, 5);
    use types::{F32, I8, I16, I32, I64};
    let (all, own): (&[Type], &[Type]) = match plain {
        true => (&[I8, I8, I16, I16, I32, I32, I32, F32], &[I8, I16, I32, I32]),
        false => (&[I8, I16, I32, I32, I64, F32], &[I8, I16, I32, I64]),
    };
    let least = if pure && dice.chance(1, 2) { 2 } else { 1 };
    let elements: Vec<Type> = (0..dice.range(least, 3)).map(|_| dice.one_of(all)).collect();
    let floats = match !plain && dice.chance(1, 4) {
        true => Floats::Strict,
        false => Floats::None,
    };
    let mut opcodes = [&COMMON[..], &COMMON, &PLAIN].concat();
    if !plain {
        opcodes.extend(LOOPS);
    }
    if floats == Floats::Strict {
        opcodes.extend([FLOAT_ARITHMETIC, FLOAT_ARITHMETIC].concat());
    }
    Style {
        opcodes,
        types: [own, &elements].concat(),
        memory: true,
        elements,
        plain,
        constant_amounts: plain,
        pure,
        near: pure && dice.chance(1, 2),
        checks: dice.chance(1, if plain { 4 } else { 2 }),
        exits: !plain && dice.chance(1, 2),
        regions: dice.chance(1, 8),
        aligned: !dice.chance(1, 6),
        depth: dice.one_of(&[0, 0, 0, 0, 1, 1, 2]),
        floats,
        ..Style::evaluated()
    }
}

/// Returns all pure opcodes; those that trap often are in few programs.
fn opcodes(dice: &mut Dice<'_>, constants: bool) -> Vec<Opcode> {
    use Opcode::{F32const, F64const, FcvtToSint, FcvtToUint, Iconst, UaddOverflowTrap, Vconst};
    let traps = dice.chance(1, 5);
    let is_kept = |opcode: &Opcode| match opcode {
        FcvtToSint | FcvtToUint | UaddOverflowTrap => traps,
        Iconst | F32const | F64const | Vconst => constants,
        _ => true,
    };
    let pure: Vec<Opcode> = pure_opcodes().filter(is_kept).collect();
    [&pure[..], &COMMON, &COMMON, &FLOAT_ARITHMETIC].concat()
}

fn scalars(dice: &mut Dice<'_>) -> Style {
    use types::{F32, F64, I8, I16, I32, I64, I128};
    Style {
        checks: dice.chance(1, 2),
        opcodes: opcodes(dice, true),
        types: vec![I8, I16, I32, I32, I64, I64, I8, I16, I32, I64, I128, F32, F64],
        ..Style::evaluated()
    }
}

fn vectors(dice: &mut Dice<'_>) -> Style {
    use types::{F32, F32X16, F64, I8, I8X16, I16, I32, I32X16, I64};
    let lanes = [I8, I16, I32, I32, F32, I64, F64];
    let (mut all, constants) = match dice.below(4) {
        // The types of registers and intrinsics, in the arithmetic of each compiler.
        0 | 1 => (vec![I32, I32, F32, I32X16, I32X16, F32X16, I8X16], false),
        2 => {
            let lane = dice.one_of(&lanes[..4]);
            let vector = lane.by(16).unwrap_or(types::I32X16);
            (vec![vector, vector, vector, lane, types::I32], true)
        }
        _ => {
            let mut all = vec![types::I32];
            for _ in 0..dice.range(1, 3) {
                let lane = dice.one_of(&lanes);
                let most = if lane.bits() == 64 { 3 } else { 6 };
                let vector = lane.by(1 << dice.range(1, most)).unwrap_or(types::I32X16);
                all.extend([vector, vector, lane]);
            }
            (all, true)
        }
    };
    all.push(types::I32);
    Style {
        opcodes: opcodes(dice, constants),
        types: all,
        constant_amounts: dice.chance(1, 2),
        floats: if constants { Floats::Strict } else { Floats::Any },
        ..Style::evaluated()
    }
}

fn block_args(values: &[Value]) -> Vec<BlockArg> {
    values.iter().map(|&value| BlockArg::Value(value)).collect()
}

impl Generator<'_, '_, '_> {
    /// Begins the function with a name, which can call others.
    fn start(&mut self, name: &str, others: &[Function]) {
        self.func.name = UserFuncName::testcase(name);
        let (entry, _) = self.block(&[]);
        self.begin(entry);
        for other in others {
            let name = ExternalName::testcase(other.name.to_string().trim_start_matches('%'));
            let signature = self.func.import_signature(other.signature.clone());
            let callee = self.import(name, signature);
            self.callees.push(callee);
        }
    }

    /// Ends the function.
    fn finish(&mut self, results: &[Value]) {
        let types: Vec<Type> = results.iter().map(|&result| self.type_of(result)).collect();
        self.func.signature.returns.extend(types.into_iter().map(AbiParam::new));
        self.cursor().ins().return_(results);
    }

    /// Writes the function with a number. `others` are those with higher numbers.
    fn function(&mut self, index: usize, others: &[Function]) {
        self.start(&format!("f{index}"), others);
        if self.style.memory {
            self.memory_body();
        } else {
            self.program_body();
        }
        let many = !self.style.memory && self.dice.chance(1, 4);
        let kept = self.scope.len().saturating_sub(if many { 12 } else { 4 });
        let mut results = self.scope[kept..].to_vec();
        if !self.style.memory {
            results.extend(self.digest());
        }
        self.finish(&results);
    }

    /// Adds parameters and puts them into scope.
    fn numbers(&mut self, types: Vec<Type>) {
        for ty in types {
            let param = self.param(Param::Number(ty));
            self.scope.push(param);
        }
    }

    fn memory_body(&mut self) {
        let bases = match self.style.pure {
            true => self.dice.one_of(&[1, 1, 2, 2, 2, 3]),
            false => self.dice.range(1, 4),
        };
        for _ in 0..bases {
            self.add_base();
        }
        for _ in 0..self.dice.range(1, 3) {
            let ty = match self.dice.below(3) {
                0 => self.dice.one_of(&self.style.elements),
                1 if !self.style.plain => self.dice.one_of(&[types::I8, types::I16, types::I64, types::F32]),
                _ => types::I32,
            };
            self.numbers(vec![ty]);
        }
        if self.dice.chance(1, 8) {
            self.pointer_in_slot();
        }
        let slot = self.dice.chance(1, 4).then(|| self.slot_bases());
        self.nest(0);
        while self.budget > 0 && self.dice.chance(1, 4) {
            self.nest(0);
        }
        if let Some(slot) = slot {
            let hash = self.hash(slot);
            self.scope.push(hash);
        }
    }

    fn program_body(&mut self) {
        let types = self.style.types.clone();
        let many = self.dice.chance(1, 4);
        let count = self.dice.range(0, if many { 14 } else { 4 });
        let mut all: Vec<Type> = (0..count).map(|_| self.dice.one_of(&types)).collect();
        if self.style.floats == Floats::Any || self.dice.chance(3, 4) {
            // Each type, so that every operation has operands.
            all.extend(types);
        }
        self.numbers(all);
        for _ in 0..self.dice.range(1, 2) {
            let size = 16 << self.dice.range(0, 4);
            let slot = self.add_slot(size);
            self.fill(slot);
        }
        self.statements(4, 30, 0);
    }

    /// Returns a value that depends on the most recent values of one integer type in scope.
    fn digest(&mut self) -> Option<Value> {
        let ty = self.some_type();
        let is_same = |value: &Value| self.type_of(*value) == ty && ty.lane_type().is_int();
        let mut values: Vec<Value> = self.scope.iter().copied().filter(is_same).collect();
        let first = values.pop()?;
        let add = |sum: Value, (number, value): (usize, Value)| match number % 2 {
            0 => self.cursor().ins().bxor(sum, value),
            _ => self.cursor().ins().isub(sum, value),
        };
        Some(values.into_iter().rev().take(12).enumerate().fold(first, add))
    }

    /// Adds a parameter and returns its value.
    fn param(&mut self, param: Param) -> Value {
        let ty = param.ty();
        self.params.push(param);
        self.func.signature.params.push(AbiParam::new(ty));
        // The entry is the first block.
        self.func.dfg.append_block_param(Block::from_u32(0), ty)
    }

    /// Returns a new block with parameters.
    fn block(&mut self, types: &[Type]) -> (Block, Vec<Value>) {
        let block = self.func.dfg.make_block();
        let params = types.iter().map(|&ty| self.func.dfg.append_block_param(block, ty));
        (block, params.collect())
    }

    /// Begins a block.
    fn begin(&mut self, block: Block) {
        self.last = None;
        self.func.layout.append_block(block);
        self.current = block;
    }

    fn jump(&mut self, (block, values): Target<'_>) {
        self.cursor().ins().jump(block, &block_args(values));
    }

    /// Adds a branch with its targets in either order.
    fn branch(&mut self, (test, holds): Test, yes: Target<'_>, no: Target<'_>) {
        let (first, second) = if holds { (yes, no) } else { (no, yes) };
        let (first_args, second_args) = (block_args(first.1), block_args(second.1));
        let mut cursor = self.cursor();
        cursor.ins().brif(test, first.0, &first_args, second.0, &second_args);
    }

    /// Adds a stack slot.
    fn add_slot(&mut self, size: u32) -> StackSlot {
        let data = StackSlotData::new(StackSlotKind::ExplicitSlot, size, 6);
        self.func.create_sized_stack_slot(data)
    }

    /// Returns the type of a recent value in scope, or i32.
    pub fn some_type(&mut self) -> Type {
        match self.scope.len() {
            0 => types::I32,
            count => {
                let back = self.dice.below(count.min(8));
                self.type_of(self.scope[count - 1 - back])
            }
        }
    }

    /// Converts a scalar to another type, if the type differs.
    fn convert(&mut self, value: Value, to: Type) -> Value {
        let from = self.type_of(value);
        let extend = self.dice.chance(1, 2);
        let flags = MemFlagsData::new().with_endianness(Endianness::Little);
        match (from, to) {
            _ if from == to => value,
            (types::F32, _) => {
                let word = self.cursor().ins().bitcast(types::I32, flags, value);
                self.convert(word, to)
            }
            (_, types::F32) => {
                let small = self.convert(value, types::I16);
                self.cursor().ins().fcvt_from_sint(types::F32, small)
            }
            _ if from.bits() > to.bits() => self.cursor().ins().ireduce(to, value),
            _ if extend => self.cursor().ins().uextend(to, value),
            _ => self.cursor().ins().sextend(to, value),
        }
    }

    /// Adds the operation of a reduction.
    fn reduce(&mut self, sum: Value, value: Value) -> Value {
        use Opcode::{Band, Bor, Bxor, Iadd, Imul, Isub, Smax, Smin, Umax, Umin};
        const INTS: [Opcode; 12] = [Iadd, Iadd, Isub, Imul, Band, Bor, Bxor, Bxor, Smin, Smax, Umin, Umax];
        let ty = self.type_of(sum);
        let opcodes: &[Opcode] = match (ty.lane_type().is_float(), self.style.floats) {
            (true, Floats::None) => {
                let test = self.cursor().ins().fcmp(FloatCC::LessThan, sum, value);
                return self.cursor().ins().select(test, sum, value);
            }
            (true, _) => &FLOAT_ARITHMETIC,
            (false, _) => &INTS,
        };
        if !self.style.pure && ty.is_int() && !ty.is_vector() && self.dice.chance(1, 6) {
            let test = self.compare();
            return self.cursor().ins().select(test, sum, value);
        }
        let opcode = self.dice.one_of(opcodes);
        match opcode != Isub && ty.is_int() && self.dice.chance(1, 6) {
            true => self.binary(opcode, value, sum),
            false => self.binary(opcode, sum, value),
        }
    }

    fn binary(&mut self, opcode: Opcode, a: Value, b: Value) -> Value {
        let ty = self.type_of(a);
        let (inst, _) = self.cursor().ins().Binary(opcode, ty, a, b);
        self.func.dfg.first_result(inst)
    }

    /// Adds an operation and puts its results into scope.
    fn operation(&mut self) {
        // Some choices are not possible.
        (0..8).any(|_| self.instruction().is_some());
    }

    /// Adds a call of another function or of an intrinsic.
    fn call(&mut self) {
        if self.style.floats == Floats::Any && self.dice.chance(3, 4) {
            return self.intrinsic();
        }
        if self.callees.is_empty() {
            return self.operation();
        }
        let callee = self.dice.one_of(&self.callees);
        let signature = self.func.dfg.ext_funcs[callee].signature;
        let Some(args) = self.arguments(signature) else { return };
        let inst = if self.dice.chance(1, 3) {
            let address = self.cursor().ins().func_addr(types::I32, callee);
            self.cursor().ins().call_indirect(signature, address, &args)
        } else {
            self.cursor().ins().call(callee, &args)
        };
        self.push_results(inst);
    }

    fn intrinsic(&mut self) {
        let names: Vec<&str> = INTRINSICS.split(' ').collect();
        let name = self.dice.one_of(&names);
        let Ok(callee) = intrinsics::Builder::new().declare(&mut self.func, name) else {
            return;
        };
        let Some(mut args) = self.arguments(self.func.dfg.ext_funcs[callee].signature) else {
            return;
        };
        let flags = MemFlagsData::trusted();
        let stores = name == "block_storev16i32_masked";
        if stores {
            let slot = self.add_slot(64);
            // The lanes that the mask disables keep another vector.
            let old = self.any(types::I32X16);
            args[0] = self.cursor().ins().stack_addr(types::I32, slot, 0);
            self.cursor().ins().store(flags, old, args[0], 0);
        } else if name.starts_with("shuffle") {
            // An index above 15 is undefined.
            let fifteen = self.int(types::I32, 15);
            let all = self.cursor().ins().splat(types::I32X16, fifteen);
            args[1] = self.cursor().ins().band(args[1], all);
        }
        let mut inst = self.cursor().ins().call(callee, &args);
        if stores {
            let stored = self.cursor().ins().load(types::I32X16, flags, args[0], 0);
            inst = self.func.dfg.value_def(stored).unwrap_inst();
        }
        self.push_results(inst);
    }
}
