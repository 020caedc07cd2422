//! A function as basic blocks of machine instructions: the form on which all passes after register
//! allocation work.
//!
//! Registers are machine registers. Blocks are in layout order; their instructions form one list,
//! and each block is a range of it. A block ends with its first branch (a call is a branch, too),
//! or falls through to the next block. [`MachFunction::push`] and [`MachFunction::bind`] build a
//! function. Passes change it through an [`Editor`](super::edit::Editor). Passes that replace
//! branches by sequences use [`MachFunction::rebuild`].

use super::effects::Effects;
use crate::code::{LabelLoc, RelocTarget};
use crate::error::CompileError;
use crate::inst::LANES;
use crate::vcode::Origin;
use cranelift_codegen::ir::{self, ExceptionTag, TrapCode, ValueLabel};
use npu_mc::reloc::Reloc as RelocKind;
use std::fmt;
use std::ops::Range;

/// The label of a basic block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Label(u32);

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "L{}", self.0)
    }
}

/// The value that the immediate of an instruction receives later.
#[derive(Clone, Debug, PartialEq)]
pub enum Fixup {
    /// The immediate is final.
    None,
    /// The distance from this instruction to the label, in bytes.
    Branch(Label),
    /// The distance to the target, in an entry of a branch table. The entry has to stay a single
    /// instruction.
    TableEntry {
        /// The target of the entry.
        target: Label,
        /// The end of the table, where veneers are inserted.
        end: Label,
    },
    /// The upper half of the distance to the label, measured from the instruction `after` bytes
    /// after this one.
    FarHigh {
        /// The target.
        target: Label,
        /// Bytes from this instruction to the one that adds the distance to its own address.
        after: u32,
    },
    /// The lower half of that distance.
    FarLow {
        /// The target.
        target: Label,
        /// Bytes from this instruction to the one that adds the distance to its own address.
        after: u32,
    },
    /// A relocation against the address of a label.
    Address {
        /// Relocation type.
        kind: RelocKind,
        /// The label.
        target: Label,
    },
    /// A relocation against the address of a vector in the constant pool after the code.
    Pool {
        /// Relocation type.
        kind: RelocKind,
        /// The number of the vector.
        index: u32,
    },
    /// A relocation against a symbol.
    Reloc {
        /// Relocation type.
        kind: RelocKind,
        /// Symbol.
        target: RelocTarget,
        /// Constant added to the symbol's address.
        addend: i64,
    },
}

/// The role of an instruction in a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CallKind {
    /// It is not the jump of a call.
    #[default]
    None,
    /// It jumps to a function that returns to the next instruction.
    Call,
    /// It jumps to a function and ends the current one.
    TailCall,
}

/// The role of an instruction in the setup and removal of the frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FrameStep {
    /// None. The instruction may still use the frame.
    #[default]
    None,
    /// It is part of the prologue.
    Enter,
    /// It is part of an epilogue.
    Leave,
}

/// A machine instruction with its fixup and metadata.
#[derive(Clone, Debug)]
pub struct McInst {
    /// The instruction, with 0 as the immediate that a fixup sets.
    pub inst: npu_mc::Inst,
    /// The fixup of the immediate.
    pub fixup: Fixup,
    /// The origin of the instruction.
    pub origin: Origin,
    /// The trap code, if this is a branch to a trap.
    pub trap: Option<TrapCode>,
    /// Whether the next instruction must follow directly, because the immediate of this one
    /// contains the distance.
    pub glued: bool,
    /// The role in a call.
    pub call: CallKind,
    /// The role in the setup and removal of the frame.
    pub frame: FrameStep,
}

impl McInst {
    /// Creates an instruction without a fixup.
    pub fn plain(inst: npu_mc::Inst, origin: Origin) -> Self {
        Self {
            inst,
            fixup: Fixup::None,
            origin,
            trap: None,
            glued: false,
            call: CallKind::None,
            frame: FrameStep::None,
        }
    }

    /// Returns whether the instruction may change the program counter. Such an instruction ends its
    /// block.
    pub fn is_branch(&self) -> bool {
        self.inst.desc().flags.is_branch()
    }
}

/// A location of a labelled value, for a range of instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LiveRange {
    /// The label.
    pub label: ValueLabel,
    /// Index of the first instruction before which the value has this location.
    pub start: usize,
    /// One past the index of the last such instruction.
    pub end: usize,
    /// The location.
    pub loc: LabelLoc,
}

