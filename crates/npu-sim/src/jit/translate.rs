//! Translation of a region to CLIF.
//!
//! The registers of a region are variables: they are read at its entry and written back at its
//! exit. An operation without a translation leaves the region before it executes, through the
//! single exit.

use super::operations::Second;
use super::region::{Form, Item, Region, Source, target};
use super::state::{NO_BRANCH, NOWHERE, State};
use super::units::Unit;
use crate::operands::is_slow;
use crate::predecode::Op;
use crate::registers::{RA, RM};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{I32, I64};
use cranelift_codegen::ir::{AbiParam, Block, Function, InstBuilder, MemFlagsData, SigRef, Signature, Value};
use cranelift_codegen::isa::TargetFrontendConfig;
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext, Variable};
use npu_mc::raw::AluOp;
use std::collections::{BTreeMap, BTreeSet};
use std::mem::offset_of;

/// The facts known before an operation.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Known {
    /// Whether the previous operation, except undecoded words, has a result that a taken branch can
    /// lose.
    pub long: bool,
    /// Whether all lanes are on. Otherwise the [`State`] has the lane mask.
    pub full: bool,
    /// The scalar registers with undriven upper halves. All other registers of the region are
    /// driven.
    pub undriven: u64,
    /// Whether words of memory may have undriven bits.
    pub words: bool,
}

/// The entry condition of a translation.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Entry {
    /// The scalar registers of the region with undriven upper halves. All others are driven.
    pub undriven: u64,
    /// Whether words of memory may have undriven bits.
    pub words: bool,
    /// Whether some lanes may be off.
    pub partial: bool,
    /// The loads of words with undriven halves, for example spilled compares; all other loads are
    /// expected to have none.
    pub reloads: BTreeSet<u32>,
}

/// The maximum mean number of versions of a block: the known facts at a merge point may differ in
/// many ways.
const VERSIONS: usize = 3;

/// The number of additional versions, independent of the number of blocks.
const FEW: usize = 32;

/// A version of a block, translated for the facts known at its start.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Spot {
    pc: u32,
    known: Known,
}

