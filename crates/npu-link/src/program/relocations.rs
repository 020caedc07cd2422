//! Applies the relocations of a program; branches out of reach get veneers.

use super::addresses::{KINDS, Kind, Plan};
use super::copies::{self, Distance};
use super::error::ProgramError;
use super::exceptions;
use super::linking::{Definition, Linking};
use super::symbols::{STACK_SIZE, STACKS, TILE_BYTES, symbol_of};
use super::types::{OutputSymbol, Program};
use crate::incremental::{VENEER_SIZE, veneer};
use crate::startup;
use npu_mc::asm::{Binding, Relocation, SymbolId, SymbolKind, SymbolValue, Target};
use npu_mc::machine::INSTRUCTION_SIZE;
use npu_mc::reloc::{self, Reloc, RelocError};
use std::collections::HashMap;

/// Returns the value that replaces the address of a dropped section, as in LLVM's linker: an
/// invalid address, unless that has a special meaning in the section.
fn tombstone(section: &str) -> u32 {
    match section {
        ".debug_loc" | ".debug_ranges" => 1,
        _ => u32::MAX,
    }
}

/// The maximum number of times that sections are placed because veneers enlarged them.
const ITERATIONS: usize = 16;

/// The branches of each section that need a veneer after the section: the target, and the index of
/// the veneer among those of the section.
pub(super) type Veneers = HashMap<(usize, usize), HashMap<(SymbolId, i64), usize>>;

/// Writes bytes at an offset of a section.
fn put(section: &str, contents: &mut [u8], at: usize, bytes: &[u8]) -> Result<(), ProgramError> {
    let place = at.checked_add(bytes.len()).and_then(|end| contents.get_mut(at..end));
    let Some(place) = place else {
        let what = format!(
            "{} bytes at {at:#x} are outside of the section {}",
            bytes.len(),
            section
        );
        return Err(ProgramError::Internal(what));
    };
    place.copy_from_slice(bytes);
    Ok(())
}

