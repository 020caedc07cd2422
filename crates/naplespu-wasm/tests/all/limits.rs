//! Accesses at the last valid and the first invalid address: every size, with every kind of offset,
//! index and neighboring access.
//!
//! The tests compute the expected outcome: an access is in bounds if the sum of index, offset
//! (without wrapping) and size is at most the size of the memory. Effects before a trap must be
//! visible afterwards.

use cranelift_codegen::settings::{self, Configurable};
use cranelift_naplespu::isa::lookup_by_name;
use naplespu_jit::NpuModule;
use naplespu_wasm::{Config, Instance, Store, Value};

/// The size of the memory in bytes.
const PAGE: u64 = 1 << 16;

fn module(opt_level: &str) -> NpuModule {
    let mut flags = settings::builder();
    flags.set("opt_level", opt_level).unwrap();
    let builder = lookup_by_name("naplespu").unwrap();
    NpuModule::new(builder.finish(settings::Flags::new(flags)).unwrap()).unwrap()
}

struct Run {
    store: Store,
    instance: Instance,
}

impl Run {
    fn new(text: &str, opt_level: &str) -> Self {
        let mut store = Store::new(module(opt_level), Config::default());
        let bytes = wat::parse_str(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let instance = store.load(&bytes).unwrap_or_else(|error| panic!("{error}\n{text}"));
        store.start(&instance).unwrap();
        Self { store, instance }
    }

    /// Returns the results, or `None` for an access out of bounds.
    fn call(&mut self, name: &str, args: &[u32]) -> Option<Vec<Value>> {
        let args: Vec<Value> = args.iter().map(|&arg| Value::I32(arg.cast_signed())).collect();
        match self.store.invoke(&self.instance, name, &args) {
            Ok(values) => Some(values),
            Err(error) => {
                let error = error.to_string();
                assert!(
                    error.starts_with("trap: out of bounds memory access"),
                    "{name} {args:?}: {error}"
                );
                None
            }
        }
    }

    fn word(&mut self, name: &str, args: &[u32]) -> Option<u32> {
        match self.call(name, args)?[..] {
            [Value::I32(value)] => Some(value.cast_unsigned()),
            ref other => panic!("{name}: {other:?}"),
        }
    }
}

/// Loads: the conversion to `i32`, and the size in bytes.
const LOADS: [(&str, &str, u64); 10] = [
    ("i32.load8_u", "", 1),
    ("i32.load8_s", "", 1),
    ("i32.load16_u", "", 2),
    ("i32.load", "", 4),
    ("i64.load8_s", "i32.wrap_i64", 1),
    ("i64.load16_u", "i32.wrap_i64", 2),
    ("i64.load32_s", "i32.wrap_i64", 4),
    ("i64.load", "i32.wrap_i64", 8),
    ("f64.load", "i64.reinterpret_f64 i32.wrap_i64", 8),
    ("v128.load", "i32x4.extract_lane 0", 16),
];

/// Stores: the value, and the size in bytes.
const STORES: [(&str, &str, u64); 6] = [
    ("i32.store8", "i32.const -1", 1),
    ("i32.store16", "i32.const -1", 2),
    ("i32.store", "i32.const -1", 4),
    ("i64.store8", "i64.const -1", 1),
    ("i64.store", "i64.const -1", 8),
    ("v128.store", "v128.const i32x4 -1 -1 -1 -1", 16),
];

const OFFSETS: [u64; 10] = [0, 1, 7, 255, 256, 1000, PAGE - 4, PAGE, PAGE + 1, 0xffff_fff8];

/// Memories of one page: one with a constant size, one that could grow.
const MEMORIES: [&str; 2] = ["1 1", "1 3"];

fn is_inside(index: u32, offset: u64, bytes: u64) -> bool {
    u64::from(index) + offset + bytes <= PAGE
}

/// Returns the indices around the last valid one.
fn indices(offset: u64, bytes: u64) -> Vec<u32> {
    let last = PAGE.saturating_sub(offset + bytes) as u32;
    let around = (-2..=2i32).map(|distance| last.wrapping_add_signed(distance));
    let odd = [last.wrapping_sub(bytes as u32), last.wrapping_add(bytes as u32)];
    let all = around
        .chain(odd)
        .chain([0, 1, u32::MAX, u32::MAX - 3, 1 << 31, 0u32.wrapping_sub(offset as u32)]);
    all.collect()
}

/// Functions of an index and a flag, with loads at the index on both paths, one path or no path. A
/// check on only one path does not cover accesses on the other.
const WAYS: [&str; 5] = [
    "(if (local.get 1) (then (drop (i32.load (local.get 0))))) (i32.load (local.get 0))",
    "(if (local.get 1) (then (drop (i32.load (local.get 0)))) (else (drop (i32.load (local.get 0))))) (i32.load (local.get 0))",
    "(block (br_if 0 (local.get 1)) (drop (i32.load (local.get 0)))) (i32.load (local.get 0))",
    "(block (block (br_table 0 1 (local.get 1))) (drop (i32.load (local.get 0)))) (i32.load (local.get 0))",
    "(loop (if (local.get 1) (then (drop (i32.load (local.get 0))) (local.set 1 (i32.const 0)) (br 1)))) (i32.load (local.get 0))",
];

#[test]
fn checks_on_one_way() {
    for memory in MEMORIES {
        let mut text = format!("(module (memory {memory})");
        for (number, way) in WAYS.iter().enumerate() {
            // The last access reaches one byte further than the checks before it.
            let last = "(i32.load (local.get 0))";
            let before = way.strip_suffix(last).unwrap();
            let further = format!("{before}(i32.load offset=1 (local.get 0))");
            for (name, way) in [("way", *way), ("further", further.as_str())] {
                text += &format!("(func (export \"{name}{number}\") (param i32 i32) (result i32) {way})\n");
            }
        }
        for level in ["none", "speed"] {
            let mut run = Run::new(&format!("{text})"), level);
            for (number, way) in WAYS.iter().enumerate() {
                for index in indices(0, 4) {
                    for flag in [0, 1] {
                        for (name, offset) in [("way", 0), ("further", 1)] {
                            let found = run.word(&format!("{name}{number}"), &[index, flag]);
                            let expected = is_inside(index, offset, 4).then_some(0);
                            assert_eq!(found, expected, "{memory}, {level}: {name}, {way} of {index}, {flag}");
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn every_size_and_offset() {
    for memory in MEMORIES {
        let mut functions = String::new();
        for (number, (load, end, _)) in LOADS.iter().enumerate() {
            for (place, offset) in OFFSETS.iter().enumerate() {
                functions += &format!(
                    "(func (export \"load{number}-{place}\") (param i32) (result i32)
                        local.get 0 {load} offset={offset} {end})\n"
                );
            }
        }
        for (number, (store, value, _)) in STORES.iter().enumerate() {
            for (place, offset) in OFFSETS.iter().enumerate() {
                functions += &format!(
                    "(func (export \"store{number}-{place}\") (param i32) (result i32)
                        local.get 0 {value} {store} offset={offset} i32.const 0)\n"
                );
            }
        }
        let mut run = Run::new(&format!("(module (memory {memory})\n{functions})"), "speed");
        for (place, &offset) in OFFSETS.iter().enumerate() {
            let kinds = LOADS.iter().map(|load| ("load", load.2)).enumerate();
            let stores = STORES.iter().map(|store| ("store", store.2)).enumerate();
            for (number, (kind, bytes)) in kinds.chain(stores) {
                let name = format!("{kind}{number}-{place}");
                for index in indices(offset, bytes) {
                    let result = run.call(&name, &[index]);
                    assert_eq!(
                        result.is_some(),
                        is_inside(index, offset, bytes),
                        "{kind} of {bytes} bytes, offset {offset:#x}, index {index:#x}, memory {memory}"
                    );
                }
            }
        }
    }
}

/// The code between two accesses to one index: without an observable effect, or with an effect that
/// a check must not move across. An effect stores 1 to the global, to address 8, or to the other
/// memory.
const BETWEEN: [(&str, &str); 14] = [
    ("nothing", ""),
    ("arithmetic", "local.get 1 i32.const 3 i32.mul drop"),
    ("a global", "i32.const 1 global.set $seen"),
    ("a store", "i32.const 8 i32.const 1 i32.store8"),
    ("a call", "call $see"),
    ("an indirect call", "i32.const 0 call_indirect"),
    ("a fill", "i32.const 8 i32.const 1 i32.const 1 memory.fill"),
    ("an init", "i32.const 8 i32.const 0 i32.const 1 memory.init $one"),
    ("a copy", "i32.const 8 i32.const 16 i32.const 1 memory.copy"),
    ("a branch", "block local.get 1 br_if 0 i32.const 1 global.set $seen end"),
    ("a condition", "local.get 1 if else i32.const 1 global.set $seen end"),
    ("a loop", "loop i32.const 1 global.set $seen local.get 1 br_if 0 end"),
    ("growing", "i32.const 0 memory.grow drop"),
    ("a table", "i32.const 0 ref.null func table.set $refs"),
];

/// Two accesses to one index, where the second one reaches further or not.
#[test]
fn accesses_that_share_a_check() {
    let pairs = [
        (0, 0),
        (9, 9),
        (0, 3),
        (3, 0),
        (0, 4),
        (9, 5),
        (5, 9),
        (2, 260),
        (260, 2),
        (0, PAGE - 2),
    ];
    for memory in MEMORIES {
        for level in ["none", "speed"] {
            let mut functions = String::new();
            // A memory that some function grows has no constant size.
            let fixed = memory == MEMORIES[0];
            let all = BETWEEN.iter().enumerate();
            let between: Vec<_> = all.filter(|(_, (what, _))| !fixed || *what != "growing").collect();
            for (turn, (_, between)) in &between {
                for (place, (first, second)) in pairs.iter().enumerate() {
                    functions += &format!(
                        "(func (export \"both{turn}-{place}\") (param i32 i32) (result i32)
                            local.get 0 i32.load8_u offset={first}
                            {between}
                            local.get 0 i32.load16_u offset={second} i32.add)
                        (func (export \"stores{turn}-{place}\") (param i32 i32) (result i32)
                            local.get 0 i32.const 1 i32.store8 offset={first}
                            {between}
                            local.get 0 i32.const 1 i32.store16 offset={second} i32.const 0)\n"
                    );
                }
            }
            let text = format!(
                "(module (memory {memory}) (global $seen (export \"seen\") (mut i32) (i32.const 0))
                (table $calls funcref (elem $see)) (table $refs 1 funcref) (data $one \"\\01\")
                (func $see i32.const 1 global.set $seen)
                (func (export \"clear\") (param i32) (result i32)
                    i32.const 0 global.set $seen
                    i32.const 8 i32.const 0 i32.store8 i32.const 16 i32.const 1 i32.store8
                    local.get 0 i32.const 0 i32.store8 i32.const 0)
                (func (export \"byte\") (param i32) (result i32) local.get 0 i32.load8_u)
                (func (export \"look\") (param i32) (result i32) global.get $seen i32.const 8 i32.load8_u i32.or)
                {functions})"
            );
            let mut run = Run::new(&text, level);
            for (turn, (what, between)) in between {
                for (place, &(first, second)) in pairs.iter().enumerate() {
                    for kind in ["both", "stores"] {
                        for (offset, bytes) in [(first, 1), (second, 2)] {
                            for index in indices(offset, bytes).into_iter().filter(|&index| index > 64) {
                                let (one, other) = (is_inside(index, first, 1), is_inside(index, second, 2));
                                let written = (u64::from(index) + first) as u32;
                                run.word("clear", &[if one { written } else { 0 }]).unwrap();
                                let result = run.word(&format!("{kind}{turn}-{place}"), &[index, 0]);
                                let place =
                                    format!("{kind}, {what}, {first} and {second}, {index:#x}, {memory}, {level}");
                                assert_eq!(result.is_some(), one && other, "{place}");
                                let seen = run.word("look", &[0]).unwrap();
                                let sees = [
                                    "$seen",
                                    "$see",
                                    "store8",
                                    "call_indirect",
                                    "memory.fill",
                                    "init",
                                    "copy",
                                ];
                                let expected = one && sees.iter().any(|word| between.contains(word));
                                assert_eq!(seen == 1, expected, "seen: {place}");
                                if kind == "stores" && one {
                                    assert_eq!(run.word("byte", &[written]), Some(1), "stored: {place}");
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Code between two accesses to one index that ends the function if the second argument is 1: by a
/// branch, or by a trap with this name. Loops and conditions do not end the function otherwise.
const ENDS: [(&str, &str); 21] = [
    ("i32.const 7 local.get 1 br_if 0 drop", ""),
    ("i32.const 7 i32.const 7 local.get 1 br_if 0 drop drop", ""),
    ("local.get 1 if i32.const 7 return end", ""),
    (
        "block i32.const 7 local.get 1 i32.eqz br_if 1 drop i32.const 7 return end",
        "",
    ),
    (
        "block i32.const 7 block (param i32) (result i32) local.get 1 br_table 0 2 0 end drop end",
        "",
    ),
    ("i32.const 7 ref.null func br_on_null 0 drop drop", ""),
    (
        "block (result (ref func)) ref.func $see br_on_non_null 0 i32.const 7 return end drop i32.const 7 return",
        "",
    ),
    (
        "i32.const 0 local.get 1 i32.const 1 i32.sub i32.div_u drop",
        "integer divide by zero",
    ),
    (
        "i32.const 1 i32.const 1 local.get 1 i32.sub i32.div_s drop",
        "integer divide by zero",
    ),
    ("i64.const 1 i64.const 0 i64.rem_u drop", "integer divide by zero"),
    ("f32.const nan i32.trunc_f32_s drop", "invalid conversion to integer"),
    ("f64.const inf i32.trunc_f64_u drop", "integer overflow"),
    ("f64.const nan i64.trunc_f64_s drop", "invalid conversion to integer"),
    ("local.get 1 if unreachable end", "unreachable"),
    ("ref.null func ref.as_non_null drop", "null reference"),
    ("ref.null $nothing call_ref $nothing", "null function reference"),
    (
        "i32.const 5 i32.const 0 call_indirect (param i32)",
        "indirect call type mismatch",
    ),
    ("i32.const 9 call_indirect", "undefined element"),
    ("i32.const 9 table.get $refs drop", "out of bounds table access"),
    (
        "i32.const 9 ref.null func table.set $refs",
        "out of bounds table access",
    ),
    (
        "i32.const 0 i32.const 9 i32.const 1 table.init $refs $see",
        "out of bounds table access",
    ),
];

/// The check of the second access is not moved before code that ends the function: it would trap
/// although the access does not happen.
#[test]
fn what_ends_a_function_between_two_accesses() {
    for memory in MEMORIES {
        for level in ["none", "speed"] {
            let mut functions = String::new();
            for (number, (end, _)) in ENDS.iter().enumerate() {
                functions += &format!(
                    "(func (export \"end{number}\") (param i32 i32) (result i32)
                        local.get 0 i32.load8_u
                        drop {end}
                        local.get 0 i32.load16_u offset=260)\n"
                );
            }
            let text = format!(
                "(module (memory {memory}) (type $nothing (func))
                (table $calls 2 2 funcref) (table $refs 1 funcref) (elem $see func $see) (elem (table $calls) (i32.const 0) func $see)
                (func $see) {functions})"
            );
            let mut run = Run::new(&text, level);
            for (number, (end, trap)) in ENDS.iter().enumerate() {
                for index in [PAGE - 1, PAGE - 200, PAGE - 261] {
                    let arguments = [Value::I32(index as i32), Value::I32(1)];
                    let found = run.store.invoke(&run.instance, &format!("end{number}"), &arguments);
                    let place = format!("{end}: {index:#x}, {memory}, {level}: {found:?}");
                    match found {
                        Ok(values) => {
                            assert!(trap.is_empty(), "{place}");
                            assert!(matches!(values[..], [Value::I32(7)]), "{place}");
                        }
                        Err(error) => {
                            let error = error.to_string();
                            assert!(!error.contains("out of bounds memory"), "{place}");
                            assert!(error.contains(trap), "{place}, {error}");
                        }
                    }
                }
            }
        }
    }
}

/// Copies within and between memories of one and three pages check each side against the size of
/// its own memory.
#[test]
fn copies_between_memories_of_different_sizes() {
    let sizes = [PAGE, 3 * PAGE];
    let mut text = "(module (memory $m0 1) (memory $m1 3)".to_owned();
    for (to, from) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
        text += &format!(
            "(func (export \"copy{to}{from}\") (param i32 i32 i32) (result i32)
                (memory.copy $m{to} $m{from} (local.get 0) (local.get 1) (local.get 2)) i32.const 1)\n"
        );
    }
    for level in ["none", "speed"] {
        let mut run = Run::new(&format!("{text})"), level);
        for (to, from) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
            for count in [0, 1, 4, 70] {
                let places = |size: u64| [0, PAGE - count, PAGE - count + 1, size - count, size - count + 1];
                for place in places(sizes[to]) {
                    for source in places(sizes[from]) {
                        let arguments = [place as u32, source as u32, count as u32];
                        let found = run.word(&format!("copy{to}{from}"), &arguments);
                        let inside = place + count <= sizes[to] && source + count <= sizes[from];
                        assert_eq!(found, inside.then_some(1), "{to} from {from}, {arguments:?}, {level}");
                    }
                }
            }
        }
    }
}

/// Checks of an index in one memory or table do not apply to another one of a different size.
#[test]
fn one_index_for_two_memories_or_tables() {
    let mut text = "(module (memory $m0 3) (memory $m1 1) (table $t0 5 funcref) (table $t1 2 funcref)".to_owned();
    for (first, second) in [(0, 1), (1, 0)] {
        text += &format!(
            "(func (export \"loads{first}\") (param i32) (result i32)
                (drop (i32.load $m{first} (local.get 0))) (i32.load $m{second} (local.get 0)))
             (func (export \"tables{first}\") (param i32 i32 i32) (result i32)
                (table.copy $t{first} $t{second} (local.get 0) (local.get 1) (local.get 2)) i32.const 1)\n"
        );
    }
    for level in ["none", "speed"] {
        let mut run = Run::new(&format!("{text})"), level);
        for first in [0, 1] {
            for index in [0, PAGE - 4, PAGE - 3, PAGE, 3 * PAGE - 4, 3 * PAGE - 3] {
                let found = run.word(&format!("loads{first}"), &[index as u32]);
                assert_eq!(found, (index + 4 <= PAGE).then_some(0), "{first}, {index:#x}, {level}");
            }
            let sizes = [5, 2];
            for [to, from, count] in
                (0..=6).flat_map(|to| (0..=6).flat_map(move |from| [0, 1, 2, 3].map(|n| [to, from, n])))
            {
                let arguments = [to, from, count].map(Value::I32);
                let found = run.store.invoke(&run.instance, &format!("tables{first}"), &arguments);
                let inside = to + count <= sizes[first] && from + count <= sizes[1 - first];
                assert_eq!(
                    found.is_ok(),
                    inside,
                    "{first}, {to} {from} {count}, {level}: {found:?}"
                );
            }
        }
    }
}

/// Loads of all sizes at computed indices with known alignment work at every address.
#[test]
fn addresses_of_every_alignment() {
    let indices: [(&str, Of); 12] = [
        ("local.get 0", |a, _| a),
        ("local.get 0 i32.const 1 i32.shl", |a, _| a << 1),
        ("local.get 0 i32.const 2 i32.shl", |a, _| a << 2),
        ("local.get 0 i32.const 3 i32.shl", |a, _| a << 3),
        ("local.get 0 i32.const 33 i32.shl", |a, _| a << 1),
        ("local.get 0 i32.const 2 i32.mul", |a, _| a * 2),
        ("local.get 0 i32.const 6 i32.mul", |a, _| a * 6),
        ("local.get 0 i32.const 12 i32.mul", |a, _| a * 12),
        ("local.get 0 i32.const 2 i32.shl i32.const 2 i32.add", |a, _| {
            (a << 2) + 2
        }),
        (
            "local.get 0 i32.const 2 i32.shl local.get 0 i32.const 1 i32.shl i32.add",
            |a, _| (a << 2) + (a << 1),
        ),
        ("local.get 0 i32.const -2 i32.and", |a, _| a & !1),
        ("local.get 0 i32.const 1 i32.shl i32.const 4 i32.or", |a, _| a << 1 | 4),
    ];
    let bytes: String = (0..160).map(|byte| format!("\\{byte:02x}")).collect();
    let mut text = format!("(module (memory 1 1) (data (i32.const 0) \"{bytes}\")");
    let loads = [("i32.load16_u", 2), ("i32.load", 4)];
    for (place, (index, _)) in indices.iter().enumerate() {
        for (load, _) in loads {
            for offset in [0, 1, 2, 4] {
                text += &format!(
                    "(func (export \"{load}{place} {offset}\") (param i32) (result i32) {index} {load} offset={offset})\n"
                );
            }
        }
    }
    for level in ["none", "speed"] {
        let mut run = Run::new(&format!("{text})"), level);
        for (place, (index, of)) in indices.iter().enumerate() {
            for ((load, size), offset) in loads
                .into_iter()
                .flat_map(|load| [0, 1, 2, 4].map(|offset| (load, offset)))
            {
                for a in 0..8 {
                    let at = of(a, 0) + offset;
                    let expected = (0..size).rev().fold(0, |word, byte| word << 8 | (at + byte));
                    let found = run.word(&format!("{load}{place} {offset}"), &[a]);
                    assert_eq!(
                        found,
                        Some(expected),
                        "{load} of {index} with {a} and {offset}, {level}"
                    );
                }
            }
        }
    }
}

/// Indices that are small by their operations: the WebAssembly of two arguments, and its model.
type Of = fn(u32, u32) -> u32;
const RANGES: [(&str, Of); 26] = [
    ("local.get 0 i32.const 65535 i32.and", |a, _| a & 65535),
    ("local.get 0 i32.const 65532 i32.and", |a, _| a & 65532),
    ("local.get 0 i32.const 16 i32.shr_u", |a, _| a >> 16),
    ("local.get 0 i32.const 15 i32.shr_u", |a, _| a >> 15),
    ("local.get 0 i32.const 48 i32.shr_u", |a, _| a >> 16),
    ("local.get 0 i32.const 65536 i32.rem_u", |a, _| a % 65536),
    ("local.get 0 i32.const 65537 i32.rem_u", |a, _| a % 65537),
    ("local.get 0 i32.const 65533 i32.rem_u", |a, _| a % 65533),
    ("local.get 0 i32.const 65537 i32.div_u", |a, _| a / 65537),
    ("local.get 0 i32.const 65536 i32.div_u", |a, _| a / 65536),
    (
        "local.get 0 i32.const 32767 i32.and local.get 1 i32.const 32768 i32.and i32.add",
        |a, b| (a & 32767) + (b & 32768),
    ),
    (
        "local.get 0 i32.const 32767 i32.and local.get 1 i32.const 65535 i32.and i32.add",
        |a, b| (a & 32767) + (b & 65535),
    ),
    (
        "local.get 0 i32.const 255 i32.and local.get 1 i32.const 255 i32.and i32.mul",
        |a, b| (a & 255) * (b & 255),
    ),
    (
        "local.get 0 i32.const 511 i32.and local.get 1 i32.const 255 i32.and i32.mul",
        |a, b| (a & 511) * (b & 255),
    ),
    (
        "local.get 0 i32.const 65535 i32.and local.get 1 i32.const 131071 i32.and i32.mul",
        |a, b| (a & 65535).wrapping_mul(b & 131_071),
    ),
    (
        "local.get 0 i32.const 21845 i32.and local.get 1 i32.const 43690 i32.and i32.or",
        |a, b| (a & 21845) | (b & 43690),
    ),
    (
        "local.get 0 i32.const 40000 i32.and local.get 1 i32.const 65536 i32.and i32.xor",
        |a, b| (a & 40000) ^ (b & 65536),
    ),
    ("local.get 0 i32.const 4095 i32.and i32.const 4 i32.shl", |a, _| {
        (a & 4095) << 4
    }),
    ("local.get 0 i32.const 4095 i32.and i32.const 5 i32.shl", |a, _| {
        (a & 4095) << 5
    }),
    ("local.get 0 i32.const 255 i32.and i32.const 25 i32.shl", |a, _| {
        (a & 255) << 25
    }),
    (
        "local.get 0 i32.const 65535 i32.and i32.const 7 local.get 1 select",
        |a, b| if b != 0 { a & 65535 } else { 7 },
    ),
    (
        "i32.const 7 local.get 0 i32.const 131071 i32.and local.get 1 select",
        |a, b| if b != 0 { 7 } else { a & 131_071 },
    ),
    (
        "local.get 0 i32.const 131071 i32.and i32.const 7 local.get 1 select",
        |a, b| if b != 0 { a & 131_071 } else { 7 },
    ),
    ("local.get 0 i32.const 65535 i32.and i32.const 1 i32.sub", |a, _| {
        (a & 65535).wrapping_sub(1)
    }),
    (
        "i32.const 0 i32.load16_u i32.const 0 i32.load8_u offset=2 i32.add",
        |_, _| 65535 + 255,
    ),
    ("i32.const 0 i32.load16_u", |_, _| 65535),
];

#[test]
fn indices_that_are_small() {
    let accesses: [(&str, u64, u64); 8] = [
        ("i32.load8_u", 0, 1),
        ("i32.load8_u", 1, 1),
        ("i32.load16_u", 0, 2),
        ("i32.load", 0, 4),
        ("i32.load", 3, 4),
        ("i32.load8_u", 255, 1),
        ("i32.load8_u", PAGE - 32768, 1),
        ("i32.load8_u", PAGE - 255 * 255 - 1, 1),
    ];
    for memory in MEMORIES {
        let mut functions = String::new();
        for (number, (index, _)) in RANGES.iter().enumerate() {
            for (place, (load, offset, _)) in accesses.iter().enumerate() {
                functions += &format!(
                    "(func (export \"small{number}-{place}\") (param i32 i32) (result i32)
                        {index} {load} offset={offset} drop i32.const 0)\n"
                );
            }
        }
        let text = format!("(module (memory {memory}) (data (i32.const 0) \"\\ff\\ff\\ff\")\n{functions})");
        let mut run = Run::new(&text, "speed");
        let arguments = [
            0,
            1,
            7,
            255,
            256,
            4095,
            0x5555,
            0xaaaa,
            32767,
            32768,
            65532,
            65534,
            65535,
            65536,
            65537,
            131_071,
            1 << 31,
            0x7fff_ffff,
            0xffff_0000,
            u32::MAX - 1,
            u32::MAX,
        ];
        for (number, (index, of)) in RANGES.iter().enumerate() {
            for (place, &(load, offset, bytes)) in accesses.iter().enumerate() {
                for a in arguments {
                    for b in [0, 1, 255, 65535, 131_071, u32::MAX, 1 << 31] {
                        let result = run.call(&format!("small{number}-{place}"), &[a, b]);
                        let inside = is_inside(of(a, b), offset, bytes);
                        assert_eq!(
                            result.is_some(),
                            inside,
                            "{index}: {load} offset={offset}, {a:#x}, {b:#x}"
                        );
                    }
                }
            }
        }
    }
}

/// Loads at aligned and unaligned addresses, by index and by offset, return the bytes in memory.
#[test]
fn every_alignment() {
    let indices: [(&str, Of); 9] = [
        ("local.get 0", |a, _| a),
        ("local.get 0 local.get 1 i32.const 2 i32.shl i32.add", |a, b| {
            a + (b << 2)
        }),
        ("local.get 0 local.get 1 i32.const 2 i32.mul i32.add", |a, b| {
            a + (b * 2)
        }),
        ("local.get 1 i32.const 3 i32.shl", |_, b| b << 3),
        ("local.get 1 i32.const 2 i32.shl local.get 0 i32.sub", |a, b| {
            (b << 2) - a
        }),
        ("local.get 0 i32.const -4 i32.and", |a, _| a & !3),
        (
            "local.get 0 i32.const -2 i32.and local.get 1 i32.const 4 i32.mul i32.or",
            |a, b| (a & !1) | (b * 4),
        ),
        ("local.get 1 i32.const 1 i32.shl i32.const 1 i32.shl", |_, b| b << 2),
        ("local.get 1 i32.const 6 i32.mul i32.const 2 i32.mul", |_, b| b * 12),
    ];
    let loads = [("i32.load16_u", 2u32), ("i32.load", 4), ("f32.load", 4)];
    let mut functions = String::new();
    for (number, (index, _)) in indices.iter().enumerate() {
        for (place, (load, _)) in loads.iter().enumerate() {
            let end = if load.starts_with('f') {
                "i32.reinterpret_f32"
            } else {
                ""
            };
            for offset in 0..8 {
                functions += &format!(
                    "(func (export \"at{number}-{place}-{offset}\") (param i32 i32) (result i32)
                        {index} {load} offset={offset} {end})\n"
                );
            }
        }
    }
    let bytes: Vec<u8> = (0..=255).collect();
    let data: String = bytes.iter().map(|byte| format!("\\{byte:02x}")).collect();
    for level in ["none", "speed"] {
        let text = format!("(module (memory 1 1) (data (i32.const 0) \"{data}\")\n{functions})");
        let mut run = Run::new(&text, level);
        for (number, (index, of)) in indices.iter().enumerate() {
            for (place, &(load, size)) in loads.iter().enumerate() {
                for offset in 0..8 {
                    for a in 0..8 {
                        for b in 2..6 {
                            let at = (of(a, b) + offset) as usize;
                            let part = bytes[at..at + size as usize].iter().rev();
                            let expected = part.fold(0, |word, &byte| word << 8 | u32::from(byte));
                            let found = run.word(&format!("at{number}-{place}-{offset}"), &[a, b]);
                            assert_eq!(
                                found,
                                Some(expected),
                                "{index}: {load} offset={offset}, {a}, {b}, {level}"
                            );
                        }
                    }
                }
            }
        }
    }
}

/// Loops over an array with a start, a trip count and a stride, and two accesses in an iteration.
/// They record the number
/// of completed iterations.
#[test]
fn loops_at_the_end_of_the_memory() {
    let loops = [
        // The step of the index, the offset and the size of the access.
        (1, 0, 1, "i32.store8"),
        (4, 0, 4, "i32.store"),
        (4, 12, 4, "i32.store"),
        (8, 4, 4, "i32.store"),
        (2, 256, 2, "i32.store16"),
        (3, 0, 1, "i32.store8"),
        (-4, 0, 4, "i32.store"),
        (-1, 5, 1, "i32.store8"),
    ];
    for memory in MEMORIES {
        let mut functions = String::new();
        for (number, (step, offset, _, store)) in loops.iter().enumerate() {
            // By trip count, and up to an end address.
            functions += &format!(
                "(func (export \"iterations{number}\") (param i32 i32) (result i32) (local i32)
                    loop
                        local.get 0 local.get 2 {store} offset={offset}
                        local.get 2 i32.const 1 i32.add local.tee 2 global.set $done
                        local.get 0 i32.const {step} i32.add local.set 0
                        local.get 2 local.get 1 i32.lt_u br_if 0
                    end local.get 2)
                (func (export \"quiet{number}\") (param i32 i32) (result i32) (local i32)
                    loop
                        local.get 0 local.get 2 i32.const {step} i32.mul i32.add i32.const 1 {store} offset={offset}
                        local.get 2 i32.const 1 i32.add local.tee 2
                        local.get 1 i32.ne br_if 0
                    end local.get 2)
                (func (export \"sum{number}\") (param i32 i32) (result i32) (local i32 i32)
                    loop
                        local.get 0 local.get 2 i32.const {step} i32.mul i32.add i32.load8_u offset={offset}
                        local.get 3 i32.add i32.const 1 i32.add local.set 3
                        local.get 2 i32.const 1 i32.add local.tee 2
                        local.get 1 i32.lt_s br_if 0
                    end local.get 2)\n"
            );
        }
        let text = format!(
            "(module (memory {memory}) (global $done (mut i32) (i32.const 0))
            (func (export \"clear\") (param i32) (result i32)
                i32.const 0 global.set $done
                i32.const 0 i32.const 0 i32.const 65536 memory.fill i32.const 0)
            (func (export \"done\") (param i32) (result i32) global.get $done)
            (func (export \"byte\") (param i32) (result i32) local.get 0 i32.load8_u)
            {functions})"
        );
        for level in ["none", "speed"] {
            let mut run = Run::new(&text, level);
            for (number, &(step, offset, bytes, store)) in loops.iter().enumerate() {
                let step = i64::from(step);
                for iterations in [1, 2, 3, 4, 5, 16, 17, 33] {
                    for slack in -3..=3i64 {
                        // The last iteration is at or near the last valid address; loops with a
                        // negative step end below 0.
                        let last = if step > 0 { (PAGE - offset - bytes) as i64 } else { 0 };
                        let start = last - step * (iterations - 1) + slack * step.abs().min(2);
                        for kind in ["iterations", "quiet", "sum"] {
                            let what = format!(
                                "{kind} {store} offset={offset} step {step}, {iterations} iterations, {slack}, {level}"
                            );
                            // One byte, whatever the store is.
                            let bytes = if kind == "sum" { 1 } else { bytes };
                            let inside = |iteration: i64| is_inside((start + step * iteration) as u32, offset, bytes);
                            let reached = (0..iterations).take_while(|&iteration| inside(iteration)).count() as i64;
                            let all = reached == iterations;
                            run.word("clear", &[0]).unwrap();
                            let result = run.word(&format!("{kind}{number}"), &[start as u32, iterations as u32]);
                            assert_eq!(result, all.then_some(iterations as u32), "{what}");
                            if kind == "iterations" {
                                assert_eq!(run.word("done", &[0]), Some(reached as u32), "{what}");
                            }
                            if kind == "quiet" {
                                // Exactly the iterations before the trap have stored.
                                for iteration in [reached - 1, reached, reached + 1] {
                                    if iteration >= 0 && iteration < iterations && inside(iteration) {
                                        let at = (start + step * iteration) as u32 + offset as u32;
                                        let stored = iteration < reached;
                                        assert_eq!(
                                            run.word("byte", &[at]),
                                            Some(stored.into()),
                                            "{what}, iteration {iteration}"
                                        );
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}