/// Fills `function` with the translation of a region: `fn(&mut State)`. `views` states that memory
/// is a view, which lacks pages without an access.
pub(super) fn build(
    region: &Region,
    for_entry: &Entry,
    function: &mut Function,
    context: &mut FunctionBuilderContext,
    config: TargetFrontendConfig,
    views: bool,
) {
    function.signature.params.push(AbiParam::new(I64));
    let mut b = FunctionBuilder::new(function, context);
    let entry = b.create_block();
    b.append_block_params_for_function_params(entry);
    b.switch_to_block(entry);
    b.seal_block(entry);
    let state = b.block_params(entry)[0];
    let field = |b: &mut FunctionBuilder<'_>, ty, offset: usize| {
        b.ins().load(ty, MemFlagsData::trusted(), state, offset as i32)
    };
    let scalars = field(&mut b, I64, offset_of!(State<'_>, scalars));
    let vectors = field(&mut b, I64, offset_of!(State<'_>, vectors));
    let table = field(&mut b, I64, offset_of!(State<'_>, table));
    let pages = field(&mut b, I64, offset_of!(State<'_>, pages));
    let first_left = field(&mut b, I64, offset_of!(State<'_>, left));
    let (mut used, mut written) = (BTreeSet::new(), BTreeSet::new());
    for item in region.items() {
        let (reads, write) = scalars_of(item);
        used.extend(reads.into_iter().chain(write));
        written.extend(write);
    }
    let registers = used.into_iter().map(|number| {
        let variable = b.declare_var(I32);
        let offset = i32::from(number) * 4;
        let value = b.ins().load(I32, MemFlagsData::trusted(), scalars, offset);
        b.def_var(variable, value);
        (number, variable)
    });
    let registers: BTreeMap<u8, Variable> = registers.collect();
    let last_branch = b.declare_var(I32);
    let none = b.ins().iconst(I32, i64::from(NO_BRANCH));
    b.def_var(last_branch, none);
    let left = b.declare_var(I64);
    b.def_var(left, first_left);
    let exit = b.create_block();
    b.set_cold_block(exit);
    let mut builder = Builder {
        region,
        b,
        config,
        state,
        vectors,
        registers,
        table,
        pages,
        views,
        last_branch,
        left,
        exit,
        known: Known {
            long: false,
            full: true,
            undriven: for_entry.undriven,
            words: for_entry.words,
        },
        reloads: &for_entry.reloads,
        blocks: BTreeMap::new(),
        work: Vec::new(),
        units: BTreeMap::new(),
    };
    if for_entry.partial {
        let offset = offset_of!(State<'_>, mask) as i32;
        let mask = builder.b.ins().load(I32, MemFlagsData::trusted(), state, offset);
        builder.go_masked(mask, region.head);
    } else {
        builder.go(region.head);
    }
    while let Some(spot) = builder.work.pop() {
        builder.block(spot);
    }
    builder.leave(scalars, &written);
}

/// Returns the scalar registers that an operation reads, and the one that it writes, except
/// implicit accesses to the lane mask.
fn scalars_of(item: &Item) -> (Vec<u8>, Option<u8>) {
    let Op { d, a, b, .. } = item.op;
    let scalar = |source: Source| match source {
        Source::Scalar(number) => Some(number),
        Source::Vector(_) | Source::Immediate(_) => None,
    };
    let (reads, write) = match item.form {
        Form::Alu { immediate: false, .. } => (vec![a, b], Some(d)),
        Form::Alu { immediate: true, .. } | Form::Load { .. } | Form::LoadScratchpad => (vec![a], Some(d)),
        Form::Constant(_) => (vec![], Some(d)),
        Form::Half { .. } => (vec![d], Some(d)),
        Form::Store { .. } | Form::StoreScratchpad => (vec![a, d], None),
        Form::Jump { link } => (vec![], link.then_some(RA)),
        Form::Branch { .. } | Form::JumpRegister | Form::LoadVector | Form::StoreVector => (vec![a], None),
        Form::MoveMask => (vec![a], Some(RM)),
        Form::MaskConstant(_) => (vec![], Some(RM)),
        Form::Lanes { a, b, .. } => ([a, b].into_iter().filter_map(scalar).collect(), None),
        Form::Splat(a) => (scalar(a).into_iter().collect(), None),
        Form::Compare { a, b, .. } | Form::CompareMask { a, b, .. } => {
            ([a, b].into_iter().filter_map(scalar).collect(), Some(d))
        }
        Form::GetLane { number: None } => (vec![b], Some(d)),
        Form::GetLane { number: Some(_) } | Form::MakeMask => (vec![], Some(d)),
        Form::LoadNarrow(_) | Form::StoreNarrow(_) => (vec![a], None),
        Form::LoadVectorScratchpad | Form::StoreVectorScratchpad => (vec![a], None),
        Form::HalfLanes { .. } | Form::Shuffle | Form::Nop => (vec![], None),
    };
    (
        reads.into_iter().map(|number| number & 63).collect(),
        write.map(|number| number & 63),
    )
}

pub(super) struct Builder<'a> {
    region: &'a Region,
    pub b: FunctionBuilder<'a>,
    pub config: TargetFrontendConfig,
    /// A pointer to the [`State`].
    pub state: Value,
    /// A pointer to the vector registers.
    pub vectors: Value,
    registers: BTreeMap<u8, Variable>,
    pub table: Value,
    pub pages: Value,
    /// Whether memory is a view.
    pub views: bool,
    last_branch: Variable,
    left: Variable,
    /// The exit block. Its parameters are the PC, the remaining budget, the address of the last
    /// operation if its result can be lost, whether a branch went to the PC, and the registers with
    /// undriven halves.
    exit: Block,
    /// The facts known before the current operation.
    pub known: Known,
    /// The field of the [`Entry`].
    pub reloads: &'a BTreeSet<u32>,
    blocks: BTreeMap<Spot, Block>,
    /// The blocks that remain to be translated.
    work: Vec<Spot>,
    /// Signatures, by number of operands.
    units: BTreeMap<usize, SigRef>,
}

impl Builder<'_> {
    pub fn constant(&mut self, value: u32) -> Value {
        self.b.ins().iconst(I32, i64::from(value))
    }

    pub fn register(&mut self, number: u8) -> Value {
        match self.registers.get(&(number & 63)) {
            Some(&variable) => self.b.use_var(variable),
            // Unreachable: all registers of the operations have variables.
            None => self.constant(0),
        }
    }

    pub fn set(&mut self, number: u8, value: Value) {
        if let Some(&variable) = self.registers.get(&(number & 63)) {
            self.b.def_var(variable, value);
        }
    }

    /// Returns the budget after `done` more operations.
    fn left_after(&mut self, done: usize) -> Value {
        let left = self.b.use_var(self.left);
        if done == 0 {
            return left;
        }
        let done = self.b.ins().iconst(I64, done as i64);
        self.b.ins().isub(left, done)
    }

    /// Subtracts executed instructions from the budget.
    pub fn count(&mut self, done: usize) {
        let left = self.left_after(done);
        self.b.def_var(self.left, left);
    }

    /// Leaves the region; `pc` is the next operation, and `branched` states whether a branch
    /// reached it.
    fn exit(&mut self, pc: Value, left: Value, last_long: u32, branched: bool) {
        let last_long = self.constant(last_long);
        let branched = self.constant(branched.into());
        let undriven = self.b.ins().iconst(I64, self.known.undriven as i64);
        let arguments = [pc, left, last_long, branched, undriven].map(Into::into);
        self.b.ins().jump(self.exit, &arguments);
    }

    /// Leaves the region before operation `done` of a block.
    pub fn exit_before(&mut self, pc: u32, done: usize) {
        let left = self.left_after(done);
        let here = self.constant(pc);
        let last_long = if self.known.long { pc.wrapping_sub(4) } else { NOWHERE };
        self.exit(here, left, last_long, false);
    }

    /// Creates blocks for a nonzero and a zero `condition`; neither has other predecessors.
    pub fn split(&mut self, condition: Value) -> (Block, Block) {
        let [yes, no] = [(); 2].map(|()| self.b.create_block());
        self.b.ins().brif(condition, yes, &[], no, &[]);
        self.b.seal_block(yes);
        self.b.seal_block(no);
        (yes, no)
    }

    /// Leaves the region before operation `done` of the block unless `condition` is 0.
    pub fn leave_if(&mut self, condition: Value, pc: u32, done: usize) {
        let (leave, on) = self.split(condition);
        self.b.set_cold_block(leave);
        self.b.switch_to_block(leave);
        self.exit_before(pc, done);
        self.b.switch_to_block(on);
    }

    /// Ends a block; the next operation is at `pc`.
    pub fn go(&mut self, pc: u32) {
        let spot = Spot { pc, known: self.known };
        let block = match self.blocks.get(&spot) {
            Some(&block) => block,
            None if !self.region.has(pc) || self.blocks.len() >= FEW + VERSIONS * self.region.leaders() => {
                self.exit_before(pc, 0);
                return;
            }
            None => {
                let block = self.b.create_block();
                self.blocks.insert(spot, block);
                self.work.push(spot);
                block
            }
        };
        self.b.ins().jump(block, &[]);
    }

    fn block(&mut self, spot: Spot) {
        let Some(&block) = self.blocks.get(&spot) else {
            // Unreachable: every spot in the work list has a block.
            return;
        };
        self.b.switch_to_block(block);
        self.known = spot.known;
        if let Some(needed) = self.region.needed(spot.pc) {
            let left = self.b.use_var(self.left);
            let needed = self.b.ins().iconst(I64, i64::from(needed));
            let short = self.b.ins().icmp(IntCC::UnsignedLessThan, left, needed);
            self.leave_if(short, spot.pc, 0);
        }
        let items = self.region.block(spot.pc);
        for (done, item) in items.iter().enumerate() {
            if !self.operation(item, done) {
                return;
            }
        }
        self.count(items.len());
        if let Some(last) = items.last() {
            self.go(last.pc.wrapping_add(4));
        }
    }

    /// Translates operation `done` of a block; returns whether the block continues after it. The
    /// functions for the forms return whether a taken branch can lose the result.
    fn operation(&mut self, item: &Item, done: usize) -> bool {
        let &Item { pc, op, form } = item;
        let next = pc.wrapping_add(4);
        // Operations that use undriven bits require the definition.
        let Some(halves) = self.follow(item, done) else {
            self.exit_before(pc, done);
            return false;
        };
        let long = match form {
            Form::Alu { op: alu, immediate } => {
                let a = self.register(op.a);
                let b = if immediate {
                    Second::Immediate(op.imm as u32)
                } else {
                    Second::Register(self.register(op.b))
                };
                let value = self.alu(alu, a, b);
                self.set(op.d, value);
                is_slow(alu)
            }
            Form::MoveMask => {
                let value = self.register(op.a);
                self.before_mask(value, done, halves, false);
                self.set_mask(value, next);
                return false;
            }
            Form::CompareMask {
                op: alu,
                condition,
                a,
                b,
            } => {
                let value = self.compare(condition, [a, b]);
                self.before_mask(value, done, halves, is_slow(alu));
                self.set_mask(value, next);
                return false;
            }
            Form::MaskConstant(value) => {
                let mask = self.constant(value);
                self.before_mask(mask, done, halves, false);
                self.set_constant_mask(value, next);
                return false;
            }
            Form::Lanes { op: alu, a, b } => self.lanes(alu, op.d, [a, b]),
            Form::Splat(source) => self.lanes(AluOp::Move, op.d, [source; 2]),
            Form::Compare {
                op: alu,
                condition,
                a,
                b,
            } => {
                let value = self.compare(condition, [a, b]);
                self.set(op.d, value);
                is_slow(alu)
            }
            // An undecoded word directly after an operation whose result can be lost counts as such
            // an operation.
            Form::Nop => self.known.long,
            Form::Constant(value) => {
                let value = self.constant(value);
                self.set(op.d, value);
                false
            }
            Form::Half { kept, new } => self.half(op.d, kept, new),
            Form::Load { bytes, signed } => self.load(item, done, bytes, signed),
            Form::Store { bytes } => self.store(item, done, bytes),
            Form::LoadVector => self.load_line(item, done),
            Form::StoreVector => self.store_line(item, done),
            Form::HalfLanes { kept, new } => self.half_lanes(op.d, kept, new),
            Form::Shuffle => self.shuffle(item, done),
            Form::GetLane { number } => self.get_lane(item, done, number),
            Form::MakeMask => {
                let value = self.low_bits(op.a);
                self.set(op.d, value);
                is_slow(AluOp::CrtMask)
            }
            Form::LoadNarrow(kind) => self.load_narrow(item, done, kind),
            Form::StoreNarrow(kind) => self.store_narrow(item, done, kind),
            Form::LoadVectorScratchpad => self.load_vector_scratchpad(item, done),
            Form::StoreVectorScratchpad => self.store_vector_scratchpad(item, done),
            Form::LoadScratchpad => self.load_scratchpad(item, done),
            Form::StoreScratchpad => self.store_scratchpad(item, done),
            Form::Jump { link } => {
                if self.taken(pc, done) {
                    if link {
                        let next = self.constant(next);
                        self.set(RA, next);
                    }
                    self.known.undriven = halves;
                    self.go_taken(target(pc, op));
                }
                return false;
            }
            Form::Branch { zero } => self.branch(item, done, zero),
            Form::JumpRegister => {
                self.jump_register(item, done);
                return false;
            }
        };
        self.known.long = long;
        self.known.undriven = halves;
        true
    }

    /// Completes operation `done` of a block, which sets `rm` to `value`, except for the lane mask.
    fn before_mask(&mut self, value: Value, done: usize, halves: u64, long: bool) {
        self.set(RM, value);
        self.count(done + 1);
        self.known.undriven = halves;
        self.known.long = long;
    }

    /// Emits Sd = (Sd & kept) | new.
    fn half(&mut self, d: u8, kept: u32, new: u32) -> bool {
        let old = self.register(d);
        let [kept, new] = [kept, new].map(|value| self.constant(value));
        let old = self.b.ins().band(old, kept);
        let value = self.b.ins().bor(old, new);
        self.set(d, value);
        false
    }

    /// Emits a branch if Sa is 0 or not 0; continues in the fall-through block.
    fn branch(&mut self, item: &Item, done: usize, zero: bool) -> bool {
        let value = self.register(item.op.a);
        let (nonzero, is_zero) = self.split(value);
        let (branch, on) = if zero { (is_zero, nonzero) } else { (nonzero, is_zero) };
        self.b.switch_to_block(branch);
        if self.taken(item.pc, done) {
            self.go_taken(target(item.pc, item.op));
        }
        self.b.switch_to_block(on);
        false
    }

    fn jump_register(&mut self, item: &Item, done: usize) {
        let to = self.register(item.op.a);
        let here = self.constant(item.pc);
        // A thread may end at a jump to itself.
        let itself = self.b.ins().icmp(IntCC::Equal, to, here);
        self.leave_if(itself, item.pc, done);
        if self.taken(item.pc, done) {
            self.go_to_register(to);
        }
    }

    /// Continues at the target of a taken branch.
    fn go_taken(&mut self, to: u32) {
        if self.region.has(to) {
            self.go(to);
        } else {
            let left = self.b.use_var(self.left);
            let to = self.constant(to);
            self.exit(to, left, NOWHERE, true);
        }
    }

    /// Emits a taken branch as operation `done` of its block. Returns `false` if the branch
    /// requires the definition; the block then has ended.
    fn taken(&mut self, pc: u32, done: usize) -> bool {
        if self.known.long {
            self.exit_before(pc, done);
            return false;
        }
        let here = self.constant(pc);
        self.b.def_var(self.last_branch, here);
        self.count(done + 1);
        true
    }

    /// Continues at an address in a register.
    fn go_to_register(&mut self, to: Value) {
        let targets: Vec<u32> = self.region.targets().collect();
        for target in targets {
            let expected = self.constant(target);
            let is_it = self.b.ins().icmp(IntCC::Equal, to, expected);
            let (yes, no) = self.split(is_it);
            self.b.switch_to_block(yes);
            self.go_taken(target);
            self.b.switch_to_block(no);
        }
        let left = self.b.use_var(self.left);
        self.exit(to, left, NOWHERE, true);
    }

    pub fn call_scalar(&mut self, unit: Unit, operands: &[Value]) -> Value {
        let count = unit.operands();
        let signature = match self.units.get(&count) {
            Some(&signature) => signature,
            None => {
                let mut signature = Signature::new(self.config.default_call_conv);
                signature.params.extend([AbiParam::new(I32)].repeat(count));
                signature.returns.push(AbiParam::new(I32));
                let signature = self.b.import_signature(signature);
                self.units.insert(count, signature);
                signature
            }
        };
        let address = self.b.ins().iconst(I64, unit.address());
        let call = self.b.ins().call_indirect(signature, address, &operands[..count]);
        self.b.inst_results(call)[0]
    }

    /// Emits the single exit.
    fn leave(mut self, scalars: Value, written: &BTreeSet<u8>) {
        let exit = self.exit;
        let pc = self.b.append_block_param(exit, I32);
        let left = self.b.append_block_param(exit, I64);
        let last_long = self.b.append_block_param(exit, I32);
        let branched = self.b.append_block_param(exit, I32);
        let undriven = self.b.append_block_param(exit, I64);
        self.b.switch_to_block(exit);
        let flags = MemFlagsData::trusted();
        for &number in written {
            let value = self.register(number);
            self.b.ins().store(flags, value, scalars, i32::from(number) * 4);
        }
        let last_branch = self.b.use_var(self.last_branch);
        let fields = [
            (pc, offset_of!(State<'_>, pc)),
            (left, offset_of!(State<'_>, left)),
            (last_long, offset_of!(State<'_>, last_long)),
            (branched, offset_of!(State<'_>, branched)),
            (last_branch, offset_of!(State<'_>, last_branch)),
            (undriven, offset_of!(State<'_>, undriven)),
        ];
        for (value, offset) in fields {
            self.b.ins().store(flags, value, self.state, offset as i32);
        }
        self.b.ins().return_(&[]);
        self.b.seal_all_blocks();
        self.b.finalize(self.config);
    }
}
