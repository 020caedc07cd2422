//! Runs scripts of the suite: modules, calls and their expected results.

use super::list::OLD_RULES;
use cranelift_codegen::isa::CallConv;
use cranelift_codegen::settings::{self, Configurable};
use cranelift_naplespu::isa::lookup_by_name;
use naplespu_jit::NpuModule;
use naplespu_wasm::{CallError, Config, Extern, Instance, Store, Value, WasmError};
use std::collections::HashMap;
use wast::core::{AbstractHeapType, HeapType, NanPattern, V128Pattern, WastArgCore, WastRetCore};
use wast::token::{F32, F64, Id};
use wast::{QuoteWat, Wast, WastArg, WastDirective, WastExecute, WastInvoke, WastRet};

/// The results of a script.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// The number of passed assertions.
    pub passed: usize,
    /// The number of passed assertions about malformed or invalid modules that the text parser
    /// refuses, so that this crate never sees them.
    pub only_text: usize,
    /// The reasons of skipped assertions.
    pub skipped: Vec<String>,
    /// The reasons of refused modules. The assertions about them are skipped.
    pub refused: Vec<String>,
    /// The failures, each with its line.
    pub failed: Vec<String>,
}

impl Outcome {
    /// Adds the numbers of another script.
    pub fn add(&mut self, other: &Self) {
        self.passed += other.passed;
        self.only_text += other.only_text;
        self.skipped.extend_from_slice(&other.skipped);
        self.refused.extend_from_slice(&other.refused);
        self.failed.extend_from_slice(&other.failed);
    }
}

/// The component that confirmed an assertion.
enum Seen {
    /// This crate.
    Here,
    /// The text parser.
    Text,
}

/// Returns whether a directive is an assertion, that is, does not define or name modules.
fn is_assertion(directive: &WastDirective<'_>) -> bool {
    !matches!(
        directive,
        WastDirective::Module(_)
            | WastDirective::ModuleDefinition(_)
            | WastDirective::ModuleInstance { .. }
            | WastDirective::Register { .. }
    )
}

/// Calls `each` with the directives of a script and their lines.
fn each_directive(text: &str, mut each: impl FnMut(WastDirective<'_>, usize)) {
    let mut lexer = wast::lexer::Lexer::new(text);
    lexer.allow_confusing_unicode(true);
    let buffer = wast::parser::ParseBuffer::new_with_lexer(lexer).unwrap();
    let wast = wast::parser::parse::<Wast>(&buffer).unwrap();
    for directive in wast.directives {
        let line = directive.span().linecol_in(text).0 + 1;
        each(directive, line);
    }
}

/// The module that the scripts import from.
const SPECTEST: &str = r#"(module
    (global (export "global_i32") i32 (i32.const 666))
    (global (export "global_i64") i64 (i64.const 666))
    (global (export "global_f32") f32 (f32.const 666.6))
    (global (export "global_f64") f64 (f64.const 666.6))
    (table (export "table") 10 20 funcref)
    (memory (export "memory") 1 2)
    (memory (export "shared_memory") 1 2 shared)
    (func (export "print"))
    (func (export "print_i32") (param i32))
    (func (export "print_i64") (param i64))
    (func (export "print_f32") (param f32))
    (func (export "print_f64") (param f64))
    (func (export "print_i32_f32") (param i32 f32))
    (func (export "print_f64_f64") (param f64 f64)))"#;

/// The reason why an assertion did not pass.
enum Miss {
    /// Skipped, with the reason.
    Skip(String),
    Fail(String),
}

impl From<String> for Miss {
    fn from(text: String) -> Self {
        Self::Fail(text)
    }
}

struct Script {
    store: Store,
    /// The last module, or the reason why it does not exist.
    current: Result<Instance, String>,
    named: HashMap<String, Result<Instance, String>>,
    definitions: HashMap<String, Vec<u8>>,
}

/// Runs a script, compiled with this `opt_level`.
pub fn run(text: &str, opt_level: &str) -> Outcome {
    let mut script = Script::new(opt_level);
    let mut outcome = Outcome::default();
    each_directive(text, |directive, line| {
        let counts = is_assertion(&directive);
        match script.directive(directive) {
            Ok(Seen::Here) => outcome.passed += usize::from(counts),
            Ok(Seen::Text) => outcome.only_text += usize::from(counts),
            Err(Miss::Skip(why)) if counts => outcome.skipped.push(why),
            Err(Miss::Skip(why)) => outcome.refused.push(why),
            Err(Miss::Fail(why)) => outcome.failed.push(format!("{line}: {why}")),
        }
    });
    outcome
}

