//! Extracts features of a function without running it: its CLIF, the rules and passes that made its
//! code, and its relocations.
//!
//! A feature is a number: the hash of a fact, with its [`Kind`] in the lowest bits.

use cranelift_codegen::ir::{Function, Inst, Opcode, Type};
use cranelift_naplespu::CompiledCode;
use cranelift_naplespu::explain::{Explained, Reason};
use npu_mc::decode;
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

/// A hash with a [`Kind`] in the lowest bits.
pub type Feature = u64;

/// The subject of a feature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A CLIF instruction with its types and flags.
    Clif,
    /// The magnitude of a number in a CLIF instruction.
    Numbers,
    /// A parameter or result: position, type and calling convention.
    Signature,
    /// The rule or pass that emitted an instruction, with the CLIF operation and the machine
    /// opcode.
    Rule,
    /// A rule that affects the code.
    Decides,
    /// A relocation or a trap.
    Reference,
    /// The frame, and counts of other properties.
    Frame,
    /// A pass with its effect.
    Pass,
    /// A noticed change.
    Change,
    /// The kinds of operands of a machine instruction.
    Operands,
    /// The kind of an argument.
    Argument,
    /// A change of a routine of the runtime.
    Routine,
}

/// The required number of functions or lines with a feature of each kind.
const WANTED: [(Kind, usize); 12] = [
    (Kind::Clif, 1),
    (Kind::Numbers, 1),
    (Kind::Signature, 2),
    (Kind::Rule, 2),
    (Kind::Decides, 2),
    (Kind::Reference, 2),
    (Kind::Frame, 1),
    (Kind::Pass, 1),
    (Kind::Change, 2),
    (Kind::Operands, 2),
    (Kind::Argument, 1),
    (Kind::Routine, 1),
];

/// The bits of a feature that contain its kind.
const KIND: u64 = 15;

/// Returns the feature of a fact.
pub fn feature(kind: Kind, what: impl Hash) -> Feature {
    let mut hasher = DefaultHasher::new();
    what.hash(&mut hasher);
    hasher.finish() & !KIND | kind as u64
}

/// Returns the kind of a feature and its required number of occurrences.
pub fn kind(feature: Feature) -> (Kind, usize) {
    WANTED[(feature & KIND) as usize]
}

/// Returns the magnitude of a number in a text: its sign and width, or the number itself if it is
/// small.
fn class(number: &str) -> String {
    let (sign, digits) = match number.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", number),
    };
    let digits = digits.replace('_', "");
    let value = match digits.strip_prefix("0x") {
        Some(digits) => u128::from_str_radix(digits, 16),
        None => digits.parse(),
    };
    match value {
        Ok(value) if value < 3 => format!("{sign}{value}"),
        Ok(value) => format!("{sign}b{}", 128 - value.leading_zeros()),
        Err(_) => "float".to_owned(),
    }
}

/// Returns a text without the numbers of its entities, and the magnitudes of its other numbers.
fn normal(text: &str) -> (String, Vec<String>) {
    let (mut plain, mut numbers) = (String::new(), Vec::new());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let in_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '%');
        let sign = usize::from(first == '-' && rest[1..].starts_with(|c: char| c.is_ascii_digit()));
        let length = rest[sign..].find(|c| !in_word(c)).unwrap_or(rest.len() - sign) + sign;
        if length == 0 {
            plain.push(first);
            rest = &rest[first.len_utf8()..];
            continue;
        }
        let (word, after) = rest.split_at(length);
        rest = after;
        let letters = word.trim_end_matches(|c: char| c.is_ascii_digit());
        if word.starts_with(|c: char| c.is_ascii_digit() || c == '-') {
            plain.push('#');
            numbers.push(class(word));
        } else if [
            "v", "block", "ss", "fn", "sig", "gv", "jt", "const", "dt", "region", "user",
        ]
        .contains(&letters)
        {
            plain += letters;
        } else {
            plain += word;
        }
    }
    (plain, numbers)
}

/// Returns the opcode and type of an instruction.
pub fn operation(func: &Function, inst: Inst) -> (Opcode, Type) {
    (func.dfg.insts[inst].opcode(), func.dfg.ctrl_typevar(inst))
}

