//! The results of a program: classes, records and their values; types and their relations.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::shape::{Chain, Chains, ClassList, ClassLists, FieldDecl, Joins, Layout, Place, Places};
use crate::source::Span;
use crate::step::StepData;
use crate::strings::{Strings, Symbol, SymbolMap};
use crate::value::{ClassId, Ids, Node, RecordId, Type, TypeId, ValueId, Values};

/// A field of a class or record: its declaration and its value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FieldData {
    pub(crate) name: Symbol,
    pub(crate) ty: TypeId,
    pub(crate) value: ValueId,
    /// The span of the value.
    pub(crate) span: Place,
    /// The span of the declaration.
    pub(crate) decl: Place,
    /// Whether it was declared with `field`, so that it may stay unresolved.
    pub(crate) nonconcrete: bool,
}

impl FieldData {
    #[inline]
    fn new(decl: &FieldDecl, cell: &Cell) -> FieldData {
        FieldData {
            name: decl.name,
            ty: decl.ty,
            value: cell.value,
            span: cell.span,
            decl: decl.decl,
            nonconcrete: decl.nonconcrete,
        }
    }
}

/// The value of a field and its span.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cell {
    pub(crate) value: ValueId,
    pub(crate) span: Place,
}

/// A view of the fields of a class or record.
#[derive(Clone, Copy)]
pub(crate) struct Fields<'a> {
    layout: &'a Layout,
    cells: &'a [Cell],
}

impl<'a> Fields<'a> {
    pub(crate) fn find(self, name: Symbol) -> Option<FieldData> {
        self.layout.find(name).map(|at| self.at(at))
    }
    pub(crate) fn at(self, at: usize) -> FieldData {
        FieldData::new(&self.layout.fields[at], &self.cells[at])
    }
    pub(crate) fn is_empty(self) -> bool {
        self.cells.is_empty()
    }
    /// Returns whether some field was declared with `field`.
    pub(crate) fn has_nonconcrete(self) -> bool {
        self.layout.has_nonconcrete
    }
    pub(crate) fn iter(self) -> impl Iterator<Item = FieldData> + use<'a> {
        let pairs = self.layout.fields.iter().zip(self.cells);
        pairs.map(|(decl, cell)| FieldData::new(decl, cell))
    }
}

/// A template parameter of a class or multiclass.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ParamData {
    pub(crate) name: Symbol,
    /// The name of its variable, `Class:name`.
    pub(crate) qualified: Symbol,
    pub(crate) ty: TypeId,
    pub(crate) default: ValueId,
    pub(crate) span: Span,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Assertion {
    pub(crate) condition: ValueId,
    pub(crate) message: ValueId,
    pub(crate) span: Span,
}

/// A class, or a record before its last resolution.
#[derive(Clone, Debug)]
pub(crate) struct Proto {
    pub(crate) name: ValueId,
    pub(crate) span: Span,
    pub(crate) layout: Arc<Layout>,
    /// The values, one for each field of the layout.
    pub(crate) cells: Vec<Cell>,
    /// Its direct and indirect parents, each after its own parents.
    pub(crate) supers: ClassList,
    pub(crate) direct: ClassList,
    pub(crate) asserts: Vec<Assertion>,
    pub(crate) dumps: Vec<(ValueId, Span)>,
    /// The `defm`s and class values that instantiated it, the innermost first.
    pub(crate) chain: Chain,
    /// The history of the fields, if it is recorded.
    pub(crate) history: Vec<StepData>,
    pub(crate) anonymous: bool,
    /// Whether a fault in it has been reported already. Unresolved fields are not reported then.
    pub(crate) faulty: bool,
    /// Whether a class that it names as a parent is unknown, so that fields are missing.
    pub(crate) lacks_parent: bool,
}

