//! Large functions: they compile, and what that takes grows with their size and no faster.
//!
//! Counted is memory, which is the same on any machine; `cargo run --release --manifest-path benches/peer/Cargo.toml growth` measures
//! time as well.

#[path = "../benches/growth/shapes.rs"]
mod shapes;

use cranelift_codegen::Context;
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::data_value::DataValue;
use cranelift_codegen::ir::Function;
use cranelift_codegen::settings::{self, Configurable, Flags};
use cranelift_naplespu::remarks::{LoopOutcome, LoopRemark, Reason};
use cranelift_naplespu::{Compiler, Isa, isa};
use naplespu_jit::Program;
use shapes::{SHAPES, Shape};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::Arc;

/// Counts what each thread allocates.
struct Counting;

/// Of a thread: how often it allocated, bytes in all, bytes in use, and the most that were.
#[derive(Clone, Copy, Default)]
struct Memory {
    blocks: usize,
    bytes: usize,
    used: usize,
    peak: usize,
}

thread_local! {
    static MEMORY: Cell<Memory> = const { Cell::new(Memory { blocks: 0, bytes: 0, used: 0, peak: 0 }) };
}

fn count(more: usize, less: usize) {
    let mut memory = MEMORY.get();
    memory.blocks += usize::from(more > 0);
    memory.bytes += more;
    memory.used = (memory.used + more).saturating_sub(less);
    memory.peak = memory.peak.max(memory.used);
    MEMORY.set(memory);
}

