//! Checks that nothing panics: each valid function is compiled or refused.

use super::{Case, Config, Failure, Floats, Kind, anything};
use crate::random::Dice;
use cranelift_codegen::Context;
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::ir::Function;
use cranelift_naplespu::CompileError;
use cranelift_naplespu::Isa;
use naplespu_reader::panics::{Panic, caught};
use npu_mc::errata::Erratum;

/// Returns each optimization level with each register allocator, and both values of each setting
/// that changes code.
///
/// The first configuration refuses the fewest functions; the generator uses it to avoid refusals.
///
/// # Errors
///
/// The message of an unknown flag or setting.
pub fn configs() -> Result<Vec<Config>, String> {
    // A machine without errata.
    let errata = Erratum::ALL.iter().filter(|erratum| erratum.info().is_setting);
    let mended: String = errata
        .map(|erratum| format!(" erratum_{}=false", erratum.name()))
        .collect();
    let (speed, none) = (
        "opt_level=speed regalloc_algorithm",
        "opt_level=none regalloc_algorithm",
    );
    let (pinned, frames) = ("enable_pinned_reg=true", "preserve_frame_pointers=true");
    let probes = "enable_probestack=true probestack_strategy=inline";
    let (single, strict) = ("atomics=single_thread strict_float=false", "strict_float=true");
    let all = [
        format!("{speed}=backtracking {pinned} {probes} {single}"),
        format!("{speed}=single_pass {pinned} {frames} {strict} atomics=single_thread"),
        format!("{none}=single_pass {pinned} {probes} {single} has_fpu=false"),
        format!("{none}=backtracking {strict}"),
        format!("{speed}=backtracking {pinned} {single}{mended}"),
    ];
    all.iter().map(|settings| super::config(settings)).collect()
}

/// The result for a valid function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// All settings compile it.
    Compiled,
    /// At least one setting refuses it.
    Refused,
    /// The bytes did not produce a valid function.
    Nothing,
}

/// Compiles a function. A panic or a wrong error is a failure.
fn check(func: &Function, configs: &[Config]) -> Result<Verdict, Failure> {
    let mut verdict = Verdict::Compiled;
    for (config, isa) in configs {
        let failure = |message: String| Failure::new(Kind::Panic, config, message);
        let outcome = caught(|| {
            let mut ctx = Context::for_function(func.clone());
            isa.compile(&mut ctx, &mut ControlPlane::default()).map(|_| ())
        });
        match outcome {
            Ok(Ok(())) => {}
            Ok(Err(CompileError::Unsupported(refusals))) if !refusals.is_empty() => verdict = Verdict::Refused,
            Ok(Err(error)) => return Err(failure(error.to_string())),
            Err(panic) => return Err(failure(format!("panic: {panic}"))),
        }
    }
    Ok(verdict)
}

/// Generates a function from bytes, as [`run`] does. Returns `None` if the result is not valid.
///
/// # Errors
///
/// Returns a panic of the generator.
pub fn function(data: &[u8], isa: &Isa) -> Result<Option<Function>, Panic> {
    caught(|| anything::generate(Dice(&mut arbitrary::Unstructured::new(data)), isa))
}

/// Generates a function from bytes and compiles it under all settings.
///
/// # Errors
///
/// Returns a report of a failure, with the reduced function.
pub fn run(data: &[u8], configs: &[Config]) -> Result<Verdict, String> {
    let Some((_, isa)) = configs.first() else {
        return Ok(Verdict::Nothing);
    };
    let func = match function(data, isa) {
        Ok(None) => return Ok(Verdict::Nothing),
        Ok(Some(func)) => func,
        Err(panic) => return Err(format!("the generator panicked: {panic}")),
    };
    let case = Case {
        functions: vec![func],
        calls: Vec::new(),
        floats: Floats::None,
    };
    super::check_or_shrink(case, |case| check(&case.functions[0], configs))
}
