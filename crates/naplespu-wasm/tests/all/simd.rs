//! Tests of vectors that the specification suite lacks: in blocks, calls and globals, at unaligned
//! addresses, passed to and from the host, and in long sequences of operations.

use cranelift_codegen::data_value::DataValue;
use cranelift_codegen::isa::CallConv;
use cranelift_codegen::settings::{self, Configurable};
use cranelift_naplespu::isa::lookup_by_name;
use naplespu_jit::NpuModule;
use naplespu_wasm::{CallError, Config, Extern, FuncType, Instance, Store, Value, ValueType};
use std::fmt::Write;

fn store(opt_level: &str) -> Store {
    let mut flags = settings::builder();
    flags.set("opt_level", opt_level).unwrap();
    let mut builder = lookup_by_name("naplespu").unwrap();
    builder.set("strict_float", "true").unwrap();
    let module = NpuModule::new(builder.finish(settings::Flags::new(flags)).unwrap()).unwrap();
    let config = Config {
        convention: CallConv::Tail,
        ..Config::default()
    };
    Store::new(module, config)
}

fn add(store: &mut Store, text: &str) -> Instance {
    let bytes = wat::parse_str(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let instance = store.load(&bytes).unwrap_or_else(|error| panic!("{error}\n{text}"));
    store.start(&instance).unwrap();
    instance
}

const LEVELS: [&str; 2] = ["none", "speed"];

fn words(lanes: [u32; 4]) -> Value {
    let lanes = lanes.into_iter().rev();
    Value::V128(lanes.fold(0, |all, lane| all << 32 | u128::from(lane)))
}

fn floats(lanes: [f32; 4]) -> Value {
    words(lanes.map(f32::to_bits))
}

fn doubles([low, high]: [f64; 2]) -> Value {
    Value::V128(u128::from(high.to_bits()) << 64 | u128::from(low.to_bits()))
}

/// Both arms use a vector that had other lanes before the branch.
#[test]
fn a_condition_with_an_argument_of_other_lanes() {
    let text = r#"(module (func (export "f") (param i32 v128) (result v128)
        local.get 1
        i16x8.neg
        local.get 0
        if (param v128) (result v128)
            i32x4.neg
        else
            v128.not
        end))"#;
    for level in LEVELS {
        let mut store = store(level);
        let instance = add(&mut store, text);
        let mut call = |flag| {
            store
                .invoke(&instance, "f", &[Value::I32(flag), words([1, 2, 3, 4])])
                .unwrap()
        };
        // The upper halves are zero before and after the first operation.
        assert_eq!(
            call(1),
            [words(
                [0xffff, 0xfffe, 0xfffd, 0xfffc].map(|word: u32| word.wrapping_neg())
            )]
        );
        assert_eq!(
            call(0),
            [words([0xffff, 0xfffe, 0xfffd, 0xfffc].map(|word: u32| !word))]
        );
    }
}

/// The suite has no assertions for these instructions.
#[test]
fn relaxed_sums_of_products() {
    let text = r#"(module
        (func (export "plus") (param v128 v128 v128) (result v128)
            local.get 0 local.get 1 local.get 2 f32x4.relaxed_madd)
        (func (export "minus") (param v128 v128 v128) (result v128)
            local.get 0 local.get 1 local.get 2 f32x4.relaxed_nmadd)
        (func (export "plus64") (param v128 v128 v128) (result v128)
            local.get 0 local.get 1 local.get 2 f64x2.relaxed_madd)
        (func (export "minus64") (param v128 v128 v128) (result v128)
            local.get 0 local.get 1 local.get 2 f64x2.relaxed_nmadd))"#;
    // All results are exact, so one or two roundings make no difference.
    let (a, b, c) = ([2.0, -3.0, 0.5, 8.0], [3.0, 5.0, -4.0, 0.0], [1.0, 2.0, 100.0, -7.0]);
    let (d, e, f) = ([2.0, -3.0], [3.0, 5.0], [1.0, 2.0]);
    for level in LEVELS {
        let mut store = store(level);
        let instance = add(&mut store, text);
        let narrow = [floats(a), floats(b), floats(c)];
        let wide = [doubles(d), doubles(e), doubles(f)];
        let mut call = |name, arguments: &[Value; 3]| store.invoke(&instance, name, arguments).unwrap();
        assert_eq!(call("plus", &narrow), [floats([7.0, -13.0, 98.0, -7.0])], "{level}");
        assert_eq!(call("minus", &narrow), [floats([-5.0, 17.0, 102.0, -7.0])], "{level}");
        assert_eq!(call("plus64", &wide), [doubles([7.0, -13.0])], "{level}");
        assert_eq!(call("minus64", &wide), [doubles([-5.0, 17.0])], "{level}");
    }
}

