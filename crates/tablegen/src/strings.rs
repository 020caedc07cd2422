//! Interned text: names, string values and code fragments. Each text is stored once in one buffer.

use std::hash::{BuildHasher, BuildHasherDefault};

use rustc_hash::FxHasher;

use crate::table::Table;

/// An interned string. Two strings are equal exactly if their symbols are.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Symbol(pub(crate) u32);

impl Symbol {
    /// Represents the absence of an optional name. It is never the symbol of a string.
    pub(crate) const NONE: Symbol = Symbol(u32::MAX);
    /// The empty string.
    pub(crate) const EMPTY: Symbol = Symbol(0);

    /// Returns `None` for an absent name.
    pub(crate) fn some(self) -> Option<Symbol> {
        (self != Symbol::NONE).then_some(self)
    }
}

/// The interned strings, in one buffer.
#[derive(Debug)]
pub struct Strings {
    text: String,
    ranges: Vec<(u32, u32)>,
    table: Table,
}

/// The maximum size of the buffer in bytes. Its offsets have 32 bits, and an endless program should
/// be stopped before it fills memory.
const MAX_BYTES: usize = 1 << 30;

/// Returns the hash of a text. The table stores its lower half.
fn hash(text: &str) -> u32 {
    let hash = BuildHasherDefault::<FxHasher>::default().hash_one(text);
    hash as u32 ^ (hash >> 32) as u32
}

impl Default for Strings {
    fn default() -> Strings {
        let mut strings = Strings {
            text: String::new(),
            ranges: Vec::new(),
            table: Table::default(),
        };
        strings.intern("");
        strings.intern("NAME");
        strings
    }
}

impl Strings {
    /// The symbol of `NAME`.
    pub(crate) const NAME: Symbol = Symbol(1);

    /// Interns `text` and returns its symbol. Returns the symbol of the empty string if the buffer
    /// is full (1 GiB); see [`Strings::is_full`].
    pub fn intern(&mut self, text: &str) -> Symbol {
        let hash = hash(text);
        if let Some(known) = self.find(text, hash) {
            return known;
        }
        if self.text.len() + text.len() > MAX_BYTES {
            return Symbol::EMPTY;
        }
        let start = self.text.len();
        self.text.push_str(text);
        self.add(start, hash)
    }

    /// Interns the concatenation of two texts. The concatenation is built in the buffer and stays
    /// there if it is new.
    pub(crate) fn join(&mut self, a: Symbol, b: Symbol) -> Symbol {
        let start = self.text.len();
        for symbol in [a, b] {
            let Some((from, to)) = self.ranges.get(symbol.0 as usize) else {
                continue;
            };
            if self.text.len() + (to - from) as usize > MAX_BYTES {
                self.text.truncate(start);
                return Symbol::EMPTY;
            }
            self.text.extend_from_within(*from as usize..*to as usize);
        }
        let text = &self.text[start..];
        let hash = hash(text);
        if let Some(known) = self.find(text, hash) {
            self.text.truncate(start);
            return known;
        }
        self.add(start, hash)
    }

    fn find(&self, text: &str, hash: u32) -> Option<Symbol> {
        self.table
            .find(hash, |index| self.get(Symbol(index)) == text)
            .map(Symbol)
    }

    /// Creates a symbol for the text in the buffer from `start` on.
    fn add(&mut self, start: usize, hash: u32) -> Symbol {
        let index = self.ranges.len() as u32;
        self.ranges.push((start as u32, self.text.len() as u32));
        self.table.insert(hash, index);
        Symbol(index)
    }

    /// Returns the symbol of `text` if it is interned.
    pub fn lookup(&self, text: &str) -> Option<Symbol> {
        self.find(text, hash(text))
    }

    /// Returns the text of a symbol; empty for [`Symbol::NONE`].
    pub fn get(&self, symbol: Symbol) -> &str {
        self.ranges
            .get(symbol.0 as usize)
            .map_or("", |(start, end)| &self.text[*start as usize..*end as usize])
    }

    /// Returns whether less than one twentieth of the buffer is left.
    pub fn is_full(&self) -> bool {
        self.text.len() > MAX_BYTES / 20 * 19
    }
}

/// A map from symbols to values, stored as an array indexed by symbol. It suits maps that contain
/// many of all symbols.
#[derive(Debug)]
pub(crate) struct SymbolMap<T> {
    slots: Vec<Option<T>>,
}

impl<T> Default for SymbolMap<T> {
    fn default() -> SymbolMap<T> {
        SymbolMap { slots: Vec::new() }
    }
}

impl<T: Clone> SymbolMap<T> {
    pub(crate) fn get(&self, name: &Symbol) -> Option<&T> {
        self.slots.get(name.0 as usize)?.as_ref()
    }
    pub(crate) fn contains_key(&self, name: &Symbol) -> bool {
        self.get(name).is_some()
    }
    pub(crate) fn insert(&mut self, name: Symbol, value: T) {
        let at = name.0 as usize;
        if at >= self.slots.len() {
            self.slots.resize((at + 1).max(self.slots.len() * 2), None);
        }
        self.slots[at] = Some(value);
    }
    pub(crate) fn keys(&self) -> impl Iterator<Item = Symbol> + '_ {
        let filled = self.slots.iter().enumerate().filter(|(_, slot)| slot.is_some());
        filled.map(|(at, _)| Symbol(at as u32))
    }
}
