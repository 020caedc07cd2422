//! Types and values. Equal ones are stored once.
//!
//! Invariant: two values are equal exactly if their ids are. An entry stores the type of its value,
//! whether it contains variables, and its depth. No value is deeper than [`MAX_DEPTH`], which
//! bounds all recursive functions on values.

use std::hash::{BuildHasher, BuildHasherDefault, Hash};

use hashbrown::HashTable;
use rustc_hash::FxHasher;
use smallvec::SmallVec;

use crate::strings::Symbol;
use crate::table::Table;
use crate::token::Bang;

/// The maximum nesting depth of operators and lists in a value.
pub(crate) const MAX_DEPTH: u16 = 1500;
/// The maximum number of elements and arguments of all values together. Each takes 4 bytes, so 1.6
/// GB in total.
const MAX_POOL: usize = 400_000_000;
/// The maximum number of values. Each takes about 40 bytes.
pub(crate) const MAX_VALUES: usize = 60_000_000;

/// Integers from 0 up to and excluding this one are interned by index, without hashing.
const SMALL_INTS: usize = 4096;

/// An interned type.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub(crate) struct TypeId(pub(crate) u32);

/// A class.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub(crate) struct ClassId(pub(crate) u32);

/// A finished record.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub(crate) struct RecordId(pub(crate) u32);

/// A type.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Type {
    Bit,
    Bits(u32),
    Int,
    Str,
    Dag,
    List(TypeId),
    /// A record that derives from all of these classes (sorted). An empty list means any record.
    Record(Vec<ClassId>),
    /// The type of `?`, and the element type of an empty list without context. It converts to every
    /// type.
    Any,
}

impl TypeId {
    pub(crate) const BIT: TypeId = TypeId(0);
    pub(crate) const INT: TypeId = TypeId(1);
    pub(crate) const STR: TypeId = TypeId(2);
    pub(crate) const DAG: TypeId = TypeId(3);
    pub(crate) const ANY: TypeId = TypeId(4);
    /// A record of any class.
    pub(crate) const RECORD: TypeId = TypeId(5);
}

/// An interned value. The upper bits repeat the flags of the value, so that common tests need no
/// memory access.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub(crate) struct ValueId(pub(crate) u32);

/// The number of bits of a [`ValueId`] for the index of the value; the flags are above them.
const INDEX_BITS: u32 = 28;

impl ValueId {
    pub(crate) const UNSET: ValueId = ValueId((HAS_UNSET as u32) << INDEX_BITS);
    /// No value.
    const NONE: ValueId = ValueId(u32::MAX);
    pub(crate) const FALSE: ValueId = ValueId(1);
    pub(crate) const TRUE: ValueId = ValueId(2);

    pub(crate) fn bit(value: bool) -> ValueId {
        if value { ValueId::TRUE } else { ValueId::FALSE }
    }
    fn new(index: u32, flags: u8) -> ValueId {
        ValueId(index | u32::from(flags) << INDEX_BITS)
    }
    fn index(self) -> usize {
        (self.0 & ((1 << INDEX_BITS) - 1)) as usize
    }
    fn flags(self) -> u8 {
        (self.0 >> INDEX_BITS) as u8
    }
    /// Returns whether resolution may change the value.
    pub(crate) fn is_open(self) -> bool {
        self.flags() & OPEN != 0
    }
}

/// A range of the pool of children.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Kids {
    start: u32,
    len: u32,
}

/// A value. The parts of lists, dags and operators are in the pool.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Node {
    Unset,
    Bit(bool),
    /// Least significant bit first.
    Bits(Kids),
    Int(i64),
    Str(Symbol),
    /// A string written as a code fragment.
    Code(Symbol),
    List(Kids),
    /// Operator, its name, then value and name of each argument, all in the pool. Names are
    /// symbols, which have the size of a [`ValueId`].
    Dag(Kids),
    Def(RecordId),
    /// A class value with unresolved arguments: value and name of each argument, as in a dag.
    Call(ClassId, Kids),
    Var(Symbol),
    VarBit(ValueId, u32),
    Field(ValueId, Symbol),
    /// An unresolved operator. Operators that bind variables have them as `Var` arguments.
    Op(Bang, Kids),
    /// `list[i]` or `list[slice]`, depending on the type.
    Index(ValueId, ValueId),
    /// `a # b` with a known type.
    Paste(ValueId, ValueId),
}

