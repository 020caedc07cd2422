//! `--gen-instr-map`: the `InstrMapping` records of a program as Rust: an enum of the instructions,
//! an enum for each column field, and for each record a sorted table and a lookup function.
//!
//! The function returns the record in a column that corresponds to a key. It returns `None` if the
//! record is not a key, or if the cell is empty.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use crate::load::{also, fault};
use crate::relation::{Relation, relation};
use crate::rust_names::{kept, snake, tuple, upper, variant};
use tablegen::{Diagnostic, Parsed, Record, numeric_order};

/// The class whose records are the instructions of a target.
const INSTRUCTION: &str = "Instruction";

/// Generates Rust source with the relations of all `InstrMapping` records, in the order of their
/// names. Instructions are the records of class `Instruction`; a relation leaves out other records.
///
/// # Errors
///
/// Returns every fault of the records, each with its locations: a field that is missing or of the
/// wrong shape, an unknown filter class, two records for one cell, a name that is not valid in
/// Rust.
pub fn instr_map(parsed: &Parsed) -> Result<String, Vec<Diagnostic>> {
    let records = &parsed.records;
    let mut faults = Vec::new();
    let mut maps = records.defs_derived_from("InstrMapping");
    maps.sort_by(|a, b| numeric_order(a.name(), b.name()));
    let mut relations: Vec<(Record<'_>, Relation<'_>)> = Vec::new();
    for map in maps {
        match relation(records, map) {
            Ok(relation) => relations.push((map, relation)),
            Err(more) => faults.extend(more),
        }
    }
    let mut instructions = records.defs_derived_from(INSTRUCTION);
    instructions.sort_by(|a, b| numeric_order(a.name(), b.name()));
    let columns = columns(&relations, &mut faults);
    let mut out = String::from("// The relations of the InstrMapping records.\n");
    opcodes(&instructions, &mut out, &mut faults);
    for (field, values) in &columns {
        column_enum(field, values, &mut out);
    }
    let mut functions: BTreeMap<String, Record<'_>> = BTreeMap::new();
    for (map, relation) in &relations {
        if let Some(other) = functions.insert(snake(map.name()), *map) {
            let message = format!("`{}` and `{}` have the same name in Rust", other.name(), map.name());
            faults.push(also(fault(map.span(), message), other.span(), "the other"));
        }
        table(*map, relation, &columns, &mut out);
    }
    if faults.is_empty() { Ok(out) } else { Err(faults) }
}

/// Returns the values of every column field in all relations, in the order of first appearance.
fn columns(relations: &[(Record<'_>, Relation<'_>)], faults: &mut Vec<Diagnostic>) -> Vec<(String, Vec<String>)> {
    let mut columns: Vec<(String, Vec<String>)> = Vec::new();
    for (map, relation) in relations {
        for (at, field) in relation.shape.col_fields.iter().enumerate() {
            let known = columns.iter().position(|(name, _)| name == field);
            let index = known.unwrap_or_else(|| {
                columns.push((field.clone(), Vec::new()));
                columns.len() - 1
            });
            for value in relation.shape.values.iter().filter_map(|entry| entry.get(at)) {
                if columns[index].1.contains(value) {
                    continue;
                }
                if let Some(other) = columns[index].1.iter().find(|other| variant(other) == variant(value)) {
                    let message = format!("the values `{other}` and `{value}` of `{field}` have the same name in Rust");
                    faults.push(fault(map.span(), message));
                }
                columns[index].1.push(value.clone());
            }
        }
    }
    columns
}

