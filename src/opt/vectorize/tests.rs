//! Injects faults into vector loops; the checker must find them.

use super::check;
use super::emit;
use super::plan::Plan;
use crate::isa::Isa;
use crate::legalize::Legality;
use crate::opt::vectorize::check::VectorLoop;
use clif_opt::loops::{self, NaturalLoop};
use cranelift_codegen::Context;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Function, Inst, InstructionData, Opcode};
use cranelift_codegen::settings::{self, Configurable};
use std::sync::Arc;

/// Two arrays and reductions with an unknown trip count; has tests of count, alignment and overlap.
const TWO_ARRAYS: &str = "
function %f(i32, i32, i32, i32) {
block0(v0: i32, v1: i32, v2: i32, v3: i32):
    jump block1(v3)
block1(v10: i32):
    v11 = iconst.i32 2
    v12 = ishl v10, v11
    v13 = iadd v0, v12
    v14 = load.i32 notrap aligned v13
    v15 = load.i32 notrap aligned v13+4
    v16 = iadd v14, v15
    v17 = iadd v1, v12
    store notrap aligned v16, v17
    v18 = iconst.i32 1
    v19 = iadd v10, v18
    v20 = icmp ult v19, v2
    brif v20, block1(v19), block2
block2:
    return
}";

/// Elements of two sizes on one base, and a step greater than one.
const TWO_SIZES: &str = "
function %f(i32, i32, i32) {
block0(v0: i32, v1: i32, v2: i32):
    jump block1(v1)
block1(v10: i32):
    v30 = icmp slt v10, v2
    brif v30, block3, block2
block3:
    v11 = iconst.i32 1
    v12 = ushr v0, v11
    v13 = iadd v0, v10
    v14 = uload16.i32 notrap aligned v13+64
    v15 = iadd v14, v11
    v16 = imul v15, v14
    v17 = bxor v16, v15
    v21 = iadd v17, v14
    istore16 notrap aligned v21, v13+8192
    v18 = iconst.i32 2
    v19 = iadd v10, v18
    jump block1(v19)
block2:
    return
}";

fn isa() -> Arc<Isa> {
    let mut flags = settings::builder();
    flags.set("opt_level", "speed").unwrap();
    crate::isa::lookup_by_name("naplespu")
        .unwrap()
        .finish(settings::Flags::new(flags))
        .unwrap()
}

/// Vectorizes the loop of the function.
fn vectorized(text: &str) -> (Function, Vec<NaturalLoop>, VectorLoop) {
    let func = cranelift_reader::parse_functions(text).unwrap().remove(0);
    let mut ctx = Context::for_function(func);
    ctx.compute_cfg();
    ctx.compute_domtree();
    ctx.compute_loop_analysis();
    let loops = loops::find(&ctx);
    let ranges = loops::ranges(&ctx, &loops);
    let isa = isa();
    let legality = Legality::new(isa.flags(), isa.settings());
    let plan = Plan::of(&ctx, legality, &loops, &ranges, &loops[0]).unwrap();
    let made = emit::run(&mut ctx.func, &plan).unwrap();
    (ctx.func, loops, made)
}

/// Returns variants of an instruction with other constants, conditions or offsets.
fn faults(func: &Function, inst: Inst) -> Vec<InstructionData> {
    match func.dfg.insts[inst] {
        InstructionData::UnaryImm { opcode, imm } if imm.bits() != 0 => {
            // Offsets stay even: an odd offset misaligns every half-word, so that the vector loop
            // is never entered.
            let (near, part) = if imm.bits() < 256 { (1, 2) } else { (2, 3) };
            let mut others = vec![imm.bits() + near, imm.bits() - near, imm.bits() / part];
            others.dedup();
            let constant = |bits: i64| InstructionData::UnaryImm {
                opcode,
                imm: bits.into(),
            };
            others.into_iter().map(constant).collect()
        }
        InstructionData::IntCompare { opcode, args, .. } => [IntCC::Equal, IntCC::NotEqual, IntCC::UnsignedLessThan]
            .map(|cond| InstructionData::IntCompare { opcode, args, cond })
            .to_vec(),
        InstructionData::Binary {
            opcode: Opcode::Isub | Opcode::Iadd,
            args: [a, b],
        } => vec![InstructionData::Binary {
            opcode: Opcode::Isub,
            args: [b, a],
        }],
        _ => Vec::new(),
    }
}

/// Returns the number of faults in the vector loop, and the faults that the checker misses as text.
fn unnoticed(text: &str) -> (usize, Vec<String>) {
    let (func, loops, made) = vectorized(text);
    check::check(&func, &loops, &loops[0], &made).unwrap();
    let mut all = 0;
    let mut missed = Vec::new();
    for block in [made.decide, made.setup, made.body, made.after].into_iter().flatten() {
        for inst in func.layout.block_insts(block) {
            for fault in faults(&func, inst) {
                if fault == func.dfg.insts[inst] {
                    continue;
                }
                let mut faulty = func.clone();
                faulty.dfg.insts[inst] = fault;
                all += 1;
                if check::check(&faulty, &loops, &loops[0], &made).is_ok() {
                    let (before, after) = (func.dfg.display_inst(inst), faulty.dfg.display_inst(inst));
                    missed.push(format!("{block}: {before} -> {after}"));
                }
            }
        }
    }
    (all, missed)
}

/// Some variants are not wrong: stricter tests, tests that never succeed, and compares that are
/// equivalent where the other tests succeed. The checker does not follow values in lanes.
#[test]
fn the_check_finds_faults_in_conditions_and_addresses() {
    for (text, allowed) in [(TWO_SIZES, 15), (TWO_ARRAYS, 12)] {
        let (all, missed) = unnoticed(text);
        assert!(all > 3 * allowed, "{all} faults");
        assert!(missed.len() <= allowed, "of {all} not noticed:\n{}", missed.join("\n"));
    }
}
