//! What a function shows of the compiler before it runs: its CLIF, the rules and passes that made its code, and what the code asks of a linker.
//!
//! A feature is a number: the hash of what it says, with its [`Kind`] in the lowest bits.

use cranelift_codegen::ir::{Function, Inst, Opcode, Type};
use cranelift_naplespu::CompiledCode;
use cranelift_naplespu::explain::{Explained, Reason};
use npu_mc::decode;
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

/// A hash, with a [`Kind`] in the lowest bits.
pub type Feature = u64;

/// What a feature is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An instruction of CLIF, its types and flags.
    Clif,
    /// The kind of a number in an instruction of CLIF.
    Numbers,
    /// A parameter or result: its place, type and convention.
    Signature,
    /// The rule or maker of an instruction, with its operation and opcode.
    Rule,
    /// A rule without which the code is another.
    Decides,
    /// A reference, or a trap.
    Reference,
    /// The frame, and counts of other things.
    Frame,
    /// A pass that changed something, and what.
    Pass,
    /// A change that is noticed.
    Change,
    /// The kinds of the operands of an instruction of the machine.
    Operands,
    /// The kind of an argument.
    Argument,
    /// A change of a routine of the runtime.
    Routine,
}

/// For each kind how many functions or lines are to have a feature of it.
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

/// Bits of a feature that are its kind.
const KIND: u64 = 15;

/// The feature that something is there.
pub fn feature(kind: Kind, what: impl Hash) -> Feature {
    let mut hasher = DefaultHasher::new();
    what.hash(&mut hasher);
    hasher.finish() & !KIND | kind as u64
}

/// The kind of a feature, and how often it is wanted.
pub fn kind(feature: Feature) -> (Kind, usize) {
    WANTED[(feature & KIND) as usize]
}

/// The kind of a number in a text: its sign and the bits that it takes, or itself if it is small.
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

/// A text without the numbers of its entities, and the kinds of its other numbers.
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

/// What an instruction is: opcode and type.
pub fn operation(func: &Function, inst: Inst) -> (Opcode, Type) {
    (func.dfg.insts[inst].opcode(), func.dfg.ctrl_typevar(inst))
}

/// The features of the CLIF.
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
            // These take anything: what it is shows where it is made, and in signatures.
            list.push(feature(Kind::Clif, (opcode, types.len().min(8), results.len().min(8))));
        } else {
            list.push(feature(Kind::Clif, ("clif", &plain, &types, &results)));
        }
        for (place, number) in numbers.into_iter().enumerate() {
            list.push(feature(Kind::Numbers, (user, place, number)));
        }
    }
}

/// What a reason is: the rule that emitted the instruction and the one of `lower` that asked for it, or who else made it.
pub fn reason(explained: &Explained) -> String {
    match &explained.reason {
        Reason::Rules(rules) => {
            let ends = [rules.first(), rules.last()];
            ends.into_iter().flatten().map(|rule| format!("{rule} ")).collect()
        }
        Reason::Producer(producer) => producer.name().to_owned(),
    }
}

/// The words that begin the lines of a form of the function, each with how often.
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

/// The features of the code, with the reasons for its instructions.
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
