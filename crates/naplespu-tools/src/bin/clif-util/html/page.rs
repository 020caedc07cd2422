//! The page as text. All input is escaped, and the page loads no external resources.

use super::clif::{Line, Origin};
use super::sheet::{Sheet, Word};
use super::timed::{MAX_STEPS, Run};
use cranelift_codegen::ir::Inst;
use cranelift_naplespu::explain::{Explained, Producer, Reason, Rule};
use naplespu_filetests::Verdict;
use naplespu_jit::InstCycles;
use npu_mc::InstDesc;
use npu_mc::machine::INSTRUCTION_SIZE;
use npu_sim::counted;
use std::collections::{BTreeMap, HashMap};
use std::fmt::{self, Display, Write as _};

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// The heading of the page.
pub struct Title<'a> {
    /// The name of the file.
    pub file: &'a str,
    /// The settings that differ from the defaults.
    pub settings: &'a str,
    /// The results of the run lines.
    pub run: &'a Run,
}

/// Escaped text for an element or an attribute.
struct Text<T>(T);

impl<T: Display> Display for Text<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in self.0.to_string().chars() {
            match c {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                '\'' => f.write_str("&#39;")?,
                '\n' | '\t' => f.write_char(c)?,
                c if c.is_control() => f.write_char(char::REPLACEMENT_CHARACTER)?,
                c => f.write_char(c)?,
            }
        }
        Ok(())
    }
}

/// Returns a word and a color for the origin of an instruction.
fn kind(reason: &Reason) -> (&'static str, &'static str) {
    match reason {
        Reason::Rules(rules) if rules.first().is_some_and(|rule| rule.place.starts_with("isle/")) => ("isle", "isle"),
        Reason::Rules(_) => ("td", "td"),
        Reason::Producer(producer) => match producer {
            Producer::Move => ("move", "alloc"),
            Producer::Spill => ("spill", "alloc"),
            Producer::Reload => ("reload", "alloc"),
            Producer::Prologue | Producer::Epilogue => ("frame", "frame"),
            Producer::Argument => ("arg", "frame"),
            Producer::Landing => ("catch", "frame"),
            Producer::Constant => ("const", "const"),
            Producer::Trap => ("trap", "trap"),
            Producer::Edge => ("edge", "other"),
            Producer::TryCall => ("call", "other"),
            Producer::Relax => ("far", "other"),
            Producer::Hazard => ("wait", "other"),
            _ => ("pass", "other"),
        },
    }
}

/// The rules and records on the page, each once.
#[derive(Default)]
struct Notes {
    rules: Vec<&'static Rule>,
    numbers: HashMap<*const Rule, usize>,
    records: BTreeMap<&'static str, &'static InstDesc>,
}

impl Notes {
    /// Returns the number of a rule on this page.
    fn rule(&mut self, rule: &'static Rule) -> usize {
        *self.numbers.entry(std::ptr::from_ref(rule)).or_insert_with(|| {
            self.rules.push(rule);
            self.rules.len() - 1
        })
    }
}

/// Returns the page.
pub fn page(title: &Title<'_>, sheets: &[Sheet]) -> String {
    let mut out = String::new();
    let mut notes = Notes::default();
    // Writing to a string does not fail.
    let _ = write!(
        out,
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'\"/>\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n<title>{}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n",
        Text(title.file)
    );
    head(&mut out, title, sheets);
    for (number, sheet) in sheets.iter().enumerate() {
        section(&mut out, &mut notes, number, sheet);
    }
    appendix(&mut out, &notes);
    let _ = write!(
        out,
        "<div id=\"panel\"><p class=\"hint\">Point at an instruction in any column to mark the corresponding instructions in all columns. This panel \
         shows its provenance and its cost. A click keeps the marks, Escape removes them.</p></div>\n<script>\n{SCRIPT}</script>\n</body>\n</html>\n"
    );
    out
}

