//! Generates the legalization table, by CLIF opcode and type, from the `OperationAction` records.
//!
//! The output is Rust source for a module with `Opcode`, `Type` and `types` of
//! `cranelift_codegen::ir`, the enums `LegalizeAction`, `LegalizeCondition` and `Routine` of the
//! same records, and a struct `Rule` with the fields of a record. It defines `COLUMNS`, `TYPES`,
//! `column`, `UNSUPPORTED`, `RULES`, `CELLS`, `COUNTS`, `LEGALIZE_ACTIONS` and
//! `LEGALIZE_CONDITIONS`. A cell is an index into `RULES`; 0 means that td has no record for it. An
//! opcode that does not exist in CLIF fails to compile in that module.
//!
//! With the enums `ValueType` and `RegFile` of `npu-mc` the source also defines `value_type`,
//! `register_file` and the module `type_sets`, from the `ValueType`, `RegisterClass` and `TypeSet`
//! records.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;

use crate::load::{also, fault, field_span, file_of, value_variant};
use crate::rust_names::variant;
use tablegen::{Diagnostic, Parsed, Record};

/// The record for all types without a column.
const OTHER: &str = "OtherVT";
/// The record for instructions without a type.
const UNTYPED: &str = "untyped";
/// The action of refusals, and the condition of records without a condition.
const REFUSED: &str = "Refused";
const ALWAYS: &str = "Always";
/// The actions that may call a routine of the runtime.
const CALLS: [&str; 2] = ["LibCall", "Scalarize"];

/// Generates Rust source of the table; empty if the description has no `LegalizeTypes`.
///
/// # Errors
///
/// Returns every fault of the records, each with its location: two records for one cell under one
/// condition, a cell with conditions only, a type that is not a column, a refusal without reason or
/// nearest form.
pub fn emit_legalize(parsed: &Parsed) -> Result<String, Vec<Diagnostic>> {
    let records = &parsed.records;
    let columns = match records.defs_derived_from("LegalizeTypes").as_slice() {
        [] => return Ok(String::new()),
        [only] => only.list_of_defs("Types").map_err(|e| vec![e.into()])?,
        [_, second, ..] => return Err(vec![fault(second.span(), "there is a second `LegalizeTypes`")]),
    };
    let mut table = Table {
        columns: columns.iter().enumerate().map(|(at, ty)| (ty.name(), at)).collect(),
        cells: BTreeMap::new(),
        faults: Vec::new(),
    };
    let mut actions = records.defs_derived_from("OperationAction");
    actions.sort_by_key(Record::index);
    for record in actions {
        if let Err(fault) = table.add(record) {
            table.faults.push(fault);
        }
    }
    let unsupported = match records.defs_derived_from("UnsupportedTypes").as_slice() {
        [only] => unsupported(*only)
            .map_err(|fault| table.faults.push(fault))
            .unwrap_or_default(),
        _ => {
            let message = "one `UnsupportedTypes` is needed, for values of types without a column";
            let place = records.defs_derived_from("LegalizeTypes")[0].span();
            table.faults.push(fault(place, message));
            String::new()
        }
    };
    let cells = table.finish();
    if table.faults.is_empty() {
        let text = text(&columns, &unsupported, &cells);
        let counts = counts(parsed, columns.len());
        let legend = ["LegalizeAction", "LegalizeCondition"].map(|class| legend(parsed, class));
        let parts: Result<Vec<String>, Diagnostic> =
            [text, counts, held_types(parsed)].into_iter().chain(legend).collect();
        parts.map(|parts| parts.concat()).map_err(|fault| vec![fault])
    } else {
        Err(table.faults)
    }
}

/// The rules of each opcode, by column.
type Cells = BTreeMap<String, Vec<String>>;

struct Table<'a> {
    columns: HashMap<&'a str, usize>,
    /// The records of each opcode and column, in td's order.
    cells: BTreeMap<&'a str, BTreeMap<usize, Vec<Record<'a>>>>,
    faults: Vec<Diagnostic>,
}

