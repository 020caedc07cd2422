//! From allocated VCode to bytes.
//!
//! [`expand`](mod@expand) turns every VCode instruction into machine instructions with symbolic targets,
//! [`copies`](mod@copies) drops moves, [`spread`](mod@spread) unties values that share a register,
//! [`schedule`](mod@schedule) fills the time that results take, [`hazard`](mod@hazard) keeps the order free of what the
//! hardware gets wrong, [`relax`](mod@relax) replaces branches that do not reach, [`labels`](mod@labels) follows labelled
//! values through all this, and [`encode`](mod@encode) writes words, relocations, traps and debug information.

pub mod copies;
pub mod copy;
pub mod encode;
pub mod entry;
pub mod expand;
pub mod hazard;
pub mod labels;
pub mod masks;
pub mod print;
pub mod relax;
pub mod schedule;
pub mod spread;

use crate::code::RelocTarget;
use crate::inst::LANES;
use crate::vcode::Origin;
use cranelift_codegen::ir::{self, TrapCode};
use npu_mc::reloc::Reloc as RelocKind;

/// A place in the code of one function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Label(u32);

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
        /// The end of the table, where there is room for detours.
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
    /// The linker, with the address of a vector behind the code.
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
    /// It jumps to a function, which returns behind it.
    Call,
    /// It jumps to a function and ends this one.
    TailCall,
}

/// A machine instruction on its way to bytes.
#[derive(Clone, Debug)]
pub struct Item {
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

/// Machine instructions of a function, and the labels between them.
#[derive(Clone, Debug, Default)]
pub struct Items {
    /// The instructions in order.
    pub list: Vec<Item>,
    /// For each label the index of the instruction that it stands in front of.
    pub labels: Vec<usize>,
    /// The labels of the basic blocks in layout order.
    pub blocks: Vec<Label>,
    /// Where labelled values are.
    pub places: Vec<labels::Stretch>,
    /// Vectors that stand behind the code.
    pub pool: Vec<[u32; LANES]>,
    /// Where the sequence points with debug tags are.
    pub sequence_points: Vec<(Label, ir::Inst)>,
}

/// A label that stands nowhere yet.
const UNBOUND: usize = usize::MAX;

impl Items {
    /// A new label, not bound yet.
    pub fn new_label(&mut self) -> Label {
        self.labels.push(UNBOUND);
        Label(u32::try_from(self.labels.len() - 1).unwrap_or(u32::MAX))
    }

    /// Binds the label to the end of the list as it is now.
    pub fn bind(&mut self, label: Label) {
        self.labels[label.0 as usize] = self.list.len();
    }

    /// Index of the instruction that the label stands in front of.
    pub fn position(&self, label: Label) -> usize {
        self.labels[label.0 as usize]
    }

    /// Rebuilds the list: each instruction is replaced by what `replace` pushes for it, and labels move along.
    /// `replace` gets the new list so far, the index of the instruction and the instruction.
    pub fn rewrite(&mut self, mut replace: impl FnMut(&mut Vec<Item>, usize, Item)) {
        let old = std::mem::take(&mut self.list);
        let mut new_position = Vec::with_capacity(old.len() + 1);
        let mut list = Vec::with_capacity(old.len() + old.len() / 8);
        for (index, item) in old.into_iter().enumerate() {
            new_position.push(list.len());
            replace(&mut list, index, item);
        }
        new_position.push(list.len());
        let ends = self
            .places
            .iter_mut()
            .flat_map(|place| [&mut place.start, &mut place.end]);
        for position in self.labels.iter_mut().chain(ends) {
            if let Some(&new) = new_position.get(*position) {
                *position = new;
            }
        }
        self.places.retain(|place| place.start < place.end);
        self.list = list;
    }
}
