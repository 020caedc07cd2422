//! The registers for debuggers: numbers, sizes and the target description, from the tables of td.
//!
//! A register's number is its DWARF number: scalars first, then vectors.
//!
//! # A machine that GDB supports
//!
//! GDB accepts registers only of machines that it supports. So the description claims to be 32-bit
//! PowerPC. It contains the registers that GDB requires of a PowerPC (`STANDARD`) as second names
//! of NPU registers. GDB maps DWARF numbers 0 to 31 of a PowerPC to `r0` to `r31`, and 32 to 63 to
//! `f0` to `f31`. The second names are chosen such that this mapping is right here, so GDB finds
//! frames and variables. The registers of this machine follow with their own names. LLDB takes
//! numbers and uses from the attributes of each register, and shows both names.

use gdbstub::arch;
use gdbstub::arch::Arch;
use npu_mc::{Reg, SReg, VReg};
use npu_sim::{LANES, Lanes, Thread};
use std::fmt::Write as _;
use std::num::NonZeroUsize;
use std::sync::LazyLock;

/// Words of the registers of the machine, and of all described registers.
const OWN_WORDS: usize = SReg::COUNT as usize + LANES * VReg::COUNT as usize;
const WORDS: usize = OWN_WORDS + STANDARD_COUNT;

/// The number of registers that GDB requires: two groups of general registers, and the special
/// ones.
const STANDARD_COUNT: usize = 2 * GENERAL + SPECIAL.len();
const GENERAL: usize = 32;

/// The number of the first required register.
const FIRST_STANDARD: usize = SReg::COUNT as usize + VReg::COUNT as usize;

/// Special registers of GDB's PowerPC. A register without an NPU counterpart is always 0.
const SPECIAL: [(&str, Option<SReg>); 6] = [
    ("msr", None),
    ("cr", None),
    ("lr", Some(SReg::RA)),
    ("ctr", None),
    ("xer", None),
    ("fpscr", None),
];

/// The target triple for LLDB: a small machine with the right byte order. LLDB has no instruction
/// set for it, so it does not search for branches to step faster.
pub const TRIPLE: &str = "arc-unknown-unknown-elf";

/// The architecture.
pub enum Npu {}

impl Arch for Npu {
    type Usize = u32;
    type Registers = Registers;
    type BreakpointKind = usize;
    type RegId = RegId;

    fn target_description_xml() -> Option<&'static str> {
        Some(&DESCRIPTION)
    }
}

static DESCRIPTION: LazyLock<String> = LazyLock::new(description);

/// Returns LLDB's name for the use of a register.
fn generic(reg: SReg) -> Option<&'static str> {
    const ARGUMENTS: [&str; 8] = ["arg1", "arg2", "arg3", "arg4", "arg5", "arg6", "arg7", "arg8"];
    match reg {
        SReg::PC => Some("pc"),
        SReg::SP => Some("sp"),
        SReg::FP => Some("fp"),
        SReg::RA => Some("ra"),
        _ => ARGUMENTS.get(usize::from(reg.number())).copied(),
    }
}

fn scalar_line(xml: &mut String, reg: SReg) {
    let kind = match reg {
        SReg::PC | SReg::RA => "code_ptr",
        SReg::SP | SReg::FP => "data_ptr",
        _ => "int32",
    };
    let number = reg.dwarf();
    // Writing to a string does not fail, here and below.
    let _ = write!(
        xml,
        "<reg name=\"{reg}\" bitsize=\"32\" type=\"{kind}\" regnum=\"{number}\" encoding=\"uint\" format=\"hex\" \
         dwarf_regnum=\"{number}\" ehframe_regnum=\"{number}\" group=\"general\""
    );
    if let Some(generic) = generic(reg) {
        let _ = write!(xml, " generic=\"{generic}\"");
    }
    xml.push_str("/>\n");
}

