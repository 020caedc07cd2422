//! Cases of single operations on each type, generated at run time.
//!
//! The operands are parameters, lanes that are all equal, or constants. Most functions contain only
//! the operation; in the others, statements of programs use its results. The name of a function is
//! the seed of its random numbers.

use crate::eval::{Case, Lanes, host_list};
use crate::instruction::{Generator, Style, pure_opcodes};
use crate::random::{Dice, bytes};
use cranelift_codegen::ir::{AbiParam, Function, Opcode, Type, types};
use cranelift_naplespu::Isa;
use naplespu_filetests::lanes::display;

/// The number of functions for each type and opcode, and the number of calls of each function:
/// without statements, and with them.
const CASES: [(u64, usize); 2] = [(12, 6), (5, 5)];

/// The number of functions with accesses to memory for each type.
const ACCESSES: u64 = 20;

/// The number of live values across a call, more than there are registers.
const LIVE: usize = 72;

/// Opcodes whose operands are often results of other operations.
const USERS: [Opcode; 16] = {
    use Opcode::*;
    [
        Band, Bor, Bxor, Bnot, Iadd, Isub, Icmp, Fcmp, Bitselect, VanyTrue, VallTrue, VhighBits, Bitcast, Shuffle,
        Splat, Select,
    ]
};

/// Returns the vector types.
pub fn vectors() -> impl Iterator<Item = Type> {
    use types::{F32, F64, I8, I16, I32, I64};
    let shifts = |lane: Type| 1..=if lane.bits() == 64 { 3 } else { 6 };
    let of = move |lane: Type| shifts(lane).filter_map(move |shift| lane.by(1 << shift));
    [I8, I16, I32, I64, F32, F64].into_iter().flat_map(of)
}

/// Returns the scalar types, and the vectors of 128 bits.
pub fn small_types() -> impl Iterator<Item = Type> {
    use types::{F32, F64, I8, I16, I32, I64, I128};
    let vectors = vectors().filter(|ty| ty.bits() == 128);
    [I8, I16, I32, I64, I128, F32, F64].into_iter().chain(vectors)
}

/// Returns the cases of all operations on these types, with or without statements that use the
/// results.
pub fn operations(isa: &Isa, types: impl Iterator<Item = Type>, statements: bool) -> Vec<(Type, Case)> {
    let mut all = Vec::new();
    let (cases, calls) = CASES[usize::from(statements)];
    for ty in types {
        let opcodes = pure_opcodes().map(|opcode| (opcode, cases));
        for (opcode, count) in opcodes.chain([(Opcode::Store, ACCESSES), (Opcode::Call, 1)]) {
            for number in 0..count {
                let statements = statements && number % 3 == 2;
                let case = case(isa, ty, (opcode, number, statements), calls);
                all.extend(case.map(|case| (ty, case)));
            }
        }
    }
    all
}

/// Returns a function with an operation on a type, or `None` if CLIF or the evaluator does not have
/// the operation. A call is made with many live values, and accesses are those of a stack slot.
fn case(isa: &Isa, ty: Type, what: (Opcode, u64, bool), calls: usize) -> Option<Case> {
    let (opcode, number, statements) = what;
    let name = format!("{opcode}_{ty}_{number}");
    let hash = |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    let data = bytes(name.bytes().fold(7, hash));
    let mut dice = Dice::new(&data);
    let mut floats = [types::F32, types::F64].into_iter();
    let float = floats.find(|lane| lane.bits() == ty.lane_bits());
    let shape = match float.filter(|_| ty.lane_type().is_int()) {
        Some(float) => float.by(ty.lane_count()).unwrap_or(float),
        None => ty.as_int(),
    };
    let same = vectors().chain(small_types()).filter(|same| same.bits() == ty.bits());
    let same = dice.one_of(&same.collect::<Vec<_>>());
    let mut params = vec![ty.lane_type(), types::I32, ty, ty];
    if !opcode.constraints().use_typevar_operand() {
        // The operand has another type.
        params.splice(0..0, [same, shape]);
    }
    let halves = [ty.split_lanes(), ty.merge_lanes()].into_iter().flatten();
    let halves = halves.filter(|ty| !matches!(ty.lane_type(), types::F16 | types::F128));
    let style = Style {
        opcodes: [&USERS[..], &[Opcode::Extractlane, Opcode::Insertlane]].concat(),
        types: halves.chain([ty, same, shape]).chain(params.clone()).collect(),
        constant_amounts: dice.chance(1, 2),
        ..Style::evaluated()
    };
    let mut others = Vec::new();
    if opcode == Opcode::Call {
        let mut callee = Generator::new(&mut dice, isa, style.clone());
        callee.start(&format!("difference_{ty}"), &[]);
        callee.numbers(vec![ty, ty]);
        let difference = callee.binary(Opcode::Isub, callee.scope[0], callee.scope[1]);
        callee.finish(&[difference]);
        others.push(callee.func);
    }
    let mut writer = Generator::new(&mut dice, isa, style.clone());
    writer.start(&name, &others);
    let first = params.len();
    writer.numbers(params);
    match opcode {
        Opcode::Call if ty.lane_type().is_int() => writer.pressure(ty),
        Opcode::Call => return None,
        Opcode::Store => {
            let size = writer.dice.one_of(&[64, 512, 1024]);
            let slot = writer.add_slot(size);
            writer.fill(slot);
            writer.store();
            writer.load();
        }
        _ => {
            let inst = writer.instruction_on(opcode, ty)?;
            let dfg = &writer.func.dfg;
            let mut values = dfg.inst_args(inst).iter().chain(dfg.inst_results(inst));
            if !values.any(|&value| dfg.value_type(value) == ty) {
                return None;
            }
        }
    }
    if statements {
        writer.statements(1, 4, 3);
    }
    let slot = writer.func.sized_stack_slots.keys().next();
    if let Some(slot) = slot {
        let hash = writer.hash(slot);
        writer.scope.push(hash);
    }
    let first = writer.scope.len().saturating_sub(3).max(first);
    let results = writer.scope[first..].to_vec();
    writer.finish(&results);
    let Generator { func, params, .. } = writer;
    others.insert(0, func);
    Some(super::case(&mut dice, &style, others, &params, calls))
}

impl Generator<'_, '_, '_> {
    /// Adds a call with [`LIVE`] values that are used after it.
    fn pressure(&mut self, ty: Type) {
        let (mut all, other) = (vec![self.any(ty)], self.any(ty));
        for number in 0..LIVE {
            let opcode = [Opcode::Iadd, Opcode::Bxor, Opcode::Imul][number % 3];
            all.push(self.binary(opcode, all[number], other));
        }
        self.call();
        let mut sum = self.any(ty);
        for number in 0..LIVE {
            let product = self.binary(Opcode::Imul, all[number], all[(number * 7 + 1) % LIVE]);
            sum = self.binary(Opcode::Bxor, sum, product);
        }
        self.scope.push(sum);
    }
}

/// Returns a run line.
pub fn run_line(func: &Function, args: &[Lanes], results: &[Lanes]) -> String {
    let list = |params: &[AbiParam], values| display(&host_list(params, values), params).join(", ");
    let results = match func.signature.returns.as_slice() {
        [one] => list(&[*one], results),
        all => format!("[{}]", list(all, results)),
    };
    let args = list(&func.signature.params, args);
    format!("; run: {}({args}) == {results}", func.name)
}
