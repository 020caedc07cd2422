//! Natural loops: edges, induction variables and trip counts.

use super::edit::{self, Edge};
use cranelift_codegen::Context;
use cranelift_codegen::ir::condcodes::{CondCode, IntCC};
use cranelift_codegen::ir::{Block, Function, InstructionData, Opcode, Type, Value, ValueDef};
use cranelift_codegen::loop_analysis::Loop;
use rustc_hash::FxHashMap;

/// A loop with one back edge.
#[derive(Clone, Debug)]
pub struct NaturalLoop {
    /// The loop in Cranelift's loop analysis.
    pub id: Loop,
    /// The first block of each iteration.
    pub header: Block,
    /// The back edge.
    pub back_edge: Edge,
    /// The edges to the header from outside of the loop.
    pub entries: Vec<Edge>,
    /// All blocks including those of inner loops, in reverse postorder; the header is first.
    pub blocks: Vec<Block>,
    /// The edges out of the loop.
    pub exits: Vec<Edge>,
    /// Whether the loop contains no other loop.
    pub innermost: bool,
}

impl NaturalLoop {
    /// Returns the block of the back edge.
    pub fn latch(&self, func: &Function) -> Option<Block> {
        func.layout.inst_block(self.back_edge.inst)
    }

    /// Returns whether the block is part of the loop.
    pub fn contains(&self, block: Block) -> bool {
        self.blocks.contains(&block)
    }

    /// Returns whether the value is defined outside of the loop.
    pub fn is_invariant(&self, func: &Function, value: Value) -> bool {
        !self.contains(defining_block(func, value))
    }
}

/// Returns the block that defines the value.
pub fn defining_block(func: &Function, value: Value) -> Block {
    let value = func.dfg.resolve_aliases(value);
    let found = match func.dfg.value_def(value) {
        ValueDef::Result(inst, _) => func.layout.inst_block(inst),
        ValueDef::Param(block, _) => Some(block),
        ValueDef::Union(..) => None,
    };
    found.unwrap_or_else(|| Block::from_u32(u32::MAX - 1))
}

/// Returns all loops that have one back edge and whose header is not the entry block, outer loops
/// before inner loops. Requires the loop analysis.
pub fn find(ctx: &Context) -> Vec<NaturalLoop> {
    let (func, tree) = (&ctx.func, &ctx.loop_analysis);
    let mut index_of: FxHashMap<Loop, usize> = FxHashMap::default();
    let mut found: Vec<NaturalLoop> = Vec::new();
    let mut backs: Vec<Vec<Edge>> = Vec::new();
    for id in tree.loops() {
        index_of.insert(id, found.len());
        found.push(NaturalLoop {
            id,
            header: tree.loop_header(id),
            back_edge: Edge {
                inst: cranelift_codegen::ir::Inst::from_u32(0),
                number: 0,
            },
            entries: Vec::new(),
            blocks: Vec::new(),
            exits: Vec::new(),
            innermost: true,
        });
        backs.push(Vec::new());
    }
    for &block in ctx.domtree.cfg_rpo() {
        let mut at = tree.innermost_loop(block);
        let mut inner = false;
        while let Some(id) = at {
            if let Some(lp) = index_of.get(&id).and_then(|&index| found.get_mut(index)) {
                lp.blocks.push(block);
                lp.innermost &= !inner;
            }
            inner = true;
            at = tree.loop_parent(id);
        }
        let Some(inst) = func.layout.last_inst(block) else {
            continue;
        };
        for (number, call) in edit::destinations(func, inst).iter().enumerate() {
            let edge = Edge { inst, number };
            let to = call.block(&func.dfg.value_lists);
            let mut at = tree.innermost_loop(block);
            while let Some(id) = at {
                if let Some(lp) = index_of.get(&id).and_then(|&index| found.get_mut(index))
                    && !tree.is_in_loop(to, id)
                {
                    lp.exits.push(edge);
                }
                at = tree.loop_parent(id);
            }
            if let Some(&index) = tree.is_loop_header(to).and_then(|id| index_of.get(&id)) {
                if tree.is_in_loop(block, found[index].id) {
                    backs[index].push(edge);
                } else {
                    found[index].entries.push(edge);
                }
            }
        }
    }
    let entry = func.layout.entry_block();
    found
        .into_iter()
        .zip(backs)
        .filter_map(|(mut lp, backs)| match backs.as_slice() {
            &[back] if Some(lp.header) != entry && !lp.entries.is_empty() => {
                lp.back_edge = back;
                Some(lp)
            }
            _ => None,
        })
        .collect()
}

