//! Checks finished machine code for hardware errata, independently of the passes that avoid them.
//!
//! The tests compile each function of the filetests and the corpus, decode the code and check the
//! instructions.

mod undriven;

use crate::compiled::{FUNCTIONS, codes, compile, isa};
use cranelift_naplespu::CompiledCode;
use npu_mc::{Inst, Opcode, Reg, SReg};

/// Calls `check` for the code of all functions at an optimization level.
fn for_each_function(opt_level: &str, check: impl FnMut(&str, &CompiledCode)) {
    each(codes(opt_level), check);
}

/// Calls `check` for the code of all functions without the work-around of an erratum.
fn without(erratum: &str, opt_level: &str, check: impl FnMut(&str, &CompiledCode)) {
    each(&compile(&isa(opt_level, &[(erratum, "false")])), check);
}

fn each(codes: &[Option<CompiledCode>], mut check: impl FnMut(&str, &CompiledCode)) {
    for (function, code) in FUNCTIONS.iter().zip(codes) {
        if let Some(code) = code {
            check(&function.name.to_string(), code);
        }
    }
}

fn decode(code: &CompiledCode) -> Vec<Inst> {
    // Constants follow the code.
    let words = code.bytes[..code.pool_start as usize]
        .chunks_exact(4)
        .map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]));
    words
        .map(|word| npu_mc::decode(word).expect("an instruction"))
        .collect()
}

/// The distance in cycles between two issues from which a result can be lost if the processor
/// forgets to wait for it.
///
/// An instruction at the target of a taken branch can issue 9 cycles after the branch. If it writes
/// the same register, the pending result must not arrive 2 cycles later.
const LOST_DISTANCE: u32 = 11;

/// The number of instructions at a branch target that can conflict with an integer result that
/// float results delay.
const MET_AT_TARGET: usize = 3;

/// The distance for a result with unbounded latency.
const MISS: u32 = u32::MAX;

/// Returns the cycles from the issue of an instruction to the issue of a user of its result, or 0
/// without a result.
///
/// The numbers are measurements of the hardware (`docs/machine/pipeline.md`), independent of td's
/// numbers, which the compiler uses.
fn distance(mnemonic: &str) -> u32 {
    match mnemonic.trim_end_matches(".m") {
        "fadd_f32" | "fsub_f32" => 12,
        "itof_i32" => 13,
        "fdiv_f32" => 24,
        "fmul_f32" | "ftoi_i32" => 11,
        "crp" | "jmp" | "jret" | "beqz" | "bnez" | "nop" | "flush" | "dcache_inv" | "barrier" | "write_cr" => 0,
        name if name.starts_with("cmpf") => 8,
        name if name.starts_with("store") => 0,
        name if name.starts_with("load") && name.ends_with("_scratchpad") => 11,
        name if name.starts_with("load") => MISS,
        _ => 7,
    }
}

fn is_branch(mnemonic: &str) -> bool {
    matches!(mnemonic, "jmp" | "jmpsr" | "jret" | "beqz" | "bnez")
}

/// The findings before the branches of a function.
#[derive(Default)]
struct BeforeBranches {
    /// Pairs of an instruction and a branch, where the branch can cause the loss of the result.
    lost: Vec<String>,
    /// Pairs that lose an integer result only because float results delay it at the write port.
    behind_floats: Vec<String>,
    /// The number of pairs with a store between instruction and branch. The store takes an issue
    /// slot, which avoids the erratum.
    stores: usize,
}

/// Returns whether the float unit computes the result. Its results have priority at the write port.
fn is_float(inst: &Inst) -> bool {
    let name = inst.desc().mnemonic;
    name.ends_with("_f32") || name.ends_with("_f32.m") || name.starts_with("itof") || name.starts_with("ftoi")
}

/// Returns whether one of the first instructions at the target of a branch uses a register that
/// `writer` writes. Code of other functions may use every register.
fn meets_at_target(code: &[(u32, &Inst)], branch: (u32, &Inst), writer: &Inst) -> bool {
    let known = matches!(branch.1.desc().mnemonic, "jmp" | "beqz" | "bnez");
    let Some(offset) = branch
        .1
        .operands
        .iter()
        .find_map(|operand| operand.imm())
        .filter(|_| known)
    else {
        return true;
    };
    let target = branch.0.wrapping_add_signed(offset);
    let Some(start) = code.iter().position(|&(address, _)| address >= target) else {
        return true;
    };
    let first = code[start..].iter().take(MET_AT_TARGET);
    first
        .flat_map(|(_, inst)| inst.uses().chain(inst.defs()))
        .any(|used| writer.defs().any(|def| def == used))
}

