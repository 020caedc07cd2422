//! The disassembler: its output, and the round trip through the assembler.

use crate::common::{Random, golden_folder};
use npu_link::{Placement, link};
use npu_mc::asm::{Options, assemble};
use npu_mc::disasm::{Input, Item, Reference, Symbol, disassemble, source};
use npu_mc::reloc::Reloc;
use npu_mc::{Opcode, Reg};

fn program(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|w| w.to_le_bytes()).collect()
}

fn code(text: &str) -> Vec<u8> {
    let object = assemble(text, &Options::default()).unwrap_or_else(|f| panic!("{f:#?}\n{text}"));
    object.sections[0].bytes_at(0).to_vec()
}

fn symbol(name: &str, address: u32, data: bool) -> Symbol {
    Symbol {
        name: name.to_owned(),
        address,
        data,
    }
}

/// Returns the source of the disassembly, after checking that it assembles to the same bytes.
fn round(input: &Input) -> String {
    let rows = disassemble(input);
    let text = source(&rows);
    let object = assemble(&text, &Options::default()).unwrap_or_else(|f| panic!("{f:#?}\n{text}"));
    let linked = link(&object, &Placement::default()).unwrap_or_else(|f| panic!("{f:#?}\n{text}"));
    // All bytes by address. Later segments override earlier ones.
    let mut expected = std::collections::BTreeMap::new();
    for (address, bytes) in &input.segments {
        for (i, &b) in bytes.iter().enumerate() {
            expected.insert(address.wrapping_add(i as u32), b);
        }
    }
    let found = linked
        .image
        .segments
        .iter()
        .flat_map(|s| (s.address..).zip(s.bytes.iter().copied()));
    assert!(found.eq(expected.iter().map(|(&a, &b)| (a, b))), "{text}");
    let shown = rows.iter().flat_map(|r| match &r.item {
        Item::Bytes(bytes, _) => bytes.clone(),
        Item::Gap | Item::Label(_) => Vec::new(),
    });
    assert!(shown.eq(expected.into_values()), "{text}");
    text
}

fn plain(address: u32, bytes: Vec<u8>) -> Input {
    Input {
        segments: vec![(address, bytes)],
        ..Input::default()
    }
}

#[test]
fn branch_targets_have_labels() {
    let bytes = code(
        "beqz s1, x\njmp 4\njmpsr x\njmp 1000\nx: jmp x\njmp -4\nload32 s1, y\naddi s1, pc, 4\ny: addi s1, s1, 1\n.long 0",
    );
    assert_eq!(
        round(&plain(0x400, bytes)),
        "        .org 0x400
        beqz s1, .L00000410
        jmp .L00000408
.L00000408:
        jmpsr .L00000410
        jmp 1000
.L00000410:
        jmp .L00000410
        jmp -4
        load32 s1, .L00000420
        addi s1, pc, 4
.L00000420:
        .long 0x44041008
        .long 0x00000000
"
    );
    // Backward jumps as the assembler encodes them for labels, to addresses without contents.
    assert_eq!(
        round(&plain(0, program(&[0x7803_fffc, 0x780f_fffc]))),
        "        jmp . -4\n        .long 0x780ffffc\n"
    );
}

#[test]
fn symbols_name_places_and_data() {
    let input = Input {
        segments: vec![(0, code("jmpsr f\nf: jmp f\nt: nop\n.zero 16\n.byte 1, 2, 3"))],
        symbols: vec![
            symbol("start", 0, false),
            symbol("s1", 4, false),
            symbol("f", 4, false),
            symbol("f", 8, false),
            symbol("table", 8, true),
            symbol("middle", 29, true),
            symbol("elsewhere", 0x1000, false),
        ],
        references: Vec::new(),
    };
    assert_eq!(
        round(&input),
        "start:
        jmpsr \"s1\"
\"s1\":
f:
        jmp \"s1\"
table:
        .long 0xffffffff
        .zero 16
        .byte 0x01
middle:
        .byte 0x02, 0x03
"
    );
}

