//! Generates constructors: `(ADDSSS_32 a b)` emits one machine instruction.
//!
//! The shape of an instruction names its emitter. It consists of the letters of the outputs, an
//! underscore, and the letters of the inputs. Letters are td's `Shape` fields: `s` scalar register,
//! `v` vector register, `i` 9-bit immediate, `w` 16-bit immediate, `m` address. The old value of a
//! tied destination is `t` and always first.
//!
//! A masked instruction takes its mask as the first operand, letter `k`. It is emitted as one unit
//! with the writes of the mask register.
//!
//! Some instructions have no constructor: instructions that change control flow or have side
//! effects, loads under a mask, other names of the same bits, instructions with symbol operands,
//! and instructions that the hardware does not implement.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;

use tablegen::{Diagnostic, Record, RecordKeeper};

use super::fault;
use super::operand::{OperandKind, letter, operand_record, operands};

/// A fault of td.
pub(super) type Fault = Box<Diagnostic>;

/// An input of an instruction in td's order.
pub(super) struct Input<'a> {
    pub name: String,
    pub kind: OperandKind<'a>,
    /// Whether it is the old value of the destination.
    pub tied: bool,
}

/// An instruction as an ISLE term: a machine instruction, a pseudo-instruction, or several
/// instructions under one name.
pub(super) struct Constructor<'a> {
    pub record: Record<'a>,
    /// The name of the ISLE term.
    pub term: &'a str,
    /// The result; `None` for an instruction without one.
    pub output: Option<OperandKind<'a>>,
    pub inputs: Vec<Input<'a>>,
}

impl<'a> Constructor<'a> {
    /// Returns the inputs in the order of the ISLE term: the tied one first.
    pub fn term_order(&self) -> impl Iterator<Item = (usize, &Input<'a>)> {
        let tied = self.inputs.iter().enumerate().filter(|(_, i)| i.tied);
        let others = self.inputs.iter().enumerate().filter(|(_, i)| !i.tied);
        tied.chain(others)
    }

    fn emitter(&self) -> String {
        let mut name = String::from("emit_");
        name.extend(self.output.iter().map(|kind| kind.letter));
        name.push('_');
        name.extend(
            self.term_order()
                .map(|(_, input)| if input.tied { 't' } else { input.kind.letter }),
        );
        name
    }

    fn result_type(&self) -> &'a str {
        self.output.map_or("Unit", |kind| kind.isle_type)
    }

    /// Returns `(decl NAME (INPUTS) RESULT)`.
    fn declaration(&self) -> String {
        let types: Vec<_> = self.term_order().map(|(_, input)| input.kind.isle_type).collect();
        let refuses = self.record.is_a("PseudoInst") && self.record.bit("mayRefuse").unwrap_or(false);
        format!(
            "(decl {}{} ({}) {})",
            if refuses { "partial " } else { "" },
            self.term,
            types.join(" "),
            self.result_type()
        )
    }
}

/// All instructions.
pub(super) struct Constructors<'a> {
    opcodes: Vec<Record<'a>>,
    list: Vec<Constructor<'a>>,
    by_name: HashMap<&'a str, usize>,
}

impl<'a> Constructors<'a> {
    /// Collects the constructors of all instruction records; adds faults to the list.
    pub fn collect(records: &'a RecordKeeper, faults: &mut Vec<Diagnostic>) -> Self {
        let mut all = Constructors {
            opcodes: records.defs_derived_from("Instruction"),
            list: Vec::new(),
            by_name: HashMap::new(),
        };
        let masks = records.defs_derived_from("MaskOperand");
        let mut found: Vec<_> = all.opcodes.iter().map(|record| constructor(*record, &masks)).collect();
        for class in ["PseudoInst", "OutPatFrag", "TargetNode"] {
            found.extend(
                records
                    .defs_derived_from(class)
                    .into_iter()
                    .map(|r| pseudo(r).map(Some)),
            );
        }
        for constructor in found {
            match constructor {
                Ok(Some(constructor)) => {
                    all.by_name.insert(constructor.record.name(), all.list.len());
                    all.list.push(constructor);
                }
                Ok(None) => {}
                Err(fault) => faults.push(*fault),
            }
        }
        all
    }

