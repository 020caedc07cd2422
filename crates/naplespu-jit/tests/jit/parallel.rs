//! Functions that are compiled by several threads: what comes out is what one thread makes.

use super::*;
use cranelift_naplespu::Isa;
use naplespu_jit::{DefineError, Program};
use std::sync::Arc;

fn target(level: &str) -> Arc<Isa> {
    let mut flags = settings::builder();
    flags.set("opt_level", level).unwrap();
    isa::lookup_by_name("naplespu")
        .unwrap()
        .finish(settings::Flags::new(flags))
        .unwrap()
}

/// Functions that call one another, of which one is refused and one is there twice; enough of them that threads share the work.
fn many() -> Vec<Function> {
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
    text += "function %f7(i32) -> i32 {\nblock0(v0: i32):\n    return v0\n}\n";
    text += "function %bad(i32x4) -> i32x4 {\nblock0(v0: i32x4):\n    return v0\n}\n";
    cranelift_reader::parse_functions(&text).unwrap()
}

#[test]
fn threads_give_what_one_gives() {
    let functions = many();
    for level in ["none", "speed"] {
        let (mut one, mut several) = (Program::new(target(level)), Program::new(target(level)));
        let text = |result: &Result<(), DefineError>| result.as_ref().err().map(ToString::to_string);
        let expected: Vec<_> = functions.iter().map(|func| text(&one.define(func))).collect();
        let results: Vec<_> = several
            .define_all(&functions.iter().collect::<Vec<_>>())
            .iter()
            .map(text)
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
