//! Unwinding, by `.eh_frame` or by rules from another source.

use super::DebugError;
use gimli::{
    BaseAddresses, CfaRule, CieOrFde, EhFrame, EhFrameOffset, EndianSlice, LittleEndian, Register, RegisterRule,
    UnwindContext, UnwindSection as _,
};
use npu_mc::machine::INSTRUCTION_SIZE;
use npu_mc::{Reg, SReg};

/// The maximum number of frames in a back trace.
const MOST_FRAMES: usize = 1000;

/// The location of the value that a register had at function entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In memory, at this offset in bytes from the CFA.
    Memory(i32),
    /// The value is lost.
    Lost,
}

/// The unwinding rules at an instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rules {
    /// The CFA: a register, and the number of bytes to add.
    pub cfa: (SReg, i32),
    /// Locations of entry values, by DWARF number. A register that is not listed still has its
    /// entry value.
    pub places: Vec<(u16, Place)>,
}

impl Rules {
    /// Returns the location of a register's entry value; `None` if the register still has it.
    pub fn place(&self, reg: Reg) -> Option<Place> {
        let found = self.places.iter().find(|(number, _)| *number == reg.dwarf());
        found.map(|(_, place)| *place)
    }

    /// Returns the caller's registers at its call, from the registers at an instruction with these
    /// rules. Returns `None` at the end of the back trace.
    pub fn caller(&self, frame: &Registers, memory: &dyn Fn(u32) -> u32) -> Option<Registers> {
        let (base, distance) = self.cfa;
        let cfa = frame.get(base)?.wrapping_add_signed(distance);
        let mut caller = frame.clone();
        for &(number, place) in &self.places {
            if let Some(value) = caller.values.get_mut(usize::from(number)) {
                *value = match place {
                    Place::Memory(offset) => Some(memory(cfa.wrapping_add_signed(offset))),
                    Place::Lost => None,
                };
            }
        }
        let back = caller.get(SReg::RA);
        caller.values[usize::from(SReg::SP.number())] = Some(cfa);
        // The caller's own `ra` is unknown unless the caller saved it.
        caller.pc = back?.checked_sub(INSTRUCTION_SIZE)?;
        Some(caller)
    }
}

/// Returns the addresses of a back trace, from the thread's current instruction to the call in the
/// outermost frame. `rules` returns the rules of an instruction, or `None` at the end of the back
/// trace.
///
/// # Errors
///
/// Returns the errors of `rules`.
pub fn back_trace<E>(
    frame: Registers,
    mut rules: impl FnMut(u32) -> Result<Option<Rules>, E>,
    memory: &dyn Fn(u32) -> u32,
) -> Result<Vec<u32>, E> {
    let mut list = vec![frame.pc];
    let mut frame = frame;
    while list.len() < MOST_FRAMES {
        let Some(caller) = rules(frame.pc)?.and_then(|rules| rules.caller(&frame, memory)) else {
            break;
        };
        // A valid frame is above its callee's frame.
        let grows = caller.get(SReg::SP) > frame.get(SReg::SP);
        if !grows && list.len() > 1 {
            break;
        }
        list.push(caller.pc);
        frame = caller;
    }
    Ok(list)
}

/// The known scalar registers of a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registers {
    /// The address of the instruction.
    pub pc: u32,
    values: [Option<u32>; SReg::COUNT as usize],
}

impl Registers {
    /// Creates the registers of a thread at an instruction.
    pub fn new(pc: u32, value: impl Fn(SReg) -> u32) -> Self {
        let mut values = [None; SReg::COUNT as usize];
        for reg in SReg::all() {
            values[usize::from(reg.number())] = Some(value(reg));
        }
        Self { pc, values }
    }

    /// Returns the value of a register if it is known.
    pub fn get(&self, reg: SReg) -> Option<u32> {
        self.values.get(usize::from(reg.number())).copied().flatten()
    }
}

/// The unwinding table of a program.
#[derive(Clone, Debug, Default)]
pub struct Frames {
    bytes: Vec<u8>,
    address: u32,
    /// Start, end and table offset of each function, in ascending order.
    functions: Vec<(u32, u32, usize)>,
}

type Table<'a> = EhFrame<EndianSlice<'a, LittleEndian>>;