/// Returns the bits of an integer constant of up to 64 bits.
pub fn constant(func: &Function, value: Value) -> Option<u64> {
    let value = func.dfg.resolve_aliases(value);
    let ValueDef::Result(inst, 0) = func.dfg.value_def(value) else {
        return None;
    };
    match func.dfg.insts[inst] {
        InstructionData::UnaryImm {
            opcode: Opcode::Iconst,
            imm,
        } => Some(imm.bits().cast_unsigned() & mask(func.dfg.value_type(value))),
        _ => None,
    }
}

/// Returns an integer with all bits of the type set, for types of up to 64 bits.
pub fn mask(ty: Type) -> u64 {
    u64::MAX >> (64 - ty.bits().clamp(1, 64))
}

/// Splits the value into another value and a constant that is added to it.
pub fn split_offset(func: &Function, value: Value) -> (Value, u64) {
    let mut value = func.dfg.resolve_aliases(value);
    let mut total = 0u64;
    while let ValueDef::Result(inst, 0) = func.dfg.value_def(value) {
        let InstructionData::Binary { opcode, args } = func.dfg.insts[inst] else {
            break;
        };
        let number = |value| constant(func, value);
        let rest = match opcode {
            Opcode::Iadd => match number(args[1]) {
                Some(c) => {
                    total = total.wrapping_add(c);
                    args[0]
                }
                None => {
                    let Some(c) = number(args[0]) else { break };
                    total = total.wrapping_add(c);
                    args[1]
                }
            },
            Opcode::Isub => {
                let Some(c) = number(args[1]) else { break };
                total = total.wrapping_sub(c);
                args[0]
            }
            _ => break,
        };
        value = func.dfg.resolve_aliases(rest);
    }
    (value, total)
}

/// A header parameter that grows by the same constant in every iteration.
#[derive(Clone, Copy, Debug)]
pub struct InductionVariable {
    /// The parameter.
    pub param: Value,
    /// The index of the parameter.
    pub index: usize,
    /// The type, an integer of up to 64 bits.
    pub ty: Type,
    /// The increment of each iteration, modulo the size of the type.
    pub step: u64,
    /// The value in the first iteration, if it is constant.
    pub start: Option<u64>,
}

impl InductionVariable {
    /// Returns the step as a signed number.
    pub fn signed_step(&self) -> i64 {
        let unused = 64 - self.ty.bits();
        (self.step << unused).cast_signed() >> unused
    }
}

/// Returns the induction variables of a loop.
pub fn induction_variables(func: &Function, lp: &NaturalLoop) -> Vec<InductionVariable> {
    let Some(next) = edit::args(func, lp.back_edge) else {
        return Vec::new();
    };
    let params = func.dfg.block_params(lp.header);
    let mut found = Vec::new();
    for (index, (&param, &next)) in params.iter().zip(&next).enumerate() {
        let ty = func.dfg.value_type(param);
        if !ty.is_int() || ty.bits() > 64 {
            continue;
        }
        let (root, step) = split_offset(func, next);
        let step = step & mask(ty);
        if root != param || step == 0 {
            continue;
        }
        let mut starts = lp.entries.iter().map(|&entry| {
            let args = edit::args(func, entry)?;
            constant(func, *args.get(index)?)
        });
        let first = starts.next().flatten();
        let start = first.filter(|_| starts.all(|start| start == first));
        found.push(InductionVariable {
            param,
            index,
            ty,
            step,
            start,
        });
    }
    found
}

