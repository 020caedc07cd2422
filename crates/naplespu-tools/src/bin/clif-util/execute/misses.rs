//! The output of `--misses`: which lines several cores requested, from where.

use super::places::Places;
use crate::{Outcome, Stop, output};
use npu_sim::{LineSource, MissCounters, Misses, MissesReport, Names, Report};
use serde_json::{Value, json};
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
            output::write(self.misses_json.as_deref(), json(&misses, &name, report).as_bytes())?;
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

/// Returns everything as JSON.
fn json(misses: &MissesReport, name: Names<'_>, report: &Report) -> String {
    let homes = misses.homes.iter().enumerate().filter(|(_, home)| home.misses() != 0);
    let homes = homes.map(|(tile, home)| row(json!({"tile": tile}), home));
    let cores = misses.cores.iter();
    let cores = cores.map(|core| row(json!({"core": core.core, "tile": core.tile}), &core.counters));
    let hops = misses
        .hops
        .iter()
        .map(|(hops, counters)| row(json!({"distance": hops}), counters));
    let sharing = misses.by_sharing().into_iter();
    let sharing = sharing.map(|(kind, counters)| row(json!({"sharing": kind.name()}), &counters));
    let variables = misses.by_variable(name).into_iter().map(|variable| {
        let start = json!({
            "name": variable.name,
            "lines": variable.lines,
            "homes": numbers(variable.homes),
            "readers": numbers(variable.readers),
            "writers": numbers(variable.writers),
        });
        row(start, &variable.counters)
    });
    let lines = misses.lines.iter().map(|line| {
        let start = json!({
            "address": line.address(),
            "name": line.variables(name),
            "instructions": line.is_code,
            "home": line.home,
            "readers": numbers(line.readers),
            "writers": numbers(line.writers),
        });
        row(start, &line.counters)
    });
    let links = report.links.iter();
    let links = links.map(|link| json!({"from": link.from, "to": link.to, "flits": link.flits}));
    let all = json!({
        "homes": homes.collect::<Vec<_>>(),
        "cores": cores.collect::<Vec<_>>(),
        "hops": hops.collect::<Vec<_>>(),
        "sharing": sharing.collect::<Vec<_>>(),
        "variables": variables.collect::<Vec<_>>(),
        "lines": lines.collect::<Vec<_>>(),
        "links": links.collect::<Vec<_>>(),
    });
    format!("{all:#}\n")
}

/// Returns a row of a table: its first members, and the counters.
fn row(mut row: Value, counters: &MissCounters) -> Value {
    for source in LineSource::ALL {
        row[source.name()] = json!(counters.from(source));
    }
    row["misses"] = json!(counters.misses());
    row["stores"] = json!(counters.stores);
    row["taken"] = json!(counters.invalidated);
    row["hops"] = json!(counters.hops);
    row["cycles"] = json!(counters.cycles);
    row
}

/// Returns the numbers in a set of cores or tiles.
fn numbers(set: u16) -> Vec<u32> {
    (0..u16::BITS).filter(|bit| set >> bit & 1 != 0).collect()
}
