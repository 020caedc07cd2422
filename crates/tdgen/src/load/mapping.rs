//! `InstrMapping`: relations between instructions as a table over their fields.
//!
//! The candidates of a relation are the records of class `FilterClass`. Those with equal values of all
//! `RowFields` form a row; the ones whose `ColFields` read as `KeyCol` are its keys, and each of `ValueCols`
//! names the member of the row that a key is mapped to. Values are compared as they print, without quotes.
//! Records with the same `Relation` make one function.

use super::{Loader, also, fault, field_span, identifier};
use crate::model::Mapping;
use std::collections::HashMap;
use tablegen::{Diagnostic, Record, ValueKind};

/// A record of the filter class.
struct Candidate<'a> {
    record: Record<'a>,
    row: Vec<String>,
    column: Vec<String>,
}

impl<'a> Loader<'a> {
    pub(super) fn mappings(&mut self) {
        for record in self.records.defs_derived_from("InstrMapping") {
            match self.mapping(record) {
                Ok(mapping) => self.add_mapping(mapping),
                Err(faults) => self.faults.extend(faults),
            }
        }
        for mapping in &mut self.target.mappings {
            mapping.rows.sort_by_key(|(key, _)| *key);
        }
    }

    /// Joins the rows of records that make the same function.
    fn add_mapping(&mut self, mapping: Mapping) {
        let mut same = self.target.mappings.iter_mut();
        let Some(known) = same.find(|m| m.function == mapping.function) else {
            self.target.mappings.push(mapping);
            return;
        };
        let twice = mapping
            .rows
            .iter()
            .find(|(key, _)| known.rows.iter().any(|(k, _)| k == key));
        let problem = if known.columns.len() != mapping.columns.len() {
            Some(format!(
                "`{}` and `{}` are one relation, but have different numbers of `ValueCols`",
                known.record, mapping.record
            ))
        } else {
            twice.map(|(key, _)| {
                format!(
                    "`{}` and `{}` are one relation, and both map `{}`",
                    known.record, mapping.record, self.target.instructions[*key].record
                )
            })
        };
        match problem {
            Some(message) => {
                let d = also(fault(mapping.span, message), known.span, "the other record");
                self.faults.push(d);
            }
            None => known.rows.extend(mapping.rows),
        }
    }

    fn mapping(&self, map: Record<'a>) -> Result<Mapping, Vec<Diagnostic>> {
        let one = |diagnostic: Diagnostic| vec![diagnostic];
        let name = map.name();
        let shape = shape(map).map_err(one)?;
        let mut faults = shape.faults(map);
        let filter = match map.opt_string("FilterClass") {
            Ok(filter) => filter.unwrap_or("?").to_owned(),
            Err(error) => return Err(one(error.into())),
        };
        if self.records.class(&filter).is_none() {
            faults.push(fault(
                field_span(map, "FilterClass"),
                format!("`{name}`: the class `{filter}` of `FilterClass` is not defined"),
            ));
        }
        if !faults.is_empty() {
            return Err(faults);
        }
        let mut candidates = Vec::new();
        for record in self.records.defs_derived_from(&filter) {
            match candidate(map, record, &shape) {
                Ok(candidate) => candidates.push(candidate),
                Err(more) => faults.extend(more),
            }
        }
        if !faults.is_empty() {
            return Err(faults);
        }
        self.unused(map, &shape, &candidates, &mut faults);
        let mut by_row: HashMap<&[String], Vec<&Candidate<'a>>> = HashMap::new();
        for candidate in &candidates {
            by_row.entry(&candidate.row).or_default().push(candidate);
        }
        let mut rows = Vec::new();
        for key in candidates.iter().filter(|c| c.column == shape.key) {
            let Some(&key_index) = self.instruction_index.get(key.record.name()) else {
                // An instruction that could not be loaded has its own fault.
                if key.record.is_a("Instruction") && key.record.field("Inst").is_some() {
                    continue;
                }
                faults.push(also(
                    fault(
                        key.record.span(),
                        format!(
                            "`{}` is a key of the relation `{name}`, but no instruction with an encoding",
                            key.record.name()
                        ),
                    ),
                    map.span(),
                    "the relation",
                ));
                continue;
            };
            let members = by_row.get(key.row.as_slice()).map_or(&[][..], Vec::as_slice);
            let mut targets = Vec::new();
            for column in &shape.values {
                let mut matching = members.iter().filter(|c| c.column == *column);
                let target = matching.next();
                if let (Some(first), Some(second)) = (target, matching.next()) {
                    let d = fault(
                        map.span(),
                        format!(
                            "multiple matches for `{}` in the relation `{name}`: row {:?}, column {column:?}",
                            key.record.name(),
                            key.row
                        ),
                    );
                    let d = also(d, first.record.span(), first.record.name());
                    faults.push(also(d, second.record.span(), second.record.name()));
                }
                targets.push(target.and_then(|t| self.instruction_index.get(t.record.name()).copied()));
            }
            if targets.iter().any(Option::is_some) {
                rows.push((key_index, targets));
            }
        }
        if !faults.is_empty() {
            return Err(faults);
        }
        let function = match super::text_or_empty(map, "Relation") {
            relation if relation.is_empty() => snake(name),
            relation => relation,
        };
        identifier(&function, map.span()).map_err(one)?;
        Ok(Mapping {
            record: name.to_owned(),
            function,
            columns: shape.values,
            rows,
            span: map.span(),
        })
    }

