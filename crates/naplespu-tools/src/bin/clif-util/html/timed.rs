//! Executes the run lines of a file with the timing model, for the cost of each instruction.

use super::sheet::Sheet;
use crate::{Stop, fault, input, run_lines};
use cranelift_naplespu::Isa;
use naplespu_filetests::file::call_simulated;
use naplespu_filetests::outcome::LineOutcome;
use naplespu_jit::{Program, function_name};
use naplespu_reader::ClifFile;
use naplespu_reader::config::Config;
use npu_mc::machine::INSTRUCTION_SIZE;
use npu_sim::TimingConfig;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The maximum number of instructions of a run line; the model simulates some millions a second.
pub const MAX_STEPS: u64 = 20_000_000;

/// The results of the run lines.
#[derive(Default)]
pub struct Run {
    /// Each line with its verdict.
    pub lines: Vec<LineOutcome>,
    /// Cycles in the functions of the file.
    pub cycles: u64,
    /// Cycles in each routine of the runtime, most first.
    pub routines: Vec<(String, u64)>,
}

/// Executes the run lines and stores the cost of each instruction in the sheets, which are in the
/// order of the file.
pub fn run(file: &ClifFile, config: &Config, isa: &Arc<Isa>, sheets: &mut [Sheet]) -> Result<Run, Stop> {
    let lines = run_lines::collect(file)?;
    if !(0..file.functions.len()).any(|function| lines.cover(function)) {
        return Ok(Run::default());
    }
    let mut program = Program::new(isa.clone());
    program.set_step_limit(MAX_STEPS);
    let module = program.module().map_err(fault)?;
    module.profile_cycles(TimingConfig::default());
    let mut faults = Vec::new();
    for (case, sheet) in file.functions.iter().zip(sheets.iter()) {
        if let Err(error) = program.define_compiled(&sheet.func, Ok(sheet.code.clone())) {
            let message = "the function cannot be loaded";
            faults.push(input::at_function(file, case, message, error.to_string()));
        }
    }
    input::report(file, &faults)?;
    let (lines, _) = run_lines::execute(lines, file, &config.to_string(), |case, values| {
        call_simulated(&mut program, case, values)
    });
    let addresses: Vec<Option<u32>> = file
        .functions
        .iter()
        .map(|case| program.address(&function_name(&case.func.name)))
        .collect();
    let module = program.module().map_err(fault)?;
    let Some(costs) = module.inst_cycles() else {
        return Err(Stop::Fault("internal: the run has no cycles".to_owned()));
    };
    let (mut rest, mut cycles) = (costs.clone(), 0);
    for (sheet, address) in sheets.iter_mut().zip(addresses) {
        let Some(start) = address else { continue };
        for (word, at) in sheet.words.iter_mut().zip((start..).step_by(INSTRUCTION_SIZE as usize)) {
            word.cycles = rest.remove(&at);
            cycles += word.cycles.as_ref().map_or(0, |cost| cost.cycles);
        }
    }
    let map = module.code_map();
    let mut routines: BTreeMap<&str, u64> = BTreeMap::new();
    for (at, cost) in rest {
        *routines.entry(map.name(at).map_or("??", |(name, _)| name)).or_default() += cost.cycles;
    }
    let mut routines: Vec<(String, u64)> = routines.into_iter().map(|(name, sum)| (name.to_owned(), sum)).collect();
    routines.sort_by_key(|(_, cycles)| Reverse(*cycles));
    Ok(Run {
        lines,
        cycles,
        routines,
    })
}
