//! Upper and lower bounds of integers over all work-items of a row of work-groups, computed at run
//! time.
//!
//! A check of bounds such as `id.x < length` usually holds for all work-items of a row. Here it is
//! evaluated once for the row, with the smallest and the largest value that each operand has in it,
//! so that the work-items need not check it again. All numbers are unsigned; where an operation
//! could wrap around, the result depends on a further condition that it does not.

use crate::builtins::{self, Builtin};
use crate::divergence::definition;
use crate::facts;
use crate::linearize::Flow;
use crate::options::Options;
use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::condcodes::{CondCode, IntCC};
use cranelift_codegen::ir::{Block, Function, Inst, InstBuilder, InstructionData, Opcode, Value, ValueDef, types};
use std::collections::{BTreeMap, BTreeSet};

/// Maximum depth of expressions.
pub const MAX_DEPTH: u32 = 24;

/// The smallest and the largest value of an `i32` over a row.
#[derive(Clone, Debug)]
pub struct Range {
    low: Value,
    high: Value,
    /// Conditions without which the bounds do not hold.
    needs: BTreeSet<Value>,
    /// Whether the value depends on a work-item or a loop counter.
    varies: bool,
}

/// The work-groups of a row.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// The numbers of work-groups in x, y and z of the dispatch.
    pub counts: [Value; 3],
    /// The largest number of a work-group of the row in x; the smallest is 0.
    pub last_x: Value,
    /// The numbers of the row in y and z.
    pub y: Value,
    pub z: Value,
}

/// Evaluates expressions of a kernel; emits instructions at the end of a block.
pub struct Ranges<'a> {
    pub func: &'a mut Function,
    /// The control flow of the kernel.
    flow: &'a Flow,
    options: &'a Options,
    incoming: BTreeMap<Value, Vec<(Inst, Value)>>,
    /// Blocks of the kernel that every work-item executes.
    always: BTreeSet<Block>,
    row: Row,
    /// The block that gets the instructions.
    at: Block,
    known: BTreeMap<Value, Option<Range>>,
}

impl<'a> Ranges<'a> {
    pub fn new(func: &'a mut Function, flow: &'a Flow, options: &'a Options, row: Row, at: Block) -> Self {
        let entry = flow.order.first().copied();
        let always = std::iter::successors(entry, |&block| flow.post.immediate_post_dominator(block)).collect();
        let incoming = facts::incoming(func);
        Self {
            func,
            flow,
            options,
            incoming,
            always,
            row,
            at,
            known: BTreeMap::new(),
        }
    }

    /// Returns conditions under which a branch condition, used in a block, is `truth` for all
    /// work-items of the row. Returns `None` if no such conditions are found.
    pub fn holds(&mut self, condition: Value, truth: bool, block: Block, depth: u32) -> Option<BTreeSet<Value>> {
        let inst = definition(self.func, condition)?;
        match self.func.dfg.insts[inst] {
            InstructionData::IntCompare { args, cond, .. } => {
                let cond = if truth { cond } else { cond.complement() };
                self.compare(cond, args, block)
            }
            InstructionData::Binary { opcode, args }
                if depth > 0 && opcode == if truth { Opcode::Band } else { Opcode::Bor } =>
            {
                let mut needs = self.holds(args[0], truth, block, depth - 1)?;
                needs.extend(self.holds(args[1], truth, block, depth - 1)?);
                Some(needs)
            }
            _ => None,
        }
    }

    /// Only conditions that bound a number from above are found: others, such as `x > 0`, are not
    /// checks of bounds.
    fn compare(&mut self, cond: IntCC, args: [Value; 2], block: Block) -> Option<BTreeSet<Value>> {
        let signed = cond != cond.unsigned();
        let [x, y] = match cond.unsigned() {
            IntCC::UnsignedLessThan | IntCC::UnsignedLessThanOrEqual => args,
            IntCC::UnsignedGreaterThan | IntCC::UnsignedGreaterThanOrEqual if signed => {
                // `x >= 0` of signed numbers.
                if facts::constant(self.func, args[1]) != Some(0) || cond != IntCC::SignedGreaterThanOrEqual {
                    return None;
                }
                let x = self.range(args[0], block, MAX_DEPTH)?;
                if !x.varies {
                    return None;
                }
                let mut needs = x.needs.clone();
                needs.insert(self.not_negative(x.high));
                return Some(needs);
            }
            _ => return None,
        };
        let (x, y) = (self.range(x, block, MAX_DEPTH)?, self.range(y, block, MAX_DEPTH)?);
        if !x.varies {
            return None;
        }
        let constants = [x.high, y.low].map(|value| facts::constant(self.func, value).map(|number| number as u32));
        if let [Some(x), Some(y)] = constants
            && !(x < y || x == y && cond.unsigned() == IntCC::UnsignedLessThanOrEqual)
        {
            return None;
        }
        let mut needs: BTreeSet<Value> = x.needs.union(&y.needs).copied().collect();
        if signed {
            // Then `x.high`, which is less, is not negative either.
            needs.insert(self.not_negative(y.high));
        }
        needs.insert(self.flag(cond.unsigned(), x.high, y.low));
        Some(needs)
    }

