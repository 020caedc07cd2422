//! Unwind rows of assembly: they follow the stack pointer and the saved registers on all paths.

use cranelift_codegen::Context;
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::settings::{self, Flags};
use cranelift_naplespu::abi::sig::handler_stack_pointer;
use cranelift_naplespu::code::{CompiledCode, ExceptionHandler, Reloc, RelocTarget};
use cranelift_naplespu::{CompileError, isa};
use npu_mc::machine::INSTRUCTION_SIZE;
use npu_mc::{Reg, SReg};

/// Compiles a function.
fn compiled(text: &str) -> CompiledCode {
    let func = cranelift_reader::parse_functions(text).unwrap().remove(0);
    let isa = isa::lookup_by_name("naplespu").unwrap();
    let isa = isa.finish(Flags::new(settings::builder())).unwrap();
    isa.compile(&mut Context::for_function(func), &mut ControlPlane::default())
        .unwrap()
}

/// Returns the code of a function whose callee removes arguments, so that the call has a site.
fn caller() -> CompiledCode {
    let params = ["i64"; 12].join(", ");
    let values = ["v0"; 12].join(", ");
    compiled(&format!(
        "function %f(i64) -> i32 {{\n fn0 = %g({params}) -> i32 tail\nblock0(v0: i64):\n v1 = call fn0({values})\n return v1\n}}"
    ))
}

#[test]
fn a_call_site_without_a_call_is_an_internal_error() {
    let mut code = caller();
    assert!(code.call_sites[0].popped > 0);
    assert!(code.unwind_rows().is_ok());
    for offset in [0, code.call_sites[0].return_offset + INSTRUCTION_SIZE, u32::MAX] {
        code.call_sites[0].return_offset = offset;
        let error = code.unwind_rows().unwrap_err();
        assert!(
            matches!(error, CompileError::Internal { stage: "unwind", .. }),
            "{error}"
        );
    }
}

/// Returns the rows of assembly as text: `offset: register + distance, saved registers and
/// slots`.
fn rows_of(source: &str, with: impl FnOnce(&mut CompiledCode)) -> Vec<String> {
    let mut code = compiled("function %f() {\nblock0:\n return\n}");
    let object = npu_mc::asm::assemble(source, &npu_mc::asm::Options::default()).unwrap();
    let [section] = object.sections.as_slice() else {
        panic!("one section")
    };
    code.bytes = section.bytes_at(0).to_vec();
    code.pool_start = code.bytes.len() as u32;
    with(&mut code);
    let rows = code.unwind_rows_without_frame();
    rows.iter()
        .map(|row| {
            let cfa = row.cfa.map(|(reg, distance)| format!("{reg} + {distance}"));
            let saved: String = row.saved.iter().map(|(reg, at)| format!(", {reg} at {at}")).collect();
            let lost: String = row.lost.iter().map(|reg| format!(", {reg} lost")).collect();
            format!("{}: {}{saved}{lost}", row.offset, cfa.unwrap_or_default())
        })
        .collect()
}

#[test]
fn a_large_frame_is_a_number_of_two_halves_in_any_order() {
    for halves in ["moveih s1, 1\nmoveil s1, 0x86a0", "moveil s1, 0x86a0\nmoveih s1, 1"] {
        let source = format!("{halves}\nsub_i32 sp, sp, s1\nadd_i32 sp, sp, s1\njret\n");
        assert_eq!(rows_of(&source, |_| {}), ["0: sp + 0", "12: sp + 100000", "16: sp + 0"]);
    }
}

#[test]
fn a_relocated_immediate_is_unknown() {
    let source = "moveih s1, 0\nmoveil s1, 64\nsub_i32 sp, sp, s1\njret\n";
    assert_eq!(rows_of(source, |_| {}), ["0: sp + 0", "12: sp + 64"]);
    for offset in [0, 4] {
        let rows = rows_of(source, |code| {
            code.relocs = vec![Reloc {
                offset,
                kind: npu_mc::reloc::Reloc::AbsHighLea,
                target: RelocTarget::Function,
                addend: 0,
            }];
        });
        assert_eq!(rows, ["0: sp + 0", "12: "]);
    }
}