// SAFETY: the system's allocator does the work.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), 0);
        // SAFETY: as the caller's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        count(0, layout.size());
        // SAFETY: as the caller's.
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size, layout.size());
        // SAFETY: as the caller's.
        unsafe { System.realloc(block, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn target(level: &str, allocator: &str, single_pass_above: u32) -> Arc<Isa> {
    let mut flags = settings::builder();
    flags.set("opt_level", level).unwrap();
    flags.set("regalloc_algorithm", allocator).unwrap();
    flags.set("enable_verifier", "false").unwrap();
    let mut builder = isa::lookup_by_name("naplespu").unwrap();
    builder
        .set("single_pass_above", &single_pass_above.to_string())
        .unwrap();
    builder.finish(Flags::new(flags)).unwrap()
}

fn function(shape: &str, count: usize) -> Function {
    let shape = SHAPES.iter().find(|known| known.name == shape).unwrap();
    let mut functions = cranelift_reader::parse_functions(&(shape.text)(count)).unwrap();
    functions.pop().unwrap()
}

fn bytes(isa: &Isa, func: &Function) -> Vec<u8> {
    let mut ctx = Context::for_function(func.clone());
    isa.compile(&mut ctx, &mut ControlPlane::default()).unwrap().bytes
}

/// What a new compiler allocates for the function, for each CLIF instruction: blocks, bytes in all, most bytes at once.
fn memory(isa: &Isa, func: &Function) -> [f64; 3] {
    let mut ctx = Context::for_function(func.clone());
    let before = MEMORY.get();
    MEMORY.set(Memory {
        peak: before.used,
        ..before
    });
    Compiler::new()
        .compile(isa, &mut ctx, &mut ControlPlane::default())
        .unwrap();
    let after = MEMORY.get();
    let clif = func.dfg.num_insts() as f64;
    [
        after.blocks - before.blocks,
        after.bytes - before.bytes,
        after.peak - before.used,
    ]
    .map(|figure| figure as f64 / clif)
}

/// Four times the code takes four times the memory, not sixteen times.
#[test]
fn memory_grows_with_the_code() {
    let mut faults = String::new();
    for Shape { name, about, text: _ } in SHAPES {
        for level in ["none", "speed"] {
            let isa = target(level, "backtracking", 2_000);
            let [small, large] = [3_000, 12_000].map(|size| memory(&isa, &function(name, size)));
            for (figure, (small, large)) in ["blocks", "bytes", "peak"]
                .into_iter()
                .zip(small.into_iter().zip(large))
            {
                // Of all that Cranelift's simplification allocates some grows with the square of the number of blocks.
                if level == "speed" && figure == "bytes" {
                    continue;
                }
                // All is copied again where branches do not reach, and a table that doubles may have done so a moment ago.
                let factor = match figure {
                    "blocks" => 1.5,
                    "peak" => 2.0,
                    _ => 2.5,
                };
                if large > factor * small + 1.0 {
                    faults += &format!(
                        "{name} ({about}), {level}: {figure} for a CLIF instruction: {small:.1}, then {large:.1}\n"
                    );
                }
            }
        }
    }
    assert!(faults.is_empty(), "{faults}");
}

/// Tables of this length were refused, or never done with, when their targets are far away.
#[test]
fn long_branch_tables() {
    for entries in [8_000i32, 9_000, 33_000] {
        let func = function("br_table", 4 * entries as usize);
        assert_eq!(
            func.dfg.jump_tables.values().next().unwrap().as_slice().len(),
            entries as usize
        );
        for level in ["none", "speed"] {
            let mut program = Program::new(target(level, "single_pass", 0));
            program.define(&func).unwrap();
            let mut call = |x: i32| {
                let results = program.call("f", &[DataValue::I32(x), DataValue::I32(3)]).unwrap();
                let [DataValue::I32(result)] = results[..] else {
                    panic!("{results:?}")
                };
                result
            };
            for x in [0, 1, 4_095, 4_096, 4_097, 7_999, 8_191, 8_192, entries - 1] {
                let expected = if x < entries { x.wrapping_mul(3) ^ x } else { 3 };
                assert_eq!(call(x), expected, "{entries} entries, {level}: {x}");
            }
            for x in [entries, entries + 1, 65_536, i32::MAX, i32::MIN, -1] {
                assert_eq!(call(x), 3, "{entries} entries, {level}: {x}");
            }
        }
    }
}

/// Above the size that the setting says, and only there, the other allocator works.
#[test]
fn large_functions_are_allocated_in_a_single_pass() {
    for (shape, small, large) in [
        ("i32", 2_000, 120_000),
        ("live values", 500, 8_000),
        ("blocks", 500, 30_000),
        ("nested loops", 500, 30_000),
    ] {
        let backtracking = |above| target("none", "backtracking", above);
        let single_pass = target("none", "single_pass", 0);
        let func = function(shape, small);
        let [usual, never] = [100_000, 0].map(|above| bytes(&backtracking(above), &func));
        let always = bytes(&single_pass, &func);
        assert_eq!(usual, never, "{shape}");
        assert_eq!(bytes(&backtracking(100), &func), always, "{shape}");
        assert_ne!(usual, always, "{shape}");
        let func = function(shape, large);
        assert_eq!(
            bytes(&backtracking(100_000), &func),
            bytes(&single_pass, &func),
            "{shape}"
        );
    }
}

/// Nothing recurses over the function: a small stack is enough for all shapes.
#[test]
fn a_small_stack_is_enough() {
    let work = || {
        for shape in SHAPES {
            for level in ["none", "speed"] {
                bytes(&target(level, "backtracking", 2_000), &function(shape.name, 6_000));
            }
        }
    };
    std::thread::Builder::new()
        .stack_size(256 << 10)
        .spawn(work)
        .unwrap()
        .join()
        .unwrap();
}

/// A function of so many loops over arrays, one after the other.
fn array_loops(count: usize) -> Function {
    let mut text = "function %loops(i32, i32) {\nblock0(v0: i32, v1: i32):\n    jump block1\n".to_owned();
    for number in 0..count {
        let (entry, body, value) = (2 * number + 1, 2 * number + 2, 10 * (number + 1));
        let [zero, index, at, old, new, four, next, goes_on] = std::array::from_fn(|place| value + place);
        text += &format!(
            "block{entry}:
                v{zero} = iconst.i32 0
                jump block{body}(v{zero})
            block{body}(v{index}: i32):
                v{at} = iadd v0, v{index}
                v{old} = load.i32 notrap aligned v{at}
                v{new} = iadd v{old}, v1
                store notrap aligned v{new}, v{at}
                v{four} = iconst.i32 4
                v{next} = iadd v{index}, v{four}
                v{goes_on} = icmp ult v{next}, v1
                brif v{goes_on}, block{body}(v{next}), block{}\n",
            entry + 2
        );
    }
    text += &format!("block{}:\n    return\n}}\n", 2 * count + 1);
    cranelift_reader::parse_functions(&text).unwrap().pop().unwrap()
}

/// After each loop that is vectorised all are looked at again, so their number is bounded; the others say so.
#[test]
fn not_all_of_many_loops_are_vectorised() {
    let isa = target("speed", "backtracking", 0);
    let mut ctx = Context::for_function(array_loops(70));
    let code = isa.compile(&mut ctx, &mut ControlPlane::default()).unwrap();
    let vectorised = |remark: &&LoopRemark| matches!(remark.outcome, LoopOutcome::Vectorised(_));
    assert_eq!(code.loops.iter().filter(vectorised).count(), 64);
    let others: Vec<LoopOutcome> = code
        .loops
        .iter()
        .filter(|remark| !vectorised(remark))
        .map(|remark| remark.outcome.clone())
        .collect();
    assert_eq!(others, vec![LoopOutcome::Scalar(Reason::ManyLoops(64)); 6]);
}
