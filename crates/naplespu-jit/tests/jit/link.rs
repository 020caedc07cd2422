//! Tests of references: imports, definitions, host symbols, and calls out of range.

use super::*;
use cranelift_codegen::binemit::Reloc;
use cranelift_module::{ModuleReloc, ModuleRelocTarget};

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
    // Undefined symbols are allowed if the call does not reach them.
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
    // A second declaration with another linkage makes it the module's own.
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
    // The body has to have the declared signature.
    let pair = declare(&mut module, "pair", Linkage::Local, &words(2, 1));
    match body(&mut module, pair, parse(DOUBLE)) {
        Err(ModuleError::IncompatibleSignature(name, ..)) => assert_eq!(name, "pair"),
        other => panic!("{other:?}"),
    }
    // The first definition still holds.
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

/// 1,500 functions over half a megabyte that call their predecessors, and sometimes a function at
/// the other end.
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
            // Each adds 1. Every 50th calls an identity function at the other end.
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

/// A call at the start of a function that is larger than the range of a branch.
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
    // Code that the host wrote itself.
    let bytes = module.code(double).unwrap().bytes.clone();
    let place = module.allocate(u32::try_from(bytes.len()).unwrap(), 4).unwrap();
    module.write_memory(place, &bytes).unwrap();
    module.set_symbol_lookup(Box::new(move |name| (name == "copied").then_some(place)));
    module.finalize_definitions().unwrap();
    assert_eq!(call(&mut module, use_it, &[1]).unwrap(), 202);
    assert_eq!(module.symbol_address("copied"), Some(place));
    assert_eq!(module.symbol_address("nothing"), None);
    // An import with a host address can be called directly.
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
