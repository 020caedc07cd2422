//! The records of a program, for back ends: lookup, iteration and typed access to fields.

use crate::diagnostic::Diagnostic;
use crate::source::Span;
use crate::step::StepData;
use crate::strings::Symbol;
use crate::value::{ClassId, Node, Pairs, RecordId, Type, TypeId, ValueId};
use crate::world::{FieldData, Fields, RecordData, World};

/// All classes and records a program defines.
#[derive(Debug, Default)]
pub struct RecordKeeper {
    pub(crate) world: World,
}

/// The first bytes of a text as a number of the same order; zeros stand for what it lacks.
fn first_bytes(text: &str) -> u128 {
    let mut bytes = [0; 16];
    let length = text.len().min(bytes.len());
    bytes[..length].copy_from_slice(&text.as_bytes()[..length]);
    u128::from_be_bytes(bytes)
}

impl RecordKeeper {
    pub(crate) fn new(world: World) -> RecordKeeper {
        RecordKeeper { world }
    }

    /// Records by name in byte order.
    pub(crate) fn sorted(&self) -> Vec<RecordId> {
        let named = self.world.order.iter().map(|id| {
            let name = self.world.text(self.world.record(*id).name);
            (first_bytes(name), name, *id)
        });
        let mut sorted: Vec<(u128, &str, RecordId)> = named.collect();
        // Names are distinct, so that it does not matter that the order of equal ones is not kept.
        sorted.sort_unstable_by(|a, b| a.0.cmp(&b.0).then_with(|| a.1.cmp(b.1)));
        sorted.into_iter().map(|(_, _, id)| id).collect()
    }

    fn record(&self, id: RecordId) -> Record<'_> {
        Record { keeper: self, id }
    }

    /// The record called `name`.
    pub fn def(&self, name: &str) -> Option<Record<'_>> {
        let symbol = self.world.strings.lookup(name)?;
        let id = self.world.record_names.get(&symbol)?;
        Some(self.record(*id))
    }

    /// All records in the order they were completed, anonymous ones included.
    pub fn defs(&self) -> impl Iterator<Item = Record<'_>> {
        self.world.order.iter().map(|id| self.record(*id))
    }

    /// The records that derive from the class called `class`, in the order they were completed; none if there is no
    /// such class.
    pub fn defs_derived_from(&self, class: &str) -> Vec<Record<'_>> {
        let Some(class) = self.class_id(class) else {
            return Vec::new();
        };
        self.defs()
            .filter(|record| self.world.lists.get(record.data().supers).contains(&class))
            .collect()
    }

    fn class_id(&self, name: &str) -> Option<ClassId> {
        let symbol = self.world.strings.lookup(name)?;
        self.world.class_names.get(&symbol).copied()
    }

    /// The class called `name`.
    pub fn class(&self, name: &str) -> Option<Class<'_>> {
        self.class_id(name).map(|id| Class { keeper: self, id })
    }

    /// All classes in the order they were first mentioned.
    pub fn classes(&self) -> impl Iterator<Item = Class<'_>> {
        (0..self.world.classes.len() as u32).map(|id| Class {
            keeper: self,
            id: ClassId(id),
        })
    }
}

/// A class.
#[derive(Clone, Copy, Debug)]
pub struct Class<'a> {
    pub(crate) keeper: &'a RecordKeeper,
    pub(crate) id: ClassId,
}

impl<'a> Class<'a> {
    /// Its name.
    pub fn name(&self) -> &'a str {
        let world = &self.keeper.world;
        world.text(world.class(self.id).name)
    }
    /// Where its name is defined.
    pub fn span(&self) -> Span {
        self.keeper.world.class(self.id).proto.span
    }
    /// Whether it is or derives from the class called `class`.
    pub fn is_a(&self, class: &str) -> bool {
        self.keeper
            .class_id(class)
            .is_some_and(|class| self.keeper.world.class_is_a(self.id, class))
    }
    /// Its fields, inherited ones first.
    pub fn fields(&self) -> impl Iterator<Item = Field<'a>> + use<'a> {
        let keeper = self.keeper;
        keeper
            .world
            .class(self.id)
            .proto
            .fields()
            .iter()
            .map(move |data| Field { keeper, data })
    }
    /// The names of the classes it derives from, parents before children.
    pub fn superclasses(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        class_names(
            self.keeper,
            self.keeper.world.supers(&self.keeper.world.class(self.id).proto),
        )
    }
}

