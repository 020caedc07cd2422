//! Numbers of the machine around the core: memory map, hardware configuration, frame layout, control registers,
//! trap reasons, thread states; from td's `NaplesPUSystem.td`.

pub use crate::generated::constants::*;
pub use crate::generated::{ThreadStatus, TrapReason};
pub use crate::tables::{ControlRegister, ControlRegisterInfo};

impl ControlRegister {
    /// The number in the id operand of `read_cr` and `write_cr`.
    pub const fn number(self) -> u8 {
        self.value()
    }

    /// The register with this number.
    pub const fn from_number(number: u8) -> Option<ControlRegister> {
        ControlRegister::from_value(number)
    }
}
