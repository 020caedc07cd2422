//! `--print-records`: all classes and records as text, like llvm-tblgen.

use std::io::{self, Write};
use std::ops::Range;

use crate::records::{Record, RecordKeeper};
use crate::shape::ClassList;
use crate::strings::Symbol;
use crate::text::numeric_order;
use crate::value::{ClassId, Node, RecordId, TypeId, ValueId};
use crate::world::{ClassData, FieldData, Fields, World};

impl World {
    fn field_text(&self, field: &FieldData, out: &mut String) {
        out.push_str("  ");
        if field.nonconcrete {
            out.push_str("field ");
        }
        self.declaration(field.name, field.ty, field.value, out);
        out.push_str(";\n");
    }

    /// `type name = value`. A code fragment shows its own type word.
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

    fn body_text(&self, supers: ClassList, fields: Fields, lines: &mut Lines, out: &mut String) {
        out.push_str(" {");
        let supers = self.lists.get(supers);
        if !supers.is_empty() {
            out.push_str("\t//");
            for class in supers {
                out.push(' ');
                out.push_str(self.text(self.class(*class).name));
            }
        }
        out.push('\n');
        if fields.has_nonconcrete() {
            for field in fields.iter().filter(|field| field.nonconcrete) {
                lines.write(self, &field, out);
            }
        }
        for field in fields.iter().filter(|field| !field.nonconcrete) {
            lines.write(self, &field, out);
        }
        out.push_str("}\n");
    }

    fn class_text(&self, class: &ClassData, lines: &mut Lines, out: &mut String) {
        out.push_str(self.text(class.name));
        if !class.params.is_empty() {
            out.push('<');
            for (at, param) in class.params.iter().enumerate() {
                if at > 0 {
                    out.push_str(", ");
                }
                self.declaration(param.qualified, param.ty, param.default, out);
            }
            out.push('>');
        }
        self.body_text(class.proto.supers, class.proto.fields(), lines, out);
    }
}

/// A line that was written lately, and what it says.
#[derive(Clone)]
struct Line {
    name: Symbol,
    ty: TypeId,
    value: ValueId,
    nonconcrete: bool,
    /// Its place in the texts.
    text: Range<usize>,
}

/// The lines of fields that were written lately: most records have the defaults of their classes.
#[derive(Default)]
struct Lines {
    /// By a hash; one that another pushed out is made again.
    slots: Vec<Option<Line>>,
    texts: String,
}

impl Lines {
    const SLOTS: usize = 1 << 12;
    /// Bytes of a line that is worth keeping.
    const LONGEST: usize = 200;
    /// Bytes of all lines together.
    const MOST: usize = 1 << 20;

    fn new() -> Lines {
        Lines {
            slots: vec![None; Lines::SLOTS],
            texts: String::new(),
        }
    }

    fn write(&mut self, world: &World, field: &FieldData, out: &mut String) {
        let key = u64::from(field.value.0) << 32 | u64::from(field.name.0 ^ field.ty.0 << 24);
        let slot = (key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40) as usize & (Lines::SLOTS - 1);
        if let Some(Some(line)) = self.slots.get(slot)
            && (line.name, line.ty, line.value, line.nonconcrete)
                == (field.name, field.ty, field.value, field.nonconcrete)
        {
            out.push_str(&self.texts[line.text.clone()]);
            return;
        }
        let start = out.len();
        world.field_text(field, out);
        let text = &out[start..];
        if text.len() > Lines::LONGEST {
            return;
        }
        if self.texts.len() + text.len() > Lines::MOST {
            self.texts.clear();
            self.slots.fill(None);
        }
        if let Some(place) = self.slots.get_mut(slot) {
            let from = self.texts.len();
            self.texts.push_str(text);
            *place = Some(Line {
                name: field.name,
                ty: field.ty,
                value: field.value,
                nonconcrete: field.nonconcrete,
                text: from..self.texts.len(),
            });
        }
    }
}

/// One record as `!repr` shows it.
pub(crate) fn record_text(world: &World, id: RecordId) -> String {
    let mut out = String::new();
    let record = world.record(id);
    out.push_str(world.text(record.name));
    // One record is not worth remembering lines for.
    world.body_text(record.supers, world.fields(record), &mut Lines::default(), &mut out);
    out
}

/// Writes all classes, then all records, each in byte order of their names.
///
/// # Errors
/// Those of `out`.
pub fn print_records(records: &RecordKeeper, out: &mut dyn Write) -> io::Result<()> {
    let world = &records.world;
    out.write_all(b"------------- Classes -----------------\n")?;
    let mut classes: Vec<ClassId> = (0..world.classes.len() as u32).map(ClassId).collect();
    classes.sort_by_key(|id| world.text(world.class(*id).name));
    let mut text = String::new();
    let mut lines = Lines::new();
    for id in classes {
        text.clear();
        text.push_str("class ");
        world.class_text(world.class(id), &mut lines, &mut text);
        out.write_all(text.as_bytes())?;
    }
    out.write_all(b"------------- Defs -----------------\n")?;
    for id in &records.sorted() {
        text.clear();
        text.push_str("def ");
        let record = world.record(*id);
        text.push_str(world.text(record.name));
        world.body_text(record.supers, world.fields(record), &mut lines, &mut text);
        out.write_all(text.as_bytes())?;
    }
    Ok(())
}

/// Writes the names of the records that derive from the class called `class`, `S2` before `S10`.
///
/// # Errors
/// Those of `out`, and [`io::ErrorKind::NotFound`] if there is no such class.
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
