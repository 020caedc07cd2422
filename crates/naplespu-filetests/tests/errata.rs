//! Looks at finished machine code for what the hardware gets wrong: every function of the filetests and the corpus is
//! compiled, and its words are decoded and checked, independently of the passes that avoid the errata.

use cranelift_codegen::Context;
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::settings::{self, Configurable, Flags};
use cranelift_naplespu::{CompiledCode, Isa, isa_builder};
use npu_mc::machine::LOST_RESULT;
use npu_mc::{Inst, Opcode, Reg, SReg};
use std::path::{Path, PathBuf};
use std::sync::Arc;

fn isa(opt_level: &str, target: &[(&str, &str)]) -> Arc<Isa> {
    let mut flags = settings::builder();
    flags.set("opt_level", opt_level).expect("a level");
    let mut builder = isa_builder("naplespu".parse().expect("the target"));
    for (name, value) in target {
        builder.set(name, value).expect("a setting");
    }
    builder.finish(Flags::new(flags))
}

fn clif_files(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).expect("the folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            clif_files(&path, found);
        } else if path.extension().is_some_and(|e| e == "clif") {
            found.push(path);
        }
    }
}

/// Compiles every function under `filetests/` that the target covers, and the runtime.
fn for_each_function(isa: &Isa, mut check: impl FnMut(&str, &CompiledCode)) -> usize {
    let mut files = Vec::new();
    clif_files(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("../../filetests"),
        &mut files,
    );
    files.sort();
    let mut functions = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(&file).expect("a file");
        let start = text.find("function").unwrap_or(0);
        // Files that test errors do not parse; the others are all there is to look at.
        functions.extend(cranelift_reader::parse_functions(&text[start..]).unwrap_or_default());
    }
    functions.extend(naplespu_runtime::functions().expect("the runtime"));
    let mut count = 0;
    for function in functions {
        let mut ctx = Context::for_function(function);
        if let Ok(code) = isa.compile(&mut ctx, &mut ControlPlane::default()) {
            count += 1;
            check(&ctx.func.name.to_string(), &code);
        }
    }
    count
}

fn decode(code: &CompiledCode) -> Vec<Inst> {
    // Constants stand behind the code.
    let words = code.bytes[..code.pool_start as usize]
        .chunks_exact(4)
        .map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]));
    words
        .map(|word| npu_mc::decode(word).expect("an instruction"))
        .collect()
}

/// Pairs of instructions of which the second is a branch that can make the result of the first get lost.
fn lost_results(insts: &[Inst]) -> Vec<String> {
    let mut found = Vec::new();
    let mut last_issued: Option<&Inst> = None;
    for inst in insts {
        let branch = inst.desc().flags.is_branch() || inst.desc().flags.is_return() || inst.desc().flags.is_call();
        if let Some(before) = last_issued.filter(|_| branch) {
            let desc = before.desc();
            let late = u32::from(desc.latency) > LOST_RESULT || desc.flags.may_load() && !desc.scratchpad;
            let waits = before.defs().any(|def| inst.uses().any(|used| used == def));
            if late && before.defs().next().is_some() && !waits {
                found.push(format!("{before} / {inst}"));
            }
        }
        // A `nop` is fetched but takes no issue slot.
        if inst.opcode != Opcode::NOP {
            last_issued = Some(inst);
        }
    }
    found
}

#[test]
fn no_result_is_lost_before_a_taken_branch() {
    for opt_level in ["none", "speed"] {
        let count = for_each_function(&isa(opt_level, &[]), |name, code| {
            let found = lost_results(&decode(code));
            assert!(found.is_empty(), "{name} at opt_level={opt_level}: {found:?}");
        });
        assert!(count > 50, "only {count} functions compiled");
    }
}

#[test]
fn without_the_work_around_results_would_be_lost() {
    let mut found = 0;
    let isa = isa("none", &[("erratum_lost_result_before_taken_branch", "false")]);
    for_each_function(&isa, |_, code| found += lost_results(&decode(code)).len());
    assert!(found > 0, "the files exercise nothing");
}

#[test]
fn the_link_of_indirect_calls_is_made_by_hand() {
    let mut calls = 0;
    for_each_function(&isa("speed", &[]), |name, code| {
        let insts = decode(code);
        assert!(
            insts.iter().all(|i| i.opcode != Opcode::JMPSR_REG),
            "{name} links through a register"
        );
        let links = |i: &Inst| i.opcode == Opcode::ADDSSI && i.operands[1].reg() == Some(Reg::S(SReg::PC));
        for pair in insts.windows(2) {
            if links(&pair[0]) && pair[0].operands[0].reg() == Some(Reg::S(SReg::RA)) {
                assert_eq!(pair[0].operands[2].imm(), Some(8), "{name}");
                assert_eq!(pair[1].opcode, Opcode::JUMPREG, "{name}");
                calls += 1;
            }
        }
    });
    assert!(calls > 0, "the files exercise nothing");
    let mut hardware_calls = 0;
    for_each_function(&isa("speed", &[("erratum_indirect_call_link", "false")]), |_, code| {
        hardware_calls += decode(code).iter().filter(|i| i.opcode == Opcode::JMPSR_REG).count();
    });
    assert_eq!(calls, hardware_calls);
}

#[test]
fn registers_that_the_hardware_mistakes_are_never_written() {
    for_each_function(&isa("speed", &[]), |name, code| {
        for inst in decode(code) {
            for def in inst.defs() {
                let whole = matches!(inst.opcode, Opcode::MOVEISI | Opcode::MOVE_SS_32);
                let reserved = match def {
                    Reg::S(reg) => reg == SReg::PC || reg == SReg::RM && !whole,
                    Reg::V(reg) => matches!(reg.number(), 59 | 63),
                };
                assert!(!reserved, "{name} writes {def}: {inst}");
            }
        }
    });
}

/// What sets `rm`, and whether to all ones.
fn sets_mask(inst: &Inst) -> Option<bool> {
    let sets = inst.defs().any(|def| def == Reg::S(SReg::RM));
    sets.then(|| inst.opcode == Opcode::MOVEISI && inst.operands[1].imm().is_some_and(|n| n & 0xffff == 0xffff))
}

#[test]
fn the_mask_is_all_ones_wherever_control_goes() {
    for opt_level in ["none", "speed"] {
        let mut regions = 0;
        for_each_function(&isa(opt_level, &[]), |name, code| {
            let mut all = true;
            for (inst, offset) in decode(code).iter().zip((0..).step_by(4)) {
                let entered = code.block_starts.binary_search(&offset).is_ok();
                assert!(
                    all || !entered && !inst.desc().flags.is_branch(),
                    "{name} at {offset:#x}: {inst}"
                );
                if let Some(to_all) = sets_mask(inst) {
                    regions += usize::from(!to_all);
                    all = to_all;
                }
            }
        });
        assert!(regions > 50, "the files exercise nothing");
    }
}

#[test]
fn neighbouring_regions_under_one_mask_are_one() {
    let count = |opt_level: &str| {
        let mut sets = 0;
        for_each_function(&isa(opt_level, &[]), |_, code| {
            sets += decode(code).iter().filter(|inst| sets_mask(inst).is_some()).count();
        });
        sets
    };
    assert!(count("speed") < count("none"));
}
