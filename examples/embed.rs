//! Builds a function with `cranelift-frontend`, compiles it and calls it in the simulator.

use cranelift_codegen::data_value::DataValue;
use cranelift_codegen::ir::{AbiParam, BlockArg, Function, InstBuilder, Signature, UserFuncName, types::I32};
use cranelift_codegen::isa::CallConv;
use cranelift_codegen::settings::{self, Configurable};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use cranelift_naplespu::{Isa, isa};
use naplespu_jit::Program;
use std::error::Error;

/// `%triangle(n)`: the sum of the numbers from `n` down to 1.
fn triangle(isa: &Isa) -> Function {
    let mut sig = Signature::new(CallConv::Fast);
    sig.params.push(AbiParam::new(I32));
    sig.returns.push(AbiParam::new(I32));
    let mut func = Function::with_name_signature(UserFuncName::testcase("triangle"), sig);
    let mut context = FunctionBuilderContext::new();
    let mut b = FunctionBuilder::new(&mut func, &mut context);
    let [entry, head, body, exit] = [(); 4].map(|()| b.create_block());

    b.append_block_params_for_function_params(entry);
    b.switch_to_block(entry);
    let (n, zero) = (b.block_params(entry)[0], b.ins().iconst(I32, 0));
    b.ins().jump(head, &[BlockArg::from(n), BlockArg::from(zero)]);

    let (n, sum) = (b.append_block_param(head, I32), b.append_block_param(head, I32));
    b.switch_to_block(head);
    b.ins().brif(n, body, &[], exit, &[]);

    b.switch_to_block(body);
    let (more, one) = (b.ins().iadd(sum, n), b.ins().iconst(I32, 1));
    let less = b.ins().isub(n, one);
    b.ins().jump(head, &[BlockArg::from(less), BlockArg::from(more)]);

    b.switch_to_block(exit);
    b.ins().return_(&[sum]);
    b.seal_all_blocks();
    b.finalize(isa.frontend_config());
    func
}

/// Prints the code and the result.
pub fn main() -> Result<(), Box<dyn Error>> {
    let mut flags = settings::builder();
    flags.set("opt_level", "speed")?;
    let isa = isa::lookup_by_name("naplespu")?.finish(settings::Flags::new(flags))?;
    let mut program = Program::new(isa.clone());
    program.define(&triangle(&isa)).map_err(|error| error.to_string())?;
    println!("{}", program.code("triangle").ok_or("no code")?.disassemble(None));
    let results = program.call("triangle", &[DataValue::I32(100)])?;
    println!("%triangle(100) = {}", results[0]);
    assert_eq!(results, [DataValue::I32(5050)]);
    Ok(())
}
