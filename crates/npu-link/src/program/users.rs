//! The functions and source lines of an object, for errors about undefined symbols.

use super::error::User;
use super::types::Input;
use crate::debug::ObjectLines;
use npu_mc::asm::{Relocation, SymbolKind, SymbolValue, Target};
use npu_mc::reloc::Reloc;

/// The functions and source lines of one object.
pub(super) struct Users<'a> {
    input: &'a Input,
    /// Section, offset and name of each function or label in code, in ascending order.
    functions: Vec<(usize, u32, &'a str)>,
    /// The lines, if the object has valid debug information.
    lines: Option<ObjectLines>,
}

impl<'a> Users<'a> {
    pub(super) fn new(input: &'a Input) -> Self {
        let object = &input.object;
        let named = object.symbols.iter();
        let named = named.filter(|symbol| !symbol.private && !symbol.name.starts_with(".L"));
        let functions = named.filter_map(|symbol| match symbol.value {
            SymbolValue::Place { section, offset } if symbol.kind != SymbolKind::Object => {
                let is_code = object.sections.get(section.index())?.exec;
                is_code.then_some((section.index(), offset, symbol.name.as_str()))
            }
            _ => None,
        });
        let mut functions: Vec<_> = functions.filter(|(_, _, name)| !name.is_empty()).collect();
        functions.sort_unstable();
        let sections = object.sections.iter().map(|section| {
            let size = if section.alloc { section.size as u32 } else { 0 };
            (section.name.as_str(), section.bytes_at(0), size)
        });
        let sections: Vec<_> = sections.collect();
        let places = object.relocations.iter().filter_map(|relocation| {
            let owner = object.sections.get(relocation.section.index())?;
            let (section, value) = match relocation.target {
                Target::Section(section) => (section, 0),
                Target::Symbol(id) => match object.symbols.get(id.index())?.value {
                    SymbolValue::Place { section, offset } => (section, offset),
                    _ => return None,
                },
            };
            let is_place = owner.name == ".debug_line" && relocation.kind == Reloc::Abs32;
            let value = value.wrapping_add(relocation.addend as u32);
            is_place.then_some((relocation.offset, section.index(), value))
        });
        Self {
            input,
            functions,
            lines: ObjectLines::new(&sections, places).ok(),
        }
    }

    /// Returns the user of the symbol of a relocation.
    pub(super) fn of(&self, relocation: &Relocation) -> User {
        let (section, offset) = (relocation.section.index(), relocation.offset);
        let name = self.input.object.sections.get(section);
        let name = name.map_or_else(String::new, |section| section.name.clone());
        let after = self.functions.partition_point(|&(s, o, _)| (s, o) <= (section, offset));
        let function = after.checked_sub(1).and_then(|before| self.functions.get(before));
        let line = self.lines.as_ref().and_then(|lines| lines.at(section, offset));
        User {
            object: self.input.name.clone(),
            section: name,
            function: function
                .filter(|function| function.0 == section)
                .map(|function| function.2.to_owned()),
            line: line.map(|(file, line)| (file.to_owned(), line)),
        }
    }
}