/// The value contains a variable.
pub(crate) const HAS_VAR: u8 = 1;
/// Another resolution may change the value: it contains a variable, or an operator that waits for a
/// name or for the last resolution.
pub(crate) const OPEN: u8 = 2;
/// The value contains `?`.
pub(crate) const HAS_UNSET: u8 = 4;
/// Part of the value waits for something other than a variable, so every resolution has to try it
/// again.
const RETRY: u8 = 8;

#[derive(Debug, Clone, Copy)]
struct Entry {
    node: Node,
    ty: TypeId,
    depth: u16,
    flags: u8,
    /// The set of variables in the value, one bit each, see [`name_bit`].
    vars: u64,
}

/// The tables of all types and values.
#[derive(Debug)]
pub(crate) struct Values {
    types: Vec<Type>,
    type_table: HashTable<u32>,
    /// The narrow `bits` types by width, created at their first use.
    bits_types: Vec<Option<TypeId>>,
    /// The list types by element type, created at their first use.
    list_types: Vec<Option<TypeId>>,
    entries: Vec<Entry>,
    table: Table,
    /// Values that need no hash table: strings by symbol, records by id, small numbers.
    strings: Vec<ValueId>,
    defs: Vec<ValueId>,
    ints: Vec<ValueId>,
    /// Short sequences of known bits, by width and number.
    short_bits: Vec<ValueId>,
    /// The most recently used variable of each name.
    vars: Vec<ValueId>,
    pool: Vec<ValueId>,
    /// Whether a limit was exceeded: a value was too deep or the pool was full, and the value was
    /// replaced by `?`; or there are more than [`MAX_VALUES`] values.
    pub(crate) overflow: bool,
}

fn hash_one(value: impl Hash) -> u64 {
    BuildHasherDefault::<FxHasher>::default().hash_one(value)
}

/// Returns the next state of a hash. Combining both halves of the product lets every input bit
/// affect every output bit.
fn mix(a: u64, b: u64) -> u64 {
    let product = u128::from(a ^ 0x9E37_79B9_7F4A_7C15) * u128::from(b ^ 0xD1B5_4A32_D192_ED03);
    (product >> 64) as u64 ^ product as u64
}

/// Returns a hash of a list of ids. It uses two independent chains, because a single chain would
/// wait for each multiplication.
fn hash_kids(start: u64, kids: &[ValueId]) -> u64 {
    let (mut a, mut b) = (start, kids.len() as u64);
    let mut chunks = kids.chunks_exact(4);
    for chunk in &mut chunks {
        a = mix(a, u64::from(chunk[0].0) | u64::from(chunk[1].0) << 32);
        b = mix(b, u64::from(chunk[2].0) | u64::from(chunk[3].0) << 32);
    }
    for kid in chunks.remainder() {
        a = mix(a, u64::from(kid.0));
    }
    mix(a, b)
}

/// Compares two lists, eight ids at a time.
fn same_ids(a: &[ValueId], b: &[ValueId]) -> bool {
    let (mut x, mut y) = (a.chunks_exact(8), b.chunks_exact(8));
    a.len() == b.len()
        && (&mut x)
            .zip(&mut y)
            .all(|(x, y)| x.iter().zip(y).fold(0, |differ, (x, y)| differ | (x.0 ^ y.0)) == 0)
        && x.remainder() == y.remainder()
}

/// Returns the bit of a variable in sets of variables. Different names may share a bit.
pub(crate) fn name_bit(name: Symbol) -> u64 {
    1 << (name.0.wrapping_mul(0x9E37_79B9) >> 26)
}

