//! Inlining of calls between the functions of a file or module, before each of them is compiled.
//!
//! A compilation sees one function, so whoever has several calls [`inline_calls`] first.

use crate::isa::Isa;
use crate::passes::Pass;
pub use clif_opt::Error;
pub use clif_opt::inline::Name;
use clif_opt::inline::Unit;
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
pub fn inline_calls(isa: &Isa, functions: &mut [(Name, &mut Function)]) -> Result<(), Error> {
    if !isa.runs(Pass::Inline) || functions.len() < 2 && !calls(functions) {
        return Ok(());
    }
    let unit = Unit::new(
        functions.iter().map(|(name, function)| (name.clone(), &**function)),
        isa,
    );
    for (name, function) in functions {
        if let Some(inlined) = unit.inline(name, function, isa)? {
            **function = inlined;
        }
    }
    Ok(())
}

/// Replaces calls between the functions of a CLIF text, like [`inline_calls`].
///
/// # Errors
///
/// See [`inline_calls`].
pub fn inline_text(isa: &Isa, functions: &mut [Function]) -> Result<(), Error> {
    let names: Vec<Name> = functions.iter().map(name_of).collect();
    let mut named: Vec<(Name, &mut Function)> = names.into_iter().zip(functions).collect();
    inline_calls(isa, &mut named)
}

/// Returns the name of a function by which calls of its text refer to it.
fn name_of(function: &Function) -> Name {
    match &function.name {
        UserFuncName::Testcase(name) => Name::Text(name.raw().to_vec()),
        UserFuncName::User(name) => Name::User(name.clone()),
    }
}

/// Returns whether a function calls another one.
fn calls(functions: &[(Name, &mut Function)]) -> bool {
    functions.iter().any(|(_, function)| !function.dfg.ext_funcs.is_empty())
}
