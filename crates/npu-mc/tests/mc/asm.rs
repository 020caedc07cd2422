//! The assembler on valid sources: bytes, symbols, relocations, addresses.

use npu_link::{Placement, link, listing, show_encoding, symbol_map};
use npu_mc::asm::{Binding, Object, Options, SymbolKind, SymbolValue, Target, assemble, symbol_text};
use npu_mc::machine::SCRATCHPAD_SIZE;
use npu_mc::reloc::Reloc;
use npu_mc::{Opcode, decode};

fn object(source: &str) -> Object {
    assemble(source, &Options::default()).unwrap_or_else(|faults| panic!("{source}\n{faults:#?}"))
}

/// Returns the contents of the first section.
fn bytes(source: &str) -> Vec<u8> {
    object(source).sections[0].bytes_at(0).to_vec()
}

fn words(source: &str) -> Vec<u32> {
    let bytes = bytes(source);
    assert_eq!(bytes.len() % 4, 0, "{source}");
    bytes
        .chunks(4)
        .map(|b| u32::from_le_bytes(b.try_into().unwrap()))
        .collect()
}

/// Returns the disassembly of the first section.
fn texts(source: &str) -> Vec<String> {
    words(source)
        .into_iter()
        .map(|w| decode(w).unwrap().to_string())
        .collect()
}

fn image(source: &str, placement: &Placement) -> Vec<(u32, Vec<u8>)> {
    let placed = link(&object(source), placement).unwrap_or_else(|faults| panic!("{source}\n{faults:#?}"));
    placed
        .image
        .segments
        .into_iter()
        .map(|s| (s.address, s.bytes))
        .collect()
}

#[test]
fn mnemonics_have_any_case_and_statements_any_shape() {
    let expected = ["addi s0, s1, -4", "nop", "load32 s2, (s3)", "load32 s2, 8(s3)"];
    assert_eq!(
        texts("  ADDI s0 ,s1,-4;Nop # x\n\n load32 s2,(s3)// y\n/* z */load32 s2, 4 + 4 ( s3 )"),
        expected
    );
    assert_eq!(
        texts("addi s0, s1, -4; nop; load32 s2, 0(s3)\nload32 s2, (4+4)(s3)\r\n"),
        expected
    );
    assert_eq!(words(""), []);
}

#[test]
fn branches_count_from_themselves() {
    let source =
        "f: beqz s1, g\njmp f\ng: jmpsr f\n1: bnez s2, 1b\njmp 1f\n1: jmp 1b\njmp .\njmp . - 4\njmp g + 4\njmp 8";
    assert_eq!(
        texts(source),
        [
            "beqz s1, 8",
            "jmp -4",
            "jmpsr -8",
            "bnez s2, 0",
            "jmp 4",
            "jmp 0",
            "jmp 0",
            "jmp -4",
            "jmp -20",
            "jmp 8"
        ]
    );
    // For a backward jump, the bits above the significant ones are those that the relocation
    // writes.
    assert_eq!(words("f: nop\njmp f")[1], 0x7803_fffc);
    // Global symbols in the same section are resolved as well.
    assert_eq!(texts(".globl f\njmp f\nf:")[0], "jmp 4");
}

#[test]
fn branches_reach_as_far_as_they_can_and_no_farther() {
    let reach = |padding: u32| format!("jmp f\n.zero {padding}\nf: nop\n");
    assert_eq!(decode(words(&reach(131_064))[0]).unwrap().to_string(), "jmp 131068");
    let faults = assemble(&reach(131_068), &Options::default()).unwrap_err();
    assert_eq!(faults[0].message, "the label is 131072 bytes away");
    assert_eq!(faults[0].span, 4..5);
    let back = |padding: u32| format!("f: .zero {padding}\nbnez s1, f\n");
    assert!(words(&back(131_072)).len() > 1);
    assert!(assemble(&back(131_076), &Options::default()).is_err());
}

#[test]
fn labels_stand_for_pc_relative_memory_operands() {
    let source = "load32 s1, x\n_lea s2, x\nstore32 s1, x - 4\nx: .long 7";
    let words = words(source);
    let text: Vec<String> = words[..3].iter().map(|&w| decode(w).unwrap().to_string()).collect();
    assert_eq!(text, ["load32 s1, 12(pc)", "addi s2, pc, 8", "store32 s1, (pc)"]);
    assert!(assemble("load32 s1, x\n.zero 256\nx:", &Options::default()).is_err());
    assert!(assemble("load32 s1, x\n.zero 248\nx:", &Options::default()).is_ok());
}

