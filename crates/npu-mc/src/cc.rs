//! The calling convention: where arguments and results live (`docs/abi.md`).
//!
//! A convention is a list of actions from td. A [`State`] walks the list for one value at a time;
//! it records the registers already taken and the stack space used.

use crate::desc::Action;
use crate::reg::Reg;

/// The convention for arguments, the td record `CC_NaplesPU`.
pub use crate::desc::Convention;
pub use crate::generated::CC_NAPLESPU as ARGUMENTS;
/// Registers a callee has to preserve, in the order of their save slots; the td record
/// `NaplesPUCSR`.
pub use crate::generated::NAPLESPUCSR as CALLEE_SAVED;
/// The convention for results, the td record `RetCC_NaplesPU`.
pub use crate::generated::RETCC_NAPLESPU as RETURNS;
pub use crate::generated::ValueType;

/// Where a value, or a part of one, lives.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Loc {
    /// In a register.
    Reg(Reg),
    /// In memory, at an offset from the caller's `sp` at the call.
    Stack {
        /// Distance above `sp` in bytes.
        offset: u32,
        /// Size in bytes.
        size: u32,
        /// Alignment of the slot in bytes.
        align: u32,
    },
}

/// A location and the type of the value in it. A promoted value has the wider type; its upper bits
/// are undefined unless the signature requests an extension.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Place {
    /// The type of the value in the location.
    pub ty: ValueType,
    /// The location.
    pub loc: Loc,
}

/// The convention has no location for a value. A result that does not fit in the registers has to
/// be returned through memory.
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

/// The maximum depth of nested splits and delegations.
const MAX_DEPTH: u32 = 4;

/// The registers and the stack space taken so far. The arguments and the results of a signature
/// need separate states.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct State {
    scalars: u64,
    vectors: u64,
    stack: u32,
    align: u32,
}

impl State {
    /// Creates a state with nothing taken.
    pub const fn new() -> State {
        State {
            scalars: 0,
            vectors: 0,
            stack: 0,
            align: 1,
        }
    }

    /// Returns bytes of stack used, not rounded up.
    pub const fn stack_size(&self) -> u32 {
        self.stack
    }

    /// Returns the largest alignment of a stack slot so far, in bytes.
    pub const fn stack_align(&self) -> u32 {
        self.align
    }

    /// Assigns locations to a value. Appends one entry to `places` for each part, least significant
    /// first.
    ///
    /// # Errors
    ///
    /// Fails if the convention has no location left. `self` and `places` are unchanged then.
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

    /// Walks the actions; returns whether the value has a location. The parts of a split value
    /// start at `all`.
    fn walk(
        &mut self,
        all: &'static [Action],
        actions: &'static [Action],
        mut ty: ValueType,
        places: &mut Vec<Place>,
        depth: u32,
    ) -> bool {
        for action in actions {
            // A conditional action holds one inner action, whose effect on later actions is the
            // same as without the condition.
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

    /// Returns the set of taken registers of the register's file, and the register's bit in it.
    fn taken(&self, reg: Reg) -> (u64, u64) {
        let set = match reg {
            Reg::S(_) => self.scalars,
            Reg::V(_) => self.vectors,
        };
        (set, 1 << (reg.number() & 63))
    }
}

/// Returns whether a callee has to preserve the register. `sp` is not in the list because epilogues
/// restore it by construction.
pub fn is_callee_saved(reg: Reg) -> bool {
    CALLEE_SAVED.contains(&reg)
}
