//! The module on the simulator: declarations, data with relocations, linking, calls, memory, errors.

use cranelift_codegen::Context;
use cranelift_codegen::binemit::Reloc;
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::data_value::DataValue;
use cranelift_codegen::ir::{AbiParam, Function, InstBuilder, Signature, SourceLoc, TrapCode, Type, types};
use cranelift_codegen::isa::{CallConv, TargetFrontendConfig};
use cranelift_codegen::settings::{self, Configurable};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use cranelift_module::{
    DataDescription, DataId, FuncId, FuncOrDataId, Linkage, Module, ModuleError, ModuleReloc, ModuleRelocTarget,
};
use cranelift_naplespu::jit::{LinkError, Location, RunError};
use cranelift_naplespu::{NpuModule, isa_builder};

fn module() -> NpuModule {
    with_flags(&[("opt_level", "speed"), ("regalloc_checker", "true")])
}

fn with_flags(list: &[(&str, &str)]) -> NpuModule {
    let mut flags = settings::builder();
    for (name, value) in list {
        flags.set(name, value).unwrap();
    }
    NpuModule::new(isa_builder("naplespu".parse().unwrap()).finish(settings::Flags::new(flags))).unwrap()
}

fn parse(clif: &str) -> Function {
    cranelift_reader::parse_functions(clif).unwrap().remove(0)
}

/// Declares and defines a function of CLIF text under its name.
fn define(module: &mut NpuModule, clif: &str) -> FuncId {
    let func = parse(clif);
    let name = func.name.to_string();
    let id = declare(module, name.trim_start_matches('%'), Linkage::Export, &func.signature);
    body(module, id, func).unwrap();
    id
}

fn declare(module: &mut NpuModule, name: &str, linkage: Linkage, signature: &Signature) -> FuncId {
    module.declare_function(name, linkage, signature).unwrap()
}

#[expect(
    clippy::result_large_err,
    reason = "the error of cranelift-module is as large as it is"
)]
fn body(module: &mut NpuModule, id: FuncId, func: Function) -> Result<(), ModuleError> {
    module.define_function(id, &mut Context::for_function(func))
}

/// A signature of words.
fn words(params: usize, returns: usize) -> Signature {
    let mut signature = Signature::new(CallConv::SystemV);
    signature.params = vec![AbiParam::new(types::I32); params];
    signature.returns = vec![AbiParam::new(types::I32); returns];
    signature
}

fn word(number: i32) -> DataValue {
    DataValue::I32(number)
}

fn call(module: &mut NpuModule, id: FuncId, args: &[i32]) -> Result<i32, RunError> {
    let args: Vec<DataValue> = args.iter().copied().map(word).collect();
    match module.call(id, &args)?.as_slice() {
        [DataValue::I32(result)] => Ok(*result),
        other => panic!("one word expected, not {other:?}"),
    }
}

fn data(module: &mut NpuModule, name: &str, contents: &[u8]) -> DataId {
    let id = module.declare_data(name, Linkage::Export, true, false).unwrap();
    let mut description = DataDescription::new();
    description.define(contents.into());
    module.define_data(id, &description).unwrap();
    id
}

fn link_error(result: Result<impl Sized, ModuleError>) -> LinkError {
    match result.err().expect("an error") {
        ModuleError::Backend(error) => error.downcast().unwrap(),
        other => panic!("{other}"),
    }
}

const DOUBLE: &str = "function %double(i32) -> i32 system_v { block0(v0: i32): v1 = iadd v0, v0 return v1 }";
const SQUARE: &str = "function %square(i32) -> i32 system_v { block0(v0: i32): v1 = imul v0, v0 return v1 }";

#[test]
fn data_objects_hold_addresses() {
    let mut module = module();
    // The table comes before what it refers to.
    let table = module.declare_data("table", Linkage::Local, false, false).unwrap();
    let double = declare(&mut module, "double", Linkage::Export, &words(1, 1));
    let numbers = module.declare_data("numbers", Linkage::Local, true, false).unwrap();
    let mut description = DataDescription::new();
    description.define(vec![0xee; 23].into());
    let func = module.declare_func_in_data(double, &mut description);
    description.write_function_addr(0, func);
    let gv = module.declare_data_in_data(numbers, &mut description);
    description.write_data_addr(4, gv, 8);
    description.write_data_addr(8, gv, -12);
    let own = module.declare_data_in_data(table, &mut description);
    description.write_data_addr(12, own, 0);
    // Addends count modulo 2^32, and places need no alignment.
    description.write_data_addr(17, gv, (1 << 32) + 1);
    module.define_data(table, &description).unwrap();

    assert!(module.data_address(numbers).is_none());
    let id = data(&mut module, "numbers", &[1, 2, 3]);
    assert_eq!(id, numbers);
    define(&mut module, DOUBLE);
    module.finalize_definitions().unwrap();

    let at = module.data_address(table).unwrap();
    let numbers_at = module.data_address(numbers).unwrap();
    assert_eq!(module.data_size(table), Some(23));
    assert_eq!(module.symbol_address("table"), Some(at));
    assert_eq!(
        module.read_words(at, 4),
        [
            module.function_address(double).unwrap(),
            numbers_at + 8,
            numbers_at - 12,
            at
        ]
    );
    assert_eq!(module.read_word(at + 17), numbers_at + 1);
    let mut rest = [0; 2];
    module.read_memory(at + 21, &mut rest);
    assert_eq!(rest, [0xee; 2]);
    let mut bytes = [0; 4];
    module.read_memory(numbers_at, &mut bytes);
    assert_eq!(bytes, [1, 2, 3, 0]);
}

