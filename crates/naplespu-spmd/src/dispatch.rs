//! The loops over work-groups and subgroups around a work-item function, as scalar CLIF.
//!
//! Rows of work-groups (equal y and z) are processed one after another, so no division is needed
//! to find the number of a work-group. In a row, units of work are handed out by stride. A unit is
//! a subgroup if the work-items of a group are independent, and a whole work-group otherwise.

use crate::builtins::{self, Builtin, Extent};
use crate::copy::copy;
use crate::error::Error;
use crate::linearize::Flow;
use crate::normalize;
use crate::options::{LANE_COUNTS, Options};
use crate::ranges::{MAX_DEPTH, Ranges, Row};
use crate::remarks::{BranchOutcome, Condition, Matter, Remarks, TrapOutcome, Version};
use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{
    AbiParam, AliasRegionData, Block, BlockArg, Function, Inst, InstBuilder, InstructionData, MemFlagsData, Opcode,
    Value, types,
};
use cranelift_naplespu::intrinsics;
use npu_mc::machine::SCRATCHPAD_SPACE;
use std::collections::BTreeSet;

/// The parameters of a dispatch function after those of its kernel, all `i32`.
///
/// The first three are the work-groups of the dispatch in x, y and z. `place` is the number of
/// this core among the `places` cores that take part, and `threads` the number of threads of each
/// core that take part, from thread 0.
pub const DISPATCH_PARAMS: [&str; 6] = ["count_x", "count_y", "count_z", "place", "places", "threads"];

/// Returns the arguments for [`DISPATCH_PARAMS`]: the work-groups of the dispatch in x, y and z, the
/// number of a thread's core among the cores that take part, and the threads of each core.
pub fn dispatch_arguments(groups: [u32; 3], core: usize, cores: usize, threads: usize) -> [i32; 6] {
    let [x, y, z] = groups.map(u32::cast_signed);
    [x, y, z, core as i32, cores as i32, threads as i32]
}

/// Number of barriers of a sync master, which the low bits of a barrier number select (manual of
/// the machine, "Barriers").
const BARRIERS_OF_MASTER: i64 = 32;

/// Largest number of work-items of a work-group; [`divide`] relies on it.
const MAX_WORK_ITEMS: u64 = 1 << 16;

/// Largest number of instructions of a kernel that gets a second loop without checks.
const MAX_COPIED: usize = 300;

/// Returns whether the work-items of a work-group have to be executed at the same time: the kernel
/// has barriers or workgroup memory. Then a work-group must not have more work-items than the
/// threads of a core execute at once.
pub fn needs_group(kernel: &Function, options: &Options) -> bool {
    options.workgroup_bytes > 0
        || all_insts(kernel)
            .into_iter()
            .any(|inst| matches!(builtins::called(kernel, inst), Some(Ok(Builtin::Barrier))))
}

impl Options {
    /// Returns the least lanes, from those of the options on, with which the threads of a core
    /// execute a work-group at once, if the kernel needs that: it has barriers or workgroup memory.
    /// Returns the lanes of the options if no number of lanes is enough.
    pub fn lanes_for(&self, kernel: &Function, threads: u32) -> u32 {
        if !needs_group(kernel, self) {
            return self.lanes;
        }
        let items: u64 = self.workgroup_size.iter().map(|&size| u64::from(size)).product();
        let enough = |lanes: &u32| *lanes >= self.lanes && u64::from(*lanes) * u64::from(threads) >= items;
        LANE_COUNTS.into_iter().find(enough).unwrap_or(self.lanes)
    }
}

/// Values that all work-items of a thread share; they dominate a body of the kernel.
struct Frame {
    counts: [Value; 3],
    group: [Value; 3],
    subgroup: Value,
    /// The number of the unit in its row.
    number: Value,
    /// Number of threads that execute a work-group, minus one.
    last_thread: Value,
    barrier: Value,
    /// Whether a unit is a whole work-group.
    together: bool,
    /// The block to which the body returns.
    latch: Block,
}