fn class_names<'a>(keeper: &'a RecordKeeper, classes: &'a [ClassId]) -> impl Iterator<Item = &'a str> + use<'a> {
    classes
        .iter()
        .map(move |class| keeper.world.text(keeper.world.class(*class).name))
}

/// A record.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    keeper: &'a RecordKeeper,
    id: RecordId,
}

impl PartialEq for Record<'_> {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.keeper, other.keeper) && self.id == other.id
    }
}
impl Eq for Record<'_> {}
impl std::hash::Hash for Record<'_> {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.id.hash(state);
    }
}

/// Why a field could not be read as what was asked for.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("record `{record}`, field `{field}`: expected {expected}, found {found}")]
pub struct AccessError {
    /// The name of the record.
    pub record: String,
    /// The name of the field.
    pub field: String,
    /// What was asked for.
    pub expected: String,
    /// What there is instead.
    pub found: String,
    /// Where the value is written, or the record if it has no such field.
    pub span: Span,
    /// Where the record is defined.
    pub record_span: Span,
}

impl From<AccessError> for Diagnostic {
    fn from(error: AccessError) -> Diagnostic {
        let label = format!("expected {}", error.expected);
        let diagnostic = Diagnostic::error(error.to_string(), error.span, label);
        if error.record_span == error.span {
            diagnostic
        } else {
            diagnostic.secondary(error.record_span, "in this record")
        }
    }
}

type Access<T> = Result<T, AccessError>;