impl<'a> Table<'a> {
    fn add(&mut self, record: Record<'a>) -> Result<(), Diagnostic> {
        let refused = record.def_field("Action")?.name() == REFUSED;
        for field in ["What", "NearestForm"] {
            if refused == record.string(field)?.is_empty() {
                let message = if refused {
                    format!("a refusal needs a `{field}`")
                } else {
                    format!("only refusals have a `{field}`")
                };
                return Err(fault(record.span(), message));
            }
        }
        let calls = CALLS.contains(&record.def_field("Action")?.name());
        if !calls && record.opt_def("Routine")?.is_some() {
            return Err(fault(record.span(), "only `LibCall` and `Scalarize` have a `Routine`"));
        }
        let condition = record.def_field("When")?.name();
        for opcode in record.list_of_strings("Opcodes")? {
            if !is_opcode(opcode) {
                let message = format!("`{opcode}` cannot be an opcode of CLIF");
                return Err(fault(field_span(record, "Opcodes"), message));
            }
            for ty in record.list_of_defs("Types")? {
                let Some(&column) = self.columns.get(ty.name()) else {
                    let message = format!("`{}` is not a column of the table", ty.name());
                    return Err(fault(field_span(record, "Types"), message));
                };
                let cell = self.cells.entry(opcode).or_default().entry(column).or_default();
                let same = |other: &&Record<'a>| other.def_field("When").is_ok_and(|when| when.name() == condition);
                if let Some(other) = cell.iter().find(same) {
                    let message = format!("two records define the legalization of `{opcode}` on `{}`", ty.name());
                    return Err(also(fault(record.span(), message), other.span(), "the other"));
                }
                cell.push(record);
            }
        }
        Ok(())
    }

    /// Returns the text of the rules of every cell; a rule without a condition is last.
    fn finish(&mut self) -> Cells {
        let mut all = Cells::new();
        for (&opcode, row) in &self.cells {
            let mut cells = vec![String::new(); self.columns.len()];
            for (&column, records) in row {
                match rules(records) {
                    Ok(Some(text)) => cells[column] = text,
                    Ok(None) => {
                        let message = format!("no record legalizes `{opcode}` if no condition holds");
                        self.faults.push(fault(records[0].span(), message));
                    }
                    Err(fault) => self.faults.push(fault),
                }
            }
            if let Some(&other) = self.columns.get(OTHER)
                && cells[other].is_empty()
            {
                cells[other] = "UNSUPPORTED".to_owned();
            }
            all.insert(opcode.to_owned(), cells);
        }
        all
    }
}

/// Returns whether a name has the form of an opcode: a letter first, then lower-case letters,
/// digits and underscores. The Rust compiler later checks that the opcode exists.
fn is_opcode(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_lowercase())
        && name
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
}