impl Proto {
    pub(crate) fn new(name: ValueId, span: Span, layout: Arc<Layout>) -> Proto {
        Proto {
            name,
            span,
            layout,
            cells: Vec::new(),
            supers: ClassList::EMPTY,
            direct: ClassList::EMPTY,
            asserts: Vec::new(),
            dumps: Vec::new(),
            chain: Chain::EMPTY,
            history: Vec::new(),
            anonymous: false,
            faulty: false,
            lacks_parent: false,
        }
    }
    pub(crate) fn fields(&self) -> Fields<'_> {
        Fields {
            layout: &self.layout,
            cells: &self.cells,
        }
    }
    pub(crate) fn field(&self, name: Symbol) -> Option<FieldData> {
        self.fields().find(name)
    }
    pub(crate) fn field_index(&self, name: Symbol) -> Option<usize> {
        self.layout.find(name)
    }
    pub(crate) fn field_at(&self, at: usize) -> FieldData {
        self.fields().at(at)
    }
    /// Adds a field with a new name.
    pub(crate) fn push(&mut self, field: FieldData) {
        Arc::make_mut(&mut self.layout).push(FieldDecl {
            name: field.name,
            ty: field.ty,
            decl: field.decl,
            nonconcrete: field.nonconcrete,
        });
        self.cells.push(Cell {
            value: field.value,
            span: field.span,
        });
    }
}

#[derive(Debug)]
pub(crate) struct ClassData {
    pub(crate) name: Symbol,
    pub(crate) ty: TypeId,
    /// The variable `Class:NAME`.
    pub(crate) name_var: Symbol,
    pub(crate) params: Arc<Vec<ParamData>>,
    pub(crate) proto: Proto,
    pub(crate) defined: bool,
}

/// A record. The values of its fields are in [`World::cells`], their history in
/// [`World::histories`].
#[derive(Debug)]
pub(crate) struct RecordData {
    pub(crate) name: Symbol,
    pub(crate) ty: TypeId,
    pub(crate) span: Span,
    pub(crate) layout: Arc<Layout>,
    /// The index of its first cell. It has one cell for each field of the layout.
    pub(crate) start: usize,
    pub(crate) supers: ClassList,
    pub(crate) direct: ClassList,
    pub(crate) chain: Chain,
    pub(crate) anonymous: bool,
    /// Whether all fields have their final values.
    pub(crate) complete: bool,
}

/// The definitions of a program.
#[derive(Debug, Default)]
pub(crate) struct World {
    pub(crate) strings: Strings,
    pub(crate) values: Values,
    pub(crate) classes: Vec<ClassData>,
    pub(crate) class_names: FxHashMap<Symbol, ClassId>,
    pub(crate) records: Vec<RecordData>,
    /// The values of the fields of all records, adjacent for each record.
    pub(crate) cells: Vec<Cell>,
    /// The histories of the records' fields, if they are recorded.
    pub(crate) histories: FxHashMap<RecordId, Vec<StepData>>,
    pub(crate) record_names: SymbolMap<RecordId>,
    /// The finished records in the order of their completion.
    pub(crate) order: Vec<RecordId>,
    /// The `defvar`s and `defset`s of the top level.
    pub(crate) globals: FxHashMap<Symbol, ValueId>,
    pub(crate) places: Places,
    pub(crate) lists: ClassLists,
    pub(crate) chains: Chains,
    pub(crate) joins: Joins,
    /// The layout without fields.
    pub(crate) no_fields: Arc<Layout>,
}

impl World {
    pub(crate) fn class(&self, id: ClassId) -> &ClassData {
        &self.classes[id.0 as usize]
    }
    pub(crate) fn record(&self, id: RecordId) -> &RecordData {
        &self.records[id.0 as usize]
    }
    /// Returns the fields of a record.
    pub(crate) fn fields<'a>(&'a self, record: &'a RecordData) -> Fields<'a> {
        Fields {
            layout: &record.layout,
            cells: &self.cells[record.start..record.start + record.layout.fields.len()],
        }
    }
    pub(crate) fn text(&self, symbol: Symbol) -> &str {
        self.strings.get(symbol)
    }

    /// Creates a class or record without fields.
    pub(crate) fn new_proto(&self, name: ValueId, span: Span) -> Proto {
        Proto::new(name, span, Arc::clone(&self.no_fields))
    }
    /// Returns all direct and indirect parents, each after its own parents.
    pub(crate) fn supers(&self, proto: &Proto) -> &[ClassId] {
        self.lists.get(proto.supers)
    }
    pub(crate) fn span(&self, place: Place) -> Span {
        self.places.span(place)
    }
    /// Returns the type of a record with these classes.
    pub(crate) fn list_type(&mut self, list: ClassList) -> TypeId {
        if let Some(ty) = self.lists.type_of(list) {
            return ty;
        }
        let classes = self.lists.get(list).to_vec();
        let ty = self.record_type(&classes);
        self.lists.set_type(list, ty);
        ty
    }