fn opcodes(instructions: &[Record<'_>], out: &mut String, faults: &mut Vec<Diagnostic>) {
    out.push_str("\n/// The instructions, in the order of their names.\n");
    out.push_str("#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]\n");
    out.push_str("#[expect(non_camel_case_types, reason = \"named as their records\")]\npub enum Opcode {\n");
    for instruction in instructions {
        match kept(instruction.name(), instruction.span()) {
            Ok(name) => out.push_str(&format!("    /// `{}`.\n    {name},\n", instruction.name())),
            Err(fault) => faults.push(fault),
        }
    }
    out.push_str("}\n");
    // With only camel-case names the lint would not fire and the expectation would be unmet.
    if instructions.iter().all(|one| is_camel(one.name())) {
        *out = out.replace(
            "#[expect(non_camel_case_types, reason = \"named as their records\")]\n",
            "",
        );
    }
}

fn is_camel(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_uppercase()) && !name.contains('_')
}

fn column_enum(field: &str, values: &[String], out: &mut String) {
    let name = variant(field);
    let _ = write!(
        out,
        "\n/// The values of the column field `{field}`.\n#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]\npub enum {name} {{\n"
    );
    for value in values {
        let _ = write!(out, "    /// `{value}`.\n    {},\n", variant(value));
    }
    out.push_str("}\n");
}

fn table(map: Record<'_>, relation: &Relation<'_>, columns: &[(String, Vec<String>)], out: &mut String) {
    let shape = &relation.shape;
    let width = shape.values.len();
    let (function, table) = (snake(map.name()), upper(map.name()));
    let mut rows = Vec::new();
    for (key, targets) in &relation.rows {
        let cell = |target: &Option<Record<'_>>| match target.filter(|target| target.is_a(INSTRUCTION)) {
            Some(target) => kept(target.name(), target.span())
                .map_or_else(|_| "None".to_owned(), |name| format!("Some(Opcode::{name})")),
            None => "None".to_owned(),
        };
        let cells: Vec<String> = targets.iter().map(cell).collect();
        if key.is_a(INSTRUCTION)
            && cells.iter().any(|cell| cell != "None")
            && let Ok(name) = kept(key.name(), key.span())
        {
            rows.push(format!("    (Opcode::{name}, [{}]),\n", cells.join(", ")));
        }
    }
    let _ = write!(
        out,
        "\nstatic {table}: [(Opcode, [Option<Opcode>; {width}]); {}] = [\n{}];\n",
        rows.len(),
        rows.concat()
    );
    // With one column the function needs no column argument.
    let fields: BTreeSet<&String> = if width > 1 {
        shape.col_fields.iter().collect()
    } else {
        BTreeSet::new()
    };
    let ordered: Vec<&(String, Vec<String>)> = columns.iter().filter(|(name, _)| fields.contains(name)).collect();
    let params: Vec<String> = ordered
        .iter()
        .map(|(field, _)| format!(", {}: {}", snake(field), variant(field)))
        .collect();
    let _ = write!(
        out,
        "\n/// The relation `{}`: what stands for `opcode`{}.\npub fn {function}(opcode: Opcode{}) -> Option<Opcode> {{\n",
        map.name(),
        if width > 1 { " in a column" } else { "" },
        params.concat()
    );
    let _ = writeln!(
        out,
        "    let row = {table}.binary_search_by_key(&opcode, |row| row.0).ok()?;"
    );
    if width <= 1 {
        let _ = writeln!(out, "    {table}[row].1[0]\n}}");
        return;
    }
    let names: Vec<String> = ordered.iter().map(|(field, _)| snake(field)).collect();
    let _ = writeln!(out, "    let column = match {} {{", tuple(&names));
    let mut covered = BTreeSet::new();
    for (at, entry) in shape.values.iter().enumerate() {
        let pattern: Vec<String> = ordered
            .iter()
            .filter_map(|(field, _)| {
                let place = shape.col_fields.iter().position(|one| one == field)?;
                Some(format!("{}::{}", variant(field), variant(entry.get(place)?)))
            })
            .collect();
        let pattern = tuple(&pattern);
        let _ = writeln!(out, "        {pattern} => {at},");
        covered.insert(pattern);
    }
    let all: usize = ordered.iter().map(|(_, values)| values.len()).product();
    if covered.len() < all {
        out.push_str("        _ => return None,\n");
    }
    let _ = writeln!(out, "    }};\n    {table}[row].1[column]\n}}");
}