impl<'a> Record<'a> {
    pub(crate) fn world(&self) -> &'a World {
        &self.keeper.world
    }
    /// The steps of its fields.
    pub(crate) fn steps(&self) -> &'a [StepData] {
        let known = self.keeper.world.histories.get(&self.id);
        known.map_or(&[], Vec::as_slice)
    }
    fn all_fields(&self) -> Fields<'a> {
        self.keeper.world.fields(self.data())
    }
    fn data(&self) -> &'a RecordData {
        self.keeper.world.record(self.id)
    }
    /// Its name; `anonymous_N` for one without.
    pub fn name(&self) -> &'a str {
        self.keeper.world.text(self.data().name)
    }
    /// Where its name is written: in a `def`, or for a class value where that stands.
    pub fn span(&self) -> Span {
        self.data().span
    }
    /// Where the `defm`s that made it stand, the innermost first; empty for a plain `def`.
    pub fn instantiations(&self) -> Vec<Span> {
        self.keeper.world.chains.spans(self.data().chain)
    }
    /// A position in the order of completion that is unique among records.
    pub fn index(&self) -> usize {
        self.id.0 as usize
    }
    /// Whether it has no name of its own.
    pub fn is_anonymous(&self) -> bool {
        self.data().anonymous
    }
    /// Whether it derives from the class called `class`.
    pub fn is_a(&self, class: &str) -> bool {
        self.keeper
            .class_id(class)
            .is_some_and(|class| self.keeper.world.lists.get(self.data().supers).contains(&class))
    }
    /// The names of the classes it derives from, parents before children.
    pub fn superclasses(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        class_names(self.keeper, self.keeper.world.lists.get(self.data().supers))
    }
    /// The names of the classes it derives from directly, as written.
    pub fn direct_superclasses(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        class_names(self.keeper, self.keeper.world.lists.get(self.data().direct))
    }
    /// The field called `name`.
    pub fn field(&self, name: &str) -> Option<Field<'a>> {
        let symbol = self.keeper.world.strings.lookup(name)?;
        let data = self.all_fields().find(symbol)?;
        Some(Field {
            keeper: self.keeper,
            data,
        })
    }
    /// Its fields, inherited ones first.
    pub fn fields(&self) -> impl Iterator<Item = Field<'a>> + use<'a> {
        let keeper = self.keeper;
        self.all_fields().iter().map(move |data| Field { keeper, data })
    }

    /// An error about a field of this record, for back ends with rules of their own.
    pub fn access_error(&self, field: &str, expected: &str) -> AccessError {
        let found = self.field(field);
        AccessError {
            record: self.name().to_owned(),
            field: field.to_owned(),
            expected: expected.to_owned(),
            found: match found {
                None => "no such field".to_owned(),
                Some(found) => format!("`{}`", found.value()),
            },
            span: found.map_or(self.span(), |found| found.value().span()),
            record_span: self.span(),
        }
    }

    fn read<T>(&self, field: &str, expected: &str, read: impl FnOnce(Value<'a>) -> Option<T>) -> Access<T> {
        self.field(field)
            .and_then(|field| read(field.value()))
            .ok_or_else(|| self.access_error(field, expected))
    }

    fn optional<T>(&self, field: &str, expected: &str, read: impl FnOnce(Value<'a>) -> Option<T>) -> Access<Option<T>> {
        self.read(field, expected, |value| match value.kind() {
            ValueKind::Unset => Some(None),
            _ => read(value).map(Some),
        })
    }

    /// The value of the field called `name`, whatever it is.
    pub fn value(&self, field: &str) -> Access<Value<'a>> {
        self.read(field, "a value", Some)
    }
    /// A `bit` field; `bits<1>` and the numbers 0 and 1 count.
    pub fn bit(&self, field: &str) -> Access<bool> {
        self.read(field, "a bit", |value| match value.as_int() {
            Some(0) => Some(false),
            Some(1) => Some(true),
            _ => None,
        })
    }
    /// A `bit` field, `None` where it is `?`.
    pub fn opt_bit(&self, field: &str) -> Access<Option<bool>> {
        self.optional(field, "a bit or `?`", |value| match value.as_int() {
            Some(0) => Some(false),
            Some(1) => Some(true),
            _ => None,
        })
    }
    /// A number; known bits count.
    pub fn int(&self, field: &str) -> Access<i64> {
        self.read(field, "a number", |value| value.as_int())
    }
    /// A number, `None` where it is `?`.
    pub fn opt_int(&self, field: &str) -> Access<Option<i64>> {
        self.optional(field, "a number or `?`", |value| value.as_int())
    }
    /// A string or code fragment.
    pub fn string(&self, field: &str) -> Access<&'a str> {
        self.read(field, "a string", |value| value.as_str())
    }
    /// A string or code fragment, `None` where it is `?`.
    pub fn opt_string(&self, field: &str) -> Access<Option<&'a str>> {
        self.optional(field, "a string or `?`", |value| value.as_str())
    }
    /// A record.
    pub fn def_field(&self, field: &str) -> Access<Record<'a>> {
        self.read(field, "a record", |value| value.as_def())
    }
    /// A record, `None` where it is `?`.
    pub fn opt_def(&self, field: &str) -> Access<Option<Record<'a>>> {
        self.optional(field, "a record or `?`", |value| value.as_def())
    }
    /// A dag.
    pub fn dag(&self, field: &str) -> Access<Dag<'a>> {
        self.read(field, "a dag", |value| value.as_dag())
    }
    /// A dag, `None` where it is `?`.
    pub fn opt_dag(&self, field: &str) -> Access<Option<Dag<'a>>> {
        self.optional(field, "a dag or `?`", |value| value.as_dag())
    }
    /// A list.
    pub fn list(&self, field: &str) -> Access<Vec<Value<'a>>> {
        self.read(field, "a list", |value| value.as_list())
    }
    fn list_of<T>(&self, field: &str, expected: &str, read: impl Fn(Value<'a>) -> Option<T>) -> Access<Vec<T>> {
        self.read(field, expected, |value| {
            value.as_list()?.into_iter().map(read).collect()
        })
    }
    /// A list of strings.
    pub fn list_of_strings(&self, field: &str) -> Access<Vec<&'a str>> {
        self.list_of(field, "a list of strings", |value| value.as_str())
    }
    /// A list of numbers.
    pub fn list_of_ints(&self, field: &str) -> Access<Vec<i64>> {
        self.list_of(field, "a list of numbers", |value| value.as_int())
    }
    /// A list of records.
    pub fn list_of_defs(&self, field: &str) -> Access<Vec<Record<'a>>> {
        self.list_of(field, "a list of records", |value| value.as_def())
    }
    /// Bits, the least significant first.
    pub fn bits(&self, field: &str) -> Access<Vec<BitValue<'a>>> {
        self.read(field, "bits", |value| value.as_bits())
    }
}

/// A field of a record or class.
#[derive(Clone, Copy, Debug)]
pub struct Field<'a> {
    keeper: &'a RecordKeeper,
    data: FieldData,
}