impl Script {
    fn new(opt_level: &str) -> Self {
        let mut flags = settings::builder();
        flags.set("opt_level", opt_level).unwrap();
        let mut builder = lookup_by_name("naplespu").unwrap();
        builder.set("strict_float", "true").unwrap();
        let isa = builder.finish(settings::Flags::new(flags)).unwrap();
        let config = Config {
            memory_reservation: 64 << 20,
            table_reservation: 1 << 16,
            closed: false,
            convention: CallConv::Tail,
            ..Config::default()
        };
        let mut store = Store::new(NpuModule::new(isa).unwrap(), config);
        let bytes = wat::parse_str(SPECTEST).unwrap();
        let spectest = store.load(&bytes).unwrap();
        store.start(&spectest).unwrap();
        store.register("spectest", &spectest);
        Self {
            store,
            current: Err("there is no module".to_owned()),
            named: HashMap::new(),
            definitions: HashMap::new(),
        }
    }

    fn directive(&mut self, directive: WastDirective<'_>) -> Result<Seen, Miss> {
        match directive {
            WastDirective::AssertInvalid { mut module, .. } | WastDirective::AssertMalformed { mut module, .. } => {
                // Some text modules have no binary encoding.
                let Ok(bytes) = module.encode() else {
                    return Ok(Seen::Text);
                };
                self.expect_invalid(&bytes)
            }
            // The contents of custom sections do not affect validity here.
            WastDirective::AssertMalformedCustom { mut module, .. }
            | WastDirective::AssertInvalidCustom { mut module, .. } => match module.encode() {
                Err(_) => return Ok(Seen::Text),
                Ok(_) => Err(Miss::Skip("a custom section of the text format".to_owned())),
            },
            other => self.module_or_call(other),
        }?;
        Ok(Seen::Here)
    }

    fn module_or_call(&mut self, directive: WastDirective<'_>) -> Result<(), Miss> {
        match directive {
            WastDirective::Module(mut module) => {
                let name = name_of(&module);
                let bytes = module.encode().map_err(|error| error.to_string())?;
                self.add(name, &bytes)
            }
            WastDirective::ModuleDefinition(mut module) => {
                let bytes = module.encode().map_err(|error| error.to_string())?;
                self.definitions.insert(name_of(&module).unwrap_or_default(), bytes);
                Ok(())
            }
            WastDirective::ModuleInstance { instance, module, .. } => {
                let module = module.map_or(String::new(), |id| id.name().to_owned());
                let bytes = self
                    .definitions
                    .get(&module)
                    .cloned()
                    .ok_or("no definition".to_owned())?;
                self.add(instance.map(|id| id.name().to_owned()), &bytes)
            }
            WastDirective::Register { name, module, .. } => {
                let instance = self.instance(module)?;
                self.store.register(name, &instance);
                Ok(())
            }
            WastDirective::Invoke(invoke) => self.invoke(&invoke).map(drop),
            WastDirective::AssertReturn { exec, results, .. } => {
                let values = self.execute(exec)?;
                if values.len() == results.len() && values.iter().zip(&results).all(|(a, b)| matches(*a, b)) {
                    Ok(())
                } else {
                    Err(Miss::Fail(format!("gave {values:x?} and not {results:x?}")))
                }
            }
            WastDirective::AssertTrap { exec, message, .. } => self.expect_trap(exec, message),
            WastDirective::AssertException { exec, .. } => self.expect_trap(exec, "uncaught exception"),
            WastDirective::AssertExhaustion { call, message, .. } => {
                self.expect_trap(WastExecute::Invoke(call), message)
            }
            WastDirective::AssertUnlinkable {
                mut module, message, ..
            } => {
                let bytes = module.encode().map_err(|error| error.to_string())?;
                match self.store.load(&bytes) {
                    Err(error @ (WasmError::UnknownImport { .. } | WasmError::IncompatibleImport { .. }))
                        if error.to_string().contains(message) =>
                    {
                        Ok(())
                    }
                    Err(error @ WasmError::Unsupported { .. }) => Err(Miss::Skip(error.to_string())),
                    // Segments are checked at instantiation, by the current rules.
                    Ok(_) if message.ends_with("segment does not fit") => Err(Miss::Skip(OLD_RULES.to_owned())),
                    // The module imports from a refused module.
                    Err(WasmError::UnknownImport { .. }) if self.current.is_err() => {
                        Err(Miss::Skip(self.current.clone().err().unwrap_or_default()))
                    }
                    other => Err(Miss::Fail(format!("expected '{message}': {other:?}"))),
                }
            }
            other => Err(Miss::Skip(format!(
                "a directive that needs more: {:.40}",
                format!("{other:?}")
            ))),
        }
    }