    pub fn get(&self, name: &str) -> Option<&Constructor<'a>> {
        self.by_name.get(name).and_then(|index| self.list.get(*index))
    }

    /// Returns the constructors of machine instructions.
    fn machine(&self) -> impl Iterator<Item = &Constructor<'a>> {
        self.list.iter().filter(|c| c.record.is_a("Instruction"))
    }

    /// Returns the constructors of records of this class.
    pub fn of_class(&self, class: &'static str) -> impl Iterator<Item = &Constructor<'a>> {
        self.list.iter().filter(move |c| c.record.is_a(class))
    }

    /// Writes the opcode enum, the emitters, and the constructors.
    pub fn write(&self, out: &mut String) {
        out.push_str(";;;; Opcodes ;;;;\n\n(type Op extern (enum\n");
        for record in &self.opcodes {
            let _ = writeln!(out, "  {}", record.name());
        }
        out.push_str("))\n\n;;;; Emitters: one per shape, defined by the compiler ;;;;\n\n");
        let mut emitters = BTreeMap::new();
        for constructor in self.machine() {
            let types: Vec<_> = constructor
                .term_order()
                .map(|(_, input)| input.kind.isle_type)
                .collect();
            emitters.insert(constructor.emitter(), (types, constructor.result_type()));
        }
        for (name, (types, result)) in &emitters {
            let mut arguments = vec!["Op"];
            arguments.extend(types);
            let _ = writeln!(out, "(decl {name} ({}) {result})", arguments.join(" "));
            let _ = writeln!(out, "(extern constructor {name} {name})");
        }
        out.push_str("\n;;;; One constructor per instruction ;;;;\n\n");
        for constructor in self.machine() {
            let name = constructor.term;
            let arguments: String = (0..constructor.inputs.len()).map(|i| format!(" x{i}")).collect();
            let _ = writeln!(out, "{}", constructor.declaration());
            let _ = writeln!(
                out,
                "(rule ({name}{arguments}) ({} (Op.{name}){arguments}))",
                constructor.emitter()
            );
        }
        out.push_str("\n;;;; Pseudo-instructions, defined by the compiler ;;;;\n\n");
        for constructor in self.of_class("PseudoInst") {
            let _ = writeln!(out, "{}", constructor.declaration());
            let _ = writeln!(out, "(extern constructor {0} {0})", constructor.term);
        }
        out.push_str("\n;;;; Several instructions under one name ;;;;\n\n");
        for constructor in self.of_class("OutPatFrag") {
            let _ = writeln!(out, "{}", constructor.declaration());
        }
        out.push_str("\n;;;; Target nodes: their patterns define their instructions ;;;;\n\n");
        for constructor in self.of_class("TargetNode") {
            let _ = writeln!(out, "{}", constructor.declaration());
        }
        out.push('\n');
    }
}