impl<'a> Field<'a> {
    /// Its name.
    pub fn name(&self) -> &'a str {
        self.keeper.world.text(self.data.name)
    }
    /// Its type as written.
    pub fn type_name(&self) -> String {
        self.keeper.world.type_text(self.data.ty)
    }
    /// Its type.
    pub fn type_kind(&self) -> TypeKind<'a> {
        self.keeper.type_kind(self.data.ty)
    }
    /// Its value.
    pub fn value(&self) -> Value<'a> {
        Value {
            keeper: self.keeper,
            id: self.data.value,
            span: self.keeper.world.span(self.data.span),
        }
    }
    /// Where the value was written (the declaration, for a field that was never set).
    pub fn span(&self) -> Span {
        self.keeper.world.span(self.data.span)
    }
    /// Where it was declared.
    pub fn declaration(&self) -> Span {
        self.keeper.world.span(self.data.decl)
    }
    /// Whether it was declared with `field`, so that it may hold references to other fields.
    pub fn is_declared_field(&self) -> bool {
        self.data.nonconcrete
    }
}

/// A type, one level at a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TypeKind<'a> {
    /// `bit`.
    Bit,
    /// `bits<n>`.
    Bits(u32),
    /// `int`.
    Int,
    /// `string` or `code`.
    String,
    /// `dag`.
    Dag,
    /// A list, with the type of its elements as written.
    List(String),
    /// A record of these classes.
    Record(Vec<&'a str>),
    /// The type of `?`.
    Unknown,
}

impl RecordKeeper {
    fn type_kind(&self, ty: TypeId) -> TypeKind<'_> {
        match self.world.values.get_type(ty) {
            Type::Bit => TypeKind::Bit,
            Type::Bits(width) => TypeKind::Bits(*width),
            Type::Int => TypeKind::Int,
            Type::Str => TypeKind::String,
            Type::Dag => TypeKind::Dag,
            Type::Any => TypeKind::Unknown,
            Type::List(element) => TypeKind::List(self.world.type_text(*element)),
            Type::Record(classes) => TypeKind::Record(class_names(self, classes).collect()),
        }
    }
}

/// One bit of a `bits` value.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum BitValue<'a> {
    /// 0.
    Zero,
    /// 1.
    One,
    /// `?`.
    Unset,
    /// A bit of an unset field of the same record: what `Inst{23-18} = dst` leaves in `Inst`.
    Field {
        /// The field.
        field: &'a str,
        /// The bit of the field, 0 the least significant.
        index: u32,
    },
}

/// A value, with the place of the field value it is part of.
#[derive(Clone, Copy, Debug)]
pub struct Value<'a> {
    pub(crate) keeper: &'a RecordKeeper,
    pub(crate) id: ValueId,
    span: Span,
}

impl PartialEq for Value<'_> {
    /// Equality of values, not of places. Types count: `bits<1>` 1 is not `int` 1.
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.keeper, other.keeper) && self.id == other.id
    }
}
impl Eq for Value<'_> {}
impl std::hash::Hash for Value<'_> {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.id.hash(state);
    }
}

