//! Selection of the operations that are translated together, and their forms.

use super::operations::{Condition, Translation, translation};
use crate::predecode::{Kind, Op};
use crate::registers::{RA, RM};
use npu_mc::for_each_alu_op;
use npu_mc::raw::{AluOp, MemOp};
use std::collections::{BTreeMap, BTreeSet};

/// The maximum number of operations that the search for a region visits.
const DISCOVERED: usize = 1200;

/// The maximum number of operations of a region that is a loop.
const LIMIT: usize = 400;

/// The maximum number of operations of other regions.
const STRAIGHT_LIMIT: usize = 150;

/// The maximum number of operations without a budget check, which is also the maximum number left
/// to the interpreter when the budget ends.
const UNCHECKED: u32 = 24;

/// The maximum number of expected targets of jumps to a register.
const TARGETS: usize = 16;

/// The form in which an operation is translated.
#[derive(Clone, Copy, Debug)]
pub(super) enum Form {
    /// Sd = Sa op second operand
    Alu {
        op: AluOp,
        immediate: bool,
    },
    Nop,
    /// Sd = this value
    Constant(u32),
    /// Sd = (Sd & kept) | new
    Half {
        kept: u32,
        new: u32,
    },
    Load {
        bytes: u32,
        signed: bool,
    },
    Store {
        bytes: u32,
    },
    /// A jump, with a write of `ra` if `link`.
    Jump {
        link: bool,
    },
    /// A branch if Sa is 0, or if Sa is not 0.
    Branch {
        zero: bool,
    },
    /// A jump to Sa.
    JumpRegister,
    /// `rm` and the lane mask = Sa
    MoveMask,
    /// `rm` and the lane mask = this value
    MaskConstant(u32),
    /// Vd = a op b, by lanes
    Lanes {
        op: AluOp,
        a: Source,
        b: Source,
    },
    /// Vd = this value in every lane
    Splat(Source),
    /// Sd = the lanes in which a op b holds
    Compare {
        op: AluOp,
        condition: Condition,
        a: Source,
        b: Source,
    },
    /// `rm` and the lane mask = the lanes in which a op b holds
    CompareMask {
        op: AluOp,
        condition: Condition,
        a: Source,
        b: Source,
    },
    LoadVector,
    StoreVector,
    /// A load of a word of the scratchpad.
    LoadScratchpad,
    StoreScratchpad,
    /// Lanes of Vd = (the lane & kept) | new
    HalfLanes {
        kept: u32,
        new: u32,
    },
    /// Vd = the lanes of Va with the numbers in Vb
    Shuffle,
    /// Sd = the lane of Va with this number, or with the number in Sb
    GetLane {
        number: Option<u8>,
    },
    /// Sd = bit 0 of each lane of Va
    MakeMask,
    /// Vd = the extended low bytes of the words of a line
    LoadNarrow(MemOp),
    /// The packed line = the low bytes of the lanes of Vd
    StoreNarrow(MemOp),
    /// A load of words of the scratchpad.
    LoadVectorScratchpad,
    StoreVectorScratchpad,
}

/// A source of an operation on lanes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Source {
    Vector(u8),
    Scalar(u8),
    Immediate(u32),
}

