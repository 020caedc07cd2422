//! Tests of the module on the simulator: declarations, data with relocations, linking, calls,
//! memory, errors.

use cranelift_codegen::data_value::DataValue;
use cranelift_codegen::ir::{AbiParam, Function, Signature, types};
use cranelift_codegen::isa::CallConv;
use cranelift_codegen::settings::Configurable;
use cranelift_codegen::{Context, settings};
use cranelift_module::{DataDescription, DataId, FuncId, Linkage, Module, ModuleError};
use cranelift_naplespu::isa;
use naplespu_jit::NpuModule;
use naplespu_jit::{LinkError, RunError};

mod atomics;
mod calls;
mod copies;
mod data;
mod device;
mod errors;
mod exceptions;
mod freed;
mod host;
mod library;
mod link;
mod parallel;
mod recipe;
mod threads;
mod tls;
mod trace;
#[cfg(feature = "jit")]
mod translated;

fn module() -> NpuModule {
    with_flags(&[("opt_level", "speed"), ("regalloc_checker", "true")])
}

/// Returns a module on a device that ignores errata, with zeroed memory.
fn lenient_module() -> NpuModule {
    on_device(&[("opt_level", "speed")], npu_sim::Config::default())
}

/// Returns a module on a device that stops at errata, with random memory.
fn with_flags(list: &[(&str, &str)]) -> NpuModule {
    on_device(list, npu_sim::Config::testing(1))
}

fn on_device(list: &[(&str, &str)], config: npu_sim::Config) -> NpuModule {
    let mut flags = settings::builder();
    for (name, value) in list {
        flags.set(name, value).unwrap();
    }
    NpuModule::with_config(
        isa::lookup_by_name("naplespu")
            .unwrap()
            .finish(settings::Flags::new(flags))
            .unwrap(),
        config,
    )
    .unwrap()
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

/// Returns a signature of words.
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

/// Returns one value of every scalar type.
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
