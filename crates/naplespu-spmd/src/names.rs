//! Names of functions of a CLIF text.

use cranelift_codegen::ir::{ExternalName, Function};

/// Returns the name of a function of a CLIF text.
pub fn name(function: &Function) -> Vec<u8> {
    function.name.to_string().trim_start_matches('%').as_bytes().to_vec()
}

/// Returns the name of an external function of a CLIF text.
pub fn external_name(name: &ExternalName) -> Option<Vec<u8>> {
    match name {
        ExternalName::TestCase(name) => Some(name.raw().to_vec()),
        _ => None,
    }
}
