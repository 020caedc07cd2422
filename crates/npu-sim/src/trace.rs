//! The trace of an executed instruction.

use crate::exec::Effect;
use crate::thread::Thread;
use npu_mc::SReg;

/// One executed instruction, for [`Machine::run_traced`](crate::Machine::run_traced).
#[derive(Debug)]
pub struct TraceEvent<'a> {
    /// The number of the thread.
    pub thread: usize,
    /// The address of the instruction.
    pub pc: u32,
    /// The instruction word.
    pub word: u32,
    /// The effects of the instruction.
    pub effect: Effect,
    /// The state of the thread after the instruction; its PC is the address of the next one.
    pub state: &'a Thread,
}

impl std::fmt::Display for TraceEvent<'_> {
    /// Formats thread, PC, word, disassembly, and the results as `register=value`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let text = match npu_mc::decode(self.word) {
            Ok(inst) => inst.to_string(),
            Err(_) => npu_mc::disasm::data_text(self.word),
        };
        write!(f, "{} {:08x} {:08x}  {text:<36}", self.thread, self.pc, self.word)?;
        if let Some(register) = self.effect.scalar {
            write!(f, " {register}={:08x}", self.state.scalar(register))?;
            if register == SReg::RM {
                write!(f, " mask={:04x}", self.state.mask())?;
            }
        }
        if let Some(register) = self.effect.vector {
            write!(f, " {register}=")?;
            for (k, lane) in self.state.vector(register).0.iter().enumerate() {
                write!(f, "{}{lane:08x}", if k == 0 { "" } else { "," })?;
            }
        }
        if let Some(access) = self.effect.access {
            let way = if access.store { "to" } else { "from" };
            write!(f, " {way} {:08x}", access.address)?;
        }
        let next = self.pc.wrapping_add(4);
        if self.state.pc() != next {
            write!(f, " -> {:08x}", self.state.pc())?;
        }
        Ok(())
    }
}
