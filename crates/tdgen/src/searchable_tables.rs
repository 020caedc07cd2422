//! `--gen-searchable-tables`: the `GenericEnum`, `GenericTable` and `SearchIndex` records of a
//! program as Rust.
//!
//! An enum has the name of its record, and the `Summary` of a member is its documentation. A table
//! is a sorted slice of a struct, with a function for its primary key and one for each index.
//! Classes and fields are those of LLVM's `SearchableTable.td`:
//!
//! - `GenericEnum`: `FilterClass`, `NameField`, `ValueField`;
//! - `GenericTable`: `FilterClass`, `CppTypeName`, `Fields`, `PrimaryKey`, `PrimaryKeyName`,
//!   `PrimaryKeyReturnRange`, and `TypeOf_F` for a field `F` whose type is a `GenericEnum`;
//! - `SearchIndex`: `Table`, `Key`, `ReturnRange`; its name is the name of the function.

use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;

use crate::load::{also, fault, field_span, text_or_empty};
use crate::rust_names::{kept, snake, tuple, upper, variant};
use tablegen::{Diagnostic, Parsed, Record, RecordKeeper, TypeKind, Value, numeric_order};

/// Generates Rust source with all enums and tables, enums first, each in the order of their names.
///
/// # Errors
///
/// Returns every fault of the records, each with its location: an unknown filter class or field, a
/// field whose type no column can have, an unset value, two equal values in an enum, two rows with
/// the same primary key, a name that is not valid in Rust.
pub fn searchable_tables(parsed: &Parsed) -> Result<String, Vec<Diagnostic>> {
    let mut tables = Tables {
        records: &parsed.records,
        enums: BTreeMap::new(),
        faults: Vec::new(),
        out: String::from("// The tables of the GenericEnum and GenericTable records.\n"),
    };
    for record in tables.sorted("GenericEnum") {
        tables.generic_enum(record);
    }
    for record in tables.sorted("GenericTable") {
        tables.generic_table(record);
    }
    if tables.faults.is_empty() {
        Ok(tables.out)
    } else {
        Err(tables.faults)
    }
}

/// An enum: a map from record names to variant names.
struct Enum {
    variants: HashMap<String, (String, i64)>,
}

struct Tables<'a> {
    records: &'a RecordKeeper,
    enums: BTreeMap<String, Enum>,
    faults: Vec<Diagnostic>,
    out: String,
}

/// A variant of an enum.
struct Variant<'a> {
    record: Record<'a>,
    /// Its name in td and in Rust.
    text: &'a str,
    name: String,
    number: i64,
}