#[test]
fn numbers_may_be_distances_and_assigned_symbols() {
    let source = ".set N, 3\nmovei s0, N\naddi s1, s1, (b - a) / 4\na: nop; nop\nb: .set N, N + 1\nmovei s0, N\nmovei s0, M\nM = 9";
    let text = texts(source);
    assert_eq!(text[0], "movei s0, 3");
    assert_eq!(text[1], "addi s1, s1, 2");
    assert_eq!(text[4..], ["movei s0, 4", "movei s0, 9"]);
}

#[test]
fn expressions_have_the_precedences_of_the_gnu_assembler() {
    for (text, value) in [
        ("1 + 2 * 3", 7),
        ("(1 + 2) * 3", 9),
        ("1 << 2 + 1", 5),
        ("7 & 3 + 1", 4),
        ("10 - 3 - 2", 5),
        ("-7 / 2", -3),
        ("-7 % 4", -3),
        ("~0", -1),
        ("!5", 0),
        ("!0 + - -1", 2),
        ("3 == 3", -1),
        ("3 < 2", 0),
        ("2 && 0 || 1", 1),
        ("'a' - 0x60", 1),
        ("6 ^ 3 | 8", 13),
        ("1 <> 2", -1),
    ] {
        assert_eq!(words(&format!(".long {text}")), [value as u32], "{text}");
    }
    assert_eq!(
        bytes(".quad -1 >> 60, 0xffffffffffffffff"),
        [15, 0, 0, 0, 0, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255]
    );
}

