//! The runtime: routines for what the machine has no instruction for, written in CLIF (`runtime/`) and compiled by
//! this back end when a program needs them.
//!
//! They use the convention that CLIF spells `preserve_all`, or `probestack` where there is a result: only the first few
//! caller-saved registers change, so that a call costs its caller little.

use crate::abi::sig::SigInfo;
use cranelift_codegen::ir::{AbiParam, Function, Signature, types};
use cranelift_codegen::isa::CallConv;
use std::sync::OnceLock;

/// The sources, by file.
const SOURCES: &[(&str, &str)] = &[("runtime/div.clif", include_str!("../runtime/div.clif"))];

/// A routine that compiled code calls on its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Routine {
    /// Quotient of unsigned 32-bit numbers; the divisor is not zero.
    Udiv32,
    /// Remainder of unsigned 32-bit numbers; the divisor is not zero.
    Urem32,
    /// Quotient of signed 32-bit numbers, rounded towards zero; the divisor is not zero and the quotient fits.
    Sdiv32,
    /// Remainder of signed 32-bit numbers with the sign of the dividend; the divisor is not zero.
    Srem32,
}

impl Routine {
    /// Its name, without the `%` of CLIF.
    pub fn name(self) -> &'static str {
        match self {
            Self::Udiv32 => "__npu_udiv32",
            Self::Urem32 => "__npu_urem32",
            Self::Sdiv32 => "__npu_sdiv32",
            Self::Srem32 => "__npu_srem32",
        }
    }

    /// Where its two arguments and its result are.
    pub fn signature(self) -> &'static SigInfo {
        static BINARY: OnceLock<SigInfo> = OnceLock::new();
        BINARY.get_or_init(|| {
            let mut sig = Signature::new(CallConv::Probestack);
            sig.params.extend([AbiParam::new(types::I32); 2]);
            sig.returns.push(AbiParam::new(types::I32));
            SigInfo::new(&sig, self.name()).unwrap_or_else(|_| SigInfo::empty())
        })
    }
}

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
    Ok(all)
}

/// Whether a name is one of the runtime's.
pub fn is_reserved(name: &str) -> bool {
    name.starts_with("__npu_")
}