    /// Returns the bounds of a value for uses in a block.
    fn range(&mut self, value: Value, block: Block, depth: u32) -> Option<Range> {
        if self.func.dfg.value_type(value) != types::I32 {
            return None;
        }
        let depth = depth.checked_sub(1)?;
        let inst = match self.func.dfg.value_def(value) {
            ValueDef::Param(defined, _) => return self.of_param(value, defined, block, depth),
            ValueDef::Result(inst, _) => inst,
            ValueDef::Union(..) => return None,
        };
        if let Some(known) = self.known.get(&value) {
            return known.clone();
        }
        let range = self.of_inst(inst, depth);
        self.known.insert(value, range.clone());
        range
    }

    fn of_param(&mut self, value: Value, defined: Block, block: Block, depth: u32) -> Option<Range> {
        if !self.flow.position.contains_key(&defined) {
            // A parameter of the dispatch function.
            return Some(exact(value));
        }
        if self.flow.starts(defined).is_some() {
            return self.of_counter(value, defined, block, depth);
        }
        let mut range: Option<Range> = None;
        for (inst, arg) in self.incoming.get(&value)?.clone() {
            let from = self.func.layout.inst_block(inst)?;
            let other = self.range(arg, from, depth)?;
            range = Some(match range {
                None => other,
                Some(range) => self.union(&range, &other),
            });
        }
        range
    }

    /// Returns the bounds of a loop counter, for uses after the test in the header of the loop.
    fn of_counter(&mut self, counter: Value, header: Block, block: Block, depth: u32) -> Option<Range> {
        let flow = self.flow;
        let around = flow.starts(header)?;
        if block == header || !flow.loops.is_in_loop(block, around) {
            return None;
        }
        let last = self.func.layout.last_inst(header)?;
        let InstructionData::Brif { arg, blocks, .. } = self.func.dfg.insts[last] else {
            return None;
        };
        let inside = blocks.map(|call| flow.loops.is_in_loop(call.block(&self.func.dfg.value_lists), around));
        let test = definition(self.func, arg)?;
        let InstructionData::IntCompare { args, cond, .. } = self.func.dfg.insts[test] else {
            return None;
        };
        let cond = match inside {
            [true, false] => cond,
            [false, true] => cond.complement(),
            _ => return None,
        };
        let signed = cond == IntCC::SignedLessThan;
        if args[0] != counter || !(signed || cond == IntCC::UnsignedLessThan) {
            return None;
        }
        let mut start = None;
        let mut step = 0;
        for (inst, arg) in self.incoming.get(&counter)?.clone() {
            let from = self.func.layout.inst_block(inst)?;
            if !flow.loops.is_in_loop(from, around) {
                start = self.range(arg, from, depth);
                if signed && start.is_none() {
                    return None;
                }
                continue;
            }
            let InstructionData::Binary {
                opcode: Opcode::Iadd,
                args,
            } = self.func.dfg.insts[definition(self.func, arg)?]
            else {
                return None;
            };
            let other = if args[0] == counter { args[1] } else { args[0] };
            let constant = facts::constant(self.func, other)? as i32;
            if constant <= 0 || !args.contains(&counter) || (step != 0 && step != constant) {
                return None;
            }
            step = constant;
        }
        let limit = self.range(args[1], header, depth)?;
        let one = self.constant(1);
        let mut needs = limit.needs;
        let high = self.binary(Opcode::Isub, limit.high, one);
        let mut low = self.constant(0);
        if let Some(start) = start {
            if signed {
                // The counter starts and stays below 2^31: it does not become negative.
                let step = self.constant(step.into());
                let after = self.binary(Opcode::Iadd, high, step);
                let flags = [limit.high, after, start.high].map(|number| self.not_negative(number));
                needs.extend(flags);
                needs.extend(&start.needs);
            }
            if step == 1 {
                needs.extend(&start.needs);
                low = start.low;
            }
        }
        Some(Range {
            low,
            high,
            needs,
            varies: true,
        })
    }

