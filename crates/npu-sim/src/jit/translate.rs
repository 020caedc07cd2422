//! From a region to CLIF.
//!
//! The registers of a region are variables: read at its entry, written back where it is left. What is not translated leaves it in front
//! of that operation, by the one exit.

use super::host::State;
use super::region::{Form, Item, Region, Source, condition, target};
use super::units::{Unit, unit};
use crate::memory::{MEMORY_INDEX, PAGE_SIZE, PLAIN_LAST};
use crate::operands::is_slow;
use crate::predecode::Op;
use crate::registers::{RA, RM};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{I8, I16, I32, I64};
use cranelift_codegen::ir::{AbiParam, Block, Function, InstBuilder, MemFlagsData, SigRef, Signature, Value};
use cranelift_codegen::isa::TargetFrontendConfig;
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext, Variable};
use npu_mc::raw::AluOp;
use std::collections::{BTreeMap, BTreeSet};
use std::mem::offset_of;

/// Not the address of a branch: those are multiples of four.
pub(super) const NO_BRANCH: u32 = 1;

/// Not the address of an instruction of long latency.
pub(super) const NOWHERE: u32 = u32::MAX;

/// What is known in front of an operation.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Known {
    /// A result that a taken branch can lose was made directly before, undecoded words aside.
    pub long: bool,
    /// All lanes are on. Otherwise the state has the lanes that are.
    pub full: bool,
}

/// A block of the region, translated for what is known there.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Spot {
    pc: u32,
    known: Known,
}

/// The second operand of an operation.
#[derive(Clone, Copy)]
enum Second {
    Register(Value),
    Immediate(u32),
}

/// Fills `function` with the translation of a region: `fn(&mut State)`. `views`: memory is a view, which lacks what nobody looked at.
pub(super) fn build(
    region: &Region,
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
        blocks: BTreeMap::new(),
        work: Vec::new(),
        units: BTreeMap::new(),
    };
    let known = Known {
        long: false,
        full: true,
    };
    builder.go(region.head, known);
    while let Some(spot) = builder.work.pop() {
        builder.block(spot);
    }
    builder.leave(scalars, &written);
}