/// Returns the smallest integer type for the numbers of an enum.
fn representation(variants: &[Variant<'_>]) -> &'static str {
    let numbers = || variants.iter().map(|one| one.number);
    match (numbers().min().unwrap_or(0), numbers().max().unwrap_or(0)) {
        (..0, _) => "i64",
        (_, ..=0xFF) => "u8",
        (_, ..=0xFFFF) => "u16",
        (_, ..=0xFFFF_FFFF) => "u32",
        _ => "u64",
    }
}

/// The type of a column of a table.
#[derive(Clone, PartialEq, Eq)]
enum Column {
    Bool,
    /// An unsigned number of 8, 16, 32 or 64 bits.
    Bits(u32),
    Int,
    Text,
    /// A variant of this enum.
    Enum(String),
}

impl Column {
    fn rust(&self) -> String {
        match self {
            Column::Bool => "bool".to_owned(),
            Column::Bits(width) => format!("u{width}"),
            Column::Int => "i64".to_owned(),
            Column::Text => "&'static str".to_owned(),
            Column::Enum(name) => name.clone(),
        }
    }
}

/// A value of a column: its Rust text and its sort key.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    Number(u64),
    Signed(i64),
    Text(String),
}

#[derive(Clone)]
struct Cell {
    text: String,
    key: Key,
}

/// A table that is being generated.
struct Table<'a> {
    record: Record<'a>,
    row_type: String,
    fields: Vec<(String, Column)>,
    rows: Vec<(Record<'a>, Vec<Cell>)>,
}

impl<'a> Tables<'a> {
    fn sorted(&self, class: &str) -> Vec<Record<'a>> {
        let mut records = self.records.defs_derived_from(class);
        records.sort_by(|a, b| numeric_order(a.name(), b.name()));
        records
    }

    fn note<T, E: Into<Diagnostic>>(&mut self, result: Result<T, E>) -> Option<T> {
        result.map_err(|error| self.faults.push(error.into())).ok()
    }

    /// Returns the records of the class named in `FilterClass`.
    fn members(&mut self, record: Record<'a>) -> Option<Vec<Record<'a>>> {
        let filter = self.note(record.string("FilterClass"))?;
        if self.records.class(filter).is_none() {
            let message = format!(
                "`{}`: the class `{filter}` of `FilterClass` is not defined",
                record.name()
            );
            self.faults.push(fault(field_span(record, "FilterClass"), message));
            return None;
        }
        Some(self.sorted(filter))
    }

    fn generic_enum(&mut self, record: Record<'a>) {
        let Some(members) = self.members(record) else {
            return;
        };
        let (Some(name_field), Some(value_field)) = (
            self.note(text_or_empty(record, "NameField")),
            self.note(text_or_empty(record, "ValueField")),
        ) else {
            return;
        };
        let mut variants: Vec<Variant<'a>> = Vec::new();
        for (at, member) in members.into_iter().enumerate() {
            let text = if name_field.is_empty() {
                Some(member.name())
            } else {
                self.note(member.string(&name_field))
            };
            let number = if value_field.is_empty() {
                Some(at as i64)
            } else {
                self.note(member.int(&value_field))
            };
            let (Some(text), Some(number)) = (text, number) else {
                continue;
            };
            let name = variant(text);
            if let Some(other) = variants.iter().find(|one| one.name == name || one.number == number) {
                let message = format!(
                    "`{}` and `{}` are one in the enum `{}`",
                    other.record.name(),
                    member.name(),
                    record.name()
                );
                let d = also(fault(member.span(), message), other.record.span(), "the other");
                self.faults.push(also(d, record.span(), "the enum"));
            }
            variants.push(Variant {
                record: member,
                text,
                name,
                number,
            });
        }
        if !value_field.is_empty() {
            variants.sort_by_key(|one| one.number);
        }
        let Some(name) = self.note(kept(record.name(), record.span())) else {
            return;
        };
        self.write_enum(record, &name, &variants);
        let variants = variants
            .into_iter()
            .map(|one| (one.record.name().to_owned(), (one.name, one.number)));
        let variants = variants.collect();
        self.enums.insert(record.name().to_owned(), Enum { variants });
    }

    fn write_enum(&mut self, record: Record<'a>, name: &str, variants: &[Variant<'a>]) {
        let repr = representation(variants);
        let _ = writeln!(self.out, "\n/// `{}`; the discriminant is the number.", record.name());
        self.out
            .push_str("#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]\n");
        if variants.is_empty() {
            let _ = writeln!(self.out, "pub enum {name} {{}}");
            return;
        }
        let _ = write!(self.out, "#[repr({repr})]\npub enum {name} {{\n");
        let (mut all, mut texts, mut numbers) = (String::new(), String::new(), String::new());
        for one in variants {
            let (record, variant, number) = (one.record.name(), &one.name, one.number);
            // The `Summary` of the record is the documentation of the variant, if it is a text.
            let summary = text_or_empty(one.record, "Summary").unwrap_or_default();
            let summary = summary.replace(['\n', '\r'], " ");
            let colon = if summary.is_empty() { "" } else { ": " };
            let _ = write!(
                self.out,
                "    /// `{record}`{colon}{summary}\n    {variant} = {number},\n"
            );
            let _ = writeln!(all, "        {name}::{variant},");
            let _ = writeln!(texts, "            {name}::{variant} => {:?},", one.text);
            let _ = writeln!(numbers, "            {number} => {name}::{variant},");
        }
        let _ = write!(
            self.out,
            "}}\nimpl {name} {{
    /// All of them by number.
    pub const ALL: &'static [{name}] = &[\n{all}    ];
    /// The name in td.
    pub const fn name(self) -> &'static str {{
        match self {{\n{texts}        }}\n    }}
    /// The number.
    pub const fn value(self) -> {repr} {{
        self as {repr}\n    }}
    /// The one with this number.
    pub const fn from_value(value: {repr}) -> Option<{name}> {{
        Some(match value {{\n{numbers}            _ => return None,\n        }})\n    }}\n}}\n"
        );
    }

    /// Returns the type of the column `field` of a table.
    fn column(&mut self, table: Record<'a>, rows: &[Record<'a>], field: &str) -> Option<Column> {
        // The enum itself, or its name.
        let declared = match table.opt_def(&format!("TypeOf_{field}")) {
            Ok(Some(record)) => record.name().to_owned(),
            _ => self.note(text_or_empty(table, &format!("TypeOf_{field}")))?,
        };
        if self.enums.contains_key(&declared) {
            return Some(Column::Enum(declared));
        }
        if !declared.is_empty() && declared != "code" {
            let message = format!(
                "`{declared}`, the type of `{field}` in `{}`, is not a GenericEnum",
                table.name()
            );
            self.faults
                .push(fault(field_span(table, &format!("TypeOf_{field}")), message));
            return None;
        }
        let first = rows.first()?;
        let Some(found) = first.field(field) else {
            let message = format!(
                "the table `{}` has a field `{field}`, which `{}` does not have",
                table.name(),
                first.name()
            );
            let d = fault(field_span(table, "Fields"), message);
            self.faults.push(also(d, first.span(), "this record"));
            return None;
        };
        match found.type_kind() {
            TypeKind::Bit => Some(Column::Bool),
            TypeKind::Bits(width) if width <= 64 => Some(Column::Bits(width.max(8).next_power_of_two())),
            TypeKind::Int => Some(Column::Int),
            TypeKind::String => Some(Column::Text),
            TypeKind::Record(classes) => {
                // Without a declaration, the type is the enum that contains the records of all
                // rows.
                let known = self.enums.iter().find(|(_, one)| {
                    rows.iter().all(|row| {
                        row.def_field(field)
                            .is_ok_and(|value| one.variants.contains_key(value.name()))
                    })
                });
                if let Some((name, _)) = known {
                    return Some(Column::Enum(name.clone()));
                }
                let message = format!(
                    "`{field}` of the table `{}` holds records of {classes:?} that are in no GenericEnum",
                    table.name()
                );
                self.faults.push(fault(field_span(table, "Fields"), message));
                None
            }
            _ => {
                let message = format!(
                    "`{field}` of the table `{}` is a `{}`, which no column can hold",
                    table.name(),
                    found.type_name()
                );
                let d = fault(field_span(table, "Fields"), message);
                self.faults.push(also(d, found.declaration(), "declared here"));
                None
            }
        }
    }

    fn cell(&mut self, table: Record<'a>, row: Record<'a>, field: &str, column: &Column) -> Option<Cell> {
        let value = self.note(row.value(field))?;
        let cell = self.cell_of(value, column);
        if cell.is_none() {
            let error = row.access_error(field, &format!("a value of type `{}`", column.rust()));
            let d = also(error.into(), table.span(), "for this table");
            self.faults.push(d);
        }
        cell
    }

    fn cell_of(&self, value: Value<'a>, column: &Column) -> Option<Cell> {
        Some(match column {
            Column::Bool => {
                let bit = value.as_int()?;
                Cell {
                    text: (bit != 0).to_string(),
                    key: Key::Number(bit as u64),
                }
            }
            Column::Bits(_) => {
                let number = value.as_int()? as u64;
                Cell {
                    text: format!("{number:#x}"),
                    key: Key::Number(number),
                }
            }
            Column::Int => {
                let number = value.as_int()?;
                Cell {
                    text: number.to_string(),
                    key: Key::Signed(number),
                }
            }
            Column::Text => {
                let text = value.as_str()?;
                Cell {
                    text: format!("{text:?}"),
                    key: Key::Text(text.to_owned()),
                }
            }
            Column::Enum(name) => {
                let known = self.enums.get(name)?;
                let record = match value.as_def() {
                    Some(record) => record.name(),
                    None => value.as_str()?,
                };
                let (variant, number) = known.variants.get(record)?;
                Cell {
                    text: format!("{name}::{variant}"),
                    key: Key::Signed(*number),
                }
            }
        })
    }

    fn generic_table(&mut self, record: Record<'a>) {
        let (Some(members), Some(names)) = (self.members(record), self.note(record.list_of_strings("Fields"))) else {
            return;
        };
        let faults = self.faults.len();
        let row_type = match self.note(text_or_empty(record, "CppTypeName")) {
            Some(name) if !name.is_empty() => variant(&name),
            Some(_) => variant(record.name()),
            None => return,
        };
        let mut fields = Vec::new();
        for name in names {
            if let Some(column) = self.column(record, &members, name) {
                fields.push((name.to_owned(), column));
            }
        }
        let mut table = Table {
            record,
            row_type,
            fields,
            rows: Vec::new(),
        };
        for member in members {
            let cells = table
                .fields
                .iter()
                .map(|(name, column)| self.cell(record, member, name, column));
            let cells: Vec<Option<Cell>> = cells.collect();
            table.rows.push((member, cells.into_iter().flatten().collect()));
        }
        if self.faults.len() > faults {
            return;
        }
        let key = match record.field("PrimaryKey") {
            Some(_) => self.note(record.list_of_strings("PrimaryKey")),
            None => Some(Vec::new()),
        };
        let Some(key) = key else {
            return;
        };
        let key: Vec<String> = key.into_iter().map(str::to_owned).collect();
        let Some(columns) = self.key_columns(&table, record, "PrimaryKey", &key) else {
            return;
        };
        table.rows.sort_by(|a, b| compare(&a.1, &b.1, &columns));
        self.write_rows(&table);
        if !key.is_empty() {
            let Some(name) = self.note(text_or_empty(record, "PrimaryKeyName")) else {
                return;
            };
            let name = if name.is_empty() {
                format!("lookup{}", table.row_type)
            } else {
                name
            };
            let range =
                record.field("PrimaryKeyReturnRange").is_some() && record.bit("PrimaryKeyReturnRange") == Ok(true);
            self.function(&table, record, &name, &columns, range, true);
        }
        for index in self.sorted("SearchIndex") {
            if self.note(index.def_field("Table")).is_some_and(|of| of == record) {
                self.search_index(&table, index);
            }
        }
    }

    /// Returns the column numbers of the fields of a key.
    fn key_columns(
        &mut self,
        table: &Table<'a>,
        record: Record<'a>,
        field: &str,
        key: &[String],
    ) -> Option<Vec<usize>> {
        let mut columns = Vec::new();
        for name in key {
            match table.fields.iter().position(|(field, _)| field == name) {
                Some(at) => columns.push(at),
                None => {
                    let message = format!("`{name}` is a key in `{}`, but no field of the table", record.name());
                    let d = fault(field_span(record, field), message);
                    self.faults.push(also(d, table.record.span(), "the table"));
                    return None;
                }
            }
        }
        Some(columns)
    }

    fn write_rows(&mut self, table: &Table<'a>) {
        let name = upper(table.record.name());
        let row = &table.row_type;
        let _ = write!(
            self.out,
            "\n/// A row of `{}`.\n#[derive(Clone, Copy, PartialEq, Eq, Debug)]\npub struct {row} {{\n",
            table.record.name()
        );
        for (field, column) in &table.fields {
            let _ = write!(
                self.out,
                "    /// `{field}`.\n    pub {}: {},\n",
                snake(field),
                column.rust()
            );
        }
        let _ = write!(
            self.out,
            "}}\n\n/// `{}`, sorted by its primary key.\npub static {name}: [{row}; {}] = [\n",
            table.record.name(),
            table.rows.len()
        );
        for (_, cells) in &table.rows {
            let fields = table
                .fields
                .iter()
                .zip(cells)
                .map(|((field, _), cell)| format!("{}: {}", snake(field), cell.text));
            let fields: Vec<String> = fields.collect();
            let _ = writeln!(self.out, "    {row} {{ {} }},", fields.join(", "));
        }
        self.out.push_str("];\n");
    }

    fn search_index(&mut self, table: &Table<'a>, index: Record<'a>) {
        let Some(key) = self.note(index.list_of_strings("Key")) else {
            return;
        };
        let key: Vec<String> = key.into_iter().map(str::to_owned).collect();
        let Some(columns) = self.key_columns(table, index, "Key", &key) else {
            return;
        };
        let range = index.field("ReturnRange").is_some() && index.bit("ReturnRange") == Ok(true);
        self.function(table, index, index.name(), &columns, range, false);
    }

    /// Generates the function that finds rows by the values of `columns`. It uses a separate index
    /// unless the rows are sorted by these columns.
    fn function(
        &mut self,
        table: &Table<'a>,
        record: Record<'a>,
        name: &str,
        columns: &[usize],
        range: bool,
        primary: bool,
    ) {
        let Some(function) = self.note(kept(&snake(name), record.span())) else {
            return;
        };
        let mut order: Vec<usize> = (0..table.rows.len()).collect();
        order.sort_by(|a, b| compare(&table.rows[*a].1, &table.rows[*b].1, columns));
        if !range {
            for pair in order.windows(2) {
                let (first, second) = (&table.rows[pair[0]], &table.rows[pair[1]]);
                if compare(&first.1, &second.1, columns) == Ordering::Equal {
                    let message = format!(
                        "`{}` and `{}` have the same key in `{}`",
                        first.0.name(),
                        second.0.name(),
                        record.name()
                    );
                    let d = also(fault(second.0.span(), message), first.0.span(), "the other");
                    self.faults.push(also(d, record.span(), "the key is declared here"));
                }
            }
        }
        let (rows, row) = (upper(table.record.name()), &table.row_type);
        let key = |at: &usize| {
            let (field, column) = &table.fields[*at];
            (snake(field), column.rust())
        };
        let params: Vec<String> = columns
            .iter()
            .map(key)
            .map(|(name, ty)| format!("{name}: {}", ty.replace("'static ", "")))
            .collect();
        let wanted: Vec<String> = columns.iter().map(|at| key(at).0).collect();
        let found = |row: &str| {
            let fields: Vec<String> = columns.iter().map(|at| format!("{row}.{}", key(at).0)).collect();
            tuple(&fields)
        };
        let (params, wanted) = (params.join(", "), tuple(&wanted));
        let what = table.record.name();
        if range {
            let index = if primary {
                String::new()
            } else {
                self.index_table(&rows, name, &order)
            };
            let source = if primary { rows.clone() } else { index };
            let at = |row: &str| {
                if primary {
                    found(row)
                } else {
                    found(&format!("{rows}[*{row} as usize]"))
                }
            };
            let _ = write!(
                self.out,
                "\n/// The rows of `{what}` with this key.\npub fn {function}({params}) -> impl Iterator<Item = &'static {row}> {{\n    let start = {source}.partition_point(|row| {} < {wanted});\n    let end = {source}.partition_point(|row| {} <= {wanted});\n    {source}[start..end].iter(){}\n}}\n",
                at("row"),
                at("row"),
                if primary {
                    String::new()
                } else {
                    format!(".map(|row| &{rows}[*row as usize])")
                }
            );
            return;
        }
        // A single string column is a reference already.
        let text = columns.len() == 1 && columns.iter().all(|at| table.fields[*at].1 == Column::Text);
        let key = if text { wanted.clone() } else { format!("&{wanted}") };
        let body = if primary {
            format!(
                "    let at = {rows}.binary_search_by(|row| {}.cmp({key})).ok()?;\n    {rows}.get(at)\n",
                found("row")
            )
        } else {
            let index = self.index_table(&rows, name, &order);
            let row = found(&format!("{rows}[*row as usize]"));
            format!(
                "    let at = {index}.binary_search_by(|row| {row}.cmp({key})).ok()?;\n    {rows}.get({index}[at] as usize)\n"
            )
        };
        let _ = write!(
            self.out,
            "\n/// The row of `{what}` with this key.\npub fn {function}({params}) -> Option<&'static {row}> {{\n{body}}}\n"
        );
    }

    /// Generates an index: the numbers of the rows in another order.
    fn index_table(&mut self, rows: &str, name: &str, order: &[usize]) -> String {
        let index = format!("{rows}_BY_{}", upper(name));
        let numbers: Vec<String> = order.iter().map(usize::to_string).collect();
        let _ = write!(
            self.out,
            "\nstatic {index}: [u32; {}] = [{}];\n",
            order.len(),
            numbers.join(", ")
        );
        index
    }
}

fn compare(a: &[Cell], b: &[Cell], columns: &[usize]) -> Ordering {
    let keys = columns.iter().map(|at| (a.get(*at), b.get(*at)));
    keys.map(|(a, b)| a.map(|cell| &cell.key).cmp(&b.map(|cell| &cell.key)))
        .find(|order| order.is_ne())
        .unwrap_or(Ordering::Equal)
}
