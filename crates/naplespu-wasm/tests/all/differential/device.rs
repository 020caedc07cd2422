//! Runs a module on the simulated device.

use super::smith::{FUEL, FUEL_LEFT};
use super::{Came, ITERATIONS, Kind, Run, Seen, arguments};
use cranelift_codegen::isa::CallConv;
use cranelift_codegen::settings::{self, Configurable};
use cranelift_naplespu::Isa;
use cranelift_naplespu::isa::lookup_by_name;
use cranelift_naplespu::passes::Pass;
use cranelift_naplespu::remarks::{LoopOutcome, LoopRemark};
use naplespu_jit::NpuModule;
use naplespu_wasm::{CallError, Config, Extern, Store, Target, Value, ValueType, has_tail_calls};
use std::sync::Arc;

fn kind(ty: &ValueType) -> Kind {
    match ty {
        ValueType::I32 => Kind::Word,
        ValueType::I64 => Kind::Long,
        ValueType::F32 => Kind::Float,
        ValueType::F64 => Kind::Double,
        ValueType::V128 => Kind::Vector,
        ValueType::Ref(_) => Kind::Null,
    }
}

fn seen(value: &Value) -> Seen {
    match *value {
        Value::I32(value) => Seen::Word(value as u32),
        Value::I64(value) => Seen::Long(value as u64),
        Value::F32(bits) => Seen::Word(bits),
        Value::F64(bits) => Seen::Long(bits),
        Value::V128(bits) => Seen::Vector(bits),
        Value::Func(address) | Value::Exn(address) => Seen::Null(address.is_none()),
        Value::Extern(number) => Seen::Null(number.is_none()),
    }
}

fn value(seen: Seen, ty: ValueType) -> Value {
    match (seen, ty) {
        (Seen::Word(bits), ValueType::F32) => Value::F32(bits),
        (Seen::Long(bits), ValueType::F64) => Value::F64(bits),
        (Seen::Word(bits), _) => Value::I32(bits as i32),
        (Seen::Long(bits), _) => Value::I64(bits as i64),
        (Seen::Vector(bits), _) => Value::V128(bits),
        (Seen::Null(_), ValueType::Ref(reference)) if matches!(reference.target, Target::Extern | Target::NoExtern) => {
            Value::Extern(None)
        }
        (Seen::Null(_), ValueType::Ref(reference)) if matches!(reference.target, Target::Exn | Target::NoExn) => {
            Value::Exn(None)
        }
        (Seen::Null(_), _) => Value::Func(None),
    }
}

/// Converts an error to the outcome that the host can distinguish.
fn came(error: &CallError) -> Result<Came, String> {
    match error {
        CallError::Trap {
            what: "call stack exhausted",
            ..
        } => Ok(Came::Deep),
        CallError::Trap {
            what: "undefined element",
            ..
        } => Ok(Came::Trap("out of bounds table access")),
        CallError::Trap { what, .. } => Ok(Came::Trap(what)),
        other => Err(other.to_string()),
    }
}

fn target(opt_level: &str) -> Arc<Isa> {
    let mut flags = settings::builder();
    flags.set("opt_level", opt_level).unwrap();
    flags.set("regalloc_checker", "true").unwrap();
    let mut builder = lookup_by_name("naplespu").unwrap();
    builder.set("strict_float", "true").unwrap();
    builder.finish(settings::Flags::new(flags)).unwrap()
}

/// Returns whether the loop passes vectorize a loop of the function with this name, and whether
/// they version one.
pub fn reached(module: &[u8], name: &str) -> (bool, bool) {
    let compiled = |isa: Arc<Isa>| {
        let mut store = Store::new(NpuModule::new(isa).unwrap(), Config::default());
        store.load(module).unwrap();
        let npu = store.module();
        let code = npu.code(npu.function_by_name(name).unwrap()).unwrap();
        let is_vector = |remark: &LoopRemark| matches!(remark.outcome, LoopOutcome::Vectorized(_));
        (code.loops.iter().any(is_vector), code.bytes.clone())
    };
    let speed = target("speed");
    let (vectorized, code) = compiled(speed.clone());
    let (_, without) = compiled(Arc::new(speed.without_pass(Pass::Versioning)));
    (vectorized, code != without)
}

/// # Errors
///
/// An unexpected event, as text.
pub fn run(module: &[u8], opt_level: &str) -> Result<Run, String> {
    let isa = target(opt_level);
    let mut config = Config::default();
    if has_tail_calls(module).map_err(|error| error.to_string())? {
        config.convention = CallConv::Tail;
    }
    let mut store = Store::new(NpuModule::new(isa).unwrap(), config);
    let instance = store.load(module).map_err(|error| error.to_string())?;
    let mut run = Run::default();
    if let Err(error) = store.start(&instance) {
        run.calls.push((String::new(), came(&error)?));
        return Ok(run);
    }
    run.calls.push((String::new(), Came::Values(Vec::new())));
    let mut exports: Vec<(String, Extern)> = instance
        .exports()
        .map(|(name, export)| (name.to_owned(), export))
        .collect();
    // Modules of the generators export it.
    let fuel = match instance.export(FUEL_LEFT) {
        Some(Extern::Global(fuel)) => {
            let address = store.module().data_address(fuel.data);
            Some(address.ok_or("a global has an address")?)
        }
        _ => None,
    };
    exports.sort_by(|(one, _), (other, _)| one.cmp(other));
    for iteration in 0..ITERATIONS {
        for (name, export) in &exports {
            let Extern::Func(function) = export else {
                continue;
            };
            let ty = store.type_of(*function).map_err(|error| error.to_string())?.clone();
            let kinds: Vec<Kind> = ty.params.iter().map(kind).collect();
            let args = arguments(name, iteration, &kinds);
            let args: Vec<Value> = args.iter().zip(&ty.params).map(|(&arg, ty)| value(arg, *ty)).collect();
            if let Some(fuel) = fuel {
                store
                    .module_mut()
                    .write_word(fuel, FUEL)
                    .map_err(|error| error.to_string())?;
            }
            let came = match store.call(*function, &args) {
                Ok(results) => Came::Values(results.iter().map(seen).collect()),
                Err(error) => came(&error)?,
            };
            run.calls.push((name.clone(), came));
        }
    }
    for (name, export) in &exports {
        match export {
            Extern::Global(global) => {
                let value = store.global(*global).ok_or("a global has a value")?;
                run.globals.push((name.clone(), seen(&value)));
            }
            Extern::Memory(memory) => {
                let base = store.base(memory.base).ok_or("a memory has an address")?;
                let size = store.module().data_address(memory.size).ok_or("a memory has a size")?;
                let mut bytes = vec![0; store.module().read_word(size) as usize];
                store.module().read_memory(base, &mut bytes);
                run.memories.push((name.clone(), bytes));
            }
            Extern::Func(_) | Extern::Table(_) | Extern::Tag(_) => {}
        }
    }
    Ok(run)
}