    /// A key or column value that no candidate has is a misspelling.
    fn unused(&self, map: Record<'a>, shape: &Shape, candidates: &[Candidate<'a>], faults: &mut Vec<Diagnostic>) {
        let named = std::iter::once(("KeyCol", &shape.key)).chain(shape.values.iter().map(|v| ("ValueCols", v)));
        for (field, column) in named {
            if !candidates.iter().any(|c| c.column == *column) {
                faults.push(fault(
                    field_span(map, field),
                    format!(
                        "`{}`: no record of class `{}` has {:?} = {column:?}, which `{field}` asks for",
                        map.name(),
                        super::text_or_empty(map, "FilterClass"),
                        shape.col_fields
                    ),
                ));
            }
        }
    }
}

/// The fields of an `InstrMapping` record.
struct Shape {
    row_fields: Vec<String>,
    col_fields: Vec<String>,
    key: Vec<String>,
    values: Vec<Vec<String>>,
}

fn shape(map: Record<'_>) -> Result<Shape, Diagnostic> {
    let strings = |field: &str| -> Result<Vec<String>, Diagnostic> {
        let list = map.list_of_strings(field)?;
        Ok(list.into_iter().map(str::to_owned).collect())
    };
    let mut values = Vec::new();
    for entry in map.list("ValueCols")? {
        let ValueKind::List(items) = entry.kind() else {
            return Err(fault(
                field_span(map, "ValueCols"),
                format!("an entry of `ValueCols` of `{}` is not a list", map.name()),
            ));
        };
        values.push(items.iter().map(|v| text(v.kind())).collect());
    }
    Ok(Shape {
        row_fields: strings("RowFields")?,
        col_fields: strings("ColFields")?,
        key: strings("KeyCol")?,
        values,
    })
}

impl Shape {
    fn faults(&self, map: Record<'_>) -> Vec<Diagnostic> {
        let name = map.name();
        let mut faults = Vec::new();
        if self.values.is_empty() {
            faults.push(fault(
                field_span(map, "ValueCols"),
                format!("InstrMapping record `{name}` has an empty `ValueCols` field"),
            ));
        }
        for (i, entry) in self.values.iter().enumerate() {
            if entry.len() != self.col_fields.len() {
                faults.push(fault(
                    field_span(map, "ValueCols"),
                    format!(
                        "record `{name}`: an entry of `ValueCols` has {} values, but `ColFields` has {}",
                        entry.len(),
                        self.col_fields.len()
                    ),
                ));
            }
            if self.values[..i].contains(entry) {
                faults.push(fault(
                    field_span(map, "ValueCols"),
                    format!("record `{name}`: the entry {entry:?} stands twice in `ValueCols`"),
                ));
            }
        }
        if self.key.len() != self.col_fields.len() {
            faults.push(fault(
                field_span(map, "KeyCol"),
                format!(
                    "record `{name}`: `KeyCol` has {} values, but `ColFields` has {}",
                    self.key.len(),
                    self.col_fields.len()
                ),
            ));
        }
        faults
    }
}

/// Reads the row and column of a candidate; a field it does not have is a fault at the candidate.
fn candidate<'a>(map: Record<'a>, record: Record<'a>, shape: &Shape) -> Result<Candidate<'a>, Vec<Diagnostic>> {
    let mut faults = Vec::new();
    let mut values = |fields: &[String], role: &str, typed: bool| -> Vec<String> {
        let mut out = Vec::new();
        for field in fields {
            match record.field(field) {
                Some(f) if typed => {
                    let value = f.value().kind();
                    out.push(format!("{}{}", type_mark(&value), text(value)));
                }
                Some(f) => out.push(text(f.value().kind())),
                None => faults.push(also(
                    fault(
                        record.span(),
                        format!("no value `{field}` found in `{}`", record.name()),
                    ),
                    map.span(),
                    format!("`{}` has it among its `{role}`", map.name()),
                )),
            }
        }
        out
    };
    // Row values are equal only if their types are; columns are compared with strings.
    let row = values(&shape.row_fields, "RowFields", true);
    let column = values(&shape.col_fields, "ColFields", false);
    if faults.is_empty() {
        Ok(Candidate { record, row, column })
    } else {
        Err(faults)
    }
}

/// Tells values apart that print alike.
fn type_mark(value: &ValueKind<'_>) -> &'static str {
    match value {
        ValueKind::Int(_) => "int ",
        ValueKind::Bit(_) => "bit ",
        ValueKind::Def(_) => "def ",
        ValueKind::Unset => "unset ",
        _ => "",
    }
}

/// A value as it prints, strings without quotes.
fn text(value: ValueKind<'_>) -> String {
    match value {
        ValueKind::Unset => "?".to_owned(),
        ValueKind::Bit(bit) => u8::from(bit).to_string(),
        ValueKind::Int(n) => n.to_string(),
        ValueKind::String(s) | ValueKind::Code(s) => s.to_owned(),
        ValueKind::Def(record) => record.name().to_owned(),
        ValueKind::Bits(bits) => {
            let digits: Vec<&str> = bits
                .iter()
                .rev()
                .map(|b| match b {
                    tablegen::BitValue::Zero => "0",
                    tablegen::BitValue::One => "1",
                    _ => "?",
                })
                .collect();
            format!("{{ {} }}", digits.join(", "))
        }
        ValueKind::List(items) => {
            let items: Vec<String> = items.iter().map(|v| text(v.kind())).collect();
            format!("[{}]", items.join(", "))
        }
        other => format!("{other:?}"),
    }
}

/// `getImmediateForm` to `immediate_form`.
fn snake(name: &str) -> String {
    let name = name.strip_prefix("get").unwrap_or(name);
    let mut out = String::new();
    for c in name.chars() {
        if c.is_ascii_uppercase() && !out.is_empty() {
            out.push('_');
        }
        out.push(c.to_ascii_lowercase());
    }
    out
}