impl Form {
    /// Returns the form of the operation at `pc`, or `None` if it requires the interpreter.
    fn of(op: Op, pc: u32) -> Option<Form> {
        let load = |bytes, signed| Form::Load { bytes, signed };
        let imm = op.imm as u32;
        let (a, b) = (Source::Vector(op.a), Source::Vector(op.b));
        macro_rules! by_kind {
            ($($name:ident $(, $immediate:ident)?;)*) => {
                match op.kind {
                    $(
                        Kind::$name => Form::scalar(AluOp::$name, false)?,
                        $(Kind::$immediate => Form::scalar(AluOp::$name, true)?,)?
                    )*
                    Kind::MoveMask => Form::MoveMask,
                    Kind::MoveiMask => Form::MaskConstant(imm),
                    Kind::VectorVector => Form::lanes(imm as u8, a, b)?,
                    Kind::VectorScalar => Form::lanes(imm as u8, a, Source::Scalar(op.b))?,
                    Kind::ScalarVector => Form::lanes(imm as u8, Source::Scalar(op.a), b)?,
                    Kind::VectorImmediate => Form::lanes(op.b, a, Source::Immediate(imm))?,
                    Kind::CompareVectors => Form::compare(op.d, imm as u8, a, b)?,
                    Kind::CompareVectorScalar => Form::compare(op.d, imm as u8, a, Source::Scalar(op.b))?,
                    Kind::CompareVectorImmediate => Form::compare(op.d, op.b, a, Source::Immediate(imm))?,
                    Kind::Splat => Form::Splat(Source::Scalar(op.a)),
                    Kind::SplatImmediate => Form::Splat(Source::Immediate(imm)),
                    Kind::LoadVector => Form::LoadVector,
                    Kind::StoreVector => Form::StoreVector,
                    Kind::Nop => Form::Nop,
                    Kind::AddPc => Form::Constant(pc.wrapping_add(imm)),
                    Kind::Movei => Form::Constant(imm),
                    Kind::Moveil => Form::Half { kept: 0xffff_0000, new: imm },
                    Kind::Moveih => Form::Half { kept: 0x0000_ffff, new: imm << 16 },
                    Kind::LoadS8 => load(1, true),
                    Kind::LoadU8 => load(1, false),
                    Kind::LoadS16 => load(2, true),
                    Kind::LoadU16 => load(2, false),
                    Kind::Load32 => load(4, false),
                    Kind::Store8 => Form::Store { bytes: 1 },
                    Kind::Store16 => Form::Store { bytes: 2 },
                    Kind::Store32 => Form::Store { bytes: 4 },
                    Kind::MoveilVector => Form::HalfLanes { kept: 0xffff_0000, new: imm },
                    Kind::MoveihVector => Form::HalfLanes { kept: 0x0000_ffff, new: imm << 16 },
                    Kind::ShuffleVectors => Form::Shuffle,
                    Kind::GetLaneOf => Form::GetLane { number: None },
                    Kind::GetLaneImmediate => Form::GetLane { number: Some(imm as u8) },
                    Kind::MakeMask if op.d != RM => Form::MakeMask,
                    Kind::LoadNarrow => Form::LoadNarrow(MemOp::from_code(op.b)?),
                    Kind::StoreNarrow => Form::StoreNarrow(MemOp::from_code(op.b)?),
                    Kind::LoadVectorScratchpad => Form::LoadVectorScratchpad,
                    Kind::StoreVectorScratchpad => Form::StoreVectorScratchpad,
                    Kind::LoadScratchpad => Form::LoadScratchpad,
                    Kind::StoreScratchpad => Form::StoreScratchpad,
                    Kind::Jump => Form::Jump { link: false },
                    Kind::Call => Form::Jump { link: true },
                    Kind::Beqz => Form::Branch { zero: true },
                    Kind::Bnez => Form::Branch { zero: false },
                    Kind::JumpRegister => Form::JumpRegister,
                    Kind::MakeMask | Kind::Slow | Kind::Break | Kind::NotYet | Kind::PageEnd => return None,
                }
            };
        }
        Some(for_each_alu_op!(by_kind))
    }

    /// Returns the form of an operation of the R format on scalars.
    fn scalar(op: AluOp, immediate: bool) -> Option<Form> {
        match translation(op) {
            Translation::Other => None,
            Translation::Host(_)
            | Translation::Extend(_)
            | Translation::Shift(..)
            | Translation::Scalar(..)
            | Translation::Call(..)
            | Translation::Compare(_) => Some(Form::Alu { op, immediate }),
        }
    }

