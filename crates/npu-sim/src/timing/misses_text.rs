//! The misses of several cores as text.

use super::misses::{CoreSet, MissCounters, MissesReport};
use super::report::counted;
use super::sink::LineSource;
use std::fmt::Write as _;

/// Returns the name of the variable at an address.
pub type Names<'a> = &'a dyn Fn(u32) -> Option<String>;

/// The label of lines without a name.
const UNNAMED: &str = "(no name)";

/// A row of a table.
type Row = (String, MissCounters);

/// Returns the width of the column of an origin.
fn column(source: LineSource) -> usize {
    source.name().len().max(5) + 2
}

/// Appends a table. Nothing is appended without rows.
fn table(text: &mut String, title: &str, rows: &[Row]) {
    if rows.is_empty() {
        return;
    }
    let labels = rows.iter().map(|(label, _)| label.chars().count() + 2);
    let width = labels.max().unwrap_or_default().max(title.len());
    // Writing to a string does not fail, here and below.
    let _ = write!(text, "{title:width$}  misses");
    for source in LineSource::ALL {
        let _ = write!(text, "{:>width$}", source.name(), width = column(source));
    }
    text.push_str("  stores   taken   hops  cycles\n");
    for (label, counters) in rows {
        let _ = write!(
            text,
            "  {label:label_width$}{:8}",
            counters.misses(),
            label_width = width - 2
        );
        for source in LineSource::ALL {
            let _ = write!(text, "{:width$}", counters.from(source), width = column(source));
        }
        let (hops, cycles) = (counters.mean_hops(), counters.mean_cycles());
        let _ = writeln!(
            text,
            "{:8}{:8}{hops:7.1}{cycles:8.1}",
            counters.stores, counters.invalidated
        );
    }
}

/// Returns the numbers of a set as text, as `0-3, 5`.
fn numbers(set: CoreSet) -> String {
    let mut parts: Vec<String> = Vec::new();
    let mut next = 0;
    while next < CoreSet::BITS {
        let first = next;
        while next < CoreSet::BITS && set >> next & 1 != 0 {
            next += 1;
        }
        match next - first {
            0 => next += 1,
            1 => parts.push(first.to_string()),
            _ => parts.push(format!("{first}-{}", next - 1)),
        }
    }
    parts.join(", ")
}

impl MissesReport {
    /// Returns tables of the misses by home, core, hops, sharing and variable, and of the `most`
    /// variables and lines with the most cycles. `name` returns the name of the variable at an
    /// address.
    pub fn text(&self, name: Names<'_>, most: usize) -> String {
        let total = self.total();
        let mut text = format!(
            "line requests of several cores: {}, {:.1} hops and {:.1} cycles each\n",
            total.misses(),
            total.mean_hops(),
            total.mean_cycles()
        );
        let homes = self.homes.iter().enumerate().filter(|(_, home)| home.misses() != 0);
        let homes: Vec<Row> = homes.map(|(tile, home)| (format!("tile {tile}"), *home)).collect();
        table(&mut text, "by home", &homes);
        let cores = self
            .cores
            .iter()
            .map(|core| (format!("core {} in tile {}", core.core, core.tile), core.counters));
        table(&mut text, "by core", &cores.collect::<Vec<_>>());
        let hops = self
            .hops
            .iter()
            .map(|(&hops, counters)| (counted(hops.into(), "hop"), *counters));
        table(&mut text, "by hops", &hops.collect::<Vec<_>>());
        let sharing = self
            .by_sharing()
            .into_iter()
            .map(|(kind, counters)| (kind.name().to_owned(), counters));
        table(&mut text, "by sharing", &sharing.collect::<Vec<_>>());
        let variables_of_all = self.by_variable(name);
        let rows = variables_of_all.iter().take(most).map(|variable| {
            let name = variable.name.as_deref().unwrap_or(UNNAMED);
            let label = format!(
                "{name}: {}, cores {}, homes {}",
                counted(variable.lines, "line"),
                numbers(variable.readers | variable.writers),
                numbers(variable.homes)
            );
            (label, variable.counters)
        });
        table(&mut text, "by variable", &rows.collect::<Vec<_>>());
        rest(&mut text, variables_of_all.len().saturating_sub(most), "variable");
        let rows = self.lines.iter().take(most).map(|line| {
            let name = line.variables(name).map_or(String::new(), |name| format!(" {name}"));
            let cores = numbers(line.readers | line.writers);
            (
                format!("{:#010x}{name}: cores {cores}, home {}", line.address(), line.home),
                line.counters,
            )
        });
        table(&mut text, "by line", &rows.collect::<Vec<_>>());
        rest(&mut text, self.lines.len().saturating_sub(most), "line");
        text
    }
}

/// Appends the number of omitted rows.
fn rest(text: &mut String, count: usize, noun: &str) {
    if count != 0 {
        let _ = writeln!(text, "  and {}", counted(count as u64, &format!("other {noun}")));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timing::misses::Misses;
    use crate::timing::sink::{LineRequest, Sink as _};
    use crate::timing::trip::{Leg, Place};

    /// Two misses of a line, with 20 cycles each, and one of the next line, with 10 cycles.
    fn report() -> MissesReport {
        let mut misses = Misses::new();
        let leg = |to| Leg {
            place: Place::Network,
            from: 0,
            to,
        };
        for (core, line, store) in [(0, 8, true), (1, 8, false), (1, 9, false)] {
            misses.line_requested(&LineRequest {
                core,
                tile: core as u32,
                line,
                home: 0,
                source: LineSource::Memory,
                store,
                hops: 4,
                invalidated: 0,
                legs: &[leg(if line == 8 { 20 } else { 10 })],
            });
        }
        misses.report()
    }

    #[test]
    fn tables_have_the_worst_rows() {
        let name = |address: u32| (address < 576).then(|| "sum \"1\"".to_owned());
        let text = report().text(&name, 1);
        assert!(
            text.starts_with("line requests of several cores: 3, 4.0 hops and 16.7 cycles each\n"),
            "{text}"
        );
        for part in [
            "by home   misses  memory     L2  other core  upgrade   code  stores   taken   hops  cycles\n",
            "  tile 0       3       3      0           0        0      0       1       0    4.0    16.7\n",
            "  core 1 in tile 1       2",
            "  4 hops       3",
            "  one writer       2",
            "  sum \"1\": 1 line, cores 0-1, homes 0       2",
            "  and 1 other variable\n",
            "  0x00000200 sum \"1\": cores 0-1, home 0       2",
            "  and 1 other line\n",
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
        assert_eq!(MissesReport::default().text(&name, 1).lines().count(), 1);
    }

    #[test]
    fn sets_as_text() {
        for (set, text) in [
            (0, ""),
            (1, "0"),
            (0b1011, "0-1, 3"),
            (u16::MAX, "0-15"),
            (1 << 15, "15"),
        ] {
            assert_eq!(numbers(set), text);
        }
    }
}
