//! Counts the effects of the loop passes on programs.

use crate::Case;
use cranelift_codegen::Context;
use cranelift_naplespu::Isa;
use cranelift_naplespu::passes::Stage;
use cranelift_naplespu::remarks::LoopOutcome;
use std::collections::BTreeMap;

/// Numbers of programs.
#[derive(Clone, Debug, Default)]
pub struct Shares {
    /// All programs.
    pub programs: usize,
    /// Programs with a vectorized loop.
    pub vectorised: usize,
    /// With checks of alignment and overlap before it.
    pub checked: usize,
    /// With unaligned loads in it.
    pub unaligned: usize,
    /// With reductions in it.
    pub reductions: usize,
    /// Programs with a versioned loop.
    pub versioned: usize,
    /// Programs with an unrolled loop.
    pub unrolled: usize,
    /// Numbers of loops by the reason why they are not vectorized.
    pub reasons: BTreeMap<String, usize>,
}

impl Shares {
    /// Compiles the first function of a case and counts the effects.
    ///
    /// # Errors
    ///
    /// Returns an error if the case does not compile.
    pub fn add(&mut self, case: &Case, isa: &Isa) -> Result<(), String> {
        let func = case.functions.first().ok_or("no function")?;
        let mut ctx = Context::for_function(func.clone());
        let request = [Stage::Bits, Stage::Versioning, Stage::Selects, Stage::Unroll];
        let code = isa
            .compile_with_stages(&mut ctx, &mut Default::default(), request.into_iter().collect())
            .map_err(|error| error.to_string())?;
        let text = |stage: Stage| code.stages.iter().find(|(name, _)| *name == stage);
        let differ = |a, b| text(a).map(|stage| &stage.1) != text(b).map(|stage| &stage.1);
        let mut loops = Vec::new();
        for remark in &code.loops {
            match &remark.outcome {
                LoopOutcome::Vectorised(how) => loops.push(how),
                LoopOutcome::Scalar(reason) => {
                    let text = reason.to_string();
                    let words = text.split_whitespace().filter(|word| !word.contains(char::is_numeric));
                    *self.reasons.entry(words.collect::<Vec<_>>().join(" ")).or_default() += 1;
                }
                _ => {}
            }
        }
        self.programs += 1;
        self.vectorised += usize::from(!loops.is_empty());
        self.checked += usize::from(loops.iter().any(|how| how.alignment_check && how.overlap_checks > 0));
        self.unaligned += usize::from(loops.iter().any(|how| how.unaligned_loads > 0));
        self.reductions += usize::from(loops.iter().any(|how| how.reductions > 0));
        self.versioned += usize::from(differ(Stage::Bits, Stage::Versioning));
        self.unrolled += usize::from(differ(Stage::Selects, Stage::Unroll));
        Ok(())
    }
}
