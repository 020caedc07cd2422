//! The records of a program, for back ends: lookup, iteration and typed access to fields.

use crate::diagnostic::Diagnostic;
use crate::source::Span;
use crate::step::StepData;
use crate::strings::Symbol;
use crate::value::{ClassId, Node, Pairs, RecordId, Type, TypeId, ValueId};
use crate::world::{FieldData, Fields, RecordData, World};

/// The classes and records of a program.
#[derive(Debug, Default)]
pub struct RecordKeeper {
    pub(crate) world: World,
}

/// Returns the first bytes of a text as a number, in the same order as texts. Missing bytes are 0.
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

    /// Returns the records sorted by name in byte order.
    pub(crate) fn sorted(&self) -> Vec<RecordId> {
        let named = self.world.order.iter().map(|id| {
            let name = self.world.text(self.world.record(*id).name);
            (first_bytes(name), name, *id)
        });
        let mut sorted: Vec<(u128, &str, RecordId)> = named.collect();
        // Names are distinct, so an unstable sort suffices.
        sorted.sort_unstable_by(|a, b| a.0.cmp(&b.0).then_with(|| a.1.cmp(b.1)));
        sorted.into_iter().map(|(_, _, id)| id).collect()
    }

    fn record(&self, id: RecordId) -> Record<'_> {
        Record { keeper: self, id }
    }

    /// Returns the record called `name`.
    pub fn def(&self, name: &str) -> Option<Record<'_>> {
        let symbol = self.world.strings.lookup(name)?;
        let id = self.world.record_names.get(&symbol)?;
        Some(self.record(*id))
    }

    /// Returns all records in the order of their completion, including anonymous ones.
    pub fn defs(&self) -> impl Iterator<Item = Record<'_>> {
        self.world.order.iter().map(|id| self.record(*id))
    }

    /// Returns the records that derive from the class called `class`, in the order of their
    /// completion. The list is empty if the class does not exist.
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

    /// Returns the class called `name`.
    pub fn class(&self, name: &str) -> Option<Class<'_>> {
        self.class_id(name).map(|id| Class { keeper: self, id })
    }

    /// Returns all classes in the order of their first mention.
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
    /// Returns its name.
    pub fn name(&self) -> &'a str {
        let world = &self.keeper.world;
        world.text(world.class(self.id).name)
    }
    /// Returns the span of its name in its definition.
    pub fn span(&self) -> Span {
        self.keeper.world.class(self.id).proto.span
    }
    /// Returns whether it is the class called `class` or derives from it.
    pub fn is_a(&self, class: &str) -> bool {
        self.keeper
            .class_id(class)
            .is_some_and(|class| self.keeper.world.class_is_a(self.id, class))
    }
    /// Returns its fields, inherited ones first.
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
    /// Returns the names of its direct and indirect parents, each after its own parents.
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