/// A call that catches exceptions, or whose callee removes stack arguments.
#[derive(Clone, Debug)]
pub struct CallSite {
    /// The block to which the callee returns.
    pub after: Label,
    /// Bytes of stack arguments that the callee removes.
    pub popped: u32,
    /// The handlers, in the order in which they are tried.
    pub handlers: Vec<SiteHandler>,
}

/// An exception handler of a call.
#[derive(Clone, Copy, Debug)]
pub struct SiteHandler {
    /// The tag of the exceptions that it catches. `None` for a handler of all exceptions.
    pub tag: Option<ExceptionTag>,
    /// The block of the handler.
    pub block: Label,
    /// The location of its context, in bytes above the stack pointer in the body.
    pub context: Option<u32>,
}

/// A basic block: a label, a body, and a branch at the end unless the block falls through.
#[derive(Clone, Copy, Debug)]
struct Block {
    /// The label, if a branch targets the block.
    label: Option<Label>,
    /// Index of the first instruction.
    start: usize,
}

/// A function as basic blocks.
#[derive(Clone, Debug, Default)]
pub struct MachFunction {
    /// The instructions of all blocks, in layout order.
    pub(super) insts: Vec<McInst>,
    /// The effects of each instruction. Empty until a pass requests them.
    pub(super) effects: Vec<Effects>,
    /// The blocks in layout order. They cover all instructions, and some may be empty.
    blocks: Vec<Block>,
    /// Whether the last block accepts more instructions.
    open: bool,
    /// For each label the number of its block. `None` until the label is bound.
    labels: Vec<Option<usize>>,
    /// The labels of the VCode blocks, in layout order.
    pub vcode_blocks: Vec<Label>,
    /// The locations of labelled values.
    pub(super) value_locations: Vec<LiveRange>,
    /// The vectors of the constant pool after the code.
    pub pool: Vec<[u32; LANES]>,
    /// The calls with unwind information.
    pub call_sites: Vec<CallSite>,
    /// The positions of sequence points with debug tags.
    pub sequence_points: Vec<(Label, ir::Inst)>,
}

impl MachFunction {
    /// Returns the instructions of all blocks, in layout order.
    pub fn insts(&self) -> &[McInst] {
        &self.insts
    }

    /// Returns the locations of labelled values.
    pub fn value_locations(&self) -> &[LiveRange] {
        &self.value_locations
    }

    /// Returns the number of blocks.
    pub fn block_count(&self) -> usize {
        self.blocks.len()
    }

    /// Returns the range of the block's instructions in the list of all instructions.
    pub fn block_range(&self, block: usize) -> Range<usize> {
        let start = |number: usize| self.blocks.get(number).map_or(self.insts.len(), |block| block.start);
        start(block)..start(block + 1)
    }

    /// Returns the label of the block, if a branch targets it.
    pub fn label(&self, block: usize) -> Option<Label> {
        self.blocks.get(block)?.label
    }

    /// Returns the branch at the end of the block. `None` if the block falls through.
    pub fn terminator(&self, block: usize) -> Option<&McInst> {
        let last = self.insts[self.block_range(block)].last();
        last.filter(|inst| inst.is_branch())
    }

    /// Creates an unbound label.
    pub fn new_label(&mut self) -> Label {
        let label = Label(self.labels.len() as u32);
        self.labels.push(None);
        label
    }

    /// Reserves memory for this many more instructions and blocks.
    pub fn reserve(&mut self, insts: usize, blocks: usize) {
        self.insts.reserve(insts);
        self.blocks.reserve(blocks);
        self.labels.reserve(blocks);
        self.vcode_blocks.reserve(blocks);
    }

    /// Starts a block with this label after the existing instructions.
    pub fn bind(&mut self, label: Label) {
        self.labels[label.0 as usize] = Some(self.blocks.len());
        self.blocks.push(Block {
            label: Some(label),
            start: self.insts.len(),
        });
        self.open = true;
    }

    /// Appends an instruction to the last block, or to a new block if the last one already ends
    /// with a branch.
    pub fn push(&mut self, inst: McInst) {
        if !self.open {
            self.blocks.push(Block {
                label: None,
                start: self.insts.len(),
            });
        }
        self.open = !inst.is_branch();
        self.insts.push(inst);
    }

    /// Returns the last instruction.
    pub fn last_mut(&mut self) -> Option<&mut McInst> {
        self.insts.last_mut()
    }

    /// Sets the frame role of all instructions from `index` on.
    pub fn mark_since(&mut self, index: usize, step: FrameStep) {
        self.insts.iter_mut().skip(index).for_each(|inst| inst.frame = step);
    }