    fn of_inst(&mut self, inst: Inst, depth: u32) -> Option<Range> {
        let block = self.func.layout.inst_block(inst)?;
        let data = self.func.dfg.insts[inst];
        match data {
            InstructionData::UnaryImm {
                opcode: Opcode::Iconst,
                imm,
            } => {
                let value = self.constant(imm.bits());
                Some(exact(value))
            }
            InstructionData::Call { .. } => self.of_builtin(inst),
            InstructionData::Load { arg, offset, flags, .. } => {
                let flags = self.func.dfg.mem_flags[flags];
                let address = self.range(arg, block, depth)?;
                let fixed = flags.readonly() && flags.notrap() && self.always.contains(&block);
                if !fixed || address.low != address.high || data.opcode() != Opcode::Load {
                    return None;
                }
                let loaded = self.cursor().ins().load(types::I32, flags, address.low, offset);
                Some(Range {
                    low: loaded,
                    high: loaded,
                    ..address
                })
            }
            InstructionData::Ternary {
                opcode: Opcode::Select,
                args,
            } => {
                let (x, y) = (self.range(args[1], block, depth)?, self.range(args[2], block, depth)?);
                Some(self.union(&x, &y))
            }
            InstructionData::Binary { opcode, args } => self.of_binary(opcode, args, block, depth),
            _ => None,
        }
    }

    fn of_builtin(&mut self, inst: Inst) -> Option<Range> {
        let Some(Ok(builtin)) = builtins::called(self.func, inst) else {
            return None;
        };
        let options = self.options;
        Some(match builtin {
            Builtin::WorkgroupId(axis) => self.of_group(axis),
            Builtin::WorkgroupCount(axis) => exact(self.row.counts[usize::from(axis)]),
            Builtin::LocalId(axis) => self.below(options.workgroup_size[usize::from(axis)]),
            Builtin::GlobalId(axis) => {
                let size = options.workgroup_size[usize::from(axis)];
                let (group, local) = (self.of_group(axis), self.below(size));
                let size = self.constant(size.into());
                let first = self.product(&group, &exact(size));
                self.sum(&first, &local)
            }
            Builtin::LocalIndex => self.below(options.work_items()),
            Builtin::LaneId => self.below(options.lanes),
            Builtin::SubgroupId => self.below(options.subgroups()),
            _ => return None,
        })
    }

    fn of_group(&mut self, axis: u8) -> Range {
        let (low, high) = match axis {
            0 => (self.constant(0), self.row.last_x),
            1 => (self.row.y, self.row.y),
            _ => (self.row.z, self.row.z),
        };
        Range {
            low,
            high,
            needs: BTreeSet::new(),
            varies: true,
        }
    }

    /// Returns the bounds of a number below a constant.
    fn below(&mut self, count: u32) -> Range {
        Range {
            low: self.constant(0),
            high: self.constant(i64::from(count) - 1),
            needs: BTreeSet::new(),
            varies: true,
        }
    }

    fn of_binary(&mut self, opcode: Opcode, args: [Value; 2], block: Block, depth: u32) -> Option<Range> {
        let constant = facts::constant(self.func, args[1]).map(|number| number as i32);
        let x = self.range(args[0], block, depth);
        match (opcode, constant) {
            (Opcode::Iadd, Some(negative @ i32::MIN..0)) => {
                let less = self.constant(-i64::from(negative));
                Some(self.difference(&x?, &exact(less)))
            }
            (Opcode::Ishl, Some(amount @ 0..32)) => {
                let factor = self.constant(1 << amount);
                Some(self.product(&x?, &exact(factor)))
            }
            (Opcode::Ushr, Some(0..32)) => self.monotone(opcode, &x?, args[1]),
            (Opcode::Udiv, Some(1..)) => self.monotone(opcode, &x?, args[1]),
            (Opcode::Urem, Some(divisor @ 1..)) => Some(self.below(divisor.cast_unsigned())),
            (Opcode::Band, Some(mask @ 0..)) => Some(self.below(mask.cast_unsigned() + 1)),
            (Opcode::Iadd, _) => {
                let y = self.range(args[1], block, depth)?;
                Some(self.sum(&x?, &y))
            }
            (Opcode::Isub, _) => {
                let y = self.range(args[1], block, depth)?;
                Some(self.difference(&x?, &y))
            }
            (Opcode::Imul, _) => {
                let y = self.range(args[1], block, depth)?;
                Some(self.product(&x?, &y))
            }
            (Opcode::Umin | Opcode::Umax, _) => {
                let (x, y) = (x?, self.range(args[1], block, depth)?);
                let (low, high) = (self.binary(opcode, x.low, y.low), self.binary(opcode, x.high, y.high));
                Some(together(&x, &y, low, high))
            }
            _ => None,
        }
    }

