//! Tests of refusals and their messages, damaged modules, unaligned addresses, and the locations of
//! traps.

use cranelift_codegen::settings::{self, Configurable};
use cranelift_naplespu::isa::lookup_by_name;
use naplespu_jit::NpuModule;
use naplespu_wasm::{Config, Imports, SourceLines, Store, Types, Value, WasmError, translate};

fn module(opt_level: &str) -> NpuModule {
    let mut flags = settings::builder();
    flags.set("opt_level", opt_level).unwrap();
    let mut builder = lookup_by_name("naplespu").unwrap();
    builder.set("strict_float", "true").unwrap();
    NpuModule::new(builder.finish(settings::Flags::new(flags)).unwrap()).unwrap()
}

/// Returns the CLIF of a module, or the error.
fn clif(bytes: &[u8]) -> Result<String, WasmError> {
    let mut module = module("none");
    let translated = translate(
        &mut module,
        bytes,
        &Config::default(),
        &mut Types::default(),
        &Imports::default(),
    )?;
    let functions = translated.functions.iter();
    Ok(functions.map(|(_, ctx)| ctx.func.display().to_string()).collect())
}

fn refusal(text: &str) -> String {
    clif(&wat::parse_str(text).unwrap()).unwrap_err().to_string()
}

#[test]
fn refusals_have_names_and_offsets() {
    for (text, expected) in [
        (
            "(module (memory i64 1))",
            "at offset 0xb: a memory with 64-bit addresses is not supported on naplespu",
        ),
        (
            "(module (table i64 1 funcref))",
            "at offset 0xb: a table with 64-bit indices is not supported on naplespu",
        ),
        (
            "(module (func try catch_all end))",
            "at offset 0x17: the instruction Try is not supported on naplespu",
        ),
        (
            "(module (type (struct)))",
            "at offset 0xb: a type of the garbage-collection proposal is not supported on naplespu",
        ),
        (
            "(module (func i32.const 0 ref.i31 drop))",
            "at offset 0x19: the instruction RefI31 is not supported on naplespu",
        ),
        (
            "(module (import \"env\" \"puts\" (func (param i32))))",
            "at offset 0x12: unknown import: env.puts",
        ),
        (
            "(module (memory 65536))",
            "at offset 0xb: too large: a memory of 65536 pages; 67108864 bytes are reserved",
        ),
    ] {
        assert_eq!(refusal(text), expected, "{text}");
    }
}

/// Damaged modules are refused or translated, without a panic.
#[test]
fn damaged_modules_end_in_a_verdict() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../naplespu-tools/tests/cli/inputs/wasm");
    let good = std::fs::read(format!("{folder}/crc32.wasm")).unwrap();
    assert!(clif(&good).is_ok());
    let mut state = 1u64;
    let mut random = |limit: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 20) as usize % limit
    };
    let mut translated = 0;
    for _ in 0..3000 {
        let mut bytes = good.clone();
        for _ in 0..=random(3) {
            let at = random(bytes.len());
            match random(4) {
                0 => bytes[at] = random(256) as u8,
                1 => bytes[at] ^= 1 << random(8),
                2 => bytes.truncate(at.max(8)),
                _ => bytes.insert(at, random(256) as u8),
            }
        }
        translated += usize::from(clif(&bytes).is_ok());
    }
    // Some damage has no effect.
    assert!((10..2990).contains(&translated), "{translated}");
}

const ACCESSES: &str = r#"(module
    (memory 1)
    (func (export "word") (param i32 i32) (result i32)
        local.get 0 local.get 1 i32.store offset=3
        local.get 0 i32.load offset=3)
    (func (export "long") (param i32 i64) (result i64)
        local.get 0 local.get 1 i64.store
        local.get 0 i64.load)
    (func (export "half") (param i32 i32) (result i32)
        local.get 0 local.get 1 i32.store16 offset=1
        local.get 0 i32.load16_s offset=1)
    (func (export "double") (param i32 f64) (result f64)
        local.get 0 local.get 1 f64.store offset=2
        local.get 0 f64.load offset=2)
    (func (export "byte") (param i32) (result i32) local.get 0 i32.load8_u))"#;

