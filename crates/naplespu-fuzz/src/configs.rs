//! The compilers under test.

use crate::programs::Strategy;
use cranelift_naplespu::Isa;
use npu_mc::errata::Erratum;
use std::sync::Arc;

/// A compiler with the name of its settings.
pub type Config = (String, Arc<Isa>);

/// Returns the settings of programs: both optimization levels with both register allocators, with
/// strict floats and without.
fn programs() -> Vec<String> {
    let all = (0..8).map(|bits| {
        let level = ["none", "speed"][bits >> 1 & 1];
        let algorithm = ["backtracking", "single_pass"][bits & 1];
        let strict = bits < 4;
        format!("opt_level={level} regalloc_algorithm={algorithm} strict_float={strict}")
    });
    all.collect()
}

/// Returns the settings for all of CLIF: each optimization level with each register allocator, and
/// both values of each setting that changes code.
///
/// The first compiler refuses the fewest functions; the generator uses it to avoid refusals.
fn anything() -> Vec<String> {
    // A machine without errata.
    let errata = Erratum::ALL.iter().filter(|erratum| erratum.info().is_setting);
    let disabled = errata.map(|erratum| format!(" erratum_{}=false", erratum.name()));
    let mended: String = disabled.collect();
    let speed = "opt_level=speed enable_pinned_reg=true regalloc_algorithm";
    let (none, frames) = ("opt_level=none regalloc_algorithm", "preserve_frame_pointers=true");
    let probes = "enable_probestack=true probestack_strategy=inline";
    let (single, strict) = ("atomics=single_thread strict_float=false", "strict_float=true");
    vec![
        format!("{speed}=backtracking {probes} {single}"),
        format!("{speed}=single_pass {frames} {strict} atomics=single_thread"),
        format!("{none}=single_pass enable_pinned_reg=true {probes} {single} has_fpu=false"),
        format!("{none}=backtracking {strict}"),
        format!("{speed}=backtracking {single}{mended}"),
    ]
}

impl Strategy {
    /// Returns the compilers of a strategy. They verify CLIF and check register allocation.
    ///
    /// # Errors
    ///
    /// The message of an unknown flag or setting.
    pub fn configs(self) -> Result<Vec<Config>, String> {
        let all = if self == Self::Anything { anything() } else { programs() };
        let config = |settings: String| {
            let mut config = naplespu_reader::config::Config::new();
            for setting in settings.split_whitespace().chain(["regalloc_checker=true"]) {
                config.set(setting).map_err(|error| error.to_string())?;
            }
            let isa = config.isa().map_err(|error| error.to_string())?;
            Ok((settings, isa))
        };
        all.into_iter().map(config).collect()
    }
}
