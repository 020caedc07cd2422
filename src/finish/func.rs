//! A function as machine instructions in straight line, with labels between them: what every pass after allocation reads and
//! writes.
//!
//! Registers are those of the machine, by type. [`MachFunction::rewrite`] and [`MachFunction::reorder`] are the only ways to
//! change how many instructions there are and where they stand; they keep labels and the places of labelled values right.

use crate::code::{LabelLoc, RelocTarget};
use crate::error::CompileError;
use crate::inst::LANES;
use crate::vcode::Origin;
use cranelift_codegen::ir::{self, TrapCode, ValueLabel};
use npu_mc::reloc::Reloc as RelocKind;
use std::fmt;

/// A place in the code of one function.
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
        }
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

/// Machine instructions of a function, and the labels between them.
#[derive(Clone, Debug, Default)]
pub struct MachFunction {
    /// The instructions in order.
    pub insts: Vec<McInst>,
    /// For each label the index of the instruction before which it stands; none until it is bound.
    labels: Vec<Option<usize>>,
    /// The labels of the basic blocks in layout order.
    pub blocks: Vec<Label>,
    /// Where labelled values are.
    pub places: Vec<LiveRange>,
    /// Vectors that stand after the code.
    pub pool: Vec<[u32; LANES]>,
    /// Where the sequence points with debug tags are.
    pub sequence_points: Vec<(Label, ir::Inst)>,
}

impl MachFunction {
    /// A new label, not bound yet.
    pub fn new_label(&mut self) -> Label {
        let label = Label(self.labels.len() as u32);
        self.labels.push(None);
        label
    }

    /// Binds the label to the end of the list as it is now.
    pub fn bind(&mut self, label: Label) {
        self.bind_at(label, self.insts.len());
    }

    /// Binds the label before the instruction at the index.
    pub fn bind_at(&mut self, label: Label, index: usize) {
        self.labels[label.0 as usize] = Some(index);
    }

    /// Index of the instruction before which the label stands; none if it is not bound.
    pub fn bound(&self, label: Label) -> Option<usize> {
        *self.labels.get(label.0 as usize)?
    }

    /// Index of the instruction before which the label stands.
    ///
    /// # Errors
    ///
    /// [`CompileError::Internal`] if it stands nowhere.
    pub fn position(&self, label: Label) -> Result<usize, CompileError> {
        self.bound(label)
            .ok_or_else(|| CompileError::internal("layout", label, "a label that is bound"))
    }

    /// The labels that are bound, with their positions.
    pub fn bound_labels(&self) -> impl Iterator<Item = (Label, usize)> {
        let numbered = (0..).map(Label).zip(&self.labels);
        numbered.filter_map(|(label, position)| Some((label, (*position)?)))
    }

    /// For each index, the end included, whether a label stands there.
    pub fn label_positions(&self) -> Vec<bool> {
        let mut list = vec![false; self.insts.len() + 1];
        for &position in self.labels.iter().flatten() {
            if let Some(flag) = list.get_mut(position) {
                *flag = true;
            }
        }
        list
    }

    /// Rebuilds the list: each instruction is replaced by what `replace` pushes for it, and labels move along.
    /// `replace` gets the new list so far, the index of the instruction and the instruction.
    pub fn rewrite(&mut self, mut replace: impl FnMut(&mut Vec<McInst>, usize, McInst)) {
        let old = std::mem::take(&mut self.insts);
        let mut new_position = Vec::with_capacity(old.len() + 1);
        let mut list = Vec::with_capacity(old.len() + old.len() / 8);
        for (index, inst) in old.into_iter().enumerate() {
            new_position.push(list.len());
            replace(&mut list, index, inst);
        }
        new_position.push(list.len());
        self.move_positions(&new_position);
        self.insts = list;
    }

    /// Removes the instructions that are marked.
    pub fn remove(&mut self, dead: &[bool]) {
        if !dead.contains(&true) {
            return;
        }
        let mut new_position = Vec::with_capacity(self.insts.len() + 1);
        let mut kept = 0;
        for &dead in dead {
            new_position.push(kept);
            kept += usize::from(!dead);
        }
        new_position.push(kept);
        let mut marks = dead.iter();
        self.insts.retain(|_| marks.next() == Some(&false));
        self.move_positions(&new_position);
    }

    fn move_positions(&mut self, new_position: &[usize]) {
        let ends = self
            .places
            .iter_mut()
            .flat_map(|place| [&mut place.start, &mut place.end]);
        for position in self.labels.iter_mut().flatten().chain(ends) {
            if let Some(&new) = new_position.get(*position) {
                *position = new;
            }
        }
        self.places.retain(|place| place.start < place.end);
    }
}
