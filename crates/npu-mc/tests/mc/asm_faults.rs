//! The assembler on invalid sources: the messages and their spans.

use npu_mc::asm::{Fault, Options, assemble};

fn faults(source: &str) -> Vec<Fault> {
    assemble(source, &Options::default())
        .err()
        .unwrap_or_else(|| panic!("no fault: {source}"))
}

/// Checks each line of a table: a source, the marked text, and a part of the message.
fn table(rows: &[(&str, &str, &str)]) {
    let mut wrong = Vec::new();
    for (source, marked, message) in rows {
        match assemble(source, &Options::default()) {
            Ok(_) => wrong.push(format!("{source:?}: no fault")),
            Err(faults) => {
                let fault = &faults[0];
                let text = &source[fault.span.clone()];
                if faults.len() != 1 || text != *marked || !fault.message.contains(message) {
                    wrong.push(format!("{source:?}: `{text}`: {faults:?}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Sources that the old assembler accepts silently (`docs/assembler.md`,
/// `docs/machine/objects.md`).
#[test]
fn what_the_old_assembler_cuts_off_or_misreads_is_refused() {
    table(&[
        ("addi s0, s1, 256", "256", "256 is out of range for `addi`"),
        ("addi s0, s1, 1000000", "1000000", "out of range"),
        ("addi s0, s1, -257", "-257", "out of range"),
        ("movei s0, 65536", "65536", "out of range"),
        ("load32 s0, 1000(s1)", "1000", "out of range for `load32`"),
        ("jmp 131072", "131072", "out of range for `jmp`"),
        ("beqz s0, -131073", "-131073", "out of range"),
        ("addi s0, s1, sym", "sym", "the address of `sym` is not known"),
        ("movei s0, sym + 4", "sym + 4", "the address of `sym` is not known"),
        ("load32 s0, sym(s1)", "sym", "takes a number here"),
        ("load_v16i32 v0, (v1)", "v1", "not the vector register v1 as base"),
        (
            "loadg32_scratchpad v0, (s1)",
            "s1",
            "not the scalar register s1 as base",
        ),
        (
            "load32 s0, s1",
            "s1",
            "operand 2 of `load32` is `offset(scalar register)` or a label, not the scalar register s1",
        ),
        ("jmp s58", "s58", "there is no register `s58`"),
        ("jmp S1", "S1", "there is no register `S1`"),
        ("move_i32 $s0, s1", "$s0", "there is no register `$s0`"),
        ("add_i32 v64, v1, v2", "v64", "there is no register `v64`"),
        ("s1: nop", "s1", "found the register `s1` where a label is expected"),
        (".globl ra", "ra", "found the register `ra` where a symbol is expected"),
        (
            ".long s1",
            "s1",
            "found the register `s1` where an expression is expected",
        ),
        ("lea s0, 5", "5", "takes a symbol"),
        (".byte sym", "sym", "an address does not fit in 1 byte"),
        (".quad sym", "sym", "an address does not fit in 8 bytes"),
        (
            ".long sym - .",
            "sym - .",
            "the distance from this place to `sym` is not known",
        ),
        ("jmp f\n.byte 0\nf: .byte 0", "f", "is not an address of an instruction"),
        (
            "jmp f\n.byte 0, 0\nf: .byte 0",
            "f",
            "is not an address of an instruction",
        ),
        (".byte 1\nnop", "nop", "not a multiple of 4"),
        (".byte 256", "256", "256 does not fit in 1 byte"),
        (".short -32769", "-32769", "does not fit"),
        (".long 0x100000000", "0x100000000", "does not fit in 4 bytes"),
    ]);
}

#[test]
fn operands_of_the_wrong_kind_or_number_are_told_with_the_forms_there_are() {
    table(&[
        ("add_i32 s0, s1", "s0, s1", "`add_i32` takes 3 operands, not 2"),
        ("nop s1", "s1", "`nop` takes 0 operands, not 1"),
        ("jret 4", "4", "`jret` takes 0 operands"),
        ("flush", "flush", "`flush` takes 1 operand, not 0"),
        (
            "add_i32 s0, s1, 5",
            "5",
            "operand 3 of `add_i32` is a scalar register, not the number 5",
        ),
        (
            "add_i32 v0, s1, s2",
            "s1",
            "operand 2 of `add_i32` is a vector register, not the scalar register s1",
        ),
        (
            "add_i32 s0, s1, v2",
            "v2",
            "operand 3 of `add_i32` is a scalar register, not the vector register v2",
        ),
        (
            "addi s0, s1, s2",
            "s2",
            "operand 3 of `addi` is a number, not the scalar register s2",
        ),
        (
            "movei foo, 4",
            "foo",
            "operand 1 of `movei` is a scalar register or a vector register, not a symbol",
        ),
        ("load32 s0, 4", "4", "not the number 4"),
        ("load32 s0, N\nN = 4", "N", "is the number 4"),
        (
            "store32 4(s1), s0",
            "4(s1)",
            "operand 1 of `store32` is a scalar register, not a memory operand",
        ),
        ("load32 s0, [s1]", "[", "expected an operand"),
        ("load32 s0, 4(5)", "5", "expected a base register"),
        ("load32 s0, 4(s1", "", "expected `)`"),
        ("lea v0, x", "v0", "operand 1 of `lea` is a scalar register"),
    ]);
    let fault = &faults("add_i32 v0, s1, s2")[0];
    assert_eq!(fault.label, "expected a vector register");
    assert_eq!(
        fault.notes,
        ["S and V are a scalar and a vector register: `add_i32 S, S, S`, `add_i32 V, V, V`, `add_i32 V, V, S`"]
    );
}

#[test]
fn unknown_words_have_a_neighbour_named() {
    let note = |source: &str| faults(source)[0].notes.join(" ");
    assert_eq!(note("add_i23 s0, s0, s0"), "did you mean `add_i32`?");
    assert_eq!(note(".lomg 4"), "did you mean `.long`?");
    assert!(note(".word 4").contains("its size differs between assemblers"));
    assert!(note(".half 4").contains("`.short`"));
    assert!(faults("jmp s58")[0].label.contains("number 58 is `tr`"));
    assert!(faults("jmp S1")[0].label.contains("write `s1`"));
    table(&[
        ("frobnicate s0", "frobnicate", "there is no instruction `frobnicate`"),
        (".macro x", ".macro", "there is no directive `.macro`"),
    ]);
}

#[test]
fn statements_that_are_none_are_told() {
    table(&[
        ("5", "5", "expected a label, a directive or an instruction"),
        ("nop nop", "nop", "`nop` takes 0 operands, not 1"),
        ("jmp 4 5", "5", "expected `,` or the end of the statement"),
        ("add_i32 s0,, s1", ",", "expected a number"),
        (".long 1,", "", "found the end of the statement"),
        (".long (1", "", "expected `)`"),
        (".long 1 / 0", "1 / 0", "a division by zero"),
        (".long 1 << 64", "1 << 64", "a shift by less than 0 or more than 63"),
        (
            ".quad 0xffffffffffffffff * 2",
            "0xffffffffffffffff * 2",
            "more than 64 bits",
        ),
        (".ascii 5", "5", "expected a string, found a number"),
        (".align 3", "3", "3 is not an alignment"),
        (".p2align 40", "40", "2 to the 40"),
        (".zero -1", "-1", "-1 is not a number of bytes"),
        (".zero x", "x", "has to be known here"),
        (".org 8\n.org 4", "4", "cannot move back"),
        (".fill 1, 9", "9", "9 is not a size"),
        (".text 1", "1", "expected the end of the statement"),
        (".section", "", "expected the name of a section"),
        (".section a,\"q\"", "\"q\"", "`q` is not a flag"),
        (".section a,\"a\"\n.section a,\"aw\"", "\"aw\"", "other flags"),
        (".bss\n.long 1", "1", "can only contain zeros"),
        (".bss\n.long x", "x", "can only contain zeros"),
        (".type f, @thing", "thing", "expected `@function`"),
        (".globl f\n.local f", "f", "is global and local"),
        ("jmp 1b", "1b", "there is no label `1:` before"),
        ("1: jmp 1f", "1f", "there is no label `1:` after"),
        (". = 4", ".", "`.` is the current address"),
        (".: nop", ".", "`.` is the current address"),
        ("\"\": nop", "\"\"", "a symbol has no name"),
    ]);
}

#[test]
fn values_that_hang_on_themselves_are_told() {
    for source in [".set a, b\n.set b, a\n", "a = a", ".long a\na = b + 1\nb = a - 1"] {
        let list = faults(source);
        assert!(list.iter().all(|f| f.message.contains("depends on itself")), "{list:?}");
    }
}

#[test]
fn symbols_are_defined_once() {
    let source = "f: nop\nf: nop\n";
    let list = faults(source);
    assert_eq!((list.len(), list[0].span.clone()), (1, 7..8));
    assert_eq!(list[0].message, "`f` is defined twice");
    assert_eq!(list[0].notes, ["the first definition is in line 1"]);
    for source in ["f:\nf = 4", "f = 4\nf:", "jmp f\nf = 4\nf = 8", "f = g\nf = h"] {
        assert_eq!(faults(source).len(), 1, "{source}");
    }
}

#[test]
fn all_faults_of_a_source_are_told_in_order() {
    let source = "addi s0, s1, 300\nnop\nfoo\n.long é, 1\njmp g\nbeqz v0, 4\n.word 1\ng: .byte 'ab', 300\n";
    let list = faults(source);
    let lines: Vec<usize> = list
        .iter()
        .map(|f| source[..f.span.start].matches('\n').count() + 1)
        .collect();
    assert_eq!(lines, [1, 3, 4, 6, 7, 8]);
}

#[test]
fn a_flood_of_faults_has_an_end() {
    let list = faults(&"foo\n".repeat(5000));
    assert_eq!(list.len(), 1001);
    assert!(list[1000].message.contains("1000 faults"));
}
