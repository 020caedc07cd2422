//! Compares the encoder, printer and decoder with the recorded output of the old assembler and
//! disassembler.

use crate::common::{assemble, golden, rows};
use npu_mc::{Inst, Opcode, decode, encode};

/// Instructions that the old tools lack: the hardware's own (`docs/machine/memory.md`), and later
/// additions to td.
const NEW: &[&str] = &["DCACHE_INV"];

/// Returns the word that the old assembler emits where it is wrong (`docs/assembler.md`,
/// `docs/machine/formats.md`), from the correct word.
fn old_word(inst: &Inst, word: u32) -> Option<u32> {
    match inst.opcode {
        // The old assembler also writes the register number to the low bits, which are unused.
        Opcode::JUMPREG | Opcode::JMPSR_REG => {
            let register = inst.operands[0].reg().unwrap();
            Some(word | u32::from(register.number()))
        }
        // A negative offset overflows into the base register's field, which becomes all ones.
        Opcode::LOAD_EFFECTIVE_ADDR if inst.operands[2].imm() < Some(0) => Some(word | 0x3F << 12),
        _ => None,
    }
}

/// Returns whether the record is printed as another instruction, because the disassembler chooses
/// only one of those that share the encoding.
fn shown_as_another(opcode: Opcode) -> bool {
    !opcode.desc().decodable
}

#[test]
fn every_assembled_row_has_its_word_and_texts() {
    let text = golden("golden-asm.tsv");
    let rows = rows(&text, "asm");
    assert!(rows.len() > 2000, "{} rows", rows.len());
    let mut faults = Vec::new();
    let mut corrected = 0;
    for row in &rows {
        let [asm, hex, _, record, printed, disasm, _] = row[..] else {
            panic!("{row:?}");
        };
        let golden = u32::from_str_radix(hex, 16).unwrap();
        let inst = match assemble(asm) {
            Ok(inst) => inst,
            Err(e) => {
                faults.push(format!("{asm}: {e}"));
                continue;
            }
        };
        // If several records share an encoding, the assembler chooses the first one in td.
        if inst.opcode.name() != record && Opcode::from_name(record).unwrap().desc().decodable {
            faults.push(format!("{asm}: chosen {}, not {record}", inst.opcode));
        }
        let word = match encode(&inst) {
            Ok(word) => word,
            Err(e) => {
                faults.push(format!("{asm}: {e}"));
                continue;
            }
        };
        let old = old_word(&inst, word);
        corrected += usize::from(old.is_some_and(|old| old != word));
        if golden != old.unwrap_or(word) {
            faults.push(format!("{asm}: {word:08x}, not {golden:08x}"));
        }
        if inst.to_string() != printed {
            faults.push(format!("{asm}: prints `{inst}`, not `{printed}`"));
        }
        let back = decode(golden);
        let shown = back.map_or_else(|_| "<invalid>".to_owned(), |i| i.to_string());
        if shown != disasm {
            faults.push(format!("{asm}: disassembles as `{shown}`, not `{disasm}`"));
        }
        if let Ok(back) = back {
            assert_eq!(back.opcode == inst.opcode, !shown_as_another(inst.opcode), "{asm}");
        }
        // The new disassembly assembles to the same word.
        let again = assemble(&decode(word).unwrap().to_string()).unwrap();
        assert_eq!(encode(&again), Ok(word), "{asm}");
    }
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
    println!("{} rows, in {corrected} of them the old assembler is wrong", rows.len());
    assert!(corrected > 0);
}

