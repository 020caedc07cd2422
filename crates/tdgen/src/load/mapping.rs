//! Loads `InstrMapping` records as relations between instructions of the target. Records with the
//! same `Relation` define one function.

use super::{Loader, also, fault, field_span, identifier};
use crate::model::Mapping;
use crate::relation::{Relation, relation};
use tablegen::{Diagnostic, Record};

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

    /// Joins the rows of records that define the same function.
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
        let relation = relation(self.records, map)?;
        let mut faults = Vec::new();
        unused(map, &relation, &mut faults);
        let mut rows = Vec::new();
        for (key, targets) in &relation.rows {
            let Some(&key_index) = self.instruction_index.get(key.name()) else {
                // An instruction that could not be loaded already has a fault.
                if key.is_a("Instruction") && key.field("Inst").is_some() {
                    continue;
                }
                let message = format!(
                    "`{}` is a key of the relation `{name}`, but is not an instruction with an encoding",
                    key.name()
                );
                faults.push(also(fault(key.span(), message), map.span(), "the relation"));
                continue;
            };
            let index = |target: &Record<'_>| self.instruction_index.get(target.name()).copied();
            let targets: Vec<Option<usize>> = targets.iter().map(|target| target.as_ref().and_then(index)).collect();
            if targets.iter().any(Option::is_some) {
                rows.push((key_index, targets));
            }
        }
        if !faults.is_empty() {
            return Err(faults);
        }
        let function = match super::text_or_empty(map, "Relation").map_err(one)? {
            relation if relation.is_empty() => snake(name),
            relation => relation,
        };
        identifier(&function, map.span()).map_err(one)?;
        Ok(Mapping {
            record: name.to_owned(),
            function,
            columns: relation.shape.values,
            rows,
            span: map.span(),
        })
    }
}

/// Refuses a key or column value that no candidate has: it is a misspelling.
fn unused(map: Record<'_>, relation: &Relation<'_>, faults: &mut Vec<Diagnostic>) {
    let shape = &relation.shape;
    let named = std::iter::once(("KeyCol", &shape.key)).chain(shape.values.iter().map(|v| ("ValueCols", v)));
    for (field, column) in named {
        if !relation.found.contains(column) {
            faults.push(fault(
                field_span(map, field),
                format!(
                    "`{}`: no record of class `{}` has {:?} = {column:?}, which `{field}` names",
                    map.name(),
                    relation.filter,
                    shape.col_fields
                ),
            ));
        }
    }
}

/// Converts `getImmediateForm` to `immediate_form`.
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