#[test]
fn relaxed_conversions() {
    let text = r#"(module
        (func (export "floats") (param v128) (result v128 v128)
            local.get 0 i32x4.relaxed_trunc_f32x4_s
            local.get 0 i32x4.relaxed_trunc_f32x4_u)
        (func (export "doubles") (param v128) (result v128 v128)
            local.get 0 i32x4.relaxed_trunc_f64x2_s_zero
            local.get 0 i32x4.relaxed_trunc_f64x2_u_zero))"#;
    for level in LEVELS {
        let mut store = store(level);
        let instance = add(&mut store, text);
        let mut call = |name: &str, arg| store.invoke(&instance, name, &[arg]).unwrap();
        assert_eq!(
            call("floats", floats([1.9, 0.0, 7.0, 2147483520.0])),
            [words([1, 0, 7, 2147483520]); 2]
        );
        assert_eq!(call("floats", floats([-1.9, 0.5, 3.0, -4.0]))[0], words([!0, 0, 3, !3]));
        assert_eq!(
            call("floats", floats([3e9, 0.5, 3.0, 4.0]))[1],
            words([3_000_000_000, 0, 3, 4])
        );
        assert_eq!(call("doubles", doubles([1.9, 70.0])), [words([1, 70, 0, 0]); 2]);
        assert_eq!(call("doubles", doubles([-1.9, 70.0]))[0], words([!0, 70, 0, 0]));
        assert_eq!(
            call("doubles", doubles([3e9, 70.0]))[1],
            words([3_000_000_000, 70, 0, 0])
        );
    }
}

const CONTROL: &str = r#"(module
    (import "host" "turn" (func $turn (param v128 i64) (result v128)))
    (type $many (func (param v128 v128 v128 v128 v128 v128 v128 v128 v128 v128 i32) (result v128 v128 v128)))
    (global $state (mut v128) (v128.const i16x8 1 2 3 4 5 6 7 8))
    (global (export "constant") v128 (v128.const f64x2 1.5 -2))
    (table funcref (elem $rest))
    (func (export "turned") (param v128) (result v128)
        (call $turn (i8x16.add (local.get 0) (local.get 0)) (i64.const -5)))
    ;; Sums of bytes in a loop parameter, and an `if` with results of different shapes.
    (func (export "loop") (param $step v128) (param $count i32) (result v128)
        (v128.const i32x4 0 0 0 0)
        (loop $again (param v128) (result v128)
            (i8x16.add (local.get $step))
            (local.set $count (i32.sub (local.get $count) (i32.const 1)))
            (br_if $again (local.get $count)))
        (if (param v128) (result v128) (i32.and (local.get $count) (i32.const 1))
            (then)
            (else (i64x2.add (v128.const i64x2 1 2)))))
    (func (export "table") (param $way i32) (result v128)
        (block $b (result v128)
            (block $a (result v128)
                (br_table $a $b (i16x8.splat (local.get $way)) (local.get $way)))
            (f32x4.convert_i32x4_u)))
    (func (export "chosen") (param v128 v128 i32) (result v128)
        (select (i16x8.neg (local.get 0)) (i64x2.neg (local.get 1)) (local.get 2)))
    (func (export "step") (result v128)
        (local $before v128)
        (local.set $before (global.get $state))
        (global.set $state (i16x8.mul (global.get $state) (i16x8.splat (i32.const 3))))
        (local.get $before))
    (func $rest (type $many)
        (i8x16.sub (local.get 8) (local.get 0)) (local.get 9) (i32x4.splat (local.get 10)))
    (func (export "calls") (param v128 v128) (result v128 v128 v128)
        (return_call_indirect (type $many)
            (local.get 0) (local.get 0) (local.get 0) (local.get 0) (local.get 0) (local.get 0) (local.get 0) (local.get 0)
            (local.get 1) (f64x2.neg (local.get 1)) (i32.const 77) (i32.const 0)))
    (func (export "unset") (result v128) (local v128) (local.get 0)))"#;