fn head(out: &mut String, title: &Title<'_>, sheets: &[Sheet]) {
    let _ = write!(
        out,
        "<header>\n<h1>{}</h1>\n<p>naplespu, {}</p>\n",
        Text(title.file),
        Text(title.settings)
    );
    let lines = &title.run.lines;
    if lines.is_empty() {
        out.push_str("<p>The file has no run lines, so cycles are unknown.</p>\n");
    } else {
        let passed = lines.iter().filter(|line| line.verdict == Verdict::Passed).count();
        let _ = write!(
            out,
            "<details class=\"lines\"><summary>{passed} of {} run lines passed, with {} on one thread in the functions of this page; at most {MAX_STEPS} \
             instructions each</summary>\n<ul>\n",
            lines.len(),
            counted(title.run.cycles, "cycle")
        );
        for line in lines {
            let _ = write!(out, "<li><code>{}</code>: {}", Text(&line.text), line.verdict);
            for more in line
                .printed
                .iter()
                .chain([&line.reason])
                .filter(|text| !text.is_empty())
            {
                let _ = write!(out, "; {}", Text(more));
            }
            out.push_str("</li>\n");
        }
        out.push_str("</ul></details>\n");
        if !title.run.routines.is_empty() {
            let all = title.run.routines.iter().map(|(_, cycles)| cycles).sum();
            let _ = write!(out, "<p>{} in routines of the runtime:", counted(all, "cycle"));
            for (number, (name, cycles)) in title.run.routines.iter().enumerate() {
                let gap = if number == 0 { "" } else { "," };
                let _ = write!(out, "{gap} <code>{}</code> {cycles}", Text(name));
            }
            out.push_str("</p>\n");
        }
    }
    out.push_str(
        "<div class=\"key\"><span><b class=\"td\">td</b> rule made from a pattern of td</span><span><b class=\"isle\">isle</b> rule written in ISLE</span>\
         <span><b class=\"alloc\">move spill reload</b> register allocation</span><span><b class=\"frame\">frame arg</b> frame and arguments</span>\
         <span><b class=\"const\">const</b> constant</span><span><b class=\"trap\">trap</b> trap sequence</span><span><b class=\"other\">others</b> passes</span><span><i>italic</i> made by optimization, grouped with its user</span></div>\n",
    );
    if sheets.len() > 1 {
        out.push_str("<nav>");
        for (number, sheet) in sheets.iter().enumerate() {
            let _ = write!(out, "<a class=\"mono\" href=\"#f{number}\">{}</a> ", Text(&sheet.name));
        }
        out.push_str("</nav>\n");
    }
    out.push_str("</header>\n");
}

fn section(out: &mut String, notes: &mut Notes, number: usize, sheet: &Sheet) {
    let insts = sheet.explanation.insts.len();
    let _ = write!(
        out,
        "<section id=\"f{number}\">\n<h2><code>{}</code><small>{insts} instructions, {} bytes, a frame of {}",
        Text(&sheet.name),
        sheet.words.len() * INSTRUCTION_SIZE as usize,
        sheet.code.frame.size
    );
    let cycles: u64 = costs(sheet).map(|cost| cost.cycles).sum();
    if cycles > 0 {
        let _ = write!(out, ", {}", counted(cycles, "cycle"));
    }
    out.push_str("</small></h2>\n<div class=\"grid\">\n");
    column(out, "CLIF", "input", "clif", |out| {
        clif_rows(out, number, &sheet.clif);
    });
    column(out, "Optimized CLIF", "before lowering", "opt", |out| {
        opt_rows(out, number, sheet);
    });
    column(out, "VCode", "before allocation", "vcode", |out| {
        vcode_rows(out, number, sheet)
    });
    let about = if cycles > 0 {
        "offset, provenance, executions and cycles"
    } else {
        "offset, provenance"
    };
    column(out, "Assembly", about, "asm", |out| asm_rows(out, notes, number, sheet));
    column(out, "Bytes", "", "bytes", |out| byte_rows(out, number, sheet));
    out.push_str("</div>\n</section>\n");
}

fn costs(sheet: &Sheet) -> impl Iterator<Item = &InstCycles> {
    sheet.words.iter().filter_map(|word| word.cycles.as_ref())
}