    /// Returns the block with the label. `None` if the label is unbound.
    pub fn block_of(&self, label: Label) -> Option<usize> {
        *self.labels.get(label.0 as usize)?
    }

    /// Returns the index of the first instruction of the block with the label.
    ///
    /// # Errors
    ///
    /// [`CompileError::Internal`] if the label is unbound.
    pub fn position(&self, label: Label) -> Result<usize, CompileError> {
        self.block_of(label)
            .and_then(|block| Some(self.blocks.get(block)?.start))
            .ok_or_else(|| CompileError::internal("layout", label, "a label that is bound"))
    }

    /// Rebuilds the function with the same blocks.
    ///
    /// `replace` receives the new function so far, the index of an instruction and the instruction.
    /// It appends the replacement of the instruction.
    pub fn rebuild(&mut self, mut replace: impl FnMut(&mut Self, usize, McInst)) {
        let blocks = std::mem::take(&mut self.blocks);
        let old = std::mem::take(&mut self.insts);
        self.open = false;
        self.effects.clear();
        self.insts.reserve(old.len() + old.len() / 8);
        let mut new_position = Vec::with_capacity(old.len() + 1);
        let mut blocks = blocks.into_iter().peekable();
        let mut start_blocks = |func: &mut Self, index: usize| {
            while let Some(block) = blocks.next_if(|block| block.start == index) {
                if let Some(label) = block.label {
                    func.bind(label);
                }
            }
        };
        for (index, inst) in old.into_iter().enumerate() {
            start_blocks(self, index);
            new_position.push(self.insts.len());
            replace(self, index, inst);
        }
        start_blocks(self, new_position.len());
        new_position.push(self.insts.len());
        self.move_value_locations(&new_position);
    }

    /// Inserts instructions before the instructions at the given indices, into their blocks. The
    /// indices rise, and no inserted instruction is a branch.
    pub(super) fn insert(&mut self, inserted: Vec<(usize, McInst)>) {
        let Some(&(first, _)) = inserted.first() else {
            return;
        };
        self.effects.clear();
        // A block or range that starts at the index of a new instruction starts with the new
        // instruction.
        let mut before = 0;
        for block in &mut self.blocks {
            while inserted.get(before).is_some_and(|&(index, _)| index < block.start) {
                before += 1;
            }
            block.start += before;
        }
        if !self.value_locations.is_empty() {
            let mut before = 0;
            let new_position = (0..=self.insts.len()).map(|old| {
                while inserted.get(before).is_some_and(|&(index, _)| index < old) {
                    before += 1;
                }
                old + before
            });
            self.move_value_locations(&new_position.collect::<Vec<_>>());
        }
        let rest = self.insts.split_off(first);
        self.insts.reserve(rest.len() + inserted.len());
        let (mut rest, mut at) = (rest.into_iter(), first);
        for (index, inst) in inserted {
            self.insts.extend(rest.by_ref().take(index - at));
            self.insts.push(inst);
            at = index;
        }
        self.insts.extend(rest);
    }

    /// Computes the effects of all instructions, unless they are up to date.
    pub(super) fn find_effects(&mut self) {
        if self.effects.len() != self.insts.len() {
            self.effects.clear();
            self.effects
                .extend(self.insts.iter().map(|inst| Effects::of(&inst.inst)));
        }
    }

    /// Removes the marked instructions. None of them is a branch.
    pub(super) fn remove(&mut self, removed: &[bool]) {
        let mut new_position = Vec::with_capacity(removed.len() + 1);
        let mut kept = 0;
        for &removed in removed {
            new_position.push(kept);
            kept += usize::from(!removed);
        }
        new_position.push(kept);
        let mut marks = removed.iter();
        self.insts.retain(|_| marks.next() == Some(&false));
        let mut marks = removed.iter();
        self.effects.retain(|_| marks.next() == Some(&false));
        for block in &mut self.blocks {
            block.start = new_position[block.start];
        }
        self.move_value_locations(&new_position);
    }

    /// Updates the table of labelled values after instructions moved to new positions.
    pub(super) fn move_value_locations(&mut self, new_position: &[usize]) {
        for range in &mut self.value_locations {
            for position in [&mut range.start, &mut range.end] {
                if let Some(&new) = new_position.get(*position) {
                    *position = new;
                }
            }
        }
        self.value_locations.retain(|range| range.start < range.end);
    }
}