#[test]
fn blocks_calls_and_globals() {
    for level in LEVELS {
        let mut store = store(level);
        let ty = FuncType {
            params: vec![ValueType::V128, ValueType::I64],
            results: vec![ValueType::V128],
        };
        let turn = |_: naplespu_jit::HostCall<'_>, args: &[DataValue]| match args {
            [DataValue::V128(bytes), DataValue::I64(-5)] => {
                Ok(vec![DataValue::V128(std::array::from_fn(|at| bytes[15 - at]))])
            }
            other => Err(naplespu_jit::HostStop::Fault(format!("{other:?}"))),
        };
        let item = store.host_function("turn", &ty, Box::new(turn)).unwrap();
        store.define("host", "turn", Extern::Func(item));
        let instance = add(&mut store, CONTROL);
        let Some(Extern::Global(constant)) = instance.export("constant") else {
            panic!("no global");
        };
        assert_eq!(store.global(constant), Some(doubles([1.5, -2.0])));
        let mut call = |name: &str, args: &[Value]| store.invoke(&instance, name, args).unwrap();
        let a = words([0x0102_0304, 0x0506_0708, 0x090a_0b0c, 0x8090_a0f0]);
        assert_eq!(
            call("turned", &[a]),
            [words([0xe040_2000, 0x1816_1412, 0x100e_0c0a, 0x0806_0402])]
        );
        assert_eq!(
            call("loop", &[a, Value::I32(3)]),
            [words([0x0306_090d, 0x0f12_1518, 0x1b1e_2126, 0x80b0_e0d0])]
        );
        assert_eq!(call("table", &[Value::I32(0)]), [floats([0.0; 4])]);
        assert_eq!(call("table", &[Value::I32(1)]), [words([0x1_0001; 4])]);
        assert_eq!(call("table", &[Value::I32(2)]), [words([0x2_0002; 4])]);
        let b = words([1, 0, 0, 0x1_0000]);
        assert_eq!(
            call("chosen", &[b, b, Value::I32(1)]),
            [words([0xffff, 0, 0, 0xffff_0000])]
        );
        assert_eq!(
            call("chosen", &[b, b, Value::I32(0)]),
            [words([!0, !0, 0, 0xffff_0000])]
        );
        let first = words([0x2_0001, 0x4_0003, 0x6_0005, 0x8_0007]);
        assert_eq!(call("step", &[]), [first]);
        assert_eq!(call("step", &[]), [words([0x6_0003, 0xc_0009, 0x12_000f, 0x18_0015])]);
        assert_eq!(
            call("calls", &[b, doubles([1.0, 2.0])]),
            [less(doubles([1.0, 2.0]), b), doubles([-1.0, -2.0]), words([77; 4])]
        );
        assert_eq!(call("unset", &[]), [words([0; 4])]);
        assert!(matches!(
            store.invoke(&instance, "loop", &[Value::I32(1), Value::I32(1)]),
            Err(CallError::Arguments { .. })
        ));
    }
}

/// Subtracts bytes.
fn less(a: Value, b: Value) -> Value {
    let (Value::V128(a), Value::V128(b)) = (a, b) else {
        panic!("no vectors");
    };
    let (a, b) = (a.to_le_bytes(), b.to_le_bytes());
    Value::V128(u128::from_le_bytes(std::array::from_fn(|at| a[at].wrapping_sub(b[at]))))
}

