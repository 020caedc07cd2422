//! Functions larger than the reach of a branch, 128 KiB in either direction. They are generated
//! because their text would be too long.

use cranelift_codegen::data_value::DataValue;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{
    AbiParam, Block, ExtFuncData, ExternalName, Function, InstBuilder, JumpTableData, Signature, TrapCode,
    UserFuncName, Value, types,
};
use cranelift_codegen::isa::CallConv;
use cranelift_codegen::settings::{self, Configurable};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use cranelift_naplespu::isa;
use naplespu_jit::{Program, RunError};

/// The reach of a branch in bytes.
const REACH: usize = 128 << 10;

/// The settings of every test: `opt_level` and `regalloc_algorithm`.
const SETTINGS: [(&str, &str); 3] = [
    ("none", "single_pass"),
    ("none", "backtracking"),
    ("speed", "backtracking"),
];

fn program((opt_level, algorithm): (&str, &str)) -> Program {
    let mut flags = settings::builder();
    flags.set("opt_level", opt_level).unwrap();
    flags.set("regalloc_algorithm", algorithm).unwrap();
    Program::with_config(
        isa::lookup_by_name("naplespu")
            .unwrap()
            .finish(settings::Flags::new(flags))
            .unwrap(),
        npu_sim::Config::testing(1),
    )
}

