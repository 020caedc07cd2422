//! Round trips of encoder and decoder on random and near-valid words.

use crate::common::{Random, assemble};
use npu_mc::asm::Options;
use npu_mc::disasm::word_text;
use npu_mc::inst::OperandRange;
use npu_mc::{EncodeError, Inst, InstDesc, Opcode, Operand, Operands, Reg, RegFile, SReg, decode, encode};

const WORDS: usize = 1_000_000;

/// Returns the expected `encode(decode(word))`: the word with its ignored bits in canonical form.
fn canonical(word: u32, desc: &InstDesc) -> u32 {
    let kept = word & !desc.ignored;
    // J format: the bits above the 18 significant ones repeat the sign.
    let sign_fill = if desc
        .operands
        .iter()
        .any(|o| matches!(o.kind.range(), OperandRange::Immediate { bits: 18, .. }))
        && desc.ignored != 0
        && word & (1 << 17) != 0
    {
        desc.ignored
    } else {
        desc.base & desc.ignored
    };
    kept | sign_fill
}

fn check(word: u32) -> bool {
    let Ok(inst) = decode(word) else { return false };
    let desc = inst.desc();
    assert_eq!(word & desc.fixed, desc.base & desc.fixed, "{word:08x} {inst}");
    let again = encode(&inst).unwrap_or_else(|e| panic!("{word:08x} `{inst}`: {e}"));
    assert_eq!(again, canonical(word, desc), "{word:08x} `{inst}`");
    assert_eq!(decode(again), Ok(inst), "{word:08x} `{inst}`");
    true
}

#[test]
fn a_million_random_words() {
    let mut random = Random::new(1);
    let valid = (0..WORDS).filter(|_| check(random.word())).count();
    println!("{valid} of {WORDS} words are instructions");
    assert!(valid > WORDS / 100);
}

#[test]
fn a_million_near_valid_words() {
    let mut random = Random::new(2);
    let mut valid = 0;
    for i in 0..WORDS {
        let desc = Opcode::ALL[i % Opcode::ALL.len()].desc();
        let mut word = desc.base | random.word() & !desc.fixed;
        // Flip up to two bits anywhere.
        for _ in 0..random.below(3) {
            word ^= 1 << random.below(32);
        }
        valid += usize::from(check(word));
    }
    println!("{valid} of {WORDS} words are instructions");
    assert!(valid > WORDS / 4);
}

#[test]
fn the_decoder_tree_accepts_exactly_the_templates() {
    let mut random = Random::new(3);
    for i in 0..100_000 {
        let desc = Opcode::ALL[i % Opcode::ALL.len()].desc();
        let word = desc.base | random.word() & !desc.fixed;
        let word = word ^ u32::from(random.below(2) == 0) << random.below(32);
        let matching: Vec<Opcode> = Opcode::ALL
            .iter()
            .copied()
            .filter(|op| op.desc().decodable && (word ^ op.desc().base) & op.desc().fixed == 0)
            .collect();
        match decode(word) {
            Ok(inst) => assert_eq!(matching, [inst.opcode], "{word:08x}"),
            Err(_) => assert_eq!(matching, [], "{word:08x}"),
        }
    }
}

#[test]
fn a_million_words_print_as_text_that_assembles_back() {
    let mut random = Random::new(4);
    let mut valid = 0;
    while valid < WORDS {
        // Most random words are no instruction, so the templates of all opcodes are used in turn.
        let desc = Opcode::ALL[valid % Opcode::ALL.len()].desc();
        let word = desc.base | random.word() & !desc.fixed;
        let inst = decode(word).unwrap_or_else(|e| panic!("{e}"));
        valid += 1;
        let text = inst.to_string();
        let again = assemble(&text).unwrap_or_else(|e| panic!("{text}: {e}"));
        assert_eq!(encode(&again), Ok(canonical(word, inst.desc())), "{text}");
    }
}

#[test]
fn random_words_are_text_that_assembles_to_the_same_word() {
    let mut random = Random::new(5);
    let options = Options::default();
    for _ in 0..100 {
        let words: Vec<u32> = (0..1000).map(|_| random.word()).collect();
        let source: String = words.iter().map(|&word| word_text(word) + "\n").collect();
        let object = npu_mc::asm::assemble(&source, &options).unwrap();
        let bytes = object.sections[0].bytes_at(0).chunks(4);
        let again: Vec<u32> = bytes.map(|b| u32::from_le_bytes(b.try_into().unwrap())).collect();
        assert_eq!(again, words);
    }
}

