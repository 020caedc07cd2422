//! Tests of calls from the host: arguments and results of every type, and functions built with the
//! trait alone.

use super::*;
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::ir::{InstBuilder, Type};
use cranelift_codegen::isa::TargetFrontendConfig;
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use cranelift_module::FuncOrDataId;

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
    // Later definitions do not change memory.
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

/// Defines a function that returns its arguments in reverse order, through a call of a similar
/// function.
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
            // Reversed twice, so that the words pass through every location twice.
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
    // Enough values that arguments and results are in memory too.
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
