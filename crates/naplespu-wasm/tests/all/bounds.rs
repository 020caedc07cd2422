//! Tests which bounds checks exist, and that accesses near the end of a memory trap exactly when
//! they have to, after all earlier stores.

use cranelift_codegen::settings::{self, Configurable};
use cranelift_naplespu::isa::lookup_by_name;
use naplespu_jit::NpuModule;
use naplespu_wasm::{Config, Imports, Store, Types, Value, translate};

fn module(opt_level: &str) -> NpuModule {
    let mut flags = settings::builder();
    flags.set("opt_level", opt_level).unwrap();
    let builder = lookup_by_name("naplespu").unwrap();
    NpuModule::new(builder.finish(settings::Flags::new(flags)).unwrap()).unwrap()
}

/// Returns functions over memories of one page: one with a constant size, and one that could grow.
fn text(memory: &str) -> String {
    format!(
        r#"(module
    (memory {memory})
    (func (export "arms") (param i32 i32) (result i32)
        local.get 0 i32.load8_u drop
        local.get 1
        if
            local.get 0 i32.const 7 i32.store8 offset=9
        else
            local.get 0 i32.const 8 i32.store8 offset=5
        end
        local.get 0 i32.load8_u offset=7)
    (func (export "iterations") (param i32 i32) (result i32)
        (local i32 i32)
        local.get 0 i32.load8_u offset=12 local.set 2
        local.get 0 local.set 3
        loop
            local.get 2
            local.get 0 i32.load8_u offset=11
            i32.add local.set 2
            local.get 3 local.get 1 i32.store8 offset=2
            local.get 3 i32.const 5 i32.add local.set 3
            local.get 1 i32.const 1 i32.sub local.tee 1
            br_if 0
        end
        local.get 0 i32.load8_u offset=10
        local.get 2 i32.add)
    (func (export "masked") (param i32 i32) (result i32)
        local.get 0 i32.const 255 i32.and i32.const 8 i32.shl
        local.get 1 i32.const 24 i32.shr_u
        i32.or i32.load8_u)
    (func (export "beyond") (param i32 i32) (result i32)
        local.get 0 i32.const 255 i32.and i32.const 8 i32.shl
        local.get 1 i32.const 24 i32.shr_u
        i32.or i32.load8_u offset=1)
    (func (export "wraps") (param i32 i32) (result i32)
        local.get 0 i32.const 255 i32.and
        i32.const -128 i32.add i32.load8_u)
    (func (export "shared") (param i32 i32) (result i32)
        local.get 0 i32.load8_u
        local.get 0 i32.load8_u offset=3
        i32.add
        local.get 0 i32.load8_u offset=8
        i32.add)
    (func (export "first") (param i32 i32) (result i32)
        local.get 0 i32.const 0x1ffff i32.and
        local.get 0 i32.const 255 i32.and
        local.get 1
        select
        i32.load8_u)
    (func (export "second") (param i32 i32) (result i32)
        local.get 0 i32.const 255 i32.and
        local.get 0 i32.const 0x1ffff i32.and
        local.get 1
        select
        i32.load8_u)
    (func (export "summed") (param i32 i32) (result i32)
        local.get 0 i32.const 0xffff i32.and
        local.get 1 i32.const 0xff i32.and
        i32.add i32.load8_u)
    (func (export "scaled") (param i32 i32) (result i32)
        local.get 0 i32.const 0xff i32.and i32.const 257 i32.mul
        local.get 1 i32.const 1 i32.and i32.const 7 i32.shl
        i32.or
        i32.load8_u offset=1))"#
    )
}

const FUNCTIONS: [&str; 10] = [
    "arms",
    "iterations",
    "masked",
    "beyond",
    "wraps",
    "shared",
    "first",
    "second",
    "summed",
    "scaled",
];

/// A memory that detects accesses out of bounds.
struct Model(Vec<u8>);

impl Model {
    fn at(&mut self, index: u32, offset: u64) -> Option<&mut u8> {
        self.0.get_mut(usize::try_from(u64::from(index) + offset).ok()?)
    }

