//! The registers as GDB sees them: numbers, sizes and the target description, from the tables of td.
//!
//! A register's number is its DWARF number: scalars first, then vectors.

use gdbstub::arch;
use npu_mc::{Reg, SReg, VReg};
use npu_sim::{LANES, Lanes, Thread};
use std::fmt::Write as _;
use std::num::NonZeroUsize;
use std::sync::LazyLock;

/// Words of all registers.
const WORDS: usize = SReg::COUNT as usize + LANES * VReg::COUNT as usize;

/// The architecture.
pub enum Npu {}

impl arch::Arch for Npu {
    type Usize = u32;
    type Registers = Registers;
    type BreakpointKind = usize;
    type RegId = RegId;

    fn target_description_xml() -> Option<&'static str> {
        Some(&DESCRIPTION)
    }
}

static DESCRIPTION: LazyLock<String> = LazyLock::new(description);

fn description() -> String {
    let mut xml = String::from(
        "<?xml version=\"1.0\"?>\n<!DOCTYPE target SYSTEM \"gdb-target.dtd\">\n<target version=\"1.0\">\n\
         <feature name=\"org.naplespu.scalar\">\n",
    );
    // Writing to a string does not fail.
    for reg in SReg::all() {
        let kind = match reg {
            SReg::PC | SReg::RA => "code_ptr",
            SReg::SP | SReg::FP => "data_ptr",
            _ => "int32",
        };
        let _ = writeln!(
            xml,
            "<reg name=\"{reg}\" bitsize=\"32\" type=\"{kind}\" regnum=\"{}\"/>",
            reg.dwarf()
        );
    }
    let _ = write!(
        xml,
        "</feature>\n<feature name=\"org.naplespu.vector\">\n\
         <vector id=\"words\" type=\"int32\" count=\"{LANES}\"/>\n\
         <vector id=\"floats\" type=\"ieee_single\" count=\"{LANES}\"/>\n\
         <union id=\"lanes\"><field name=\"i\" type=\"words\"/><field name=\"f\" type=\"floats\"/></union>\n"
    );
    for reg in VReg::all() {
        let bits = 32 * LANES;
        let _ = writeln!(
            xml,
            "<reg name=\"{reg}\" bitsize=\"{bits}\" type=\"lanes\" regnum=\"{}\"/>",
            reg.dwarf()
        );
    }
    xml.push_str("</feature>\n</target>\n");
    xml
}

/// A register by its number.
#[derive(Clone, Copy, Debug)]
pub struct RegId(pub Reg);

impl arch::RegId for RegId {
    fn from_raw_id(id: usize) -> Option<(Self, Option<NonZeroUsize>)> {
        let scalars = SReg::all().map(Reg::S);
        let reg = scalars
            .chain(VReg::all().map(Reg::V))
            .find(|r| usize::from(r.dwarf()) == id)?;
        let size = match reg {
            Reg::S(_) => 4,
            Reg::V(_) => 4 * LANES,
        };
        Some((RegId(reg), NonZeroUsize::new(size)))
    }

    fn to_raw_id(&self) -> Option<usize> {
        Some(usize::from(self.0.dwarf()))
    }
}

/// The value of a scalar register; that of `pc` is where the thread goes on.
pub fn scalar(thread: &Thread, reg: SReg) -> u32 {
    if reg == SReg::PC {
        thread.pc()
    } else {
        thread.scalar(reg)
    }
}

/// Changes a scalar register. Where nothing changes nothing is done, for it would be seen: a thread that gets a PC no longer
/// waits at its barrier.
pub fn set_scalar(thread: &mut Thread, reg: SReg, value: u32) {
    if scalar(thread, reg) == value {
        return;
    }
    if reg == SReg::PC {
        thread.set_pc(value);
    } else {
        thread.set_scalar(reg, value);
    }
}

/// Changes a vector register.
pub fn set_vector(thread: &mut Thread, reg: VReg, value: Lanes) {
    if *thread.vector(reg) != value {
        thread.set_vector(reg, value);
    }
}

/// All registers of a thread, in the order of their numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct Registers(Vec<u32>);

impl Default for Registers {
    fn default() -> Self {
        Self(vec![0; WORDS])
    }
}

impl Registers {
    /// Takes the values of a thread.
    pub fn read(&mut self, thread: &Thread) {
        self.0.clear();
        self.0.extend(SReg::all().map(|reg| scalar(thread, reg)));
        self.0.extend(VReg::all().flat_map(|reg| thread.vector(reg).0));
    }

    /// Gives a thread the values.
    pub fn write(&self, thread: &mut Thread) {
        let (scalars, vectors) = self.0.split_at(usize::from(SReg::COUNT).min(self.0.len()));
        for (reg, lanes) in VReg::all().zip(vectors.chunks_exact(LANES)) {
            let mut value = Lanes::splat(0);
            value.0.copy_from_slice(lanes);
            set_vector(thread, reg, value);
        }
        for (reg, &value) in SReg::all().zip(scalars) {
            set_scalar(thread, reg, value);
        }
    }
}

impl arch::Registers for Registers {
    type ProgramCounter = u32;

    fn pc(&self) -> u32 {
        self.0.get(usize::from(SReg::PC.number())).copied().unwrap_or(0)
    }

    fn gdb_serialize(&self, mut write_byte: impl FnMut(Option<u8>)) {
        for byte in self.0.iter().flat_map(|word| word.to_le_bytes()) {
            write_byte(Some(byte));
        }
    }

    fn gdb_deserialize(&mut self, bytes: &[u8]) -> Result<(), ()> {
        if bytes.len() != 4 * WORDS {
            return Err(());
        }
        let words = bytes
            .chunks_exact(4)
            .map(|b| b.iter().rev().fold(0, |word, &b| word << 8 | u32::from(b)));
        self.0 = words.collect();
        Ok(())
    }
}
