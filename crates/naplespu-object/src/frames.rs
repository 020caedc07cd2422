//! `.eh_frame`: unwind information for debuggers and back traces (`docs/abi.md`).

use crate::builder::Builder;
use crate::sections::{Relocated, RelocationTargets};
use cranelift_naplespu::unwind::UnwindRow;
use gimli::write::{
    Address, CallFrameInstruction, CieId, CommonInformationEntry, EhFrame, Error, FrameDescriptionEntry, FrameTable,
};
use gimli::{Encoding, Format, Register, constants};
use npu_mc::asm::SectionId;
use npu_mc::machine::{INSTRUCTION_SIZE, WORD_SLOT};
use npu_mc::{Reg, SReg};
use std::collections::BTreeMap;

/// The name of the section.
const SECTION: &str = ".eh_frame";

/// Returns the DWARF number of a register.
pub fn dwarf_register(reg: Reg) -> Register {
    Register(reg.dwarf())
}

/// The rule of a register whose value at entry is not in the register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    /// Saved in memory, at this offset in bytes from the CFA.
    Saved(i32),
    /// Nowhere.
    Lost,
}

/// The frames of the functions of an object.
#[derive(Debug, Default)]
pub struct Frames {
    table: FrameTable,
    cie: Option<CieId>,
}

impl Frames {
    /// Adds a function with its unwind rows.
    pub fn add(&mut self, section: SectionId, offset: u32, length: u32, rows: &[UnwindRow]) {
        let cie = *self.cie.get_or_insert_with(|| self.table.add_cie(common()));
        let address = Address::Symbol {
            symbol: section.index(),
            addend: offset.into(),
        };
        let mut entry = FrameDescriptionEntry::new(address, length);
        let mut cfa = (SReg::SP, 0);
        let mut rules: BTreeMap<u16, Rule> = BTreeMap::new();
        for row in rows {
            let saved = row
                .saved
                .iter()
                .map(|&(reg, at)| (dwarf_register(reg).0, Rule::Saved(at)));
            let mut new: BTreeMap<u16, Rule> = saved.collect();
            new.extend(row.lost.iter().map(|&reg| (dwarf_register(reg).0, Rule::Lost)));
            match row.cfa {
                Some(own) if own == cfa => {}
                Some((reg, distance)) => {
                    let change = if reg == cfa.0 {
                        CallFrameInstruction::CfaOffset(distance)
                    } else {
                        CallFrameInstruction::Cfa(dwarf_register(Reg::S(reg)), distance)
                    };
                    entry.add_instruction(row.offset, change);
                    cfa = (reg, distance);
                }
                // A lost return address ends the back trace.
                None => new = BTreeMap::from([(dwarf_register(Reg::S(SReg::RA)).0, Rule::Lost)]),
            }
            for &reg in rules.keys().filter(|reg| !new.contains_key(reg)) {
                entry.add_instruction(row.offset, CallFrameInstruction::Restore(Register(reg)));
            }
            for (&reg, &rule) in new.iter().filter(|(reg, rule)| rules.get(reg) != Some(rule)) {
                let change = match rule {
                    Rule::Saved(at) => CallFrameInstruction::Offset(Register(reg), at),
                    Rule::Lost => CallFrameInstruction::Undefined(Register(reg)),
                };
                entry.add_instruction(row.offset, change);
            }
            rules = new;
        }
        self.table.add_fde(cie, entry);
    }

    /// Writes the section, if a function exists.
    ///
    /// # Errors
    ///
    /// The information exceeds the limits of the format.
    pub fn write(self, builder: &mut Builder) -> Result<(), Error> {
        if self.cie.is_none() {
            return Ok(());
        }
        let mut section = EhFrame(Relocated::default());
        self.table.write_eh_frame(&mut section)?;
        section
            .0
            .append(builder, SECTION, true, WORD_SLOT, &RelocationTargets::default())
    }
}

