//! Injects faults into the tests before versioned loops; the checker must find them.

use super::duplicate::{self, CrossBlockUses};
use super::form::{self, LoopNest};
use super::plan::Plan;
use super::{check, limits};
use crate::loops::{self, NaturalLoop};
use cranelift_codegen::Context;
use cranelift_codegen::ir::condcodes::{CondCode, IntCC};
use cranelift_codegen::ir::{Function, Inst, InstructionData, Opcode};

/// Checks an index against a bound, and a sum with a base against another bound.
const BOUNDS: &str = "
function %f(i32, i32, i32, i32, i32) {
block0(v0: i32, v1: i32, v2: i32, v3: i32, v4: i32):
    jump block1(v1)
block1(v10: i32):
    v11 = icmp uge v10, v3
    trapnz v11, heap_oob
    v12 = iadd v10, v4
    v13 = icmp ugt v12, v2
    trapnz v13, user1
    v14 = iconst.i32 2
    v15 = ishl v10, v14
    v16 = iadd v0, v15
    store notrap aligned v12, v16
    v17 = iconst.i32 1
    v18 = iadd v10, v17
    v19 = icmp slt v18, v2
    brif v19, block1(v18), block2
block2:
    return
}";

/// A variable that counts down in steps of three.
const DOWN: &str = "
function %f(i32, i32, i32, i32) {
block0(v0: i32, v1: i32, v2: i32, v3: i32):
    jump block1(v1)
block1(v10: i32):
    v11 = icmp ugt v10, v3
    trapnz v11, heap_oob
    v14 = iconst.i32 2
    v15 = ishl v10, v14
    v16 = iadd v0, v15
    store notrap aligned v10, v16
    v17 = iconst.i32 -3
    v18 = iadd v10, v17
    v19 = icmp ugt v18, v2
    brif v19, block1(v18), block2
block2:
    return
}";

/// An invariant alignment check, and a bound for four times the index.
const ALIGNED: &str = "
function %f(i32, i32, i32, i32) -> i32 {
block0(v0: i32, v1: i32, v2: i32, v3: i32):
    v90 = iconst.i32 0
    jump block1(v90, v90)
block1(v10: i32, v11: i32):
    v12 = iconst.i32 2
    v13 = ishl v10, v12
    v14 = iadd v13, v1
    v15 = iconst.i32 3
    v16 = band v14, v15
    brif v16, block3, block4
block3 cold:
    v17 = iconst.i32 256
    v18 = iadd v11, v17
    jump block5(v18)
block4:
    v19 = icmp ugt v13, v3
    trapnz v19, heap_oob
    v20 = iconst.i32 1
    v21 = iadd v11, v20
    jump block5(v21)
block5(v22: i32):
    v23 = iadd v0, v13
    store notrap aligned v22, v23
    v24 = iconst.i32 1
    v25 = iadd v10, v24
    v26 = icmp ne v25, v2
    brif v26, block1(v25, v22), block2
block2:
    return v22
}";

/// Versions the loop. Returns the function before and after, and the loop.
fn versioned(text: &str) -> (Function, Function, NaturalLoop) {
    let func = cranelift_reader::parse_functions(text).unwrap().remove(0);
    let mut ctx = Context::for_function(func);
    ctx.compute_cfg();
    ctx.compute_domtree();
    ctx.compute_loop_analysis();
    let mut loops = loops::find(&ctx);
    let induction_variables = form::induction_variables(&ctx.func, &loops);
    let exits = limits::exits(&ctx, &loops);
    let written = form::written(&ctx.func, &loops[0]);
    let nest = LoopNest {
        func: &ctx.func,
        cfg: &ctx.cfg,
        loops: &loops,
        induction_variables: &induction_variables,
        outermost: 0,
        written: written.as_ref(),
    };
    let plan = Plan::of(&nest, &exits);
    assert!(!plan.guards.is_empty());
    let uses = CrossBlockUses::of(&ctx.func);
    let before = ctx.func.clone();
    duplicate::run(&mut ctx, &loops[0], &plan, &uses).unwrap();
    (before, ctx.func, loops.swap_remove(0))
}

/// Returns faulty variants of a compare or constant: always true, off by one, or another condition.
fn faults(func: &Function, inst: Inst) -> Vec<InstructionData> {
    match func.dfg.insts[inst] {
        InstructionData::UnaryImm { opcode, imm } => [1, -1]
            .map(|more| InstructionData::UnaryImm {
                opcode,
                imm: (imm.bits() + more).into(),
            })
            .to_vec(),
        InstructionData::IntCompare { opcode, args, cond } => {
            let equal = [
                IntCC::UnsignedGreaterThanOrEqual,
                IntCC::UnsignedLessThanOrEqual,
                IntCC::SignedGreaterThanOrEqual,
                IntCC::SignedLessThanOrEqual,
            ];
            let wider = equal.into_iter().filter(|equal| equal.without_equal() == cond);
            let compare = |cond| InstructionData::IntCompare { opcode, args, cond };
            let always = InstructionData::UnaryImm {
                opcode: Opcode::Iconst,
                imm: 1.into(),
            };
            wider.map(compare).chain([compare(cond.complement()), always]).collect()
        }
        _ => Vec::new(),
    }
}

/// Returns the number of faults, and the faults that the checker misses as text.
fn unnoticed(text: &str) -> (usize, Vec<String>) {
    let (before, after, lp) = versioned(text);
    check::versioned(&before, &after, &lp).unwrap();
    let decide = after.layout.prev_block(lp.header).unwrap();
    let mut all = 0;
    let mut missed = Vec::new();
    for inst in after.layout.block_insts(decide) {
        for fault in faults(&after, inst) {
            let mut faulty = after.clone();
            faulty.dfg.insts[inst] = fault;
            all += 1;
            if check::versioned(&before, &faulty, &lp).is_ok() {
                let (was, is) = (after.dfg.display_inst(inst), faulty.dfg.display_inst(inst));
                missed.push(format!("{was} -> {is}"));
            }
        }
    }
    (all, missed)
}

/// Some variants are not wrong, or differ only after millions of iterations: stricter tests,
/// redundant tests, and tests that keep a product of the trip count below 2^31.
#[test]
fn the_check_finds_faults_in_the_tests_before_a_loop() {
    for (text, allowed) in [(BOUNDS, 6), (DOWN, 15), (ALIGNED, 10)] {
        let (all, missed) = unnoticed(text);
        assert!(all >= 20, "{all} faults");
        assert!(missed.len() <= allowed, "of {all} not noticed:\n{}", missed.join("\n"));
    }
}