#[test]
fn data_objects_are_aligned_and_apart() {
    let mut module = module();
    let mut ends = Vec::new();
    for shift in (0..=12).chain([20]) {
        for size in [0usize, 1, 5, 64, 5000] {
            let id = module.declare_anonymous_data(true, false).unwrap();
            let mut description = DataDescription::new();
            description.define_zeroinit(size);
            description.set_align(1 << shift);
            module.define_data(id, &description).unwrap();
            let address = module.data_address(id).unwrap();
            assert!(address.is_multiple_of(1 << shift));
            ends.push((address, address + size.max(1) as u32));
        }
    }
    ends.sort_unstable();
    assert!(ends.windows(2).all(|pair| pair[0].1 <= pair[1].0), "{ends:x?}");
    // Without an alignment, vectors fit.
    let id = data(&mut module, "plain", &[0; 3]);
    assert!(module.data_address(id).unwrap().is_multiple_of(64));
}

#[test]
fn calls_through_a_table_of_functions() {
    let mut module = module();
    let ids = [define(&mut module, DOUBLE), define(&mut module, SQUARE)];
    let table = module.declare_data("table", Linkage::Local, false, false).unwrap();
    let mut description = DataDescription::new();
    description.define_zeroinit(8);
    for (index, id) in (0..).zip(ids) {
        let func = module.declare_func_in_data(id, &mut description);
        description.write_function_addr(4 * index, func);
    }
    module.define_data(table, &description).unwrap();
    let pick = define(
        &mut module,
        "function %pick(i32, i32) -> i32 {
            gv0 = symbol colocated %table
            sig0 = (i32) -> i32 system_v
        block0(v0: i32, v1: i32):
            v2 = symbol_value.i32 gv0
            v3 = iconst.i32 2
            v4 = ishl v0, v3
            v5 = iadd v2, v4
            v6 = load.i32 aligned v5
            v7 = call_indirect sig0, v6(v1)
            return v7
        }",
    );
    assert_eq!(call(&mut module, pick, &[0, 7]).unwrap(), 14);
    assert_eq!(call(&mut module, pick, &[1, 7]).unwrap(), 49);
    let at = module.data_address(table).unwrap();
    let square = module.read_word(at + 4);
    let results = module.call_address(square, &words(1, 1), &[word(9)]).unwrap();
    assert_eq!(results, [word(81)]);
}

#[test]
fn functions_built_with_the_trait_alone() {
    fn build(module: &mut dyn Module) -> (FuncId, DataId) {
        let mut signature = module.make_signature();
        signature.params.push(AbiParam::new(types::I32));
        signature.returns.push(AbiParam::new(types::I32));
        let later = module.declare_function("later", Linkage::Local, &signature).unwrap();
        let counter = module.declare_data("counter", Linkage::Export, true, false).unwrap();
        let first = module.declare_anonymous_function(&signature).unwrap();
        let config = module.target_config();
        let mut ctx = module.make_context();
        let mut builder_context = FunctionBuilderContext::new();
        for (id, calls) in [(first, true), (later, false)] {
            ctx.func.signature = signature.clone();
            let later = module.declare_func_in_func(later, &mut ctx.func);
            let counter = module.declare_data_in_func(counter, &mut ctx.func);
            let mut b = FunctionBuilder::new(&mut ctx.func, &mut builder_context);
            let entry = b.create_block();
            b.append_block_params_for_function_params(entry);
            b.switch_to_block(entry);
            let param = b.block_params(entry)[0];
            let result = if calls {
                let call = b.ins().call(later, &[param]);
                b.inst_results(call)[0]
            } else {
                let address = b.ins().symbol_value(types::I32, counter);
                let flags = cranelift_codegen::ir::MemFlagsData::trusted();
                let count = b.ins().load(types::I32, flags, address, 0);
                let sum = b.ins().iadd(count, param);
                b.ins().store(flags, sum, address, 0);
                sum
            };
            b.ins().return_(&[result]);
            b.seal_all_blocks();
            b.finalize(config);
            module
                .define_function_with_control_plane(id, &mut ctx, &mut ControlPlane::default())
                .unwrap();
            module.clear_context(&mut ctx);
        }
        let mut description = DataDescription::new();
        description.define(100i32.to_le_bytes().into());
        module.define_data(counter, &description).unwrap();
        (first, counter)
    }
    let mut module = module();
    let (first, counter) = build(&mut module);
    assert_eq!(call(&mut module, first, &[1]).unwrap(), 101);
    assert_eq!(call(&mut module, first, &[5]).unwrap(), 106);
    // What is defined later leaves memory as it is.
    define(&mut module, DOUBLE);
    module.finalize_definitions().unwrap();
    assert_eq!(call(&mut module, first, &[-6]).unwrap(), 100);
    let at = module.data_address(counter).unwrap();
    module.write_word(at, 7).unwrap();
    assert_eq!(call(&mut module, first, &[0]).unwrap(), 7);
    assert_eq!(module.get_name("counter"), Some(FuncOrDataId::Data(counter)));
    assert_eq!(module.declarations().get_functions().count(), 3);
}

