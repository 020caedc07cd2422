//! Static linking of one object into an image: assigns addresses to sections and applies
//! relocations.

use crate::image::{Image, Segment};
use npu_mc::asm::{
    Binding, Fault, Object, Section, SectionId, Span, SymbolId, SymbolValue, Target, nearest, out_of_reach,
};
use npu_mc::machine::{INSTRUCTION_SIZE, SCRATCHPAD_SIZE};
use npu_mc::reloc::{self, elf};

/// The addresses of sections.
#[derive(Clone, Debug, Default)]
pub struct Placement {
    /// Address of the first section, `.text`. The other sections follow, those without contents
    /// last.
    pub base: u32,
    /// Addresses of individual sections by name.
    pub sections: Vec<(String, u32)>,
}

/// A program with addresses.
#[derive(Clone, Debug, Default)]
pub struct Linked {
    /// The contents of memory, in ascending order of address, without overlaps.
    pub image: Image,
    /// The address of each section of the object; `None` for a section that does not occupy memory.
    pub addresses: Vec<Option<u32>>,
}

impl Linked {
    /// Returns the address of a symbol of the object.
    pub fn symbol(&self, object: &Object, id: SymbolId) -> Option<u32> {
        address(object, &self.addresses, id, 0)
    }
}

/// The maximum length of a chain of symbol aliases that ends at an undefined symbol.
const DEEPEST: u32 = 16;

fn address(object: &Object, sections: &[Option<u32>], id: SymbolId, depth: u32) -> Option<u32> {
    match object.symbols.get(id.index())?.value {
        SymbolValue::Undefined => None,
        SymbolValue::Number(value) => Some(value as u32),
        SymbolValue::Place { section, offset } => {
            let start = sections.get(section.index()).copied().flatten()?;
            Some(start.wrapping_add(offset))
        }
        SymbolValue::Near { symbol, addend } if depth < DEEPEST => {
            Some(address(object, sections, symbol, depth + 1)?.wrapping_add(addend as u32))
        }
        SymbolValue::Near { .. } => None,
    }
}

fn is_scratchpad(section: &Section) -> bool {
    section.name == elf::SCRATCHPAD_SECTION
}

/// Returns a fault without a position in the source.
fn general(message: String) -> Fault {
    Fault::new(Span::default(), message, "")
}

/// Assigns addresses to all sections and applies all relocations.
///
/// # Errors
///
/// Returns faults for undefined symbols, labels out of reach, and sections that overlap or do not
/// fit.
pub fn link(object: &Object, placement: &Placement) -> Result<Linked, Vec<Fault>> {
    Placing(object).link(placement)
}

struct Placing<'a>(&'a Object);

