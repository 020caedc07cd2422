//! A function as basic blocks of machine instructions: what every pass after allocation reads and writes.
//!
//! Registers are those of the machine, by type. Blocks stand in layout order; the instructions of all of them are one list,
//! of which every block is a range. A block ends with its first branch, calls included, or falls through into the next one.
//! [`MachFunction::push`] and [`MachFunction::bind`] build a function; passes change it through an
//! [`Editor`](super::edit::Editor), and those that replace branches by sequences through [`MachFunction::rebuild`].

use super::effects::Effects;
use crate::code::{LabelLoc, RelocTarget};
use crate::error::CompileError;
use crate::inst::LANES;
use crate::vcode::Origin;
use cranelift_codegen::ir::{self, ExceptionTag, TrapCode, ValueLabel};
use npu_mc::reloc::Reloc as RelocKind;
use std::fmt;
use std::ops::Range;

/// The name of a basic block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Label(u32);

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "L{}", self.0)
    }
}

/// What the immediate of an instruction waits for.
#[derive(Clone, Debug, PartialEq)]
pub enum Fixup {
    /// Nothing.
    None,
    /// The distance from this instruction to the label, in bytes.
    Branch(Label),
    /// An entry of a branch table: a branch that has to stay one instruction.
    TableEntry {
        /// Where it goes.
        target: Label,
        /// The end of the table, where there is room for veneers.
        end: Label,
    },
    /// The upper half of the distance from the instruction `after` bytes further on to the label.
    FarHigh {
        /// Where it goes.
        target: Label,
        /// Bytes from this instruction to the one that adds the distance to its own address.
        after: u32,
    },
    /// The lower half of the same.
    FarLow {
        /// Where it goes.
        target: Label,
        /// Bytes from this instruction to the one that adds the distance to its own address.
        after: u32,
    },
    /// The linker, with the address of the label.
    Address {
        /// Relocation type.
        kind: RelocKind,
        /// What is addressed.
        target: Label,
    },
    /// The linker, with the address of a vector after the code.
    Pool {
        /// Relocation type.
        kind: RelocKind,
        /// Which vector.
        index: u32,
    },
    /// The linker.
    Reloc {
        /// Relocation type.
        kind: RelocKind,
        /// Symbol.
        target: RelocTarget,
        /// Constant added to its address.
        addend: i64,
    },
}

/// What an instruction has to do with calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CallKind {
    /// Nothing.
    #[default]
    None,
    /// It jumps to a function, which returns to the next instruction.
    Call,
    /// It jumps to a function and ends this one.
    TailCall,
}

/// What an instruction has to do with the frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FrameStep {
    /// Nothing, beside using it.
    #[default]
    None,
    /// It is one of those that make the frame.
    Enter,
    /// It is one of those that remove it before the function ends.
    Leave,
}

/// An instruction of the machine and what its bytes still wait for.
#[derive(Clone, Debug)]
pub struct McInst {
    /// The instruction, with 0 where a fixup will write.
    pub inst: npu_mc::Inst,
    /// What its immediate waits for.
    pub fixup: Fixup,
    /// Where it comes from.
    pub origin: Origin,
    /// The trap that this branch leads to.
    pub trap: Option<TrapCode>,
    /// Whether the next instruction must follow directly: its distance is part of this one.
    pub glued: bool,
    /// Whether this is the jump of a call.
    pub call: CallKind,
    /// Whether it makes or removes the frame.
    pub frame: FrameStep,
}

impl McInst {
    /// An instruction that waits for nothing.
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

    /// Whether it may change the program counter; then it ends its block.
    pub fn is_branch(&self) -> bool {
        self.inst.desc().flags.is_branch()
    }
}

/// A labelled value in one place, for a range of instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LiveRange {
    /// The label.
    pub label: ValueLabel,
    /// Index of the first instruction before which the value is there.
    pub start: usize,
    /// One past the last.
    pub end: usize,
    /// The place.
    pub loc: LabelLoc,
}

/// A call that catches exceptions, or whose callee removes stack arguments.
#[derive(Clone, Debug)]
pub struct CallSite {
    /// The block that the callee returns to.
    pub after: Label,
    /// Bytes of stack arguments that the callee removes.
    pub popped: u32,
    /// The handlers, in the order in which they are asked.
    pub handlers: Vec<SiteHandler>,
}

/// An exception handler of a call.
#[derive(Clone, Copy, Debug)]
pub struct SiteHandler {
    /// The exceptions that it catches; all if there is none.
    pub tag: Option<ExceptionTag>,
    /// Its block.
    pub block: Label,
    /// Where its context is: bytes above the stack pointer in the body.
    pub context: Option<u32>,
}

/// A basic block: a label, a body, and a branch at the end unless the block falls through.
#[derive(Clone, Copy, Debug)]
struct Block {
    /// What branches call it; none if it is only fallen into.
    label: Option<Label>,
    /// Index of its first instruction.
    start: usize,
}