/// The bound in the exit test of an induction variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// A constant.
    Constant(u64),
    /// A loop-invariant value.
    Value(Value),
}

/// An exit whose test compares an induction variable with a loop-invariant bound in every
/// iteration.
#[derive(Clone, Copy, Debug)]
pub struct CountedExit {
    /// The edge out of the loop.
    pub edge: Edge,
    /// The variable.
    pub variable: InductionVariable,
    /// A constant that is added to the variable before the compare.
    pub offset: u64,
    /// The condition, with the sum on the left and the bound on the right, under which the loop
    /// exits.
    pub leaves: IntCC,
    /// The bound.
    pub bound: Bound,
    /// How often the branch executes if the loop takes no other exit, including the exit itself.
    pub count: Option<u64>,
}

/// Returns the exits of the loop that test an induction variable.
pub fn counted_exits(ctx: &Context, lp: &NaturalLoop) -> Vec<CountedExit> {
    let func = &ctx.func;
    let variables = induction_variables(func, lp);
    let Some(latch) = lp.latch(func).filter(|_| !variables.is_empty()) else {
        return Vec::new();
    };
    let counted = |&edge: &Edge| {
        let block = func.layout.inst_block(edge.inst)?;
        let InstructionData::Brif { arg, .. } = func.dfg.insts[edge.inst] else {
            return None;
        };
        let other = Edge {
            number: 1 - edge.number,
            ..edge
        };
        let stays = lp.contains(edit::target(func, other)?);
        let every_iteration =
            ctx.domtree.block_dominates(block, latch) && ctx.loop_analysis.innermost_loop(block) == Some(lp.id);
        if !stays || !every_iteration {
            return None;
        }
        let (mut condition, operands) = compare(func, arg)?;
        if edge.number == 1 {
            condition = condition.complement();
        }
        let (left, right) = operands;
        let test = |condition, tested, bound| exit_test(func, lp, &variables, edge, condition, tested, bound);
        test(condition, left, right).or_else(|| match right {
            Bound::Value(right) => test(condition.swap_args(), right, bound_of(func, left)),
            Bound::Constant(_) => None,
        })
    };
    lp.exits.iter().filter_map(counted).collect()
}

fn bound_of(func: &Function, value: Value) -> Bound {
    constant(func, value).map_or(Bound::Value(value), Bound::Constant)
}

/// Returns the condition of a branch as an integer compare. A condition that is not a compare is
/// compared with 0.
fn compare(func: &Function, condition: Value) -> Option<(IntCC, (Value, Bound))> {
    let condition = strip_uextend(func, condition);
    if let ValueDef::Result(inst, 0) = func.dfg.value_def(condition)
        && let InstructionData::IntCompare { .. } = func.dfg.insts[inst]
    {
        let (cond, args) = compared(func, condition)?;
        return Some((cond, (args[0], bound_of(func, args[1]))));
    }
    Some((IntCC::NotEqual, (condition, Bound::Constant(0))))
}

/// Returns the condition code and operands if the condition is an integer compare.
pub fn compared(func: &Function, condition: Value) -> Option<(IntCC, [Value; 2])> {
    let ValueDef::Result(inst, 0) = func.dfg.value_def(strip_uextend(func, condition)) else {
        return None;
    };
    match func.dfg.insts[inst] {
        InstructionData::IntCompare { cond, args, .. } if func.dfg.value_type(args[0]).is_int() => Some((cond, args)),
        _ => None,
    }
}