/// Returns the dispatch function of a kernel, still for one work-item at a time in each lane.
pub fn expand(kernel: &Function, options: &Options, remarks: &mut Remarks) -> Result<Function, Error> {
    check(kernel, options)?;
    let mut func = kernel.clone();
    // Irreducible control flow is refused later, if there are lanes.
    let mut normalized = kernel.clone();
    let flow = normalize::run(&mut normalized).ok().map(|()| {
        func = normalized;
        Flow::new(&func)
    });
    let Some(body) = func.layout.entry_block() else {
        return Err(Error::Internal {
            function: kernel.name.to_string(),
            expected: "an entry block",
        });
    };
    remarks.own = Some((func.layout.blocks().collect(), all_insts(&func).into_iter().collect()));
    let old_params = func.dfg.block_params(body).to_vec();
    func.dfg.detach_block_params(body);
    let entry = func.dfg.make_block();
    func.layout.insert_block(entry, body);
    for &old in &old_params {
        let new = func.dfg.append_block_param(entry, types::I32);
        func.dfg.change_to_alias(old, new);
    }
    func.dfg.resolve_all_aliases();
    let extra: Vec<Value> = DISPATCH_PARAMS
        .iter()
        .map(|_| {
            func.signature.params.push(AbiParam::new(types::I32));
            func.dfg.append_block_param(entry, types::I32)
        })
        .collect();
    let mut loops = Loops {
        func: &mut func,
        calls: intrinsics::Builder::new(),
        options,
        together: needs_group(kernel, options),
    };
    let rows = loops.rows(entry, &extra)?;
    let (units, frame) = loops.units(&rows, body, rows.row_units, rows.next_y, false)?;
    let checked = match &flow {
        Some(flow) => loops.checked_row(&rows, flow, units, remarks)?,
        None => None,
    };
    if checked.is_none() {
        let number = rows.number.into();
        FuncCursor::new(&mut func)
            .at_bottom(rows.row)
            .ins()
            .jump(units, &[number]);
    }
    expand_builtins(&mut func, &frame, checked.as_ref(), rows.done, options)?;
    Ok(func)
}

fn check(kernel: &Function, options: &Options) -> Result<(), Error> {
    let function = kernel.name.to_string();
    if !kernel.signature.returns.is_empty() {
        return Err(Error::Results(function));
    }
    if let Some(param) = kernel
        .signature
        .params
        .iter()
        .find(|param| param.value_type != types::I32)
    {
        return Err(Error::Parameter {
            function,
            ty: param.value_type,
        });
    }
    let items: u64 = options
        .workgroup_size
        .iter()
        .fold(1, |items: u64, &size| items.saturating_mul(size.into()));
    if items == 0 || items > MAX_WORK_ITEMS {
        return Err(Error::WorkgroupSize(items));
    }
    if options.workgroup_bytes > 1 << 16 {
        return Err(Error::WorkgroupMemory(options.workgroup_bytes));
    }
    Ok(())
}

struct Loops<'a> {
    func: &'a mut Function,
    calls: intrinsics::Builder,
    options: &'a Options,
    together: bool,
}

/// The loops over rows, and values of the entry.
struct Rows {
    counts: [Value; 3],
    thread: Value,
    last_thread: Value,
    barrier: Value,
    /// The distance of the units of a thread.
    step: Value,
    /// The units of a work-group.
    size: Value,
    /// The units of a row.
    row_units: Value,
    y: Value,
    z: Value,
    /// The start of a row, still without a branch.
    row: Block,
    /// The first unit of this thread in the row.
    number: Value,
    /// The end of a row, with the next unit of this thread as parameter.
    next_y: Block,
    /// The block that returns.
    done: Block,
}

/// A copy of the body without checks that hold for all work-items of a row.
struct Checked {
    frame: Frame,
    blocks: BTreeSet<Block>,
}

