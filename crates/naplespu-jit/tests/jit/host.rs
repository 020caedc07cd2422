//! Tests of host functions, which code of the device calls.

use super::*;
use naplespu_jit::HostStop;
use std::sync::{Arc, Mutex};

/// Arguments in registers and in memory, and more results than registers.
fn far_signature(convention: CallConv) -> Signature {
    let mut signature = Signature::new(convention);
    for ty in [types::I64, types::F64, types::I64, types::F32, types::I64, types::I32] {
        signature.params.push(AbiParam::new(ty));
    }
    for ty in [types::I64, types::F64, types::I64, types::I32] {
        signature.returns.push(AbiParam::new(ty));
    }
    signature
}

#[test]
fn every_place_of_arguments_and_results() {
    for convention in [CallConv::SystemV, CallConv::Tail] {
        let mut module = module();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let record = seen.clone();
        let function = move |call: naplespu_jit::HostCall<'_>, args: &[DataValue]| {
            record.lock().unwrap().push((call.thread, args.to_vec()));
            let [DataValue::I64(a), b, ..] = args else {
                return Err(HostStop::Fault("no arguments".to_owned()));
            };
            Ok(vec![
                DataValue::I64(a + 1),
                b.clone(),
                DataValue::I64(-3),
                DataValue::I32(4),
            ])
        };
        let signature = far_signature(convention);
        module
            .define_host_function("host", &signature, Box::new(function))
            .unwrap();
        let id = define(
            &mut module,
            &format!(
                "function %f(i64, f64) -> i64, f64, i64, i32 system_v {{
                    sig0 = (i64, f64, i64, f32, i64, i32) -> i64, f64, i64, i32 {convention}
                    fn0 = %host sig0
                block0(v0: i64, v1: f64):
                    v2 = iconst.i64 -7
                    v3 = f32const 0x1.8p0
                    v4 = iconst.i32 99
                    v5, v6, v7, v8 = call fn0(v0, v1, v2, v3, v2, v4)
                    v9, v10, v11, v12 = call fn0(v5, v6, v7, v3, v2, v8)
                    return v9, v10, v11, v12
                }}"
            ),
        );
        let half = DataValue::F64(0.5.into());
        for threads in [1, 3] {
            let results = module
                .call_threads(id, &[DataValue::I64(1 << 40), half.clone()], threads)
                .unwrap();
            let expected = vec![
                DataValue::I64((1 << 40) + 2),
                half.clone(),
                DataValue::I64(-3),
                DataValue::I32(4),
            ];
            assert_eq!(results, vec![expected; threads]);
        }
        let seen = seen.lock().unwrap();
        assert_eq!(seen.len(), 2 + 6);
        assert!((0..3).all(|thread| seen.iter().filter(|(number, _)| *number == thread).count() >= 2));
        let rest = [
            DataValue::I64(-7),
            DataValue::F32(1.5.into()),
            DataValue::I64(-7),
            DataValue::I32(99),
        ];
        assert_eq!(seen[0].1[2..], rest);
    }
}

/// Vectors in registers and in memory, in both directions; unused lanes are arbitrary.
#[test]
fn vectors_of_sixteen_bytes() {
    const COUNT: usize = 12;
    let shapes = [types::I32X4, types::I8X16, types::F32X4, types::I16X8];
    for convention in [CallConv::SystemV, CallConv::Tail] {
        let mut module = module();
        let mut signature = Signature::new(convention);
        let types: Vec<cranelift_codegen::ir::Type> = (0..COUNT).map(|number| shapes[number % shapes.len()]).collect();
        signature.params.extend(types.iter().map(|ty| AbiParam::new(*ty)));
        signature.params.push(AbiParam::new(types::I64));
        signature.returns = signature.params.clone();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let record = seen.clone();
        let function = move |_: naplespu_jit::HostCall<'_>, args: &[DataValue]| {
            record.lock().unwrap().push(args.to_vec());
            // Reverses the bytes.
            let turned = args.iter().map(|arg| match arg {
                DataValue::V128(bytes) => DataValue::V128(std::array::from_fn(|at| bytes[15 - at])),
                other => other.clone(),
            });
            Ok(turned.collect())
        };
        module
            .define_host_function("host", &signature, Box::new(function))
            .unwrap();
        let list = |name: &str| {
            let names: Vec<String> = (0..=COUNT).map(|number| format!("{name}{number}")).collect();
            names.join(", ")
        };
        let names: Vec<String> = types.iter().map(ToString::to_string).collect();
        let names = names.join(", ") + ", i64";
        let params: Vec<String> = names
            .split(", ")
            .enumerate()
            .map(|(k, ty)| format!("v{k}: {ty}"))
            .collect();
        let id = define(
            &mut module,
            &format!(
                "function %f({names}) -> {names} {convention} {{
                    sig0 = ({names}) -> {names} {convention}
                    fn0 = %host sig0
                block0({}):
                    {} = call fn0({})
                    return {}
                }}",
                params.join(", "),
                list("v1000"),
                list("v"),
                list("v1000"),
            ),
        );
        let mut args: Vec<DataValue> = (0..COUNT as u8)
            .map(|number| DataValue::V128(std::array::from_fn(|at| number << 4 | at as u8)))
            .collect();
        args.push(DataValue::I64(-1 << 40));
        let results = module.call(id, &args).unwrap();
        assert_eq!(seen.lock().unwrap()[..], [args.clone()]);
        for (result, arg) in results.iter().zip(&args) {
            match (result, arg) {
                (DataValue::V128(result), DataValue::V128(arg)) => assert!(result.iter().eq(arg.iter().rev())),
                (result, arg) => assert_eq!(result, arg),
            }
        }
    }
}