/// Strips zero extensions, which do not change whether a value is 0.
fn strip_uextend(func: &Function, value: Value) -> Value {
    let mut value = func.dfg.resolve_aliases(value);
    while let ValueDef::Result(inst, 0) = func.dfg.value_def(value)
        && let InstructionData::Unary {
            opcode: Opcode::Uextend,
            arg,
        } = func.dfg.insts[inst]
    {
        value = func.dfg.resolve_aliases(arg);
    }
    value
}

/// Returns the counted exit if the test compares an induction variable with an invariant bound.
fn exit_test(
    func: &Function,
    lp: &NaturalLoop,
    variables: &[InductionVariable],
    edge: Edge,
    leaves: IntCC,
    tested: Value,
    bound: Bound,
) -> Option<CountedExit> {
    if let Bound::Value(value) = bound
        && !lp.is_invariant(func, value)
    {
        return None;
    }
    let (root, offset) = split_offset(func, tested);
    let variable = *variables.iter().find(|variable| variable.param == root)?;
    let offset = offset & mask(variable.ty);
    let count = match (variable.start, bound) {
        (Some(start), Bound::Constant(bound)) => {
            let first = start.wrapping_add(offset);
            iterations_before(first, variable.step, leaves, bound, variable.ty)
                .and_then(|iterations| iterations.checked_add(1))
        }
        _ => None,
    };
    Some(CountedExit {
        edge,
        variable,
        offset,
        leaves,
        bound,
        count,
    })
}

/// Signed minimum and maximum of induction variables of counted loops, at the start of an
/// iteration.
pub type Ranges = FxHashMap<Value, (i64, i64)>;

/// Returns the ranges of the induction variables of these loops.
pub fn ranges(ctx: &Context, loops: &[NaturalLoop]) -> Ranges {
    let mut ranges = Ranges::default();
    for lp in loops {
        for exit in counted_exits(ctx, lp) {
            let variable = exit.variable;
            let (Some(start), Some(count)) = (variable.start, exit.count) else {
                continue;
            };
            let unused = 64 - variable.ty.bits();
            let first = (start << unused).cast_signed() >> unused;
            let last = i64::try_from(count - 1)
                .ok()
                .and_then(|iterations| iterations.checked_mul(variable.signed_step()))
                .and_then(|distance| distance.checked_add(first))
                .filter(|&last| (last << unused) >> unused == last);
            if let Some(last) = last {
                ranges.insert(variable.param, (first.min(last), first.max(last)));
            }
        }
    }
    ranges
}

/// Estimates the maximum number of times that the exit test executes, using the ranges of outer
/// variables. Only for cost estimates: it ignores wrapping and unsigned compares.
pub fn max_trip_count(func: &Function, lp: &NaturalLoop, exit: &CountedExit, ranges: &Ranges) -> Option<u64> {
    let unused = 64 - exit.variable.ty.bits();
    let signed = |bits: u64| (bits << unused).cast_signed() >> unused;
    let range = |value: Value| {
        if let Some(number) = constant(func, value) {
            return Some((signed(number), signed(number)));
        }
        let (root, offset) = split_offset(func, value);
        let (low, high) = *ranges.get(&root)?;
        let offset = signed(offset);
        Some((low.checked_add(offset)?, high.checked_add(offset)?))
    };
    let (low, high) = match exit.bound {
        Bound::Constant(number) => (signed(number), signed(number)),
        Bound::Value(value) => range(value)?,
    };
    let step = exit.variable.signed_step();
    let mut most = 0;
    for &entry in &lp.entries {
        let start = *edit::args(func, entry)?.get(exit.variable.index)?;
        let (first, last) = range(start)?;
        let distance = if step > 0 {
            high.checked_sub(first)?
        } else {
            last.checked_sub(low)?
        };
        let iterations = distance.checked_sub(signed(exit.offset).checked_mul(step.signum())?)? / step.checked_abs()?;
        most = most.max(u64::try_from(iterations).unwrap_or(0) + 1);
    }
    Some(most)
}