#[test]
fn references_are_shown_by_name() {
    let bytes = code("moveih s1, 0\nmoveil s1, 0\njmpsr 0\nload32 s2, (pc)\n.long 0\nbeqz s1, 0");
    let reference = |address, kind, symbol: &str, addend| Reference {
        address,
        kind,
        symbol: symbol.to_owned(),
        addend,
    };
    let input = Input {
        segments: vec![(0, bytes)],
        symbols: vec![symbol("f", 0, false)],
        references: vec![
            reference(0, Reloc::AbsHighLea, "x", 4),
            reference(4, Reloc::AbsLowLea, "x", -4),
            reference(8, Reloc::Branch, "odd name", 0),
            reference(12, Reloc::PcrelMem, "y", 0),
            reference(16, Reloc::Abs32, "f", 1),
            reference(20, Reloc::Branch, "z", 0),
        ],
    };
    let text = source(&disassemble(&input));
    assert_eq!(
        text,
        "f:
        leah s1, x+4
        leal s1, x-4
        jmpsr \"odd name\"
        load32 s2, y
        .long f+1
        beqz s1, z
"
    );
    let object = assemble(&text, &Options::default()).unwrap();
    let kinds: Vec<_> = object
        .relocations
        .iter()
        .map(|r| (r.offset, r.kind, r.addend))
        .collect();
    let expected: Vec<_> = input.references.iter().map(|r| (r.address, r.kind, r.addend)).collect();
    assert_eq!(kinds, expected);
    assert_eq!(object.sections[0].bytes_at(0), input.segments[0].1);
}

#[test]
fn segments_may_overlap_and_stand_anywhere() {
    let input = Input {
        segments: vec![
            (0x402, vec![1, 2, 3, 4, 5, 6, 7]),
            (0x100, program(&[0x7800_0300])),
            (0x404, vec![9, 9]),
            (0x400, vec![8, 8]),
            (0xffff_fff0, vec![7; 8]),
        ],
        ..Input::default()
    };
    assert_eq!(
        round(&input),
        "        .org 0x100
        jmp .L00000400
        .org 0x400
.L00000400:
        .long 0x02010808
        .long 0x06050909
        .byte 0x07
        .org 0xfffffff0
        .long 0x07070707
        .long 0x07070707
"
    );
    let wrapping = disassemble(&plain(0xffff_fffe, vec![1, 2, 3]));
    let at: Vec<u32> = wrapping.iter().map(|r| r.address).collect();
    assert_eq!(at, [0, 0, 0xffff_fffe, 0xffff_fffe]);
}

#[test]
fn random_segments_in_any_order_assemble_back() {
    for seed in 0..300 {
        let mut random = Random::new(seed);
        let segments = (0..1 + random.below(6))
            .map(|_| {
                let address = random.below(64) as u32;
                let bytes = (0..random.below(48)).map(|_| random.word() as u8).collect();
                (address, bytes)
            })
            .collect();
        let symbols = (0..random.below(4))
            .map(|i| symbol(&format!("x{i}"), random.below(100) as u32, random.below(2) == 0))
            .collect();
        round(&Input {
            segments,
            symbols,
            references: Vec::new(),
        });
    }
}

#[test]
fn random_code_assembles_back() {
    let mut random = Random::new(7);
    for _ in 0..100 {
        let words: Vec<u32> = (0..1000)
            .map(|_| {
                let desc = Opcode::ALL[random.below(Opcode::ALL.len())].desc();
                let word = desc.base | random.word() & !desc.fixed;
                // Sometimes a near branch or a `pc`-relative access.
                match random.below(4) {
                    0 => 0x7500_0000 | random.below(0x800) as u32 | (random.word() & 0x3F) << 18,
                    1 => 0x7803_f000 | random.below(0x1000) as u32,
                    2 => 0x8203_f000 | (random.word() & 0x1FF) << 3,
                    _ => word,
                }
            })
            .collect();
        round(&plain(0, program(&words)));
    }
}

#[test]
fn the_golden_programs_assemble_back() {
    let mut count = 0;
    for entry in std::fs::read_dir(golden_folder().join("golden-run")).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let Some((_, rest)) = text.split_once("\nimage:\n") else {
            continue;
        };
        let (image, _) = rest.split_once("\nexpect:").unwrap();
        let mut segments: Vec<(u32, Vec<u8>)> = Vec::new();
        for word in image
            .lines()
            .filter(|l| !l.starts_with('#'))
            .flat_map(str::split_whitespace)
        {
            match word.strip_prefix('@') {
                Some(address) => segments.push((u32::from_str_radix(address, 16).unwrap(), Vec::new())),
                None => {
                    let word = u32::from_str_radix(word, 16).unwrap();
                    segments.last_mut().unwrap().1.extend(word.to_le_bytes());
                }
            }
        }
        assert!(!segments.is_empty(), "{}", path.display());
        let text = round(&Input {
            segments,
            ..Input::default()
        });
        assert!(text.contains("write_cr"), "{}", path.display());
        count += 1;
    }
    assert!(count > 100, "{count}");
}

#[test]
fn every_register_is_no_plain_symbol() {
    for number in 0..64 {
        for reg in [npu_mc::RegFile::Scalar, npu_mc::RegFile::Vector].map(|file| Reg::new(file, number).unwrap()) {
            assert_eq!(npu_mc::asm::symbol_text(reg.name()), format!("\"{reg}\""));
        }
    }
}