fn constructor<'a>(record: Record<'a>, masks: &[Record<'a>]) -> Result<Option<Constructor<'a>>, Fault> {
    let masked = flag(record, "isMasked")?;
    for name in ["isBranch", "isCall", "isReturn", "isTerminator", "hasSideEffects"] {
        if flag(record, name)? {
            return Ok(None);
        }
    }
    // Skips another name of the same bits, unless the name stands for the masked meaning.
    if !masked && (flag(record, "isAsmParserOnly")? || flag(record, "isCodeGenOnly")?) {
        return Ok(None);
    }
    // The compiler has no masked loads.
    if masked && flag(record, "mayLoad")? {
        return Ok(None);
    }
    if !works(record)? {
        return Ok(None);
    }
    let tied = tied_input(record)?;
    let mut output = None;
    for (index, (kind, _)) in operands(record, "OutOperandList")?.into_iter().enumerate() {
        if index > 0 || kind.is_none() {
            return Ok(None);
        }
        output = kind;
    }
    let mut inputs = Vec::new();
    if masked {
        let Some(kind) = mask_operand(record, masks)? else {
            return Ok(None);
        };
        inputs.push(Input {
            tied: false,
            kind,
            name: "mask".to_owned(),
        });
    }
    for (kind, name) in operands(record, "InOperandList")? {
        let Some(kind) = kind else {
            return Ok(None);
        };
        inputs.push(Input {
            tied: tied.as_deref() == Some(name.as_str()),
            kind,
            name,
        });
    }
    // `nop` needs no constructor.
    if output.is_none() && inputs.is_empty() {
        return Ok(None);
    }
    if let Some(name) = &tied
        && !inputs.iter().any(|input| input.tied)
    {
        return Err(fault(
            record.span(),
            format!(
                "`Constraints` names `${name}`, which is not an input of `{}`",
                record.name()
            ),
        ));
    }
    let term = record.name();
    Ok(Some(Constructor {
        record,
        term,
        output,
        inputs,
    }))
}

/// Returns whether the flag is set; false if the record has no such flag.
fn flag(record: Record<'_>, name: &str) -> Result<bool, Fault> {
    Ok(record.field(name).is_some() && record.bit(name).map_err(access)?)
}

/// Returns the mask operand of an instruction: the operand for the mask register that the
/// instruction uses.
fn mask_operand<'a>(record: Record<'a>, masks: &[Record<'a>]) -> Result<Option<OperandKind<'a>>, Fault> {
    let uses = record.list_of_defs("Uses").map_err(access)?;
    for mask in masks {
        let register = mask.def_field("Mask").map_err(access)?;
        if uses.iter().any(|used| used.name() == register.name()) {
            return OperandKind::of(*mask);
        }
    }
    Ok(None)
}

/// Reads a pseudo-instruction, a result fragment, or a target node.
fn pseudo(record: Record<'_>) -> Result<Constructor<'_>, Fault> {
    let unknown = || {
        fault(
            record.span(),
            format!("an operand of `{}` has no ISLE type", record.name()),
        )
    };
    let mut outputs = operands(record, "OutOperandList")?.into_iter();
    let output = match outputs.next() {
        Some((kind, _)) => Some(kind.ok_or_else(unknown)?),
        None => None,
    };
    if outputs.next().is_some() {
        return Err(fault(
            record.span(),
            format!("`{}` has more than one result", record.name()),
        ));
    }
    let mut inputs = Vec::new();
    for (kind, name) in operands(record, "InOperandList")? {
        inputs.push(Input {
            name,
            kind: kind.ok_or_else(unknown)?,
            tied: false,
        });
    }
    // A target node has the name of its record.
    let term = match record.field("IsleName") {
        Some(_) => record.string("IsleName").map_err(access)?,
        None => record.name(),
    };
    Ok(Constructor {
        record,
        term,
        output,
        inputs,
    })
}

/// Returns whether the hardware implements the instruction usefully. An instruction without a
/// hardware operation counts as implemented.
fn works(record: Record<'_>) -> Result<bool, Fault> {
    if record.field("Op").is_none() {
        return Ok(true);
    }
    let Some(op) = record.opt_def("Op").map_err(access)? else {
        return Ok(true);
    };
    let scratchpad = record.field("isScratchpad").is_some() && record.bit("isScratchpad").map_err(access)?;
    let field = if scratchpad { "ScratchpadStatus" } else { "Status" };
    let status = op.def_field(field).map_err(access)?;
    let name = status.string("Name").map_err(access)?;
    // A scatter stores one scalar sixteen times, so its vector operand is useless.
    let gather = operand_letters(record)?.contains(&'g');
    Ok(!gather && !matches!(name, "no" | "hang"))
}

fn operand_letters(record: Record<'_>) -> Result<Vec<char>, Fault> {
    let mut letters = Vec::new();
    for list in ["OutOperandList", "InOperandList"] {
        for (value, _) in record.dag(list).map_err(access)?.args() {
            if let Some(operand) = operand_record(value.kind()) {
                letters.push(letter(operand)?);
            }
        }
    }
    Ok(letters)
}

/// Returns the input that `Constraints` ties to the output.
fn tied_input(record: Record<'_>) -> Result<Option<String>, Fault> {
    let text = record.string("Constraints").map_err(access)?;
    if text.is_empty() {
        return Ok(None);
    }
    let tied = text
        .split_once('=')
        .and_then(|(_, input)| input.trim().strip_prefix('$'));
    match tied {
        Some(name) => Ok(Some(name.to_owned())),
        None => Err(fault(
            record.span(),
            format!(
                "`Constraints` of `{}` is not of the form `$output = $input`",
                record.name()
            ),
        )),
    }
}

/// Converts an error of a typed accessor to a fault.
pub(super) fn access(error: tablegen::AccessError) -> Fault {
    Box::new(Diagnostic::from(error))
}