impl Default for Values {
    fn default() -> Values {
        let mut values = Values {
            types: Vec::new(),
            type_table: HashTable::new(),
            bits_types: Vec::new(),
            list_types: Vec::new(),
            entries: Vec::new(),
            table: Table::default(),
            strings: Vec::new(),
            defs: Vec::new(),
            ints: Vec::new(),
            short_bits: Vec::new(),
            vars: Vec::new(),
            pool: Vec::new(),
            overflow: false,
        };
        // The order is that of the constants of `TypeId` and `ValueId`.
        for ty in [
            Type::Bit,
            Type::Int,
            Type::Str,
            Type::Dag,
            Type::Any,
            Type::Record(Vec::new()),
        ] {
            values.ty(ty);
        }
        values.leaf(Node::Unset, TypeId::ANY);
        values.leaf(Node::Bit(false), TypeId::BIT);
        values.leaf(Node::Bit(true), TypeId::BIT);
        values
    }
}

impl Values {
    pub(crate) fn ty(&mut self, ty: Type) -> TypeId {
        let hash = hash_one(&ty);
        let types = &self.types;
        if let Some(id) = self.type_table.find(hash, |id| types[*id as usize] == ty) {
            return TypeId(*id);
        }
        let id = self.types.len() as u32;
        self.types.push(ty);
        let types = &self.types;
        self.type_table
            .insert_unique(hash, id, |id| hash_one(&types[*id as usize]));
        TypeId(id)
    }
    fn bits_type(&mut self, width: usize) -> TypeId {
        if let Some(Some(ty)) = self.bits_types.get(width) {
            return *ty;
        }
        let ty = self.ty(Type::Bits(width as u32));
        if width < 256 {
            self.bits_types.resize(self.bits_types.len().max(width + 1), None);
            self.bits_types[width] = Some(ty);
        }
        ty
    }
    pub(crate) fn list_of(&mut self, element: TypeId) -> TypeId {
        let at = element.0 as usize;
        if let Some(Some(ty)) = self.list_types.get(at) {
            return *ty;
        }
        let ty = self.ty(Type::List(element));
        if at >= self.list_types.len() {
            self.list_types.resize(at + 1, None);
        }
        self.list_types[at] = Some(ty);
        ty
    }
    pub(crate) fn get_type(&self, id: TypeId) -> &Type {
        &self.types[id.0 as usize]
    }
    /// Returns the element type, if it is a list type.
    pub(crate) fn element(&self, id: TypeId) -> Option<TypeId> {
        match self.get_type(id) {
            Type::List(element) => Some(*element),
            _ => None,
        }
    }
    pub(crate) fn is_record(&self, id: TypeId) -> bool {
        matches!(self.get_type(id), Type::Record(_))
    }

    pub(crate) fn node(&self, id: ValueId) -> Node {
        self.entries[id.index()].node
    }
    pub(crate) fn type_of(&self, id: ValueId) -> TypeId {
        self.entries[id.index()].ty
    }
    /// Returns the nesting depth of the value.
    pub(crate) fn depth(&self, id: ValueId) -> u16 {
        self.entries[id.index()].depth
    }
    pub(crate) fn is_open(&self, id: ValueId) -> bool {
        id.is_open()
    }
    /// Returns whether substituting variables of the set `names` may change the value.
    pub(crate) fn is_touched(&self, id: ValueId, names: u64) -> bool {
        id.is_open() && (id.flags() & RETRY != 0 || self.entries[id.index()].vars & names != 0)
    }
    pub(crate) fn has_var(&self, id: ValueId) -> bool {
        id.flags() & HAS_VAR != 0
    }
    pub(crate) fn kids(&self, kids: Kids) -> &[ValueId] {
        &self.pool[kids.start as usize..(kids.start + kids.len) as usize]
    }
    pub(crate) fn count(&self) -> usize {
        self.entries.len()
    }