impl Loops<'_> {
    /// Builds the loops over rows.
    fn rows(&mut self, entry: Block, extra: &[Value]) -> Result<Rows, Error> {
        let &[count_x, count_y, count_z, place, places, threads] = extra else {
            return Err(self.internal("six parameters"));
        };
        let subgroups = i64::from(self.options.subgroups());
        let [row_z, row_y, row, next_y, next_z, done] = self.blocks();
        // Values in the entry.
        let thread = self.intrinsic(entry, "thread_id", &[])?;
        let tile = self.intrinsic(entry, "tile_id", &[])?;
        let mut cursor = FuncCursor::new(self.func).at_bottom(entry);
        let all_threads = cursor.ins().imul(place, threads);
        let (first, step, size) = if self.together {
            (place, places, 1)
        } else {
            (
                cursor.ins().iadd(all_threads, thread),
                cursor.ins().imul(places, threads),
                subgroups,
            )
        };
        let subgroups = cursor.ins().iconst(types::I32, subgroups);
        let size = cursor.ins().iconst(types::I32, size);
        let row_units = cursor.ins().imul(count_x, size);
        let used = cursor.ins().umin(threads, subgroups);
        let one = cursor.ins().iconst(types::I32, 1);
        let zero = cursor.ins().iconst(types::I32, 0);
        let last_thread = cursor.ins().isub(used, one);
        let barriers = cursor.ins().iconst(types::I32, BARRIERS_OF_MASTER);
        let barrier = cursor.ins().imul(tile, barriers);
        let idle = cursor.ins().icmp(IntCC::UnsignedGreaterThanOrEqual, thread, threads);
        let spare = cursor.ins().icmp(IntCC::UnsignedGreaterThanOrEqual, thread, subgroups);
        let idle = if self.together {
            cursor.ins().bor(idle, spare)
        } else {
            idle
        };
        cursor.ins().brif(idle, done, &[], row_z, &[zero.into(), first.into()]);

        let [z, first_of_z] = self.params(row_z);
        self.test(
            row_z,
            IntCC::UnsignedLessThan,
            (z, count_z),
            (row_y, &[zero, first_of_z]),
            (done, &[]),
        );
        let [y, first_of_y] = self.params(row_y);
        self.test(
            row_y,
            IntCC::UnsignedLessThan,
            (y, count_y),
            (row, &[first_of_y]),
            (next_z, &[first_of_y]),
        );
        let [number] = self.params(row);
        let [after] = self.params(next_y);
        let mut cursor = FuncCursor::new(self.func).at_bottom(next_y);
        let (next, rest) = (cursor.ins().iadd(y, one), cursor.ins().isub(after, row_units));
        cursor.ins().jump(row_y, &[next.into(), rest.into()]);
        let [rest] = self.params(next_z);
        let mut cursor = FuncCursor::new(self.func).at_bottom(next_z);
        let next = cursor.ins().iadd(z, one);
        cursor.ins().jump(row_z, &[next.into(), rest.into()]);
        FuncCursor::new(self.func).at_bottom(done).ins().return_(&[]);
        Ok(Rows {
            counts: [count_x, count_y, count_z],
            thread,
            last_thread,
            barrier,
            step,
            size,
            row_units,
            y,
            z,
            row,
            number,
            next_y,
            done,
        })
    }

    /// Builds the loop over the units of a row up to the unit `end`. Returns its start, which has
    /// the first unit as parameter. The loop leads to `exit` with the next unit.
    ///
    /// A `counted` loop has a trip count, so that the optimizer can unroll it.
    fn units(
        &mut self,
        rows: &Rows,
        body: Block,
        end: Value,
        exit: Block,
        counted: bool,
    ) -> Result<(Block, Frame), Error> {
        let [units, unit, start, work, latch] = self.blocks();
        let [number] = self.params(units);
        let (entry, counter) = if counted {
            let (entry, last) = self.last_iteration(rows, end, units, exit);
            let [counter] = self.params(units);
            self.test(
                units,
                IntCC::UnsignedLessThanOrEqual,
                (counter, last),
                (unit, &[]),
                (exit, &[number]),
            );
            (entry, Some(counter))
        } else {
            self.test(
                units,
                IntCC::UnsignedLessThan,
                (number, end),
                (unit, &[]),
                (exit, &[number]),
            );
            (units, None)
        };
        let mut cursor = FuncCursor::new(self.func).at_bottom(unit);
        let (x, subgroup) = if self.together {
            (number, rows.thread)
        } else {
            let x = cursor.ins().udiv(number, rows.size);
            let whole = cursor.ins().imul(x, rows.size);
            (x, cursor.ins().isub(number, whole))
        };
        cursor.ins().jump(start, &[]);
        self.start_group(start, work, (rows.thread, rows.last_thread, rows.barrier))?;
        self.enter_body(work, body, latch, subgroup);
        if self.together {
            self.intrinsic_at(latch, "barrier", &[rows.barrier, rows.last_thread])?;
        }
        let mut cursor = FuncCursor::new(self.func).at_bottom(latch);
        let mut next: Vec<BlockArg> = vec![cursor.ins().iadd(number, rows.step).into()];
        if let Some(counter) = counter {
            next.push(cursor.ins().iadd_imm_s(counter, 1).into());
        }
        cursor.ins().jump(units, &next);
        let frame = Frame {
            counts: rows.counts,
            group: [x, rows.y, rows.z],
            subgroup,
            number,
            last_thread: rows.last_thread,
            barrier: rows.barrier,
            together: self.together,
            latch,
        };
        Ok((entry, frame))
    }

    /// Emits the number of units from a number up to `end`, minus one. Returns the block that gets
    /// the number, and the result. The blocks lead to `units` with the number and a counter, or to
    /// `exit` with the number.
    ///
    /// The result is no sum: Cranelift would compute sums with a constant in the loop, where the
    /// optimizer does not recognize a trip count.
    fn last_iteration(&mut self, rows: &Rows, end: Value, units: Block, exit: Block) -> (Block, Value) {
        let [entry, some, by_shift, by_division, known] = self.blocks();
        let [number] = self.params(entry);
        self.test(
            entry,
            IntCC::UnsignedLessThan,
            (number, end),
            (some, &[]),
            (exit, &[number]),
        );
        let mut cursor = FuncCursor::new(self.func).at_bottom(some);
        let rest = cursor.ins().isub(end, number);
        let others = cursor.ins().iadd_imm_s(rest, -1);
        // The step is the number of threads, usually a power of two.
        let shift = cursor.ins().ctz(rows.step);
        let one = cursor.ins().iconst(types::I32, 1);
        let power = cursor.ins().ishl(one, shift);
        let is_power = cursor.ins().icmp(IntCC::Equal, power, rows.step);
        cursor.ins().brif(is_power, by_shift, &[], by_division, &[]);
        cursor.goto_bottom(by_shift);
        let quotient = cursor.ins().ushr(others, shift);
        cursor.ins().jump(known, &[quotient.into()]);
        cursor.goto_bottom(by_division);
        let quotient = cursor.ins().udiv(others, rows.step);
        cursor.ins().jump(known, &[quotient.into()]);
        let [quotient] = self.params(known);
        let mut cursor = FuncCursor::new(self.func).at_bottom(known);
        let zero = cursor.ins().iconst(types::I32, 0);
        cursor.ins().jump(units, &[number.into(), zero.into()]);
        (entry, quotient)
    }

    /// Builds a second loop over the units of a row, for the work-groups in which checks of the
    /// kernel hold for all work-items: all work-groups of the row, or all but the last. The other
    /// units follow in the loop `rest`. Returns `None` if no checks are found.
    ///
    /// ```text
    /// row:             jump attempt(count_x)
    /// attempt(groups): brif checks hold in these groups, checked, retry
    /// retry:           brif groups == last_group, rest, attempt(last_group)
    /// ```
    fn checked_row(
        &mut self,
        rows: &Rows,
        flow: &Flow,
        rest: Block,
        remarks: &mut Remarks,
    ) -> Result<Option<Checked>, Error> {
        let body = &flow.order;
        let insts: Vec<Inst> = body
            .iter()
            .flat_map(|&block| self.func.layout.block_insts(block))
            .collect();
        let is_try = |&inst: &Inst| self.func.dfg.insts[inst].exception_table().is_some();
        if insts.len() > MAX_COPIED || insts.iter().any(is_try) {
            return Ok(None);
        }
        let [attempt, retry, checked] = self.blocks();
        let [groups] = self.params(attempt);
        let one = self.number(attempt, 1);
        let last_x = FuncCursor::new(self.func).at_bottom(attempt).ins().isub(groups, one);
        let row = Row {
            counts: rows.counts,
            last_x,
            y: rows.y,
            z: rows.z,
        };
        let mut needs = BTreeSet::new();
        let mut sides: Vec<(Inst, usize)> = Vec::new();
        let mut ranges = Ranges::new(self.func, flow, self.options, row, attempt);
        for &block in body {
            for inst in ranges.func.layout.block_insts(block).collect::<Vec<_>>() {
                let (arg, sides_of_inst): (Value, &[bool]) = match ranges.func.dfg.insts[inst] {
                    InstructionData::Brif { arg, .. } => (arg, &[true, false]),
                    InstructionData::CondTrap { opcode, arg, .. } => (arg, &[opcode == Opcode::Trapz]),
                    _ => continue,
                };
                for (side, &truth) in sides_of_inst.iter().enumerate() {
                    if let Some(found) = ranges.holds(arg, truth, block, MAX_DEPTH) {
                        needs.extend(found);
                        sides.push((inst, side));
                        break;
                    }
                }
            }
        }
        let [count_x, ..] = rows.counts;
        if sides.is_empty() {
            for block in [attempt, retry, checked] {
                remove(self.func, block);
            }
            return Ok(None);
        }
        let mut cursor = FuncCursor::new(self.func).at_bottom(attempt);
        let mut all = cursor.ins().iconst(types::I8, 1);
        for need in needs {
            all = cursor.ins().band(all, need);
        }
        cursor.ins().brif(all, checked, &[], retry, &[]);
        cursor.goto_bottom(retry);
        let one = cursor.ins().iconst(types::I32, 1);
        let some = cursor.ins().umax(count_x, one);
        let without_last = cursor.ins().isub(some, one);
        let tried = cursor.ins().icmp(IntCC::Equal, groups, without_last);
        let number = rows.number.into();
        cursor
            .ins()
            .brif(tried, rest, &[number], attempt, &[without_last.into()]);
        cursor.goto_bottom(rows.row);
        cursor.ins().jump(attempt, &[count_x.into()]);

        let copy = copy(self.func, body);
        remarks.copied(&copy, true);
        for (inst, side) in sides {
            let around = self.func.layout.inst_block(inst).into_iter();
            let loops = around.flat_map(|block| flow.loops_of(block)).count();
            let matter = match self.func.dfg.insts[inst] {
                InstructionData::CondTrap { .. } => Matter::Trap(TrapOutcome::Hoisted),
                _ => Matter::Branch {
                    condition: Condition::Bound,
                    outcome: BranchOutcome::Hoisted,
                },
            };
            let version = Version {
                row: true,
                all_lanes: false,
            };
            remarks.add(self.func, inst, loops, version, matter);
            let copied = copy.insts[&inst];
            match self.func.dfg.insts[copied] {
                InstructionData::Brif { blocks, .. } => {
                    self.func.dfg.insts[copied] = InstructionData::Jump {
                        opcode: Opcode::Jump,
                        destination: blocks[side],
                    };
                }
                _ => {
                    self.func.layout.remove_inst(copied);
                }
            }
        }
        let end = FuncCursor::new(self.func)
            .at_bottom(checked)
            .ins()
            .imul(groups, rows.size);
        let (units, frame) = self.units(rows, copy.blocks[&body[0]], end, rest, true)?;
        FuncCursor::new(self.func)
            .at_bottom(checked)
            .ins()
            .jump(units, &[number]);
        Ok(Some(Checked {
            frame,
            blocks: copy.blocks.into_values().collect(),
        }))
    }

    /// Makes blocks at the end of the layout.
    fn blocks<const N: usize>(&mut self) -> [Block; N] {
        std::array::from_fn(|_| {
            let block = self.func.dfg.make_block();
            self.func.layout.append_block(block);
            block
        })
    }

    fn number(&mut self, block: Block, number: i64) -> Value {
        FuncCursor::new(self.func)
            .at_bottom(block)
            .ins()
            .iconst(types::I32, number)
    }

    /// Zeroes workgroup memory and waits until it is zero.
    fn start_group(&mut self, start: Block, work: Block, group: (Value, Value, Value)) -> Result<(), Error> {
        let (thread, last_thread, barrier) = group;
        let words = i64::from(self.options.workgroup_bytes.div_ceil(4));
        if words == 0 {
            FuncCursor::new(self.func).at_bottom(start).ins().jump(work, &[]);
            return Ok(());
        }
        let [zeroing, zeroed] = std::array::from_fn(|_| self.func.dfg.make_block());
        self.func.layout.insert_block(zeroing, work);
        self.func.layout.insert_block(zeroed, work);
        let region = self.func.dfg.alias_regions.insert(AliasRegionData {
            user_id: SCRATCHPAD_SPACE,
            description: "scratchpad".into(),
        });
        let mut cursor = FuncCursor::new(self.func).at_bottom(start);
        let bytes = cursor.ins().iconst(types::I32, words * 4);
        let shift = cursor.ins().iconst(types::I32, 2);
        let first = cursor.ins().ishl(thread, shift);
        let all = cursor.ins().ishl(last_thread, shift);
        let step = cursor.ins().iadd_imm_s(all, 4);
        let zero = cursor.ins().iconst(types::I32, 0);
        cursor.ins().jump(zeroing, &[first.into()]);
        let [address] = self.params(zeroing);
        let mut cursor = FuncCursor::new(self.func).at_bottom(zeroing);
        let write = cursor.ins().icmp(IntCC::UnsignedLessThan, address, bytes);
        let store = cursor.func.dfg.make_block();
        cursor.func.layout.insert_block(store, zeroed);
        cursor.ins().brif(write, store, &[], zeroed, &[]);
        let mut cursor = FuncCursor::new(self.func).at_bottom(store);
        let flags = MemFlagsData::trusted().with_alias_region(Some(region));
        cursor.ins().store(flags, zero, address, 0);
        let next = cursor.ins().iadd(address, step);
        cursor.ins().jump(zeroing, &[next.into()]);
        self.intrinsic_at(zeroed, "barrier", &[barrier, last_thread])?;
        FuncCursor::new(self.func).at_bottom(zeroed).ins().jump(work, &[]);
        Ok(())
    }

    /// Enters the body for the lanes that have a work-item.
    fn enter_body(&mut self, work: Block, body: Block, latch: Block, subgroup: Value) {
        let (lanes, items) = (self.options.lanes, self.options.work_items());
        let mut cursor = FuncCursor::new(self.func).at_bottom(work);
        if items.is_multiple_of(lanes) {
            cursor.ins().jump(body, &[]);
            return;
        }
        let index = local_index(&mut cursor, subgroup, lanes);
        let items = cursor.ins().iconst(types::I32, i64::from(items));
        let inside = cursor.ins().icmp(IntCC::UnsignedLessThan, index, items);
        cursor.ins().brif(inside, body, &[], latch, &[]);
    }

    fn intrinsic(&mut self, block: Block, name: &str, args: &[Value]) -> Result<Value, Error> {
        let value = self.intrinsic_at(block, name, args)?;
        value.ok_or_else(|| self.internal("the result of an intrinsic"))
    }

    fn intrinsic_at(&mut self, block: Block, name: &str, args: &[Value]) -> Result<Option<Value>, Error> {
        let mut cursor = FuncCursor::new(self.func).at_bottom(block);
        let value = self.calls.call(cursor.ins(), name, args);
        value.map_err(|_| self.internal("an intrinsic of the machine"))
    }

    fn params<const N: usize>(&mut self, block: Block) -> [Value; N] {
        std::array::from_fn(|_| self.func.dfg.append_block_param(block, types::I32))
    }

    fn test(
        &mut self,
        block: Block,
        condition: IntCC,
        (x, y): (Value, Value),
        (then, then_args): (Block, &[Value]),
        (other, other_args): (Block, &[Value]),
    ) {
        let args = |values: &[Value]| -> Vec<BlockArg> { values.iter().map(|&value| value.into()).collect() };
        let mut cursor = FuncCursor::new(self.func).at_bottom(block);
        let holds = cursor.ins().icmp(condition, x, y);
        cursor
            .ins()
            .brif(holds, then, &args(then_args), other, &args(other_args));
    }

    fn internal(&self, expected: &'static str) -> Error {
        Error::Internal {
            function: self.func.name.to_string(),
            expected,
        }
    }
}