    fn call(&mut self, name: &str, a: u32, b: u32) -> Option<u32> {
        let masked = (a & 255) << 8 | b >> 24;
        let byte = match name {
            "arms" => {
                self.at(a, 0)?;
                if b == 0 {
                    *self.at(a, 5)? = 8;
                } else {
                    *self.at(a, 9)? = 7;
                }
                *self.at(a, 7)?
            }
            "iterations" => {
                let mut sum = u32::from(*self.at(a, 12)?);
                for iteration in 0..b {
                    sum += u32::from(*self.at(a, 11)?);
                    *self.at(a.wrapping_add(5 * iteration), 2)? = (b - iteration) as u8;
                }
                return Some(sum + u32::from(*self.at(a, 10)?));
            }
            "masked" => *self.at(masked, 0)?,
            "beyond" => *self.at(masked, 1)?,
            // One check covers three accesses.
            "shared" => {
                let bytes = [0, 3, 8].map(|offset| self.at(a, offset).map(|byte| u32::from(*byte)));
                return bytes.into_iter().sum();
            }
            "first" => *self.at(if b == 0 { a & 255 } else { a & 0x1ffff }, 0)?,
            "second" => *self.at(if b == 0 { a & 0x1ffff } else { a & 255 }, 0)?,
            "summed" => *self.at((a & 0xffff) + (b & 255), 0)?,
            "scaled" => *self.at(((a & 255) * 257) | ((b & 1) << 7), 1)?,
            _ => *self.at((a & 255).wrapping_sub(128), 0)?,
        };
        Some(byte.into())
    }
}

#[test]
fn accesses_near_the_bounds() {
    for (memory, level) in [("1 1", "speed"), ("1 3", "none"), ("1 3", "speed")] {
        let mut store = Store::new(module(level), Config::default());
        let instance = store.load(&wat::parse_str(text(memory)).unwrap()).unwrap();
        store.start(&instance).unwrap();
        let mut model = Model(vec![0; 1 << 16]);
        let mut state = 1u32;
        let mut random = |limit: u32| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) % limit
        };
        let (mut trapped, mut returned) = (0, 0);
        // All indices around the end, then others.
        let around = |name: &'static str| {
            let least = u32::from(name == "iterations");
            (0xffe8..=0x1_0000).flat_map(move |a| [(name, a, least), (name, a, least + 1)])
        };
        let mut cases: Vec<(&str, u32, u32)> = FUNCTIONS.into_iter().flat_map(around).collect();
        for _ in 0..800 {
            let name = FUNCTIONS[random(10) as usize];
            let a = match random(4) {
                0 => random(16),
                1 => 0u32.wrapping_sub(random(16)),
                2 => 0xff00 + random(256),
                _ => 0xffe0 + random(40),
            };
            let b = match name {
                "arms" | "first" | "second" => random(2),
                "summed" => random(24),
                "iterations" => 1 + random(8),
                _ => random(2) * 0xff00_0000 + random(1 << 24),
            };
            cases.push((name, a, b));
        }
        for (name, a, b) in cases {
            let expected = model.call(name, a, b);
            let args = [a.cast_signed(), b.cast_signed()].map(Value::I32);
            match store.invoke(&instance, name, &args) {
                Ok(values) => {
                    assert_eq!(
                        Some(values[0]),
                        expected.map(|value| Value::I32(value as i32)),
                        "{name} {a:#x} {b:#x}"
                    );
                    returned += 1;
                }
                Err(error) => {
                    assert_eq!(expected, None, "{name} {a:#x} {b:#x}: {error}");
                    let error = error.to_string();
                    assert!(error.starts_with("trap: out of bounds memory access"), "{error}");
                    trapped += 1;
                }
            }
        }
        // Stores before a trap are visible to later calls.
        assert!(trapped > 50 && returned > 50, "{trapped} {returned}");
    }
}

/// A check is omitted exactly where a dominating check or the index itself implies it.
#[test]
fn checks_that_are_left() {
    let mut module = module("none");
    let bytes = wat::parse_str(text("1 1")).unwrap();
    let (mut types, imports) = (Types::default(), Imports::default());
    let translated = translate(&mut module, &bytes, &Config::default(), &mut types, &imports).unwrap();
    let checks = |text: &str| {
        text.lines()
            .filter(|line| line.contains("trapnz") && line.contains("heap_oob"))
            .count()
    };
    let texts = translated
        .functions
        .iter()
        .map(|(_, ctx)| ctx.func.display().to_string());
    let counts: Vec<usize> = texts.map(|text| checks(&text)).collect();
    // `arms`: one before, one in each arm, one after. `iterations`: one before the loop and two in it,
    // since only the end of a loop shows whether a local changes in it; none after it. `shared`:
    // one that covers the last access.
    assert_eq!(counts[..10], [4, 3, 0, 1, 1, 1, 1, 1, 1, 1]);
}
