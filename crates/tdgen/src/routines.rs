//! The routines of the runtime, from the `RuntimeRoutine` records: rows for the compiler's macro
//! `routines!`, and the ISLE type of routines.

use std::fmt::Write;

use tablegen::{Diagnostic, Parsed, Record};

/// Returns the records in td's order.
fn records(parsed: &Parsed) -> Vec<Record<'_>> {
    let mut all = parsed.records.defs_derived_from("RuntimeRoutine");
    all.sort_by_key(Record::index);
    all
}

/// Generates a call of `routines!` with a row for each routine: summary, variant, name, and numbers
/// of argument words and result words.
///
/// # Errors
///
/// Fails if a record lacks one of the fields.
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

/// Generates the ISLE type of the routines; empty if the description has none.
///
/// # Errors
///
/// Fails if a record has no variant name.
pub fn isle_type(parsed: &Parsed) -> Result<String, Vec<Diagnostic>> {
    let variants: Result<Vec<&str>, _> = records(parsed).iter().map(|record| record.string("Variant")).collect();
    let variants = variants.map_err(|fault| vec![fault.into()])?;
    Ok(match variants.is_empty() {
        true => String::new(),
        false => format!("(type Routine extern (enum {}))\n\n", variants.join(" ")),
    })
}