/// A function as basic blocks.
#[derive(Clone, Debug, Default)]
pub struct MachFunction {
    /// The instructions of all blocks, in layout order.
    pub(super) insts: Vec<McInst>,
    /// The effects of each instruction; empty until a pass asks.
    pub(super) effects: Vec<Effects>,
    /// The blocks in layout order. They cover the instructions; some may be empty.
    blocks: Vec<Block>,
    /// Whether the last block takes more instructions.
    open: bool,
    /// For each label the number of its block; none until it is bound.
    labels: Vec<Option<usize>>,
    /// The labels of the blocks that were blocks of the VCode, in layout order.
    pub vcode_blocks: Vec<Label>,
    /// Where labelled values are.
    pub(super) places: Vec<LiveRange>,
    /// Vectors that stand after the code.
    pub pool: Vec<[u32; LANES]>,
    /// What unwinding has to know of calls.
    pub call_sites: Vec<CallSite>,
    /// Where the sequence points with debug tags are.
    pub sequence_points: Vec<(Label, ir::Inst)>,
}

impl MachFunction {
    /// The instructions of all blocks, in layout order.
    pub fn insts(&self) -> &[McInst] {
        &self.insts
    }

    /// Where labelled values are.
    pub fn places(&self) -> &[LiveRange] {
        &self.places
    }

    /// How many blocks there are.
    pub fn block_count(&self) -> usize {
        self.blocks.len()
    }

    /// The instructions of a block, as indices into the list of all.
    pub fn block_range(&self, block: usize) -> Range<usize> {
        let start = |number: usize| self.blocks.get(number).map_or(self.insts.len(), |block| block.start);
        start(block)..start(block + 1)
    }

    /// What branches call a block; none if it is only fallen into.
    pub fn label(&self, block: usize) -> Option<Label> {
        self.blocks.get(block)?.label
    }

    /// The branch at the end of a block; none if it falls through.
    pub fn terminator(&self, block: usize) -> Option<&McInst> {
        let last = self.insts[self.block_range(block)].last();
        last.filter(|inst| inst.is_branch())
    }

    /// A new label, not bound yet.
    pub fn new_label(&mut self) -> Label {
        let label = Label(self.labels.len() as u32);
        self.labels.push(None);
        label
    }

    /// Makes room for this many instructions and blocks.
    pub fn reserve(&mut self, insts: usize, blocks: usize) {
        self.insts.reserve(insts);
        self.blocks.reserve(blocks);
        self.labels.reserve(blocks);
        self.vcode_blocks.reserve(blocks);
    }

    /// Starts a block with this label after the instructions that are there now.
    pub fn bind(&mut self, label: Label) {
        self.labels[label.0 as usize] = Some(self.blocks.len());
        self.blocks.push(Block {
            label: Some(label),
            start: self.insts.len(),
        });
        self.open = true;
    }

    /// Appends an instruction to the last block, or to a new one if that has its branch already.
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

    /// The instruction that was appended last.
    pub fn last_mut(&mut self) -> Option<&mut McInst> {
        self.insts.last_mut()
    }

    /// Says of the instructions from the index on what they have to do with the frame.
    pub fn mark_since(&mut self, index: usize, step: FrameStep) {
        self.insts.iter_mut().skip(index).for_each(|inst| inst.frame = step);
    }

    /// The block with the label; none if it is not bound.
    pub fn block_of(&self, label: Label) -> Option<usize> {
        *self.labels.get(label.0 as usize)?
    }

    /// Index of the first instruction of the block with the label.
    ///
    /// # Errors
    ///
    /// [`CompileError::Internal`] if the label is not bound.
    pub fn position(&self, label: Label) -> Result<usize, CompileError> {
        self.block_of(label)
            .and_then(|block| Some(self.blocks.get(block)?.start))
            .ok_or_else(|| CompileError::internal("layout", label, "a label that is bound"))
    }

    /// Builds the function anew: each block starts as it did, and each instruction is replaced by what `replace` appends for
    /// it. `replace` gets the new function so far, the index of the instruction and the instruction.
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
        self.move_places(&new_position);
    }

    /// Puts instructions, none of them a branch, before those at the indices, which rise, and into their blocks.
    pub(super) fn insert(&mut self, inserted: Vec<(usize, McInst)>) {
        let Some(&(first, _)) = inserted.first() else {
            return;
        };
        self.effects.clear();
        // What starts at the index of a new instruction starts with it.
        let mut before = 0;
        for block in &mut self.blocks {
            while inserted.get(before).is_some_and(|&(index, _)| index < block.start) {
                before += 1;
            }
            block.start += before;
        }
        if !self.places.is_empty() {
            let mut before = 0;
            let new_position = (0..=self.insts.len()).map(|old| {
                while inserted.get(before).is_some_and(|&(index, _)| index < old) {
                    before += 1;
                }
                old + before
            });
            self.move_places(&new_position.collect::<Vec<_>>());
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

    /// Finds the effects of all instructions, if they are not known.
    pub(super) fn find_effects(&mut self) {
        if self.effects.len() != self.insts.len() {
            self.effects.clear();
            self.effects
                .extend(self.insts.iter().map(|inst| Effects::of(&inst.inst)));
        }
    }

    /// Takes out the instructions that are marked, none of them a branch.
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
        self.move_places(&new_position);
    }

    /// Corrects the table of labelled values after instructions moved to new positions.
    pub(super) fn move_places(&mut self, new_position: &[usize]) {
        for place in &mut self.places {
            for position in [&mut place.start, &mut place.end] {
                if let Some(&new) = new_position.get(*position) {
                    *position = new;
                }
            }
        }
        self.places.retain(|place| place.start < place.end);
    }
}