impl Frames {
    /// Reads the table in a section at an address.
    ///
    /// # Errors
    ///
    /// Fails if an entry is damaged.
    pub fn new(bytes: &[u8], address: u32) -> Result<Self, DebugError> {
        let mut frames = Self {
            bytes: bytes.to_vec(),
            address,
            functions: Vec::new(),
        };
        let table = frames.table();
        let bases = frames.bases();
        let mut entries = table.entries(&bases);
        let mut functions = Vec::new();
        loop {
            let entry = entries.next().map_err(|error| frames.error(error, 0))?;
            let Some(entry) = entry else { break };
            if let CieOrFde::Fde(partial) = entry {
                let offset = partial.offset();
                let entry = partial.parse(Table::cie_from_offset);
                let entry = entry.map_err(|error| frames.error(error, offset))?;
                let start = entry.initial_address() as u32;
                let end = start.saturating_add(u32::try_from(entry.len()).unwrap_or(u32::MAX));
                functions.push((start, end, offset));
            }
        }
        functions.sort_unstable();
        frames.functions = functions;
        Ok(frames)
    }

    fn table(&self) -> Table<'_> {
        let mut table = EhFrame::new(&self.bytes, LittleEndian);
        table.set_address_size(4);
        table
    }

    fn bases(&self) -> BaseAddresses {
        BaseAddresses::default().set_eh_frame(self.address.into())
    }

    fn error(&self, error: gimli::Error, offset: usize) -> DebugError {
        let offset = match error {
            gimli::Error::UnexpectedEof(at) => (at.0 as usize).wrapping_sub(self.bytes.as_ptr() as usize),
            _ => offset,
        };
        DebugError {
            section: ".eh_frame".to_owned(),
            offset: Some(offset as u64).filter(|&offset| offset <= self.bytes.len() as u64),
            message: error.to_string(),
        }
    }

    /// Returns start and end of the functions with an entry, in ascending order.
    pub fn functions(&self) -> impl Iterator<Item = (u32, u32)> {
        self.functions.iter().map(|&(start, end, _)| (start, end))
    }

    /// Returns the rules at an instruction. Returns `None` if no function in the table contains it,
    /// or if its rules are of a kind that is not supported.
    ///
    /// # Errors
    ///
    /// Fails if the entry is damaged.
    pub fn rules(&self, pc: u32) -> Result<Option<Rules>, DebugError> {
        let after = self.functions.partition_point(|&(start, _, _)| start <= pc);
        let found = after.checked_sub(1).and_then(|index| self.functions.get(index));
        let Some(&(_, _, offset)) = found.filter(|&&(_, end, _)| pc < end) else {
            return Ok(None);
        };
        let fail = |error| self.error(error, offset);
        let (table, bases) = (self.table(), self.bases());
        let entry = table.fde_from_offset(&bases, EhFrameOffset(offset), Table::cie_from_offset);
        let entry = entry.map_err(fail)?;
        let mut context = UnwindContext::new();
        let mut rows = entry.rows(&table, &bases, &mut context).map_err(fail)?;
        let distance = u64::from(pc).wrapping_sub(u64::from(entry.initial_address() as u32));
        while let Some(row) = rows.next_row().map_err(fail)? {
            let end = row.end_address().wrapping_sub(entry.initial_address());
            if distance >= end {
                continue;
            }
            let cfa = match *row.cfa() {
                CfaRule::RegisterAndOffset { register, offset } => {
                    let register = u8::try_from(register.0).ok().and_then(SReg::new);
                    register.zip(i32::try_from(offset).ok())
                }
                CfaRule::Expression(_) => None,
            };
            let Some(cfa) = cfa else { return Ok(None) };
            let place = |(register, rule): &(Register, RegisterRule<usize>)| {
                let place = match *rule {
                    RegisterRule::SameValue => return None,
                    RegisterRule::Offset(offset) => i32::try_from(offset).map_or(Place::Lost, Place::Memory),
                    _ => Place::Lost,
                };
                Some((register.0, place))
            };
            return Ok(Some(Rules {
                cfa,
                places: row.registers().filter_map(place).collect(),
            }));
        }
        Ok(None)
    }

    /// Returns the caller's registers at its call; `None` at the end of the back trace.
    ///
    /// # Errors
    ///
    /// Fails if the entry is damaged.
    pub fn caller(&self, frame: &Registers, memory: &dyn Fn(u32) -> u32) -> Result<Option<Registers>, DebugError> {
        Ok(self.rules(frame.pc)?.and_then(|rules| rules.caller(frame, memory)))
    }

    /// Returns the addresses of a back trace, from the thread's current instruction to the call in
    /// the outermost frame.
    ///
    /// # Errors
    ///
    /// Fails if an entry is damaged.
    pub fn back_trace(&self, frame: Registers, memory: &dyn Fn(u32) -> u32) -> Result<Vec<u32>, DebugError> {
        back_trace(frame, |pc| self.rules(pc), memory)
    }
}