fn column(out: &mut String, name: &str, about: &str, class: &str, rows: impl FnOnce(&mut String)) {
    let _ = writeln!(
        out,
        "<div class=\"column {class}\"><h3>{name} <small>{about}</small></h3><div class=\"pane\">"
    );
    rows(out);
    out.push_str("</div></div>\n");
}

/// Writes a line that is not an instruction.
fn plain(out: &mut String, text: &str) {
    let class = if text.starts_with("block") { "r b" } else { "r" };
    // An empty line needs a height, too.
    let text = if text.is_empty() { " " } else { text };
    let _ = writeln!(out, "<span class=\"{class}\">{}</span>", Text(text));
}

fn clif_rows(out: &mut String, number: usize, lines: &[Line]) {
    for line in lines {
        match line.inst {
            Some(inst) => {
                let id = inst.as_u32();
                let _ = writeln!(
                    out,
                    "<span class=\"r\" id=\"f{number}c{id}\">{}</span>",
                    Text(&line.text)
                );
            }
            None => plain(out, &line.text),
        }
    }
}

fn opt_rows(out: &mut String, number: usize, sheet: &Sheet) {
    let nothing = Origin::default();
    for line in &sheet.opt {
        let Some(inst) = line.inst else {
            plain(out, &line.text);
            continue;
        };
        let origin = sheet.origins.get(&inst).unwrap_or(&nothing);
        let from: Vec<String> = origin
            .insts
            .iter()
            .map(|from| format!("f{number}c{}", from.as_u32()))
            .collect();
        let class = if origin.is_guess { "r guess" } else { "r" };
        let _ = writeln!(
            out,
            "<span class=\"{class}\" id=\"f{number}o{}\" data-c=\"{}\">{}</span>",
            inst.as_u32(),
            from.join(" "),
            Text(&line.text)
        );
    }
}

/// Returns the attribute that links to the optimized CLIF.
fn to_opt(number: usize, inst: Option<Inst>) -> String {
    inst.map_or(String::new(), |inst| format!(" data-o=\"f{number}o{}\"", inst.as_u32()))
}

fn vcode_rows(out: &mut String, number: usize, sheet: &Sheet) {
    for line in &sheet.explanation.vcode {
        let Some(row) = line.number else {
            plain(out, &line.text);
            continue;
        };
        let inst = sheet.explanation.vcode_insts.get(row).and_then(|known| known.inst);
        let _ = writeln!(
            out,
            "<span class=\"r\" id=\"f{number}v{row}\"{}>{}</span>",
            to_opt(number, inst),
            Text(&line.text)
        );
    }
}

/// Returns a title for the words after the code: constants and padding.
fn after_code(sheet: &Sheet, index: usize) -> &'static str {
    if index * (INSTRUCTION_SIZE as usize) < sheet.code.pool_start as usize {
        "padding"
    } else {
        "constant vector"
    }
}

fn asm_rows(out: &mut String, notes: &mut Notes, number: usize, sheet: &Sheet) {
    let most = costs(sheet).map(|cost| cost.cycles).max();
    for (index, word) in sheet.words.iter().enumerate() {
        if let Some(label) = &word.label {
            plain(out, label);
        }
        let offset = index * INSTRUCTION_SIZE as usize;
        let Some(known) = sheet.explained(index) else {
            let _ = writeln!(
                out,
                "<span class=\"r\" id=\"f{number}a{index}\" data-x=\"f{number}b{index}\" data-m=\"{0}\" data-y=\"{0}\"><span class=\"off\">{offset:x}</span>\
                 <span class=\"why other\">data</span><span class=\"txt\">{1}</span></span>",
                after_code(sheet, index),
                Text(&word.text),
            );
            continue;
        };
        let _ = write!(
            out,
            "<span class=\"r\" id=\"f{number}a{index}\" data-x=\"f{number}b{index}\"{}",
            to_opt(number, known.inst)
        );
        if let Some(vcode) = known.vcode {
            let _ = write!(out, " data-v=\"f{number}v{vcode}\"");
        }
        if let Some(desc) = word.desc {
            notes.records.insert(desc.name, desc);
            let _ = write!(out, " data-t=\"t{}\"", desc.name);
        }
        let (reason, link) = why(notes, known);
        let (spent, cell) = cost(word, most);
        let _ = writeln!(
            out,
            "{reason}{spent}><span class=\"off\">{offset:x}</span>{link}{cell}<span class=\"txt\">{}</span></span>",
            Text(&word.text)
        );
    }
}

