//! From predecoded operations to CLIF.
//!
//! The registers of a region are variables: read at its entry, written back where it is left. `Region::find` says which operations
//! belong to it; whatever else is reached leaves it in front of that operation.

use super::host::State;
use crate::alu::operations;
use crate::memory::{MEMORY_INDEX, PAGE_SIZE, PLAIN_LAST};
use crate::operands::is_slow;
use crate::predecode::{Kind, Op, PAGE_WORDS, PageOps};
use crate::registers::RA;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{I8, I16, I32, I64};
use cranelift_codegen::ir::{AbiParam, Block, BlockArg, Function, InstBuilder, MemFlagsData, Value};
use cranelift_codegen::isa::TargetFrontendConfig;
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext, Variable};
use npu_mc::raw::AluOp;
use std::collections::{BTreeMap, BTreeSet};
use std::mem::offset_of;

/// Not the address of a branch: those are multiples of four.
pub(super) const NO_BRANCH: u32 = 1;

/// Not the address of an instruction of long latency.
const NOWHERE: u32 = u32::MAX;

/// Operations of a region.
const LIMIT: usize = 400;

/// Operations that are translated together, by their place in the page.
pub(super) struct Region {
    head: usize,
    /// Address of the page.
    base: u32,
    ops: BTreeMap<usize, Op>,
    /// Where blocks begin.
    leaders: BTreeSet<usize>,
}

/// What a kind is in terms of the R format, and whether its second operand is the immediate.
fn alu_op(kind: Kind) -> Option<(AluOp, bool)> {
    macro_rules! by_kind {
        ($($name:ident, $immediate:ident = $form:ident $(($function:expr))?;)*) => {
            $(
                if kind == Kind::$name {
                    return Some((AluOp::$name, false));
                }
                if kind == Kind::$immediate {
                    return Some((AluOp::$name, true));
                }
            )*
        };
    }
    operations!(by_kind);
    None
}

/// What becomes of an operation.
enum Form {
    /// Sd = Sa op second operand
    Alu {
        op: AluOp,
        immediate: bool,
    },
    Nop,
    /// Sd = this
    Constant(u32),
    /// Sd = (Sd & first) | second
    Half(u32, u32),
    Load {
        bytes: u32,
        signed: bool,
    },
    Store {
        bytes: u32,
    },
    /// Always taken; sets `ra` or does not.
    Jump {
        link: bool,
    },
    /// Taken if Sa is 0, or is not.
    Branch {
        zero: bool,
    },
}

#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "what is not known here is for the interpreter"
)]
fn form(op: Op, pc: u32) -> Option<Form> {
    if let Some((alu, immediate)) = alu_op(op.kind) {
        return is_translated(alu).then_some(Form::Alu { op: alu, immediate });
    }
    let imm = op.imm as u32;
    Some(match op.kind {
        Kind::Nop => Form::Nop,
        Kind::AddPc => Form::Constant(pc.wrapping_add(imm)),
        Kind::Movei => Form::Constant(imm),
        Kind::Moveil => Form::Half(0xffff_0000, imm),
        Kind::Moveih => Form::Half(0x0000_ffff, imm << 16),
        Kind::LoadS8 => Form::Load { bytes: 1, signed: true },
        Kind::LoadU8 => Form::Load {
            bytes: 1,
            signed: false,
        },
        Kind::LoadS16 => Form::Load { bytes: 2, signed: true },
        Kind::LoadU16 => Form::Load {
            bytes: 2,
            signed: false,
        },
        Kind::Load32 => Form::Load {
            bytes: 4,
            signed: false,
        },
        Kind::Store8 => Form::Store { bytes: 1 },
        Kind::Store16 => Form::Store { bytes: 2 },
        Kind::Store32 => Form::Store { bytes: 4 },
        Kind::Jump => Form::Jump { link: false },
        Kind::Call => Form::Jump { link: true },
        Kind::Beqz => Form::Branch { zero: true },
        Kind::Bnez => Form::Branch { zero: false },
        _ => return None,
    })
}