#[test]
fn every_disassembled_row_decodes_or_is_refused_alike() {
    let text = golden("golden-dis.tsv");
    let rows = rows(&text, "hex");
    assert!(rows.len() > 2000, "{} rows", rows.len());
    let mut faults = Vec::new();
    for row in &rows {
        let word = u32::from_str_radix(row[0], 16).unwrap();
        if row[1] == "<invalid>" && decode(word).is_ok_and(|inst| NEW.contains(&inst.opcode.name())) {
            // The old disassembler lacks this instruction.
            continue;
        }
        let shown = decode(word).map_or_else(|_| "<invalid>".to_owned(), |i| i.to_string());
        // The old printer shows `ori s0, s0, 0` as `nop`, which assembles to another word
        // (`docs/assembler.md`).
        let expected = match (word, row[1]) {
            (0x4100_0000, "nop") => "ori s0, s0, 0",
            (_, text) => text,
        };
        if shown != expected {
            faults.push(format!("{word:08x}: `{shown}`, not `{expected}`"));
        }
    }
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

#[test]
fn every_record_has_its_template() {
    let text = golden("insts.tsv");
    let mut seen = 0;
    let mut faults = Vec::new();
    for row in rows(&text, "name") {
        let (name, asm, template) = (row[0], row[1], row[4]);
        if template.starts_with('-') {
            assert_eq!(Opcode::from_name(name), None, "{name} has no encoding");
            continue;
        }
        let Some(opcode) = Opcode::from_name(name) else {
            faults.push(format!("{name} is missing"));
            continue;
        };
        seen += 1;
        let desc = opcode.desc();
        if desc.asm.replace('\t', " ") != asm {
            faults.push(format!("{name}: text `{}`, not `{asm}`", desc.asm));
        }
        let expected = expected_bits(name, template);
        let found = (desc.base & desc.fixed, desc.fixed);
        if found != expected {
            faults.push(format!("{name}: {}, not {template}", desc.template()));
        }
        faults.extend(fields_differ(name, template, &desc.template()));
        let masked = row[5] == "1" || name.ends_with("_M_32") && name.starts_with("MOVE");
        if desc.masked != masked {
            faults.push(format!("{name}: masked is {}", desc.masked));
        }
    }
    let table = rows(&text, "name");
    let others: Vec<&str> = Opcode::ALL
        .iter()
        .map(|op| op.name())
        .filter(|name| !table.iter().any(|row| row[0] == *name))
        .collect();
    assert_eq!(others, NEW, "instructions that the table does not have");
    assert_eq!(seen, 282);
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

/// Returns the constant bits and their mask.
fn expected_bits(name: &str, template: &str) -> (u32, u32) {
    let mut base = 0;
    let mut fixed = 0;
    for (i, c) in template.bytes().enumerate() {
        let bit = 1 << (31 - i);
        match c {
            b'0' => fixed |= bit,
            b'1' => {
                fixed |= bit;
                base |= bit;
            }
            _ => {}
        }
    }
    if name == "LOAD_EFFECTIVE_ADDR" {
        // The table has one 16-bit field for base, offset and bit 2; for this reason negative
        // offsets overwrite the base in the old assembler. Bit 2 of the I format is 0 for a scalar
        // destination.
        fixed |= 1 << 2;
    }
    (base, fixed)
}

/// Compares the fields bit by bit: each letter of the recorded template has to be one operand in
/// td. Returns the difference.
fn fields_differ(name: &str, golden: &str, ours: &str) -> Option<String> {
    // The template of `_lea` merges base and offset. Register jumps show an offset that they do not
    // have.
    if matches!(name, "LOAD_EFFECTIVE_ADDR" | "JUMPREG" | "JMPSR_REG") {
        return None;
    }
    let is_field = |c: &char| c.is_ascii_alphabetic();
    let pairs: Vec<(char, char)> = golden.chars().zip(ours.chars()).collect();
    let differ = pairs
        .iter()
        .any(|(g, o)| is_field(g) != is_field(o) || is_field(g) && pairs.iter().any(|(g2, o2)| (g == g2) != (o == o2)));
    differ.then(|| format!("{name}: fields {ours}, not {golden}"))
}

#[test]
fn the_instruction_that_old_tools_show_as_nop_is_not_nop() {
    let inst: Inst = decode(0x4100_0000).unwrap();
    assert_eq!(inst.to_string(), "ori s0, s0, 0");
    assert_eq!(decode(0xFFFF_FFFF).unwrap().opcode, Opcode::NOP);
}