    fn hash(node: &Node, ty: TypeId, kids: &[ValueId]) -> u64 {
        let pair = |a: u32, b: u32| u64::from(a) | u64::from(b) << 32;
        let (tag, data) = match node {
            Node::Unset => (0, 0),
            Node::Bit(value) => (1, u64::from(*value)),
            Node::Int(value) => (2, *value as u64),
            Node::Str(text) => (3, u64::from(text.0)),
            Node::Code(text) => (4, u64::from(text.0)),
            Node::Def(record) => (5, u64::from(record.0)),
            Node::Var(name) => (6, u64::from(name.0)),
            Node::VarBit(base, index) => (7, pair(base.0, *index)),
            Node::Field(base, field) => (8, pair(base.0, field.0)),
            Node::Index(base, index) => (9, pair(base.0, index.0)),
            Node::Paste(left, right) => (10, pair(left.0, right.0)),
            Node::Bits(_) => return hash_kids(11, kids),
            Node::List(_) => return hash_kids(12 | u64::from(ty.0) << 8, kids),
            Node::Dag(_) => return hash_kids(13, kids),
            Node::Call(class, _) => return hash_kids(14 | u64::from(class.0) << 8, kids),
            Node::Op(op, _) => return hash_kids(15 | (*op as u64) << 8 | u64::from(ty.0) << 16, kids),
        };
        mix(tag | u64::from(ty.0) << 8, data)
    }

    fn same(&self, entry: &Entry, node: &Node, ty: TypeId, kids: &[ValueId]) -> bool {
        if entry.ty != ty {
            return false;
        }
        match (&entry.node, node) {
            (Node::Bits(old), Node::Bits(_)) | (Node::List(old), Node::List(_)) | (Node::Dag(old), Node::Dag(_)) => {
                same_ids(self.kids(*old), kids)
            }
            (Node::Call(a, old), Node::Call(b, _)) => a == b && same_ids(self.kids(*old), kids),
            (Node::Op(a, old), Node::Op(b, _)) => a == b && same_ids(self.kids(*old), kids),
            (old, new) => old == new,
        }
    }

    /// Returns whether every second child is a name, not a value.
    fn has_names(node: &Node) -> bool {
        matches!(node, Node::Dag(_) | Node::Call(..))
    }

    fn make(&mut self, node: Node, ty: TypeId, kids: &[ValueId]) -> ValueId {
        let hash = Self::hash(&node, ty, kids) as u32;
        let known = |index: u32| self.same(&self.entries[index as usize], &node, ty, kids);
        if let Some(index) = self.table.find(hash, known) {
            return ValueId::new(index, self.entries[index as usize].flags);
        }
        self.add(node, ty, kids, hash)
    }

    /// Adds a value that does not exist yet.
    fn add(&mut self, mut node: Node, ty: TypeId, kids: &[ValueId], hash: u32) -> ValueId {
        let mut flags = match node {
            Node::Unset => HAS_UNSET,
            Node::Var(_) => HAS_VAR | OPEN,
            Node::VarBit(..) | Node::Field(..) | Node::Op(..) | Node::Call(..) | Node::Index(..) | Node::Paste(..) => {
                OPEN
            }
            _ => 0,
        };
        let mut depth = 0;
        let mut vars = match node {
            Node::Var(name) => name_bit(name),
            _ => 0,
        };
        let mut add = |id: ValueId, entries: &[Entry]| {
            let entry = &entries[id.index()];
            flags |= entry.flags;
            vars |= entry.vars;
            depth = depth.max(entry.depth + 1);
        };
        match node {
            Node::VarBit(base, _) | Node::Field(base, _) => add(base, &self.entries),
            Node::Index(a, b) | Node::Paste(a, b) => {
                add(a, &self.entries);
                add(b, &self.entries);
            }
            _ if Self::has_names(&node) => {
                for kid in kids.iter().step_by(2) {
                    add(*kid, &self.entries);
                }
            }
            _ => {
                for kid in kids {
                    add(*kid, &self.entries);
                }
            }
        }
        if flags & OPEN != 0 && flags & HAS_VAR == 0 {
            flags |= RETRY;
        }
        if depth > MAX_DEPTH || self.pool.len() + kids.len() > MAX_POOL {
            self.overflow = true;
            return ValueId::UNSET;
        }
        let stored = Kids {
            start: self.pool.len() as u32,
            len: kids.len() as u32,
        };
        match &mut node {
            Node::Bits(kids) | Node::List(kids) | Node::Dag(kids) | Node::Call(_, kids) | Node::Op(_, kids) => {
                *kids = stored
            }
            _ => {}
        }
        self.pool.extend_from_slice(kids);
        let id = self.entries.len() as u32;
        if id >> INDEX_BITS != 0 {
            self.overflow = true;
            return ValueId::UNSET;
        }
        self.entries.push(Entry {
            node,
            ty,
            depth,
            flags,
            vars,
        });
        self.table.insert(hash, id);
        self.overflow |= self.entries.len() > MAX_VALUES;
        ValueId::new(id, flags)
    }

