//! Tests of proofs and refutations: functions with correct code, and the same code with an injected
//! fault.
//!
//! Tests that need a solver are ignored if none is installed.

use cranelift_codegen::Context;
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::ir::Function;
use cranelift_codegen::settings::{self, Configurable as _, Flags};
use cranelift_naplespu::{CompiledCode, Isa};
use libtest_mimic::{Arguments, Failed, Trial};
use naplespu_verify::answer::{Answer, Reason, Verdict};
use naplespu_verify::generate::generate;
use naplespu_verify::prove::{Options, prove_code};
use naplespu_verify::solver;
use npu_mc::{Inst, Opcode, Operand, Reg, SReg, decode, encode};
use std::sync::Arc;

const LEVELS: [&str; 2] = ["none", "speed"];

fn isa(level: &str) -> Result<Arc<Isa>, Failed> {
    let mut flags = settings::builder();
    flags.set("opt_level", level)?;
    let target = cranelift_naplespu::isa::lookup_by_name("naplespu")?;
    Ok(target.finish(Flags::new(flags))?)
}

fn parse(text: &str) -> Result<Function, Failed> {
    let mut functions = cranelift_reader::parse_functions(text)?;
    functions.pop().ok_or_else(|| "no function".into())
}

fn compile(isa: &Isa, func: &Function) -> Result<CompiledCode, Failed> {
    let mut ctx = Context::for_function(func.clone());
    Ok(isa.compile(&mut ctx, &mut ControlPlane::default())?)
}

fn answer(text: &str, level: &str, change: impl Fn(&mut CompiledCode) -> Result<(), Failed>) -> Result<Answer, Failed> {
    let (func, isa) = (parse(text)?, isa(level)?);
    let mut code = compile(&isa, &func)?;
    change(&mut code)?;
    Ok(prove_code(&func, &code, &isa, &Options::default()))
}

fn proved(text: &str, level: &str) -> Result<(), Failed> {
    let answer = answer(text, level, |_| Ok(()))?;
    match answer.verdict {
        Verdict::Proved => Ok(()),
        _ => Err(format!("{level}: {answer}\n{text}").into()),
    }
}

/// Checks that faulty code is refuted, with a counterexample as a run line.
fn refuted(text: &str, level: &str, change: impl Fn(&mut CompiledCode) -> Result<(), Failed>) -> Result<(), Failed> {
    let answer = answer(text, level, change)?;
    match &answer.verdict {
        Verdict::Refuted { example, .. } if example.expected != example.found => Ok(()),
        _ => Err(format!("{level}: {answer}\n{text}").into()),
    }
}

/// Changes the first or last instruction for which `change` returns a replacement.
fn edit(code: &mut CompiledCode, from_end: bool, change: impl Fn(Inst) -> Option<Inst>) -> Result<(), Failed> {
    let mut offsets: Vec<usize> = (0..code.pool_start as usize).step_by(4).collect();
    if from_end {
        offsets.reverse();
    }
    for offset in offsets {
        let word = code.bytes[offset..offset + 4].try_into().map(u32::from_le_bytes)?;
        let Ok(inst) = decode(word) else { continue };
        if let Some(other) = change(inst) {
            code.bytes[offset..offset + 4].copy_from_slice(&encode(&other)?.to_le_bytes());
            return Ok(());
        }
    }
    Err("no instruction was changed".into())
}

fn is(inst: &Inst, mnemonic: &str) -> bool {
    inst.desc().mnemonic == mnemonic
}

/// Swaps the source operands.
fn swap(name: &'static str) -> impl Fn(Inst) -> Option<Inst> {
    move |mut inst| {
        let [_, a, b] = inst.operands[..] else { return None };
        if !is(&inst, name) || a == b {
            return None;
        }
        inst.operands.set(1, b);
        inst.operands.set(2, a);
        Some(inst)
    }
}

