//! The runtime: routines for what the NaplesPU has no instruction for, written in CLIF.
//!
//! # Contract
//!
//! Compiled code calls the routines by the names that [`cranelift_naplespu::runtime`] has. [`function`] gives one of them, and
//! [`functions`] all; whoever links a program compiles those that it refers to, with
//! [`Isa::for_runtime`](cranelift_naplespu::Isa::for_runtime), together with those that they refer to in turn.
//!
//! # Invariants
//!
//! Every routine of [`cranelift_naplespu::runtime::Routine`] and [`cranelift_naplespu::runtime::LaneRoutine`] is here, with the signature given there.

#![deny(missing_docs)]

use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::{Function, InstBuilder, UserFuncName, types};
use cranelift_naplespu::runtime::is_reserved;
use std::sync::OnceLock;

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
const SOURCES: &[(&str, &str)] = sources![
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
    "convert_from_int",
    "convert_from_int128",
    "convert_to_int",
    "convert_to_int128",
    "convert_width",
    "memory",
    "lanes",
    "lane_memory",
];

/// Names that Cranelift's library calls have, and that the runtime offers unless a program has its own.
const LIBRARY: &[&str] = &["memcpy", "memmove", "memset", "memcmp"];

/// Whether the name is one of those that library calls have, which programs may use as well.
pub fn is_library(name: &str) -> bool {
    LIBRARY.contains(&name)
}

/// Routines that are made from another one by turning the sign of the last argument, whose sign is in its last word.
const DIFFERENCES: &[(&str, &str)] = &[("__npu_f32_sub", "__npu_f32_add"), ("__npu_f64_sub", "__npu_f64_add")];

/// All functions of the runtime.
///
/// # Errors
///
/// The reader's message if a source is not CLIF, which a test of this crate excludes.
pub fn functions() -> Result<Vec<Function>, String> {
    let mut all = Vec::new();
    for (file, text) in SOURCES {
        let functions = cranelift_reader::parse_functions(text).map_err(|error| format!("{file}:{error}"))?;
        all.extend(functions);
    }
    for (name, sum) in DIFFERENCES {
        let sum = all.iter().find(|f| f.name == UserFuncName::testcase(sum));
        let difference = sum.and_then(|sum| difference(sum, name));
        all.push(difference.ok_or_else(|| format!("there is nothing to make {name} from"))?);
    }
    Ok(all)
}

/// The function under another name and with the sign of its last argument turned.
fn difference(sum: &Function, name: &str) -> Option<Function> {
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

/// The function of the runtime with this name, without `%`. The sources are parsed once a process.
///
/// # Errors
///
/// See [`functions`].
pub fn function(name: &str) -> Result<Option<&'static Function>, String> {
    static FUNCTIONS: OnceLock<Result<Vec<Function>, String>> = OnceLock::new();
    if !is_reserved(name) && !is_library(name) {
        return Ok(None);
    }
    let functions = FUNCTIONS.get_or_init(functions).as_ref().map_err(Clone::clone)?;
    let named = |function: &&Function| match &function.name {
        UserFuncName::Testcase(known) => known.raw() == name.as_bytes(),
        UserFuncName::User(_) => false,
    };
    Ok(functions.iter().find(named))
}