/// Why a field does not have the requested type.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("record `{record}`, field `{field}`: expected {expected}, found {found}")]
pub struct AccessError {
    /// The name of the record.
    pub record: String,
    /// The name of the field.
    pub field: String,
    /// The requested type.
    pub expected: String,
    /// The actual value.
    pub found: String,
    /// The span of the value, or of the record if it has no such field.
    pub span: Span,
    /// The span of the record's definition.
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
    /// Returns the steps of its fields.
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
    /// Returns its name; `anonymous_N` for an anonymous record.
    pub fn name(&self) -> &'a str {
        self.keeper.world.text(self.data().name)
    }
    /// Returns the span of its name in its `def`, or of the class value that created it.
    pub fn span(&self) -> Span {
        self.data().span
    }
    /// Returns the spans of the `defm`s that instantiated it, the innermost first; empty for a
    /// plain `def`.
    pub fn instantiations(&self) -> Vec<Span> {
        self.keeper.world.chains.spans(self.data().chain)
    }
    /// Returns its position in the order of completion, which is unique among records.
    pub fn index(&self) -> usize {
        self.id.0 as usize
    }
    /// Returns whether it is anonymous.
    pub fn is_anonymous(&self) -> bool {
        self.data().anonymous
    }
    /// Returns whether it derives from the class called `class`.
    pub fn is_a(&self, class: &str) -> bool {
        self.keeper
            .class_id(class)
            .is_some_and(|class| self.keeper.world.lists.get(self.data().supers).contains(&class))
    }
    /// Returns the names of its direct and indirect parents, each after its own parents.
    pub fn superclasses(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        class_names(self.keeper, self.keeper.world.lists.get(self.data().supers))
    }
    /// Returns the names of its direct parents, in source order.
    pub fn direct_superclasses(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        class_names(self.keeper, self.keeper.world.lists.get(self.data().direct))
    }
    /// Returns the field called `name`.
    pub fn field(&self, name: &str) -> Option<Field<'a>> {
        let symbol = self.keeper.world.strings.lookup(name)?;
        let data = self.all_fields().find(symbol)?;
        Some(Field {
            keeper: self.keeper,
            data,
        })
    }
    /// Returns its fields, inherited ones first.
    pub fn fields(&self) -> impl Iterator<Item = Field<'a>> + use<'a> {
        let keeper = self.keeper;
        self.all_fields().iter().map(move |data| Field { keeper, data })
    }

    /// Creates an error about a field of this record, for back ends with additional rules.
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

    /// Returns the value of the field called `field`, of any type.
    pub fn value(&self, field: &str) -> Access<Value<'a>> {
        self.read(field, "a value", Some)
    }
    /// Returns a `bit` field. `bits<1>` and the numbers 0 and 1 are accepted too.
    pub fn bit(&self, field: &str) -> Access<bool> {
        self.read(field, "a bit", |value| match value.as_int() {
            Some(0) => Some(false),
            Some(1) => Some(true),
            _ => None,
        })
    }
    /// Returns a `bit` field; `None` if it is `?`.
    pub fn opt_bit(&self, field: &str) -> Access<Option<bool>> {
        self.optional(field, "a bit or `?`", |value| match value.as_int() {
            Some(0) => Some(false),
            Some(1) => Some(true),
            _ => None,
        })
    }
    /// Returns an `int` field. Bits are accepted if all are known.
    pub fn int(&self, field: &str) -> Access<i64> {
        self.read(field, "a number", |value| value.as_int())
    }
    /// Returns an `int` field; `None` if it is `?`.
    pub fn opt_int(&self, field: &str) -> Access<Option<i64>> {
        self.optional(field, "a number or `?`", |value| value.as_int())
    }
    /// Returns a string or code field.
    pub fn string(&self, field: &str) -> Access<&'a str> {
        self.read(field, "a string", |value| value.as_str())
    }
    /// Returns a string or code field; `None` if it is `?`.
    pub fn opt_string(&self, field: &str) -> Access<Option<&'a str>> {
        self.optional(field, "a string or `?`", |value| value.as_str())
    }
    /// Returns a field that is a record.
    pub fn def_field(&self, field: &str) -> Access<Record<'a>> {
        self.read(field, "a record", |value| value.as_def())
    }
    /// Returns a field that is a record; `None` if it is `?`.
    pub fn opt_def(&self, field: &str) -> Access<Option<Record<'a>>> {
        self.optional(field, "a record or `?`", |value| value.as_def())
    }
    /// Returns a dag field.
    pub fn dag(&self, field: &str) -> Access<Dag<'a>> {
        self.read(field, "a dag", |value| value.as_dag())
    }
    /// Returns a dag field; `None` if it is `?`.
    pub fn opt_dag(&self, field: &str) -> Access<Option<Dag<'a>>> {
        self.optional(field, "a dag or `?`", |value| value.as_dag())
    }
    /// Returns the elements of a list field.
    pub fn list(&self, field: &str) -> Access<Vec<Value<'a>>> {
        self.read(field, "a list", |value| value.as_list())
    }
    fn list_of<T>(&self, field: &str, expected: &str, read: impl Fn(Value<'a>) -> Option<T>) -> Access<Vec<T>> {
        self.read(field, expected, |value| {
            value.as_list()?.into_iter().map(read).collect()
        })
    }
    /// Returns a field that is a list of strings.
    pub fn list_of_strings(&self, field: &str) -> Access<Vec<&'a str>> {
        self.list_of(field, "a list of strings", |value| value.as_str())
    }
    /// Returns a field that is a list of numbers.
    pub fn list_of_ints(&self, field: &str) -> Access<Vec<i64>> {
        self.list_of(field, "a list of numbers", |value| value.as_int())
    }
    /// Returns a field that is a list of records.
    pub fn list_of_defs(&self, field: &str) -> Access<Vec<Record<'a>>> {
        self.list_of(field, "a list of records", |value| value.as_def())
    }
    /// Returns the bits of a field, the least significant first.
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
    /// Returns its name.
    pub fn name(&self) -> &'a str {
        self.keeper.world.text(self.data.name)
    }
    /// Returns its type in TableGen syntax.
    pub fn type_name(&self) -> String {
        self.keeper.world.type_text(self.data.ty)
    }
    /// Returns its type.
    pub fn type_kind(&self) -> TypeKind<'a> {
        self.keeper.type_kind(self.data.ty)
    }
    /// Returns its value.
    pub fn value(&self) -> Value<'a> {
        Value {
            keeper: self.keeper,
            id: self.data.value,
            span: self.keeper.world.span(self.data.span),
        }
    }
    /// Returns the span of its value, or of its declaration if it was never set.
    pub fn span(&self) -> Span {
        self.keeper.world.span(self.data.span)
    }
    /// Returns the span of its declaration.
    pub fn declaration(&self) -> Span {
        self.keeper.world.span(self.data.decl)
    }
    /// Returns whether it was declared with `field`, so that it may contain references to other
    /// fields.
    pub fn is_declared_field(&self) -> bool {
        self.data.nonconcrete
    }
}

