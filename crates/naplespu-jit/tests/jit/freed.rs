//! Tests of freed functions, data and buffers, and of redefined functions.

use super::*;
use naplespu_jit::HostStop;

/// `%outer(x)` is `%inner(x) + 1`.
const OUTER: &str = "function %outer(i32) -> i32 system_v {
    fn0 = %inner(i32) -> i32 system_v
block0(v0: i32):
    v1 = call fn0(v0)
    v2 = iconst.i32 1
    v3 = iadd v1, v2
    return v3
}";

/// `%inner(x)` is `x` times a constant.
fn inner(factor: i32) -> Function {
    parse(&format!(
        "function %inner(i32) -> i32 system_v {{ block0(v0: i32): v1 = iconst.i32 {factor} v2 = imul v0, v1 return v2 }}"
    ))
}

fn redefine(module: &mut NpuModule, id: FuncId, func: Function) -> Result<(), naplespu_jit::DefineError> {
    module.redefine_function(id, &mut Context::for_function(func))
}

#[test]
fn callers_find_the_new_function() {
    let mut module = module();
    let outer = define(&mut module, OUTER);
    let id = declare(&mut module, "inner", Linkage::Export, &words(1, 1));
    // The first definition by `redefine` is an ordinary definition.
    redefine(&mut module, id, inner(3)).unwrap();
    assert_eq!(call(&mut module, outer, &[5]).unwrap(), 16);
    let mut places = std::collections::HashSet::new();
    for factor in 4..40 {
        redefine(&mut module, id, inner(factor)).unwrap();
        assert_eq!(call(&mut module, outer, &[5]).unwrap(), 5 * factor + 1);
        assert_eq!(call(&mut module, id, &[2]).unwrap(), 2 * factor);
        places.insert(module.function_address(id).unwrap());
    }
    // Two functions exist at a time, so there are two addresses.
    assert_eq!(places.len(), 2);
    assert!(matches!(
        body(&mut module, id, inner(1)),
        Err(ModuleError::DuplicateDefinition(_))
    ));
}

#[test]
fn what_does_not_compile_leaves_the_old_one() {
    let mut module = module();
    let outer = define(&mut module, OUTER);
    let id = declare(&mut module, "inner", Linkage::Export, &words(1, 1));
    redefine(&mut module, id, inner(3)).unwrap();
    let bad = parse("function %inner(i32) -> i32 system_v { block0(v0: i32): v1 = get_pinned_reg.i32 return v1 }");
    let error = redefine(&mut module, id, bad).unwrap_err();
    assert!(error.is_refusal(), "{error}");
    let other = parse("function %inner() system_v { block0: return }");
    assert!(redefine(&mut module, id, other).is_err());
    assert_eq!(call(&mut module, outer, &[5]).unwrap(), 16);
    let import = declare(&mut module, "elsewhere", Linkage::Import, &words(1, 1));
    assert!(redefine(&mut module, import, inner(1)).is_err());
}

#[test]
fn a_freed_function_is_missing_until_it_is_defined_again() {
    let mut module = module();
    let outer = define(&mut module, OUTER);
    let id = declare(&mut module, "inner", Linkage::Export, &words(1, 1));
    body(&mut module, id, inner(3)).unwrap();
    assert_eq!(call(&mut module, outer, &[5]).unwrap(), 16);
    let place = module.function_address(id);
    module.free_function(id).unwrap();
    assert_eq!((module.function_address(id), module.code(id).is_none()), (None, true));
    let error = call(&mut module, outer, &[5]).unwrap_err();
    assert_eq!(error.to_string(), "%inner is not defined, and %outer refers to it");
    assert!(matches!(call(&mut module, id, &[5]), Err(RunError::Undefined { .. })));
    assert!(matches!(module.finalize_definitions(), Err(LinkError::Undefined(_))));
    let twice = module.free_function(id).unwrap_err();
    assert_eq!(twice.to_string(), "%inner is not defined, so it cannot be freed");
    body(&mut module, id, inner(7)).unwrap();
    assert_eq!(module.function_address(id), place);
    assert_eq!(call(&mut module, outer, &[5]).unwrap(), 36);
    module.finalize_definitions().unwrap();
    // An undeclared function.
    assert!(matches!(
        module.free_function(FuncId::from_u32(1000)),
        Err(LinkError::NotDefined(_))
    ));
}

#[test]
fn a_pointer_to_a_freed_function_is_an_error_until_others_have_the_memory() {
    let mut module = module();
    let double = define(&mut module, DOUBLE);
    let indirect = define(
        &mut module,
        "function %indirect(i32, i32) -> i32 system_v {
            sig0 = (i32) -> i32 system_v
        block0(v0: i32, v1: i32):
            v2 = call_indirect.i32 sig0, v0(v1)
            return v2
        }",
    );
    let pointer = module.function_address(double).unwrap() as i32;
    assert_eq!(call(&mut module, indirect, &[pointer, 4]).unwrap(), 8);
    module.free_function(double).unwrap();
    for threads in [1, 2] {
        let error = module
            .call_threads(indirect, &[word(pointer), word(4)], threads)
            .unwrap_err();
        let text = error.to_string();
        assert!(
            text.contains("a call of %double, which was freed in %indirect"),
            "{text}"
        );
    }
    let square = define(&mut module, SQUARE);
    assert_eq!(module.function_address(square), Some(pointer as u32));
    assert_eq!(call(&mut module, indirect, &[pointer, 5]).unwrap(), 25);
}