/// Returns how often `step` is added to `first` until the sum and the bound satisfy the condition.
/// Returns `None` if they never do, or only after the sum wraps around.
fn iterations_before(first: u64, step: u64, leaves: IntCC, bound: u64, ty: Type) -> Option<u64> {
    let all = mask(ty);
    // With the sign bit flipped, signed order is unsigned order.
    let sign = match leaves {
        IntCC::SignedLessThan
        | IntCC::SignedLessThanOrEqual
        | IntCC::SignedGreaterThan
        | IntCC::SignedGreaterThanOrEqual => 1 << (ty.bits() - 1),
        _ => 0,
    };
    let (first, bound) = ((first & all) ^ sign, (bound & all) ^ sign);
    let shift = 64 - ty.bits();
    let signed = i128::from((step << shift).cast_signed() >> shift);
    let up = |bound: i128| {
        let distance = bound - i128::from(first);
        if distance <= 0 {
            return Some(0);
        }
        if signed <= 0 {
            return None;
        }
        let iterations = (distance + signed - 1) / signed;
        (i128::from(first) + iterations * signed <= i128::from(all)).then(|| u64::try_from(iterations).ok())?
    };
    let down = |bound: i128| {
        let distance = i128::from(first) - bound;
        if distance <= 0 {
            return Some(0);
        }
        if signed >= 0 {
            return None;
        }
        let iterations = (distance - signed - 1) / -signed;
        (i128::from(first) + iterations * signed >= 0).then(|| u64::try_from(iterations).ok())?
    };
    let bound_number = i128::from(bound);
    match leaves {
        IntCC::Equal => {
            // The smallest n with n * step = distance, modulo the size of the type.
            let distance = bound.wrapping_sub(first) & all;
            let zeros = step.trailing_zeros();
            if distance & ((1u64 << zeros) - 1) != 0 {
                return None;
            }
            Some((distance >> zeros).wrapping_mul(inverse(step >> zeros)) & (all >> zeros))
        }
        IntCC::NotEqual => Some(u64::from(first == bound)),
        IntCC::UnsignedGreaterThanOrEqual | IntCC::SignedGreaterThanOrEqual => up(bound_number),
        IntCC::UnsignedGreaterThan | IntCC::SignedGreaterThan => (bound < all).then(|| up(bound_number + 1))?,
        IntCC::UnsignedLessThanOrEqual | IntCC::SignedLessThanOrEqual => down(bound_number),
        IntCC::UnsignedLessThan | IntCC::SignedLessThan => (bound > 0).then(|| down(bound_number - 1))?,
    }
}