#[test]
fn operands_at_their_limits_print_and_assemble_back() {
    let mut checked = 0;
    for &opcode in Opcode::ALL {
        let desc = opcode.desc();
        let choices: Vec<Vec<Operand>> = desc
            .operands
            .iter()
            .map(|o| match o.kind.range() {
                OperandRange::Register(file) => {
                    let last = Reg::new(file, 63).unwrap();
                    [0, 1, 58, 59, 62]
                        .map(|n| Reg::new(file, n).unwrap())
                        .into_iter()
                        .chain([last])
                        .map(Operand::from)
                        .collect()
                }
                OperandRange::Immediate { min, max, .. } => {
                    [min, min + 1, -1, 0, 1, max - 1, max].map(Operand::Imm).to_vec()
                }
            })
            .collect();
        let count: usize = choices.iter().map(Vec::len).product();
        for mut number in 0..count {
            let mut operands = Operands::new();
            for list in &choices {
                operands.push(list[number % list.len()]);
                number /= list.len();
            }
            let inst = Inst { opcode, operands };
            let word = encode(&inst).unwrap();
            let text = inst.to_string();
            let again = assemble(&text).unwrap_or_else(|e| panic!("{text}: {e}"));
            assert_eq!(encode(&again), Ok(word), "{text}");
            // The assembler may choose another opcode only if several td records share the
            // encoding.
            assert!(
                again == inst || !desc.decodable || !again.desc().decodable,
                "{text}: {again:?}"
            );
            checked += 1;
        }
    }
    println!("{checked} instructions");
}

/// Returns an instruction of the opcode with the smallest operands.
fn smallest(opcode: Opcode) -> Inst {
    let mut operands = Operands::new();
    for o in opcode.desc().operands {
        assert!(operands.push(match o.kind.range() {
            OperandRange::Register(file) => Operand::from(Reg::new(file, 0).unwrap()),
            OperandRange::Immediate { min, .. } => Operand::Imm(min),
        }));
    }
    Inst { opcode, operands }
}

#[test]
fn every_operand_is_checked() {
    for &opcode in Opcode::ALL {
        let good = smallest(opcode);
        assert!(encode(&good).is_ok(), "{opcode}");
        let list: Vec<Operand> = good.operands.to_vec();
        let with = |list: &[Operand]| Inst {
            opcode,
            operands: Operands::from_slice(list).unwrap(),
        };
        if let Some((_, short)) = list.split_last() {
            let error = encode(&with(short)).unwrap_err();
            assert!(matches!(error, EncodeError::Count { .. }), "{error}");
        }
        if let Some(long) = Operands::from_slice(&[&list[..], &[Operand::Imm(0)]].concat()) {
            let error = encode(&Inst { opcode, operands: long }).unwrap_err();
            assert!(matches!(error, EncodeError::Count { .. }), "{error}");
        }
        for (i, o) in opcode.desc().operands.iter().enumerate() {
            let replaced = |operand: Operand| {
                let mut list = list.clone();
                list[i] = operand;
                encode(&with(&list)).unwrap_err()
            };
            match o.kind.range() {
                OperandRange::Register(file) => {
                    let other = match file {
                        RegFile::Scalar => RegFile::Vector,
                        RegFile::Vector => RegFile::Scalar,
                    };
                    let error = replaced(Operand::from(Reg::new(other, 0).unwrap()));
                    assert!(matches!(error, EncodeError::Kind { index, .. } if index == i));
                    let error = replaced(Operand::Imm(0));
                    assert!(matches!(error, EncodeError::Kind { index, .. } if index == i));
                }
                OperandRange::Immediate { min, max, .. } => {
                    for value in [min - 1, max + 1, i32::MIN, i32::MAX] {
                        let error = replaced(Operand::Imm(value));
                        assert!(
                            matches!(error, EncodeError::Range { index, .. } if index == i),
                            "{error}"
                        );
                        assert!(error.to_string().contains(&value.to_string()), "{error}");
                    }
                    let error = replaced(Operand::S(SReg::S0));
                    assert!(matches!(error, EncodeError::Kind { .. }));
                }
            }
        }
    }
}
