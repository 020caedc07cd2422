//! The disassembler: bytes to text that assembles to the same bytes.
//!
//! # Contract
//!
//! [`disassemble`] returns rows. [`source`] turns the rows into a source that [`asm`](crate::asm)
//! assembles to the same bytes, addresses and relocations. Targets of branches and pc-relative
//! accesses get labels: the names of symbols, or `.L` and the address. Words that are no
//! instruction, bytes after a data symbol and targets of loads and stores are shown as data.
//!
//! # Limits
//!
//! Data that happens to encode an instruction, without a data symbol or an access to it, is shown
//! as that instruction. It still assembles to the same bytes.

use crate::asm::symbol_text;
use crate::decode::decode;
use crate::encode::encode;
use crate::inst::{Inst, Opcode, Operand, OperandKind};
use crate::machine::INSTRUCTION_SIZE;
use crate::reg::SReg;
use crate::reloc::{self, Reloc};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fmt::Write;

/// A name for an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symbol {
    /// The name.
    pub name: String,
    /// The address.
    pub address: u32,
    /// Whether data follows the symbol, not code.
    pub data: bool,
}

/// A word with a relocation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    /// Address of the word.
    pub address: u32,
    /// The relocation.
    pub kind: Reloc,
    /// The name of the symbol that it refers to.
    pub symbol: String,
    /// Added to the address of the symbol.
    pub addend: i64,
}

/// The contents of a program.
#[derive(Clone, Debug, Default)]
pub struct Input {
    /// Bytes with their addresses. Later segments override earlier ones where they overlap. They
    /// may extend past the end of the address space.
    pub segments: Vec<(u32, Vec<u8>)>,
    /// The symbols.
    pub symbols: Vec<Symbol>,
    /// Words with relocations.
    pub references: Vec<Reference>,
}

/// A row of a disassembly.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The address.
    pub address: u32,
    /// The contents.
    pub item: Item,
}

/// The contents of a [`Row`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    /// The bytes from the end of the previous row to this address are unknown.
    Gap,
    /// A name for the address.
    Label(String),
    /// Bytes and the statement that assembles to them.
    Bytes(Vec<u8>, String),
}

/// The minimum number of consecutive zero words that are shown as one statement.
const LEAST_ZEROS: u32 = 4;

/// Disassembles a program. The rows are in ascending order of address.
pub fn disassemble(input: &Input) -> Vec<Row> {
    let chunks = Chunks::new(&input.segments);
    let mut work = Work {
        chunks: &chunks,
        references: input.references.iter().map(|r| (r.address, r)).collect(),
        data: BTreeSet::new(),
        labels: BTreeMap::new(),
    };
    work.name(&input.symbols);
    work.find_data(&input.symbols);
    work.find_targets(&input.symbols);
    work.rows()
}

/// Returns the text of a word: an instruction if that assembles to the same word, else `.long`.
///
/// The ignored bits of a jump, above its distance, may be those that the assembler writes for a
/// number (repeated sign) or for a label (zeros). A jump with zeros is shown as a distance from
/// `.`. Words with other ignored bits are shown as `.long`.
pub fn word_text(word: u32) -> String {
    match decode(word) {
        Ok(inst) if encode(&inst) == Ok(word) => inst.to_string(),
        Ok(_) => match target(0, word) {
            Some((inst, Reloc::Branch, distance)) => with_last(&inst, &format!(". {:+}", distance as i32)),
            _ => data_text(word),
        },
        Err(_) => data_text(word),
    }
}

/// Returns the directive that assembles to a word.
pub fn data_text(word: u32) -> String {
    format!(".long {word:#010x}")
}

/// Returns the statements of a disassembly as a source text.
pub fn source(rows: &[Row]) -> String {
    let mut out = String::new();
    for row in rows {
        // Writing to a string does not fail.
        let _ = match &row.item {
            // A source starts at address 0.
            Item::Gap if row.address == 0 => Ok(()),
            Item::Gap => writeln!(out, "        .org {:#x}", row.address),
            Item::Label(name) => writeln!(out, "{}:", symbol_text(name)),
            Item::Bytes(_, text) => writeln!(out, "        {text}"),
        };
    }
    out
}

