//! Refusals that do not depend on opcodes and types.

use cranelift_codegen::Context;
use cranelift_codegen::control::ControlPlane;
use cranelift_naplespu::{CompileError, Isa};
use std::fmt::Write;

/// Constructs that are refused: two lines of comments with its name and the reason, and a function.
const LIMITS: &str = include_str!("limits.clif");

/// Returns the list of these constructs with their messages.
pub fn limits(isa: &Isa) -> String {
    let mut text = String::new();
    for limit in LIMITS.split("\n\n") {
        let mut comments = limit.lines().map(|line| line.trim_start_matches("; "));
        let (name, why) = (comments.next().unwrap(), comments.next().unwrap());
        let functions = cranelift_reader::parse_functions(limit);
        let functions = functions.unwrap_or_else(|error| panic!("{error}\n{limit}"));
        let mut ctx = Context::for_function(functions[0].clone());
        let message = match isa.compile(&mut ctx, &mut ControlPlane::default()) {
            Ok(_) => panic!("it is compiled:\n{limit}"),
            Err(CompileError::Unsupported(refusals)) => {
                let refusal = &refusals[0];
                let help = refusal.help.as_ref().map_or(String::new(), |help| format!("; {help}"));
                format!("{} is not supported on naplespu{help}", refusal.what)
            }
            Err(error @ CompileError::TooLarge(_)) => error.to_string(),
            Err(other) => panic!("{name}: {other}"),
        };
        let _ = writeln!(text, "- {name}, because {why}: `{}`", message.replace('`', "'"));
    }
    text
}
