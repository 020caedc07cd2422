//! Runs a module in `wasmtime`.

use super::smith::{FUEL, FUEL_LEFT};
use super::{Came, ITERATIONS, Kind, Run, Seen, arguments};
use wasmtime::{Config, Engine, Error, Extern, Instance, Module, Store, ThrownException, Trap, V128, Val, ValType};

fn kind(ty: &ValType) -> Kind {
    match ty {
        ValType::I32 => Kind::Word,
        ValType::I64 => Kind::Long,
        ValType::F32 => Kind::Float,
        ValType::F64 => Kind::Double,
        ValType::V128 => Kind::Vector,
        ValType::Ref(_) => Kind::Null,
    }
}

fn seen(value: &Val) -> Seen {
    match value {
        Val::I32(value) => Seen::Word(*value as u32),
        Val::I64(value) => Seen::Long(*value as u64),
        Val::F32(bits) => Seen::Word(*bits),
        Val::F64(bits) => Seen::Long(*bits),
        Val::V128(value) => Seen::Vector(value.as_u128()),
        Val::FuncRef(value) => Seen::Null(value.is_none()),
        Val::ExternRef(value) => Seen::Null(value.is_none()),
        Val::ExnRef(value) => Seen::Null(value.is_none()),
        other => panic!("{other:?} is of no type that the generator has"),
    }
}

fn value(seen: Seen, ty: &ValType) -> Val {
    match (seen, ty) {
        (Seen::Word(bits), ValType::F32) => Val::F32(bits),
        (Seen::Long(bits), ValType::F64) => Val::F64(bits),
        (Seen::Word(bits), _) => Val::I32(bits as i32),
        (Seen::Long(bits), _) => Val::I64(bits as i64),
        (Seen::Vector(bits), _) => Val::V128(V128::from(bits)),
        (Seen::Null(_), ty) => null(ty),
    }
}

fn null(ty: &ValType) -> Val {
    Val::default_for_ty(ty).expect("all references can be null")
}

fn came(error: &Error) -> Came {
    if error.is::<ThrownException>() {
        return Came::Trap("uncaught exception");
    }
    Came::Trap(match error.downcast_ref::<Trap>() {
        Some(Trap::UnreachableCodeReached) => "unreachable",
        Some(Trap::MemoryOutOfBounds) => "out of bounds memory access",
        Some(Trap::TableOutOfBounds) => "out of bounds table access",
        Some(Trap::IndirectCallToNull) => "uninitialized element",
        Some(Trap::IntegerDivisionByZero) => "integer divide by zero",
        Some(Trap::IntegerOverflow) => "integer overflow",
        Some(Trap::BadConversionToInteger) => "invalid conversion to integer",
        Some(Trap::BadSignature) => "indirect call type mismatch",
        Some(Trap::NullReference) => "null exception reference",
        Some(Trap::StackOverflow) => return Came::Deep,
        other => panic!("{other:?}: {error}"),
    })
}

pub fn run(module: &[u8]) -> Run {
    let engine = Engine::new(
        Config::new()
            .max_wasm_stack(1 << 20)
            .wasm_multi_memory(true)
            .wasm_exceptions(true),
    )
    .expect("the host is known");
    let module = Module::new(&engine, module).expect("the generator makes valid modules");
    let mut store = Store::new(&engine, ());
    let mut run = Run::default();
    let instance = match Instance::new(&mut store, &module, &[]) {
        Ok(instance) => instance,
        Err(error) => {
            run.calls.push((String::new(), came(&error)));
            return run;
        }
    };
    run.calls.push((String::new(), Came::Values(Vec::new())));
    let mut exports: Vec<(String, Extern)> = instance
        .exports(&mut store)
        .map(|export| (export.name().to_owned(), export.into_extern()))
        .collect();
    // Modules of the generator export it.
    let fuel = instance.get_global(&mut store, FUEL_LEFT);
    exports.sort_by(|(one, _), (other, _)| one.cmp(other));
    for iteration in 0..ITERATIONS {
        for (name, export) in &exports {
            let Extern::Func(function) = export else {
                continue;
            };
            let ty = function.ty(&store);
            let kinds: Vec<Kind> = ty.params().map(|ty| kind(&ty)).collect();
            let args = arguments(name, iteration, &kinds);
            let args: Vec<Val> = args.iter().zip(ty.params()).map(|(&arg, ty)| value(arg, &ty)).collect();
            let mut results: Vec<Val> = ty.results().map(|ty| null(&ty)).collect();
            if let Some(fuel) = fuel {
                fuel.set(&mut store, Val::I32(FUEL as i32))
                    .expect("the steps are a number");
            }
            let came = match function.call(&mut store, &args, &mut results) {
                Ok(()) => Came::Values(results.iter().map(seen).collect()),
                Err(error) => came(&error),
            };
            run.calls.push((name.clone(), came));
        }
    }
    for (name, export) in &exports {
        match export {
            Extern::Global(global) => run.globals.push((name.clone(), seen(&global.get(&mut store)))),
            Extern::Memory(memory) => run.memories.push((name.clone(), memory.data(&store).to_vec())),
            _ => {}
        }
    }
    run
}