    /// Returns whether `class` is `ancestor` or derives from it.
    pub(crate) fn class_is_a(&self, class: ClassId, ancestor: ClassId) -> bool {
        class == ancestor || self.supers(&self.class(class).proto).contains(&ancestor)
    }

    /// Returns the type of a record with these classes. Parents of other classes in the list are
    /// omitted.
    pub(crate) fn record_type(&mut self, classes: &[ClassId]) -> TypeId {
        let mut least: Vec<ClassId> = classes
            .iter()
            .copied()
            .filter(|class| {
                !classes
                    .iter()
                    .any(|other| other != class && self.class_is_a(*other, *class))
            })
            .collect();
        least.sort_unstable();
        least.dedup();
        self.values.ty(Type::Record(least))
    }

    /// Returns whether every value of type `a` is also a value of type `b`.
    pub(crate) fn type_is(&self, a: TypeId, b: TypeId) -> bool {
        if a == b || b == TypeId::ANY || a == TypeId::ANY {
            return true;
        }
        match (self.values.get_type(a), self.values.get_type(b)) {
            (Type::Record(have), Type::Record(want)) => want
                .iter()
                .all(|class| have.iter().any(|one| self.class_is_a(*one, *class))),
            (Type::List(a), Type::List(b)) => self.type_is(*a, *b),
            _ => false,
        }
    }

    /// Returns whether some values of type `from` convert to `to`.
    pub(crate) fn type_converts(&self, from: TypeId, to: TypeId) -> bool {
        if self.type_is(from, to) {
            return true;
        }
        match (self.values.get_type(from), self.values.get_type(to)) {
            (Type::Bit, Type::Int | Type::Bits(1))
            | (Type::Bits(_), Type::Int)
            | (Type::Bits(1), Type::Bit)
            | (Type::Int, Type::Bit | Type::Bits(_)) => true,
            (Type::List(a), Type::List(b)) => self.type_converts(*a, *b),
            _ => false,
        }
    }

    /// Returns the common type of two values, for lists and choices.
    pub(crate) fn common_type(&mut self, a: TypeId, b: TypeId) -> Option<TypeId> {
        if a == b || b == TypeId::ANY {
            return Some(a);
        }
        if a == TypeId::ANY {
            return Some(b);
        }
        let (left, right) = (self.values.get_type(a).clone(), self.values.get_type(b).clone());
        match (left, right) {
            (Type::Record(left), Type::Record(right)) => {
                let mut shared = Vec::new();
                for class in &left {
                    let mut ancestors = vec![*class];
                    ancestors.extend_from_slice(self.supers(&self.class(*class).proto));
                    shared.extend(
                        ancestors
                            .into_iter()
                            .filter(|ancestor| right.iter().any(|other| self.class_is_a(*other, *ancestor))),
                    );
                }
                Some(self.record_type(&shared))
            }
            (Type::List(left), Type::List(right)) => {
                let element = self.common_type(left, right)?;
                Some(self.values.list_of(element))
            }
            _ if self.type_converts(a, b) => Some(b),
            _ if self.type_converts(b, a) => Some(a),
            _ => None,
        }
    }

    /// Returns the type of the field `name` of records of type `ty`.
    pub(crate) fn field_type(&self, ty: TypeId, name: Symbol) -> Option<TypeId> {
        let Type::Record(classes) = self.values.get_type(ty) else {
            return None;
        };
        classes
            .iter()
            .find_map(|class| self.class(*class).proto.field(name))
            .map(|field| field.ty)
    }

    /// Returns the number of a value, if it is known and its type converts to `int`.
    #[inline]
    pub(crate) fn as_int(&self, id: ValueId) -> Option<i64> {
        match self.values.node(id) {
            Node::Int(value) => Some(value),
            Node::Bit(value) => Some(i64::from(value)),
            Node::Bits(kids) => self.bits_number(self.values.kids(kids)),
            _ => None,
        }
    }

    /// Returns the number that the bits represent, if all are known.
    #[inline(never)]
    fn bits_number(&self, bits: &[ValueId]) -> Option<i64> {
        let mut value = 0u64;
        for (at, bit) in bits.iter().enumerate() {
            match *bit {
                ValueId::TRUE if at < 64 => value |= 1 << at,
                ValueId::TRUE | ValueId::FALSE => {}
                _ => return None,
            }
        }
        Some(value as i64)
    }