#[test]
fn the_stand_in_looks_like_the_target() {
    let module = module();
    let isa = module.isa();
    assert_eq!(isa.pointer_type(), types::I32);
    assert_eq!(isa.endianness(), cranelift_codegen::ir::Endianness::Little);
    assert_eq!(isa.flags().opt_level(), settings::OptLevel::Speed);
    assert_eq!(isa.default_call_conv(), CallConv::SystemV);
    let shape = |config: TargetFrontendConfig| {
        (
            config.default_call_conv,
            config.pointer_width,
            config.page_size_align_log2,
        )
    };
    assert_eq!(shape(module.target_config()), shape(module.npu_isa().frontend_config()));
    assert_eq!(module.make_signature().call_conv, CallConv::SystemV);
    assert_eq!(module.make_context().func.signature.call_conv, CallConv::SystemV);
    fn can_be_sent<T: Send>(_: &T) {}
    can_be_sent(&module);
}

const USES_LATER: &str = "function %early(i32) -> i32 {
    fn0 = colocated %near(i32) -> i32 system_v
    fn1 = %far(i32) -> i32 system_v
block0(v0: i32):
    v1 = call fn0(v0)
    v2 = call fn1(v1)
    return v2
}";

#[test]
fn imports_may_come_later() {
    let mut module = module();
    let early = define(&mut module, USES_LATER);
    let double = define(&mut module, DOUBLE);
    // What is not reached may be missing.
    assert_eq!(call(&mut module, double, &[4]).unwrap(), 8);
    match call(&mut module, early, &[3]) {
        Err(RunError::Undefined { name, user }) => {
            assert!(["near", "far"].contains(&name.as_str()));
            assert_eq!(user.as_deref(), Some("early"));
        }
        other => panic!("{other:?}"),
    }
    let expected = [("far", "early"), ("near", "early")].map(|(a, b)| (a.to_owned(), b.to_owned()));
    let error = module.finalize_definitions().unwrap_err();
    assert_eq!(error, LinkError::Undefined(expected.to_vec()));
    assert!(error.to_string().contains("%early refers to %near"), "{error}");

    define(&mut module, &DOUBLE.replace("%double", "%near"));
    let error = module.finalize_definitions().unwrap_err();
    assert_eq!(error, LinkError::Undefined(expected[..1].to_vec()));
    define(&mut module, &SQUARE.replace("%square", "%far"));
    module.finalize_definitions().unwrap();
    assert_eq!(call(&mut module, early, &[3]).unwrap(), 36);
}

