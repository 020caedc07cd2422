//! Constants of the machine: memory map, hardware configuration, frame layout, control registers,
//! trap reasons and thread states, from td's `NaplesPUSystem.td`.

pub use crate::generated::constants::*;
pub use crate::generated::{ThreadStatus, TrapReason};
pub use crate::tables::{ControlRegister, ControlRegisterInfo};

impl ControlRegister {
    /// Returns its number in the id operand of `read_cr` and `write_cr`.
    pub const fn number(self) -> u8 {
        self.value()
    }

    /// Returns the register with this number.
    pub const fn from_number(number: u8) -> Option<ControlRegister> {
        ControlRegister::from_value(number)
    }
}
