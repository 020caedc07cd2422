//! Draws the counts as SVG files in `docs/pictures/`.

use crate::Error;
use npu_sim::{Report, Stall};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

/// The causes of a thread's cycles, with their colors. The last part contains all other causes.
const PARTS: [(&str, &str, &[Stall]); 6] = [
    ("issue", "#4878a8", &[]),
    ("integer result", "#e49444", &[Stall::Integer]),
    ("taken branch", "#85b6b2", &[Stall::Branch]),
    ("float result", "#d1615d", &[Stall::Float, Stall::FloatSlot]),
    (
        "load",
        "#6a9f58",
        &[
            Stall::Load,
            Stall::Scratchpad,
            Stall::MemoryQueue,
            Stall::ScratchpadQueue,
        ],
    ),
    ("other", "#b8b0ac", &[]),
];

/// The colors of lines.
const COLOURS: [&str; 13] = [
    "#4878a8", "#e49444", "#d1615d", "#85b6b2", "#6a9f58", "#e7ca60", "#a87c9f", "#f1a2a9", "#967662", "#b8b0ac",
    "#2f4f7f", "#7f2f4f", "#2f7f4f",
];

/// Writes the pictures.
pub fn write(reports: &BTreeMap<String, Report>) -> Result<(), Error> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = root.join("docs/pictures");
    std::fs::create_dir_all(&folder)?;
    std::fs::write(folder.join("cycles.svg"), cycles(reports))?;
    let table = std::fs::read_to_string(root.join("benches/results/growth.tsv"))?;
    std::fs::write(folder.join("growth.svg"), growth(&table)?)?;
    Ok(())
}

/// Returns the cycles of a thread by cause, in the order of the parts.
fn parts(report: &Report) -> [u64; PARTS.len()] {
    let total = &report.total;
    let mut parts = PARTS.map(|(_, _, causes)| causes.iter().map(|&cause| total.stalled(cause)).sum());
    parts[0] = total.instructions + total.killed;
    let known: u64 = parts.iter().sum();
    parts[PARTS.len() - 1] = report.cycles.saturating_sub(known);
    parts
}

/// Returns the start of a picture.
fn picture(width: usize, height: usize, title: &str) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"{width}\" height=\"{height}\" fill=\"white\"/>\n\
         <text x=\"10\" y=\"20\" font-size=\"14\">{title}</text>\n"
    )
}

/// Returns a picture with a bar of length 100 percent for each kernel.
fn cycles(reports: &BTreeMap<String, Report>) -> String {
    const LEFT: f64 = 130.0;
    const LENGTH: f64 = 600.0;
    const STEP: usize = 20;
    let mut text = picture(760, 70 + STEP * reports.len(), "Cycles by cause, one thread");
    let mut x = LEFT;
    for (name, colour, _) in PARTS {
        let _ = writeln!(
            text,
            "<rect x=\"{x:.0}\" y=\"32\" width=\"12\" height=\"12\" fill=\"{colour}\"/>\n<text x=\"{:.0}\" y=\"42\">{name}</text>",
            x + 16.0
        );
        x += 30.0 + 7.0 * name.len() as f64;
    }
    for (row, (name, report)) in reports.iter().enumerate() {
        let y = 56 + STEP * row;
        let _ = writeln!(
            text,
            "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{name}</text>",
            LEFT - 6.0,
            y + 12
        );
        let mut x = LEFT;
        for (part, (_, colour, _)) in parts(report).into_iter().zip(PARTS) {
            let length = LENGTH * part as f64 / report.cycles.max(1) as f64;
            let _ = writeln!(
                text,
                "<rect x=\"{x:.1}\" y=\"{y}\" width=\"{length:.1}\" height=\"15\" fill=\"{colour}\"/>"
            );
            x += length;
        }
    }
    text + "</svg>\n"
}

/// Returns a picture of the time per CLIF instruction over the function size: a line for each
/// shape, on logarithmic axes.
fn growth(table: &str) -> Result<String, Error> {
    const LEFT: f64 = 60.0;
    const TOP: f64 = 40.0;
    const WIDTH: f64 = 480.0;
    const HEIGHT: f64 = 380.0;
    let mut shapes: BTreeMap<&str, Vec<(f64, f64)>> = BTreeMap::new();
    for line in table.lines().filter(|line| !line.starts_with('#')) {
        let fields: Vec<&str> = line.split('\t').collect();
        let &[shape, compiler, size, time, _] = fields.as_slice() else {
            return Err(format!("`{line}` has not five fields").into());
        };
        if compiler == "ours" {
            shapes.entry(shape).or_default().push((size.parse()?, time.parse()?));
        }
    }
    let (sizes, times) = ((1e3f64, 2e5f64), (1e2f64, 1e5f64));
    let place = |value: f64, (low, high): (f64, f64)| (value / low).ln() / (high / low).ln();
    let x = |size: f64| LEFT + WIDTH * place(size, sizes);
    let y = |time: f64| TOP + HEIGHT * (1.0 - place(time, times));
    let mut text = picture(
        720,
        480,
        "Nanoseconds for a CLIF instruction, by CLIF instructions of the function",
    );
    for size in [1e3, 5e3, 2e4, 1e5, 2e5] {
        let _ = writeln!(
            text,
            "<path d=\"M{0:.1} {TOP} V{1}\" stroke=\"#ddd\"/>\n<text x=\"{0:.1}\" y=\"{2}\" text-anchor=\"middle\">{size}</text>",
            x(size),
            TOP + HEIGHT,
            TOP + HEIGHT + 18.0
        );
    }
    for time in [1e2, 1e3, 1e4, 1e5] {
        let _ = writeln!(
            text,
            "<path d=\"M{LEFT} {0:.1} H{1}\" stroke=\"#ddd\"/>\n<text x=\"{2}\" y=\"{3:.1}\" text-anchor=\"end\">{time}</text>",
            y(time),
            LEFT + WIDTH,
            LEFT - 6.0,
            y(time) + 4.0
        );
    }
    for (number, ((shape, points), colour)) in shapes.iter().zip(COLOURS).enumerate() {
        let line: Vec<String> = points
            .iter()
            .map(|&(size, time)| format!("{:.1},{:.1}", x(size), y(time)))
            .collect();
        let row = TOP + 12.0 + 18.0 * number as f64;
        let _ = writeln!(
            text,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>\n\
             <rect x=\"560\" y=\"{:.0}\" width=\"12\" height=\"4\" fill=\"{colour}\"/>\n<text x=\"578\" y=\"{row:.0}\">{shape}</text>",
            line.join(" "),
            row - 6.0
        );
    }
    Ok(text + "</svg>\n")
}