impl Placing<'_> {
    fn link(&self, placement: &Placement) -> Result<Linked, Vec<Fault>> {
        let mut faults = Vec::new();
        let addresses = self.addresses(placement, &mut faults);
        let mut sections: Vec<Section> = self.0.sections.clone();
        self.apply(&mut sections, &addresses, &mut faults);
        let mut segments = Vec::new();
        for (section, start) in sections.into_iter().zip(&addresses) {
            let Some(start) = *start else { continue };
            if is_scratchpad(&section) {
                if section.pieces.iter().any(|p| p.bytes.iter().any(|&b| b != 0)) {
                    let message = format!("the section `{}` has contents other than zeros", section.name);
                    let fault = general(message);
                    faults.push(fault.note("an image fills main memory only; the program has to fill the scratchpad"));
                }
                continue;
            }
            for piece in section.pieces.into_iter().filter(|p| !p.bytes.is_empty()) {
                segments.push(Segment {
                    address: start.wrapping_add(piece.offset),
                    bytes: piece.bytes,
                });
            }
        }
        segments.sort_by_key(|s| s.address);
        if faults.is_empty() {
            let image = Image { segments, entry: None };
            Ok(Linked { image, addresses })
        } else {
            faults.sort_by_key(|f| f.span.start);
            Err(faults)
        }
    }

    fn addresses(&self, placement: &Placement, faults: &mut Vec<Fault>) -> Vec<Option<u32>> {
        for (name, _) in &placement.sections {
            if !self.0.sections.iter().any(|s| s.name == *name) {
                let names: Vec<String> = self.0.sections.iter().map(|s| format!("`{}`", s.name)).collect();
                let fault = general(format!("there is no section `{name}` to be placed"));
                faults.push(fault.note(format!("there are {}", names.join(", "))));
            }
        }
        let mut addresses = vec![None; self.0.sections.len()];
        let mut taken: Vec<(u64, u64, usize)> = Vec::new();
        let mut next = u64::from(placement.base);
        let order = (0..self.0.sections.len()).filter(|&i| !self.0.sections[i].nobits);
        let order = order.chain((0..self.0.sections.len()).filter(|&i| self.0.sections[i].nobits));
        for index in order {
            let section = &self.0.sections[index];
            if !section.alloc {
                continue;
            }
            if is_scratchpad(section) {
                addresses[index] = Some(0);
                if section.size > u64::from(SCRATCHPAD_SIZE) {
                    let size = section.size;
                    faults.push(general(format!(
                        "the scratchpad has {SCRATCHPAD_SIZE} bytes, the section `{}` {size}",
                        section.name
                    )));
                }
                continue;
            }
            let align = u64::from(section.align.max(INSTRUCTION_SIZE));
            let said = placement.sections.iter().find(|(name, _)| *name == section.name);
            let start = match said {
                Some((_, address)) => u64::from(*address),
                // The base address is used as given; only the sections after it are aligned.
                None if section.size == 0 => next,
                None => next.next_multiple_of(align),
            };
            if section.size > 0 && !start.is_multiple_of(align) {
                let name = &section.name;
                faults.push(general(format!(
                    "{start:#010x} is not a multiple of {align}, which the section `{name}` requires"
                )));
            }
            let end = start + section.size;
            if end > 1 << 32 {
                faults.push(general(format!(
                    "the section `{}` goes past the end of memory",
                    section.name
                )));
            }
            if let Some(&(_, _, other)) = taken.iter().find(|&&(s, e, _)| start < e && s < end) {
                let other = &self.0.sections[other].name;
                faults.push(general(format!(
                    "the sections `{}` and `{other}` overlap",
                    section.name
                )));
            }
            if section.size > 0 {
                taken.push((start, end, index));
            }
            if said.is_none() {
                next = end;
            }
            addresses[index] = u32::try_from(start).ok();
        }
        addresses
    }

    fn apply(&self, sections: &mut [Section], addresses: &[Option<u32>], faults: &mut Vec<Fault>) {
        let start = |id: SectionId| addresses.get(id.index()).copied().flatten();
        let mut reported: Vec<SymbolId> = Vec::new();
        for relocation in &self.0.relocations {
            // Sections that do not occupy memory are not in the image.
            let Some(section_start) = start(relocation.section) else {
                continue;
            };
            let symbol = match relocation.target {
                Target::Section(id) => start(id),
                Target::Symbol(id) => address(self.0, addresses, id, 0).or_else(|| self.weak(id)),
            };
            let Some(symbol) = symbol else {
                if let Target::Symbol(id) = relocation.target {
                    let id = self.undefined(id);
                    if !reported.contains(&id) {
                        reported.push(id);
                        faults.push(self.missing(id, &relocation.span));
                    }
                } else {
                    let message = "this address is in a section that takes no memory";
                    faults.push(Fault::new(relocation.span.clone(), message, "here"));
                }
                continue;
            };
            let place = section_start.wrapping_add(relocation.offset);
            let bytes = sections[relocation.section.index()].bytes_at_mut(relocation.offset);
            if let Err(e) = reloc::apply(relocation.kind, bytes, symbol, relocation.addend as i32, place) {
                faults.push(out_of_reach(&e, &relocation.span));
            }
        }
    }

    /// Returns address 0 for a weak undefined symbol.
    fn weak(&self, id: SymbolId) -> Option<u32> {
        let symbol = self.0.symbols.get(id.index())?;
        (symbol.binding == Binding::Weak && symbol.value == SymbolValue::Undefined).then_some(0)
    }

    /// Returns the undefined symbol at the end of a chain of aliases.
    fn undefined(&self, mut id: SymbolId) -> SymbolId {
        for _ in 0..DEEPEST {
            match self.0.symbols.get(id.index()).map(|s| s.value) {
                Some(SymbolValue::Near { symbol, .. }) => id = symbol,
                _ => break,
            }
        }
        id
    }

    fn missing(&self, id: SymbolId, span: &Span) -> Fault {
        let name = self.0.symbols.get(id.index()).map_or("?", |s| s.name.as_str());
        let fault = Fault::new(
            span.clone(),
            format!("the symbol `{name}` is not defined"),
            "first used here",
        );
        let defined = self
            .0
            .symbols
            .iter()
            .filter(|s| s.value != SymbolValue::Undefined && !s.name.starts_with(".L"));
        match nearest(name, defined.map(|s| s.name.as_str())) {
            Some(near) => fault.note(format!("did you mean `{near}`?")),
            None => fault,
        }
    }
}