/// Whether [`Builder::alu`] knows the operation.
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "what is not known here is for the interpreter"
)]
fn is_translated(op: AluOp) -> bool {
    match op {
        AluOp::Not | AluOp::Or | AluOp::And | AluOp::Xor | AluOp::Add | AluOp::Sub | AluOp::Move => true,
        AluOp::Mull | AluOp::Mulhs | AluOp::Mulhu | AluOp::Ashr | AluOp::Shr | AluOp::Shl => true,
        AluOp::Clz | AluOp::Ctz | AluOp::Sext8 | AluOp::Sext16 | AluOp::Sext32 => true,
        op => condition(op).is_some(),
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "everything else is no integer compare")]
fn condition(op: AluOp) -> Option<IntCC> {
    Some(match op {
        AluOp::Cmpeq => IntCC::Equal,
        AluOp::Cmpne => IntCC::NotEqual,
        AluOp::Cmpgt => IntCC::SignedGreaterThan,
        AluOp::Cmpge => IntCC::SignedGreaterThanOrEqual,
        AluOp::Cmplt => IntCC::SignedLessThan,
        AluOp::Cmple => IntCC::SignedLessThanOrEqual,
        AluOp::Cmpugt => IntCC::UnsignedGreaterThan,
        AluOp::Cmpuge => IntCC::UnsignedGreaterThanOrEqual,
        AluOp::Cmpult => IntCC::UnsignedLessThan,
        AluOp::Cmpule => IntCC::UnsignedLessThanOrEqual,
        _ => return None,
    })
}

/// The place in the page where a branch goes, if it is in the page.
fn target(at: usize, op: Op) -> Option<usize> {
    let target = at.checked_add_signed(op.imm as isize)?;
    (target < PAGE_WORDS).then_some(target)
}

impl Region {
    /// What is reached from the address `head` in its page; `None` when that never comes back to it.
    pub fn find(page: &PageOps, head: u32) -> Option<Region> {
        let base = head & !(PAGE_SIZE - 1);
        let head = (head % PAGE_SIZE / 4) as usize;
        let mut region = Region {
            head,
            base,
            ops: BTreeMap::new(),
            leaders: BTreeSet::from([head]),
        };
        let mut returns = false;
        let mut work = vec![head];
        while let Some(mut at) = work.pop() {
            while at < PAGE_WORDS && region.ops.len() < LIMIT && !region.ops.contains_key(&at) {
                let op = page[at];
                let Some(form) = form(op, region.pc(at)) else {
                    break;
                };
                region.ops.insert(at, op);
                let (branches, goes_on) = match form {
                    Form::Jump { .. } => (true, false),
                    Form::Branch { .. } => (true, true),
                    Form::Alu { .. }
                    | Form::Nop
                    | Form::Constant(_)
                    | Form::Half(..)
                    | Form::Load { .. }
                    | Form::Store { .. } => (false, true),
                };
                if branches && let Some(target) = target(at, op) {
                    returns |= target == head;
                    region.leaders.insert(target);
                    work.push(target);
                }
                if branches {
                    region.leaders.insert(at + 1);
                }
                if !goes_on {
                    break;
                }
                at += 1;
            }
        }
        returns.then_some(region)
    }

    /// Whether it is still what the page has.
    pub fn is_of(&self, page: &PageOps) -> bool {
        self.ops.iter().all(|(&at, op)| page[at] == *op)
    }

    fn pc(&self, at: usize) -> u32 {
        self.base + at as u32 * 4
    }

    /// The operations of the block that begins at a place.
    fn block(&self, leader: usize) -> Vec<(usize, Op)> {
        let mut ops = Vec::new();
        let mut at = leader;
        while let Some(&op) = self.ops.get(&at) {
            ops.push((at, op));
            at += 1;
            if self.leaders.contains(&at) {
                break;
            }
        }
        ops
    }
}

