//! `--print-records`: all classes and records as text, like llvm-tblgen.

use std::io::{self, Write};

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

    fn body_text(&self, supers: ClassList, fields: Fields, out: &mut String) {
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
        for nonconcrete in [true, false] {
            for field in fields.iter() {
                if field.nonconcrete == nonconcrete {
                    self.field_text(&field, out);
                }
            }
        }
        out.push_str("}\n");
    }

    fn class_text(&self, class: &ClassData, out: &mut String) {
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
        self.body_text(class.proto.supers, class.proto.fields(), out);
    }
}

/// One record as `!repr` shows it.
pub(crate) fn record_text(world: &World, id: RecordId) -> String {
    let mut out = String::new();
    let record = world.record(id);
    out.push_str(world.text(record.name));
    world.body_text(record.supers, world.fields(record), &mut out);
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
    for id in classes {
        text.clear();
        text.push_str("class ");
        world.class_text(world.class(id), &mut text);
        out.write_all(text.as_bytes())?;
    }
    out.write_all(b"------------- Defs -----------------\n")?;
    for id in &records.sorted() {
        text.clear();
        text.push_str("def ");
        let record = world.record(*id);
        text.push_str(world.text(record.name));
        world.body_text(record.supers, world.fields(record), &mut text);
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