/// Adds the features of the CLIF.
pub fn of_clif(func: &Function, list: &mut Vec<Feature>) {
    let conv = func.signature.call_conv;
    for (way, params) in [("takes", &func.signature.params), ("gives", &func.signature.returns)] {
        for (number, param) in params.iter().enumerate() {
            let extension = format!("{:?} {:?}", param.purpose, param.extension);
            list.push(feature(
                Kind::Signature,
                (way, conv, number, param.value_type, extension),
            ));
        }
    }
    for slot in func.sized_stack_slots.values() {
        list.push(feature(
            Kind::Frame,
            ("slot", class(&slot.size.to_string()), slot.align_shift),
        ));
    }
    for inst in func.layout.blocks().flat_map(|block| func.layout.block_insts(block)) {
        let text = func.dfg.display_inst(inst).to_string();
        let text = text.split_once(" = ").map_or(text.as_str(), |(_, text)| text);
        let (plain, numbers) = normal(text);
        let types: Vec<Type> = func
            .dfg
            .inst_args(inst)
            .iter()
            .map(|&arg| func.dfg.value_type(arg))
            .collect();
        let results: Vec<Type> = func
            .dfg
            .inst_results(inst)
            .iter()
            .map(|&arg| func.dfg.value_type(arg))
            .collect();
        let user = operation(func, inst);
        let opcode = user.0;
        if opcode.is_call() || opcode.is_terminator() {
            // These instructions accept any types. The types are covered by the definitions and by
            // signatures.
            list.push(feature(Kind::Clif, (opcode, types.len().min(8), results.len().min(8))));
        } else {
            list.push(feature(Kind::Clif, ("clif", &plain, &types, &results)));
        }
        for (place, number) in numbers.into_iter().enumerate() {
            list.push(feature(Kind::Numbers, (user, place, number)));
        }
    }
}

/// Returns the origin of an instruction: the rule that emitted it and the rule of `lower` that
/// started it, or the pass that made it.
pub fn reason(explained: &Explained) -> String {
    match &explained.reason {
        Reason::Rules(rules) => {
            let ends = [rules.first(), rules.last()];
            ends.into_iter().flatten().map(|rule| format!("{rule} ")).collect()
        }
        Reason::Producer(producer) => producer.name().to_owned(),
    }
}

/// Counts the first words of the lines in a printed function.
fn mnemonics(text: &str) -> BTreeMap<&str, i32> {
    let mut words = BTreeMap::new();
    for line in text.lines() {
        let line = line.split_once(" = ").map_or(line, |(_, line)| line);
        if let Some(word) = line.split_whitespace().next().filter(|word| !word.ends_with(':')) {
            *words.entry(word).or_default() += 1;
        }
    }
    words
}

/// Adds the features of the code, with the origins of its instructions.
pub fn of_code(target: &str, code: &CompiledCode, func: &Function, insts: &[Explained], list: &mut Vec<Feature>) {
    for (explained, word) in insts.iter().zip(code.bytes.as_chunks::<4>().0) {
        let opcode = decode(u32::from_le_bytes(*word)).map(|inst| inst.opcode.index());
        let operation = explained.inst.map(|inst| operation(func, inst));
        list.push(feature(
            Kind::Rule,
            ("rule", target, reason(explained), operation, opcode.ok()),
        ));
    }
    for reloc in &code.relocs {
        let word = code
            .bytes
            .get(reloc.offset as usize..)
            .and_then(|bytes| bytes.first_chunk());
        let inst = word.and_then(|word| decode(u32::from_le_bytes(*word)).ok());
        let routine = match &reloc.target {
            cranelift_naplespu::code::RelocTarget::Runtime(name) => name,
            _ => "",
        };
        let opcode = inst.map(|inst| inst.opcode.index());
        list.push(feature(
            Kind::Reference,
            (
                "reloc",
                reloc.kind.number(),
                opcode,
                routine,
                class(&reloc.addend.to_string()),
            ),
        ));
    }
    for trap in &code.traps {
        list.push(feature(
            Kind::Reference,
            ("trap", trap.code, trap.inst.map(|inst| operation(func, inst))),
        ));
    }
    let frame = &code.frame;
    let sizes = [
        frame.size,
        frame.incoming_args,
        frame.tail_args,
        frame.popped,
        frame.spills.1,
        frame.outgoing_args,
    ];
    for (number, size) in sizes.into_iter().enumerate() {
        list.push(feature(
            Kind::Frame,
            ("frame", target, number, class(&size.to_string()), frame.frame_pointer),
        ));
    }
    list.push(feature(Kind::Frame, ("saved", target, frame.saved.len())));
    for (kind, count) in [
        ("blocks", code.block_starts.len()),
        ("calls", code.call_sites.len()),
        ("maps", code.stack_maps.len()),
        ("loops", code.loops.len()),
        ("constants", code.bytes.len() - code.pool_start as usize),
    ] {
        list.push(feature(Kind::Frame, ("count", kind, target, count.min(20))));
    }
    for stages in code.stages.windows(2) {
        let [(_, before), (stage, after)] = stages else {
            continue;
        };
        if before == after {
            continue;
        }
        list.push(feature(Kind::Pass, ("pass", target, stage.name())));
        let (mut words, new) = (mnemonics(before), mnemonics(after));
        new.into_iter()
            .for_each(|(word, count)| *words.entry(word).or_default() -= count);
        let changed = words.into_iter().filter(|&(_, count)| count != 0);
        list.extend(
            changed.map(|(word, count)| feature(Kind::Pass, ("changed", target, stage.name(), word, count.signum()))),
        );
    }
}