impl Linking<'_> {
    /// Assigns addresses and applies the relocations.
    pub(super) fn place(mut self, kept: &[Vec<bool>]) -> Result<Program, Vec<ProgramError>> {
        let mut veneers: Veneers = HashMap::new();
        let mut plan = self.plan(kept, &veneers)?;
        for _ in 0..ITERATIONS {
            if !self.add_veneers(&plan, &mut veneers) {
                return self.apply(plan, &veneers);
            }
            plan = self.plan(kept, &veneers)?;
        }
        let what = format!("branches are still out of reach after sections were placed {ITERATIONS} times");
        Err(vec![ProgramError::Internal(what)])
    }

    /// Returns the value of a definition.
    pub(super) fn value(&self, plan: &Plan, (input, id): Definition) -> Option<u32> {
        match symbol_of(&self.inputs, (input, id))?.value {
            SymbolValue::Number(number) => Some(number as u32),
            SymbolValue::Place { section, offset } => {
                let (start, _) = (*plan.starts.get(input)?.get(section.index())?)?;
                Some(start.wrapping_add(offset))
            }
            SymbolValue::Near { symbol, addend } if symbol != id => {
                Some(self.target(plan, input, symbol)?.wrapping_add(addend as u32))
            }
            SymbolValue::Near { .. } | SymbolValue::Undefined => None,
        }
    }

    /// Returns the value of an object's symbol in the program.
    fn target(&self, plan: &Plan, input: usize, id: SymbolId) -> Option<u32> {
        if let Some(definition) = self.definition(input, id) {
            return self.value(plan, definition);
        }
        let symbol = symbol_of(&self.inputs, (input, id))?;
        match self.given.get(symbol.name.as_str()) {
            Some(&value) => Some(value),
            // A weak undefined symbol has the value 0.
            None => (symbol.binding == Binding::Weak).then_some(0),
        }
    }

    fn relocation_target(&self, plan: &Plan, input: usize, relocation: &Relocation) -> Option<u32> {
        match relocation.target {
            Target::Section(id) => Some((*plan.starts.get(input)?.get(id.index())?)?.0),
            Target::Symbol(id) => self.target(plan, input, id),
        }
    }

    /// Adds veneers for branches that do not reach their targets. Returns whether it added any.
    fn add_veneers(&self, plan: &Plan, veneers: &mut Veneers) -> bool {
        let (least, most) = Reloc::Branch.range();
        let mut changed = false;
        for (number, input) in self.inputs.iter().enumerate() {
            for relocation in input.object.relocations.iter().filter(|r| r.kind == Reloc::Branch) {
                let Target::Symbol(id) = relocation.target else {
                    continue;
                };
                let section = relocation.section.index();
                let Some((start, _)) = plan.starts[number].get(section).copied().flatten() else {
                    continue;
                };
                let Some(target) = self.target(plan, number, id) else {
                    continue;
                };
                let place = i64::from(start) + i64::from(relocation.offset);
                let distance = i64::from(target) + relocation.addend - place;
                if (least..=most).contains(&distance) {
                    continue;
                }
                let own = veneers.entry((number, section)).or_default();
                let slot = own.len();
                own.entry((id, relocation.addend)).or_insert_with(|| {
                    changed = true;
                    slot
                });
            }
        }
        changed
    }

    fn apply(mut self, mut plan: Plan, veneers: &Veneers) -> Result<Program, Vec<ProgramError>> {
        let mut errors = std::mem::take(&mut self.errors);
        // Copy the contents.
        for own in plan.sections.iter_mut().filter(|own| !own.nobits) {
            own.bytes = vec![0; own.size as usize];
            for part in &own.parts {
                let section = &self.inputs[part.input].object.sections[part.section];
                for piece in &section.pieces {
                    let at = (part.address - own.address + piece.offset) as usize;
                    put(&own.name, &mut own.bytes, at, &piece.bytes).unwrap_or_else(|error| errors.push(error));
                }
            }
        }
        let mut places: HashMap<(usize, usize), (usize, u32, u32)> = HashMap::new();
        for (number, own) in plan.sections.iter().enumerate() {
            for part in &own.parts {
                places.insert((part.input, part.section), (number, part.address, part.size));
            }
        }
        let mut written = Vec::new();
        let copy_bytes = self.copy_bytes(&plan);
        let mut distances = Vec::new();
        let mut goals = Vec::new();
        for (number, input) in self.inputs.iter().enumerate() {
            for relocation in &input.object.relocations {
                let section = relocation.section.index();
                let Some(&(out, address, size)) = places.get(&(number, section)) else {
                    continue;
                };
                let alloc = input.object.sections[section].alloc;
                let Some(mut target) = self.relocation_target(&plan, number, relocation) else {
                    if !alloc && relocation.kind == Reloc::Abs32 {
                        // A dropped section has no address, and the addend is ignored.
                        let own = &mut plan.sections[out];
                        let at = (address + relocation.offset) as usize;
                        let word = tombstone(&own.name).to_le_bytes();
                        put(&own.name, &mut own.bytes, at, &word).unwrap_or_else(|error| errors.push(error));
                        continue;
                    }
                    let what = format!(
                        "{}: a relocation without a target at {:#x}",
                        input.name, relocation.offset
                    );
                    errors.push(ProgramError::Internal(what));
                    continue;
                };
                // Addresses are modulo 2^32, so an addend may be a signed or an unsigned number.
                let (min, max) = (i64::from(i32::MIN), i64::from(u32::MAX));
                if !(min..=max).contains(&relocation.addend) {
                    errors.push(ProgramError::Relocation {
                        place: (input.name.clone(), input.object.sections[section].name.clone()),
                        offset: relocation.offset,
                        symbol: self.target_name(number, relocation),
                        error: RelocError::Range {
                            reloc: relocation.kind,
                            value: relocation.addend,
                            min,
                            max,
                        },
                    });
                    continue;
                }
                let mut addend = relocation.addend as i32;
                if let (Target::Symbol(id), Some(list)) = (relocation.target, veneers.get(&(number, section)))
                    && relocation.kind == Reloc::Branch
                    && let Some(&slot) = list.get(&(id, relocation.addend))
                {
                    let goal = target.wrapping_add_signed(addend);
                    let at = (address + size).next_multiple_of(INSTRUCTION_SIZE) + VENEER_SIZE * slot as u32;
                    match veneer(goal) {
                        Ok(code) => {
                            written.push((out, at, code));
                            goals.push((at, goal));
                        }
                        Err(error) => errors.push(ProgramError::Internal(error.to_string())),
                    }
                    (target, addend) = (at, 0);
                }
                let place = address.wrapping_add(relocation.offset);
                let own = &mut plan.sections[out];
                if copy_bytes != 0 && own.exec && relocation.kind.is_pc_relative() {
                    distances.push(Distance {
                        place,
                        kind: relocation.kind,
                        target,
                        addend,
                    });
                }
                let bytes = own.bytes.get_mut((place - own.address) as usize..).unwrap_or_default();
                if let Err(error) = reloc::apply(relocation.kind, bytes, target, addend, place) {
                    errors.push(ProgramError::Relocation {
                        place: (input.name.clone(), input.object.sections[section].name.clone()),
                        offset: relocation.offset,
                        symbol: self.target_name(number, relocation),
                        error,
                    });
                }
            }
        }
        plan.sections.iter_mut().for_each(exceptions::sort);
        for (out, at, code) in written {
            let own = &mut plan.sections[out];
            let start = (at - own.address) as usize;
            put(&own.name, &mut own.bytes, start, &code).unwrap_or_else(|error| errors.push(error));
        }
        if copy_bytes != 0 {
            copies::fill(&mut plan, copy_bytes, &distances, &goals).unwrap_or_else(|error| errors.push(error));
        }
        if !errors.is_empty() {
            return Err(errors);
        }
        let first = if self.options.startup {
            startup::START
        } else {
            &self.options.entry
        };
        let entry = self
            .globals
            .get(first)
            .copied()
            .and_then(|first| self.value(&plan, first));
        let Some(entry) = entry else {
            return Err(vec![ProgramError::Internal(format!("`{first}` has no address"))]);
        };
        let mut symbols = self.symbols(&plan);
        symbols.extend(copies::symbols(&plan, copy_bytes, &symbols));
        Ok(Program {
            entry,
            sections: plan.sections,
            symbols,
            inputs: self.inputs.into_iter().map(|input| input.name).collect(),
        })
    }

    fn target_name(&self, input: usize, relocation: &Relocation) -> String {
        let object = &self.inputs[input].object;
        match relocation.target {
            Target::Section(id) => object.sections.get(id.index()).map(|section| section.name.clone()),
            Target::Symbol(id) => object.symbols.get(id.index()).map(|symbol| symbol.name.clone()),
        }
        .unwrap_or_default()
    }

    /// Returns the symbols of the program: the chosen definitions and the named local symbols.
    fn symbols(&self, plan: &Plan) -> Vec<OutputSymbol> {
        let mut list = Vec::new();
        for (number, input) in self.inputs.iter().enumerate() {
            for (index, symbol) in input.object.symbols.iter().enumerate() {
                let id = SymbolId::new(index as u32);
                let counts = match symbol.binding {
                    Binding::Local => symbol.value != SymbolValue::Undefined,
                    _ => self.globals.get(&symbol.name) == Some(&(number, id)),
                };
                if !counts || symbol.private || symbol.name.is_empty() {
                    continue;
                }
                let Some(address) = self.value(plan, (number, id)) else {
                    continue;
                };
                let section = match symbol.value {
                    SymbolValue::Place { section, .. } => {
                        plan.starts[number][section.index()].map(|(_, section)| section)
                    }
                    _ => None,
                };
                // Symbols in the scratchpad and in thread-local storage have no address in these
                // sections.
                let moves = |&section: &usize| {
                    let name = &plan.sections[section].name;
                    KINDS
                        .iter()
                        .any(|(kind, known)| known == name && matches!(kind, Kind::ScratchpadImage | Kind::TlsImage))
                };
                if section.is_some_and(|section| !plan.sections[section].alloc) {
                    continue;
                }
                list.push(OutputSymbol {
                    name: symbol.name.clone(),
                    address,
                    size: symbol.size.unwrap_or(0),
                    section: section.filter(|section| !moves(section)),
                    binding: symbol.binding,
                    kind: symbol.kind,
                });
            }
        }
        list.extend(self.stack_symbols());
        list
    }

    /// Returns symbols that let reports name stacks; none without start-up code.
    fn stack_symbols(&self) -> impl Iterator<Item = OutputSymbol> {
        let in_tiles = self.options.stacks_in_tiles.then_some(TILE_BYTES);
        let names = [STACKS, STACK_SIZE].into_iter().chain(in_tiles);
        let names = names.filter(|_| self.options.startup);
        names.filter_map(|name| {
            Some(OutputSymbol {
                name: name.to_owned(),
                address: *self.given.get(name)?,
                size: 0,
                section: None,
                binding: Binding::Local,
                kind: SymbolKind::None,
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_outside_of_a_section_are_an_internal_error() {
        let mut contents = [0; 4];
        assert!(put(".text", &mut contents, 0, &[1; 4]).is_ok());
        for at in [1, 4, usize::MAX] {
            let error = put(".text", &mut contents, at, &[2; 4]).unwrap_err();
            assert!(
                matches!(&error, ProgramError::Internal(what) if what.contains(".text")),
                "{error}"
            );
        }
        assert_eq!(contents, [1; 4]);
    }
}
