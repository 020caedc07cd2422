//! The calling convention: where arguments and results live (`docs/abi.md`).
//!
//! A convention is td's list of actions, walked for one value at a time by a [`State`] that knows which
//! registers are taken and how much of the stack is used.

use crate::desc::Action;
use crate::reg::Reg;

/// The convention for arguments, the td record `CC_NaplesPU`.
pub use crate::desc::Convention;
pub use crate::generated::CC_NAPLESPU as ARGUMENTS;
/// Registers a callee has to preserve, in the order of their save slots; the td record `NaplesPUCSR`.
pub use crate::generated::NAPLESPUCSR as CALLEE_SAVED;
/// The convention for results, the td record `RetCC_NaplesPU`.
pub use crate::generated::RETCC_NAPLESPU as RETURNS;
pub use crate::generated::ValueType;

/// Where a value, or a part of one, lives.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Loc {
    /// In a register.
    Reg(Reg),
    /// In memory, in bytes up from the caller's `sp` at the call.
    Stack {
        /// Distance from `sp`.
        offset: u32,
        /// Bytes.
        size: u32,
        /// Alignment of the slot in bytes.
        align: u32,
    },
}

/// A place and the type of what is there. A promoted value has the wider type; its upper bits are undefined
/// unless the signature asks for an extension.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Place {
    /// The type that is held.
    pub ty: ValueType,
    /// Where.
    pub loc: Loc,
}

/// The convention has no place for a value: a result that does not fit in the registers goes through memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NoPlace {
    /// The type of the value.
    pub ty: ValueType,
}

impl core::fmt::Display for NoPlace {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "no register is left for a value of type {}", self.ty.name())
    }
}

impl core::error::Error for NoPlace {}

/// How deep types may be split within split parts.
const MAX_DEPTH: u32 = 4;

/// What is taken so far. Start one for the arguments of a signature and another one for its results.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct State {
    scalars: u64,
    vectors: u64,
    stack: u32,
    align: u32,
}

impl State {
    /// Nothing taken.
    pub const fn new() -> State {
        State {
            scalars: 0,
            vectors: 0,
            stack: 0,
            align: 1,
        }
    }

    /// Bytes of stack used, not rounded up.
    pub const fn stack_size(&self) -> u32 {
        self.stack
    }

    /// The largest alignment of a stack slot so far, in bytes.
    pub const fn stack_align(&self) -> u32 {
        self.align
    }

    /// Places a value: one entry is appended to `places` for each part, least significant first.
    ///
    /// # Errors
    ///
    /// The convention has no place left. Then neither `self` nor `places` is changed.
    pub fn assign(&mut self, convention: &Convention, ty: ValueType, places: &mut Vec<Place>) -> Result<(), NoPlace> {
        let mut next = *self;
        let before = places.len();
        if next.walk(convention.actions, convention.actions, ty, places, 0) {
            *self = next;
            Ok(())
        } else {
            places.truncate(before);
            Err(NoPlace { ty })
        }
    }

    /// Walks the actions; true if the value has been placed. `all` is where parts of a split value start.
    fn walk(
        &mut self,
        all: &'static [Action],
        actions: &'static [Action],
        mut ty: ValueType,
        places: &mut Vec<Place>,
        depth: u32,
    ) -> bool {
        for action in actions {
            // A conditional holds one action, which works on what follows like any other.
            let action = match action {
                Action::IfType(types, _) if !types.contains(&ty) => continue,
                Action::IfType(_, inner) => inner,
                action => action,
            };
            match action {
                Action::Promote(to) => ty = *to,
                Action::Split { part, count } => {
                    return depth < MAX_DEPTH && (0..*count).all(|_| self.walk(all, all, *part, places, depth + 1));
                }
                Action::ToReg(list) => {
                    if let Some(reg) = self.take(list) {
                        let loc = Loc::Reg(reg);
                        places.push(Place { ty, loc });
                        return true;
                    }
                }
                Action::ToStack { size, align } => {
                    let Some(offset) = self.stack.checked_next_multiple_of(*align) else {
                        return false;
                    };
                    let Some(end) = offset.checked_add(*size) else {
                        return false;
                    };
                    self.stack = end;
                    self.align = self.align.max(*align);
                    let loc = Loc::Stack {
                        offset,
                        size: *size,
                        align: *align,
                    };
                    places.push(Place { ty, loc });
                    return true;
                }
                Action::Delegate(to) => {
                    return depth < MAX_DEPTH && self.walk(to, to, ty, places, depth + 1);
                }
                Action::IfType(..) => {
                    if self.walk(all, core::slice::from_ref(action), ty, places, depth) {
                        return true;
                    }
                }
            }
        }
        false
    }

    fn take(&mut self, list: &[Reg]) -> Option<Reg> {
        let free = |r: &&Reg| self.taken(**r).0 & self.taken(**r).1 == 0;
        let reg = *list.iter().find(free)?;
        let bit = self.taken(reg).1;
        match reg {
            Reg::S(_) => self.scalars |= bit,
            Reg::V(_) => self.vectors |= bit,
        }
        Some(reg)
    }

    /// The set a register is in, and its bit there.
    fn taken(&self, reg: Reg) -> (u64, u64) {
        let set = match reg {
            Reg::S(_) => self.scalars,
            Reg::V(_) => self.vectors,
        };
        (set, 1 << (reg.number() & 63))
    }
}

/// Whether a callee has to preserve the register. `sp` is restored by construction and not in the list.
pub fn is_callee_saved(reg: Reg) -> bool {
    CALLEE_SAVED.contains(&reg)
}