const ACCESSES: &str = r#"(module
    (memory (export "memory") 1 1)
    (func (export "fill") (param $at i32) (param $byte i32) (i32.store8 (local.get $at) (local.get $byte)))
    (func (export "byte") (param i32) (result i32) (i32.load8_u (local.get 0)))
    (func (export "store") (param i32 v128) (v128.store offset=1 (local.get 0) (local.get 1)))
    (func (export "lane1") (param i32 v128) (v128.store8_lane offset=1 3 (local.get 0) (local.get 1)))
    (func (export "lane2") (param i32 v128) (v128.store16_lane offset=1 3 (local.get 0) (local.get 1)))
    (func (export "lane4") (param i32 v128) (v128.store32_lane offset=1 3 (local.get 0) (local.get 1)))
    (func (export "lane8") (param i32 v128) (v128.store64_lane offset=1 1 (local.get 0) (local.get 1)))
    (func (export "load16") (param i32) (result v128) (v128.load offset=1 (local.get 0)))
    (func (export "load8a") (param i32) (result v128) (v128.load8x8_s offset=1 (local.get 0)))
    (func (export "load8b") (param i32) (result v128) (v128.load16x4_u offset=1 (local.get 0)))
    (func (export "load8c") (param i32) (result v128) (v128.load32x2_s offset=1 (local.get 0)))
    (func (export "load8d") (param i32) (result v128) (v128.load64_zero offset=1 (local.get 0)))
    (func (export "load4") (param i32) (result v128) (v128.load32_splat offset=1 (local.get 0)))
    (func (export "load2") (param i32) (result v128)
        (v128.load16_lane offset=1 5 (local.get 0) (v128.const i64x2 -1 -1))))"#;

/// Loads return the bytes at every address, and stores change only their own bytes. The last byte
/// of the memory is in bounds, the next is not.
#[test]
fn addresses_that_are_not_aligned() {
    let data: [u8; 16] = std::array::from_fn(|at| (at as u8).wrapping_mul(37) ^ 0x91);
    let value = Value::V128(u128::from_le_bytes(data));
    for level in LEVELS {
        let mut store = store(level);
        let instance = add(&mut store, ACCESSES);
        let Some(Extern::Memory(memory)) = instance.export("memory") else {
            panic!("no memory");
        };
        let base = store.base(memory.base).unwrap();
        for at in (40..110u32).chain(0x1_0000 - 20..0x1_0000) {
            let place = Value::I32(at as i32 - 1);
            let ground: Vec<u8> = (0..0x1_0000u32).map(|at| ((at * 7) >> 2) as u8).collect();
            for (name, bytes) in [
                ("store", &data[..]),
                ("lane1", &data[3..4]),
                ("lane2", &data[6..8]),
                ("lane4", &data[12..]),
                ("lane8", &data[8..]),
            ] {
                let range = at.saturating_sub(32) as usize..(at as usize + 48).min(0x1_0000);
                store
                    .module_mut()
                    .write_memory(base + range.start as u32, &ground[range.clone()])
                    .unwrap();
                let result = store.invoke(&instance, name, &[place, value]);
                let mut expected = ground[range.clone()].to_vec();
                let from = at as usize - range.start;
                match expected.get_mut(from..from + bytes.len()) {
                    Some(there) => {
                        there.copy_from_slice(bytes);
                        assert_eq!(result.unwrap(), []);
                    }
                    None => assert!(matches!(result, Err(CallError::Trap { .. }))),
                }
                let mut found = vec![0; range.len()];
                store.module().read_memory(base + range.start as u32, &mut found);
                assert_eq!(found, expected, "{name} at {at}, {level}");
            }
            store.module_mut().write_memory(base, &ground).unwrap();
            let bytes = &ground[at as usize..];
            let part = |size: usize, at: usize| bytes.get(size * at..size * (at + 1));
            let number = |size: usize, at: usize| {
                let mut all = [0; 16];
                all[..size].copy_from_slice(part(size, at).unwrap());
                u128::from_le_bytes(all)
            };
            let each = |size: usize, bits: u32, extend: fn(u128) -> u128| {
                (0..8 / size).fold(0, |all, at| all | extend(number(size, at)) << (bits * at as u32))
            };
            for (name, size) in [
                ("load16", 16),
                ("load8a", 8),
                ("load8b", 8),
                ("load8c", 8),
                ("load8d", 8),
                ("load4", 4),
                ("load2", 2),
            ] {
                let result = store.invoke(&instance, name, &[place]);
                if bytes.len() < size {
                    assert!(matches!(result, Err(CallError::Trap { .. })), "{name} at {at}");
                    continue;
                }
                let expected = match name {
                    "load16" => number(16, 0),
                    "load8a" => each(1, 16, |byte| (byte as i8 as u16).into()),
                    "load8b" => each(2, 32, |half| half),
                    "load8c" => each(4, 64, |word| (word as i32 as u64).into()),
                    "load8d" => number(8, 0),
                    "load4" => number(4, 0) * 0x1_0000_0001_0000_0001_0000_0001,
                    _ => !(0xffff << 80) | number(2, 0) << 80,
                };
                assert_eq!(result.unwrap(), [Value::V128(expected)], "{name} at {at}, {level}");
            }
        }
    }
}

struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 20) as usize % limit
    }

    fn pick<'t>(&mut self, list: &[&'t str]) -> &'t str {
        list[self.below(list.len())]
    }

    /// Returns a random vector. Special lane values are frequent.
    fn vector(&mut self) -> u128 {
        (0..8).fold(0, |all, _| {
            let half = [
                0,
                1,
                0x7fff,
                0x8000,
                0xffff,
                0x3f80,
                0xff80,
                self.below(0x1_0000) as u128,
            ][self.below(8)];
            all << 16 | half
        })
    }

    /// Returns a random instruction that makes a vector, and the number of its vector operands.
    fn instruction(&mut self) -> (String, usize) {
        let shapes = ["i8x16", "i16x8", "i32x4", "i64x2"];
        let lanes = [16, 8, 4, 2];
        let at = self.below(4);
        let (shape, count) = (shapes[at], lanes[at]);
        let [narrow, from, to] = [at.min(1), at.min(2), at.min(2) + 1].map(|at| shapes[at]);
        let sign = self.pick(&["s", "u"]);
        let half = self.pick(&["low", "high"]);
        let signed = |narrow: &str| {
            if matches!(narrow, "i8x16" | "i16x8") {
                format!("_{sign}")
            } else {
                String::new()
            }
        };
        match self.below(17) {
            0 | 1 => (
                format!("{shape}.{}", self.pick(&["add", "sub", "eq", "ne", "lt_s", "ge_s"])),
                2,
            ),
            2 => (format!("{shape}.{}", self.pick(&["neg", "abs"])), 1),
            3 => {
                let bits = self.below(70);
                (
                    format!("i32.const {bits} {shape}.{}", self.pick(&["shl", "shr_s", "shr_u"])),
                    1,
                )
            }
            4 => (format!("v128.{}", self.pick(&["and", "or", "xor", "andnot"])), 2),
            5 => ("v128.bitselect".to_owned(), 3),
            6 => {
                let name = self.pick(&[
                    "add_sat_s",
                    "add_sat_u",
                    "sub_sat_s",
                    "sub_sat_u",
                    "avgr_u",
                    "min_u",
                    "max_s",
                ]);
                (format!("{narrow}.{name}"), 2)
            }
            7 => (format!("{to}.extend_{half}_{from}_{sign}"), 1),
            8 => (format!("{to}.extmul_{half}_{from}_{sign}"), 2),
            9 => {
                let (to, from) = [("i8x16", "i16x8"), ("i16x8", "i32x4")][self.below(2)];
                (format!("{to}.narrow_{from}_{sign}"), 2)
            }
            10 => {
                let lanes = (0..16).map(|_| self.below(32).to_string());
                (format!("i8x16.shuffle {}", lanes.collect::<Vec<_>>().join(" ")), 2)
            }
            11 => ("i8x16.swizzle".to_owned(), 2),
            12 => {
                let (lane, other) = (self.below(count), self.below(count));
                let from = format!("{shape}.extract_lane{} {lane}", signed(shape));
                match self.below(2) {
                    0 => (format!("{from} {shape}.splat"), 1),
                    _ => (format!("{from} {shape}.replace_lane {other}"), 2),
                }
            }
            13 => {
                let name = self.pick(&["all_true", "bitmask"]);
                (format!("{shape}.{name} i32x4.splat"), 1)
            }
            14 => (
                self.pick(&[
                    "i32x4.dot_i16x8_s",
                    "i16x8.q15mulr_sat_s",
                    "i16x8.mul",
                    "i32x4.mul",
                    "i64x2.mul",
                ])
                .to_owned(),
                2,
            ),
            15 => {
                let name = self.pick(&[
                    "f32x4.pmin",
                    "f32x4.pmax",
                    "f64x2.pmin",
                    "f32x4.lt",
                    "f64x2.ge",
                    "f32x4.eq",
                    "f64x2.ne",
                ]);
                (name.to_owned(), 2)
            }
            _ => {
                let name = self.pick(&[
                    "v128.not",
                    "v128.any_true i8x16.splat",
                    "i8x16.popcnt",
                    "i16x8.extadd_pairwise_i8x16_s",
                    "i32x4.extadd_pairwise_i16x8_u",
                    "f32x4.neg",
                    "f64x2.abs",
                    "f32x4.convert_i32x4_u",
                    "i32x4.trunc_sat_f32x4_s",
                    "i32x4.trunc_sat_f64x2_u_zero",
                    "f64x2.convert_low_i32x4_s",
                ]);
                (name.to_owned(), 1)
            }
        }
    }
}

