//! Checks that nothing panics: each valid function is compiled or refused.

use super::{Config, anything};
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
    let single_thread = ("atomics", "single_thread");
    let inline = [("enable_probestack", "true"), ("probestack_strategy", "inline")];
    let mut all = vec![
        super::config(
            &[
                ("opt_level", "speed"),
                ("regalloc_algorithm", "backtracking"),
                ("enable_pinned_reg", "true"),
                inline[0],
                inline[1],
            ],
            &[("strict_float", "false"), single_thread],
        )?,
        super::config(
            &[
                ("opt_level", "speed"),
                ("regalloc_algorithm", "single_pass"),
                ("enable_pinned_reg", "true"),
                ("preserve_frame_pointers", "true"),
            ],
            &[("strict_float", "true"), single_thread],
        )?,
        super::config(
            &[
                ("opt_level", "none"),
                ("regalloc_algorithm", "single_pass"),
                ("enable_pinned_reg", "true"),
                inline[0],
                inline[1],
            ],
            &[("strict_float", "false"), ("has_fpu", "false"), single_thread],
        )?,
        super::config(
            &[("opt_level", "none"), ("regalloc_algorithm", "backtracking")],
            &[("strict_float", "true")],
        )?,
    ];
    // A machine without errata.
    let mended: Vec<(String, &str)> = Erratum::ALL
        .iter()
        .filter(|erratum| erratum.info().is_setting)
        .map(|erratum| (format!("erratum_{}", erratum.name()), "false"))
        .collect();
    let mut target: Vec<(&str, &str)> = mended.iter().map(|(name, value)| (name.as_str(), *value)).collect();
    target.extend([("strict_float", "false"), single_thread]);
    all.push(super::config(
        &[
            ("opt_level", "speed"),
            ("regalloc_algorithm", "backtracking"),
            ("enable_pinned_reg", "true"),
        ],
        &target,
    )?);
    Ok(all)
}

/// The largest number of functions to try while reducing a failing one.
const TRIES: usize = 2000;

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

/// A panic or a wrong error.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Fault {
    config: String,
    message: String,
}

impl Fault {
    /// Returns whether two faults have the same message except for numbers and names.
    fn same_kind(&self, other: &Self) -> bool {
        let plain = |text: &str| -> String {
            let kept = text.lines().next().unwrap_or("").chars();
            kept.filter(|c| !c.is_ascii_digit()).take(60).collect()
        };
        self.config == other.config && plain(&self.message) == plain(&other.message)
    }
}

fn check(func: &Function, configs: &[Config]) -> Result<Verdict, Fault> {
    let mut verdict = Verdict::Compiled;
    for (config, isa) in configs {
        let fault = |message: String| Fault {
            config: config.clone(),
            message,
        };
        let outcome = caught(|| {
            let mut ctx = Context::for_function(func.clone());
            isa.compile(&mut ctx, &mut ControlPlane::default()).map(|_| ())
        });
        match outcome {
            Ok(Ok(())) => {}
            Ok(Err(CompileError::Unsupported(refusals))) if !refusals.is_empty() => verdict = Verdict::Refused,
            Ok(Err(error)) => return Err(fault(error.to_string())),
            Err(panic) => return Err(fault(format!("panic: {panic}"))),
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
    // The generator reads zeros after the end of the bytes, so an error is not a failure of the
    // compiler.
    caught(|| anything::generate(&mut arbitrary::Unstructured::new(data), isa).unwrap_or_default())
}

/// Generates a function from bytes and compiles it under all settings.
///
/// # Errors
///
/// Returns a report of a fault, with the reduced function.
pub fn run(data: &[u8], configs: &[Config]) -> Result<Verdict, String> {
    let Some((_, isa)) = configs.first() else {
        return Ok(Verdict::Nothing);
    };
    let func = match function(data, isa) {
        Ok(None) => return Ok(Verdict::Nothing),
        Ok(Some(func)) => func,
        Err(panic) => return Err(format!("the generator panicked: {panic}")),
    };
    let fault = match check(&func, configs) {
        Ok(verdict) => return Ok(verdict),
        Err(fault) => fault,
    };
    let small = naplespu_reduce::function(func, TRIES, |candidate| {
        check(candidate, configs).is_err_and(|other| other.same_kind(&fault))
    });
    let fault = check(&small, configs).err().unwrap_or(fault);
    Err(format!("{}: {}\n\n{}", fault.config, fault.message, small.display()))
}