    /// Returns the form of an operation by lanes.
    fn lanes(code: u8, a: Source, b: Source) -> Option<Form> {
        let op = AluOp::from_code(code)?;
        match translation(op) {
            Translation::Compare(_) | Translation::Other => None,
            Translation::Host(_)
            | Translation::Extend(_)
            | Translation::Shift(..)
            | Translation::Scalar(..)
            | Translation::Call(..) => Some(Form::Lanes { op, a, b }),
        }
    }

    /// Returns the form of a compare of lanes with destination register `d`.
    fn compare(d: u8, code: u8, a: Source, b: Source) -> Option<Form> {
        let op = AluOp::from_code(code)?;
        let Translation::Compare(condition) = translation(op) else {
            return None;
        };
        Some(if d == RM {
            Form::CompareMask { op, condition, a, b }
        } else {
            Form::Compare { op, condition, a, b }
        })
    }

    /// Returns whether the operation ends its block.
    fn ends_block(self) -> bool {
        use Form::{Branch, CompareMask, Jump, JumpRegister, MaskConstant, MoveMask};
        matches!(
            self,
            Jump { .. } | Branch { .. } | JumpRegister | MoveMask | MaskConstant(_) | CompareMask { .. }
        )
    }

    /// Returns whether the operation depends on the lane mask or sets it.
    fn is_masked(self) -> bool {
        use Form::{
            CompareMask, HalfLanes, Lanes, LoadNarrow, LoadVector, LoadVectorScratchpad, MaskConstant, MoveMask,
            Shuffle, Splat, StoreVectorScratchpad,
        };
        let on_lanes = matches!(self, Lanes { .. } | HalfLanes { .. } | Splat(_) | Shuffle);
        let loads = matches!(self, LoadVector | LoadNarrow(_) | LoadVectorScratchpad);
        let sets = matches!(self, MoveMask | MaskConstant(_) | CompareMask { .. });
        on_lanes || loads || sets || matches!(self, StoreVectorScratchpad)
    }
}

/// Returns the target of a branch at `pc`.
pub(super) fn target(pc: u32, op: Op) -> u32 {
    pc.wrapping_add((op.imm as u32) << 2)
}

/// An operation of a region.
#[derive(Clone, Copy)]
pub(super) struct Item {
    pub pc: u32,
    pub op: Op,
    pub form: Form,
}

/// A set of operations that are translated together.
pub(super) struct Region {
    /// The address at which the region is entered.
    pub head: u32,
    items: BTreeMap<u32, Item>,
    /// The first addresses of blocks; some of them are outside of the region.
    leaders: BTreeSet<u32>,
    /// The expected targets of jumps to a register.
    targets: Vec<u32>,
    /// The blocks with a budget check, and the number of instructions that the budget has to cover
    /// there.
    checks: BTreeMap<u32, u32>,
    /// The registers that the operations access.
    touched: u64,
    /// Whether an operation depends on the lane mask.
    masked: bool,
}

impl Region {
    /// Finds the region of `head`: the operations on paths from the head back to it, or all
    /// reachable operations if no path returns. `at` returns the operation at an address,
    /// `register` the value of a register at the head. Returns `None` if the operation at the head
    /// requires the interpreter.
    pub fn find(head: u32, at: impl Fn(u32) -> Option<Op>, register: impl Fn(u8) -> u32) -> Option<Region> {
        let mut region = Region {
            head,
            items: BTreeMap::new(),
            leaders: BTreeSet::new(),
            targets: Vec::new(),
            checks: BTreeMap::new(),
            touched: 0,
            masked: false,
        };
        let order = region.discover(at, register);
        let mut loops = region.prune();
        let limit = if loops { LIMIT } else { STRAIGHT_LIMIT };
        if region.items.len() > limit {
            let kept = order.into_iter().filter(|pc| region.items.contains_key(pc)).take(limit);
            let kept: BTreeSet<u32> = kept.collect();
            region.items.retain(|pc, _| kept.contains(pc));
            loops = region.prune();
        }
        if !loops && region.items.len() > STRAIGHT_LIMIT {
            return None;
        }
        for item in region.items.values() {
            region.touched |= crate::fast::touched(item.op);
            region.masked |= item.form.is_masked();
        }
        region.find_leaders();
        region.find_checks();
        region.has(head).then_some(region)
    }