/// Bytes by address, in maximal pieces without overlaps.
struct Chunks(BTreeMap<u32, Vec<u8>>);

impl Chunks {
    fn new(segments: &[(u32, Vec<u8>)]) -> Chunks {
        let mut chunks = Chunks(BTreeMap::new());
        for (address, bytes) in segments {
            let to_end = usize::try_from((1u64 << 32) - u64::from(*address)).unwrap_or(usize::MAX);
            let (bytes, wrapped) = bytes.split_at(bytes.len().min(to_end));
            chunks.put(*address, bytes);
            chunks.put(0, wrapped);
        }
        chunks
    }

    fn put(&mut self, address: u32, bytes: &[u8]) {
        let end = u64::from(address) + bytes.len() as u64;
        if bytes.is_empty() {
            return;
        }
        // The new bytes replace the bytes at these addresses.
        let inside: Vec<u32> = self
            .0
            .range(address..)
            .map(|(&a, _)| a)
            .take_while(|&a| u64::from(a) < end)
            .collect();
        for start in inside {
            if let Some(old) = self.0.remove(&start)
                && let Ok(keep) = u32::try_from(end)
                && let Some(rest) = old.get((end - u64::from(start)) as usize..)
                && !rest.is_empty()
            {
                self.0.insert(keep, rest.to_vec());
            }
        }
        if let Some((&start, old)) = self.0.range_mut(..address).next_back() {
            let at = (address - start) as usize;
            if at < old.len() {
                let rest = old.get(at + bytes.len()..).unwrap_or_default().to_vec();
                old.truncate(at);
                if let Ok(keep) = u32::try_from(end)
                    && !rest.is_empty()
                {
                    self.0.insert(keep, rest);
                }
            }
        }
        let next = u32::try_from(end).ok().and_then(|end| self.0.remove(&end));
        let piece = match self.0.range_mut(..address).next_back() {
            Some((&start, old)) if start as usize + old.len() == address as usize => {
                old.extend_from_slice(bytes);
                old
            }
            _ => self.0.entry(address).or_insert(bytes.to_vec()),
        };
        piece.extend(next.into_iter().flatten());
    }

    /// Returns the contiguous bytes from an address on.
    fn at(&self, address: u32) -> &[u8] {
        match self.0.range(..=address).next_back() {
            Some((&start, bytes)) => bytes.get((address - start) as usize..).unwrap_or_default(),
            None => &[],
        }
    }

    fn word(&self, address: u32) -> Option<u32> {
        self.at(address).first_chunk().map(|b| u32::from_le_bytes(*b))
    }

    /// Returns the addresses and values of all whole words at addresses where an instruction may
    /// start.
    fn words(&self) -> impl Iterator<Item = (u32, u32)> {
        self.0.iter().flat_map(|(&start, bytes)| {
            let skip = (start.wrapping_neg() % INSTRUCTION_SIZE) as usize;
            let words = bytes.get(skip..).unwrap_or_default().chunks_exact(4);
            words.enumerate().map(move |(i, b)| {
                let word = b.iter().rev().fold(0, |word, &b| word << 8 | u32::from(b));
                (start + (skip + 4 * i) as u32, word)
            })
        })
    }
}

struct Work<'a> {
    chunks: &'a Chunks,
    references: HashMap<u32, &'a Reference>,
    /// Addresses of words that are data even if they decode as instructions.
    data: BTreeSet<u32>,
    /// The names of each address. References to the address use the first name.
    labels: BTreeMap<u32, Vec<String>>,
}

/// Returns how an instruction refers to an address: the index of the operand, and the relocation
/// that fills it in.
fn reference(inst: &Inst) -> Option<(usize, Reloc)> {
    let desc = inst.desc();
    let from_pc = inst.operands.contains(&Operand::S(SReg::PC));
    desc.operands
        .iter()
        .position(|o| o.kind.register_file().is_none())
        .and_then(|index| match desc.operands[index].kind {
            OperandKind::Brtarget18 | OperandKind::Jmptarget18 | OperandKind::Calltarget18 => {
                Some((index, Reloc::Branch))
            }
            OperandKind::Offset9 if desc.flags.may_load() || desc.flags.may_store() => {
                let base = desc.operands.get(index.checked_sub(1)?)?;
                let is_base = !base.is_def && inst.operands.get(index - 1) == Some(&Operand::S(SReg::PC));
                (from_pc && is_base).then_some((index, Reloc::PcrelMem))
            }
            _ => None,
        })
}

