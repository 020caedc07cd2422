//! Tests of imports of the runtime and of library calls.

use super::*;
use cranelift_codegen::ir::InstBuilder;
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};

#[test]
fn imports_from_the_runtime_and_of_the_machine() {
    let mut module = module();
    module.import_runtime();
    let mut signature = words(2, 1);
    signature.call_conv = CallConv::Probestack;
    let divide = declare(&mut module, "__npu_udiv32", Linkage::Import, &signature);
    let raw = declare(&mut module, "__builtin_npu_raw_itof", Linkage::Import, &words(1, 1));
    let mut ctx = module.make_context();
    ctx.func.signature = words(2, 2);
    let divide_in = module.declare_func_in_func(divide, &mut ctx.func);
    let raw_in = module.declare_func_in_func(raw, &mut ctx.func);
    let mut builder_context = FunctionBuilderContext::new();
    let mut b = FunctionBuilder::new(&mut ctx.func, &mut builder_context);
    let entry = b.create_block();
    b.append_block_params_for_function_params(entry);
    b.switch_to_block(entry);
    let params = b.block_params(entry).to_vec();
    let quotient = b.ins().call(divide_in, &params);
    let quotient = b.inst_results(quotient)[0];
    let float = b.ins().call(raw_in, &[quotient]);
    let float = b.inst_results(float)[0];
    b.ins().return_(&[quotient, float]);
    b.seal_all_blocks();
    b.finalize(module.target_config());
    let func = declare(&mut module, "ratio", Linkage::Export, &words(2, 2));
    module.define_function(func, &mut ctx).unwrap();
    module.finalize_definitions().unwrap();
    let results = module.call(func, &[word(100), word(7)]).unwrap();
    assert_eq!(results, [word(14), word(14f32.to_bits() as i32)]);
    // The host can also call routines without users.
    let remainder = declare(&mut module, "__npu_urem32", Linkage::Preemptible, &signature);
    let memset = declare(&mut module, "memset", Linkage::Import, &words(3, 1));
    let buffer = module.allocate(4, 4).unwrap();
    module.call(memset, &[word(buffer as i32), word(1), word(4)]).unwrap();
    assert_eq!(module.read_word(buffer), 0x0101_0101);
    let refers = "function %refers(i32, i32) -> i32 {
        fn0 = %__npu_urem32(i32, i32) -> i32 probestack
    block0(v0: i32, v1: i32):
        v2 = call fn0(v0, v1)
        return v2
    }";
    let refers = define(&mut module, refers);
    assert_eq!(call(&mut module, refers, &[100, 7]).unwrap(), 2);
    assert_eq!(module.call(remainder, &[word(9), word(5)]).unwrap(), [word(4)]);
    assert_eq!(module.call(divide, &[word(-1), word(16)]).unwrap(), [word(0x0fff_ffff)]);
    assert_eq!(
        module.call_by_name("__npu_udiv32", &[word(9), word(3)]).unwrap(),
        [word(3)]
    );
    assert!(matches!(module.call(raw, &[word(1)]), Err(RunError::Undefined { .. })));
}

/// A program may define functions with the names of routines; compiled code still calls the
/// runtime's routines.
#[test]
fn names_of_routines_are_free() {
    let mut module = module();
    let divides = define(
        &mut module,
        "function %divides(i32, i32) -> i32 {
        block0(v0: i32, v1: i32):
            v2 = udiv v0, v1
            return v2
        }",
    );
    let own = "function %__npu_udiv32(i32, i32) -> i32 {
        block0(v0: i32, v1: i32):
            v2 = iadd v0, v1
            return v2
        }";
    let own = define(&mut module, own);
    assert_eq!(call(&mut module, own, &[100, 7]).unwrap(), 107);
    assert_eq!(call(&mut module, divides, &[100, 7]).unwrap(), 14);
    let refers = "function %refers(i32, i32) -> i32 {
        fn0 = %__npu_urem32(i32, i32) -> i32 probestack
    block0(v0: i32, v1: i32):
        v2 = call fn0(v0, v1)
        return v2
    }";
    let refers = define(&mut module, refers);
    assert!(matches!(
        call(&mut module, refers, &[100, 7]),
        Err(RunError::Undefined { .. })
    ));
}

