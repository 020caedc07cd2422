//! DWARF 5: lines, functions and variables of a source file, for debuggers and reports.

use crate::builder::Builder;
use crate::frames::dwarf_register;
use crate::sections::{Relocated, RelocationTargets};
use cranelift_codegen::ir::{self, Function, Type, ValueLabel, ValueLabelAssignments, types};
use cranelift_naplespu::code::{CompiledCode, LabelLoc};
use gimli::write::{
    Address, AttributeValue, DwarfUnit, Error, Expression, FileId, LineProgram, LineString, Location, LocationList,
    Range, RangeList, Sections, UnitEntryId,
};
use gimli::{Encoding, Format, LineEncoding, SectionId as DebugSection, constants};
use npu_mc::asm::SectionId;
use npu_mc::machine::INSTRUCTION_SIZE;
use std::collections::{BTreeMap, HashMap};

/// The producer in the debug information.
const PRODUCER: &str = concat!("cranelift-naplespu ", env!("CARGO_PKG_VERSION"));

/// The base directory of file names; the debugger determines what it is relative to.
const FOLDER: &str = ".";

/// The debug information of one source file and its functions.
#[derive(Debug)]
pub struct DebugInfo {
    dwarf: DwarfUnit,
    file: FileId,
    types: HashMap<Type, UnitEntryId>,
    ranges: Vec<Range>,
}

/// A compiled function.
pub struct DebugFunction<'a> {
    /// Its name.
    pub name: &'a str,
    /// Whether its symbol is global.
    pub external: bool,
    /// The line of its start.
    pub line: Option<u32>,
    /// Its section and its offset there.
    pub place: (SectionId, u32),
    /// Its code.
    pub code: &'a CompiledCode,
    /// The value labels of its CLIF.
    pub labels: &'a Labels,
}

/// Converts a text to a DWARF string, replacing NUL bytes.
fn text(text: &str) -> Vec<u8> {
    let bytes: Vec<u8> = text.bytes().map(|byte| if byte == 0 { b'?' } else { byte }).collect();
    if bytes.is_empty() { b"?".to_vec() } else { bytes }
}

impl DebugInfo {
    /// Creates the debug information of a file, without functions.
    pub fn new(name: &str) -> Self {
        let encoding = Encoding {
            format: Format::Dwarf32,
            version: 5,
            address_size: 4,
        };
        let mut dwarf = DwarfUnit::new(encoding);
        let lines = LineEncoding {
            minimum_instruction_length: INSTRUCTION_SIZE as u8,
            ..LineEncoding::default()
        };
        let folder = LineString::new(text(FOLDER), encoding, &mut dwarf.line_strings);
        let file = LineString::new(text(name), encoding, &mut dwarf.line_strings);
        let mut program = LineProgram::new(encoding, lines, folder, None, file.clone(), None);
        let file = program.add_file(file, program.default_directory(), None);
        dwarf.unit.line_program = program;
        let root = dwarf.unit.root();
        for (attribute, value) in [
            (constants::DW_AT_producer, PRODUCER),
            (constants::DW_AT_name, name),
            (constants::DW_AT_comp_dir, FOLDER),
        ] {
            let value = AttributeValue::StringRef(dwarf.strings.add(text(value)));
            dwarf.unit.get_mut(root).set(attribute, value);
        }
        Self {
            dwarf,
            file,
            types: HashMap::new(),
            ranges: Vec::new(),
        }
    }

    /// Adds a function. Source locations of its instructions are lines of the file, and value
    /// labels are variables.
    pub fn add(&mut self, function: &DebugFunction<'_>) {
        let (section, offset) = function.place;
        let code = function.code;
        let begin = |at: u32| Address::Symbol {
            symbol: section.index(),
            addend: i64::from(offset) + i64::from(at),
        };
        self.lines(function, begin(0));
        self.ranges.push(Range::StartLength {
            begin: begin(0),
            length: code.bytes.len() as u64,
        });
        let root = self.dwarf.unit.root();
        let id = self.dwarf.unit.add(root, constants::DW_TAG_subprogram);
        let name = AttributeValue::StringRef(self.dwarf.strings.add(text(function.name)));
        let mut base = Expression::new();
        base.op(constants::DW_OP_call_frame_cfa);
        let entry = self.dwarf.unit.get_mut(id);
        entry.set(constants::DW_AT_name, name);
        entry.set(constants::DW_AT_low_pc, AttributeValue::Address(begin(0)));
        entry.set(constants::DW_AT_high_pc, AttributeValue::Udata(code.bytes.len() as u64));
        entry.set(constants::DW_AT_frame_base, AttributeValue::Exprloc(base));
        if function.external {
            entry.set(constants::DW_AT_external, AttributeValue::Flag(true));
        }
        if let Some(line) = function.line {
            entry.set(constants::DW_AT_decl_file, AttributeValue::FileIndex(Some(self.file)));
            entry.set(constants::DW_AT_decl_line, AttributeValue::Udata(line.into()));
        }
        let ranges: BTreeMap<u32, _> = code
            .value_labels_ranges
            .iter()
            .map(|(label, list)| (label.as_u32(), list))
            .collect();
        for (number, ranges) in ranges {
            let Some(&(ty, is_parameter)) = function.labels.get(&ValueLabel::from_u32(number)) else {
                continue;
            };
            let places = ranges.iter().filter(|range| range.start < range.end).map(|range| {
                let mut place = Expression::new();
                match range.loc {
                    LabelLoc::Reg(reg) => place.op_reg(dwarf_register(reg)),
                    LabelLoc::Stack(at) => place.op_fbreg(i64::from(at) - i64::from(code.frame.size)),
                    // Other kinds of locations do not occur.
                    _ => {}
                }
                Location::StartLength {
                    begin: begin(range.start),
                    length: (range.end - range.start).into(),
                    data: place,
                }
            });
            let places = self.dwarf.unit.locations.add(LocationList(places.collect()));
            let ty = self.ty(ty);
            let tag = match is_parameter {
                true => constants::DW_TAG_formal_parameter,
                false => constants::DW_TAG_variable,
            };
            let variable = self.dwarf.unit.add(id, tag);
            let name = AttributeValue::StringRef(self.dwarf.strings.add(format!("v{number}")));
            let entry = self.dwarf.unit.get_mut(variable);
            entry.set(constants::DW_AT_name, name);
            entry.set(constants::DW_AT_type, AttributeValue::UnitRef(ty));
            entry.set(constants::DW_AT_location, AttributeValue::LocationListRef(places));
        }
    }

