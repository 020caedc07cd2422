//! Inlining of calls between the functions of a CLIF text, before each of them is compiled.
//!
//! A compilation sees one function, so its user calls [`inline_text`] with all functions first.

use crate::isa::Isa;
use crate::passes::Pass;
pub use clif_opt::Error;
use clif_opt::inline::{Name, Unit};
use cranelift_codegen::ir::{Function, UserFuncName};

/// Replaces calls between functions by the bodies of their callees where that is worth it, if the
/// pass [`Pass::Inline`] runs for the target. All functions stay, in their order.
///
/// A frame of an inlined callee does not appear in a back trace; its instructions keep their source
/// locations. A function that is redefined later stays inlined in its callers.
///
/// # Errors
///
/// [`Error::Cranelift`] if Cranelift's inliner fails.
pub fn inline_text(isa: &Isa, functions: &mut [Function]) -> Result<(), Error> {
    if !isa.runs(Pass::Inline) {
        return Ok(());
    }
    let unit = Unit::new(functions.iter().map(|function| (name_of(function), function)), isa);
    for function in functions {
        if let Some(inlined) = unit.inline(&name_of(function), function, isa)? {
            *function = inlined;
        }
    }
    Ok(())
}

/// Returns the name of a function by which calls of its text refer to it.
fn name_of(function: &Function) -> Name {
    match &function.name {
        UserFuncName::Testcase(name) => Name::Text(name.raw().to_vec()),
        UserFuncName::User(name) => Name::User(name.clone()),
    }
}