    /// Finds operations, those of the function of the head before those of its callees; returns
    /// their addresses in the order of discovery.
    fn discover(&mut self, at: impl Fn(u32) -> Option<Op>, register: impl Fn(u8) -> u32) -> Vec<u32> {
        let mut order = Vec::new();
        // Call depth, sequence number, address.
        let mut work = BTreeSet::from([(0, 0, self.head)]);
        let mut number = 0;
        while let Some((depth, _, first)) = work.pop_first() {
            let mut pc = first;
            while order.len() < DISCOVERED && !self.items.contains_key(&pc) {
                let Some(op) = at(pc) else {
                    break;
                };
                let Some(form) = Form::of(op, pc) else {
                    break;
                };
                let next = pc.wrapping_add(4);
                self.items.insert(pc, Item { pc, op, form });
                order.push(pc);
                let mut goes_to = |depth: u32, to: u32| {
                    number += 1;
                    work.insert((depth, number, to));
                };
                if let Form::Jump { link: true } = form {
                    goes_to(depth + 1, target(pc, op));
                    if self.expect(next) {
                        goes_to(depth, next);
                    }
                } else if let Form::Jump { .. } | Form::Branch { .. } = form {
                    goes_to(depth, target(pc, op));
                } else if let Form::JumpRegister = form {
                    let to = register(op.a);
                    // The callee is usually the same; a return goes to one of the calls.
                    if op.a != RA && to.is_multiple_of(4) && to != pc && self.expect(to) {
                        goes_to(depth + 1, to);
                    }
                } else if let Form::Constant(to) = form {
                    // The link of an indirect call.
                    if op.d == RA && op.kind == Kind::AddPc && to.is_multiple_of(4) && self.expect(to) {
                        goes_to(depth, to);
                    }
                }
                if matches!(form, Form::Jump { .. } | Form::JumpRegister) {
                    break;
                }
                pc = next;
            }
        }
        order
    }

    /// Keeps the operations on paths from the head back to it, or all operations that are reachable
    /// from the head if no path returns. Returns whether a path returns.
    fn prune(&mut self) -> bool {
        let mut before: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        let mut reached = BTreeSet::new();
        let mut work = vec![self.head];
        while let Some(pc) = work.pop() {
            let Some(item) = self.items.get(&pc) else {
                continue;
            };
            if reached.insert(pc) {
                for to in self.followers(item) {
                    before.entry(to).or_default().push(pc);
                    work.push(to);
                }
            }
        }
        let mut returning = BTreeSet::new();
        work.extend(before.get(&self.head).into_iter().flatten());
        while let Some(pc) = work.pop() {
            if returning.insert(pc) {
                work.extend(before.get(&pc).into_iter().flatten());
            }
        }
        let loops = !returning.is_empty();
        let kept = if loops { returning } else { reached };
        self.items.retain(|pc, _| kept.contains(pc));
        loops
    }

    /// Computes the starts of blocks: branch targets, the operations after branches, and some in
    /// the middle of long blocks.
    fn find_leaders(&mut self) {
        let mut leaders: BTreeSet<u32> = self.targets.iter().copied().collect();
        leaders.insert(self.head);
        for item in self.items.values() {
            if item.form.ends_block() {
                leaders.extend(self.followers(item));
            }
        }
        let (mut unchecked, mut expected) = (0, 0);
        for &pc in self.items.keys() {
            if leaders.contains(&pc) || pc != expected {
                unchecked = 0;
            } else if unchecked == UNCHECKED {
                leaders.insert(pc);
                unchecked = 0;
            }
            unchecked += 1;
            expected = pc.wrapping_add(4);
        }
        self.leaders = leaders;
    }