    fn lines(&mut self, function: &DebugFunction<'_>, start: Address) {
        let program = &mut self.dwarf.unit.line_program;
        let code = function.code;
        let size = code.bytes.len() as u32;
        let file = self.file;
        program.begin_sequence(Some(start));
        let mut row = |at: u32, line: u32| {
            let row = program.row();
            row.address_offset = at.into();
            row.file = file;
            row.line = line.into();
            program.generate_row();
        };
        let first = code.srclocs.first();
        if first.is_none_or(|first| first.start > 0) {
            row(0, function.line.unwrap_or(0));
        }
        let mut last = None;
        for range in &code.srclocs {
            let line = range.loc.bits();
            if last != Some(line) {
                row(range.start, line);
            }
            last = Some(line);
        }
        // The rest has no line: the code of traps, and constants.
        if let Some(end) = code.srclocs.last().map(|range| range.end).filter(|&end| end < size) {
            row(end, 0);
        }
        self.dwarf.unit.line_program.end_sequence(size.into());
    }

    fn ty(&mut self, ty: Type) -> UnitEntryId {
        if let Some(&id) = self.types.get(&ty) {
            return id;
        }
        let root = self.dwarf.unit.root();
        let id = self.dwarf.unit.add(root, constants::DW_TAG_base_type);
        let name = AttributeValue::StringRef(self.dwarf.strings.add(ty.to_string()));
        let encoding = if ty.is_float() {
            constants::DW_ATE_float
        } else {
            constants::DW_ATE_signed
        };
        let entry = self.dwarf.unit.get_mut(id);
        entry.set(constants::DW_AT_name, name);
        entry.set(constants::DW_AT_encoding, AttributeValue::Encoding(encoding));
        entry.set(constants::DW_AT_byte_size, AttributeValue::Udata(ty.bytes().into()));
        self.types.insert(ty, id);
        id
    }

    /// Writes the sections, if a function exists.
    ///
    /// # Errors
    ///
    /// The information exceeds the limits of the format.
    pub fn write(mut self, builder: &mut Builder) -> Result<(), Error> {
        if self.ranges.is_empty() {
            return Ok(());
        }
        let ranges = self.dwarf.unit.ranges.add(RangeList(self.ranges));
        let root = self.dwarf.unit.root();
        let root = self.dwarf.unit.get_mut(root);
        root.set(constants::DW_AT_low_pc, AttributeValue::Address(Address::Constant(0)));
        root.set(constants::DW_AT_ranges, AttributeValue::RangeListRef(ranges));
        let mut sections = Sections::new(Relocated::default());
        self.dwarf.write(&mut sections)?;
        let mut written: Vec<(DebugSection, Relocated)> = Vec::new();
        let taken = sections.for_each_mut(|id, section| {
            let section = std::mem::take(section);
            if !section.is_empty() {
                written.push((id, section));
            }
            Ok::<(), Error>(())
        });
        taken?;
        let mut targets = RelocationTargets::default();
        for (id, _) in &written {
            targets.insert(*id, builder.section(id.name(), crate::builder::Purpose::Debug));
        }
        for (id, section) in written {
            section.append(builder, id.name(), false, 1, &targets)?;
        }
        Ok(())
    }
}

/// The type of each label, and whether it is a parameter.
pub type Labels = HashMap<ValueLabel, (Type, bool)>;

/// Returns the labels whose values fit into one register, with their types and whether they are
/// parameters.
pub fn labels(func: &Function) -> Labels {
    let dfg = &func.dfg;
    let mut list = HashMap::new();
    let entry = func.layout.entry_block();
    let parameters: &[ir::Value] = entry.map_or(&[], |entry| dfg.block_params(entry));
    for (&value, assignments) in dfg.values_labels.iter().flatten() {
        let ty = dfg.value_type(value);
        if !matches!(ty, types::I8 | types::I16 | types::I32 | types::F32) {
            continue;
        }
        if let ValueLabelAssignments::Starts(starts) = assignments {
            for start in starts {
                let is_parameter = parameters.contains(&value);
                let known = list.entry(start.label).or_insert((ty, is_parameter));
                known.1 |= is_parameter;
            }
        }
    }
    list
}