/// What a value is.
#[derive(Clone, Debug)]
pub enum ValueKind<'a> {
    /// `?`.
    Unset,
    /// A `bit`.
    Bit(bool),
    /// `bits<n>`, the least significant first.
    Bits(Vec<BitValue<'a>>),
    /// An `int`.
    Int(i64),
    /// A string.
    String(&'a str),
    /// A string written as `[{ ... }]`.
    Code(&'a str),
    /// A list.
    List(Vec<Value<'a>>),
    /// A dag.
    Dag(Dag<'a>),
    /// A record.
    Def(Record<'a>),
    /// Something not resolved (allowed in fields declared with `field`), as text.
    Other(String),
}

impl<'a> Value<'a> {
    fn part(&self, id: ValueId) -> Value<'a> {
        Value { id, ..*self }
    }

    /// Where the field value that holds it was written.
    pub fn span(&self) -> Span {
        self.span
    }

    /// What it is.
    pub fn kind(&self) -> ValueKind<'a> {
        let world = &self.keeper.world;
        match world.values.node(self.id) {
            Node::Unset => ValueKind::Unset,
            Node::Bit(value) => ValueKind::Bit(value),
            Node::Int(value) => ValueKind::Int(value),
            Node::Str(text) => ValueKind::String(world.text(text)),
            Node::Code(text) => ValueKind::Code(world.text(text)),
            Node::Def(id) => ValueKind::Def(self.keeper.record(id)),
            Node::List(_) => ValueKind::List(self.as_list().unwrap_or_default()),
            Node::Dag(_) => match self.as_dag() {
                Some(dag) => ValueKind::Dag(dag),
                None => ValueKind::Unset,
            },
            Node::Bits(_) => match self.as_bits() {
                Some(bits) => ValueKind::Bits(bits),
                None => ValueKind::Other(world.value_text(self.id)),
            },
            _ => ValueKind::Other(world.value_text(self.id)),
        }
    }

    /// Whether it is `?`.
    pub fn is_unset(&self) -> bool {
        self.id == ValueId::UNSET
    }
    /// The number it is; bits must all be known.
    pub fn as_int(&self) -> Option<i64> {
        self.keeper.world.as_int(self.id)
    }
    /// The string or code fragment it is.
    pub fn as_str(&self) -> Option<&'a str> {
        let world = &self.keeper.world;
        world.as_str(self.id).map(|text| world.text(text))
    }
    /// The record it is.
    pub fn as_def(&self) -> Option<Record<'a>> {
        match self.keeper.world.values.node(self.id) {
            Node::Def(id) => Some(self.keeper.record(id)),
            _ => None,
        }
    }
    /// The dag it is.
    pub fn as_dag(&self) -> Option<Dag<'a>> {
        match self.keeper.world.values.node(self.id) {
            Node::Dag(_) => Some(Dag { value: *self }),
            _ => None,
        }
    }
    /// The elements of the list it is.
    pub fn as_list(&self) -> Option<Vec<Value<'a>>> {
        let values = &self.keeper.world.values;
        match values.node(self.id) {
            Node::List(kids) => Some(values.kids(kids).iter().map(|id| self.part(*id)).collect()),
            _ => None,
        }
    }
    /// The bits it is made of, the least significant first; `None` if it is not a `bits` or `bit` value, or if a bit is
    /// neither known nor a bit of a field.
    pub fn as_bits(&self) -> Option<Vec<BitValue<'a>>> {
        let world = &self.keeper.world;
        let one = |id: ValueId| match world.values.node(id) {
            Node::Unset => Some(BitValue::Unset),
            Node::Bit(false) => Some(BitValue::Zero),
            Node::Bit(true) => Some(BitValue::One),
            Node::VarBit(base, index) => match world.values.node(base) {
                Node::Var(name) => Some(BitValue::Field {
                    field: world.text(name),
                    index,
                }),
                _ => None,
            },
            // A field of type `bit`.
            Node::Var(name) => Some(BitValue::Field {
                field: world.text(name),
                index: 0,
            }),
            _ => None,
        };
        match world.values.node(self.id) {
            Node::Bits(kids) => world.values.kids(kids).iter().map(|id| one(*id)).collect(),
            Node::Bit(_) => one(self.id).map(|bit| vec![bit]),
            _ => None,
        }
    }
}

impl std::fmt::Display for Value<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.keeper.world.value_text(self.id))
    }
}

/// A dag value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dag<'a> {
    value: Value<'a>,
}

impl<'a> Dag<'a> {
    fn parts(&self) -> Pairs {
        let values = &self.value.keeper.world.values;
        match values.node(self.value.id) {
            Node::Dag(kids) => values.pair_vec(kids),
            _ => Pairs::new(),
        }
    }
    fn named(&self, part: (ValueId, Symbol)) -> (Value<'a>, Option<&'a str>) {
        let world = &self.value.keeper.world;
        let name = part.1.some().map(|name| world.text(name));
        (self.value.part(part.0), name)
    }
    /// The whole as a value.
    pub fn value(&self) -> Value<'a> {
        self.value
    }
    /// Where the field value that holds it was written.
    pub fn span(&self) -> Span {
        self.value.span
    }
    /// The operator; `?` is possible.
    pub fn operator(&self) -> Value<'a> {
        let id = self.parts().first().map_or(ValueId::UNSET, |part| part.0);
        self.value.part(id)
    }
    /// The operator, if it is a record.
    pub fn operator_def(&self) -> Option<Record<'a>> {
        self.operator().as_def()
    }
    /// The name the operator carries: `n` in `(op:$n ...)`.
    pub fn operator_name(&self) -> Option<&'a str> {
        self.parts().first().and_then(|part| self.named(*part).1)
    }
    /// The arguments with their names.
    pub fn args(&self) -> Vec<(Value<'a>, Option<&'a str>)> {
        self.parts().into_iter().skip(1).map(|part| self.named(part)).collect()
    }
    /// The number of arguments.
    pub fn len(&self) -> usize {
        self.parts().len().saturating_sub(1)
    }
    /// Whether it has no arguments.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