/// Loads return the stored value at every address, and the bytes are in little-endian order.
#[test]
fn addresses_that_are_not_aligned() {
    for level in ["none", "speed"] {
        let mut store = Store::new(module(level), Config::default());
        let instance = store.load(&wat::parse_str(ACCESSES).unwrap()).unwrap();
        store.start(&instance).unwrap();
        let mut call = |name: &str, args: &[Value]| store.invoke(&instance, name, args).map(|values| values[0]);
        let double = Value::F64(1.1f64.to_bits());
        for at in 100..116 {
            let place = Value::I32(at);
            let word = Value::I32(0x1234_5678 + at);
            assert_eq!(call("word", &[place, word]).unwrap(), word);
            for (k, byte) in (0x1234_5678 + at).to_le_bytes().into_iter().enumerate() {
                let there = call("byte", &[Value::I32(at + 3 + k as i32)]).unwrap();
                assert_eq!(there, Value::I32(byte.into()));
            }
            let long = Value::I64(0x0123_4567_89ab_cdef + i64::from(at));
            assert_eq!(call("long", &[place, long]).unwrap(), long);
            assert_eq!(
                call("half", &[place, Value::I32(0x1_8001)]).unwrap(),
                Value::I32(-0x7fff)
            );
            assert_eq!(call("double", &[place, double]).unwrap(), double);
        }
        // The last bytes of the memory, and one byte further.
        assert_eq!(
            call("long", &[Value::I32(0xfff8), Value::I64(5)]).unwrap(),
            Value::I64(5)
        );
        for (name, at, value) in [
            ("long", 0xfff9, Value::I64(5)),
            ("long", -1, Value::I64(5)),
            ("word", 0xfffa, Value::I32(5)),
            ("word", -3, Value::I32(5)),
        ] {
            let error = call(name, &[Value::I32(at), value]).unwrap_err().to_string();
            let expected = format!("trap: out of bounds memory access in {name} at offset 0x");
            assert!(error.starts_with(&expected), "{error}");
        }
    }
}

/// Elements of a list at any address, with the address arithmetic that compilers emit.
const ELEMENTS: [(&str, &str); 6] = [
    ("sum", "local.get 0 local.get 1 i32.const 2 i32.shl i32.add"),
    ("swapped", "local.get 1 i32.const 12 i32.mul local.get 0 i32.add"),
    ("difference", "local.get 0 local.get 1 i32.const 3 i32.shl i32.sub"),
    ("or", "local.get 0 local.get 1 i32.const 2 i32.shl i32.or"),
    ("xor", "local.get 1 i32.const -4 i32.and local.get 0 i32.xor"),
    (
        "nested",
        "local.get 0 local.get 1 i32.const 20 i32.mul i32.add local.get 1 i32.const 2 i32.shl i32.sub",
    ),
];

/// The alignment test of an element tests the address of its list, and is correct for every list.
#[test]
fn elements_of_lists_that_are_not_aligned() {
    let index = |name: &str, list: u32, at: u32| match name {
        "sum" => list + 4 * at,
        "swapped" => list + 12 * at,
        "difference" => list - 8 * at,
        "or" => list | (4 * at),
        "xor" => list ^ (at & !3),
        _ => list + 16 * at,
    };
    let functions: String = ELEMENTS
        .iter()
        .map(|(name, address)| {
            format!(r#"(func (export "{name}") (param i32 i32) (result i32) {address} i32.load offset=2)"#)
        })
        .collect();
    let byte = r#"(func (export "byte") (param i32 i32) local.get 0 local.get 1 i32.store8)"#;
    let bytes = wat::parse_str(format!("(module (memory 1) {byte} {functions})")).unwrap();
    // The offset is not a multiple of a word, so the test is on its sum with the first parameter.
    let text = clif(&bytes).unwrap();
    let sums = text
        .lines()
        .filter(|line| line.contains("= iadd v0, ") && line.ends_with(" = 2"));
    assert_eq!(sums.count(), ELEMENTS.len(), "{text}");
    for level in ["none", "speed"] {
        let mut store = Store::new(module(level), Config::default());
        let instance = store.load(&bytes).unwrap();
        store.start(&instance).unwrap();
        let mut call = |name: &str, a: u32, b: u32| {
            let args = [Value::I32(a as i32), Value::I32(b as i32)];
            store.invoke(&instance, name, &args).unwrap()
        };
        for at in 0..256 {
            call("byte", at, at);
        }
        for list in 100..108 {
            for at in 0..6 {
                for (name, _) in ELEMENTS {
                    let first = index(name, list, at) + 2;
                    let word = i32::from_le_bytes([0, 1, 2, 3].map(|k| (first + k) as u8));
                    let case = format!("{name} {list} {at} {level}");
                    assert_eq!(call(name, list, at), [Value::I32(word)], "{case}");
                }
            }
        }
    }
}

/// Damaged DWARF yields lines or none, without a panic.
#[test]
fn damaged_lines_end_in_some_line_or_none() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../naplespu-tools/tests/cli/inputs/wasm/lines.wasm"
    );
    let good = std::fs::read(path).unwrap();
    let line = SourceLines::new(&good).unwrap().at(0xb0).unwrap();
    assert_eq!((line.file.as_str(), line.line, line.column), ("./lines.c", 6, Some(12)));
    let first = good.windows(7).position(|name| name == b".debug_").unwrap();
    let mut differ = 0;
    for at in first..good.len() {
        for bit in [0, 3, 7] {
            let mut bytes = good.clone();
            bytes[at] ^= 1 << bit;
            let found =
                SourceLines::new(&bytes).map(|lines| (0..0x100).map(|offset| lines.at(offset)).collect::<Vec<_>>());
            differ += usize::from(found.is_none_or(|lines| lines[0xb0].as_ref() != Some(&line)));
        }
        let cut = SourceLines::new(&good[..at]);
        assert!(cut.is_none_or(|lines| lines.at(0xb0).is_none_or(|line| line.line > 0)));
    }
    // The damage does reach the DWARF reader.
    assert!(differ > 50, "{differ}");
}