    /// Records an expected target of jumps to a register; returns `false` if the list is full.
    fn expect(&mut self, to: u32) -> bool {
        if self.targets.contains(&to) {
            return true;
        }
        let room = self.targets.len() < TARGETS;
        if room {
            self.targets.push(to);
        }
        room
    }

    /// Returns whether the operations are still those that `at` returns.
    pub fn is_of(&self, at: impl Fn(u32) -> Option<Op>) -> bool {
        self.items.values().all(|item| at(item.pc) == Some(item.op))
    }

    /// The registers that the operations access, scalar and vector combined.
    pub fn touched(&self) -> u64 {
        self.touched
    }

    /// Whether an operation depends on the lane mask.
    pub fn masked(&self) -> bool {
        self.masked
    }

    /// Returns the minimum budget at the head, in instructions.
    pub fn least(&self) -> u32 {
        self.checks.get(&self.head).copied().unwrap_or(UNCHECKED)
    }

    /// Returns the minimum budget at a block with a check, in instructions.
    pub fn needed(&self, leader: u32) -> Option<u32> {
        self.checks.get(&leader).copied()
    }

    /// Returns whether the operation at `pc` belongs to the region.
    pub fn has(&self, pc: u32) -> bool {
        self.items.contains_key(&pc)
    }

    /// Iterates over the expected targets of jumps to a register inside the region.
    pub fn targets(&self) -> impl Iterator<Item = u32> {
        self.targets.iter().copied().filter(|&to| self.has(to))
    }

    /// The number of block starts.
    pub fn leaders(&self) -> usize {
        self.leaders.len()
    }

    pub fn items(&self) -> impl Iterator<Item = &Item> {
        self.items.values()
    }

    /// Returns the operations of the block that starts at `leader`.
    pub fn block(&self, leader: u32) -> Vec<Item> {
        let mut block = Vec::new();
        let mut pc = leader;
        while let Some(&item) = self.items.get(&pc) {
            block.push(item);
            pc = pc.wrapping_add(4);
            if item.form.ends_block() || self.leaders.contains(&pc) {
                break;
            }
        }
        block
    }

    /// Returns the successors, inside the region, of the block that ends with `last`.
    fn followers(&self, last: &Item) -> Vec<u32> {
        let next = last.pc.wrapping_add(4);
        let all = if let Form::JumpRegister = last.form {
            self.targets().collect()
        } else if let Form::Jump { .. } = last.form {
            vec![target(last.pc, last.op)]
        } else if let Form::Branch { .. } = last.form {
            vec![target(last.pc, last.op), next]
        } else {
            vec![next]
        };
        all.into_iter().filter(|&to| self.has(to)).collect()
    }

    /// Places budget checks. Every cycle contains a backward branch: the target of such a branch
    /// checks the budget for all operations up to the next check. Further blocks get a check if
    /// this number would be too large.
    fn find_checks(&mut self) {
        let mut blocks = Vec::new();
        let mut checked = BTreeSet::from([self.head]);
        for &leader in self.leaders.iter().rev() {
            let block = self.block(leader);
            let Some(last) = block.last() else {
                continue;
            };
            let followers = self.followers(last);
            checked.extend(followers.iter().copied().filter(|&to| to <= leader));
            blocks.push((leader, block.len() as u32, followers));
        }
        // From the last block to the first: the count of every unchecked successor is already
        // known.
        let mut ahead: BTreeMap<u32, u32> = BTreeMap::new();
        for (leader, length, followers) in blocks {
            let unchecked = |checked: &BTreeSet<u32>| -> u32 {
                let open = followers.iter().filter(|to| !checked.contains(to));
                open.filter_map(|to| ahead.get(to)).copied().max().unwrap_or(0)
            };
            let mut all = length + unchecked(&checked);
            if all > UNCHECKED {
                checked.extend(&followers);
                all = length;
            }
            ahead.insert(leader, all);
        }
        let needed = |leader| Some((leader, *ahead.get(&leader)?));
        self.checks = checked.into_iter().filter_map(needed).collect();
    }
}
