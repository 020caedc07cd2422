//! Generates modules: from a seed to bytes, from bytes to a module.

use arbitrary::Unstructured;
use wasm_smith::{Config, Module};

/// A random number generator (Steele, Lea and Flood's SplitMix64).
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    /// Returns a number that may serve as an address, a length, or a value.
    pub fn number(&mut self) -> u64 {
        let bits = self.next();
        match bits % 4 {
            0 => bits >> 60,
            1 => bits >> 48,
            2 => !(bits >> 56),
            _ => bits,
        }
    }
}

/// The number of steps that a call may take; loop iterations and calls count.
pub const FUEL: u32 = 500;

/// The export name of the global with the remaining steps.
pub const FUEL_LEFT: &str = "steps that are left";

/// Returns the bytes for a module from a seed.
pub fn bytes(number: u64) -> Vec<u8> {
    let mut random = Random::new(number);
    let words = 128 + random.next() % 4000;
    (0..words).flat_map(|_| random.next().to_le_bytes()).collect()
}

/// Returns the configuration: translated features only, and bounds that let a module run quickly.
/// There are no imports: they would have no effect on either side.
fn config(traps: bool) -> Config {
    Config {
        bulk_memory_enabled: true,
        canonicalize_nans: true,
        compact_imports_enabled: false,
        custom_page_sizes_enabled: false,
        // Modules that cannot trap execute more code.
        disallow_traps: !traps,
        exceptions_enabled: true,
        export_everything: true,
        extended_const_enabled: true,
        gc_enabled: false,
        max_data_segments: 8,
        max_funcs: 12,
        max_imports: 0,
        max_instructions: 500,
        max_memories: 2,
        max_memory32_bytes: 4 << 16,
        max_table_elements: 64,
        max_tables: 2,
        memory64_enabled: false,
        memory_max_size_required: true,
        min_funcs: 3,
        min_memories: 1,
        multi_value_enabled: true,
        reference_types_enabled: true,
        // Results of relaxed instructions depend on the engine.
        relaxed_simd_enabled: false,
        saturating_float_to_int_enabled: true,
        shared_everything_threads_enabled: false,
        sign_extension_ops_enabled: true,
        simd_enabled: true,
        table_max_size_required: true,
        tail_call_enabled: true,
        threads_enabled: false,
        wide_arithmetic_enabled: false,
        ..Config::default()
    }
}

/// Returns a terminating module made from these bytes, or `None` if they are too few.
pub fn module(bytes: &[u8]) -> Option<Vec<u8>> {
    let (first, bytes) = bytes.split_first()?;
    let mut module = Module::new(config(first % 2 == 0), &mut Unstructured::new(bytes)).ok()?;
    let fuel = module
        .ensure_termination(FUEL)
        .expect("all bodies are the generator's own");
    Some(finished(&module.to_bytes(), fuel))
}

/// Instructions that the generator's NaN canonicalization omits, with the types of their result and
/// its lanes.
const LEFT: [(&str, &str, &str); 4] = [
    ("f32.demote_f64", "f32", "f32"),
    ("f64.promote_f32", "f64", "f64"),
    ("f32x4.demote_f64x2_zero", "v128", "f32x4"),
    ("f64x2.promote_low_f32x4", "v128", "f64x2"),
];

/// Canonicalizes NaNs after the instructions of [`LEFT`], by functions at the end of the module,
/// and exports the remaining steps.
fn finished(module: &[u8], fuel: u32) -> Vec<u8> {
    let printed = wasmprinter::print_bytes(module).expect("a module can be printed");
    let functions = printed.lines().filter(|line| line.starts_with("  (func (;")).count();
    let mut text = String::new();
    for line in printed.trim_end().strip_suffix(')').expect("a module ends").lines() {
        text += line;
        text.push('\n');
        if let Some(number) = LEFT.iter().position(|(name, ..)| line.trim() == *name) {
            text += &format!("call {}\n", functions + number);
        }
    }
    for (_, ty, lanes) in LEFT {
        let body = if ty == "v128" {
            let nans = if lanes == "f32x4" { "nan nan nan nan" } else { "nan nan" };
            format!(
                "(v128.bitselect (local.get 0) (v128.const {lanes} {nans}) ({lanes}.eq (local.get 0) (local.get 0)))"
            )
        } else {
            format!("(select (local.get 0) ({ty}.const nan) ({ty}.eq (local.get 0) (local.get 0)))")
        };
        text += &format!("(func (param {ty}) (result {ty}) {body})\n");
    }
    text += &format!("(export \"{FUEL_LEFT}\" (global {fuel})))");
    wat::parse_str(&text).expect("text that was printed can be read")
}

/// Shrinks a failing module: removes bytes from the end, then pieces from the middle, while it
/// still fails. Returns the bytes and the failure.
pub fn smaller(bytes: &[u8], fault: impl Fn(&[u8]) -> Option<String>) -> Option<(Vec<u8>, String)> {
    let wrong = |bytes: &[u8]| {
        let module = module(bytes)?;
        let found = fault(&module)?;
        Some((module, found))
    };
    let mut bytes = bytes.to_vec();
    let mut best = None;
    let mut piece = bytes.len() / 2;
    while piece > bytes.len() / 256 {
        let mut at = bytes.len();
        while at > 0 {
            let first = at.saturating_sub(piece);
            let mut fewer = bytes.clone();
            fewer.drain(first..at);
            let smaller = |(module, _): &(Vec<u8>, String)| {
                best.as_ref()
                    .is_none_or(|(old, _): &(Vec<u8>, String)| module.len() < old.len())
            };
            if let Some(found) = wrong(&fewer).filter(smaller) {
                bytes = fewer;
                best = Some(found);
            }
            at = first;
        }
        piece /= 2;
    }
    best
}