/// Returns the attributes with the provenance of an instruction, and the link to its rule.
fn why(notes: &mut Notes, known: &Explained) -> (String, String) {
    let (word, class) = kind(&known.reason);
    let reason = known.reason.to_string();
    let reason = Text(&reason);
    match &known.reason {
        Reason::Rules(rules) => {
            let numbers: Vec<String> = rules.iter().map(|rule| format!("r{}", notes.rule(rule))).collect();
            let first = numbers.first().map_or("rules", String::as_str);
            let link = format!("<a class=\"why {class}\" href=\"#{first}\" title=\"{reason}\">{word}</a>");
            (format!(" data-y=\"{reason}\" data-r=\"{}\"", numbers.join(" ")), link)
        }
        Reason::Producer(_) => (
            format!(" data-y=\"{reason}\" data-m=\"{reason}\""),
            format!("<span class=\"why {class}\" title=\"{reason}\">{word}</span>"),
        ),
    }
}

/// Returns the attributes with the cost of an instruction, and its cell. `most` is the cost of the
/// most expensive instruction, or `None` if none was executed.
fn cost(word: &Word, most: Option<u64>) -> (String, String) {
    let Some(most) = most.filter(|&most| most > 0) else {
        return (String::new(), String::new());
    };
    let Some(cost) = &word.cycles else {
        return (String::new(), "<span class=\"cy\"></span>".to_owned());
    };
    let causes: Vec<String> = cost
        .causes()
        .map(|(cause, cycles)| format!("{cause} {cycles}"))
        .collect();
    let attributes = format!(
        " data-n=\"{}\" data-cy=\"{}\" data-w=\"{}\"",
        cost.executed,
        cost.cycles,
        Text(causes.join(", "))
    );
    let share = (cost.cycles as f64 * 100.0 / most as f64).round();
    let cell = format!(
        "<span class=\"cy\" style=\"--h:{share}%\">{}× {}</span>",
        short(cost.executed),
        short(cost.cycles)
    );
    (attributes, cell)
}

/// Formats a number in at most five characters.
fn short(number: u64) -> String {
    match number {
        0..10_000 => number.to_string(),
        10_000..10_000_000 => format!("{}k", number / 1000),
        _ => format!("{}M", number / 1_000_000),
    }
}

fn byte_rows(out: &mut String, number: usize, sheet: &Sheet) {
    for (index, word) in sheet.words.iter().enumerate() {
        if word.label.is_some() {
            plain(out, "");
        }
        let [a, b, c, d] = word.bytes;
        let _ = writeln!(
            out,
            "<span class=\"r\" id=\"f{number}b{index}\" data-x=\"f{number}a{index}\">{a:02x} {b:02x} {c:02x} {d:02x}</span>"
        );
    }
}

/// Writes the rules and records that the page refers to.
fn appendix(out: &mut String, notes: &Notes) {
    out.push_str("<section id=\"rules\">\n<h2>Rules</h2>\n");
    for (number, rule) in notes.rules.iter().enumerate() {
        let _ = writeln!(
            out,
            "<div class=\"rule\" id=\"r{number}\"><b class=\"mono\">{}</b><span class=\"place\">{}</span><pre>{}</pre></div>",
            Text(rule.term),
            Text(rule.place),
            Text(rule.text)
        );
    }
    out.push_str("</section>\n<section id=\"records\">\n<h2>Records of td</h2>\n");
    for (name, desc) in &notes.records {
        let _ = writeln!(
            out,
            "<div class=\"rec\" id=\"t{name}\"><b class=\"mono\">{name}</b><span class=\"place\">{}</span><p><code>{}</code>format {:?}, unit {:?}, latency {}, encoding \
             <code>{:08x}</code></p></div>",
            Text(desc.place),
            Text(desc.asm),
            desc.format,
            desc.unit,
            desc.latency,
            desc.base
        );
    }
    out.push_str("</section>\n");
}
