//! Compilation on several threads has the same results as on one thread.

use super::device::device;
use super::*;
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::ir::InstructionData;
use cranelift_naplespu::{Isa, inlining};
use naplespu_jit::device::{DeviceError, ThreadSet};
use naplespu_jit::{DefineError, Device, Program, parallel};
use std::sync::Arc;

fn target(level: &str) -> Arc<Isa> {
    let mut flags = settings::builder();
    flags.set("opt_level", level).unwrap();
    isa::lookup_by_name("naplespu")
        .unwrap()
        .finish(settings::Flags::new(flags))
        .unwrap()
}

/// A second function with the name of another one.
const TWICE: &str = "function %f7(i32) -> i32 {\nblock0(v0: i32):\n    return v0\n}\n";

/// Functions that call one another and are large enough for several threads. One is refused. `more`
/// is the text of other functions.
pub fn many(more: &str) -> Vec<Function> {
    let mut text = String::new();
    for number in 0..60 {
        text += &format!(
            "function %f{number}(i32) -> i32 {{\n    fn0 = %f{}(i32) -> i32\nblock0(v0: i32):\n",
            number + 1
        );
        for step in 1..200 + number {
            text += &format!("    v{step} = imul v{}, v{}\n", step - 1, step / 2);
        }
        text += &format!("    v1000 = call fn0(v{})\n    return v1000\n}}\n", 199 + number);
    }
    text += "function %f60(i32) -> i32 {\nblock0(v0: i32):\n    return v0\n}\n";
    text += more;
    text += "function %bad() -> i32 {\nblock0:\n    v0 = get_pinned_reg.i32\n    return v0\n}\n";
    cranelift_reader::parse_functions(&text).unwrap()
}

#[test]
fn threads_give_what_one_gives() {
    let functions = many(TWICE);
    for level in ["none", "speed"] {
        let (mut one, mut several) = (Program::new(target(level)), Program::new(target(level)));
        let text = |result: &Result<(), DefineError>| result.as_ref().err().map(ToString::to_string);
        let expected: Vec<_> = functions.iter().map(|func| text(&one.define(func))).collect();
        let isa = target(level);
        let compiled = parallel::map(
            functions.iter().collect(),
            |func| func.dfg.num_insts(),
            |worker, func| worker.compile(&isa, func),
        );
        let results: Vec<_> = functions
            .iter()
            .zip(compiled)
            .map(|(func, code)| text(&several.define_compiled(func, code)))
            .collect();
        assert_eq!(results, expected);
        assert_eq!(expected.iter().flatten().count(), 2, "{expected:?}");
        for number in 0..=60 {
            let name = format!("f{number}");
            assert_eq!(
                several.code(&name).unwrap().bytes,
                one.code(&name).unwrap().bytes,
                "{name}"
            );
            assert_eq!(several.address(&name), one.address(&name), "{name}");
        }
        let call = |program: &mut Program| program.call("f0", &[DataValue::I32(3)]).unwrap();
        assert_eq!(call(&mut several), call(&mut one));
    }
}

/// The same for functions with numeric names, as front ends make them.
#[test]
fn modules_are_the_same() {
    let functions = many(TWICE);
    let mut modules = [(); 2].map(|()| NpuModule::new(target("speed")).unwrap());
    let mut results = Vec::new();
    for (module, at_once) in modules.iter_mut().zip([false, true]) {
        let ids: Vec<_> = functions[..61]
            .iter()
            .map(|func| {
                let name = func.name.to_string();
                module
                    .declare_function(&name, Linkage::Export, &func.signature)
                    .unwrap()
            })
            .collect();
        let mut contexts: Vec<_> = ids
            .iter()
            .enumerate()
            .map(|(number, &id)| {
                let mut func = functions[number].clone();
                if let Some(&callee) = ids.get(number + 1) {
                    let callee = module.declare_func_in_func(callee, &mut func);
                    let calls: Vec<_> = func
                        .layout
                        .blocks()
                        .flat_map(|block| func.layout.block_insts(block))
                        .collect();
                    for inst in calls {
                        if let InstructionData::Call { func_ref, .. } = &mut func.dfg.insts[inst] {
                            *func_ref = callee;
                        }
                    }
                }
                (id, Context::for_function(func))
            })
            .collect();
        // A function that occurs earlier in the list.
        contexts.push((ids[7], Context::for_function(functions[7].clone())));
        let outcomes: Vec<_> = if at_once {
            module.compile_functions(&mut contexts)
        } else {
            let mut one =
                |(id, ctx): &mut (_, Context)| module.compile_function(*id, ctx, &mut ControlPlane::default());
            contexts.iter_mut().map(&mut one).collect()
        };
        assert_eq!(outcomes.iter().filter(|outcome| outcome.is_err()).count(), 1);
        let codes: Vec<_> = ids.iter().map(|&id| module.code(id).unwrap().bytes.clone()).collect();
        results.push((codes, module.call(ids[0], &[DataValue::I32(3)]).unwrap()));
    }
    assert_eq!(results[0], results[1]);
}

#[test]
fn functions_compiled_at_once_are_those_compiled_one_by_one() {
    let functions = many("");
    let instructions: usize = functions.iter().map(|func| func.dfg.num_insts()).sum();
    assert!(instructions > 10_000, "too few to be shared between threads");
    let (mut one, mut many) = (device(1, true), device(1, true));
    let mut inlined = functions.clone();
    inlining::inline_text(one.module().npu_isa(), &mut inlined).unwrap();
    let first: Vec<_> = inlined.iter().map(|func| one.add_function(func)).collect();
    let second = many.add_functions(&functions);
    assert_eq!(first.len(), second.len());
    for (number, (first, second)) in first.iter().zip(&second).enumerate() {
        match (first, second) {
            (Ok(first), Ok(second)) => {
                let [one, many] = [(&one, first), (&many, second)].map(|(device, id)| {
                    let module = device.module();
                    (module.code(*id).unwrap().bytes.clone(), module.function_address(*id))
                });
                assert_eq!(one, many, "{number}");
            }
            (Err(first), Err(second)) => {
                assert_eq!((number, first.to_string()), (61, second.to_string()));
            }
            other => panic!("{other:?}"),
        }
    }
    let run = |device: &mut Device| {
        let kernel = device.function("f0").unwrap();
        let launch = device.launch(kernel, ThreadSet::first(1), &[3.into()]).unwrap();
        launch.wait().unwrap().results
    };
    assert_eq!(run(&mut one), run(&mut many));
    let bad = many.function("bad").unwrap();
    let error = many.launch(bad, ThreadSet::first(1), &[]).unwrap_err();
    assert!(
        matches!(error, DeviceError::Launch(RunError::Refused { .. })),
        "{error}"
    );
}
