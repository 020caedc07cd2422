//! Executes one instruction: constants, operations by lane, changes of shape. Traps and branches
//! end a path.

use super::scalar::{self, Outcome, Trap};
use super::{Clif, ExitKind, Lanes, State, Unsupported};
use crate::abi::initial_register;
use crate::floats::{self, conversions};
use crate::term::{Bits, Term, WORD};
use cranelift_codegen::ir::{self, InstructionData, Opcode, TrapCode, Type};
use npu_mc::{Reg, SReg};

fn trap_code(trap: Trap) -> TrapCode {
    match trap {
        Trap::DivisionByZero => TrapCode::INTEGER_DIVISION_BY_ZERO,
        Trap::Overflow => TrapCode::INTEGER_OVERFLOW,
        Trap::BadConversion => TrapCode::BAD_CONVERSION_TO_INTEGER,
    }
}

impl Clif<'_> {
    /// Executes an instruction. Returns `None` if no path continues after it.
    pub(super) fn inst(&mut self, inst: ir::Inst, mut state: State) -> Result<Option<State>, Unsupported> {
        let data = self.func.dfg.insts[inst];
        let op = data.opcode();
        if let Some(results) = self.constant(inst) {
            self.set(&mut state, inst, results);
            return Ok(Some(state));
        }
        if let Some(value) = self.register(op) {
            let ty = self.func.dfg.ctrl_typevar(inst);
            let value = self.pool.zext(value, ty.bits());
            self.set(&mut state, inst, vec![vec![value]]);
            return Ok(Some(state));
        }
        if let Some(results) = self.access(inst, &mut state)? {
            self.set(&mut state, inst, results);
            return Ok(Some(state));
        }
        if let Some(results) = self.call(inst, &mut state)? {
            if op.is_return() {
                state.results = results;
                self.out.exits.push((ExitKind::Return, state));
                return Ok(None);
            }
            self.set(&mut state, inst, results);
            return Ok(Some(state));
        }
        match data {
            InstructionData::CondTrap { arg, code, .. } => {
                let value = self.number(&state, arg)?;
                let mut condition = scalar::is_true(self.pool, value);
                if op == Opcode::Trapz {
                    condition = self.pool.not(condition);
                }
                return Ok(self.trap_if(state, condition, code));
            }
            InstructionData::IntAddTrap { args, code, .. } => {
                let (a, b) = (self.number(&state, args[0])?, self.number(&state, args[1])?);
                let (sum, carry) = scalar::carries(self.pool, a, b);
                self.set(&mut state, inst, vec![vec![sum]]);
                return Ok(self.trap_if(state, carry, code));
            }
            InstructionData::NullAry {
                opcode: Opcode::Nop | Opcode::Fence | Opcode::SequencePoint,
            } => return Ok(Some(state)),
            _ if op.is_terminator() => {
                self.terminator(inst, state)?;
                return Ok(None);
            }
            _ => {}
        }
        if let Some(results) = self.shape(inst, &state)? {
            self.set(&mut state, inst, results);
            return Ok(Some(state));
        }
        self.lane_by_lane(inst, state)
    }

    /// Returns the register that an instruction without operands reads. The frame pointer is the
    /// stack pointer in the body of the function.
    fn register(&mut self, op: Opcode) -> Option<Term> {
        match op {
            Opcode::GetStackPointer | Opcode::GetFramePointer => {
                let below = self.pool.int(WORD, u64::from(self.layout.frame.size.wrapping_neg()));
                Some(self.pool.add(self.layout.sp, below))
            }
            Opcode::GetReturnAddress => Some(initial_register(self.pool, Reg::S(SReg::RA), 0)),
            _ => None,
        }
    }

    /// Executes constants.
    fn constant(&mut self, inst: ir::Inst) -> Option<Vec<Lanes>> {
        let dfg = &self.func.dfg;
        let ty = dfg.inst_results(inst).first().map(|&value| dfg.value_type(value))?;
        let number = match dfg.insts[inst] {
            InstructionData::UnaryImm { imm, .. } => Bits::from(imm.bits() as u64),
            InstructionData::UnaryIeee16 { imm, .. } => Bits::from(u64::from(imm.bits())),
            InstructionData::UnaryIeee32 { imm, .. } => Bits::from(u64::from(imm.bits())),
            InstructionData::UnaryIeee64 { imm, .. } => Bits::from(imm.bits()),
            InstructionData::UnaryConst { constant_handle, .. } => {
                let data = dfg.constants.get(constant_handle);
                let bytes = ty.lane_bits() as usize / 8;
                let lanes = data.as_slice().chunks(bytes.max(1)).map(|lane| {
                    let mut value = Bits::ZERO;
                    for &byte in lane.iter().rev() {
                        value = value.shl(8, crate::term::MAX_WIDTH).or(Bits::from(u64::from(byte)));
                    }
                    self.pool.constant(ty.lane_bits(), value)
                });
                return Some(vec![lanes.collect()]);
            }
            _ => return None,
        };
        Some(vec![vec![self.pool.constant(ty.bits(), number)]])
    }

    /// Executes conversions between types, and moves of lanes.
    fn shape(&mut self, inst: ir::Inst, state: &State) -> Result<Option<Vec<Lanes>>, Unsupported> {
        let dfg = &self.func.dfg;
        let data = dfg.insts[inst];
        let args = dfg.inst_args(inst).to_vec();
        let Some(&first) = dfg.inst_results(inst).first() else {
            return Ok(None);
        };
        let ty = dfg.value_type(first);
        let arg = |clif: &Self, at: usize| match args.get(at) {
            Some(&value) => clif.value(state, value),
            None => Err(Unsupported("an operand is missing".to_owned())),
        };
        let lanes = match data.opcode() {
            Opcode::Uextend => {
                let a = arg(self, 0)?;
                a.into_iter().map(|x| self.pool.zext(x, ty.lane_bits())).collect()
            }
            Opcode::Sextend => {
                let a = arg(self, 0)?;
                a.into_iter().map(|x| self.pool.sext(x, ty.lane_bits())).collect()
            }
            Opcode::Ireduce => {
                let a = arg(self, 0)?;
                a.into_iter()
                    .map(|x| self.pool.extract(ty.lane_bits() - 1, 0, x))
                    .collect()
            }
            Opcode::Bmask => {
                let a = arg(self, 0)?;
                a.into_iter()
                    .map(|x| {
                        let bit = scalar::is_true(self.pool, x);
                        self.pool.sext(bit, ty.lane_bits())
                    })
                    .collect()
            }
            Opcode::Isplit => {
                let a = self.number(state, args[0])?;
                let half = ty.bits();
                let (low, high) = (
                    self.pool.extract(half - 1, 0, a),
                    self.pool.extract(2 * half - 1, half, a),
                );
                return Ok(Some(vec![vec![low], vec![high]]));
            }
            Opcode::Iconcat => {
                let (low, high) = (self.number(state, args[0])?, self.number(state, args[1])?);
                vec![self.pool.concat(&[high, low])]
            }
            Opcode::Bitcast => {
                let mut lanes = arg(self, 0)?;
                if self.func.dfg.value_type(args[0]).bits() != ty.bits() {
                    return Err(Unsupported::inst("bitcast between sizes"));
                }
                // As if a store wrote the value and a load of the same byte order read it.
                let is_big = data.memflags().is_some_and(|flags| self.is_big(flags));
                if is_big {
                    lanes = lanes.into_iter().map(|lane| self.swapped(lane)).collect();
                }
                let mut result = self.recast(lanes, ty);
                if is_big {
                    result = result.into_iter().map(|lane| self.swapped(lane)).collect();
                }
                result
            }
            Opcode::Splat => {
                let a = self.number(state, args[0])?;
                vec![a; ty.lane_count() as usize]
            }
            Opcode::ScalarToVector => {
                let a = self.number(state, args[0])?;
                let zero = self.pool.int(ty.lane_bits(), 0);
                let mut lanes = vec![zero; ty.lane_count() as usize];
                if let Some(lane) = lanes.first_mut() {
                    *lane = a;
                }
                lanes
            }
            Opcode::Insertlane => {
                let (mut lanes, value) = (arg(self, 0)?, self.number(state, args[1])?);
                if let InstructionData::TernaryImm8 { imm, .. } = data
                    && let Some(lane) = lanes.get_mut(usize::from(imm))
                {
                    *lane = value;
                }
                lanes
            }
            Opcode::Extractlane => {
                let lanes = arg(self, 0)?;
                match data {
                    InstructionData::BinaryImm8 { imm, .. } => {
                        lanes.get(usize::from(imm)).map(|&lane| vec![lane]).unwrap_or_default()
                    }
                    _ => return Ok(None),
                }
            }
            Opcode::Shuffle => {
                let InstructionData::Shuffle { imm, .. } = data else {
                    return Ok(None);
                };
                let (a, b) = (arg(self, 0)?, arg(self, 1)?);
                let mask = self.func.dfg.immediates.get(imm).cloned();
                let mask = mask.map(|data| data.as_slice().to_vec()).unwrap_or_default();
                let all: Lanes = a.into_iter().chain(b).collect();
                let zero = self.pool.int(ty.lane_bits(), 0);
                mask.iter()
                    .map(|&at| all.get(usize::from(at)).copied().unwrap_or(zero))
                    .collect()
            }
            Opcode::VanyTrue | Opcode::VallTrue => {
                let a = arg(self, 0)?;
                let all = data.opcode() == Opcode::VallTrue;
                let mut bit = self.pool.bool(all);
                for lane in a {
                    let set = scalar::is_true(self.pool, lane);
                    bit = if all {
                        self.pool.and(bit, set)
                    } else {
                        self.pool.or(bit, set)
                    };
                }
                vec![scalar::flag(self.pool, bit)]
            }
            Opcode::VhighBits => {
                let a = arg(self, 0)?;
                let bits: Vec<Term> = a
                    .into_iter()
                    .rev()
                    .map(|lane| {
                        let top = self.pool.width(lane) - 1;
                        self.pool.extract(top, top, lane)
                    })
                    .collect();
                let bits = self.pool.concat(&bits);
                match self.pool.width(bits) > ty.bits() {
                    true => vec![self.pool.extract(ty.bits() - 1, 0, bits)],
                    false => vec![self.pool.zext(bits, ty.bits())],
                }
            }
            _ => return Ok(self.across(inst, state)?.map(|lanes| vec![lanes])),
        };
        Ok(Some(vec![lanes]))
    }

    /// Reinterprets bits as lanes of another type.
    fn recast(&mut self, lanes: Lanes, ty: Type) -> Lanes {
        let whole = self.pool.of_words(&lanes);
        let bits = ty.lane_bits();
        (0..ty.lane_count())
            .map(|lane| self.pool.extract(bits * (lane + 1) - 1, bits * lane, whole))
            .collect()
    }

    /// Executes operations that are the same for every lane.
    fn lane_by_lane(&mut self, inst: ir::Inst, state: State) -> Result<Option<State>, Unsupported> {
        let dfg = &self.func.dfg;
        let data = dfg.insts[inst];
        let op = data.opcode();
        let arguments = dfg.inst_args(inst).to_vec();
        let result_types: Vec<Type> = dfg
            .inst_results(inst)
            .iter()
            .map(|&value| dfg.value_type(value))
            .collect();
        let Some(&ty) = result_types.first() else {
            return Err(Unsupported::inst(op));
        };
        let args: Vec<Lanes> = arguments
            .iter()
            .map(|&arg| self.value(&state, arg))
            .collect::<Result<_, _>>()?;
        let operand_type = arguments.first().map_or(ty, |&arg| self.func.dfg.value_type(arg));
        let mut results: Vec<Lanes> = vec![Vec::new(); result_types.len()];
        let mut traps: Vec<(Term, Trap)> = Vec::new();
        for lane in 0..ty.lane_count() as usize {
            // If other operands are vectors, a scalar operand applies to all lanes.
            let at = |operand: usize| -> Option<Term> {
                let lanes = args.get(operand)?;
                lanes.get(lane).or(lanes.first()).copied()
            };
            let unsupported = || Unsupported::inst(format!("{op}.{operand_type}"));
            let a = at(0).ok_or_else(unsupported)?;
            let outcome: Vec<Term> = if let InstructionData::IntCompare { cond, .. } = data {
                let b = at(1).ok_or_else(unsupported)?;
                let bit = scalar::compare(self.pool, cond, a, b);
                match ty.is_vector() {
                    true => vec![self.pool.sext(bit, ty.lane_bits())],
                    false => vec![scalar::flag(self.pool, bit)],
                }
            } else if let InstructionData::FloatCompare { cond, .. } = data {
                let b = at(1).ok_or_else(unsupported)?;
                let bit = floats::compare(self.pool, cond, a, b);
                match ty.is_vector() {
                    true => vec![self.pool.sext(bit, ty.lane_bits())],
                    false => vec![scalar::flag(self.pool, bit)],
                }
            } else {
                let found = match (args.len(), at(1), at(2)) {
                    (1, ..) => scalar::unary(self.pool, op, a).map(Outcome::of),
                    (2, Some(b), _) => scalar::binary(self.pool, op, a, b),
                    (3, Some(b), Some(c)) => scalar::ternary(self.pool, op, a, b, c),
                    _ => None,
                };
                let (from, to) = (operand_type.lane_type(), ty.lane_type());
                let found = found.or_else(|| {
                    conversions::clif(self.pool, op, from, to, a, self.layout.float_unit).or_else(|| {
                        let operands: Vec<Term> = (0..args.len()).filter_map(at).collect();
                        floats::clif(self.pool, op, to, &operands, self.layout.float_unit).map(Outcome::of)
                    })
                });
                let found = found.ok_or_else(unsupported)?;
                traps.extend(found.traps);
                found.results
            };
            for (lanes, term) in results.iter_mut().zip(outcome) {
                lanes.push(term);
            }
        }
        let mut state = state;
        self.set(&mut state, inst, results);
        for (condition, trap) in traps {
            match self.trap_if(state, condition, trap_code(trap)) {
                Some(next) => state = next,
                None => return Ok(None),
            }
        }
        Ok(Some(state))
    }
}