#[test]
fn words_of_data_follow_unless_the_program_changed_them() {
    let mut module = module();
    let id = declare(&mut module, "inner", Linkage::Export, &words(1, 1));
    body(&mut module, id, inner(3)).unwrap();
    let table = module.declare_data("table", Linkage::Export, true, false).unwrap();
    let mut description = DataDescription::new();
    description.define(vec![0; 12].into());
    let reference = module.declare_func_in_data(id, &mut description);
    for offset in [0, 4, 8] {
        description.write_function_addr(offset, reference);
    }
    module.define_data(table, &description).unwrap();
    module.finalize_definitions().unwrap();
    let address = module.data_address(table).unwrap();
    let old = module.function_address(id).unwrap();
    assert_eq!(module.read_words(address, 3), [old; 3]);
    module.write_word(address + 4, 77).unwrap();
    for factor in [4, 5] {
        redefine(&mut module, id, inner(factor)).unwrap();
        module.finalize_definitions().unwrap();
        let new = module.function_address(id).unwrap();
        assert_eq!(module.read_words(address, 3), [new, 77, new]);
    }
    assert_eq!(module.function_address(id), Some(old));
    // The table is removed with its references; later linking does not write to its address.
    module.free_data(table).unwrap();
    assert!(module.free_data(table).is_err());
    let buffer = module.allocate(12, 64).unwrap();
    assert_eq!(buffer, address);
    redefine(&mut module, id, inner(6)).unwrap();
    module.finalize_definitions().unwrap();
    assert_eq!(module.read_words(buffer, 3), [0; 3]);
}

#[test]
fn freed_memory_is_zero_for_the_next() {
    let mut module = module();
    let first = module.allocate(0x3000, 64).unwrap();
    module.write_words(first, &[7; 0xc00]).unwrap();
    let behind = module.allocate(64, 64).unwrap();
    module.write_word(behind, 9).unwrap();
    assert!(matches!(module.free(first + 64), Err(LinkError::NotAllocated(_))));
    module.free(first).unwrap();
    let error = module.free(first).unwrap_err();
    assert_eq!(error.to_string(), format!("nothing is allocated at {first:#010x}"));
    let zeros = module.declare_data("zeros", Linkage::Export, true, false).unwrap();
    let mut description = DataDescription::new();
    description.define_zeroinit(0x2000);
    module.define_data(zeros, &description).unwrap();
    assert_eq!(module.data_address(zeros), Some(first));
    assert_eq!(module.read_words(first, 0x800), [0; 0x800]);
    let rest = module.allocate(0x1000, 64).unwrap();
    assert_eq!(rest, first + 0x2000);
    assert_eq!(module.read_words(rest, 0x400), [0; 0x400]);
    assert_eq!(module.read_word(behind), 9);
    assert!(module.free(first).is_err(), "a data object is none");
}

#[test]
fn functions_of_the_host_come_and_go() {
    let mut module = module();
    let id = define(
        &mut module,
        "function %f() -> i32 system_v { fn0 = %host() -> i32 system_v block0: v0 = call fn0() return v0 }",
    );
    for number in 1..5 {
        let answer = move |_: naplespu_jit::HostCall<'_>, _: &[DataValue]| Ok::<_, HostStop>(vec![word(number)]);
        let host = module
            .define_host_function("host", &words(0, 1), Box::new(answer))
            .unwrap();
        assert_eq!(call(&mut module, id, &[]).unwrap(), number);
        module.free_function(host).unwrap();
        assert!(matches!(call(&mut module, id, &[]), Err(RunError::Undefined { .. })));
    }
}

#[test]
fn the_host_writes_after_what_the_caches_hold_back() {
    let config = npu_sim::Config {
        coherent: false,
        ..npu_sim::Config::testing(1)
    };
    let mut module = on_device(&[], config);
    let store = define(
        &mut module,
        "function %store(i32, i32) -> i32 system_v { block0(v0: i32, v1: i32): v2 = load.i32 v0 store v1, v0 return v2 }",
    );
    let buffer = module.allocate(64, 64).unwrap();
    assert_eq!(call(&mut module, store, &[buffer as i32, 5]).unwrap(), 0);
    assert_eq!(module.read_word(buffer), 0);
    module.write_word(buffer, 6).unwrap();
    assert_eq!(call(&mut module, store, &[buffer as i32, 7]).unwrap(), 6);
    // A reused address does not receive dirty lines of the freed buffer.
    module.free(buffer).unwrap();
    assert_eq!(module.allocate(64, 64).unwrap(), buffer);
    assert_eq!(call(&mut module, store, &[buffer as i32, 8]).unwrap(), 0);
}