/// Emits the number of the work-item of the lane in its work-group.
fn local_index(cursor: &mut FuncCursor<'_>, subgroup: Value, lanes: u32) -> Value {
    if lanes == 1 {
        return subgroup;
    }
    let shift = cursor.ins().iconst(types::I32, i64::from(lanes.trailing_zeros()));
    let base = cursor.ins().ishl(subgroup, shift);
    let lane_id = builtins::import(cursor.func, "lane_id", Builtin::LaneId);
    let call = cursor.ins().call(lane_id, &[]);
    let lane = cursor.func.dfg.first_result(call);
    cursor.ins().iadd(base, lane)
}

/// Removes a block without predecessors.
fn remove(func: &mut Function, block: Block) {
    while let Some(inst) = func.layout.first_inst(block) {
        func.layout.remove_inst(inst);
    }
    func.layout.remove_block(block);
}

fn all_insts(func: &Function) -> Vec<Inst> {
    let blocks = func.layout.blocks();
    blocks.flat_map(|block| func.layout.block_insts(block)).collect()
}

/// Replaces the built-in functions that depend on the work-group, and the returns of the bodies.
/// With one lane, it replaces all built-in functions.
fn expand_builtins(
    func: &mut Function,
    frame: &Frame,
    checked: Option<&Checked>,
    done: Block,
    options: &Options,
) -> Result<(), Error> {
    let mut calls = intrinsics::Builder::new();
    for inst in all_insts(func) {
        let block = func.layout.inst_block(inst);
        let in_checked = |checked: &&Checked| block.is_some_and(|block| checked.blocks.contains(&block));
        let frame = checked.filter(in_checked).map_or(frame, |checked| &checked.frame);
        if func.dfg.insts[inst].opcode() == Opcode::Return && block != Some(done) {
            let mut cursor = FuncCursor::new(func).at_inst(inst);
            cursor.use_srcloc(inst);
            cursor.ins().jump(frame.latch, &[]);
            cursor.func.layout.remove_inst(inst);
            continue;
        }
        let builtin = match builtins::called(func, inst) {
            None => continue,
            Some(Ok(builtin)) => builtin,
            Some(Err(name)) => {
                return Err(Error::Builtin {
                    function: func.name.to_string(),
                    name,
                });
            }
        };
        let args = func.dfg.inst_args(inst).to_vec();
        let mut cursor = FuncCursor::new(func).at_inst(inst);
        cursor.use_srcloc(inst);
        let value = match replacement(&mut cursor, builtin, &args, frame, options) {
            Replacement::Stays => continue,
            Replacement::Value(value) => Some(value),
            Replacement::Barrier => {
                let args = [frame.barrier, frame.last_thread];
                calls
                    .call(cursor.ins(), "barrier", &args)
                    .map_err(|_| Error::Internal {
                        function: func.name.to_string(),
                        expected: "the intrinsic of barriers",
                    })?
            }
        };
        let old = func.dfg.inst_results(inst).first().copied();
        func.dfg.clear_results(inst);
        if let (Some(old), Some(value)) = (old, value) {
            func.dfg.change_to_alias(old, value);
        }
        func.layout.remove_inst(inst);
    }
    Ok(())
}

