//! The output of `--print-records`: all classes and records as text, as in llvm-tblgen.

use std::io::{self, Write};
use std::ops::Range;

use crate::records::{Record, RecordKeeper};
use crate::shape::ClassList;
use crate::strings::Symbol;
use crate::text::numeric_order;
use crate::value::{ClassId, Node, RecordId, TypeId, ValueId};
use crate::world::{ClassData, FieldData, Fields, World};

/// The approximate number of bytes that are written at a time.
const CHUNK: usize = 1 << 16;

impl World {
    fn field_text(&self, field: &FieldData, out: &mut String) {
        out.push_str("  ");
        if field.nonconcrete {
            out.push_str("field ");
        }
        self.declaration(field.name, field.ty, field.value, out);
        out.push_str(";\n");
    }

    /// Writes `type name = value`. A code fragment has the type `code`.
    pub(crate) fn declaration(&self, name: Symbol, ty: TypeId, value: ValueId, out: &mut String) {
        if matches!(self.values.node(value), Node::Code(_)) {
            out.push_str("code");
        } else {
            self.write_type(ty, out);
        }
        out.push(' ');
        out.push_str(self.text(name));
        out.push_str(" = ");
        self.write_value(value, out);
    }

    fn body_text(&self, supers: ClassList, fields: Fields, lines: &mut Lines, out: &mut Vec<u8>) {
        out.extend_from_slice(b" {");
        let supers = self.lists.get(supers);
        if !supers.is_empty() {
            out.extend_from_slice(b"\t//");
            for class in supers {
                out.push(b' ');
                out.extend_from_slice(self.text(self.class(*class).name).as_bytes());
            }
        }
        out.push(b'\n');
        if fields.has_nonconcrete() {
            for field in fields.iter().filter(|field| field.nonconcrete) {
                lines.write(self, &field, out);
            }
        }
        for field in fields.iter().filter(|field| !field.nonconcrete) {
            lines.write(self, &field, out);
        }
        out.extend_from_slice(b"}\n");
    }

    fn class_text(&self, class: &ClassData, lines: &mut Lines, out: &mut Vec<u8>) {
        let mut head = String::from(self.text(class.name));
        if !class.params.is_empty() {
            head.push('<');
            for (at, param) in class.params.iter().enumerate() {
                if at > 0 {
                    head.push_str(", ");
                }
                self.declaration(param.qualified, param.ty, param.default, &mut head);
            }
            head.push('>');
        }
        out.extend_from_slice(head.as_bytes());
        self.body_text(class.proto.supers, class.proto.fields(), lines, out);
    }
}

/// The key of a cached line.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Line {
    name: Symbol,
    value: ValueId,
    ty: TypeId,
    nonconcrete: bool,
}

/// A cache of the lines of recently written fields: most records have the default values of their
/// classes.
#[derive(Default)]
struct Lines {
    /// The slots by hash, with ranges of `texts`. A line that was evicted is formatted again.
    slots: Vec<(Line, Range<u32>)>,
    texts: Vec<u8>,
    /// A buffer for the line that is being formatted.
    fresh: String,
}

impl Lines {
    const SLOTS: usize = 1 << 12;
    /// The maximum length in bytes of a cached line.
    const LONGEST: usize = 200;
    /// The maximum total length in bytes of all cached lines.
    const MOST: usize = 1 << 20;
    /// The empty slot: every field has a name.
    const NONE: Line = Line {
        name: Symbol::NONE,
        value: ValueId::UNSET,
        ty: TypeId::ANY,
        nonconcrete: false,
    };

    fn new() -> Lines {
        Lines {
            slots: vec![(Lines::NONE, 0..0); Lines::SLOTS],
            ..Lines::default()
        }
    }

    #[inline]
    fn write(&mut self, world: &World, field: &FieldData, out: &mut Vec<u8>) {
        let line = Line {
            name: field.name,
            value: field.value,
            ty: field.ty,
            nonconcrete: field.nonconcrete,
        };
        let key = u64::from(field.value.0) << 32 | u64::from(field.name.0 ^ field.ty.0 << 24);
        let at = (key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40) as usize & (Lines::SLOTS - 1);
        if let Some((known, place)) = self.slots.get(at)
            && *known == line
            && let Some(text) = self.texts.get(place.start as usize..place.end as usize)
        {
            out.extend_from_slice(text);
            return;
        }
        self.write_new(world, field, line, at, out);
    }

    /// Formats a line that is not cached; its slot is `at`.
    #[inline(never)]
    fn write_new(&mut self, world: &World, field: &FieldData, line: Line, at: usize, out: &mut Vec<u8>) {
        self.fresh.clear();
        world.field_text(field, &mut self.fresh);
        out.extend_from_slice(self.fresh.as_bytes());
        if self.fresh.len() > Lines::LONGEST {
            return;
        }
        if self.texts.len() + self.fresh.len() > Lines::MOST {
            self.texts.clear();
            self.slots.fill((Lines::NONE, 0..0));
        }
        if let Some(slot) = self.slots.get_mut(at) {
            let from = self.texts.len() as u32;
            self.texts.extend_from_slice(self.fresh.as_bytes());
            *slot = (line, from..self.texts.len() as u32);
        }
    }
}

/// Formats a record as `!repr` does.
pub(crate) fn record_text(world: &World, id: RecordId) -> String {
    let record = world.record(id);
    let mut out = world.text(record.name).as_bytes().to_vec();
    // A cache has no use for a single record.
    world.body_text(record.supers, world.fields(record), &mut Lines::default(), &mut out);
    String::from_utf8_lossy(&out).into_owned()
}

/// Writes all classes, then all records, both in byte order of their names.
///
/// # Errors
/// Returns the errors of `out`.
pub fn print_records(records: &RecordKeeper, out: &mut dyn Write) -> io::Result<()> {
    let world = &records.world;
    out.write_all(b"------------- Classes -----------------\n")?;
    let mut classes: Vec<ClassId> = (0..world.classes.len() as u32).map(ClassId).collect();
    classes.sort_by_key(|id| world.text(world.class(*id).name));
    let mut text = Vec::new();
    let mut lines = Lines::new();
    for id in classes {
        text.extend_from_slice(b"class ");
        world.class_text(world.class(id), &mut lines, &mut text);
        if text.len() >= CHUNK {
            out.write_all(&text)?;
            text.clear();
        }
    }
    out.write_all(&text)?;
    text.clear();
    out.write_all(b"------------- Defs -----------------\n")?;
    for id in &records.sorted() {
        text.extend_from_slice(b"def ");
        let record = world.record(*id);
        text.extend_from_slice(world.text(record.name).as_bytes());
        world.body_text(record.supers, world.fields(record), &mut lines, &mut text);
        if text.len() >= CHUNK {
            out.write_all(&text)?;
            text.clear();
        }
    }
    out.write_all(&text)
}

/// Writes the names of the records that derive from the class called `class`; numbers in names are
/// compared by value (`S2` precedes `S10`).
///
/// # Errors
/// Returns the errors of `out`, and [`io::ErrorKind::NotFound`] if the class does not exist.
pub fn print_enums(records: &RecordKeeper, class: &str, out: &mut dyn Write) -> io::Result<()> {
    if records.class(class).is_none() {
        let message = format!("the class `{class}` is not defined");
        return Err(io::Error::new(io::ErrorKind::NotFound, message));
    }
    let mut names: Vec<&str> = records.defs_derived_from(class).iter().map(Record::name).collect();
    names.sort_by(|a, b| numeric_order(a, b));
    for name in names {
        write!(out, "{name}, ")?;
    }
    writeln!(out)
}
