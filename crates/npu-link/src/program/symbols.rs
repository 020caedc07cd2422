//! Symbol resolution: definitions in objects and members of libraries, and the choice of sections
//! for the program.

use super::error::{ProgramError, User};
use super::linking::{Definition, Linking};
use super::types::{Input, Library};
use super::users::Users;
use crate::elf::COMMON;
use crate::startup;
use npu_mc::asm::{Binding, Object, Relocation, Symbol, SymbolId, SymbolValue, Target};
use std::collections::{HashMap, HashSet};

/// The symbol at the start of the exception frame entries.
pub(super) const UNWIND_START: &str = "__npu_unwind_start";

/// The symbol at their end.
pub(super) const UNWIND_END: &str = "__npu_unwind_end";

/// The symbol with their number.
pub(super) const UNWIND_COUNT: &str = "__npu_unwind_count";

/// The symbol with the distance in bytes between the instructions of two threads; 0 if all threads
/// share them.
pub(super) const COPY_BYTES: &str = "__npu_copy_bytes";

/// The symbol with the lowest address of the stacks.
pub(super) const STACKS: &str = "__npu_stacks";

/// The symbol with the size of each thread's stack.
pub(super) const STACK_SIZE: &str = "__npu_stack_size";

/// The symbol with the distance between the stacks of two tiles, if each tile has those of its core.
pub(super) const TILE_BYTES: &str = "__npu_tile_bytes";

/// The symbols that the linker defines.
const GIVEN: &[&str] = &[
    "__npu_tile_threads",
    STACK_SIZE,
    STACKS,
    TILE_BYTES,
    "__npu_tls_image",
    "__npu_tls_bytes",
    "__npu_tls_start",
    "__npu_tls_size",
    "__scratchpad_data_start",
    "__scratchpad_data_end",
    "__init_array_start",
    "__init_array_end",
    UNWIND_START,
    UNWIND_END,
    UNWIND_COUNT,
    "__npu_waiting",
    "__npu_start_barrier",
    COPY_BYTES,
    startup::MAIN,
];

pub(super) fn symbol_of(inputs: &[Input], (input, id): Definition) -> Option<&Symbol> {
    inputs.get(input)?.object.symbols.get(id.index())
}

fn section_name(object: &Object, symbol: &Symbol) -> String {
    match symbol.value {
        SymbolValue::Place { section, .. } => {
            let section = object.sections.get(section.index());
            section.map_or_else(|| "?".to_owned(), |section| section.name.clone())
        }
        _ => "*ABS*".to_owned(),
    }
}