/// Fills `function` with the translation of a region: `fn(&mut State)`.
pub(super) fn build(
    region: &Region,
    function: &mut Function,
    context: &mut FunctionBuilderContext,
    config: TargetFrontendConfig,
) {
    function.signature.params.push(AbiParam::new(I64));
    let mut b = FunctionBuilder::new(function, context);
    let entry = b.create_block();
    b.append_block_params_for_function_params(entry);
    b.switch_to_block(entry);
    let state = b.block_params(entry)[0];
    let field = |b: &mut FunctionBuilder<'_>, ty, offset: usize| {
        b.ins().load(ty, MemFlagsData::trusted(), state, offset as i32)
    };
    let scalars = field(&mut b, I64, offset_of!(State<'_>, scalars));
    let table = field(&mut b, I64, offset_of!(State<'_>, table));
    let pages = field(&mut b, I64, offset_of!(State<'_>, pages));
    let first_left = field(&mut b, I64, offset_of!(State<'_>, left));
    let (mut used, mut written) = (BTreeSet::new(), BTreeSet::new());
    for (&at, &op) in &region.ops {
        // Fields that a kind does not use hold 63, which names no register.
        used.extend([op.d, op.a, op.b].map(|number| number & 63));
        match form(op, region.pc(at)) {
            Some(Form::Alu { .. } | Form::Constant(_) | Form::Half(..) | Form::Load { .. }) => {
                written.insert(op.d & 63);
            }
            Some(Form::Jump { link: true }) => {
                written.insert(RA);
            }
            Some(Form::Nop | Form::Store { .. } | Form::Jump { link: false } | Form::Branch { .. }) | None => {}
        }
    }
    used.extend(&written);
    let registers = used.into_iter().map(|number| {
        let variable = b.declare_var(I32);
        let value = field_of_register(&mut b, scalars, number);
        b.def_var(variable, value);
        (number, variable)
    });
    let registers: BTreeMap<u8, Variable> = registers.collect();
    let nowhere = b.ins().iconst(I32, i64::from(NOWHERE));
    let no_branch = b.ins().iconst(I32, i64::from(NO_BRANCH));
    let [last_long, last_branch] = [nowhere, no_branch].map(|value| {
        let variable = b.declare_var(I32);
        b.def_var(variable, value);
        variable
    });
    let left = b.declare_var(I64);
    b.def_var(left, first_left);
    let exit = b.create_block();
    b.set_cold_block(exit);
    let leaders = region.leaders.iter().filter(|leader| region.ops.contains_key(leader));
    let blocks: BTreeMap<usize, Block> = leaders.map(|&leader| (leader, b.create_block())).collect();
    let mut builder = Builder {
        region,
        b,
        registers,
        table,
        pages,
        nowhere,
        last_long,
        last_branch,
        left,
        exit,
        blocks,
    };
    builder.go(region.head);
    let starts: Vec<(usize, Block)> = builder.blocks.iter().map(|(&leader, &block)| (leader, block)).collect();
    for (leader, block) in starts {
        builder.b.switch_to_block(block);
        builder.block(&region.block(leader));
    }
    builder.leave(config, state, scalars, &written);
}

fn field_of_register(b: &mut FunctionBuilder<'_>, scalars: Value, number: u8) -> Value {
    b.ins()
        .load(I32, MemFlagsData::trusted(), scalars, i32::from(number) * 4)
}

/// What is known about the operation before, as far as results can be lost.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Before {
    /// Only the variable knows.
    Unknown,
    Short,
    Long,
}

struct Builder<'a> {
    region: &'a Region,
    b: FunctionBuilder<'a>,
    registers: BTreeMap<u8, Variable>,
    table: Value,
    pages: Value,
    nowhere: Value,
    last_long: Variable,
    last_branch: Variable,
    left: Variable,
    /// Takes the PC and what is left of the budget.
    exit: Block,
    blocks: BTreeMap<usize, Block>,
}

impl Builder<'_> {
    fn constant(&mut self, value: u32) -> Value {
        self.b.ins().iconst(I32, i64::from(value))
    }

    fn register(&mut self, number: u8) -> Value {
        match self.registers.get(&(number & 63)) {
            Some(&variable) => self.b.use_var(variable),
            // All registers of the operations have variables.
            None => self.constant(0),
        }
    }

    fn set(&mut self, number: u8, value: Value) {
        if let Some(&variable) = self.registers.get(&(number & 63)) {
            self.b.def_var(variable, value);
        }
    }

    fn set_long(&mut self, pc: u32) {
        let value = self.constant(pc);
        self.b.def_var(self.last_long, value);
    }

    /// The budget when `done` operations of the block are done.
    fn left_after(&mut self, done: usize) -> Value {
        let left = self.b.use_var(self.left);
        let done = self.b.ins().iconst(I64, done as i64);
        self.b.ins().isub(left, done)
    }

    fn exit_args(&mut self, pc: u32, done: usize) -> [BlockArg; 2] {
        let left = self.left_after(done);
        let pc = self.constant(pc);
        [pc.into(), left.into()]
    }

    /// Goes on only if `condition` is 0; leaves in front of operation `done` of the block otherwise.
    fn leave_if(&mut self, condition: Value, pc: u32, done: usize) {
        let args = self.exit_args(pc, done);
        let on = self.b.create_block();
        self.b.ins().brif(condition, self.exit, &args, on, &[]);
        self.b.switch_to_block(on);
    }

    /// Ends a block.
    fn go(&mut self, at: usize) {
        if let Some(&block) = self.blocks.get(&at) {
            self.b.ins().jump(block, &[]);
        } else {
            let pc = self.region.base.wrapping_add(at as u32 * 4);
            let args = self.exit_args(pc, 0);
            self.b.ins().jump(self.exit, &args);
        }
    }

    fn block(&mut self, ops: &[(usize, Op)]) {
        let Some(&(first, _)) = ops.first() else {
            return;
        };
        let left = self.b.use_var(self.left);
        let needed = self.b.ins().iconst(I64, ops.len() as i64);
        let short = self.b.ins().icmp(IntCC::UnsignedLessThan, left, needed);
        self.leave_if(short, self.region.pc(first), 0);
        let mut before = Before::Unknown;
        for (done, &(at, op)) in ops.iter().enumerate() {
            let pc = self.region.pc(at);
            let Some(form) = form(op, pc) else {
                return;
            };
            match form {
                Form::Alu { op: alu, immediate } => {
                    let a = self.register(op.a);
                    let b = if immediate {
                        self.constant(op.imm as u32)
                    } else {
                        self.register(op.b)
                    };
                    let value = self.alu(alu, a, b);
                    self.set(op.d, value);
                    before = Before::Short;
                    if is_slow(alu) {
                        self.set_long(pc);
                        before = Before::Long;
                    }
                }
                Form::Nop => match before {
                    Before::Short => {}
                    Before::Long => self.set_long(pc),
                    Before::Unknown => {
                        let last = self.b.use_var(self.last_long);
                        let previous = self.constant(pc.wrapping_sub(4));
                        let adjacent = self.b.ins().icmp(IntCC::Equal, last, previous);
                        let here = self.constant(pc);
                        let value = self.b.ins().select(adjacent, here, last);
                        self.b.def_var(self.last_long, value);
                    }
                },
                Form::Constant(value) => {
                    let value = self.constant(value);
                    self.set(op.d, value);
                    before = Before::Short;
                }
                Form::Half(kept, new) => {
                    let old = self.register(op.d);
                    let kept = self.constant(kept);
                    let old = self.b.ins().band(old, kept);
                    let new = self.constant(new);
                    let value = self.b.ins().bor(old, new);
                    self.set(op.d, value);
                    before = Before::Short;
                }
                Form::Load { bytes, signed } => {
                    let (entry, offset) = self.address(op, bytes, pc, done);
                    let place = self.place(entry, offset);
                    let flags = MemFlagsData::trusted();
                    let ins = self.b.ins();
                    let value = match (bytes, signed) {
                        (1, true) => ins.sload8(I32, flags, place, 0),
                        (1, false) => ins.uload8(I32, flags, place, 0),
                        (2, true) => ins.sload16(I32, flags, place, 0),
                        (2, false) => ins.uload16(I32, flags, place, 0),
                        _ => ins.load(I32, flags, place, 0),
                    };
                    self.set_long(pc);
                    self.set(op.d, value);
                    before = Before::Long;
                }
                Form::Store { bytes } => {
                    let (entry, offset) = self.address(op, bytes, pc, done);
                    // Pages never written have entry 0, those with something special about them a bit above the index.
                    let one = self.constant(1);
                    let number = self.b.ins().isub(entry, one);
                    let last = self.constant(PLAIN_LAST - 1);
                    let special = self.b.ins().icmp(IntCC::UnsignedGreaterThan, number, last);
                    self.leave_if(special, pc, done);
                    let place = self.place(entry, offset);
                    let value = self.register(op.d);
                    let flags = MemFlagsData::trusted();
                    match bytes {
                        1 => self.b.ins().istore8(flags, value, place, 0),
                        2 => self.b.ins().istore16(flags, value, place, 0),
                        _ => self.b.ins().store(flags, value, place, 0),
                    };
                    before = Before::Short;
                }
                Form::Jump { link } => {
                    self.taken(at, op, done, before, link);
                    return;
                }
                Form::Branch { zero } => {
                    let value = self.register(op.a);
                    let [on, branch] = [(); 2].map(|()| self.b.create_block());
                    let (not_zero, is_zero) = if zero { (on, branch) } else { (branch, on) };
                    self.b.ins().brif(value, not_zero, &[], is_zero, &[]);
                    self.b.switch_to_block(branch);
                    self.taken(at, op, done, before, false);
                    self.b.switch_to_block(on);
                }
            }
        }
        let left = self.left_after(ops.len());
        self.b.def_var(self.left, left);
        if let Some(&(last, _)) = ops.last() {
            self.go(last + 1);
        }
    }

    /// A taken branch, which ends a block after `done` other operations.
    fn taken(&mut self, at: usize, op: Op, done: usize, before: Before, link: bool) {
        let pc = self.region.pc(at);
        match before {
            // What is before it can be lost: that is for the definition.
            Before::Long => {
                let args = self.exit_args(pc, done);
                self.b.ins().jump(self.exit, &args);
                return;
            }
            Before::Unknown => {
                let last = self.b.use_var(self.last_long);
                let previous = self.constant(pc.wrapping_sub(4));
                let adjacent = self.b.ins().icmp(IntCC::Equal, last, previous);
                self.leave_if(adjacent, pc, done);
            }
            // Words of a translation do not change while it runs, and nothing long was before it.
            Before::Short => {}
        }
        self.b.def_var(self.last_long, self.nowhere);
        let here = self.constant(pc);
        self.b.def_var(self.last_branch, here);
        if link {
            let next = self.constant(pc.wrapping_add(4));
            self.set(RA, next);
        }
        let left = self.left_after(done + 1);
        self.b.def_var(self.left, left);
        match target(at, op) {
            Some(target) => self.go(target),
            None => {
                let args = self.exit_args(pc.wrapping_add((op.imm as u32) << 2), 0);
                self.b.ins().jump(self.exit, &args);
            }
        }
    }

    /// The entry of the page table for an access, and the offset in the page as 64 bits. Leaves where the access is special.
    fn address(&mut self, op: Op, bytes: u32, pc: u32, done: usize) -> (Value, Value) {
        let base = self.register(op.a);
        let offset = self.constant(op.imm as u32);
        let address = self.b.ins().iadd(base, offset);
        if bytes > 1 {
            let low = self.constant(bytes - 1);
            let misaligned = self.b.ins().band(address, low);
            self.leave_if(misaligned, pc, done);
        }
        let io = self.constant(npu_mc::machine::IO_BASE);
        let special = self.b.ins().icmp(IntCC::UnsignedGreaterThanOrEqual, address, io);
        self.leave_if(special, pc, done);
        let shift = self.constant(PAGE_SIZE.trailing_zeros());
        let slot = self.b.ins().ushr(address, shift);
        let slot = self.b.ins().uextend(I64, slot);
        let two = self.b.ins().iconst(I64, 2);
        let slot = self.b.ins().ishl(slot, two);
        let slot = self.b.ins().iadd(self.table, slot);
        let entry = self.b.ins().load(I32, MemFlagsData::trusted(), slot, 0);
        let low = self.constant(PAGE_SIZE - 1);
        let offset = self.b.ins().band(address, low);
        (entry, self.b.ins().uextend(I64, offset))
    }

    fn place(&mut self, entry: Value, offset: Value) -> Value {
        let index = self.constant(MEMORY_INDEX);
        let index = self.b.ins().band(entry, index);
        let index = self.b.ins().uextend(I64, index);
        let shift = self.b.ins().iconst(I64, i64::from(PAGE_SIZE.trailing_zeros()));
        let page = self.b.ins().ishl(index, shift);
        let page = self.b.ins().iadd(self.pages, page);
        self.b.ins().iadd(page, offset)
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "`is_translated` has let nothing else in")]
    fn alu(&mut self, op: AluOp, a: Value, b: Value) -> Value {
        if let Some(condition) = condition(op) {
            let holds = self.b.ins().icmp(condition, a, b);
            return self.b.ins().uextend(I32, holds);
        }
        // A shift of which no bit is left from this amount on.
        macro_rules! shift {
            ($shifted:expr, $bits:expr) => {{
                let shifted = $shifted;
                let bits = self.constant($bits);
                let inside = self.b.ins().icmp(IntCC::UnsignedLessThan, b, bits);
                let zero = self.constant(0);
                self.b.ins().select(inside, shifted, zero)
            }};
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
            AluOp::Ashr => {
                let wide = self.b.ins().sextend(I64, a);
                let wide = self.b.ins().ushr(wide, b);
                shift!(self.b.ins().ireduce(I32, wide), 64)
            }
            AluOp::Shr => shift!(self.b.ins().ushr(a, b), 32),
            AluOp::Shl => shift!(self.b.ins().ishl(a, b), 32),
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
            _ => a,
        }
    }

    /// The one way out.
    fn leave(mut self, config: TargetFrontendConfig, state: Value, scalars: Value, written: &BTreeSet<u8>) {
        let exit = self.exit;
        let pc = self.b.append_block_param(exit, I32);
        let left = self.b.append_block_param(exit, I64);
        self.b.switch_to_block(exit);
        let flags = MemFlagsData::trusted();
        for &number in written {
            let value = self.register(number);
            self.b.ins().store(flags, value, scalars, i32::from(number) * 4);
        }
        let last_long = self.b.use_var(self.last_long);
        let last_branch = self.b.use_var(self.last_branch);
        let fields = [
            (pc, offset_of!(State<'_>, pc)),
            (left, offset_of!(State<'_>, left)),
            (last_long, offset_of!(State<'_>, last_long)),
            (last_branch, offset_of!(State<'_>, last_branch)),
        ];
        for (value, offset) in fields {
            self.b.ins().store(flags, value, state, offset as i32);
        }
        self.b.ins().return_(&[]);
        self.b.seal_all_blocks();
        self.b.finalize(config);
    }
}