/// Returns the address that a word refers to, if a label for it would assemble to the same word.
fn target(address: u32, word: u32) -> Option<(Inst, Reloc, u32)> {
    let inst = decode(word).ok()?;
    let (index, kind) = reference(&inst)?;
    let target = address.wrapping_add_signed(inst.operands.get(index)?.imm()?);
    // Compute the word that the assembler would emit for the label.
    let mut zero = inst;
    zero.operands.set(index, Operand::Imm(0));
    let mut bytes = encode(&zero).ok()?.to_le_bytes();
    reloc::apply(kind, &mut bytes, target, 0, address).ok()?;
    (u32::from_le_bytes(bytes) == word).then_some((inst, kind, target))
}

/// Returns the target of a branch at the address; `None` for other words.
pub fn branch_target(address: u32, word: u32) -> Option<u32> {
    let (_, kind, target) = target(address, word)?;
    (kind == Reloc::Branch).then_some(target)
}

/// Returns the text of an instruction with its last operand replaced.
fn with_last(inst: &Inst, last: &str) -> String {
    let text = inst.to_string();
    match text
        .rfind(", ")
        .map(|at| at + 2)
        .or_else(|| text.find(' ').map(|at| at + 1))
    {
        Some(at) => format!("{}{last}", &text[..at]),
        None => text,
    }
}