#[test]
fn a_host_function_can_end_the_call() {
    for (stop, text) in [
        (HostStop::Exit(7), "the program ended with status 7"),
        (HostStop::Fault("no such thing".to_owned()), "%host: no such thing"),
    ] {
        let mut module = module();
        let signature = Signature::new(CallConv::SystemV);
        let function = move |_: naplespu_jit::HostCall<'_>, _: &[DataValue]| Err(stop.clone());
        module
            .define_host_function("host", &signature, Box::new(function))
            .unwrap();
        let text_of_f = "function %f() system_v {\n fn0 = %host() system_v\nblock0:\n call fn0()\n return\n}";
        let id = define(&mut module, text_of_f);
        assert_eq!(module.call(id, &[]).unwrap_err().to_string(), text);
    }
}

/// Vectors without a `DataValue` are passed as their lanes, whether in a register, in memory, or in
/// words.
#[test]
fn long_vectors_are_their_lanes() {
    let types = [types::I32X16, types::I64X4, types::I8X16, types::I32X16, types::I64X8];
    for convention in [CallConv::SystemV, CallConv::Tail] {
        for coherent in [true, false] {
            let config = npu_sim::Config {
                coherent,
                ..npu_sim::Config::testing(1)
            };
            let mut module = on_device(&[("opt_level", "speed")], config);
            let mut signature = Signature::new(convention);
            signature.params.extend(types.map(AbiParam::new));
            signature.returns.extend(types.map(AbiParam::new));
            let counts = [16, 4, 1, 16, 8];
            // Increments each lane.
            let function = move |_: naplespu_jit::HostCall<'_>, args: &[DataValue]| {
                let lane = |value: &DataValue| match value {
                    DataValue::I32(lane) => DataValue::I32(lane + 1),
                    DataValue::I64(lane) => DataValue::I64(lane + 1),
                    DataValue::V128(bytes) => DataValue::V128(bytes.map(|byte| byte + 1)),
                    other => other.clone(),
                };
                if args.len() == counts.iter().sum() {
                    Ok(args.iter().map(lane).collect())
                } else {
                    Err(HostStop::Fault(format!("{} arguments", args.len())))
                }
            };
            module
                .define_host_function("host", &signature, Box::new(function))
                .unwrap();
            let list = "i32x16, i64x4, i8x16, i32x16, i64x8";
            let id = define(
                &mut module,
                &format!(
                    "function %f({list}) -> {list} system_v {{
                        sig0 = ({list}) -> {list} {convention}
                        fn0 = %host sig0
                    block0(v0: i32x16, v1: i64x4, v2: i8x16, v3: i32x16, v4: i64x8):
                        v5, v6, v7, v8, v9 = call fn0(v0, v1, v2, v3, v4)
                        v10, v11, v12, v13, v14 = call fn0(v5, v6, v7, v8, v9)
                        return v10, v11, v12, v13, v14
                    }}"
                ),
            );
            let values = |plus: i64| -> Vec<DataValue> {
                let words = |from: i32| (0..16).map(move |lane| DataValue::I32(from + lane + plus as i32));
                let longs = |from: i64, count| (0..count).map(move |lane| DataValue::I64((from << 40) + lane + plus));
                let bytes: [u8; 16] = std::array::from_fn(|lane| lane as u8 + plus as u8);
                let short = std::iter::once(DataValue::V128(bytes));
                words(100)
                    .chain(longs(3, 4))
                    .chain(short)
                    .chain(words(-200))
                    .chain(longs(-5, 8))
                    .collect()
            };
            let results = module.call_threads(id, &values(0), 3).unwrap();
            assert_eq!(results, vec![values(2); 3]);
        }
    }
}

#[test]
fn types_that_the_host_has_no_value_for_are_refused() {
    let mut module = module();
    let mut signature = words(1, 1);
    signature.params.push(AbiParam::new(types::I32X4XN));
    let function = |_: naplespu_jit::HostCall<'_>, _: &[DataValue]| Ok(Vec::new());
    let refused = module.define_host_function("host", &signature, Box::new(function));
    let text = refused.unwrap_err().to_string();
    assert!(text.contains("%host: the host has no value of type"), "{text}");
    // Its results have to match the declaration.
    module
        .define_host_function("few", &words(0, 1), Box::new(function))
        .unwrap();
    let text = "function %f() -> i32 system_v { fn0 = %few() -> i32 system_v block0: v0 = call fn0() return v0 }";
    let id = define(&mut module, text);
    let error = module.call(id, &[]).unwrap_err();
    assert_eq!(error.to_string(), "%few: its results are not those of its signature");
}
