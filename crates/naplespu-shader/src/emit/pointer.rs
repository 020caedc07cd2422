//! Where variables live, and addresses of them and of their parts.

use crate::layout::{Layout, Ty};
use cranelift_codegen::ir::{StackSlot, Value};
use cranelift_frontend::Variable;
use naga::{GlobalVariable, Handle};
use smallvec::SmallVec;
use std::rc::Rc;

/// Where a variable lives.
#[derive(Clone, Debug)]
pub(crate) enum Root {
    Registers(Rc<[Variable]>),
    Stack(StackSlot),
    Workgroup(u32),
    Buffer { address: Value, is_read_only: bool },
}

/// A kind of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Memory {
    Stack,
    Workgroup,
    Buffer { is_read_only: bool },
}

impl Memory {
    /// Returns the layout of variables in this memory.
    pub fn layout(self) -> Layout {
        match self {
            Self::Buffer { .. } => Layout::Host,
            Self::Stack | Self::Workgroup => Layout::Words,
        }
    }
}

/// The address of a variable or of a part of it.
#[derive(Clone, Debug)]
pub(crate) struct Pointer {
    pub ty: Ty,
    pub place: Place,
}

#[derive(Clone, Debug)]
pub(crate) enum Place {
    Registers {
        variables: Rc<[Variable]>,
        /// The first scalar, if all indices of `steps` are 0.
        first: u32,
        steps: SmallVec<[Step; 1]>,
    },
    Memory {
        memory: Memory,
        base: Value,
        offset: u32,
        /// Whether all indices are in their range, if that is not known.
        guard: Option<Value>,
        global: Option<Handle<GlobalVariable>>,
    },
}

/// A dynamic index into variables in registers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub index: Value,
    pub count: u32,
    pub stride: u32,
}

impl Pointer {
    /// Returns the variable of the buffer that the pointer is derived from.
    pub fn global(&self) -> Option<Handle<GlobalVariable>> {
        match self.place {
            Place::Memory { global, .. } => global,
            Place::Registers { .. } => None,
        }
    }
}