fn before_branches(insts: &[Inst]) -> BeforeBranches {
    let mut found = BeforeBranches::default();
    let waits = |before: &Inst, branch: &Inst| before.defs().any(|def| branch.uses().any(|used| used == def));
    // A `nop` is fetched but does not take an issue slot.
    let addressed = (0u32..).step_by(4).zip(insts);
    let issued: Vec<(u32, &Inst)> = addressed.filter(|(_, inst)| inst.desc().mnemonic != "nop").collect();
    let has_floats = insts.iter().any(is_float);
    for (at, &(address, branch)) in issued.iter().enumerate() {
        let before = |steps: usize| Some(issued[at.checked_sub(steps)?].1);
        let late = |inst: &&Inst| distance(inst.desc().mnemonic) >= LOST_DISTANCE && !waits(inst, branch);
        if !is_branch(branch.desc().mnemonic) {
            continue;
        }
        if let Some(late) = before(1).filter(late) {
            found.lost.push(format!("{late} / {branch}"));
        }
        // `tr` is the separator that the compiler inserts, and the link of an indirect call must
        // precede it.
        let is_kept = |inst: &&Inst| {
            !is_float(inst)
                && !is_branch(inst.desc().mnemonic)
                && inst.defs().next().is_some()
                && !waits(inst, branch)
                && inst
                    .defs()
                    .all(|def| def != Reg::S(SReg::TR) && def != Reg::S(SReg::RA))
        };
        if has_floats
            && let Some(late) = before(1)
                .filter(is_kept)
                .filter(|i| meets_at_target(&issued, (address, branch), i))
        {
            found.behind_floats.push(format!("{late} / {branch}"));
        }
        let store = before(1).is_some_and(|inst| inst.desc().mnemonic.starts_with("store"));
        found.stores += usize::from(store && before(2).filter(late).is_some());
    }
    found
}

#[test]
fn no_result_is_lost_before_a_taken_branch() {
    for opt_level in ["none", "speed"] {
        let mut stores = 0;
        for_each_function(opt_level, |name, code| {
            let found = before_branches(&decode(code));
            stores += found.stores;
            for lost in [&found.lost, &found.behind_floats] {
                assert!(lost.is_empty(), "{name} at opt_level={opt_level}: {lost:?}");
            }
        });
        assert!(stores > 0, "the files exercise nothing");
    }
}

#[test]
fn without_the_work_around_results_would_be_lost() {
    let (mut lost, mut behind_floats) = (0, 0);
    without("erratum_lost_result_before_taken_branch", "none", |_, code| {
        let found = before_branches(&decode(code));
        lost += found.lost.len();
        behind_floats += found.behind_floats.len();
    });
    assert!(lost > 0 && behind_floats > 0, "the files exercise nothing");
}

/// The distances in td, which the compiler and the simulator use, equal the measurements.
#[test]
fn distances_are_those_measured() {
    for op in Opcode::ALL.iter().filter(|op| op.desc().decodable) {
        let expected = match distance(op.desc().mnemonic) {
            // The latency of a hit.
            MISS => 9,
            cycles => cycles,
        };
        assert_eq!(u32::from(op.desc().latency), expected, "{op}");
    }
}

/// Follows the undriven upper halves of vector compares in a function. Returns the number of
/// compares, or a use of an undriven half.
fn undriven_halves(code: &CompiledCode) -> Result<usize, String> {
    let labels: Vec<usize> = code.block_starts.iter().map(|&offset| offset as usize / 4).collect();
    undriven::check(&decode(code), &labels)
}

#[test]
fn upper_halves_of_vector_compares_are_never_looked_at() {
    let mut compares = 0;
    for opt_level in ["none", "speed"] {
        for_each_function(opt_level, |name, code| {
            let count = undriven_halves(code);
            compares += count.unwrap_or_else(|what| panic!("{name} at opt_level={opt_level}: {what}"));
        });
    }
    assert!(compares > 500, "only {compares} compares");
}

#[test]
fn without_the_work_around_upper_halves_would_be_looked_at() {
    let mut found = 0;
    without("erratum_vector_compare_upper_half", "none", |_, code| {
        found += usize::from(undriven_halves(code).is_err());
    });
    assert!(found > 0, "the files exercise nothing");
}

#[test]
fn the_link_of_indirect_calls_is_made_by_hand() {
    let mut calls = 0;
    for_each_function("speed", |name, code| {
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
    without("erratum_indirect_call_link", "speed", |_, code| {
        hardware_calls += decode(code).iter().filter(|i| i.opcode == Opcode::JMPSR_REG).count();
    });
    assert_eq!(calls, hardware_calls);
}

#[test]
fn registers_that_the_hardware_mistakes_are_never_written() {
    for_each_function("speed", |name, code| {
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

/// Returns whether an instruction sets all bits of `rm`, or `None` if it does not write `rm`.
fn sets_mask(inst: &Inst) -> Option<bool> {
    let sets = inst.defs().any(|def| def == Reg::S(SReg::RM));
    sets.then(|| inst.opcode == Opcode::MOVEISI && inst.operands[1].imm().is_some_and(|n| n & 0xffff == 0xffff))
}

#[test]
fn the_mask_is_all_ones_wherever_control_goes() {
    for opt_level in ["none", "speed"] {
        let mut regions = 0;
        for_each_function(opt_level, |name, code| {
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
        for_each_function(opt_level, |_, code| {
            sets += decode(code).iter().filter(|inst| sets_mask(inst).is_some()).count();
        });
        sets
    };
    assert!(count("speed") < count("none"));
}