/// The calls that a front end emits through `FunctionBuilder`, compared with Rust, for all
/// alignments and sizes around word sizes.
#[test]
fn library_calls_for_memory() {
    fn build(module: &mut NpuModule, name: &str, result: bool) -> FuncId {
        let id = declare(module, name, Linkage::Export, &words(3, usize::from(result)));
        let mut ctx = module.make_context();
        ctx.func.signature = words(3, usize::from(result));
        let config = module.target_config();
        let mut builder_context = FunctionBuilderContext::new();
        let mut b = FunctionBuilder::new(&mut ctx.func, &mut builder_context);
        let entry = b.create_block();
        b.append_block_params_for_function_params(entry);
        b.switch_to_block(entry);
        let [x, y, size] = *b.block_params(entry) else {
            panic!("three parameters")
        };
        match name {
            "copy" => b.call_memcpy(config, x, y, size),
            "move" => b.call_memmove(config, x, y, size),
            "set" => {
                let byte = b.ins().ireduce(types::I8, y);
                b.call_memset(config, x, byte, size);
            }
            _ => {
                let order = b.call_memcmp(config, x, y, size);
                b.ins().return_(&[order]);
            }
        }
        if !result {
            b.ins().return_(&[]);
        }
        b.seal_all_blocks();
        b.finalize(config);
        module.define_function(id, &mut ctx).unwrap();
        id
    }
    const SIZE: usize = 128;
    let mut module = module();
    let [copy, move_, set] = ["copy", "move", "set"].map(|name| build(&mut module, name, false));
    let compare = build(&mut module, "compare", true);
    let buffer = module.allocate(SIZE as u32, 64).unwrap();
    let before: Vec<u8> = (0..SIZE).map(|i| (i * 37 + 11) as u8).collect();
    let at = |place: usize| word((buffer + place as u32).cast_signed());
    let mut check = |func: FuncId, args: [DataValue; 3], expected: &[u8]| {
        module.write_memory(buffer, &before).unwrap();
        module.call(func, &args).unwrap();
        let mut bytes = [0; SIZE];
        module.read_memory(buffer, &mut bytes);
        assert_eq!(bytes, expected, "{args:?}");
    };
    let places = [0usize, 1, 2, 3, 4, 5, 7, 16, 33, 64, 65, 70];
    for size in (0..24).chain([31, 32, 33, 47, 48, 50]) {
        let length = word(size as i32);
        for to in places {
            for from in places {
                let mut moved = before.clone();
                moved.copy_within(from..from + size, to);
                check(move_, [at(to), at(from), length.clone()], &moved);
                if from + size <= to || to + size <= from {
                    check(copy, [at(to), at(from), length.clone()], &moved);
                }
            }
            let mut filled = before.clone();
            filled[to..to + size].fill(0x9c);
            check(set, [at(to), word(0x1234_569c), length.clone()], &filled);
        }
    }

    for size in [0usize, 1, 3, 4, 5, 8, 15, 16, 17, 30] {
        for (left, right) in [0usize, 1, 2, 3, 4].map(|l| [64, 65, 66, 67].map(|r| (l, r))).concat() {
            // Equal up to one difference, which may lie past the end; the bytes around the range
            // always differ.
            for different in 0..=size {
                let mut bytes = vec![1u8; SIZE];
                bytes[64..].fill(2);
                bytes[left..left + size].copy_from_slice(&before[..size]);
                bytes[right..right + size].copy_from_slice(&before[..size]);
                bytes[left + different] = 0x80;
                bytes[right + different] = if different % 2 == 0 { 0x7f } else { 0x81 };
                let expected = bytes[left..left + size].cmp(&bytes[right..right + size]);
                module.write_memory(buffer, &bytes).unwrap();
                let at = |place: usize| (buffer + place as u32).cast_signed();
                let order = call(&mut module, compare, &[at(left), at(right), size as i32]).unwrap();
                assert_eq!(
                    order.cmp(&0),
                    expected,
                    "{size} bytes at {left} and {right}, {different}"
                );
            }
        }
    }
}

#[test]
fn library_calls_go_by_their_names() {
    const CALLER: &str = "function %caller(i32, i32, i32) -> i32 {
        fn0 = %Memcpy(i32, i32, i32) -> i32 system_v
    block0(v0: i32, v1: i32, v2: i32):
        v3 = call fn0(v0, v1, v2)
        return v3
    }";
    // A module may define the function itself.
    let mut module = module();
    define(
        &mut module,
        "function %memcpy(i32, i32, i32) -> i32 { block0(v0: i32, v1: i32, v2: i32): return v2 }",
    );
    let caller = define(&mut module, CALLER);
    assert_eq!(call(&mut module, caller, &[1, 2, 3]).unwrap(), 3);
    // Functions that the runtime lacks are undefined.
    let other = define(
        &mut module,
        "function %other() { fn0 = %ElfTlsGetAddr() system_v block0: call fn0() return }",
    );
    match module.call(other, &[]) {
        Err(RunError::Undefined { name, .. }) => assert_eq!(name, "__tls_get_addr"),
        other => panic!("{other:?}"),
    }
}