/// The scalar registers that an operation reads, and the one that it writes. The lane mask aside.
fn scalars_of(item: &Item) -> (Vec<u8>, Option<u8>) {
    let Op { d, a, b, .. } = item.op;
    let scalar = |source: Source| match source {
        Source::Scalar(number) => Some(number),
        Source::Vector(_) | Source::Immediate(_) => None,
    };
    let (reads, write) = match item.form {
        Form::Alu { immediate: false, .. } => (vec![a, b], Some(d)),
        Form::Alu { immediate: true, .. } | Form::Load { .. } => (vec![a], Some(d)),
        Form::Constant(_) => (vec![], Some(d)),
        Form::Half { .. } => (vec![d], Some(d)),
        Form::Store { .. } => (vec![a, d], None),
        Form::Jump { link } => (vec![], link.then_some(RA)),
        Form::Branch { .. } | Form::JumpRegister | Form::LoadVector | Form::StoreVector => (vec![a], None),
        Form::MoveMask => (vec![a], Some(RM)),
        Form::MaskConstant(_) => (vec![], Some(RM)),
        Form::Lanes { a, b, .. } => ([a, b].into_iter().filter_map(scalar).collect(), None),
        Form::Splat(a) => (scalar(a).into_iter().collect(), None),
        Form::Compare { a, b, .. } => ([a, b].into_iter().filter_map(scalar).collect(), Some(d)),
        Form::Nop => (vec![], None),
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
    /// The [`State`].
    pub state: Value,
    /// The vector registers.
    pub vectors: Value,
    registers: BTreeMap<u8, Variable>,
    table: Value,
    pages: Value,
    /// Memory is a view.
    views: bool,
    last_branch: Variable,
    left: Variable,
    /// Takes the PC, what is left of the budget, the address of the last operation if its result can be lost, and whether a branch
    /// went to the PC.
    exit: Block,
    blocks: BTreeMap<Spot, Block>,
    /// Blocks to be translated.
    work: Vec<Spot>,
    /// Signatures by number of operands.
    units: BTreeMap<usize, SigRef>,
}

impl Builder<'_> {
    pub fn constant(&mut self, value: u32) -> Value {
        self.b.ins().iconst(I32, i64::from(value))
    }

    pub fn register(&mut self, number: u8) -> Value {
        match self.registers.get(&(number & 63)) {
            Some(&variable) => self.b.use_var(variable),
            // All registers of the operations have variables.
            None => self.constant(0),
        }
    }

    pub fn set(&mut self, number: u8, value: Value) {
        if let Some(&variable) = self.registers.get(&(number & 63)) {
            self.b.def_var(variable, value);
        }
    }

    /// The budget when `done` more operations are done.
    fn left_after(&mut self, done: usize) -> Value {
        let left = self.b.use_var(self.left);
        if done == 0 {
            return left;
        }
        let done = self.b.ins().iconst(I64, done as i64);
        self.b.ins().isub(left, done)
    }

    /// Takes instructions that are done off the budget.
    fn count(&mut self, done: usize) {
        let left = self.left_after(done);
        self.b.def_var(self.left, left);
    }

    /// Leaves the region for the operation at `pc`, by a branch or otherwise.
    fn exit(&mut self, pc: Value, left: Value, last_long: u32, branched: bool) {
        let last_long = self.constant(last_long);
        let branched = self.constant(branched.into());
        self.b
            .ins()
            .jump(self.exit, &[pc.into(), left.into(), last_long.into(), branched.into()]);
    }

    /// Leaves the region in front of operation `done` of a block.
    fn exit_before(&mut self, pc: u32, done: usize, long: bool) {
        let left = self.left_after(done);
        let here = self.constant(pc);
        self.exit(here, left, if long { pc.wrapping_sub(4) } else { NOWHERE }, false);
    }

    /// A block of its own for what is done if `condition` is not 0; both blocks have no other way in.
    pub fn split(&mut self, condition: Value) -> (Block, Block) {
        let [yes, no] = [(); 2].map(|()| self.b.create_block());
        self.b.ins().brif(condition, yes, &[], no, &[]);
        self.b.seal_block(yes);
        self.b.seal_block(no);
        (yes, no)
    }

    /// Goes on only if `condition` is 0; leaves in front of operation `done` of the block otherwise.
    pub fn leave_if(&mut self, condition: Value, pc: u32, done: usize, long: bool) {
        let (leave, on) = self.split(condition);
        self.b.set_cold_block(leave);
        self.b.switch_to_block(leave);
        self.exit_before(pc, done, long);
        self.b.switch_to_block(on);
    }

    /// Leaves in front of a load from a page that the view does not have yet.
    fn leave_if_absent(&mut self, entry: Value, pc: u32, done: usize, long: bool) {
        if self.views {
            let zero = self.constant(0);
            let absent = self.b.ins().icmp(IntCC::Equal, entry, zero);
            self.leave_if(absent, pc, done, long);
        }
    }

    /// Ends a block: the next operation is that at `pc`.
    pub fn go(&mut self, pc: u32, known: Known) {
        if !self.region.has(pc) {
            self.exit_before(pc, 0, known.long);
            return;
        }
        let spot = Spot { pc, known };
        let block = match self.blocks.get(&spot) {
            Some(&block) => block,
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
            // Every spot to be translated has a block.
            return;
        };
        self.b.switch_to_block(block);
        let mut known = spot.known;
        if let Some(needed) = self.region.needed(spot.pc) {
            let left = self.b.use_var(self.left);
            let needed = self.b.ins().iconst(I64, i64::from(needed));
            let short = self.b.ins().icmp(IntCC::UnsignedLessThan, left, needed);
            self.leave_if(short, spot.pc, 0, known.long);
        }
        let items = self.region.block(spot.pc);
        for (done, &Item { pc, op, form }) in items.iter().enumerate() {
            match form {
                Form::Alu { op: alu, immediate } => {
                    let a = self.register(op.a);
                    let b = if immediate {
                        Second::Immediate(op.imm as u32)
                    } else {
                        Second::Register(self.register(op.b))
                    };
                    let value = self.alu(alu, a, b);
                    self.set(op.d, value);
                    known.long = is_slow(alu);
                }
                Form::MoveMask => {
                    let value = self.register(op.a);
                    self.set(RM, value);
                    self.count(done + 1);
                    self.set_mask(value, pc.wrapping_add(4));
                    return;
                }
                Form::MaskConstant(value) => {
                    let mask = self.constant(value);
                    self.set(RM, mask);
                    self.count(done + 1);
                    self.set_constant_mask(value, pc.wrapping_add(4));
                    return;
                }
                Form::Lanes { op: alu, a, b } => {
                    self.lanes(alu, op.d, [a, b], known.full);
                    known.long = is_slow(alu);
                }
                Form::Splat(source) => {
                    self.lanes(AluOp::Move, op.d, [source; 2], known.full);
                    known.long = false;
                }
                Form::Compare { op: alu, a, b } => {
                    let value = self.compare(alu, [a, b]);
                    self.set(op.d, value);
                    known.long = is_slow(alu);
                }
                Form::LoadVector => {
                    let (address, special) = self.address(op, 64);
                    self.leave_if(special, pc, done, known.long);
                    let entry = self.entry(address);
                    self.leave_if_absent(entry, pc, done, known.long);
                    let place = self.place(entry, address);
                    self.load_vector(op.d, place, known.full);
                    known.long = true;
                }
                Form::StoreVector => {
                    let (address, special) = self.address(op, 64);
                    let entry = self.entry(address);
                    let unwritable = self.unwritable(entry);
                    let special = self.b.ins().bor(special, unwritable);
                    self.leave_if(special, pc, done, known.long);
                    let place = self.place(entry, address);
                    self.store_vector(op.d, place);
                    known.long = false;
                }
                // After an operation that can be lost it is as that one.
                Form::Nop => {}
                Form::Constant(value) => {
                    let value = self.constant(value);
                    self.set(op.d, value);
                    known.long = false;
                }
                Form::Half { kept, new } => {
                    let old = self.register(op.d);
                    let kept = self.constant(kept);
                    let old = self.b.ins().band(old, kept);
                    let new = self.constant(new);
                    let value = self.b.ins().bor(old, new);
                    self.set(op.d, value);
                    known.long = false;
                }
                Form::Load { bytes, signed } => {
                    let (address, special) = self.address(op, bytes);
                    self.leave_if(special, pc, done, known.long);
                    let entry = self.entry(address);
                    self.leave_if_absent(entry, pc, done, known.long);
                    let place = self.place(entry, address);
                    let flags = MemFlagsData::trusted();
                    let ins = self.b.ins();
                    let value = match (bytes, signed) {
                        (1, true) => ins.sload8(I32, flags, place, 0),
                        (1, false) => ins.uload8(I32, flags, place, 0),
                        (2, true) => ins.sload16(I32, flags, place, 0),
                        (2, false) => ins.uload16(I32, flags, place, 0),
                        _ => ins.load(I32, flags, place, 0),
                    };
                    self.set(op.d, value);
                    known.long = true;
                }
                Form::Store { bytes } => {
                    let (address, special) = self.address(op, bytes);
                    let entry = self.entry(address);
                    let unwritable = self.unwritable(entry);
                    let special = self.b.ins().bor(special, unwritable);
                    self.leave_if(special, pc, done, known.long);
                    let place = self.place(entry, address);
                    let value = self.register(op.d);
                    let flags = MemFlagsData::trusted();
                    match bytes {
                        1 => self.b.ins().istore8(flags, value, place, 0),
                        2 => self.b.ins().istore16(flags, value, place, 0),
                        _ => self.b.ins().store(flags, value, place, 0),
                    };
                    known.long = false;
                }
                Form::Jump { link } => {
                    if self.taken(pc, done, known.long) {
                        if link {
                            let next = self.constant(pc.wrapping_add(4));
                            self.set(RA, next);
                        }
                        self.go_taken(target(pc, op), known);
                    }
                    return;
                }
                Form::Branch { zero } => {
                    let value = self.register(op.a);
                    let (nonzero, is_zero) = self.split(value);
                    let (branch, on) = if zero { (is_zero, nonzero) } else { (nonzero, is_zero) };
                    self.b.switch_to_block(branch);
                    if self.taken(pc, done, known.long) {
                        self.go_taken(target(pc, op), known);
                    }
                    self.b.switch_to_block(on);
                    known.long = false;
                }
                Form::JumpRegister => {
                    let to = self.register(op.a);
                    let here = self.constant(pc);
                    // Where a thread may end.
                    let itself = self.b.ins().icmp(IntCC::Equal, to, here);
                    self.leave_if(itself, pc, done, known.long);
                    if self.taken(pc, done, known.long) {
                        self.go_to_register(to, known);
                    }
                    return;
                }
            }
        }
        self.count(items.len());
        if let Some(last) = items.last() {
            self.go(last.pc.wrapping_add(4), known);
        }
    }

    /// Goes where a taken branch goes.
    fn go_taken(&mut self, to: u32, known: Known) {
        if self.region.has(to) {
            self.go(to, Known { long: false, ..known });
        } else {
            let left = self.b.use_var(self.left);
            let to = self.constant(to);
            self.exit(to, left, NOWHERE, true);
        }
    }

    /// A taken branch as operation `done` of its block; `false` when that is for the definition, and the block has ended.
    fn taken(&mut self, pc: u32, done: usize, long: bool) -> bool {
        if long {
            self.exit_before(pc, done, long);
            return false;
        }
        let here = self.constant(pc);
        self.b.def_var(self.last_branch, here);
        self.count(done + 1);
        true
    }

    /// Goes to an address that is in a register.
    fn go_to_register(&mut self, to: Value, known: Known) {
        let targets: Vec<u32> = self.region.targets().collect();
        for target in targets {
            let expected = self.constant(target);
            let is_it = self.b.ins().icmp(IntCC::Equal, to, expected);
            let (yes, no) = self.split(is_it);
            self.b.switch_to_block(yes);
            self.go_taken(target, known);
            self.b.switch_to_block(no);
        }
        let left = self.b.use_var(self.left);
        self.exit(to, left, NOWHERE, true);
    }

    /// The address of an access, and whether it is misaligned or in I/O space.
    pub fn address(&mut self, op: Op, bytes: u32) -> (Value, Value) {
        let base = self.register(op.a);
        let address = if op.imm == 0 {
            base
        } else {
            let offset = self.constant(op.imm as u32);
            self.b.ins().iadd(base, offset)
        };
        // The low bits of an address go to its top, and make it larger than all aligned addresses.
        let bits = bytes.trailing_zeros();
        let turned = if bits == 0 {
            address
        } else {
            let bits = self.constant(bits);
            self.b.ins().rotr(address, bits)
        };
        let io = self.constant(npu_mc::machine::IO_BASE >> bits);
        let special = self.b.ins().icmp(IntCC::UnsignedGreaterThanOrEqual, turned, io);
        (address, special)
    }

    /// The entry of the page table.
    pub fn entry(&mut self, address: Value) -> Value {
        let shift = self.constant(PAGE_SIZE.trailing_zeros());
        let slot = self.b.ins().ushr(address, shift);
        let slot = self.b.ins().uextend(I64, slot);
        let two = self.b.ins().iconst(I64, 2);
        let slot = self.b.ins().ishl(slot, two);
        let slot = self.b.ins().iadd(self.table, slot);
        // Nothing that is done here changes the table.
        let flags = MemFlagsData::trusted().with_readonly().with_can_move();
        self.b.ins().load(I32, flags, slot, 0)
    }

    /// Whether a store to the page has to do more than to store: pages never written have entry 0, those with something special
    /// about them a bit above the index.
    pub fn unwritable(&mut self, entry: Value) -> Value {
        let one = self.constant(1);
        let number = self.b.ins().isub(entry, one);
        let last = self.constant(PLAIN_LAST - 1);
        self.b.ins().icmp(IntCC::UnsignedGreaterThan, number, last)
    }

    /// The place of an address on the host.
    pub fn place(&mut self, entry: Value, address: Value) -> Value {
        let index = self.constant(MEMORY_INDEX);
        let index = self.b.ins().band(entry, index);
        let index = self.b.ins().uextend(I64, index);
        let shift = self.b.ins().iconst(I64, i64::from(PAGE_SIZE.trailing_zeros()));
        let page = self.b.ins().ishl(index, shift);
        let page = self.b.ins().iadd(self.pages, page);
        let low = self.constant(PAGE_SIZE - 1);
        let offset = self.b.ins().band(address, low);
        let offset = self.b.ins().uextend(I64, offset);
        self.b.ins().iadd(page, offset)
    }

    fn second(&mut self, b: Second) -> Value {
        match b {
            Second::Register(value) => value,
            Second::Immediate(value) => self.constant(value),
        }
    }

    /// A shift of which no bit is left from an amount of `bits` on.
    fn shift(&mut self, b: Second, bits: u32, shifted: impl FnOnce(&mut Self, Value) -> Value) -> Value {
        match b {
            Second::Immediate(amount) if amount >= bits => self.constant(0),
            Second::Immediate(amount) => {
                let amount = self.constant(amount);
                shifted(self, amount)
            }
            Second::Register(amount) => {
                let shifted = shifted(self, amount);
                let bits = self.constant(bits);
                let inside = self.b.ins().icmp(IntCC::UnsignedLessThan, amount, bits);
                let zero = self.constant(0);
                self.b.ins().select(inside, shifted, zero)
            }
        }
    }

    /// What an operation on scalars makes.
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "`Form::of` has let nothing else in but copies"
    )]
    fn alu(&mut self, op: AluOp, a: Value, second: Second) -> Value {
        match op {
            AluOp::Ashr => {
                return self.shift(second, 64, |this, amount| {
                    let wide = this.b.ins().sextend(I64, a);
                    let wide = this.b.ins().ushr(wide, amount);
                    this.b.ins().ireduce(I32, wide)
                });
            }
            AluOp::Shr => return self.shift(second, 32, |this, amount| this.b.ins().ushr(a, amount)),
            AluOp::Shl => return self.shift(second, 32, |this, amount| this.b.ins().ishl(a, amount)),
            _ => {}
        }
        let b = self.second(second);
        if let Some(condition) = condition(op) {
            let holds = self.b.ins().icmp(condition, a, b);
            return self.b.ins().uextend(I32, holds);
        }
        if let Some(unit) = unit(op) {
            return self.call(&unit, &[a, b]);
        }
        macro_rules! high {
            ($extend:ident) => {{
                let a = self.b.ins().$extend(I64, a);
                let b = self.b.ins().$extend(I64, b);
                let product = self.b.ins().imul(a, b);
                let half = self.b.ins().iconst(I64, 32);
                let high = self.b.ins().ushr(product, half);
                self.b.ins().ireduce(I32, high)
            }};
        }
        match op {
            AluOp::Not => self.b.ins().bnot(a),
            AluOp::Or => self.b.ins().bor(a, b),
            AluOp::And => self.b.ins().band(a, b),
            AluOp::Xor => self.b.ins().bxor(a, b),
            AluOp::Add => self.b.ins().iadd(a, b),
            AluOp::Sub => self.b.ins().isub(a, b),
            AluOp::Mull => self.b.ins().imul(a, b),
            AluOp::Mulhs => high!(sextend),
            AluOp::Mulhu => high!(uextend),
            AluOp::Clz => self.b.ins().clz(a),
            AluOp::Ctz => self.b.ins().ctz(a),
            AluOp::Sext8 => {
                let low = self.b.ins().ireduce(I8, a);
                self.b.ins().sextend(I32, low)
            }
            AluOp::Sext16 => {
                let low = self.b.ins().ireduce(I16, a);
                self.b.ins().sextend(I32, low)
            }
            AluOp::Cmpfeq => self.float_compare(IntCC::Equal, a, b),
            AluOp::Cmpfne => self.float_compare(IntCC::NotEqual, a, b),
            AluOp::Cmpfgt => self.float_compare(IntCC::UnsignedGreaterThan, a, b),
            AluOp::Cmpfge => self.float_compare(IntCC::UnsignedGreaterThanOrEqual, a, b),
            AluOp::Cmpflt => self.float_compare(IntCC::UnsignedLessThan, a, b),
            AluOp::Cmpfle => self.float_compare(IntCC::UnsignedLessThanOrEqual, a, b),
            _ => a,
        }
    }

    /// A compare of floats as the hardware does it ([`crate::fp::gt`]): those of one sign by their bits, of two the other way round.
    fn float_compare(&mut self, condition: IntCC, a: Value, b: Value) -> Value {
        let differing = self.b.ins().bxor(a, b);
        let sign = self.constant(31);
        let turn = self.b.ins().sshr(differing, sign);
        let a = self.b.ins().bxor(a, turn);
        let b = self.b.ins().bxor(b, turn);
        let holds = self.b.ins().icmp(condition, a, b);
        let [yes, no] = [0xffff, 0].map(|value| self.constant(value));
        self.b.ins().select(holds, yes, no)
    }

    fn call(&mut self, unit: &Unit, operands: &[Value]) -> Value {
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

    /// The one way out.
    fn leave(mut self, scalars: Value, written: &BTreeSet<u8>) {
        let exit = self.exit;
        let pc = self.b.append_block_param(exit, I32);
        let left = self.b.append_block_param(exit, I64);
        let last_long = self.b.append_block_param(exit, I32);
        let branched = self.b.append_block_param(exit, I32);
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
        ];
        for (value, offset) in fields {
            self.b.ins().store(flags, value, self.state, offset as i32);
        }
        self.b.ins().return_(&[]);
        self.b.seal_all_blocks();
        self.b.finalize(self.config);
    }
}
