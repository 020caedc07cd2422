//! What the library and the build script share: the routines as text.

use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::{Function, InstBuilder, UserFuncName, types};

/// Name and text of each source.
macro_rules! sources {
    ($($name:literal),* $(,)?) => {
        &[$((
            concat!("runtime/", $name, ".clif"),
            include_str!(concat!("../", $name, ".clif")),
        ),)*]
    };
}

/// The sources, by file.
pub const SOURCES: &[(&str, &str)] = sources![
    "div",
    "int64_unsigned",
    "int64_signed",
    "int128",
    "int128_div",
    "f32",
    "f32_fma",
    "f32_sqrt",
    "f32_round",
    "f64_add",
    "f64_mul",
    "f64_div",
    "f64_fma",
    "f64_sqrt",
    "f64_round",
    "f64_compare",
    "f128_parts",
    "f128_add",
    "f128_mul",
    "f128_div",
    "f128_fma",
    "f128_sqrt",
    "f128_round",
    "f128_compare",
    "convert_from_int",
    "convert_from_int128",
    "convert_to_int",
    "convert_to_int128",
    "convert_width",
    "convert_f128",
    "memory",
    "lanes",
    "lane_memory",
    "unwind",
    "atomics",
    "atomics_machine",
    "tls",
];

/// Flags that change no code.
pub const CHECKS: &[&str] = &["enable_verifier", "regalloc_checker", "regalloc_verbose_logs"];

/// The functions in a part of the source `file`.
///
/// # Errors
///
/// The reader's message if it is not CLIF, which a test of this crate excludes.
pub fn parse(file: &str, text: &str) -> Result<Vec<Function>, String> {
    cranelift_reader::parse_functions(text).map_err(|error| format!("{file}:{error}"))
}

/// The function under another name and with the sign of its last argument turned.
pub fn difference(sum: &Function, name: &str) -> Option<Function> {
    let mut func = sum.clone();
    func.name = UserFuncName::testcase(name);
    let entry = func.layout.entry_block()?;
    let old = *func.dfg.block_params(entry).last()?;
    let given = func.dfg.replace_block_param(old, types::I32);
    let mut cursor = FuncCursor::new(&mut func).at_first_insertion_point(entry);
    let sign = cursor.ins().iconst(types::I32, i64::from(1u32 << 31));
    let turned = cursor.ins().bxor(given, sign);
    func.dfg.change_to_alias(old, turned);
    Some(func)
}
