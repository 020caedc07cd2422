//! Builds a function at run time, runs it on the simulated device and prints the result.

use cranelift_codegen::data_value::DataValue::I32 as Word;
use cranelift_codegen::ir::{AbiParam, InstBuilder, types::I32};
use cranelift_codegen::settings;
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use cranelift_module::{Linkage, Module};
use cranelift_naplespu::isa;
use naplespu_jit::NpuModule;
use std::error::Error;

/// Euclid's algorithm.
pub fn run() -> Result<String, Box<dyn Error>> {
    let isa = isa::lookup_by_name("naplespu")?.finish(settings::Flags::new(settings::builder()))?;
    let mut module = NpuModule::new(isa)?;
    let mut ctx = module.make_context();
    ctx.func.signature.params = vec![AbiParam::new(I32); 2];
    ctx.func.signature.returns = vec![AbiParam::new(I32)];
    let gcd = module.declare_function("gcd", Linkage::Export, &ctx.func.signature)?;

    let mut builder_context = FunctionBuilderContext::new();
    let mut b = FunctionBuilder::new(&mut ctx.func, &mut builder_context);
    let [entry, head, body, exit] = [(); 4].map(|()| b.create_block());
    let [x, y] = [(); 2].map(|()| b.declare_var(I32));
    b.append_block_params_for_function_params(entry);
    b.switch_to_block(entry);
    let (first, second) = (b.block_params(entry)[0], b.block_params(entry)[1]);
    b.def_var(x, first);
    b.def_var(y, second);
    b.ins().jump(head, &[]);

    b.switch_to_block(head);
    let y_now = b.use_var(y);
    b.ins().brif(y_now, body, &[], exit, &[]);

    b.switch_to_block(body);
    let (x_now, y_now) = (b.use_var(x), b.use_var(y));
    let rest = b.ins().urem(x_now, y_now);
    b.def_var(x, y_now);
    b.def_var(y, rest);
    b.ins().jump(head, &[]);

    b.switch_to_block(exit);
    let result = b.use_var(x);
    b.ins().return_(&[result]);
    b.seal_all_blocks();
    b.finalize(module.target_config());

    module.define_function(gcd, &mut ctx)?;
    let results = module.call(gcd, &[Word(1071), Word(462)])?;
    let (result, steps) = (&results[0], module.steps());
    Ok(format!("gcd(1071, 462) = {result}, after {steps} instructions"))
}

/// Prints the result.
pub fn main() -> Result<(), Box<dyn Error>> {
    println!("{}", run()?);
    Ok(())
}