enum Replacement {
    /// The pass on lanes replaces the call.
    Stays,
    Value(Value),
    Barrier,
}

fn replacement(
    cursor: &mut FuncCursor<'_>,
    builtin: Builtin,
    args: &[Value],
    frame: &Frame,
    options: &Options,
) -> Replacement {
    let number = |cursor: &mut FuncCursor<'_>, value: u32| cursor.ins().iconst(types::I32, i64::from(value));
    let one_lane = options.lanes == 1;
    Replacement::Value(match builtin {
        Builtin::WorkgroupId(axis) => frame.group[usize::from(axis)],
        Builtin::WorkgroupCount(axis) => frame.counts[usize::from(axis)],
        Builtin::GlobalId(axis) => global_id(cursor, usize::from(axis), frame, options),
        Builtin::LocalIndex => local_index(cursor, frame.subgroup, options.lanes),
        Builtin::LocalId(axis) => local_id(cursor, usize::from(axis), frame.subgroup, options),
        Builtin::SubgroupId => frame.subgroup,
        Builtin::SubgroupCount => number(cursor, options.subgroups()),
        Builtin::SubgroupSize => number(cursor, options.lanes),
        Builtin::Barrier => return Replacement::Barrier,
        _ if !one_lane => return Replacement::Stays,
        Builtin::LaneId => number(cursor, 0),
        Builtin::Any | Builtin::All | Builtin::AllKnown => {
            let zero = cursor.ins().iconst(types::I8, 0);
            cursor.ins().icmp(IntCC::NotEqual, args[0], zero)
        }
        Builtin::Ballot => {
            let zero = cursor.ins().iconst(types::I8, 0);
            let set = cursor.ins().icmp(IntCC::NotEqual, args[0], zero);
            cursor.ins().uextend(types::I32, set)
        }
        Builtin::Elect => cursor.ins().iconst(types::I8, 1),
        Builtin::BroadcastFirst(_) | Builtin::Shuffle(_) => args[0],
        Builtin::Reduce(reduction, Extent::Exclusive) => crate::across::identity(cursor.ins(), reduction),
        Builtin::Reduce(..) => args[0],
    })
}