/// A type. The types of list elements are given as text.
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
    /// A list, with the type of its elements in TableGen syntax.
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
    /// A bit of an unset field of the same record: `Inst{23-18} = dst` stores such references in
    /// `Inst`.
    Field {
        /// The field.
        field: &'a str,
        /// The index of the bit in the field; 0 is the least significant.
        index: u32,
    },
}

/// A value, with the span of the field value that contains it.
#[derive(Clone, Copy, Debug)]
pub struct Value<'a> {
    pub(crate) keeper: &'a RecordKeeper,
    pub(crate) id: ValueId,
    span: Span,
}

impl PartialEq for Value<'_> {
    /// Compares values, not spans. Types matter: the `bits<1>` value 1 differs from the `int` value
    /// 1.
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

/// The kind of a value.
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
    /// An unresolved value (allowed in fields declared with `field`), as text.
    Other(String),
}

impl<'a> Value<'a> {
    fn part(&self, id: ValueId) -> Value<'a> {
        Value { id, ..*self }
    }

    /// Returns the span of the field value that contains it.
    pub fn span(&self) -> Span {
        self.span
    }

    /// Returns its kind.
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

    /// Returns whether it is `?`.
    pub fn is_unset(&self) -> bool {
        self.id == ValueId::UNSET
    }
    /// Returns its number, if it is a number or bits that are all known.
    pub fn as_int(&self) -> Option<i64> {
        self.keeper.world.as_int(self.id)
    }
    /// Returns its text, if it is a string or code fragment.
    pub fn as_str(&self) -> Option<&'a str> {
        let world = &self.keeper.world;
        world.as_str(self.id).map(|text| world.text(text))
    }
    /// Returns its record, if it is one.
    pub fn as_def(&self) -> Option<Record<'a>> {
        match self.keeper.world.values.node(self.id) {
            Node::Def(id) => Some(self.keeper.record(id)),
            _ => None,
        }
    }
    /// Returns its dag, if it is one.
    pub fn as_dag(&self) -> Option<Dag<'a>> {
        match self.keeper.world.values.node(self.id) {
            Node::Dag(_) => Some(Dag { value: *self }),
            _ => None,
        }
    }
    /// Returns its elements, if it is a list.
    pub fn as_list(&self) -> Option<Vec<Value<'a>>> {
        let values = &self.keeper.world.values;
        match values.node(self.id) {
            Node::List(kids) => Some(values.kids(kids).iter().map(|id| self.part(*id)).collect()),
            _ => None,
        }
    }
    /// Returns its bits, the least significant first. Returns `None` if it is not a `bits` or `bit`
    /// value, or if a bit is neither known nor a bit of a field.
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
    /// Returns the dag as a value.
    pub fn value(&self) -> Value<'a> {
        self.value
    }
    /// Returns the span of the field value that contains it.
    pub fn span(&self) -> Span {
        self.value.span
    }
    /// Returns the operator, which may be `?`.
    pub fn operator(&self) -> Value<'a> {
        let id = self.parts().first().map_or(ValueId::UNSET, |part| part.0);
        self.value.part(id)
    }
    /// Returns the operator, if it is a record.
    pub fn operator_def(&self) -> Option<Record<'a>> {
        self.operator().as_def()
    }
    /// Returns the name of the operator: `n` in `(op:$n ...)`.
    pub fn operator_name(&self) -> Option<&'a str> {
        self.parts().first().and_then(|part| self.named(*part).1)
    }
    /// Returns the arguments with their names.
    pub fn args(&self) -> Vec<(Value<'a>, Option<&'a str>)> {
        self.parts().into_iter().skip(1).map(|part| self.named(part)).collect()
    }
    /// Returns the number of arguments.
    pub fn len(&self) -> usize {
        self.parts().len().saturating_sub(1)
    }
    /// Returns whether it has no arguments.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
