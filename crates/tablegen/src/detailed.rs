//! The output of `--print-detailed-records`: variables, classes and records with their source
//! locations, as in llvm-tblgen. The statistics on llvm-tblgen's own memory are omitted.

use std::io::{self, Write};

use crate::records::RecordKeeper;
use crate::shape::{ClassList, Place};
use crate::source::{SourceMap, Span};
use crate::strings::Symbol;
use crate::value::ClassId;
use crate::world::{Fields, World};

struct Printer<'a> {
    world: &'a World,
    sources: &'a SourceMap,
    out: &'a mut dyn Write,
    text: String,
}

/// Writes global variables, classes and records with all details. The heading names the first file
/// of `sources`.
///
/// # Errors
/// Returns the errors of `out`.
pub fn print_detailed_records(records: &RecordKeeper, sources: &SourceMap, out: &mut dyn Write) -> io::Result<()> {
    let world = &records.world;
    let mut printer = Printer {
        world,
        sources,
        out,
        text: String::new(),
    };
    let file = sources.files().next().map_or("", |file| file.name());
    writeln!(printer.out, "DETAILED RECORDS for file {file}\n")?;

    let mut globals: Vec<Symbol> = world.globals.keys().copied().collect();
    globals.sort_unstable_by_key(|name| world.text(*name));
    printer.heading("Global Variables", globals.len())?;
    for name in globals {
        let value = world.value_text(world.globals[&name]);
        writeln!(printer.out, "{} = {value}", world.text(name))?;
    }

    let mut classes: Vec<ClassId> = (0..world.classes.len() as u32).map(ClassId).collect();
    classes.sort_unstable_by_key(|id| world.text(world.class(*id).name));
    writeln!(printer.out)?;
    printer.heading("Classes", classes.len())?;
    for (at, id) in classes.iter().enumerate() {
        if at > 0 {
            writeln!(printer.out)?;
        }
        let class = world.class(*id);
        printer.title(class.name, class.proto.span)?;
        if class.params.is_empty() {
            writeln!(printer.out, "  Template args: (none)")?;
        } else {
            writeln!(printer.out, "  Template args:")?;
        }
        for param in class.params.iter() {
            printer.text.clear();
            world.declaration(param.qualified, param.ty, param.default, &mut printer.text);
            let place = printer.place(param.span);
            writeln!(printer.out, "    {}  {place}", printer.text)?;
        }
        printer.body(
            class.proto.supers,
            class.proto.direct,
            class.params.len(),
            class.proto.fields(),
        )?;
    }

    if !classes.is_empty() {
        writeln!(printer.out)?;
    }
    let sorted = records.sorted();
    printer.heading("Records", sorted.len())?;
    for (at, id) in sorted.iter().enumerate() {
        if at > 0 {
            writeln!(printer.out)?;
        }
        let record = world.record(*id);
        printer.title(record.name, record.span)?;
        let chain = world.chains.shown(record.chain);
        if !chain.is_empty() {
            write!(printer.out, "  Defm sequence:")?;
            for span in chain.iter().rev().chain([&record.span]) {
                let place = printer.place(*span);
                write!(printer.out, " {place}")?;
            }
            writeln!(printer.out)?;
        }
        printer.body(record.supers, record.direct, 0, world.fields(record))?;
    }
    Ok(())
}

impl Printer<'_> {
    fn heading(&mut self, what: &str, count: usize) -> io::Result<()> {
        writeln!(self.out, "-------------------- {what} ({count}) --------------------\n")
    }

    /// Formats a location as `|file:line|`.
    fn place(&self, span: Span) -> String {
        let place = self.sources.location(span);
        let file = std::path::Path::new(place.file).file_name();
        let file = file.map_or_else(|| place.file.into(), |name| name.to_string_lossy());
        format!("|{file}:{}|", place.line)
    }

    fn title(&mut self, name: Symbol, span: Span) -> io::Result<()> {
        let place = self.place(span);
        let name = match self.world.text(name) {
            "" => "\"\"",
            name => name,
        };
        writeln!(self.out, "{name}  {place}")
    }

    /// Returns where a field was declared or set last, independent of the origin of its value.
    fn setter(&self, place: Place) -> String {
        self.place(self.world.span(self.world.places.setter(place)))
    }

    fn body(&mut self, supers: ClassList, direct: ClassList, params: usize, fields: Fields) -> io::Result<()> {
        let world = self.world;
        write!(self.out, "  Superclasses:")?;
        let supers = world.lists.get(supers);
        if supers.is_empty() {
            write!(self.out, " (none)")?;
        }
        for class in supers {
            let name = world.text(world.class(*class).name);
            if world.lists.get(direct).contains(class) {
                write!(self.out, " {name}")?;
            } else {
                write!(self.out, " ({name})")?;
            }
        }
        writeln!(self.out)?;
        // Template arguments count as fields here, although they are shown elsewhere.
        if fields.is_empty() && params == 0 {
            return writeln!(self.out, "  Fields: (none)");
        }
        writeln!(self.out, "  Fields:")?;
        for field in fields.iter() {
            self.text.clear();
            if field.nonconcrete {
                self.text.push_str("field ");
            }
            world.declaration(field.name, field.ty, field.value, &mut self.text);
            let place = self.setter(field.span);
            writeln!(self.out, "    {}  {place}", self.text)?;
        }
        Ok(())
    }
}