#[test]
fn declared_imports_are_undefined_until_somebody_defines_them() {
    let mut module = module();
    let import = declare(&mut module, "other", Linkage::Import, &words(1, 1));
    match module.call(import, &[word(1)]) {
        Err(RunError::Undefined { name, user: None }) => assert_eq!(name, "other"),
        other => panic!("{other:?}"),
    }
    match body(&mut module, import, parse(DOUBLE)) {
        Err(ModuleError::InvalidImportDefinition(name)) => assert_eq!(name, "other"),
        other => panic!("{other:?}"),
    }
    // Declared once more with another linkage, it is the module's own.
    let id = declare(&mut module, "other", Linkage::Export, &words(1, 1));
    assert_eq!(id, import);
    body(&mut module, id, parse(DOUBLE)).unwrap();
    assert_eq!(call(&mut module, import, &[21]).unwrap(), 42);

    let gone = module.declare_data("gone", Linkage::Import, false, false).unwrap();
    match module.define_data(gone, &DataDescription::new()) {
        Err(ModuleError::InvalidImportDefinition(name)) => assert_eq!(name, "gone"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn definitions_clash() {
    let mut module = module();
    let double = define(&mut module, DOUBLE);
    match body(&mut module, double, parse(DOUBLE)) {
        Err(ModuleError::DuplicateDefinition(name)) => assert_eq!(name, "double"),
        other => panic!("{other:?}"),
    }
    match module.define_function_bytes(double, 1, &[], &[]) {
        Err(ModuleError::DuplicateDefinition(name)) => assert_eq!(name, "double"),
        other => panic!("{other:?}"),
    }
    match module.declare_function("double", Linkage::Export, &words(2, 1)) {
        Err(ModuleError::IncompatibleSignature(name, before, now)) => {
            assert_eq!(name, "double");
            assert_eq!((before.params.len(), now.params.len()), (1, 2));
        }
        other => panic!("{other:?}"),
    }
    match module.declare_data("double", Linkage::Export, true, false) {
        Err(ModuleError::IncompatibleDeclaration(name)) => assert_eq!(name, "double"),
        other => panic!("{other:?}"),
    }
    let id = data(&mut module, "numbers", &[0; 4]);
    let mut description = DataDescription::new();
    description.define_zeroinit(4);
    match module.define_data(id, &description) {
        Err(ModuleError::DuplicateDefinition(name)) => assert_eq!(name, "numbers"),
        other => panic!("{other:?}"),
    }
    match module.declare_function("numbers", Linkage::Export, &words(1, 1)) {
        Err(ModuleError::IncompatibleDeclaration(name)) => assert_eq!(name, "numbers"),
        other => panic!("{other:?}"),
    }
    // The body has to have the signature that was declared.
    let pair = declare(&mut module, "pair", Linkage::Local, &words(2, 1));
    match body(&mut module, pair, parse(DOUBLE)) {
        Err(ModuleError::IncompatibleSignature(name, ..)) => assert_eq!(name, "pair"),
        other => panic!("{other:?}"),
    }
    // After all that, the first definition stands.
    assert_eq!(call(&mut module, double, &[3]).unwrap(), 6);
}

#[test]
fn ids_of_nothing_are_undeclared() {
    let mut module = module();
    let (func, object) = (FuncId::from_u32(7), DataId::from_u32(3));
    assert!(matches!(
        body(&mut module, func, parse(DOUBLE)),
        Err(ModuleError::Undeclared(_))
    ));
    assert!(matches!(
        module.define_data(object, &DataDescription::new()),
        Err(ModuleError::Undeclared(_))
    ));
    assert!(matches!(module.call(func, &[]), Err(RunError::NoSuchFunction(_))));
    assert!(matches!(
        module.call_by_name("f", &[]),
        Err(RunError::NoSuchFunction(_))
    ));
    assert_eq!(module.function_address(func), None);
    assert_eq!(module.data_address(object), None);
    assert!(module.code(func).is_none());
    let stray = define(
        &mut module,
        "function %stray() { fn0 = u0:99() system_v block0: call fn0() return }",
    );
    assert!(matches!(module.call(stray, &[]), Err(RunError::Undefined { .. })));
    let far_off = define(
        &mut module,
        "function %far_off() { fn0 = u0:4294967295() system_v block0: call fn0() return }",
    );
    match module.call(far_off, &[]) {
        Err(RunError::Undefined { name, .. }) => assert_eq!(name, "u0:4294967295"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn data_that_cannot_be_placed_is_refused() {
    let mut module = module();
    let error = link_error(module.declare_data("per_thread", Linkage::Local, true, true));
    assert_eq!(error, LinkError::ThreadLocal("per_thread".to_owned()));
    assert!(
        link_error(module.declare_anonymous_data(true, true))
            .to_string()
            .contains("thread-local")
    );

    let id = module.declare_data("object", Linkage::Local, true, false).unwrap();
    let mut description = DataDescription::new();
    let error = link_error(module.define_data(id, &description));
    assert_eq!(error, LinkError::NoContents("object".to_owned()));

    description.define_zeroinit(6);
    for align in [0, 3, 1 << 40] {
        description.align = Some(align);
        let error = link_error(module.define_data(id, &description));
        let name = "object".to_owned();
        assert_eq!(error, LinkError::Alignment { name, align });
    }
    description.align = None;
    let own = module.declare_data_in_data(id, &mut description);
    description.write_data_addr(3, own, 0);
    let error = link_error(module.define_data(id, &description));
    let name = "object".to_owned();
    assert_eq!(error, LinkError::OutOfBounds { name, offset: 3 });

    let mut huge = DataDescription::new();
    for size in [0xf000_0000, usize::MAX] {
        huge.init = cranelift_module::Init::Zeros { size };
        let error = module.define_data(id, &huge).unwrap_err();
        assert!(matches!(error, ModuleError::Allocation { .. }), "{error}");
    }
    // None of that used up the name, and large objects of zeros cost nothing.
    huge.init = cranelift_module::Init::Zeros { size: 0x6000_0000 };
    module.define_data(id, &huge).unwrap();
    assert!(module.machine().memory().resident_bytes() < 1 << 20);
}

#[test]
fn a_refused_function_is_named_and_can_be_defined_again() {
    let mut module = module();
    let id = declare(&mut module, "shaky", Linkage::Local, &words(1, 1));
    let caller = define(
        &mut module,
        "function %caller(i32) -> i32 {
            fn0 = colocated u0:0(i32) -> i32 system_v
        block0(v0: i32):
            v1 = call fn0(v0)
            return v1
        }",
    );
    let refused = "function u0:0(i32) -> i32 system_v {
        gv0 = symbol colocated tls %per_thread
    block0(v0: i32):
        v1 = tls_value.i32 gv0
        return v1
    }";
    match body(&mut module, id, parse(refused)) {
        Err(ModuleError::Compilation(error)) => {
            let text = error.to_string();
            assert!(text.contains("%shaky") && text.contains("tls_value"), "{text}");
        }
        other => panic!("{other:?}"),
    }
    match call(&mut module, caller, &[1]) {
        Err(RunError::Refused { function, reason }) => {
            assert_eq!(function, "shaky");
            assert!(reason.contains("tls_value"), "{reason}");
        }
        other => panic!("{other:?}"),
    }
    let invalid = "function u0:0(i32) -> i32 system_v { block0(v0: i32): return }";
    match body(&mut module, id, parse(invalid)) {
        Err(ModuleError::Compilation(cranelift_codegen::CodegenError::Verifier(errors))) => {
            assert!(!errors.0.is_empty())
        }
        other => panic!("{other:?}"),
    }
    assert!(matches!(
        call(&mut module, caller, &[1]),
        Err(RunError::NotCompiled { .. })
    ));
    body(&mut module, id, parse(DOUBLE)).unwrap();
    assert_eq!(call(&mut module, caller, &[4]).unwrap(), 8);
}

#[test]
fn traps_say_where() {
    let mut module = module();
    define(
        &mut module,
        "function %check(i32) -> i32 {
        block0(v0: i32):
        @0011   trapz v0, user3
        @0012   v1 = iconst.i32 1000
        @0013   v2 = sdiv v1, v0
        @0014   v3 = isub v0, v1
        @0015   trapz v3, user3
        return v2
        }",
    );
    let caller = define(
        &mut module,
        "function %caller(i32) -> i32 {
            fn0 = %check(i32) -> i32 system_v
        block0(v0: i32):
        @0100   v1 = call fn0(v0)
            return v1
        }",
    );
    assert_eq!(call(&mut module, caller, &[10]).unwrap(), 100);
    for (arg, line) in [(0, 0x11), (1000, 0x15)] {
        match call(&mut module, caller, &[arg]) {
            Err(RunError::Trap(trap)) => {
                assert_eq!(trap.code, Some(TrapCode::unwrap_user(3)));
                assert_eq!(trap.function.as_deref(), Some("check"));
                assert_eq!(trap.srcloc, Some(SourceLoc::new(line)));
                assert!(trap.inst.is_some());
            }
            other => panic!("{other:?}"),
        }
    }
    // And the next call is as if nothing had happened.
    assert_eq!(call(&mut module, caller, &[10]).unwrap(), 100);
}

fn is_at(at: &Location, function: &str, line: u32) {
    assert_eq!(at.function.as_deref(), Some(function), "{at:?}");
    assert_eq!(at.srcloc, Some(SourceLoc::new(line)), "{at:?}");
    assert!(at.inst.is_some(), "{at:?}");
}

#[test]
fn timeouts_and_hangs_say_where() {
    let mut module = module();
    let count = define(
        &mut module,
        "function %count(i32) -> i32 {
        block0(v0: i32):
            jump block1(v0)
        block1(v1: i32):
        @0021   v2 = iconst.i32 1
        @0021   v3 = isub v1, v2
        @0021   brif v3, block1(v3), block2
        block2:
            return v3
        }",
    );
    assert_eq!(call(&mut module, count, &[100]).unwrap(), 0);
    assert!((100..1000).contains(&module.steps()), "{}", module.steps());
    module.set_step_limit(500);
    match call(&mut module, count, &[-1]) {
        Err(RunError::Timeout { steps: 500, at }) => {
            assert_eq!(at.function.as_deref(), Some("count"));
            assert!(
                at.inst.is_some() && at.srcloc.is_none_or(|loc| loc == SourceLoc::new(0x21)),
                "{at:?}"
            );
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(module.steps(), 500);
    assert_eq!(call(&mut module, count, &[100]).unwrap(), 0);

    let spin = define(
        &mut module,
        "function %spin() { block0: jump block1 block1: jump block1 }",
    );
    match module.call(spin, &[]) {
        Err(RunError::Stopped { reason, at }) => {
            assert!(reason.contains("endless jump"), "{reason}");
            assert_eq!(at.function.as_deref(), Some("spin"));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn misaligned_accesses_say_where() {
    let mut module = module();
    let load = define(
        &mut module,
        "function %load(i32) -> i32 {
        block0(v0: i32):
        @0031   v1 = load.i32 aligned v0+4
        @0032   v2 = load.i32 aligned v0+6
        @0033   v3 = iadd v1, v2
            return v3
        }",
    );
    match call(&mut module, load, &[0x4000_0000]) {
        Err(RunError::Misaligned(at)) => is_at(&at, "load", 0x32),
        other => panic!("{other:?}"),
    }
    match call(&mut module, load, &[0x4000_0001]) {
        Err(error @ RunError::Misaligned(_)) => {
            assert!(
                error.to_string().starts_with("misaligned access in %load at inst"),
                "{error}"
            );
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn memory_is_shared_with_the_host() {
    let mut module = module();
    let sum = define(
        &mut module,
        "function %sum(i32, i32) -> i32 {
        block0(v0: i32, v1: i32):
            v2 = iconst.i32 0
            jump block1(v0, v1, v2)
        block1(v3: i32, v4: i32, v5: i32):
            brif v4, block2, block3
        block2:
            v6 = load.i32 aligned v3
            v7 = iadd v5, v6
            store aligned v7, v3
            v8 = iconst.i32 4
            v9 = iadd v3, v8
            v10 = iconst.i32 1
            v11 = isub v4, v10
            jump block1(v9, v11, v7)
        block3:
            return v5
        }",
    );
    let buffer = module.allocate(4 * 100, 4096).unwrap();
    assert!(buffer.is_multiple_of(4096));
    assert_ne!(module.allocate(1, 1).unwrap(), buffer);
    assert!(module.allocate(1, 3).is_err());
    assert!(module.allocate(u32::MAX, 1).is_err());
    let numbers: Vec<u32> = (1..=100).collect();
    module.write_words(buffer, &numbers).unwrap();
    assert_eq!(call(&mut module, sum, &[buffer as i32, 100]).unwrap(), 5050);
    let sums: Vec<u32> = (1..=100).map(|n| n * (n + 1) / 2).collect();
    assert_eq!(module.read_words(buffer, 100), sums);
    let mut bytes = [0; 3];
    module.read_memory(buffer + 4 * 99 + 1, &mut bytes);
    assert_eq!(bytes, [(5050 >> 8) as u8, 0, 0]);

    for value in values() {
        module.write_memory(buffer, &[0xff; 32]).unwrap();
        module.write_value(buffer + 1, &value).unwrap();
        assert_eq!(module.read_value(buffer + 1, value.ty()), Some(value.clone()));
        let mut around = [0; 32];
        module.read_memory(buffer, &mut around);
        let end = 1 + value.ty().bytes() as usize;
        assert!(
            around[0] == 0xff && around[end..].iter().all(|&byte| byte == 0xff),
            "{value}"
        );
    }
    assert_eq!(module.read_value(buffer, types::I32X16), None);
    assert_eq!(module.read_value(buffer, types::INVALID), None);

    let config = npu_sim::Config {
        memory_limit: 1 << 16,
        ..npu_sim::Config::default()
    };
    let mut small = NpuModule::with_config(module.npu_isa().clone(), config).unwrap();
    assert!(matches!(
        small.write_memory(buffer, &[1; 1 << 17]),
        Err(LinkError::MemoryFull(_))
    ));
}

/// One value of every scalar type.
fn values() -> Vec<DataValue> {
    use cranelift_codegen::ir::immediates::{Ieee16, Ieee32, Ieee64, Ieee128};
    vec![
        DataValue::I8(-3),
        DataValue::I16(-30_000),
        DataValue::I32(0x1234_5678),
        DataValue::I64(-0x0123_4567_89ab_cdef),
        DataValue::I128(0x0011_2233_4455_6677_8899_aabb_ccdd_eeff),
        DataValue::F16(Ieee16::with_bits(0x3c01)),
        DataValue::F32(Ieee32::with_float(1.5)),
        DataValue::F64(Ieee64::with_float(-2.25e300)),
        DataValue::F128(Ieee128::with_bits(0x3fff_0123_4567_89ab_cdef_0011_2233_4455)),
    ]
}

/// A function that gives all its arguments back, from the last to the first, with a call of another one of its kind between.
fn reverse(module: &mut NpuModule, types: &[Type], conv: CallConv) -> FuncId {
    let mut signature = Signature::new(conv);
    signature.params = types.iter().map(|&ty| AbiParam::new(ty)).collect();
    signature.returns = signature.params.iter().rev().copied().collect();
    let mut twin = signature.clone();
    twin.params.reverse();
    twin.returns.reverse();
    let inner = module.declare_anonymous_function(&twin).unwrap();
    let outer = module.declare_anonymous_function(&signature).unwrap();
    let mut builder_context = FunctionBuilderContext::new();
    let config = module.target_config();
    for (id, signature, calls) in [(inner, twin, None), (outer, signature, Some(inner))] {
        let mut ctx = module.make_context();
        ctx.func.signature = signature;
        let inner = calls.map(|inner| module.declare_func_in_func(inner, &mut ctx.func));
        let mut b = FunctionBuilder::new(&mut ctx.func, &mut builder_context);
        let entry = b.create_block();
        b.append_block_params_for_function_params(entry);
        b.switch_to_block(entry);
        let mut values = b.block_params(entry).to_vec();
        values.reverse();
        if let Some(inner) = inner {
            // There and back, so that the words go through every place twice.
            let call = b.ins().call(inner, &values);
            values = b.inst_results(call).to_vec();
            values.reverse();
        }
        b.ins().return_(&values);
        b.seal_all_blocks();
        b.finalize(config);
        module.define_function(id, &mut ctx).unwrap();
    }
    outer
}

#[test]
fn arguments_and_results_of_every_type() {
    let mut module = module();
    let one_by_one = values().into_iter().map(|value| vec![value]);
    // Enough of them that both arguments and results end up in memory.
    let all = [values(), vec![values(); 3].concat()];
    for conv in [CallConv::SystemV, CallConv::Fast] {
        for args in one_by_one.clone().chain(all.clone()) {
            let types: Vec<Type> = args.iter().map(DataValue::ty).collect();
            let func = reverse(&mut module, &types, conv);
            let mut results = module.call(func, &args).unwrap();
            results.reverse();
            assert_eq!(results, args);
        }
    }
}

#[test]
fn wrong_arguments_are_refused() {
    let mut module = module();
    let double = define(&mut module, DOUBLE);
    for args in [vec![], vec![DataValue::I16(1)], vec![word(1), word(2)]] {
        match module.call(double, &args) {
            Err(RunError::Signature(text)) => assert!(text.starts_with("%double takes (i32), called with ("), "{text}"),
            other => panic!("{other:?}"),
        }
    }
}

/// 1,500 functions that call their predecessors near, and now and then a function at the other end, over half a megabyte.
#[test]
fn many_functions_reach_each_other() {
    const COUNT: i32 = 1500;
    let mut module = with_flags(&[]);
    let ids: Vec<FuncId> = (0..COUNT)
        .map(|number| declare(&mut module, &format!("f{number}"), Linkage::Local, &words(1, 1)))
        .collect();
    for (number, &id) in (0..).zip(&ids) {
        let padding: String = (0..80)
            .map(|i| format!("v{} = rotl v{}, v0\n", i + 101, i + 100))
            .collect();
        let text = if number == 0 {
            "function %f(i32) -> i32 system_v { block0(v0: i32): return v0 }".to_owned()
        } else {
            // Each adds 1. Every 50th goes through a function at the other end that does nothing.
            let far = (COUNT - number) % COUNT;
            let between = if number % 50 == 0 {
                format!("v4 = iconst.i32 {far}\n v5 = call fn1(v4)\n")
            } else {
                "v5 = iconst.i32 0\n".to_owned()
            };
            format!(
                "function %f(i32) -> i32 system_v {{
                    fn0 = colocated u0:{}(i32) -> i32 system_v
                    fn1 = colocated %far(i32) -> i32 system_v
                    ss0 = explicit_slot 4
                block0(v0: i32):
                    v1 = call fn0(v0)
                    v2 = iconst.i32 1
                    v3 = iadd v1, v2
                    {between}
                    v6 = iadd v3, v5
                    v100 = bxor v1, v0
                    {padding}
                    v7 = stack_addr.i32 ss0
                    store v180, v7
                    return v6
                }}",
                number - 1
            )
        };
        let mut func = parse(&text);
        func.name = cranelift_codegen::ir::UserFuncName::user(0, id.as_u32());
        body(&mut module, id, func).unwrap();
    }
    define(
        &mut module,
        "function %far(i32) -> i32 { block0(v0: i32): v1 = bxor v0, v0 return v1 }",
    );
    module.finalize_definitions().unwrap();
    let last = *ids.last().unwrap();
    let span = module.function_address(last).unwrap() - module.function_address(ids[0]).unwrap();
    assert!(span > 4 << 17, "{span}");
    assert_eq!(call(&mut module, last, &[5]).unwrap(), 5 + COUNT - 1);
}

/// A call at the start of a function that is itself larger than the reach of a branch.
#[test]
fn a_large_function_reaches_out_at_both_ends() {
    let mut module = with_flags(&[("regalloc_algorithm", "single_pass")]);
    define(&mut module, SQUARE);
    let gap = module.declare_anonymous_function(&words(0, 0)).unwrap();
    module.define_function_bytes(gap, 1, &vec![0; 200 << 10], &[]).unwrap();
    let rows: String = (0..20_000)
        .map(|i| {
            format!(
                "v{} = bxor v{}, v0\n v{} = imul v{}, v1\n",
                11 + 2 * i,
                10 + 2 * i,
                12 + 2 * i,
                11 + 2 * i
            )
        })
        .collect();
    let text = format!(
        "function %large(i32, i32) -> i32, i32, i32 {{
            fn0 = colocated %square(i32) -> i32 system_v
        block0(v0: i32, v1: i32):
            v2 = call fn0(v0)
            v10 = iadd v2, v1
            {rows}
            v3 = call fn0(v1)
            return v2, v3, v40010
        }}"
    );
    let large = define(&mut module, &text);
    assert!(module.code(large).unwrap().bytes.len() > 130 << 10);
    let results = module.call(large, &[word(3), word(5)]).unwrap();
    assert_eq!(results[..2], [word(9), word(25)]);
}

#[test]
fn symbols_of_the_host() {
    let mut module = module();
    let use_it = define(
        &mut module,
        "function %use_it(i32) -> i32 {
            gv0 = symbol %buffer
            fn0 = %copied(i32) -> i32 system_v
        block0(v0: i32):
            v1 = symbol_value.i32 gv0
            v2 = load.i32 v1+4
            v3 = iadd v0, v2
            v4 = call fn0(v3)
            return v4
        }",
    );
    let double = define(&mut module, DOUBLE);
    assert!(matches!(
        call(&mut module, use_it, &[1]),
        Err(RunError::Undefined { .. })
    ));
    let buffer = module.allocate(8, 4).unwrap();
    module.write_word(buffer + 4, 100).unwrap();
    module.define_symbol("buffer", buffer);
    // Code that the host put there itself.
    let bytes = module.code(double).unwrap().bytes.clone();
    let place = module.allocate(u32::try_from(bytes.len()).unwrap(), 4).unwrap();
    module.write_memory(place, &bytes).unwrap();
    module.set_symbol_lookup(Box::new(move |name| (name == "copied").then_some(place)));
    module.finalize_definitions().unwrap();
    assert_eq!(call(&mut module, use_it, &[1]).unwrap(), 202);
    assert_eq!(module.symbol_address("copied"), Some(place));
    assert_eq!(module.symbol_address("nothing"), None);
    // An import that the host knows can be called directly.
    let import = declare(&mut module, "copied", Linkage::Import, &words(1, 1));
    assert_eq!(call(&mut module, import, &[8]).unwrap(), 16);
    assert_eq!(module.function_address(import), Some(place));
}

#[test]
fn preemptible_symbols_are_zero_until_defined() {
    let mut module = module();
    let maybe = declare(&mut module, "maybe", Linkage::Preemptible, &words(1, 1));
    let ask = define(
        &mut module,
        "function %ask(i32) -> i32 {
            fn0 = %maybe(i32) -> i32 system_v
        block0(v0: i32):
            v1 = func_addr.i32 fn0
            brif v1, block1, block2
        block1:
            v2 = call fn0(v0)
            return v2
        block2:
            v3 = iconst.i32 -1
            return v3
        }",
    );
    module.finalize_definitions().unwrap();
    assert_eq!(call(&mut module, ask, &[5]).unwrap(), -1);
    assert!(matches!(
        call(&mut module, maybe, &[5]),
        Err(RunError::Undefined { .. })
    ));
    body(&mut module, maybe, parse(SQUARE)).unwrap();
    module.finalize_definitions().unwrap();
    assert_eq!(call(&mut module, ask, &[5]).unwrap(), 25);
}

#[test]
fn code_as_bytes() {
    let mut module = module();
    let square = define(&mut module, SQUARE);
    let bytes = module.code(square).unwrap().bytes.clone();
    let copy = declare(&mut module, "copy", Linkage::Local, &words(1, 1));
    let word_at = u32::try_from(bytes.len()).unwrap();
    let mut with_words = bytes.clone();
    with_words.extend([0; 8]);
    let reloc = |offset, kind, name| ModuleReloc {
        offset,
        kind,
        name,
        addend: -4,
    };
    let foreign = reloc(0, Reloc::Arm64Call, ModuleRelocTarget::from(square));
    let error = link_error(module.define_function_bytes(copy, 4, &with_words, &[foreign]));
    assert!(error.to_string().contains("Arm64Call"), "{error}");
    let relocs = [
        reloc(word_at, Reloc::Abs4, ModuleRelocTarget::from(square)),
        reloc(word_at + 4, Reloc::Abs4, ModuleRelocTarget::FunctionOffset(copy, 8)),
    ];
    assert!(
        link_error(module.define_function_bytes(copy, 12, &with_words, &relocs))
            .to_string()
            .contains("12")
    );
    module.define_function_bytes(copy, 1024, &with_words, &relocs).unwrap();
    assert_eq!(call(&mut module, copy, &[12]).unwrap(), 144);
    let address = module.function_address(copy).unwrap();
    assert!(address.is_multiple_of(1024));
    let square_at = module.function_address(square).unwrap();
    assert_eq!(module.read_words(address + word_at, 2), [square_at - 4, address + 4]);
}

#[test]
fn imports_from_the_runtime_and_of_the_machine() {
    let mut module = module();
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
    // The host can call routines too, even those that nothing refers to.
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

/// What a front end calls through `FunctionBuilder`, against Rust, on all alignments and sizes around those of words.
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
            // The same up to a difference, which may lie behind the end, and always different in front of and behind them.
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
    // A module may have its own.
    let mut module = module();
    define(
        &mut module,
        "function %memcpy(i32, i32, i32) -> i32 { block0(v0: i32, v1: i32, v2: i32): return v2 }",
    );
    let caller = define(&mut module, CALLER);
    assert_eq!(call(&mut module, caller, &[1, 2, 3]).unwrap(), 3);
    // What the runtime does not have is undefined.
    let other = define(
        &mut module,
        "function %other() { fn0 = %ElfTlsGetAddr() system_v block0: call fn0() return }",
    );
    match module.call(other, &[]) {
        Err(RunError::Undefined { name, .. }) => assert_eq!(name, "__tls_get_addr"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn errors_name_anonymous_functions() {
    let mut module = module();
    let id = module.declare_anonymous_function(&words(0, 0)).unwrap();
    body(&mut module, id, parse("function %x() system_v { block0: trap user9 }")).unwrap();
    match module.call(id, &[]) {
        Err(RunError::Trap(trap)) => assert_eq!(trap.function.as_deref(), Some(".Lfn0")),
        other => panic!("{other:?}"),
    }
    let undefined = module.declare_anonymous_function(&words(0, 0)).unwrap();
    match module.call(undefined, &[]) {
        Err(RunError::Undefined { name, .. }) => assert_eq!(name, ".Lfn1"),
        other => panic!("{other:?}"),
    }
}
