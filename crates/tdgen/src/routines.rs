//! The routines of the runtime, from the `RuntimeRoutine` records: rows for the macro `routines!` of the compiler, and their type in ISLE.

use std::fmt::Write;

use tablegen::{Diagnostic, Parsed, Record};

/// The records in td's order.
fn records(parsed: &Parsed) -> Vec<Record<'_>> {
    let mut all = parsed.records.defs_derived_from("RuntimeRoutine");
    all.sort_by_key(Record::index);
    all
}

/// A call of `routines!` with a row for each routine: what it does, variant, name, words of arguments and of results.
///
/// # Errors
///
/// A record without one of the fields.
pub fn emit_routines(parsed: &Parsed) -> Result<String, Vec<Diagnostic>> {
    let mut out = String::from("// Made from the RuntimeRoutine records by tdgen.\n\nroutines! {\n");
    for record in records(parsed) {
        let row = row(record).map_err(|fault| vec![fault])?;
        out.push_str(&row);
    }
    out.push_str("}\n");
    Ok(out)
}

fn row(record: Record<'_>) -> Result<String, Diagnostic> {
    let mut row = String::new();
    let _ = writeln!(row, "    #[doc = {:?}]", record.string("Summary")?);
    let _ = writeln!(
        row,
        "    {} = {:?}, {} -> {};",
        record.string("Variant")?,
        record.name(),
        record.int("Args")?,
        record.int("Results")?
    );
    Ok(row)
}

/// The type of the routines in ISLE; empty if the description has none.
///
/// # Errors
///
/// A record without a name of its variant.
pub fn isle_type(parsed: &Parsed) -> Result<String, Vec<Diagnostic>> {
    let variants: Result<Vec<&str>, _> = records(parsed).iter().map(|record| record.string("Variant")).collect();
    let variants = variants.map_err(|fault| vec![fault.into()])?;
    Ok(match variants.is_empty() {
        true => String::new(),
        false => format!("(type Routine extern (enum {}))\n\n", variants.join(" ")),
    })
}