/// Returns the rules of a cell as text; `None` if all have conditions.
fn rules(records: &[Record<'_>]) -> Result<Option<String>, Diagnostic> {
    let mut conditional = String::new();
    let mut always = None;
    for record in records {
        let when = record.def_field("When")?.name();
        let rule = format!(
            "Rule {{ when: LegalizeCondition::{when}, action: LegalizeAction::{}, what: {:?}, nearest_form: {:?}, routine: {} }}",
            record.def_field("Action")?.name(),
            record.string("What")?,
            record.string("NearestForm")?,
            routine(*record)?,
        );
        if when == ALWAYS {
            always = Some(rule);
        } else {
            conditional.push_str(&rule);
            conditional.push_str(", ");
        }
    }
    Ok(always.map(|last| format!("{conditional}{last}")))
}

/// Returns the routine of a record as the source of an `Option`.
fn routine(record: Record<'_>) -> Result<String, Diagnostic> {
    Ok(match record.opt_def("Routine")? {
        Some(routine) => format!("Some(Routine::{})", routine.string("Variant")?),
        None => "None".to_owned(),
    })
}

fn unsupported(record: Record<'_>) -> Result<String, Diagnostic> {
    Ok(format!(
        "Rule {{ when: LegalizeCondition::{ALWAYS}, action: LegalizeAction::{REFUSED}, what: {:?}, nearest_form: {:?}, routine: None }}",
        record.string("What")?,
        record.string("NearestForm")?,
    ))
}

/// Generates the table of the `InstructionCounts` records.
fn counts(parsed: &Parsed, columns: usize) -> Result<String, Diagnostic> {
    let mut rows = String::new();
    let mut known = HashMap::new();
    let mut records = parsed.records.defs_derived_from("InstructionCounts");
    records.sort_by_key(Record::index);
    for record in records {
        let opcode = record.string("Opcode")?;
        if !is_opcode(opcode) {
            let message = format!("`{opcode}` cannot be an opcode of CLIF");
            return Err(fault(field_span(record, "Opcode"), message));
        }
        if let Some(other) = known.insert(opcode, record) {
            let message = format!("there are two records of `{opcode}`");
            return Err(also(fault(record.span(), message), other.span(), "the other"));
        }
        let counts = record.list_of_ints("Counts")?;
        if counts.len() != columns {
            let message = format!("{} counts for {columns} columns", counts.len());
            return Err(fault(field_span(record, "Counts"), message));
        }
        let mut row = Vec::with_capacity(columns);
        for count in counts {
            row.push(match u16::try_from(count) {
                Ok(count) if count < u16::MAX => count.to_string(),
                _ if count == -1 => "u16::MAX".to_owned(),
                _ => {
                    let message = format!("`{count}` is neither -1 nor a number of instructions");
                    return Err(fault(field_span(record, "Counts"), message));
                }
            });
        }
        let _ = writeln!(
            rows,
            "    counts[Opcode::{} as usize] = [{}];",
            variant(opcode),
            row.join(", ")
        );
    }
    Ok(format!(
        "\n/// For each opcode and column the number of machine instructions; the largest number means none.\n\
         pub(super) static COUNTS: [[u16; COLUMNS]; 256] = {{\n    let mut counts = [[u16::MAX; COLUMNS]; 256];\n{rows}    counts\n}};\n"
    ))
}

/// Generates the list of the records of a class with their summaries, in td's order.
fn legend(parsed: &Parsed, class: &str) -> Result<String, Diagnostic> {
    let mut all = parsed.records.defs_derived_from(class);
    // The `GenericEnum` with the name of the class is not a member.
    all.retain(|record| !record.is_a("GenericEnum"));
    all.sort_by_key(Record::index);
    let mut out = format!(
        "\n/// Every `{class}` with its meaning, in td's order.\n\
         pub(super) static {}S: [({class}, &str); {}] = [\n",
        crate::rust_names::upper(class),
        all.len()
    );
    for record in all {
        let _ = writeln!(
            out,
            "    ({class}::{}, {:?}),",
            record.name(),
            record.string("Summary")?
        );
    }
    out.push_str("];\n");
    Ok(out)
}

/// Generates functions for the value type of each CLIF type and for the register file that holds
/// it.
fn held_types(parsed: &Parsed) -> Result<String, Diagnostic> {
    let mut values = String::new();
    for ty in parsed.records.defs_derived_from("ValueType") {
        let name = ty.string("IsleName")?;
        if !name.is_empty() {
            let _ = writeln!(
                values,
                "        types::{name} => ValueType::{},",
                value_variant(ty.name())
            );
        }
    }
    let mut files = String::new();
    for class in parsed.records.defs_derived_from("RegisterClass") {
        let names: Result<Vec<&str>, _> = class
            .list_of_defs("RegTypes")?
            .iter()
            .map(|ty| ty.string("IsleName"))
            .collect();
        let names: Vec<String> = names?.into_iter().map(|name| format!("types::{name}")).collect();
        let _ = writeln!(
            files,
            "        {} => RegFile::{:?},",
            names.join(" | "),
            file_of(class)?
        );
    }
    let sets = type_sets(parsed)?;
    Ok(format!(
        "\n/// The value type of td for a type.\n\
         pub(crate) const fn value_type(ty: Type) -> Option<ValueType> {{\n    \
             Some(match ty {{\n{values}        _ => return None,\n    }})\n}}\n\n\
         /// The registers that hold values of the type, each in one of them.\n\
         pub(crate) const fn register_file(ty: Type) -> Option<RegFile> {{\n    \
             Some(match ty {{\n{files}        _ => return None,\n    }})\n}}\n\n\
         /// The `TypeSet` records that rules use, by the names of their extractors.\n\
         pub(crate) mod type_sets {{\n    use cranelift_codegen::ir::{{Type, types}};\n{sets}}}\n",
    ))
}

/// Generates a membership function for each `TypeSet` with an extractor.
fn type_sets(parsed: &Parsed) -> Result<String, Diagnostic> {
    let mut out = String::new();
    for set in parsed.records.defs_derived_from("TypeSet") {
        let extractor = set.string("Extractor")?;
        if extractor.is_empty() {
            continue;
        }
        let mut names = Vec::new();
        for ty in set.list_of_defs("Types")? {
            names.push(format!("types::{}", ty.string("IsleName")?));
        }
        let _ = write!(
            out,
            "\n    /// Whether `{}` has a type.\n    \
             pub(crate) const fn {extractor}(ty: Type) -> bool {{\n        matches!(ty, {})\n    }}\n",
            set.name(),
            names.join(" | ")
        );
    }
    Ok(out)
}

fn text(columns: &[Record<'_>], unsupported: &str, cells: &Cells) -> Result<String, Diagnostic> {
    let mut out = String::from("// Made from the OperationAction records by tdgen.\n\n");
    let mut types = Vec::new();
    let mut arms = String::new();
    let mut rest = 0;
    for (at, column) in columns.iter().enumerate() {
        let ty = match column.name() {
            OTHER => {
                rest = at;
                continue;
            }
            UNTYPED => "types::INVALID".to_owned(),
            _ => format!("types::{}", column.string("IsleName")?),
        };
        let _ = writeln!(arms, "        {ty} => {at},");
        types.push(ty);
    }
    let _ = write!(
        out,
        "/// The number of columns of the table.\n\
         pub(super) const COLUMNS: usize = {};\n\n\
         /// The column of types without a separate column.\n\
         pub(super) const OTHER: usize = {rest};\n\n\
         /// The types with a separate column.\n\
         pub(super) static TYPES: [Type; {}] = [{}];\n\n\
         /// The column of a type.\n\
         pub(super) const fn column(ty: Type) -> usize {{\n    match ty {{\n{arms}        _ => OTHER,\n    }}\n}}\n\n\
         /// Values of types without a column.\n\
         pub(super) static UNSUPPORTED: Rule = {unsupported};\n\n",
        columns.len(),
        types.len(),
        types.join(", "),
    );
    let mut numbers: HashMap<&str, usize> = HashMap::from([("", 0), ("UNSUPPORTED", 1)]);
    let mut lists = vec![String::new(), unsupported.to_owned()];
    let mut rows = String::new();
    for (opcode, row) in cells {
        let row: Vec<String> = row
            .iter()
            .map(|text| {
                let number = *numbers.entry(text).or_insert_with(|| {
                    lists.push(text.clone());
                    lists.len() - 1
                });
                number.to_string()
            })
            .collect();
        let _ = writeln!(
            rows,
            "    cells[Opcode::{} as usize] = [{}];",
            variant(opcode),
            row.join(", ")
        );
    }
    let _ = writeln!(
        out,
        "/// The different cells.\npub(super) static RULES: [&[Rule]; {}] = [",
        lists.len()
    );
    for list in &lists {
        let _ = writeln!(out, "    &[{list}],");
    }
    let _ = write!(
        out,
        "];\n\n/// For each opcode and column the index of its rules.\n\
         pub(super) static CELLS: [[u8; COLUMNS]; 256] = {{\n    let mut cells = [[0; COLUMNS]; 256];\n{rows}    cells\n}};\n",
    );
    Ok(out)
}