    /// Applies an operation that preserves order, with a constant as second operand.
    fn monotone(&mut self, opcode: Opcode, x: &Range, y: Value) -> Option<Range> {
        let y = self.constant(facts::constant(self.func, y)?);
        let low = self.binary(opcode, x.low, y);
        Some(Range {
            low,
            high: if x.high == x.low {
                low
            } else {
                self.binary(opcode, x.high, y)
            },
            ..x.clone()
        })
    }

    fn sum(&mut self, x: &Range, y: &Range) -> Range {
        let low = self.binary(Opcode::Iadd, x.low, y.low);
        let high = self.binary(Opcode::Iadd, x.high, y.high);
        let mut sum = together(x, y, low, high);
        sum.needs
            .insert(self.flag(IntCC::UnsignedGreaterThanOrEqual, high, x.high));
        sum
    }

    fn difference(&mut self, x: &Range, y: &Range) -> Range {
        let low = self.binary(Opcode::Isub, x.low, y.high);
        let high = self.binary(Opcode::Isub, x.high, y.low);
        let mut difference = together(x, y, low, high);
        difference
            .needs
            .insert(self.flag(IntCC::UnsignedLessThanOrEqual, y.high, x.low));
        difference
    }

    fn product(&mut self, x: &Range, y: &Range) -> Range {
        let low = self.binary(Opcode::Imul, x.low, y.low);
        let high = self.binary(Opcode::Imul, x.high, y.high);
        let carry = self.binary(Opcode::Umulhi, x.high, y.high);
        let zero = self.constant(0);
        let mut product = together(x, y, low, high);
        product.needs.insert(self.flag(IntCC::Equal, carry, zero));
        product
    }

    fn union(&mut self, x: &Range, y: &Range) -> Range {
        let low = self.binary(Opcode::Umin, x.low, y.low);
        let high = self.binary(Opcode::Umax, x.high, y.high);
        let mut union = together(x, y, low, high);
        // Equal bounds of each operand do not make one value of two.
        union.low = low;
        union
    }

    fn cursor(&mut self) -> FuncCursor<'_> {
        FuncCursor::new(self.func).at_bottom(self.at)
    }

    fn constant(&mut self, number: i64) -> Value {
        self.cursor().ins().iconst(types::I32, i64::from(number as u32))
    }

    fn binary(&mut self, opcode: Opcode, x: Value, y: Value) -> Value {
        let mut cursor = self.cursor();
        match opcode {
            Opcode::Iadd => cursor.ins().iadd(x, y),
            Opcode::Isub => cursor.ins().isub(x, y),
            Opcode::Imul => cursor.ins().imul(x, y),
            Opcode::Umulhi => cursor.ins().umulhi(x, y),
            Opcode::Umin => cursor.ins().umin(x, y),
            Opcode::Umax => cursor.ins().umax(x, y),
            Opcode::Udiv => cursor.ins().udiv(x, y),
            _ => cursor.ins().ushr(x, y),
        }
    }

    fn flag(&mut self, cond: IntCC, x: Value, y: Value) -> Value {
        self.cursor().ins().icmp(cond, x, y)
    }

    fn not_negative(&mut self, number: Value) -> Value {
        let zero = self.constant(0);
        self.flag(IntCC::SignedGreaterThanOrEqual, number, zero)
    }
}

/// Returns the bounds of a value that is the same for all work-items of the row.
fn exact(value: Value) -> Range {
    Range {
        low: value,
        high: value,
        needs: BTreeSet::new(),
        varies: false,
    }
}

/// Returns the bounds of a result of two operands.
fn together(x: &Range, y: &Range, low: Value, high: Value) -> Range {
    let same = x.low == x.high && y.low == y.high;
    Range {
        low: if same { high } else { low },
        high,
        needs: x.needs.union(&y.needs).copied().collect(),
        varies: x.varies || y.varies,
    }
}