/// Increments the immediate operand of instructions whose first operand satisfies `which`.
fn add_if(name: &'static str, by: i32, which: impl Fn(Operand) -> bool) -> impl Fn(Inst) -> Option<Inst> {
    move |mut inst| {
        let at = inst.operands.iter().position(|operand| operand.imm().is_some())?;
        let number = inst.operands[at].imm()?;
        if !is(&inst, name) || !which(inst.operands[0]) {
            return None;
        }
        inst.operands.set(at, Operand::Imm(number + by));
        Some(inst)
    }
}

/// Increments the immediate operand.
fn add(name: &'static str, by: i32) -> impl Fn(Inst) -> Option<Inst> {
    add_if(name, by, |_| true)
}

/// Replaces an instruction by another one with the same operands.
fn replace(from: &'static str, to: &'static str) -> impl Fn(Inst) -> Option<Inst> {
    move |mut inst| {
        let kinds = |opcode: Opcode| opcode.desc().operands.iter().map(|operand| operand.kind);
        let other = Opcode::ALL
            .iter()
            .copied()
            .find(|&other| other.desc().mnemonic == to && kinds(other).eq(kinds(inst.opcode)))?;
        let matches = is(&inst, from);
        inst.opcode = other;
        matches.then_some(inst)
    }
}

/// Removes an instruction.
fn drop_if(name: &'static str, which: impl Fn(Operand) -> bool) -> impl Fn(Inst) -> Option<Inst> {
    move |inst| {
        let nothing = decode(u32::MAX).ok()?;
        (is(&inst, name) && which(inst.operands[0])).then_some(nothing)
    }
}

/// Returns whether the operand is a callee-saved register.
fn is_preserved(operand: Operand) -> bool {
    operand.reg().is_some_and(npu_mc::cc::is_callee_saved)
}

fn is_trap_code(operand: Operand) -> bool {
    operand.reg() == Some(Reg::S(SReg::TR))
}

const SUB: &str = "function %f(i32, i32) -> i32 {
block0(v0: i32, v1: i32):
    v2 = isub v0, v1
    return v2
}";
const OFFSET: &str = "function %f(i32) -> i32 {
block0(v0: i32):
    v1 = iconst.i32 7
    v2 = iadd v0, v1
    return v2
}";
const WIDE: &str = "function %f(i64, i64) -> i64, i64 {
block0(v0: i64, v1: i64):
    v2 = imul v0, v1
    v3 = iadd v2, v0
    v4 = isub v3, v1
    return v4, v3
}";
const SHIFTS: &str = "function %f(i64, i8) -> i64, i64, i64 {
block0(v0: i64, v1: i8):
    v2 = ishl v0, v1
    v3 = sshr v0, v1
    v4 = rotr v0, v1
    return v2, v3, v4
}";
const BRANCH: &str = "function %f(i32, i32) -> i32 {
block0(v0: i32, v1: i32):
    v2 = icmp slt v0, v1
    brif v2, block1, block2
block1:
    v3 = imul v0, v1
    jump block3(v3)
block2:
    v4 = udiv v0, v1
    jump block3(v4)
block3(v5: i32):
    return v5
}";
const MEMORY: &str = "function %f(i32, i32) {
block0(v0: i32, v1: i32):
    v2 = load.i32 aligned v0
    v3 = iadd v2, v1
    store aligned v3, v0+4
    store aligned v1, v0
    return
}";
const CALL: &str = "function %f(i32, i32) -> i32 {
    fn0 = %g(i32, i32) -> i32
block0(v0: i32, v1: i32):
    v2 = isub v0, v1
    v3 = call fn0(v2, v1)
    v4 = call fn0(v1, v3)
    v5 = iadd v4, v0
    return v5
}";
const PRESERVED: &str = "function %f(i32, i64) -> i32 {
block0(v0: i32, v1: i64):
    v2 = udiv v1, v1
    v3 = ireduce.i32 v2
    v4 = iadd v3, v0
    return v4
}";
/// The first value is live across a call of a runtime routine that clobbers few registers, and
/// across a call of a user function.
const MANY: &str = "function %f(i32, i64) -> i32 {
    fn0 = colocated %f(i32, i64) -> i32