/// An instruction and the numbers of its operands: inputs or earlier results.
type Step = (String, Vec<usize>);

/// Returns the text that computes a value again, or reads its local.
fn text_of(steps: &[Step], value: usize, kept: &[bool]) -> String {
    let step = value.checked_sub(kept.len() - steps.len()).filter(|_| !kept[value]);
    let Some((instruction, operands)) = step.map(|step| &steps[step]) else {
        return format!("local.get {value}");
    };
    let operands: Vec<String> = operands.iter().map(|&operand| text_of(steps, operand, kept)).collect();
    format!("{} {instruction}", operands.join(" "))
}

/// A function with many instructions returns the same results as the single instructions.
#[test]
fn many_operations_in_a_row() {
    const INPUTS: usize = 4;
    const STEPS: usize = 24;
    const RESULTS: usize = 4;
    let iterations = std::env::var("SIMD_ITERATIONS").map_or(40, |iterations| iterations.parse().unwrap());
    for iteration in 1..=iterations {
        let mut single = store("none");
        let mut random = Random(iteration * 0x9e37_79b9);
        let mut steps: Vec<Step> = Vec::new();
        for at in 0..STEPS {
            let (instruction, arity) = random.instruction();
            // Favors recent values.
            let operands = (0..arity).map(|_| {
                let known = INPUTS + at;
                let back = random.below(known).min(random.below(known));
                known - 1 - back
            });
            let operands = operands.collect();
            steps.push((instruction, operands));
        }
        let mut text = "(module".to_owned();
        for (at, (instruction, operands)) in steps.iter().enumerate() {
            let params = " v128".repeat(operands.len());
            let gets: String = (0..operands.len()).map(|at| format!(" local.get {at}")).collect();
            write!(
                text,
                "\n(func (export \"{at}\") (param{params}) (result v128){gets} {instruction})"
            )
            .unwrap();
        }
        text += ")";
        let one_by_one = add(&mut single, &text);
        // Values with several uses stay in locals.
        let mut kept = [true; INPUTS + STEPS];
        for (value, kept) in kept.iter_mut().enumerate().skip(INPUTS) {
            let uses = steps
                .iter()
                .flat_map(|(_, operands)| operands)
                .filter(|&&used| used == value);
            *kept = uses.count() > 1 || value >= INPUTS + STEPS - RESULTS;
        }
        let (params, results) = (" v128".repeat(INPUTS), " v128".repeat(RESULTS));
        let mut text = format!("(module (func (export \"all\") (param{params}) (result{results})\n");
        writeln!(text, "(local{})", " v128".repeat(STEPS)).unwrap();
        for value in INPUTS..INPUTS + STEPS {
            if kept[value] {
                let mut others = kept;
                others[value] = false;
                let body = text_of(&steps, value, &others);
                writeln!(text, "{body} local.set {value}").unwrap();
            }
        }
        for value in INPUTS + STEPS - RESULTS..INPUTS + STEPS {
            writeln!(text, "local.get {value}").unwrap();
        }
        text += "))";
        let mut stores = LEVELS.map(store);
        let instances = stores.each_mut().map(|store| add(store, &text));
        for _ in 0..4 {
            let mut values: Vec<Value> = (0..INPUTS).map(|_| Value::V128(random.vector())).collect();
            for (at, (_, operands)) in steps.iter().enumerate() {
                let operands: Vec<Value> = operands.iter().map(|&operand| values[operand]).collect();
                values.push(single.invoke(&one_by_one, &at.to_string(), &operands).unwrap()[0]);
            }
            for ((store, instance), level) in stores.iter_mut().zip(&instances).zip(LEVELS) {
                let found = store.invoke(instance, "all", &values[..INPUTS]).unwrap();
                let expected = &values[INPUTS + STEPS - RESULTS..];
                assert_eq!(
                    found,
                    expected,
                    "iteration {iteration}, {level}, {:x?}\n{text}",
                    &values[..INPUTS]
                );
            }
        }
    }
}
