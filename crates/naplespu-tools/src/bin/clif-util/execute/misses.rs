//! The output of `--misses`: which lines several cores requested, from where.

use super::places::Places;
use crate::{Outcome, Stop, output};
use npu_sim::{Misses, Report};
use std::path::PathBuf;

/// The options for misses.
#[derive(clap::Args)]
pub struct MissArgs {
    /// Print the misses of several cores by home, core, hops, sharing, variable and line: of
    /// variables and lines, the N with the most cycles; 0 is all
    #[arg(long, value_name = "N", num_args = 0..=1, require_equals = true, default_missing_value = "10", requires = "timing")]
    misses: Option<usize>,

    /// Write all misses of several cores to this file as JSON; with several calls, those of the
    /// last one
    #[arg(long, value_name = "FILE", requires = "timing")]
    misses_json: Option<PathBuf>,

    /// Draw the mesh of several cores to this file as SVG: the requests that each tile serves, the
    /// misses of the cores, and the use of the links
    #[arg(long, value_name = "FILE", requires = "timing")]
    misses_svg: Option<PathBuf>,
}

impl MissArgs {
    /// Checks that the device has what was requested.
    pub fn check(&self, cores: usize) -> Outcome {
        let requested = self.start().is_some();
        if cores == 1 && requested {
            let text = "misses by home are those of several cores: use --cores, or more than 8 threads";
            return Err(Stop::Usage(text.to_owned()));
        }
        Ok(())
    }

    /// Returns a receiver, if something was requested.
    pub fn start(&self) -> Option<Misses> {
        let requested = self.misses.is_some() || self.misses_json.is_some() || self.misses_svg.is_some();
        requested.then(Misses::new)
    }

    /// Writes the files, and returns the text that was requested.
    pub fn end<P: Places>(&self, misses: &Misses, report: &Report, places: &P) -> Result<String, Stop> {
        let misses = misses.report();
        let name = |address| places.variable(address);
        if self.misses_json.is_some() {
            output::write(
                self.misses_json.as_deref(),
                misses.json(&name, &report.links).as_bytes(),
            )?;
        }
        if self.misses_svg.is_some() {
            output::write(
                self.misses_svg.as_deref(),
                misses.heat_map(&report.mesh, &report.links).as_bytes(),
            )?;
        }
        Ok(match self.misses {
            Some(0) => misses.text(&name, usize::MAX),
            Some(most) => misses.text(&name, most),
            None => String::new(),
        })
    }
}