block0(v0: i32, v1: i64):
    brif v0, block1, block2
block1:
    v2 = iconst.i32 0
    v3 = call fn0(v2, v1)
    v4 = iadd v3, v0
    return v4
block2:
    v5 = ireduce.i32 v1
    return v5
}";
const TRAPS: &str = "function %f(i32, i8) -> i32 {
block0(v0: i32, v1: i8):
    trapz v1, user3
    v2 = iconst.i32 100
    v3 = icmp ugt v0, v2
    trapnz v3, user5
    v4 = sextend.i32 v1
    return v4
}";
const CONSTANTS: &str = "function %f(i64, i32) -> i64, i64, i32, i32 {
block0(v0: i64, v1: i32):
    v2 = iconst.i64 1000000007
    v3 = iconst.i64 -7
    v4 = iconst.i32 641
    v5 = iconst.i32 -10
    v6 = udiv v0, v2
    v7 = srem v0, v3
    v8 = urem v1, v4
    v9 = sdiv v1, v5
    return v6, v7, v8, v9
}";
const LOOP: &str = "function %f(i32) -> i32 {
block0(v0: i32):
    v1 = iconst.i32 0
    v2 = iconst.i32 6
    jump block1(v1, v2)
block1(v3: i32, v4: i32):
    v5 = imul v3, v0
    v6 = iadd v5, v4
    v7 = iconst.i32 -1
    v8 = iadd v4, v7
    brif v8, block1(v6, v8), block2
block2:
    return v6
}";
const SWITCH: &str = "function %f(i32, i64) -> i64 {
block0(v0: i32, v1: i64):
    br_table v0, block4, [block1, block2, block3, block1, block2]
block1:
    v2 = bnot v1
    return v2
block2:
    v3 = popcnt v1
    return v3
block3:
    v4 = clz v1
    return v4
block4:
    return v1
}";

/// A stack slot with more alignment than the stack pointer.
const ALIGNED: &str = "function %f(i32) -> i32, i32 {
    ss0 = explicit_slot 4, align = 256
    ss1 = explicit_slot 5
block0(v0: i32):
    v1 = stack_addr.i32 ss0
    v2 = stack_addr.i32 ss1
    store v0, v1
    store v1, v2
    v3 = load.i32 v1
    v4 = iconst.i32 255
    v5 = band v1, v4
    return v3, v5
}";

/// Narrow results in memory, after those in registers.
const RESULTS: &str = "function %f(i8, i16, i64) -> i64, i64, i64, i64, i8, i16, i32 {
block0(v0: i8, v1: i16, v2: i64):
    v3 = iadd v0, v0
    v4 = imul v1, v1
    v5 = sextend.i32 v4
    return v2, v2, v2, v2, v3, v4, v5
}";

/// The callee gets copies of structures, one of them at an unaligned address.
const STRUCTURES: &str = "function %f(i32) -> i32 {
    fn0 = %g(i32 sarg(12), i32 sarg(6)) -> i32
    ss0 = explicit_slot 16
block0(v0: i32):
    v1 = stack_addr.i32 ss0
    store v0, v1
    store v0, v1+4
    store v0, v1+8
    v2 = call fn0(v1, v0)
    return v2
}";

const CONVERSIONS: &str = "function %f(f32, f64, i16) -> i16, i64, f32, f64 {
block0(v0: f32, v1: f64, v2: i16):
    v3 = fcvt_to_sint.i16 v0
    v4 = fcvt_to_uint_sat.i64 v1
    v5 = fcvt_from_sint.f32 v2
    v6 = fpromote.f64 v0
    return v3, v4, v5, v6
}";

/// Operations on floats by integer operations on the bits.
const ROUNDING: &str = "function %f(f32x16, f32x16) -> f32x16, f32x16 {
block0(v0: f32x16, v1: f32x16):
    v2 = floor v0
    v3 = fmin v0, v1
    return v2, v3
}";