/// Returns the common entry of all functions: at entry, the CFA is `sp`, and all registers still
/// belong to the caller.
fn common() -> CommonInformationEntry {
    let encoding = Encoding {
        format: Format::Dwarf32,
        version: 1,
        address_size: 4,
    };
    let mut common = CommonInformationEntry::new(
        encoding,
        INSTRUCTION_SIZE as u8,
        -(WORD_SLOT as i8),
        dwarf_register(Reg::S(SReg::RA)),
    );
    common.fde_address_encoding = constants::DW_EH_PE_sdata4;
    let sp = dwarf_register(Reg::S(SReg::SP));
    common.add_instruction(CallFrameInstruction::Cfa(sp, 0));
    common
}

#[cfg(test)]
mod tests {
    use super::*;
    use gimli::write::RelocateWriter;
    use npu_link::debug::{Frames as Read, Place};
    use npu_mc::VReg;

    /// Returns random unwind rows: frames by two registers, saved and lost registers, and ends of
    /// back traces.
    fn rows(mut seed: u32) -> Vec<UnwindRow> {
        let mut below = |limit: u32| {
            seed = seed.wrapping_mul(0x0019_660d).wrapping_add(0x3c6e_f35f);
            (seed >> 8) % limit
        };
        let mut rows = Vec::new();
        let mut offset = 0;
        for _ in 0..12 {
            let reg = [SReg::SP, SReg::SP, SReg::FP][below(3) as usize];
            let cfa = (below(8) > 0).then(|| (reg, 4 * below(40_000) as i32));
            let mut row = UnwindRow {
                offset,
                cfa,
                ..UnwindRow::default()
            };
            let scalars = [50, 51, 62].map(|number| Reg::S(SReg::new(number).unwrap()));
            let vectors = [56, 57].map(|number| Reg::V(VReg::new(number).unwrap()));
            for reg in scalars.into_iter().chain(vectors) {
                match below(3) {
                    0 => row.saved.push((reg, -4 * below(300) as i32)),
                    1 => row.lost.push(reg),
                    _ => {}
                }
            }
            rows.push(row);
            offset += INSTRUCTION_SIZE * (1 + below(300));
        }
        rows
    }

    #[test]
    fn rows_are_read_as_they_were_written() {
        for seed in 0..200 {
            let rows = rows(seed);
            let last = rows.last().unwrap().offset;
            let mut frames = Frames::default();
            frames.add(SectionId::new(0), 0, last + INSTRUCTION_SIZE, &rows);
            let mut section = EhFrame(Relocated::default());
            frames.table.write_eh_frame(&mut section).unwrap();
            let read = Read::new(section.0.writer().slice(), 0x1000).unwrap();
            let (start, _) = read.functions().next().unwrap();
            for (number, row) in rows.iter().enumerate() {
                let end = rows.get(number + 1).map_or(last + INSTRUCTION_SIZE, |next| next.offset);
                for offset in [row.offset, end - INSTRUCTION_SIZE] {
                    let rules = read.rules(start + offset).unwrap().unwrap();
                    let place = |reg: Reg| rules.place(reg);
                    let Some(cfa) = row.cfa else {
                        assert_eq!(place(Reg::S(SReg::RA)), Some(Place::Lost), "{seed}, {offset}");
                        continue;
                    };
                    assert_eq!(rules.cfa, cfa, "{seed}, {offset}");
                    for number in [50, 51, 52, 62] {
                        let reg = Reg::S(SReg::new(number).unwrap());
                        assert_eq!(place(reg), wanted(row, reg), "{seed}, {offset}, {reg}");
                    }
                    for number in [56, 57, 58] {
                        let reg = Reg::V(VReg::new(number).unwrap());
                        assert_eq!(place(reg), wanted(row, reg), "{seed}, {offset}, {reg}");
                    }
                }
            }
        }
    }

    /// Returns the location of a register's value at entry, according to the row.
    fn wanted(row: &UnwindRow, reg: Reg) -> Option<Place> {
        let saved = row.saved.iter().find(|(saved, _)| *saved == reg);
        let lost = row.lost.contains(&reg).then_some(Place::Lost);
        saved.map(|&(_, at)| Place::Memory(at)).or(lost)
    }
}
