//! The output of `--dump-json`: all records as one JSON object. It is written in pieces, so memory
//! does not grow with the size of the output.

use std::io::{self, Write};

use rustc_hash::FxHashMap;

use crate::records::RecordKeeper;
use crate::source::SourceMap;
use crate::value::{ClassId, Node, RecordId, ValueId};
use crate::world::World;

/// The size of the output buffer in bytes.
const BUFFER: usize = 1 << 16;

struct Json<'a> {
    world: &'a World,
    text: String,
    printable: String,
}

/// Writes the records in the format of llvm-tblgen's JSON back end.
///
/// # Errors
/// Returns the errors of `out`.
pub fn dump_json(records: &RecordKeeper, sources: &SourceMap, out: &mut dyn Write) -> io::Result<()> {
    let world = &records.world;
    let mut json = Json {
        world,
        text: String::new(),
        printable: String::new(),
    };
    let sorted = records.sorted();
    json.text.push('{');
    // The keys of an object are in byte order: `!` precedes every name except the empty one.
    let nameless = sorted
        .iter()
        .take_while(|id| world.text(world.record(**id).name).is_empty());
    let nameless = nameless.count();
    for id in &sorted[..nameless] {
        json.record(*id, sources);
        json.text.push(',');
    }
    json.text.push_str("\"!instanceof\":{");
    let mut instances: FxHashMap<ClassId, Vec<RecordId>> = FxHashMap::default();
    for id in &sorted {
        for class in world.lists.get(world.record(*id).supers) {
            instances.entry(*class).or_default().push(*id);
        }
    }
    let mut classes: Vec<ClassId> = (0..world.classes.len() as u32).map(ClassId).collect();
    classes.sort_by_key(|id| world.text(world.class(*id).name));
    for (at, class) in classes.iter().enumerate() {
        json.comma(at);
        json.string(world.text(world.class(*class).name));
        json.text.push_str(":[");
        let of_class = instances.get(class).map_or(&[][..], Vec::as_slice);
        for (at, id) in of_class.iter().enumerate() {
            json.comma(at);
            json.string(world.text(world.record(*id).name));
        }
        json.text.push(']');
        json.flush(out, BUFFER)?;
    }
    json.text.push_str("},\"!tablegen_json_version\":1");
    for id in &sorted[nameless..] {
        json.text.push(',');
        json.record(*id, sources);
        json.flush(out, BUFFER)?;
    }
    json.text.push_str("}\n");
    json.flush(out, 0)
}