/// Functions that are proved, at both optimization levels. Only the last ones need a solver.
fn proofs(has_solver: bool) -> Vec<Trial> {
    let simple = [
        ("sub", SUB),
        ("offset", OFFSET),
        ("wide", WIDE),
        ("branch", BRANCH),
        ("memory", MEMORY),
        ("call", CALL),
        ("preserved", PRESERVED),
        ("many", MANY),
        ("traps", TRAPS),
        ("loop", LOOP),
        ("aligned", ALIGNED),
        ("results", RESULTS),
        ("structures", STRUCTURES),
    ];
    let hard = [
        ("shifts", SHIFTS),
        ("constants", CONSTANTS),
        ("switch", SWITCH),
        ("conversions", CONVERSIONS),
        ("rounding", ROUNDING),
    ];
    let mut trials = Vec::new();
    for (list, runs) in [(&simple[..], true), (&hard[..], has_solver)] {
        for &(name, text) in list {
            for level in LEVELS {
                let trial = Trial::test(format!("proved::{name}::{level}"), move || proved(text, level));
                trials.push(trial.with_ignored_flag(!runs));
            }
        }
    }
    for seed in 0..12 {
        let trial = Trial::test(format!("proved::random::{seed}"), move || {
            let text = generate(seed);
            LEVELS.iter().try_for_each(|level| proved(&text, level))
        });
        trials.push(trial.with_ignored_flag(!has_solver));
    }
    trials
}

fn fault(
    name: &str,
    text: &'static str,
    level: &'static str,
    change: impl Fn(Inst) -> Option<Inst> + Send + 'static,
) -> Trial {
    // A register that is restored on several paths may be changed only on the last one.
    let from_end = name == "register_not_restored";
    Trial::test(format!("refuted::{name}::{level}"), move || {
        refuted(text, level, |code| edit(code, from_end, &change))
    })
}

/// The same code with one changed instruction: trials find the fault without a solver.
fn faults() -> Vec<Trial> {
    let mut trials = Vec::new();
    for level in LEVELS {
        let mut all = vec![
            fault("operands_swapped", SUB, level, swap("sub_i32")),
            fault("constant_off_by_one", OFFSET, level, add("addi", 1)),
            fault(
                "carry_of_the_other_compare",
                WIDE,
                level,
                replace("cmpult_i32", "cmpule_i32"),
            ),
            fault("signed_product", WIDE, level, replace("mulhu_i32", "mulhs_i32")),
            fault("condition_inverted", BRANCH, level, replace("beqz", "bnez")),
            fault("condition_inverted_2", BRANCH, level, replace("bnez", "beqz")),
            fault("compare_unsigned", BRANCH, level, replace("cmplt_i32", "cmpult_i32")),
            fault("shift_off_by_one", SHIFTS, level, add("andi", -1)),
            fault("store_dropped", MEMORY, level, drop_if("store32", |_| true)),
            fault("store_elsewhere", MEMORY, level, add("store32", 4)),
            fault("load_elsewhere", MEMORY, level, add("load32", 4)),
            fault("trap_inverted", TRAPS, level, replace("beqz", "bnez")),
            fault("trap_of_another_code", TRAPS, level, add_if("movei", 1, is_trap_code)),
            fault("register_not_saved", MANY, level, drop_if("store32", is_preserved)),
            fault("register_not_restored", MANY, level, drop_if("load32", is_preserved)),
        ];
        trials.append(&mut all);
    }
    trials
}

/// Functions that are proved without a solver, and the error if one is needed.
fn without_solver() -> Result<(), Failed> {
    let (func, isa) = (parse(SHIFTS)?, isa("none")?);
    let code = compile(&isa, &func)?;
    let options = Options {
        solver: "no-such-solver".to_owned(),
        ..Options::default()
    };
    match prove_code(&func, &code, &isa, &options).verdict {
        Verdict::Undecided(Reason::NoSolver(_)) => Ok(()),
        other => Err(format!("{other:?}").into()),
    }
}

fn main() {
    let has_solver = solver::is_installed(solver::PROGRAM);
    let mut trials = proofs(has_solver);
    trials.append(&mut faults());
    trials.push(Trial::test("without_solver", without_solver));
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}