/// Functions that call earlier ones are defined, redefined with code of another length, freed and
/// called, in random order. The results match a model of the call graph.
#[test]
fn any_order_of_definitions_gives_what_is_defined_last() {
    const FUNCTIONS: usize = 12;
    /// The constant that a function adds to a multiple of its argument, and its callees.
    type Body = (i32, Vec<usize>);

    /// Returns the result of a call; `None` if it reaches an undefined function.
    fn expected(bodies: &[Option<Body>], number: usize, x: i32) -> Option<i32> {
        let (own, callees) = bodies[number].as_ref()?;
        let mut sum = x.wrapping_mul(3).wrapping_add(*own);
        for &callee in callees {
            sum = sum.wrapping_add(expected(bodies, callee, x.wrapping_add(1))?);
        }
        Some(sum)
    }

    fn text(number: usize, (own, callees): &Body, length: usize) -> String {
        let mut text = format!("function %f{number}(i32) -> i32 system_v {{\n");
        for (place, callee) in callees.iter().enumerate() {
            text += &format!("    fn{place} = %f{callee}(i32) -> i32 system_v\n");
        }
        text += "block0(v0: i32):\n    v1 = iconst.i32 1\n    v2 = iadd v0, v1\n    v3 = iconst.i32 3\n    v4 = imul v0, v3\n";
        text += &format!("    v5 = iconst.i32 {own}\n    v6 = iadd v4, v5\n");
        // Only increases the code size.
        let mut last = 6;
        for _ in 0..length {
            text += &format!(
                "    v{} = bnot v{last}\n    v{} = rotl v{}, v0\n",
                last + 1,
                last + 2,
                last + 1
            );
            text += &format!(
                "    v{} = rotr v{}, v0\n    v{} = bnot v{}\n",
                last + 3,
                last + 2,
                last + 4,
                last + 3
            );
            last += 4;
        }
        for (place, _) in callees.iter().enumerate() {
            text += &format!("    v{} = call fn{place}(v2)\n", last + 1);
            text += &format!("    v{} = iadd v{}, v{last}\n", last + 2, last + 1);
            last += 2;
        }
        text + &format!("    return v{last}\n}}")
    }

    let mut state = 7u64;
    let mut random = |bound: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % bound
    };
    let mut module = with_flags(&[("opt_level", "none")]);
    let ids: Vec<FuncId> = (0..FUNCTIONS)
        .map(|number| declare(&mut module, &format!("f{number}"), Linkage::Export, &words(1, 1)))
        .collect();
    let mut bodies: Vec<Option<Body>> = vec![None; FUNCTIONS];
    let (mut results, mut missing, mut highest) = (0, 0, 0);
    for step in 0..1500 {
        let number = random(FUNCTIONS);
        match random(6) {
            0 if bodies[number].is_some() => {
                module.free_function(ids[number]).unwrap();
                bodies[number] = None;
            }
            0 => assert!(module.free_function(ids[number]).is_err()),
            1 | 2 => {
                let callees = (0..number).filter(|_| random(4) == 0).take(3).collect();
                let body = (random(1000) as i32, callees);
                let func = parse(&text(number, &body, random(12)));
                redefine(&mut module, ids[number], func).unwrap();
                highest = highest.max(module.function_address(ids[number]).unwrap());
                bodies[number] = Some(body);
            }
            _ => {
                let x = random(100) as i32;
                match (expected(&bodies, number, x), call(&mut module, ids[number], &[x])) {
                    (Some(wanted), Ok(result)) => {
                        assert_eq!(result, wanted, "step {step}");
                        results += 1;
                    }
                    (None, Err(RunError::Undefined { .. })) => missing += 1,
                    other => panic!("step {step}: {other:?}"),
                }
            }
        }
    }
    assert!(results > 100 && missing > 50, "{results} {missing}");
    // Hundreds of functions were defined, twelve at a time.
    assert!(highest < 0x1000 + 16 * 1024, "{highest:#x}");
}

#[test]
fn a_function_that_moves_out_of_reach_and_back_is_reached() {
    let mut module = module();
    let outer = define(&mut module, OUTER);
    let id = declare(&mut module, "inner", Linkage::Export, &words(1, 1));
    body(&mut module, id, inner(3)).unwrap();
    assert_eq!(call(&mut module, outer, &[5]).unwrap(), 16);
    let near = module.function_address(id).unwrap();
    // Longer than the range of a branch.
    let wall = declare(&mut module, "wall", Linkage::Export, &words(0, 0));
    module.define_function_bytes(wall, 64, &[0; 300 << 10], &[]).unwrap();
    for iteration in 0..4 {
        redefine(&mut module, id, inner(4 + iteration)).unwrap();
        assert_eq!(call(&mut module, outer, &[5]).unwrap(), 5 * (4 + iteration) + 1);
        let place = module.function_address(id).unwrap();
        assert_eq!(place == near, iteration % 2 == 1, "{place:#x}");
        assert!(place == near || place > near + (300 << 10));
    }
}