impl Json<'_> {
    fn flush(&mut self, out: &mut dyn Write, least: usize) -> io::Result<()> {
        if self.text.len() >= least {
            out.write_all(self.text.as_bytes())?;
            self.text.clear();
        }
        Ok(())
    }

    fn comma(&mut self, at: usize) {
        if at > 0 {
            self.text.push(',');
        }
    }

    fn string(&mut self, value: &str) {
        quote(value, &mut self.text);
    }

    fn key(&mut self, key: &str) {
        self.string(key);
        self.text.push(':');
    }

    fn names(&mut self, names: &[&str]) {
        self.text.push('[');
        for (at, name) in names.iter().enumerate() {
            self.comma(at);
            self.string(name);
        }
        self.text.push(']');
    }

    fn record(&mut self, id: RecordId, sources: &SourceMap) {
        let world = self.world;
        let record = world.record(id);
        let name = world.text(record.name);
        self.key(name);
        self.text.push_str("{\"!anonymous\":");
        self.text.push_str(if record.anonymous { "true" } else { "false" });
        self.text.push_str(",\"!fields\":");
        let declared: Vec<&str> = world
            .fields(record)
            .iter()
            .filter(|field| field.nonconcrete)
            .map(|field| world.text(field.name))
            .collect();
        self.names(&declared);
        self.text.push_str(",\"!locs\":");
        let places: Vec<String> = std::iter::once(record.span)
            .chain(world.chains.shown(record.chain))
            .map(|span| {
                let place = sources.location(span);
                let file = std::path::Path::new(place.file)
                    .file_name()
                    .map_or_else(|| place.file.into(), |name| name.to_string_lossy());
                format!("{file}:{}", place.line)
            })
            .collect();
        let places: Vec<&str> = places.iter().map(String::as_str).collect();
        self.names(&places);
        self.text.push_str(",\"!name\":");
        self.string(name);
        self.text.push_str(",\"!superclasses\":");
        let supers: Vec<&str> = world
            .lists
            .get(record.supers)
            .iter()
            .map(|class| world.text(world.class(*class).name))
            .collect();
        self.names(&supers);
        let mut fields: Vec<_> = world.fields(record).iter().collect();
        fields.sort_by_key(|field| world.text(field.name));
        for field in fields {
            self.text.push(',');
            self.key(world.text(field.name));
            self.value(field.value);
        }
        self.text.push('}');
    }

    /// Writes `"printable":"..."` for a value.
    fn printable(&mut self, id: ValueId) {
        self.printable.clear();
        self.world.write_value(id, &mut self.printable);
        self.text.push_str("\"printable\":");
        quote(&self.printable, &mut self.text);
    }

    fn number(&mut self, value: i64) {
        self.text.push_str(&value.to_string());
    }

    fn value(&mut self, id: ValueId) {
        let world = self.world;
        match world.values.node(id) {
            Node::Unset => self.text.push_str("null"),
            Node::Bit(value) => self.text.push(if value { '1' } else { '0' }),
            Node::Int(value) => self.number(value),
            Node::Str(text) | Node::Code(text) => self.string(world.text(text)),
            Node::Bits(kids) | Node::List(kids) => {
                self.text.push('[');
                for (at, kid) in world.values.kids(kids).iter().enumerate() {
                    self.comma(at);
                    self.value(*kid);
                }
                self.text.push(']');
            }
            Node::Dag(kids) => {
                self.text.push_str("{\"args\":[");
                let parts = world.values.pair_vec(kids);
                for (at, (value, name)) in parts.iter().skip(1).enumerate() {
                    self.comma(at);
                    self.text.push('[');
                    self.value(*value);
                    self.text.push(',');
                    match name.some() {
                        Some(name) => self.string(world.text(name)),
                        None => self.text.push_str("null"),
                    }
                    self.text.push(']');
                }
                self.text.push_str("],\"kind\":\"dag\",");
                if let Some(name) = parts.first().and_then(|part| part.1.some()) {
                    self.key("name");
                    self.string(world.text(name));
                    self.text.push(',');
                }
                self.text.push_str("\"operator\":");
                match parts.first() {
                    Some((operator, _)) => self.value(*operator),
                    None => self.text.push_str("null"),
                }
                self.text.push(',');
                self.printable(id);
                self.text.push('}');
            }
            Node::Def(record) => {
                self.text.push_str("{\"def\":");
                self.string(world.text(world.record(record).name));
                self.text.push_str(",\"kind\":\"def\",");
                self.printable(id);
                self.text.push('}');
            }
            Node::Var(name) => {
                self.text.push_str("{\"kind\":\"var\",");
                self.printable(id);
                self.text.push_str(",\"var\":");
                self.string(world.text(name));
                self.text.push('}');
            }
            Node::VarBit(base, index) if matches!(world.values.node(base), Node::Var(_)) => {
                self.text.push_str("{\"index\":");
                self.number(i64::from(index));
                self.text.push_str(",\"kind\":\"varbit\",");
                self.printable(id);
                self.text.push_str(",\"var\":");
                let name = world.value_text(base);
                self.string(&name);
                self.text.push('}');
            }
            _ => {
                self.text.push_str("{\"kind\":\"complex\",");
                self.printable(id);
                self.text.push('}');
            }
        }
    }
}

/// Writes a JSON string, with control characters escaped as in LLVM.
fn quote(value: &str, out: &mut String) {
    out.push('"');
    let mut copied = 0;
    for (at, byte) in value.bytes().enumerate() {
        let escape = match byte {
            b'"' => "\\\"",
            b'\\' => "\\\\",
            b'\n' => "\\n",
            b'\r' => "\\r",
            b'\t' => "\\t",
            0..0x20 => "",
            _ => continue,
        };
        out.push_str(&value[copied..at]);
        copied = at + 1;
        if escape.is_empty() {
            out.push_str(&format!("\\u{byte:04x}"));
        } else {
            out.push_str(escape);
        }
    }
    out.push_str(&value[copied..]);
    out.push('"');
}
