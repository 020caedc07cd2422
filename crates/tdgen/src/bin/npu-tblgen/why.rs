//! `npu-tblgen why RECORD[.FIELD]`: prints the steps that led to the values of a record's fields.

use std::io::{self, Write};

use tablegen::{Parsed, Record, Span};

/// Formats a location as `file:line:column`.
fn place(parsed: &Parsed, span: Span) -> String {
    let place = parsed.sources.location(span);
    format!("{}:{}:{}", place.file, place.line, place.column)
}

/// Splits `RECORD.FIELD`. A record whose name contains the dot takes precedence.
fn find<'a>(parsed: &'a Parsed, what: &str) -> Result<(Record<'a>, Option<String>), String> {
    if let Some(record) = parsed.records.def(what) {
        return Ok((record, None));
    }
    let (name, field) = match what.rsplit_once('.') {
        Some((name, field)) => (name, Some(field)),
        None => (what, None),
    };
    let Some(record) = parsed.records.def(name) else {
        let near = tablegen::closest(name, parsed.records.defs().map(|record| record.name()));
        let hint = near.map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
        return Err(format!("no record is called `{name}`{hint}"));
    };
    if let Some(field) = field
        && record.field(field).is_none()
    {
        let near = tablegen::closest(field, record.fields().map(|field| field.name()));
        let hint = near.map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
        return Err(format!("record `{name}` has no field `{field}`{hint}"));
    }
    Ok((record, field.map(str::to_owned)))
}

/// Writes the history of the record or field.
///
/// # Errors
/// Returns the errors of `out`, and [`io::ErrorKind::NotFound`] if the record or field does not
/// exist.
pub fn why(parsed: &Parsed, what: &str, out: &mut dyn Write) -> io::Result<()> {
    let (record, only) = find(parsed, what).map_err(|message| io::Error::new(io::ErrorKind::NotFound, message))?;
    let classes: Vec<&str> = record.superclasses().collect();
    write!(out, "{}: record `{}`", place(parsed, record.span()), record.name())?;
    if !classes.is_empty() {
        write!(out, " of {}", classes.join(", "))?;
    }
    writeln!(out)?;
    for made_by in record.instantiations() {
        writeln!(
            out,
            "    made by {}: {}",
            place(parsed, made_by),
            parsed.sources.text(made_by)
        )?;
    }
    for field in record.fields() {
        if only.as_ref().is_some_and(|only| only != field.name()) {
            continue;
        }
        writeln!(out, "\n{} {} = {}", field.type_name(), field.name(), field.value())?;
        for step in record.history(field.name()) {
            writeln!(
                out,
                "    {}: {}: {}",
                place(parsed, step.span),
                step.kind.text(),
                step.value
            )?;
        }
    }
    Ok(())
}