fn description() -> String {
    let mut xml = String::from(
        "<?xml version=\"1.0\"?>\n<!DOCTYPE target SYSTEM \"gdb-target.dtd\">\n<target version=\"1.0\">\n\
         <architecture>powerpc:common</architecture>\n<osabi>none</osabi>\n\
         <feature name=\"org.gnu.gdb.power.core\">\n",
    );
    for standard in 0..STANDARD_COUNT {
        if standard == GENERAL {
            // GDB requires its `pc` in this group; the numbers of the group's other registers
            // follow the `f` registers.
            scalar_line(&mut xml, SReg::PC);
            for (index, (name, _)) in SPECIAL.iter().enumerate().filter(|(_, s)| s.0 != "fpscr") {
                standard_line(&mut xml, name, 2 * GENERAL + index);
            }
            xml.push_str("</feature>\n<feature name=\"org.gnu.gdb.power.fpu\">\n");
        }
        if standard < GENERAL {
            standard_line(&mut xml, &format!("r{standard}"), standard);
        } else if standard < 2 * GENERAL {
            standard_line(&mut xml, &format!("f{}", standard - GENERAL), standard);
        } else if standard + 1 == STANDARD_COUNT {
            standard_line(&mut xml, "fpscr", standard);
        }
    }
    xml.push_str("</feature>\n<feature name=\"org.naplespu.scalar\">\n");
    for reg in SReg::all().filter(|&reg| reg != SReg::PC) {
        scalar_line(&mut xml, reg);
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
        let number = reg.dwarf();
        let _ = writeln!(
            xml,
            "<reg name=\"{reg}\" bitsize=\"{bits}\" type=\"lanes\" regnum=\"{number}\" encoding=\"vector\" \
             format=\"vector-uint32\" dwarf_regnum=\"{number}\" ehframe_regnum=\"{number}\" group=\"vector\"/>"
        );
    }
    xml.push_str("</feature>\n</target>\n");
    xml
}

fn standard_line(xml: &mut String, name: &str, standard: usize) {
    let number = FIRST_STANDARD + standard;
    let _ = writeln!(
        xml,
        "<reg name=\"{name}\" bitsize=\"32\" type=\"int32\" regnum=\"{number}\" encoding=\"uint\" format=\"hex\" \
         group=\"standard\" save-restore=\"no\"/>"
    );
}

/// Returns the NPU register that a required register aliases, by its index, or `None` for one that
/// is always 0.
fn standard(place: usize) -> Option<SReg> {
    match place.checked_sub(2 * GENERAL) {
        Some(special) => SPECIAL.get(special).and_then(|s| s.1),
        None => SReg::all().nth(place),
    }
}

/// A register, by its number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RegId {
    /// A register of the machine.
    Own(Reg),
    /// A register of PowerPC that the machine does not have; always 0.
    Zero,
}

impl arch::RegId for RegId {
    fn from_raw_id(id: usize) -> Option<(Self, Option<NonZeroUsize>)> {
        let mut own = SReg::all().map(Reg::S).chain(VReg::all().map(Reg::V));
        let (reg, size) = match own.find(|r| usize::from(r.dwarf()) == id) {
            Some(reg @ Reg::S(_)) => (RegId::Own(reg), 4),
            Some(reg @ Reg::V(_)) => (RegId::Own(reg), 4 * LANES),
            None => {
                let place = id.checked_sub(FIRST_STANDARD).filter(|&place| place < STANDARD_COUNT)?;
                (standard(place).map_or(RegId::Zero, |reg| RegId::Own(Reg::S(reg))), 4)
            }
        };
        Some((reg, NonZeroUsize::new(size)))
    }
}

/// Returns the value of a scalar register. That of `pc` is the address at which the thread resumes.
pub fn scalar(thread: &Thread, reg: SReg) -> u32 {
    if reg == SReg::PC {
        thread.pc()
    } else {
        thread.scalar(reg)
    }
}

/// Changes a scalar register. A write of the same value does nothing, because a write can have side
/// effects: a thread whose `pc` is written no longer waits at its barrier.
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
    /// Reads the values of a thread.
    pub fn read(&mut self, thread: &Thread) {
        self.0.clear();
        self.0.extend(SReg::all().map(|reg| scalar(thread, reg)));
        self.0.extend(VReg::all().flat_map(|reg| thread.vector(reg).0));
        let value = |place| standard(place).map_or(0, |reg| scalar(thread, reg));
        self.0.extend((0..STANDARD_COUNT).map(value));
    }

    /// Writes the values to a thread. A required register counts only if its value differs from the
    /// thread's.
    pub fn write(&self, thread: &mut Thread) {
        let (own, standards) = self.0.split_at(OWN_WORDS.min(self.0.len()));
        let changed: Vec<(SReg, u32)> = (0..)
            .map_while(|place| Some((standard(place), *standards.get(place)?)))
            .filter_map(|(reg, value)| Some((reg?, value)))
            .filter(|&(reg, value)| scalar(thread, reg) != value)
            .collect();
        let (scalars, vectors) = own.split_at(usize::from(SReg::COUNT).min(own.len()));
        for (reg, lanes) in VReg::all().zip(vectors.chunks_exact(LANES)) {
            let mut value = Lanes::splat(0);
            value.0.copy_from_slice(lanes);
            set_vector(thread, reg, value);
        }
        for (reg, value) in SReg::all().zip(scalars.iter().copied()).chain(changed) {
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