/// Emits the number of the work-item in a dimension. If the size in x is a multiple of the lanes,
/// all lanes of a subgroup are in one row, so y and z are uniform and x is consecutive.
fn local_id(cursor: &mut FuncCursor<'_>, axis: usize, subgroup: Value, options: &Options) -> Value {
    let [size_x, size_y, size_z] = options.workgroup_size;
    let size = options.workgroup_size[axis];
    if size == 1 {
        return cursor.ins().iconst(types::I32, 0);
    }
    let lanes = options.lanes;
    let in_rows = size_x.is_multiple_of(lanes);
    // The index and the sizes are divided by the lanes if all lanes are in one row.
    let (index, size_x) = if in_rows {
        (subgroup, size_x / lanes)
    } else {
        (local_index(cursor, subgroup, lanes), size_x)
    };
    let first = match axis {
        0 => index,
        1 => divide(cursor, index, size_x),
        _ => divide(cursor, index, size_x * size_y),
    };
    let is_last = match axis {
        0 => size_y * size_z == 1,
        1 => size_z == 1,
        _ => true,
    };
    let own_size = if axis == 0 { size_x } else { size };
    let within = if is_last {
        first
    } else {
        let whole = divide(cursor, first, own_size);
        let own_size = cursor.ins().iconst(types::I32, i64::from(own_size));
        let before = cursor.ins().imul(whole, own_size);
        cursor.ins().isub(first, before)
    };
    if axis == 0 && in_rows {
        return local_index(cursor, within, lanes);
    }
    within
}