#[test]
fn only_the_common_state_remains_where_paths_meet() {
    let paths = [
        (
            "addi sp, sp, -64\nstore32 s50, 56(sp)\n",
            "addi sp, sp, -64\nstore32 s50, 60(sp)\n",
            "sp + 64",
        ),
        (
            "addi sp, sp, -64\nmove_i32 s3, s4\n",
            "addi sp, sp, -32\nmove_i32 s3, s4\n",
            "",
        ),
        (
            "addi sp, sp, -64\nstore32 s50, 56(sp)\n",
            "addi sp, sp, -64\nstore32 s50, 56(sp)\n",
            "sp + 64, s50 at -8",
        ),
    ];
    for (one, other, expected) in paths {
        let source = format!("beqz s0, other\n{one}jmp both\nother: {other}both: move_i32 s1, s0\njmp both\n");
        let rows = rows_of(&source, |_| {});
        // The row at the offset 24, where the paths meet.
        let rows = rows.iter().filter_map(|row| row.split_once(": "));
        let mut reached = rows.filter(|(offset, _)| offset.parse::<u32>().unwrap() <= 24);
        assert_eq!(reached.next_back().unwrap().1, expected, "{one}{other}");
    }
}

#[test]
fn a_saved_register_is_found_until_its_slot_is_overwritten() {
    let source = "addi sp, sp, -64\nstore32 s50, 56(sp)\nstore32 s51, 60(sp)\nmove_i32 s50, s0\nstore32 s50, 60(sp)\naddi sp, sp, 64\njret\n";
    assert_eq!(
        rows_of(source, |_| {}),
        [
            "0: sp + 0",
            "4: sp + 64",
            "8: sp + 64, s50 at -8",
            "12: sp + 64, s50 at -8, s51 at -4",
            "20: sp + 64, s50 at -8",
            "24: sp + 0"
        ]
    );
}

#[test]
fn a_store_of_another_value_saves_nothing_and_a_load_from_another_slot_restores_nothing() {
    let source = "addi sp, sp, -64\nmove_i32 s50, s0\nstore32 s50, 56(sp)\nstore32 ra, 60(sp)\njmpsr far\n\
                  load32 ra, 56(sp)\naddi sp, sp, 64\njret\nfar: jret\n";
    assert_eq!(
        rows_of(source, |_| {}),
        [
            "0: sp + 0",
            "4: sp + 64",
            "16: sp + 64, ra at -4",
            "28: sp + 0, ra lost"
        ]
    );
}

#[test]
fn a_handler_finds_the_frame_by_the_register_that_it_is_given() {
    let Some(Reg::S(at)) = handler_stack_pointer() else {
        panic!("no register for the stack pointer of handlers");
    };
    let source = format!("addi sp, sp, -64\njmpsr far\njret\nmove_i32 sp, {at}\naddi sp, sp, 64\njret\nfar: jret\n");
    // Call sites cannot be made outside of the compiler, so the one of a compiled call is changed.
    let mut site = caller().call_sites.remove(0);
    site.popped = 0;
    site.return_offset = 8;
    site.handlers = vec![ExceptionHandler::Default(12)];
    let rows = rows_of(&source, |code| {
        code.frame.size = 64;
        code.frame.saved = vec![(Reg::S(SReg::new(50).unwrap()), 56)];
        code.call_sites = vec![site];
    });
    assert_eq!(
        rows,
        [
            "0: sp + 0",
            "4: sp + 64",
            "8: sp + 64, ra lost",
            &format!("12: {at} + 64, s50 at -8, ra lost"),
            "16: sp + 64, s50 at -8, ra lost",
            "20: sp + 0, ra lost"
        ]
    );
}

#[test]
fn all_entries_of_a_jump_table_are_followed() {
    let source = "addi sp, sp, -64\naddi s7, pc, 12\nadd_i32 s6, s6, s7\njmp s6\njmp one\njmp two\njmp three\n\
                  one: addi sp, sp, 64\njret\ntwo: addi sp, sp, 32\naddi sp, sp, 32\njret\n\
                  three: addi sp, sp, 48\naddi sp, sp, 16\njret\n";
    let rows = rows_of(source, |code| code.block_starts = vec![0, 28, 36, 48]);
    assert_eq!(
        rows,
        [
            "0: sp + 0",
            "4: sp + 64",
            "32: sp + 0",
            "36: sp + 64",
            "40: sp + 32",
            "44: sp + 0",
            "48: sp + 64",
            "52: sp + 16",
            "56: sp + 0"
        ]
    );
}