impl Work<'_> {
    fn name(&mut self, symbols: &[Symbol]) {
        let mut known = HashSet::new();
        for symbol in symbols {
            // Names are unique in a source, so only the first symbol of a name counts.
            let inside = !self.chunks.at(symbol.address).is_empty();
            if inside && known.insert(symbol.name.as_str()) {
                self.labels.entry(symbol.address).or_default().push(symbol.name.clone());
            }
        }
    }

    /// Marks the words from each data symbol to the next symbol as data.
    fn find_data(&mut self, symbols: &[Symbol]) {
        let mut sorted: Vec<&Symbol> = symbols.iter().collect();
        sorted.sort_by_key(|s| (s.address, s.data));
        for (index, symbol) in sorted.iter().enumerate().filter(|(_, s)| s.data) {
            let next = sorted[index..].iter().find(|s| s.address > symbol.address);
            let rest = self.chunks.at(symbol.address).len() as u64;
            let end = (u64::from(symbol.address) + rest).min(next.map_or(1 << 32, |s| u64::from(s.address)));
            let mut at = u64::from(symbol.address).next_multiple_of(u64::from(INSTRUCTION_SIZE));
            while at < end {
                self.data.insert(at as u32);
                at += u64::from(INSTRUCTION_SIZE);
            }
        }
    }

    fn find_targets(&mut self, symbols: &[Symbol]) {
        let taken: HashSet<&str> = symbols.iter().map(|s| s.name.as_str()).collect();
        let mut branched = BTreeSet::new();
        let mut accessed = BTreeSet::new();
        for (address, word) in self.chunks.words() {
            if self.data.contains(&address) || self.references.contains_key(&address) {
                continue;
            }
            if let Some((_, kind, target)) = target(address, word)
                && target.is_multiple_of(INSTRUCTION_SIZE)
                && self.chunks.word(target).is_some()
            {
                let set = if kind == Reloc::Branch {
                    &mut branched
                } else {
                    &mut accessed
                };
                set.insert(target);
            }
        }
        self.data.extend(accessed.difference(&branched));
        for target in branched.union(&accessed) {
            let name = format!(".L{target:08x}");
            if !self.labels.contains_key(target) && !taken.contains(name.as_str()) {
                self.labels.insert(*target, vec![name]);
            }
        }
    }

    fn rows(&self) -> Vec<Row> {
        let mut rows = Vec::new();
        for (&start, bytes) in &self.chunks.0 {
            rows.push(Row {
                address: start,
                item: Item::Gap,
            });
            let mut at = 0;
            while at < bytes.len() {
                let address = start + at as u32;
                for name in self.labels.get(&address).into_iter().flatten() {
                    let item = Item::Label(name.clone());
                    rows.push(Row { address, item });
                }
                let (len, text) = self.statement(address, &bytes[at..]);
                let item = Item::Bytes(bytes[at..at + len].to_vec(), text);
                rows.push(Row { address, item });
                at += len;
            }
        }
        rows
    }

    /// Returns the statement for the bytes at an address, and the number of bytes that it covers.
    fn statement(&self, address: u32, bytes: &[u8]) -> (usize, String) {
        // The statement ends at the next label or instruction boundary.
        let to_word = 4 - (address % INSTRUCTION_SIZE) as usize;
        let mut len = to_word.min(bytes.len());
        if let Some((&next, _)) = address.checked_add(1).and_then(|a| self.labels.range(a..).next()) {
            len = len.min((next - address) as usize);
        }
        let word = bytes.first_chunk().map(|b| u32::from_le_bytes(*b));
        let Some(word) = word.filter(|_| len == 4) else {
            let list: Vec<String> = bytes[..len].iter().map(|b| format!("{b:#04x}")).collect();
            return (len, format!(".byte {}", list.join(", ")));
        };
        if let Some(reference) = self.references.get(&address)
            && let Some(text) = referring(word, reference)
        {
            return (4, text);
        }
        let is_data = self.data.contains(&address);
        if word == 0 {
            let zeros = self.zeros(address, bytes);
            if zeros >= LEAST_ZEROS {
                let len = 4 * zeros as usize;
                return (len, format!(".zero {len}"));
            }
        }
        if is_data {
            return (4, data_text(word));
        }
        let labelled = target(address, word).and_then(|(inst, kind, place)| {
            let name = self.labels.get(&place)?.first()?;
            // The assembler rejects branches to unaligned targets.
            let fits = kind != Reloc::Branch || place.is_multiple_of(INSTRUCTION_SIZE);
            fits.then(|| with_last(&inst, &symbol_text(name)))
        });
        (4, labelled.unwrap_or_else(|| word_text(word)))
    }

    /// Returns the number of consecutive zero words, up to a label or a reference.
    fn zeros(&self, address: u32, bytes: &[u8]) -> u32 {
        let words = bytes.chunks_exact(4).take_while(|b| b.iter().all(|&b| b == 0)).count() as u32;
        let next = address.checked_add(1).and_then(|a| self.labels.range(a..).next());
        let most = next.map_or(words, |(&next, _)| words.min((next - address) / INSTRUCTION_SIZE));
        let free = |i: &u32| !self.references.contains_key(&(address + 4 * i));
        (0..most).take_while(free).count() as u32
    }
}

/// Returns the statement with its reference; `None` if the word has no operand for it.
fn referring(word: u32, reference: &Reference) -> Option<String> {
    let mut target = symbol_text(&reference.symbol);
    if reference.addend != 0 {
        // Writing to a string does not fail.
        let _ = write!(target, "{:+}", reference.addend);
    }
    let half = |kind: OperandKind| {
        let same = |desc: &crate::inst::InstDesc| (word ^ desc.base) & desc.fixed == 0;
        let takes = |op: &&Opcode| op.desc().operands.iter().any(|o| o.kind == kind);
        let opcode = Opcode::ALL.iter().filter(takes).find(|op| same(op.desc()))?;
        // The opcodes that share the encoding have the destination in the same position.
        let mut inst = decode(word).ok()?;
        inst.opcode = *opcode;
        Some(with_last(&inst, &target))
    };
    match reference.kind {
        Reloc::Abs32 if word == 0 => Some(format!(".long {target}")),
        Reloc::AbsHighLea => half(OperandKind::AbsHigh),
        Reloc::AbsLowLea => half(OperandKind::AbsLow),
        Reloc::Branch | Reloc::PcrelMem => {
            let inst = decode(word).ok()?;
            let (_, kind) = self::reference(&inst)?;
            (kind == reference.kind).then(|| with_last(&inst, &target))
        }
        _ => None,
    }
}
