//! `.eh_frame`: how a debugger or a back trace leaves each function (`isa-abi.md` 5.7).

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

/// The number that DWARF has for a register.
pub fn dwarf_register(reg: Reg) -> Register {
    Register(reg.dwarf())
}

/// What is known of a register's value at entry, if it is not in the register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    /// In memory, so many bytes from the CFA.
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
    /// Adds the function at a place.
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
                // Without a return address, a back trace ends.
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

    /// Writes the section, if there is a function.
    ///
    /// # Errors
    ///
    /// What the format cannot say.
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

/// What the entries of all functions have in common: at entry, the CFA is `sp`, and all registers are those of the caller.
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