#[test]
fn data_is_little_endian_and_in_order() {
    assert_eq!(bytes(".byte 1, -1, 255, 'A'"), [1, 255, 255, 65]);
    assert_eq!(bytes(".short 1; .2byte -2"), [1, 0, 0xfe, 0xff]);
    assert_eq!(bytes(".quad 0x0102030405060708"), [8, 7, 6, 5, 4, 3, 2, 1]);
    assert_eq!(bytes(".8byte b - a\na: .byte 0\nb:"), [1, 0, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(bytes(".ascii \"ab\", \"c\"\n.asciz \"d\"\n.string \"\""), b"abcd\0\0");
    assert_eq!(
        bytes(".zero 2; .space 2, 7; .skip 1; .fill 2, 2, 0x102; .fill 1"),
        [0, 0, 7, 7, 0, 2, 1, 2, 1, 0]
    );
    assert_eq!(bytes(".long"), [], "no items");
}

#[test]
fn padding_in_code_is_nop_and_in_data_zero() {
    assert_eq!(bytes(".byte 1\n.align 8\n.byte 2"), [1, 0, 0, 0, 255, 255, 255, 255, 2]);
    assert_eq!(bytes(".byte 1\n.p2align 2, 9\n.byte 2"), [1, 9, 9, 9, 2]);
    assert_eq!(
        bytes(".byte 1\n.balign 8, 0, 3\n.byte 2"),
        [1, 2],
        "more than it may skip"
    );
    let object = object(".data\n.byte 1\n.balign 4\n.byte 2");
    assert_eq!(object.sections[1].bytes_at(0), [1, 0, 0, 0, 2]);
    assert_eq!(object.sections[1].align, 4);
}

#[test]
fn org_leaves_a_gap_that_is_not_stored() {
    let source = ".org 0x380\ntrap: nop\n.org 0x400\nstart: jmp trap\n.org 0x80000000\n.byte 1\n";
    let segments = image(source, &Placement::default());
    let addresses: Vec<u32> = segments.iter().map(|s| s.0).collect();
    assert_eq!(addresses, [0x380, 0x400, 0x8000_0000]);
    assert_eq!(segments[1].1, 0x7803_ff80u32.to_le_bytes());
}

#[test]
fn addresses_become_relocations() {
    let source = "leah s0, x + 4\nleal s0, l - 4\n.long y\n.data\n.zero 8\nl: .zero 4\n.globl x\nx: .long l, x\n";
    let object = object(source);
    let name = |target| match target {
        Target::Section(id) => object.sections[id.index()].name.as_str(),
        Target::Symbol(id) => object.symbols[id.index()].name.as_str(),
    };
    let relocations: Vec<_> = object
        .relocations
        .iter()
        .map(|r| (r.offset, r.kind, name(r.target), r.addend))
        .collect();
    assert_eq!(
        relocations,
        [
            (0, Reloc::AbsHighLea, "x", 4),
            (4, Reloc::AbsLowLea, ".data", 4),
            (8, Reloc::Abs32, "y", 0),
            (12, Reloc::Abs32, ".data", 8),
            (16, Reloc::Abs32, "x", 0),
        ]
    );
    let faults = link(&object, &Placement::default()).unwrap_err();
    assert_eq!(faults.len(), 1);
    assert_eq!(faults[0].message, "the symbol `y` is not defined");
    assert_eq!(&source[faults[0].span.clone()], "y");
}

#[test]
fn weak_symbols_wait_for_another_definition() {
    let object = object(".weak f, g\njmp f\nleah s0, g\nf: nop");
    assert_eq!(object.relocations.len(), 2);
    assert_eq!(object.relocations[0].kind, Reloc::Branch);
    let linked = link(
        &object,
        &Placement {
            base: 0x1000,
            sections: Vec::new(),
        },
    )
    .unwrap();
    assert_eq!(
        linked.image.segments[0].bytes[..8],
        [8, 0, 0, 0x78, 0, 0, 0, 0x61],
        "g is nowhere, so 0"
    );
}

#[test]
fn sections_follow_one_another_or_stand_where_they_are_put() {
    let source = "lea s0, x\nlea s1, b\n.bss\n.balign 16\nb: .zero 4\n.data\n.balign 8\nx: .long b, t\n.text\nt: nop\n.section .note,\"\"\n.long 1\n";
    let placed = image(
        source,
        &Placement {
            base: 0x404,
            sections: Vec::new(),
        },
    );
    let addresses: Vec<(u32, usize)> = placed.iter().map(|s| (s.0, s.1.len())).collect();
    assert_eq!(addresses, [(0x404, 20), (0x418, 8)]);
    assert_eq!(placed[1].1, [0x20, 4, 0, 0, 0x14, 4, 0, 0]);
    let put = Placement {
        base: 0x400,
        sections: vec![(".data".to_owned(), 0x12_3450), (".bss".to_owned(), 0x9000_0000)],
    };
    let placed = image(source, &put);
    assert_eq!((placed[0].0, placed[1].0), (0x400, 0x12_3450));
    let text: Vec<String> = placed[0]
        .1
        .chunks(4)
        .map(|b| decode(u32::from_le_bytes(b.try_into().unwrap())).unwrap().to_string())
        .collect();
    assert_eq!(
        text[..4],
        ["moveih s0, 18", "moveil s0, 13392", "moveih s1, -28672", "moveil s1, 0"]
    );
    for wrong in [
        (".data", 0x402),
        (".data", 0x408),
        (".nothing", 0),
        (".data", 0xffff_fffc),
    ] {
        let put = Placement {
            base: 0x400,
            sections: vec![(wrong.0.to_owned(), wrong.1)],
        };
        assert!(link(&object(source), &put).is_err(), "{wrong:x?}");
    }
}

#[test]
fn the_scratchpad_has_addresses_of_its_own() {
    let source = "leah s0, b\nleal s0, b\n.section scratchpad\na: .zero 64\nb: .zero 4\n";
    assert_eq!(
        image(
            source,
            &Placement {
                base: 0x400,
                sections: Vec::new()
            }
        )[0]
        .1[4..],
        [0, 1, 0, 0x60]
    );
    let filled = link(&object(".section scratchpad\n.long 1\n"), &Placement::default()).unwrap_err();
    assert!(filled[0].message.contains("zeros"), "{filled:?}");
    let large = format!(".section scratchpad\n.zero {}\n", SCRATCHPAD_SIZE + 1);
    assert!(link(&object(&large), &Placement::default()).is_err());
}

#[test]
fn symbols_have_bindings_kinds_and_sizes() {
    let source = ".globl f\n.type f, @function\nf: nop\n.size f, . - f\n.L1: \"odd name\": nop\nN = 5\n.comm c, 8, 4\ne = f + 4\n";
    let object = object(source);
    let symbol = |name: &str| object.symbols.iter().find(|s| s.name == name).unwrap();
    let f = symbol("f");
    assert_eq!(
        (f.binding, f.kind, f.size),
        (Binding::Global, SymbolKind::Function, Some(4))
    );
    assert!(symbol(".L1").private && !symbol("odd name").private);
    assert_eq!(symbol("N").value, SymbolValue::Number(5));
    assert_eq!(symbol("e").value, symbol("odd name").value);
    let linked = link(
        &object,
        &Placement {
            base: 0x400,
            sections: Vec::new(),
        },
    )
    .unwrap();
    assert_eq!(
        symbol_map(&object, &linked),
        "00000005 a N\n00000400 T f\n00000404 t \"odd name\"\n00000404 t e\n00000408 B c\n"
    );
    assert_eq!(symbol_text("s1"), "\"s1\"");
    assert_eq!(symbol_text("a\"b"), "\"a\\\"b\"");
    assert_eq!(symbol_text("$x.1"), "$x.1");
}

#[test]
fn symbols_named_like_registers_are_quoted() {
    assert_eq!(texts("\"s1\": jmp \"s1\"\njmp s1"), ["jmp 0", "jmp s1"]);
}

#[test]
fn both_halves_of_an_address_are_loaded() {
    let placed = image(
        "lea s3, x + 4\n.org 0x12348\nx:",
        &Placement {
            base: 0x7_0000,
            sections: Vec::new(),
        },
    );
    let words: Vec<u32> = placed[0]
        .1
        .chunks(4)
        .map(|b| u32::from_le_bytes(b.try_into().unwrap()))
        .collect();
    let text: Vec<String> = words.iter().map(|&w| decode(w).unwrap().to_string()).collect();
    assert_eq!(text, ["moveih s3, 8", "moveil s3, 9036"]);
}

#[test]
fn a_line_tells_its_instruction_with_the_final_operand() {
    let object = object("movei s0, N\njmp 1f\n1: N = 3\nlea s1, x\nx:");
    let inst = |n: usize| object.lines[n].inst.map(|i| i.to_string());
    assert_eq!(inst(0).as_deref(), Some("movei s0, 3"));
    assert_eq!(inst(1).as_deref(), Some("jmp 4"));
    assert_eq!(object.lines[3].len, 8);
}

#[test]
fn listings_show_what_each_line_became() {
    let source = "start:  movei s50, 1   # one\n        jmp start; nop\n\n        leah s0, far\n        .asciz \"hello, world\"\n        .set far, 0x10\n        .balign 4\nfar2:   .zero 100\n";
    let source = &source.replace("leah s0, far\n", "leah s0, far2\n");
    let object = object(source);
    let linked = link(
        &object,
        &Placement {
            base: 0x400,
            sections: Vec::new(),
        },
    )
    .unwrap();
    assert_eq!(
        listing(source, &object, &linked),
        "    1 00000400 62c80004          start:  movei s50, 1   # one
    2 00000404 7803fffc                  jmp start; nop
    2 00000408 ffffffff
    3
    4 0000040c 61000000                  leah s0, far2
    5 00000410 68656c6c6f2c2077          .asciz \"hello, world\"
    5 00000418 6f726c6400
    6                                    .set far, 0x10
    7 0000041d 000000                    .balign 4
    8 00000420 0000000000000000  far2:   .zero 100
    8 00000428 0000000000000000
    8 00000430 0000000000000000
    8 00000438 0000000000000000
    8 00000440 0000000000000000
    8 00000448 0000000000000000
    8 00000450 0000000000000000
    8 00000458 0000000000000000
    8 00000460 ... 36 bytes
"
    );
    assert_eq!(
        show_encoding(source, &object, &linked)
            .lines()
            .take(6)
            .collect::<Vec<_>>(),
        [
            "start:",
            "        movei s50, 1                     # encoding: [0x04,0x00,0xc8,0x62]",
            "        jmp start                        # encoding: [0xfc,0xff,0x03,0x78]",
            "        nop                              # encoding: [0xff,0xff,0xff,0xff]",
            "        leah s0, far2                    # encoding: [0x00,0x00,0x00,0x61]",
            "                                         # relocation: R_NPU_ABS_HIGH_LEA, .text+32",
        ]
    );
}

#[test]
fn everything_assembles() {
    let source = include_str!("../programs/everything.s");
    let object = object(source);
    let linked = link(
        &object,
        &Placement {
            base: 0x400,
            sections: Vec::new(),
        },
    )
    .unwrap();
    // The output with encodings assembles to the same bytes.
    let shown = show_encoding(source, &object, &linked);
    let again = assemble(&shown, &Options::default()).unwrap_or_else(|f| panic!("{f:#?}\n{shown}"));
    let again = link(
        &again,
        &Placement {
            base: 0x400,
            sections: Vec::new(),
        },
    )
    .unwrap();
    assert_eq!(again.image, linked.image);
    assert!(
        object
            .lines
            .iter()
            .any(|l| l.inst.is_some_and(|i| i.opcode == Opcode::LV32WMainmem_M))
    );
}

/// A branch to a label at the same offset of another section needs the linker. A branch within the
/// section does not.
#[test]
fn branches_to_other_sections_are_relocations() {
    let source = "jmp near\nnear: jmp far\nbeqz s0, far\n.section .text.other, \"ax\"\nnop\nfar: jret\n";
    let object = assemble(source, &Options::default()).unwrap();
    let places: Vec<(u32, u8)> = object
        .relocations
        .iter()
        .map(|reloc| (reloc.offset, reloc.kind.number()))
        .collect();
    assert_eq!(places, [(4, Reloc::Branch.number()), (8, Reloc::Branch.number())]);
}