    fn add(&mut self, name: Option<String>, bytes: &[u8]) -> Result<(), Miss> {
        let loaded = self.store.load(bytes);
        let (result, miss) = match loaded {
            Ok(instance) => match self.store.start(&instance) {
                Ok(()) => (Ok(instance), Ok(())),
                Err(error) => (Err(error.to_string()), Err(Miss::Fail(error.to_string()))),
            },
            Err(error @ (WasmError::Unsupported { .. } | WasmError::TooLarge { .. })) => {
                (Err(error.to_string()), Err(Miss::Skip(error.to_string())))
            }
            // The module imports from a refused module.
            Err(error @ WasmError::UnknownImport { .. }) if self.named.values().any(Result::is_err) => {
                (Err(error.to_string()), Err(Miss::Skip(error.to_string())))
            }
            Err(error) => (Err(error.to_string()), Err(Miss::Fail(error.to_string()))),
        };
        if let Some(name) = name {
            self.named.insert(name, result.clone());
        }
        self.current = result;
        miss
    }

    fn instance(&self, name: Option<Id<'_>>) -> Result<Instance, Miss> {
        let found = match name {
            Some(id) => self
                .named
                .get(id.name())
                .ok_or_else(|| format!("no module {}", id.name()))?,
            None => &self.current,
        };
        found.clone().map_err(Miss::Skip)
    }

    fn invoke(&mut self, invoke: &WastInvoke<'_>) -> Result<Vec<Value>, Miss> {
        let instance = self.instance(invoke.module)?;
        let args: Option<Vec<Value>> = invoke.args.iter().map(argument).collect();
        let args = args.ok_or_else(|| Miss::Skip("an argument of another proposal".to_owned()))?;
        let result = self.store.invoke(&instance, invoke.name, &args);
        result.map_err(|error| Miss::Fail(error.to_string()))
    }

    fn execute(&mut self, exec: WastExecute<'_>) -> Result<Vec<Value>, Miss> {
        match exec {
            WastExecute::Invoke(invoke) => self.invoke(&invoke),
            WastExecute::Get { module, global, .. } => match self.instance(module)?.export(global) {
                Some(Extern::Global(item)) => Ok(vec![self.store.global(item).ok_or("no value".to_owned())?]),
                other => Err(Miss::Fail(format!("{global}: {other:?}"))),
            },
            WastExecute::Wat(_) => Err(Miss::Fail("a module gives no values".to_owned())),
        }
    }

    fn expect_trap(&mut self, exec: WastExecute<'_>, message: &str) -> Result<(), Miss> {
        let result = match exec {
            WastExecute::Wat(mut module) => {
                let bytes = module.encode().map_err(|error| error.to_string())?;
                match self.store.load(&bytes) {
                    Ok(instance) => self.store.start(&instance),
                    Err(error @ (WasmError::Unsupported { .. } | WasmError::TooLarge { .. })) => {
                        return Err(Miss::Skip(error.to_string()));
                    }
                    Err(error) => return Err(Miss::Fail(error.to_string())),
                }
            }
            WastExecute::Invoke(invoke) => {
                let instance = self.instance(invoke.module)?;
                let args: Option<Vec<Value>> = invoke.args.iter().map(argument).collect();
                let args = args.ok_or_else(|| Miss::Skip("an argument of another proposal".to_owned()))?;
                self.store.invoke(&instance, invoke.name, &args).map(drop)
            }
            WastExecute::Get { .. } => return Err(Miss::Fail("a global does not trap".to_owned())),
        };
        match result {
            Err(CallError::Trap { what, .. }) if message.starts_with(what) || what.starts_with(message) => Ok(()),
            Err(error) => Err(Miss::Fail(format!("expected '{message}': {error}"))),
            Ok(()) => Err(Miss::Fail(format!("expected '{message}', which did not happen"))),
        }
    }

    fn expect_invalid(&mut self, bytes: &[u8]) -> Result<(), Miss> {
        match self.store.load(bytes) {
            Err(WasmError::Invalid { .. }) => Ok(()),
            result => {
                // The module may be invalid after the position where it was refused.
                let mut validator = wasmparser::Validator::new();
                match (result, validator.validate_all(bytes)) {
                    (Err(_), Err(_)) => Ok(()),
                    (_, Ok(_)) => Err(Miss::Skip(OLD_RULES.to_owned())),
                    (Ok(_), Err(error)) => Err(Miss::Fail(format!("was accepted: {error}"))),
                }
            }
        }
    }
}