    /// Returns the text of a string or code value.
    pub(crate) fn as_str(&self, id: ValueId) -> Option<Symbol> {
        match self.values.node(id) {
            Node::Str(text) | Node::Code(text) => Some(text),
            _ => None,
        }
    }

    /// Returns a bit of a value of a `bits` or `bit` type.
    pub(crate) fn bit_of(&mut self, id: ValueId, index: u32) -> ValueId {
        match self.values.node(id) {
            Node::Unset => ValueId::UNSET,
            Node::Bit(_) => id,
            Node::Bits(kids) => self
                .values
                .kids(kids)
                .get(index as usize)
                .copied()
                .unwrap_or(ValueId::UNSET),
            Node::Int(value) => ValueId::bit(value >> index.min(63) & 1 == 1),
            _ if self.values.type_of(id) == TypeId::BIT => id,
            _ => self.values.var_bit(id, index),
        }
    }

    /// Converts the value to type `ty`; returns `None` if that is impossible. An unresolved value
    /// becomes a delayed conversion.
    #[inline]
    pub(crate) fn convert(&mut self, id: ValueId, ty: TypeId) -> Option<ValueId> {
        let from = self.values.type_of(id);
        if from == ty || ty == TypeId::ANY || id == ValueId::UNSET {
            return Some(id);
        }
        self.convert_other(id, from, ty)
    }

    /// Converts the value from type `from` to a different type `ty`.
    #[inline(never)]
    fn convert_other(&mut self, id: ValueId, from: TypeId, ty: TypeId) -> Option<ValueId> {
        match (self.values.node(id), self.values.get_type(ty)) {
            (Node::Int(value @ (0 | 1)), Type::Bit) => Some(ValueId::bit(value == 1)),
            (Node::Int(value), &Type::Bits(width)) => {
                let fits =
                    width >= 64 || (value >= -(1 << width.saturating_sub(1)) && value < 1 << width) || value == 0;
                fits.then(|| self.values.bits_of(value as u64, width))
            }
            (Node::Int(_), _) => None,
            (Node::Bit(_), Type::Bits(1)) => Some(self.values.bits(&[id])),
            (Node::Bits(kids), Type::Bit) => match self.values.kids(kids) {
                [bit] => Some(*bit),
                _ => None,
            },
            (Node::Bit(_) | Node::Bits(_), Type::Int) => match self.as_int(id) {
                Some(value) => Some(self.values.int(value)),
                None => Some(self.values.op(crate::token::Bang::Cast, &[id], ty)),
            },
            (Node::List(kids), &Type::List(element)) => {
                let items = self.values.kid_vec(kids);
                let mut converted = Ids::new();
                for item in &items {
                    converted.push(self.convert(*item, element)?);
                }
                // A list whose elements need no conversion keeps its own element type. It differs
                // from an equal list of the other type, as in llvm-tblgen.
                if converted == items && self.values.element(from) != Some(TypeId::ANY) {
                    return Some(id);
                }
                Some(self.values.list(&converted, element))
            }
            (Node::Def(_), Type::Record(_)) => self.type_is(from, ty).then_some(id),
            (_, Type::Bits(1)) if from == TypeId::BIT => Some(self.values.bits(&[id])),
            (_, Type::Bit) if matches!(self.values.get_type(from), Type::Bits(1)) => {
                Some(self.values.op(crate::token::Bang::Cast, &[id], ty))
            }
            _ if self.type_is(from, ty) => Some(id),
            _ if self.values.is_open(id) && self.type_converts(from, ty) => {
                Some(self.values.op(crate::token::Bang::Cast, &[id], ty))
            }
            _ => None,
        }
    }

    /// Returns a value in the form for a field of type `ty`: bits are expanded one by one.
    #[inline]
    pub(crate) fn spread_bits(&mut self, id: ValueId, ty: TypeId) -> ValueId {
        match *self.values.get_type(ty) {
            Type::Bits(width) => self.spread(id, width),
            _ => id,
        }
    }

    /// Expands a value of a type of `width` bits into single bits.
    #[inline(never)]
    fn spread(&mut self, id: ValueId, width: u32) -> ValueId {
        if matches!(self.values.node(id), Node::Bits(_)) {
            return id;
        }
        let bits: Ids = (0..width).map(|at| self.bit_of(id, at)).collect();
        self.values.bits(&bits)
    }
}