impl Linking<'_> {
    pub(super) fn add(&mut self, input: Input) {
        let number = self.inputs.len();
        self.inputs.push(input);
        for index in 0..self.inputs[number].object.symbols.len() {
            let new = (number, SymbolId::new(index as u32));
            let Some(symbol) = symbol_of(&self.inputs, new) else {
                continue;
            };
            if symbol.binding == Binding::Local || symbol.value == SymbolValue::Undefined {
                continue;
            }
            let Some(&old) = self.globals.get(&symbol.name) else {
                self.globals.insert(symbol.name.clone(), new);
                continue;
            };
            match self.stronger(old, new) {
                Some(true) => {}
                Some(false) => {
                    self.globals.insert(symbol.name.clone(), new);
                }
                None => {
                    let symbol = symbol.name.clone();
                    let place = |definition: Definition| {
                        let input = &self.inputs[definition.0];
                        let own = symbol_of(&self.inputs, definition);
                        let section = own.map_or_else(String::new, |own| section_name(&input.object, own));
                        (input.name.clone(), section)
                    };
                    let objects = [place(old), place(new)];
                    self.errors.push(ProgramError::Duplicate { symbol, objects });
                }
            }
        }
    }

    /// Returns whether the first definition replaces the second; `None` if they conflict.
    fn stronger(&self, old: Definition, new: Definition) -> Option<bool> {
        let rank = |definition: Definition| {
            let symbol = symbol_of(&self.inputs, definition)?;
            let common = section_name(&self.inputs[definition.0].object, symbol) == COMMON;
            Some((symbol.binding == Binding::Global, common, symbol.size.unwrap_or(0)))
        };
        match (rank(old)?, rank(new)?) {
            ((true, ..), (true, ..)) => None,
            ((true, ..), _) => Some(true),
            (_, (true, ..)) => Some(false),
            // A common symbol replaces a weak one, and a larger common symbol a smaller one.
            ((_, true, old), (_, true, new)) => Some(old >= new),
            ((_, common, _), (_, other, _)) => Some(common || !other),
        }
    }

    fn is_given(&self, name: &str) -> bool {
        GIVEN.contains(&name)
    }

    /// Adds members of libraries until they define no further undefined symbol.
    pub(super) fn find_members(&mut self, libraries: &mut [&mut dyn Library]) {
        let mut asked: HashSet<String> = HashSet::new();
        let mut next = 0;
        if asked.insert(self.options.entry.clone()) {
            let entry = self.options.entry.clone();
            self.ask(&entry, libraries);
        }
        while next < self.inputs.len() {
            let symbols = &self.inputs[next].object.symbols;
            let wanted: Vec<String> = symbols
                .iter()
                .filter(|symbol| symbol.value == SymbolValue::Undefined && symbol.binding != Binding::Weak)
                .map(|symbol| symbol.name.clone())
                .collect();
            for name in wanted {
                if asked.insert(name.clone()) {
                    self.ask(&name, libraries);
                }
            }
            next += 1;
        }
    }

    fn ask(&mut self, name: &str, libraries: &mut [&mut dyn Library]) {
        if self.globals.contains_key(name) || self.is_given(name) {
            return;
        }
        for library in libraries {
            match library.member(name) {
                Ok(Some(input)) => return self.add(input),
                Ok(None) => {}
                Err(reason) => {
                    let symbol = name.to_owned();
                    return self.errors.push(ProgramError::Member { symbol, reason });
                }
            }
        }
    }

    /// Returns the definition that a symbol of an object refers to. A local symbol is its own
    /// definition.
    pub(super) fn definition(&self, input: usize, id: SymbolId) -> Option<Definition> {
        let symbol = symbol_of(&self.inputs, (input, id))?;
        match symbol.binding {
            Binding::Local if symbol.value != SymbolValue::Undefined => Some((input, id)),
            _ => self.globals.get(&symbol.name).copied(),
        }
    }

    /// Returns, for each object, whether each section is in the program.
    pub(super) fn kept(&self) -> Vec<Vec<bool>> {
        let mut kept: Vec<Vec<bool>> = self
            .inputs
            .iter()
            .map(|input| {
                input
                    .object
                    .sections
                    .iter()
                    // Debug sections are kept, but their references keep no other sections.
                    .map(|section| !section.alloc || !self.options.gc_sections)
                    .collect()
            })
            .collect();
        if !self.options.gc_sections {
            return kept;
        }
        let mut work: Vec<(usize, usize)> = Vec::new();
        let entry = self.globals.get(&self.options.entry).copied();
        let start = self.globals.get(startup::START).copied();
        for definition in [entry, start].into_iter().flatten() {
            work.extend(self.section_of(definition));
        }
        for (number, input) in self.inputs.iter().enumerate() {
            let sections = input.object.sections.iter().enumerate();
            // Constructors are called although no symbol refers to them.
            work.extend(
                sections
                    .filter(|(_, s)| s.alloc && s.name.starts_with(".init_array"))
                    .map(|(i, _)| (number, i)),
            );
        }
        // Group the references by section, so that each is visited once.
        let mut references: Vec<HashMap<usize, Vec<&Relocation>>> = vec![HashMap::new(); self.inputs.len()];
        for (number, input) in self.inputs.iter().enumerate() {
            for relocation in &input.object.relocations {
                references[number]
                    .entry(relocation.section.index())
                    .or_default()
                    .push(relocation);
            }
        }
        while let Some((input, section)) = work.pop() {
            let Some(mark) = kept.get_mut(input).and_then(|list| list.get_mut(section)) else {
                continue;
            };
            if std::mem::replace(mark, true) {
                continue;
            }
            for relocation in references[input].get(&section).into_iter().flatten() {
                match relocation.target {
                    Target::Section(id) => work.push((input, id.index())),
                    Target::Symbol(id) => {
                        work.extend(self.definition(input, id).and_then(|found| self.section_of(found)));
                    }
                }
            }
        }
        kept
    }

    fn section_of(&self, definition: Definition) -> Option<(usize, usize)> {
        match symbol_of(&self.inputs, definition)?.value {
            SymbolValue::Place { section, .. } => Some((definition.0, section.index())),
            _ => None,
        }
    }

    pub(super) fn check_undefined(&mut self, kept: &[Vec<bool>]) {
        let mut places: HashMap<String, usize> = HashMap::new();
        let mut found: Vec<(String, Vec<User>)> = Vec::new();
        if !self.globals.contains_key(&self.options.entry) {
            found.push((self.options.entry.clone(), Vec::new()));
        }
        for (number, input) in self.inputs.iter().enumerate() {
            let mut users = None;
            for relocation in &input.object.relocations {
                let Target::Symbol(id) = relocation.target else {
                    continue;
                };
                let section = relocation.section.index();
                let alloc = input.object.sections.get(section).is_some_and(|section| section.alloc);
                if !alloc || !kept[number].get(section).copied().unwrap_or(false) {
                    continue;
                }
                let Some(symbol) = symbol_of(&self.inputs, (number, id)) else {
                    continue;
                };
                if self.definition(number, id).is_some()
                    || symbol.binding == Binding::Weak
                    || self.is_given(&symbol.name)
                {
                    continue;
                }
                let place = *places.entry(symbol.name.clone()).or_insert_with(|| {
                    found.push((symbol.name.clone(), Vec::new()));
                    found.len() - 1
                });
                // Three users are enough for the message.
                if found[place].1.len() < 3 {
                    let user = users.get_or_insert_with(|| Users::new(input)).of(relocation);
                    if !found[place].1.contains(&user) {
                        found[place].1.push(user);
                    }
                }
            }
        }
        let errors = found
            .into_iter()
            .map(|(symbol, users)| ProgramError::Undefined { symbol, users });
        self.errors.extend(errors);
    }
}