fn name_of(module: &QuoteWat<'_>) -> Option<String> {
    match module {
        QuoteWat::Wat(wast::Wat::Module(module)) => module.id.map(|id| id.name().to_owned()),
        _ => None,
    }
}

fn argument(arg: &WastArg<'_>) -> Option<Value> {
    let WastArg::Core(arg) = arg else { return None };
    Some(match arg {
        WastArgCore::I32(value) => Value::I32(*value),
        WastArgCore::I64(value) => Value::I64(*value),
        WastArgCore::F32(value) => Value::F32(value.bits),
        WastArgCore::F64(value) => Value::F64(value.bits),
        WastArgCore::V128(value) => Value::V128(u128::from_le_bytes(value.to_le_bytes())),
        WastArgCore::RefNull(HeapType::Abstract {
            ty: AbstractHeapType::Func | AbstractHeapType::NoFunc,
            ..
        }) => Value::Func(None),
        WastArgCore::RefNull(HeapType::Concrete(_)) => Value::Func(None),
        WastArgCore::RefNull(HeapType::Abstract {
            ty: AbstractHeapType::Exn | AbstractHeapType::NoExn,
            ..
        }) => Value::Exn(None),
        WastArgCore::RefNull(_) => Value::Extern(None),
        WastArgCore::RefExtern(number) => Value::Extern(Some(*number)),
        _ => return None,
    })
}

fn matches(value: Value, expected: &WastRet<'_>) -> bool {
    match expected {
        WastRet::Core(expected) => matches_core(value, expected),
        _ => false,
    }
}

fn matches_core(value: Value, expected: &WastRetCore<'_>) -> bool {
    match (value, expected) {
        (Value::I32(a), WastRetCore::I32(b)) => a == *b,
        (Value::I64(a), WastRetCore::I64(b)) => a == *b,
        (Value::F32(bits), WastRetCore::F32(pattern)) => matches_f32(bits, pattern),
        (Value::F64(bits), WastRetCore::F64(pattern)) => matches_f64(bits, pattern),
        (Value::V128(value), WastRetCore::V128(pattern)) => matches_v128(value, pattern),
        (Value::Func(None) | Value::Extern(None) | Value::Exn(None), WastRetCore::RefNull(_)) => true,
        (Value::Func(Some(_)), WastRetCore::RefFunc(_)) => true,
        (Value::Extern(Some(a)), WastRetCore::RefExtern(b)) => b.is_none_or(|b| a == b),
        (value, WastRetCore::Either(list)) => list.iter().any(|expected| matches_core(value, expected)),
        _ => false,
    }
}

fn matches_f32(bits: u32, pattern: &NanPattern<F32>) -> bool {
    match pattern {
        NanPattern::CanonicalNan => bits & 0x7fff_ffff == 0x7fc0_0000,
        NanPattern::ArithmeticNan => bits & 0x7fc0_0000 == 0x7fc0_0000,
        NanPattern::Value(expected) => bits == expected.bits,
    }
}

fn matches_f64(bits: u64, pattern: &NanPattern<F64>) -> bool {
    match pattern {
        NanPattern::CanonicalNan => bits & (u64::MAX >> 1) == 0x7ff8_0000_0000_0000,
        NanPattern::ArithmeticNan => bits & 0x7ff8_0000_0000_0000 == 0x7ff8_0000_0000_0000,
        NanPattern::Value(expected) => bits == expected.bits,
    }
}

fn matches_v128(value: u128, pattern: &V128Pattern) -> bool {
    let lane = |number: usize, bits: u32| value >> (number as u32 * bits);
    match pattern {
        V128Pattern::I8x16(lanes) => (0..).zip(lanes).all(|(at, expected)| lane(at, 8) as i8 == *expected),
        V128Pattern::I16x8(lanes) => (0..).zip(lanes).all(|(at, expected)| lane(at, 16) as i16 == *expected),
        V128Pattern::I32x4(lanes) => (0..).zip(lanes).all(|(at, expected)| lane(at, 32) as i32 == *expected),
        V128Pattern::I64x2(lanes) => (0..).zip(lanes).all(|(at, expected)| lane(at, 64) as i64 == *expected),
        V128Pattern::F32x4(lanes) => (0..)
            .zip(lanes)
            .all(|(at, lane_of)| matches_f32(lane(at, 32) as u32, lane_of)),
        V128Pattern::F64x2(lanes) => (0..)
            .zip(lanes)
            .all(|(at, lane_of)| matches_f64(lane(at, 64) as u64, lane_of)),
    }
}