/// Returns the multiplicative inverse of an odd number modulo 2^64.
pub fn inverse(odd: u64) -> u64 {
    // An odd number is its own inverse modulo 8; each step doubles the number of correct bits.
    (0..5).fold(odd, |x, _| x.wrapping_mul(2u64.wrapping_sub(odd.wrapping_mul(x))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use cranelift_codegen::ir::types;

    fn holds(condition: IntCC, x: u8, y: u8) -> bool {
        let (signed_x, signed_y) = (x.cast_signed(), y.cast_signed());
        match condition {
            IntCC::Equal => x == y,
            IntCC::NotEqual => x != y,
            IntCC::SignedLessThan => signed_x < signed_y,
            IntCC::SignedGreaterThanOrEqual => signed_x >= signed_y,
            IntCC::SignedGreaterThan => signed_x > signed_y,
            IntCC::SignedLessThanOrEqual => signed_x <= signed_y,
            IntCC::UnsignedLessThan => x < y,
            IntCC::UnsignedGreaterThanOrEqual => x >= y,
            IntCC::UnsignedGreaterThan => x > y,
            IntCC::UnsignedLessThanOrEqual => x <= y,
        }
    }

    /// Counts the iterations by simulation.
    fn count(first: u8, step: u8, leaves: IntCC, bound: u8) -> Option<u64> {
        let mut x = first;
        for iterations in 0..300 {
            if holds(leaves, x, bound) {
                return Some(iterations);
            }
            x = x.wrapping_add(step);
        }
        None
    }

    /// Parses a function and finds its loops.
    fn analysed(text: &str) -> (Context, Vec<NaturalLoop>) {
        let mut functions = cranelift_reader::parse_functions(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let mut ctx = Context::for_function(functions.remove(0));
        ctx.compute_cfg();
        ctx.compute_domtree();
        ctx.compute_loop_analysis();
        let loops = find(&ctx);
        (ctx, loops)
    }

    /// Returns a loop that counts from 3 by `step` and compares `left` with `right`; destination
    /// number `exit` of the branch leaves the loop. `v1` is the variable, `v2` is the variable plus
    /// 5, `v3` is the bound 20, and `v0` is an unknown bound.
    fn counting(step: i8, condition: IntCC, left: &str, right: &str, exit: usize) -> String {
        let (first, second) = if exit == 0 {
            ("block2", "block1(v6)")
        } else {
            ("block1(v6)", "block2")
        };
        format!(
            "function %f(i8) {{
block0(v0: i8):
    v3 = iconst.i8 20
    v4 = iconst.i8 {step}
    v5 = iconst.i8 5
    v9 = iconst.i8 3
    jump block1(v9)
block1(v1: i8):
    v2 = iadd v1, v5
    v6 = iadd v1, v4
    v7 = icmp {condition} {left}, {right}
    brif v7, {first}, {second}
block2:
    return
}}"
        )
    }

    #[test]
    fn exits_leave_when_their_branches_do() {
        let mut known = 0;
        for &condition in IntCC::all() {
            for exit in [0, 1] {
                for (left, right) in [
                    ("v1", "v0"),
                    ("v0", "v1"),
                    ("v2", "v0"),
                    ("v0", "v2"),
                    ("v1", "v3"),
                    ("v3", "v2"),
                ] {
                    for step in [1i8, -1, 7] {
                        let text = counting(step, condition, left, right, exit);
                        let (ctx, loops) = analysed(&text);
                        let exits = counted_exits(&ctx, &loops[0]);
                        let [found] = exits.as_slice() else {
                            panic!("{} exits\n{text}", exits.len())
                        };
                        let swapped = !matches!(left, "v1" | "v2");
                        let offset = if [left, right].contains(&"v2") { 5 } else { 0 };
                        assert_eq!(found.offset, u64::from(offset), "{text}");
                        for (x, y) in (0..=255)
                            .step_by(5)
                            .flat_map(|x| [0, 1, x, 127, 128, 255].map(|y| (x, y)))
                        {
                            let (a, b) = if swapped { (y, x) } else { (x, y) };
                            let leaves = holds(condition, a, b) == (exit == 0);
                            assert_eq!(holds(found.leaves, x, y), leaves, "{x} and {y}\n{text}");
                        }
                        if [left, right].contains(&"v3") {
                            let counted = count(3 + offset, step.cast_unsigned(), found.leaves, 20);
                            if let Some(count) = found.count {
                                assert_eq!(Some(count - 1), counted, "{text}");
                                known += 1;
                            }
                        } else {
                            assert_eq!(found.count, None, "{text}");
                        }
                    }
                }
            }
        }
        assert!(known > 60, "{known}");
    }

    #[test]
    fn only_exits_of_every_iteration_count() {
        // The first exit is not on all paths through the loop, the second is in an inner loop, and
        // the third is a counted exit.
        let text = "function %f(i8, i8) {
block0(v0: i8, v1: i8):
    v2 = iconst.i8 0
    v3 = iconst.i8 1
    v4 = iconst.i8 100
    jump block1(v2)
block1(v5: i8):
    v6 = iadd v5, v3
    brif v1, block2, block3
block2:
    v7 = icmp eq v6, v0
    brif v7, block9, block3
block3:
    jump block4(v2)
block4(v8: i8):
    v9 = iadd v8, v3
    v10 = icmp eq v9, v0
    brif v10, block9, block5
block5:
    v11 = icmp eq v9, v4
    brif v11, block6, block4(v9)
block6:
    v12 = icmp eq v6, v4
    brif v12, block9, block1(v6)
block9:
    return
}";
        let (ctx, loops) = analysed(text);
        let counted: Vec<(u32, usize)> = loops
            .iter()
            .flat_map(|lp| {
                let exits = counted_exits(&ctx, lp);
                let header = lp.header.as_u32();
                exits.into_iter().map(move |exit| (header, exit))
            })
            .map(|(header, exit)| {
                let block = ctx.func.layout.inst_block(exit.edge.inst);
                (header, block.map_or(0, |block| block.as_u32() as usize))
            })
            .collect();
        assert_eq!(counted, [(1, 6), (4, 4), (4, 5)]);
    }

    #[test]
    fn the_maximum_trip_count_covers_all_starts_of_an_inner_loop() {
        // The inner loop starts at the outer variable (0 to 9) and counts up to 20 or down to -3.
        // The exit tests the variable plus `offset`.
        for (step, bound) in [(1i8, 20i8), (2, 21), (-1, -3), (-3, -6)] {
            for offset in [0i8, 4, -2] {
                let condition = if step > 0 { "sge" } else { "sle" };
                let text = format!(
                    "function %f(i8) {{
block0(v0: i8):
    v1 = iconst.i8 0
    v2 = iconst.i8 1
    v3 = iconst.i8 10
    v4 = iconst.i8 {step}
    v5 = iconst.i8 {bound}
    v6 = iconst.i8 {offset}
    jump block1(v1)
block1(v7: i8):
    jump block2(v7)
block2(v8: i8):
    v9 = iadd v8, v6
    v10 = iadd v8, v4
    v11 = icmp {condition} v9, v5
    brif v11, block3, block2(v10)
block3:
    v12 = iadd v7, v2
    v13 = icmp eq v12, v3
    brif v13, block4, block1(v12)
block4:
    return
}}"
                );
                let (ctx, loops) = analysed(&text);
                let ranges = ranges(&ctx, &loops);
                let inner = loops.iter().find(|lp| lp.header.as_u32() == 2).expect("the inner loop");
                let exits = counted_exits(&ctx, inner);
                let leaves = if step > 0 {
                    IntCC::SignedGreaterThanOrEqual
                } else {
                    IntCC::SignedLessThanOrEqual
                };
                let most = (0..10u8)
                    .map(|first| {
                        count(
                            first.wrapping_add_signed(offset),
                            step.cast_unsigned(),
                            leaves,
                            bound.cast_unsigned(),
                        )
                    })
                    .map(|iterations| iterations.expect("it ends") + 1)
                    .max();
                let found = max_trip_count(&ctx.func, inner, &exits[0], &ranges);
                let close = found.zip(most).is_some_and(|(found, most)| found.abs_diff(most) <= 1);
                assert!(close, "{found:?} for {most:?}\n{text}");
            }
        }
    }

    #[test]
    fn trip_counts_agree_with_counting() {
        let mut known = 0;
        for &leaves in IntCC::all() {
            for first in (0..=255).step_by(5) {
                for step in (1..=255).step_by(7) {
                    for bound in (0..=255).step_by(3).chain([255]) {
                        let counted = count(first, step, leaves, bound);
                        let computed =
                            iterations_before(u64::from(first), u64::from(step), leaves, u64::from(bound), types::I8);
                        if computed.is_some() {
                            assert_eq!(computed, counted, "{first} + n * {step} {leaves} {bound}");
                            known += 1;
                        } else if matches!(leaves, IntCC::Equal | IntCC::NotEqual) {
                            assert!(counted.is_none() || leaves == IntCC::NotEqual);
                        }
                    }
                }
            }
        }
        assert!(known > 100_000);
    }
}
