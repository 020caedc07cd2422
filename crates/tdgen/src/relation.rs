//! `InstrMapping`: relations between records, as tables over their fields.
//!
//! The candidates of a relation are the records of class `FilterClass`. Candidates with equal
//! values of all `RowFields` form a row. Those whose `ColFields` print as `KeyCol` are the keys of
//! the row; each element of `ValueCols` names the member of the row that a key is mapped to. Row
//! values are compared as values, including their types; column values are compared as printed
//! text, without quotes.

use std::collections::{HashMap, HashSet};

use crate::load::{also, fault, field_span};
use tablegen::{Diagnostic, Record, RecordKeeper, Value, ValueKind, numeric_order};

/// The relation that an `InstrMapping` record defines.
pub(crate) struct Relation<'a> {
    pub(crate) shape: Shape,
    /// The class of the instructions.
    pub(crate) filter: String,
    /// Each key with its targets in all value columns.
    pub(crate) rows: Vec<(Record<'a>, Vec<Option<Record<'a>>>)>,
    /// The column values that occur.
    pub(crate) found: HashSet<Vec<String>>,
}

/// A record of the filter class.
struct Candidate<'a> {
    record: Record<'a>,
    row: Vec<Value<'a>>,
    column: Vec<String>,
}

/// Reads an `InstrMapping` record and returns its relation, keys in the order of their names.
pub(crate) fn relation<'a>(records: &'a RecordKeeper, map: Record<'a>) -> Result<Relation<'a>, Vec<Diagnostic>> {
    let one = |diagnostic: Diagnostic| vec![diagnostic];
    let name = map.name();
    let shape = shape(map).map_err(one)?;
    let mut faults = shape.faults(map);
    let filter = match map.opt_string("FilterClass") {
        Ok(filter) => filter.unwrap_or("?").to_owned(),
        Err(error) => return Err(one(error.into())),
    };
    if records.class(&filter).is_none() {
        faults.push(fault(
            field_span(map, "FilterClass"),
            format!("`{name}`: the class `{filter}` of `FilterClass` is not defined"),
        ));
    }
    if !faults.is_empty() {
        return Err(faults);
    }
    let mut candidates = Vec::new();
    let mut members = records.defs_derived_from(&filter);
    members.sort_by(|a, b| numeric_order(a.name(), b.name()));
    for record in members {
        match candidate(map, record, &shape) {
            Ok(candidate) => candidates.push(candidate),
            Err(more) => faults.extend(more),
        }
    }
    let mut by_row: HashMap<&[Value<'a>], Vec<&Candidate<'a>>> = HashMap::new();
    for candidate in &candidates {
        by_row.entry(&candidate.row).or_default().push(candidate);
    }
    let mut rows = Vec::new();
    for key in candidates.iter().filter(|candidate| candidate.column == shape.key) {
        let members = by_row.get(key.row.as_slice()).map_or(&[][..], Vec::as_slice);
        let mut targets = Vec::new();
        for column in &shape.values {
            let mut matching = members.iter().filter(|member| member.column == *column);
            let target = matching.next();
            if let (Some(first), Some(second)) = (target, matching.next()) {
                let row: Vec<String> = key.row.iter().map(|value| text(value.kind())).collect();
                let message = format!(
                    "multiple matches for `{}` in the relation `{name}`: row {row:?}, column {column:?}",
                    key.record.name(),
                );
                let d = also(fault(map.span(), message), first.record.span(), first.record.name());
                faults.push(also(d, second.record.span(), second.record.name()));
            }
            targets.push(target.map(|target| target.record));
        }
        rows.push((key.record, targets));
    }
    if !faults.is_empty() {
        return Err(faults);
    }
    let found = candidates.iter().map(|candidate| candidate.column.clone()).collect();
    Ok(Relation {
        shape,
        filter,
        rows,
        found,
    })
}

/// The fields of an `InstrMapping` record.
pub(crate) struct Shape {
    row_fields: Vec<String>,
    pub(crate) col_fields: Vec<String>,
    pub(crate) key: Vec<String>,
    pub(crate) values: Vec<Vec<String>>,
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
                    format!("record `{name}`: the entry {entry:?} occurs twice in `ValueCols`"),
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

/// Reads the row and column of a candidate. A missing field is a fault at the candidate.
fn candidate<'a>(map: Record<'a>, record: Record<'a>, shape: &Shape) -> Result<Candidate<'a>, Vec<Diagnostic>> {
    let mut faults = Vec::new();
    let mut values = |fields: &[String], role: &str| -> Vec<Value<'a>> {
        let mut out = Vec::new();
        for field in fields {
            match record.field(field) {
                Some(field) => out.push(field.value()),
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
    // Row values are equal only if their types are equal; columns are compared with strings.
    let row = values(&shape.row_fields, "RowFields");
    let column = values(&shape.col_fields, "ColFields")
        .iter()
        .map(|value| text(value.kind()))
        .collect();
    if faults.is_empty() {
        Ok(Candidate { record, row, column })
    } else {
        Err(faults)
    }
}

/// Returns a value as printed, strings without quotes.
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