/// Builds a function with `params` word parameters and one word result.
fn function(name: &str, params: usize, build: impl FnOnce(&mut FunctionBuilder<'_>, &[Value])) -> Function {
    let mut signature = Signature::new(CallConv::SystemV);
    signature.params.resize(params, AbiParam::new(types::I32));
    signature.returns.push(AbiParam::new(types::I32));
    let mut function = Function::with_name_signature(UserFuncName::testcase(name), signature);
    let mut context = FunctionBuilderContext::new();
    let mut builder = FunctionBuilder::new(&mut function, &mut context);
    let entry = builder.create_block();
    builder.append_block_params_for_function_params(entry);
    builder.switch_to_block(entry);
    let params = builder.block_params(entry).to_vec();
    build(&mut builder, &params);
    builder.seal_all_blocks();
    let isa = isa::lookup_by_name("naplespu")
        .unwrap()
        .finish(settings::Flags::new(settings::builder()))
        .unwrap();
    builder.finalize(isa.frontend_config());
    function
}

fn constant(b: &mut FunctionBuilder<'_>, number: u32) -> Value {
    b.ins().iconst(types::I32, i64::from(number))
}

fn word(number: u32) -> DataValue {
    DataValue::I32(number.cast_signed())
}

fn call(program: &mut Program, name: &str, args: &[u32]) -> Result<u32, RunError> {
    let args: Vec<DataValue> = args.iter().copied().map(word).collect();
    match program.call(name, &args)?.as_slice() {
        [DataValue::I32(result)] => Ok(result.cast_unsigned()),
        other => panic!("one word expected, not {other:?}"),
    }
}

/// Returns the constants of a step in a block: an odd factor and a summand, small enough for
/// immediates.
fn numbers(block: u32, step: u32) -> (u32, u32) {
    let mixed = (block * 1009 + step + 1).wrapping_mul(0x9e37_79b1);
    (mixed >> 26 | 1, mixed >> 10 & 0x7f)
}

/// Emits long code that the optimizer cannot simplify: four instructions for each step.
fn mix(b: &mut FunctionBuilder<'_>, block: u32, steps: u32, mut x: Value) -> Value {
    for step in 0..steps {
        let (factor, summand) = numbers(block, step);
        let factor = constant(b, factor);
        let summand = constant(b, summand);
        let eleven = constant(b, 11);
        let product = b.ins().imul(x, factor);
        let sum = b.ins().iadd(product, summand);
        let high = b.ins().ushr(sum, eleven);
        x = b.ins().bxor(sum, high);
    }
    x
}

fn mixed(block: u32, steps: u32, mut x: u32) -> u32 {
    for step in 0..steps {
        let (factor, summand) = numbers(block, step);
        x = x.wrapping_mul(factor).wrapping_add(summand);
        x ^= x >> 11;
    }
    x
}

fn blocks(b: &mut FunctionBuilder<'_>, count: u32) -> Vec<Block> {
    (0..count).map(|_| b.create_block()).collect()
}

fn table(b: &mut FunctionBuilder<'_>, index: Value, default: Block, targets: &[Block]) {
    let default = b.func.dfg.block_call(default, &[]);
    let targets: Vec<_> = targets.iter().map(|&t| b.func.dfg.block_call(t, &[])).collect();
    let table = b.create_jump_table(JumpTableData::new(default, &targets));
    b.ins().br_table(index, table);
}

fn trap(code: u8) -> TrapCode {
    TrapCode::user(code).unwrap()
}

fn assert_trap(result: Result<u32, RunError>, function: &str, code: u8) {
    match result {
        Err(RunError::Trap(report)) => {
            assert_eq!(report.code, Some(trap(code)));
            assert_eq!(report.function.as_deref(), Some(function));
            assert!(report.inst.is_some(), "no instruction is known for the trap");
        }
        other => panic!("trap user{code} expected, not {other:?}"),
    }
}

/// The number of blocks of `walk`, and the mixing steps in each.
const WALK_BLOCKS: u32 = 40;
const WALK_STEPS: u32 = 500;

/// Returns the successors of a block: near and far, forwards and backwards.
fn ways(block: u32) -> [u32; 2] {
    [
        (block * 7 + 3) % WALK_BLOCKS,
        (block * 11 + WALK_BLOCKS / 2) % WALK_BLOCKS,
    ]
}

/// Builds `walk(start, x, turns, forbidden)`. It goes from block to block by a bit of the value,
/// until `turns` blocks are done. It traps if the start block does not exist, and if the result of
/// a block is `forbidden`.
fn walk() -> Function {
    function("walk", 4, |b, params| {
        let &[start, x, turns, forbidden] = params else {
            panic!("four parameters")
        };
        let x_var = b.declare_var(types::I32);
        let turns_var = b.declare_var(types::I32);
        b.def_var(x_var, x);
        b.def_var(turns_var, turns);
        let all = blocks(b, WALK_BLOCKS);
        let done = b.create_block();
        let nowhere = b.create_block();
        table(b, start, nowhere, &all);
        for (number, &block) in (0u32..).zip(&all) {
            b.switch_to_block(block);
            let x = b.use_var(x_var);
            let x = mix(b, number, WALK_STEPS, x);
            b.def_var(x_var, x);
            let bad = b.ins().icmp(IntCC::Equal, x, forbidden);
            b.ins().trapnz(bad, trap(6));
            let turns = b.use_var(turns_var);
            let one = constant(b, 1);
            let left = b.ins().isub(turns, one);
            b.def_var(turns_var, left);
            let go_on = b.create_block();
            b.ins().brif(left, go_on, &[], done, &[]);
            b.switch_to_block(go_on);
            let bit = b.ins().band(x, one);
            let [even, odd] = ways(number);
            b.ins().brif(bit, all[odd as usize], &[], all[even as usize], &[]);
        }
        b.switch_to_block(done);
        let x = b.use_var(x_var);
        b.ins().return_(&[x]);
        b.switch_to_block(nowhere);
        b.ins().trap(trap(5));
    })
}

/// Returns the value after each block of the walk.
fn walked(start: u32, mut x: u32, turns: u32) -> Vec<u32> {
    let mut block = start;
    (0..turns)
        .map(|_| {
            x = mixed(block, WALK_STEPS, x);
            block = ways(block)[(x & 1) as usize];
            x
        })
        .collect()
}

#[test]
fn branches_across_a_large_function() {
    for setting in SETTINGS {
        let mut program = program(setting);
        program.define(&walk()).unwrap();
        let size = program.code("walk").unwrap().bytes.len();
        assert!(size > 2 * REACH, "{setting:?}: {size} bytes are too few for this test");
        for start in 0..WALK_BLOCKS {
            let passed = walked(start, start * 77 + 1, 30);
            let result = call(&mut program, "walk", &[start, start * 77 + 1, 30, 0]).unwrap();
            assert_eq!(result, passed[29], "{setting:?}, from block {start}");
        }
        for start in [WALK_BLOCKS, WALK_BLOCKS + 1, u32::MAX] {
            assert_trap(call(&mut program, "walk", &[start, 1, 1, 0]), "walk", 5);
        }
        // The trap sequence is far from the block that traps.
        for turn in 0..10 {
            let forbidden = walked(3, 12345, 30)[turn];
            assert_trap(call(&mut program, "walk", &[3, 12345, 30, forbidden]), "walk", 6);
        }
        let code = program.code("walk").unwrap();
        let traps = code.traps.iter().filter(|t| t.code == trap(6)).count();
        assert_eq!(traps, WALK_BLOCKS as usize, "{setting:?}: one trap site a block");
        let others = code.traps.iter().filter(|t| t.code == trap(5)).count();
        assert!(
            (1..=2).contains(&others),
            "{setting:?}: {others} sites of the other trap"
        );
    }
}

/// A table with some targets out of reach, and one directly after it.
#[test]
fn table_with_far_targets() {
    const TARGETS: u32 = 24;
    const STEPS: u32 = 600;
    let large = function("choose", 2, |b, params| {
        let all = blocks(b, TARGETS);
        let other = b.create_block();
        table(b, params[0], other, &all);
        for (number, &block) in (0u32..).zip(&all) {
            b.switch_to_block(block);
            let x = mix(b, number, STEPS, params[1]);
            b.ins().return_(&[x]);
        }
        b.switch_to_block(other);
        let x = mix(b, TARGETS, 1, params[1]);
        b.ins().return_(&[x]);
    });
    for setting in SETTINGS {
        let mut program = program(setting);
        program.define(&large).unwrap();
        assert!(program.code("choose").unwrap().bytes.len() > REACH * 3 / 2);
        for index in 0..TARGETS {
            let result = call(&mut program, "choose", &[index, 99]).unwrap();
            assert_eq!(result, mixed(index, STEPS, 99), "{setting:?}, entry {index}");
        }
        for index in [TARGETS, u32::MAX] {
            assert_eq!(
                call(&mut program, "choose", &[index, 99]).unwrap(),
                mixed(TARGETS, 1, 99),
                "{setting:?}"
            );
        }
    }
}

/// A table with so many entries that it is split into several tables. Each entry leads to the
/// correct block.
#[test]
fn table_with_many_entries() {
    const ENTRIES: u32 = 10_000;
    const TARGETS: u32 = 7;
    let large = function("many", 1, |b, params| {
        let all = blocks(b, TARGETS);
        let other = b.create_block();
        let entries: Vec<Block> = (0..ENTRIES).map(|entry| all[(entry % TARGETS) as usize]).collect();
        table(b, params[0], other, &entries);
        for (number, &block) in (0u32..).zip(&all) {
            b.switch_to_block(block);
            let x = constant(b, 100 + number);
            b.ins().return_(&[x]);
        }
        b.switch_to_block(other);
        let x = constant(b, 99);
        b.ins().return_(&[x]);
    });
    for setting in SETTINGS {
        let mut program = program(setting);
        program.define(&large).unwrap();
        // Test the indices around each possible split of the table, and a sample of the others.
        let near = (1..=ENTRIES / 1024).flat_map(|part| (0..6).map(move |at| 1024 * part + at - 3));
        for index in near
            .chain((0..ENTRIES).step_by(131))
            .chain([0, 1, ENTRIES - 2, ENTRIES - 1])
        {
            let result = call(&mut program, "many", &[index]).unwrap();
            assert_eq!(result, 100 + index % TARGETS, "{setting:?}, entry {index}");
        }
        for index in [ENTRIES, ENTRIES + 1, 1 << 20, u32::MAX] {
            assert_eq!(
                call(&mut program, "many", &[index]).unwrap(),
                99,
                "{setting:?}, {index}"
            );
        }
    }
}

/// A table whose targets are all different and out of reach. One table has no room for so many
/// sequences after it.
#[test]
fn table_with_many_far_entries() {
    const ENTRIES: u32 = 9_000;
    let large = function("far", 2, |b, params| {
        let all = blocks(b, ENTRIES);
        let other = b.create_block();
        table(b, params[0], other, &all);
        b.switch_to_block(other);
        let x = mix(b, 0, REACH as u32 / 16, params[1]);
        b.ins().return_(&[x]);
        for (number, &block) in (0u32..).zip(&all) {
            b.switch_to_block(block);
            let number = constant(b, number);
            let x = b.ins().bxor(params[1], number);
            b.ins().return_(&[x]);
        }
    });
    let mut program = program(("none", "single_pass"));
    program.define(&large).unwrap();
    for index in (0..ENTRIES).step_by(613).chain([ENTRIES - 1]) {
        let result = call(&mut program, "far", &[index, 99]).unwrap();
        assert_eq!(result, index ^ 99, "entry {index}");
    }
}

/// Distances around the reach in both directions, in steps of one instruction.
#[test]
fn around_the_reach() {
    let first = REACH / 4 - 12;
    for filler in first..first + 20 {
        let mut program = program(("none", "single_pass"));
        // The edges have no arguments, so that only the filler lies between branch and target.
        let forwards = function("forwards", 2, |b, params| {
            let filled = b.create_block();
            let end = b.create_block();
            let address = params[1];
            b.ins().brif(params[0], end, &[], filled, &[]);
            b.switch_to_block(filled);
            fill(b, address, filler);
            b.ins().return_(&[address]);
            b.switch_to_block(end);
            b.ins().return_(&[params[0]]);
        });
        let backwards = function("backwards", 1, |b, params| {
            let head = b.create_block();
            let end = b.create_block();
            let left = b.declare_var(types::I32);
            b.def_var(left, params[0]);
            b.ins().jump(head, &[]);
            b.switch_to_block(head);
            let now = b.use_var(left);
            fill_unused(b, now, filler);
            let minus = constant(b, u32::MAX);
            let next = b.ins().iadd(now, minus);
            b.def_var(left, next);
            b.ins().brif(next, head, &[], end, &[]);
            b.switch_to_block(end);
            b.ins().return_(&[next]);
        });
        program.define(&forwards).unwrap();
        program.define(&backwards).unwrap();
        // Nothing else uses this address.
        assert_eq!(
            call(&mut program, "forwards", &[7, 0x4000_0000]).unwrap(),
            7,
            "{filler}"
        );
        assert_eq!(
            call(&mut program, "forwards", &[0, 0x4000_0000]).unwrap(),
            0x4000_0000,
            "{filler}"
        );
        assert_eq!(call(&mut program, "backwards", &[3]).unwrap(), 0, "{filler}");
    }
}

/// Emits stores of one instruction each.
fn fill(b: &mut FunctionBuilder<'_>, address: Value, count: usize) {
    for _ in 0..count {
        b.ins()
            .store(cranelift_codegen::ir::MemFlagsData::trusted(), address, address, 0);
    }
}

/// Emits stores to an address that nothing else uses.
fn fill_unused(b: &mut FunctionBuilder<'_>, value: Value, count: usize) {
    let address = constant(b, 0x4000_0000);
    for _ in 0..count {
        b.ins()
            .store(cranelift_codegen::ir::MemFlagsData::trusted(), value, address, 0);
    }
}

/// Calls in the middle of a function, out of reach of the veneers on both sides.
#[test]
fn calls_in_the_middle() {
    const STEPS: u32 = 25_000;
    for settings in SETTINGS {
        let mut program = program(settings);
        let callee = function("callee", 1, |b, params| {
            let one = constant(b, 1);
            let sum = b.ins().iadd(params[0], one);
            b.ins().return_(&[sum]);
        });
        let caller = function("caller", 2, |b, params| {
            let mut signature = Signature::new(CallConv::SystemV);
            signature.params.push(AbiParam::new(types::I32));
            signature.returns.push(AbiParam::new(types::I32));
            let signature = b.import_signature(signature);
            let callee = b.import_function(ExtFuncData {
                name: ExternalName::testcase("callee"),
                signature,
                colocated: true,
                patchable: false,
            });
            let mut value = params[0];
            for step in 0..STEPS {
                value = b.ins().imul(value, params[1]);
                value = b.ins().iadd(value, params[0]);
                if step % (STEPS / 5) == 0 {
                    let call = b.ins().call(callee, &[value]);
                    value = b.inst_results(call)[0];
                }
            }
            b.ins().return_(&[value]);
        });
        program.define(&caller).unwrap();
        program.define(&callee).unwrap();
        let size = program.code("caller").unwrap().bytes.len();
        assert!(size > 3 * REACH / 2, "{settings:?}: {size}");
        for (a, b) in [(3, 5), (77, 0xffff_fffb)] {
            let mut value: u32 = a;
            for step in 0..STEPS {
                value = value.wrapping_mul(b).wrapping_add(a);
                value = value.wrapping_add(u32::from(step % (STEPS / 5) == 0));
            }
            assert_eq!(call(&mut program, "caller", &[a, b]).unwrap(), value, "{settings:?}");
        }
    }
}