/// Emits the number of the work-item in a dimension of the dispatch.
fn global_id(cursor: &mut FuncCursor<'_>, axis: usize, frame: &Frame, options: &Options) -> Value {
    let [size_x, size_y, size_z] = options.workgroup_size;
    let lanes = options.lanes;
    if axis == 0 && size_y * size_z == 1 && size_x.is_multiple_of(lanes) && !frame.together {
        return local_index(cursor, frame.number, lanes);
    }
    let size = cursor.ins().iconst(types::I32, i64::from(options.workgroup_size[axis]));
    let first = cursor.ins().imul(frame.group[axis], size);
    let local = local_id(cursor, axis, frame.subgroup, options);
    cursor.ins().iadd(first, local)
}

/// Emits the quotient of a number below 2^16 and a constant, without a division: vectors have no
/// instruction for it.
fn divide(cursor: &mut FuncCursor<'_>, dividend: Value, divisor: u32) -> Value {
    if divisor == 1 {
        return dividend;
    }
    if divisor.is_power_of_two() {
        let shift = cursor.ins().iconst(types::I32, i64::from(divisor.trailing_zeros()));
        return cursor.ins().ushr(dividend, shift);
    }
    // With m = ceil(2^32 / d) and r = m * d - 2^32 < d, the error n * r / (d * 2^32) is below 1 / d
    // if n * r < 2^32. Work-groups have at most 2^16 work-items, so n and d are at most 2^16.
    let factor = (1_u64 << 32).div_ceil(divisor.into());
    let factor = cursor.ins().iconst(types::I32, factor as i64 & 0xffff_ffff);
    cursor.ins().umulhi(dividend, factor)
}
