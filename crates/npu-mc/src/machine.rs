//! Numbers of the machine around the core: memory map, hardware configuration, frame layout, control registers,
//! trap reasons, thread states; from td's `NaplesPUSystem.td`.

pub use crate::generated::constants::*;
pub use crate::generated::{ControlRegister, ThreadStatus, TrapReason};

/// What td's `ControlRegister` record says.
#[derive(Debug)]
pub struct ControlRegisterInfo {
    /// The name.
    pub name: &'static str,
    /// A thread can read it.
    pub readable: bool,
    /// A thread can write it; other writes are ignored.
    pub writable: bool,
    /// What it holds.
    pub summary: &'static str,
}

impl ControlRegister {
    /// The number in the id operand of `read_cr` and `write_cr`.
    pub const fn number(self) -> u8 {
        self as u8
    }

    /// The name in td.
    pub const fn name(self) -> &'static str {
        self.info().name
    }
}