    /// Adds a value without parts that does not exist yet.
    fn push(&mut self, node: Node, ty: TypeId) -> ValueId {
        let id = self.entries.len() as u32;
        if id >> INDEX_BITS != 0 {
            self.overflow = true;
            return ValueId::UNSET;
        }
        self.entries.push(Entry {
            node,
            ty,
            depth: 0,
            flags: 0,
            vars: 0,
        });
        self.overflow |= self.entries.len() > MAX_VALUES;
        ValueId::new(id, 0)
    }

    fn leaf(&mut self, node: Node, ty: TypeId) -> ValueId {
        self.make(node, ty, &[])
    }
    pub(crate) fn int(&mut self, value: i64) -> ValueId {
        match usize::try_from(value) {
            Ok(at) if at < SMALL_INTS => {
                if let Some(known) = Self::known(&mut self.ints, at) {
                    return known;
                }
                let id = self.leaf(Node::Int(value), TypeId::INT);
                self.ints[at] = id;
                id
            }
            _ => self.leaf(Node::Int(value), TypeId::INT),
        }
    }
    pub(crate) fn str(&mut self, text: Symbol) -> ValueId {
        let at = text.0 as usize;
        if let Some(known) = Self::known(&mut self.strings, at) {
            return known;
        }
        let id = self.push(Node::Str(text), TypeId::STR);
        self.strings[at] = id;
        id
    }
    /// Returns the value at `at`, if it exists.
    fn known(table: &mut Vec<ValueId>, at: usize) -> Option<ValueId> {
        if at >= table.len() {
            table.resize((at + 1).max(table.len() * 2), ValueId::NONE);
        }
        Some(table[at]).filter(|id| *id != ValueId::NONE)
    }
    pub(crate) fn code(&mut self, text: Symbol) -> ValueId {
        self.leaf(Node::Code(text), TypeId::STR)
    }
    /// Returns the value of a record. Its type is always the type of the record.
    pub(crate) fn def(&mut self, record: RecordId, ty: TypeId) -> ValueId {
        let at = record.0 as usize;
        if let Some(known) = Self::known(&mut self.defs, at) {
            return known;
        }
        let id = self.push(Node::Def(record), ty);
        self.defs[at] = id;
        id
    }
    pub(crate) fn var(&mut self, name: Symbol, ty: TypeId) -> ValueId {
        let at = name.0 as usize;
        if let Some(known) = Self::known(&mut self.vars, at)
            && self.type_of(known) == ty
        {
            return known;
        }
        let id = self.leaf(Node::Var(name), ty);
        self.vars[at] = id;
        id
    }
    pub(crate) fn var_bit(&mut self, base: ValueId, index: u32) -> ValueId {
        self.leaf(Node::VarBit(base, index), TypeId::BIT)
    }
    pub(crate) fn field(&mut self, base: ValueId, field: Symbol, ty: TypeId) -> ValueId {
        self.leaf(Node::Field(base, field), ty)
    }
    pub(crate) fn index(&mut self, base: ValueId, index: ValueId, ty: TypeId) -> ValueId {
        self.leaf(Node::Index(base, index), ty)
    }
    pub(crate) fn paste(&mut self, left: ValueId, right: ValueId, ty: TypeId) -> ValueId {
        self.leaf(Node::Paste(left, right), ty)
    }
    /// Creates a `bits` value from bits, the least significant first.
    pub(crate) fn bits(&mut self, bits: &[ValueId]) -> ValueId {
        let short = Self::short(bits);
        if let Some(at) = short
            && let Some(known) = Self::known(&mut self.short_bits, at)
        {
            return known;
        }
        let ty = self.bits_type(bits.len());
        let id = self.make(Node::Bits(EMPTY), ty, bits);
        if let Some(at) = short {
            self.short_bits[at] = id;
        }
        id
    }
    /// Returns an index for a sequence of at most eight known bits: the bits after a leading 1,
    /// which marks the width.
    fn short(bits: &[ValueId]) -> Option<usize> {
        if bits.len() > 8 {
            return None;
        }
        bits.iter().rev().try_fold(1, |number, bit| match *bit {
            ValueId::FALSE => Some(number << 1),
            ValueId::TRUE => Some(number << 1 | 1),
            _ => None,
        })
    }
    pub(crate) fn bits_of(&mut self, value: u64, width: u32) -> ValueId {
        let bits: Ids = (0..width)
            .map(|at| ValueId::bit(at < 64 && value >> at & 1 == 1))
            .collect();
        self.bits(&bits)
    }
    pub(crate) fn list(&mut self, items: &[ValueId], element: TypeId) -> ValueId {
        let ty = self.list_of(element);
        self.make(Node::List(EMPTY), ty, items)
    }
    /// Creates a dag from the operator and the arguments, each with its name or [`Symbol::NONE`].
    pub(crate) fn dag(&mut self, parts: &[(ValueId, Symbol)]) -> ValueId {
        let kids = flatten(parts);
        self.make(Node::Dag(EMPTY), TypeId::DAG, &kids)
    }
    pub(crate) fn call(&mut self, class: ClassId, args: &[(ValueId, Symbol)], ty: TypeId) -> ValueId {
        let kids = flatten(args);
        self.call_of(class, &kids, ty)
    }
    /// Creates a class value from arguments in stored form: value and name in turns.
    pub(crate) fn call_of(&mut self, class: ClassId, kids: &[ValueId], ty: TypeId) -> ValueId {
        self.make(Node::Call(class, EMPTY), ty, kids)
    }
    pub(crate) fn op(&mut self, op: Bang, args: &[ValueId], ty: TypeId) -> ValueId {
        self.make(Node::Op(op, EMPTY), ty, args)
    }

    /// Returns the parts of a dag (operator first) or the arguments of a class value.
    pub(crate) fn pairs(&self, kids: Kids) -> impl ExactSizeIterator<Item = (ValueId, Symbol)> {
        self.kids(kids).chunks_exact(2).map(|pair| (pair[0], Symbol(pair[1].0)))
    }
    pub(crate) fn pair_vec(&self, kids: Kids) -> Pairs {
        self.pairs(kids).collect()
    }
    /// Returns a copy of the children, for functions that create values while they iterate.
    pub(crate) fn kid_vec(&self, kids: Kids) -> Ids {
        Ids::from_slice(self.kids(kids))
    }
}

/// A short list of values.
pub(crate) type Ids = SmallVec<[ValueId; 8]>;
/// A short list of values with names.
pub(crate) type Pairs = SmallVec<[(ValueId, Symbol); 6]>;

const EMPTY: Kids = Kids { start: 0, len: 0 };

fn flatten(parts: &[(ValueId, Symbol)]) -> SmallVec<[ValueId; 12]> {
    parts
        .iter()
        .flat_map(|(value, name)| [*value, ValueId(name.0)])
        .collect()
}
