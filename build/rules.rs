//! Instruments the generated rules to record which rule emitted an instruction: for the feature
//! `explain`.
//!
//! The output of the ISLE compiler has a function for each term, and a comment `// Rule at FILE
//! line N.` before each return. One line is added at the start of each function and one at each
//! return. They report to the context when a rule starts and which rule was applied. A table
//! contains the rules by number. Constructors of machine instructions, whose names start with an
//! upper-case letter, are not changed: they describe what is emitted and not why.

use std::collections::HashMap;
use std::fmt::Write;

/// A file of ISLE: its name for the ISLE compiler, its name in the table, and its text.
pub struct Source {
    pub name: String,
    pub shown: String,
    pub text: String,
}

/// The text before the location of a rule in the generated code.
const MARK: &str = "// Rule at ";

/// The functions that the rules call, in the trait that the compiler implements.
const HOOKS: &str = "    /// Called before the rules of a term are tried. Returns a number for `rule_done`.
    fn rule_starts(&mut self) -> usize;
    /// Called when a rule has been applied. `started` is the result of `rule_starts`; `rule` is
    /// the number of the rule in `RULES`.
    fn rule_done(&mut self, started: usize, rule: u16);
";

/// Returns the instrumented code and the table.
pub fn instrument(code: &str, sources: &[Source]) -> Result<(String, String), String> {
    let mut out = String::with_capacity(code.len() + code.len() / 8);
    let mut table = Table::default();
    // The term of the current function, if the function is instrumented.
    let mut term: Option<&str> = None;
    let mut has_trait = false;
    for line in code.lines() {
        out.push_str(line);
        out.push('\n');
        if line == "pub trait Context {" {
            has_trait = true;
            out.push_str(HOOKS);
        } else if let Some(rest) = line.strip_prefix("pub fn constructor_") {
            let name = rest.split('<').next().unwrap_or(rest);
            term = Some(name).filter(|name| !name.starts_with(|c: char| c.is_ascii_uppercase()));
        } else if line == "}" {
            term = None;
        } else if let Some(name) = term {
            let text = line.trim_start();
            if line.starts_with(')') && line.ends_with('{') {
                out.push_str("    let rule_started = C::rule_starts(ctx);\n");
            } else if let Some(place) = text.strip_prefix(MARK) {
                let indent = &line[..line.len() - text.len()];
                let number = table.number(name, place.trim_end_matches('.'), sources)?;
                let _ = writeln!(out, "{indent}C::rule_done(ctx, rule_started, {number}_u16);");
            }
        }
    }
    let starts = out.matches("C::rule_starts(ctx)").count();
    if !has_trait || starts == 0 || table.rows.is_empty() {
        return Err("the code of the ISLE compiler does not have the form that `explain` expects".to_owned());
    }
    Ok((out, table.text()))
}

/// The rules by number.
#[derive(Default)]
struct Table<'a> {
    numbers: HashMap<(&'a str, &'a str), usize>,
    rows: Vec<String>,
}

impl<'a> Table<'a> {
    /// Returns the number of the rule of a term at `FILE line N`.
    fn number(&mut self, term: &'a str, place: &'a str, sources: &[Source]) -> Result<usize, String> {
        if let Some(&number) = self.numbers.get(&(term, place)) {
            return Ok(number);
        }
        let number = self.rows.len();
        if u16::try_from(number).is_err() {
            return Err("there are more rules than 16 bits can count".to_owned());
        }
        let (place_in_source, text) =
            rule_at(place, sources).ok_or_else(|| format!("no rule of {term} is at {place}"))?;
        self.rows.push(format!(
            "    Rule {{ term: {term:?}, place: {place_in_source:?}, text: {text:?} }},\n"
        ));
        self.numbers.insert((term, place), number);
        Ok(number)
    }

    fn text(&self) -> String {
        format!(
            "/// The rules of lowering, by number.\npub static RULES: &[Rule] = &[\n{}];\n",
            self.rows.concat()
        )
    }
}

/// Returns the location and the text of the rule at `FILE line N`. The ISLE compiler counts lines
/// from 0.
pub fn rule_at(place: &str, sources: &[Source]) -> Option<(String, String)> {
    let (file, number) = place.rsplit_once(" line ")?;
    let number: usize = number.parse().ok()?;
    let source = sources.iter().find(|source| source.name == file)?;
    let start = source.text.lines().take(number).map(|line| line.len() + 1).sum();
    let text = source.text.get(start..)?;
    let text = expression(text.get(text.find("(rule")?..)?)?;
    // In the ISLE from td, the line before a rule contains its location in td.
    let before = number.checked_sub(1).and_then(|before| source.text.lines().nth(before));
    let place = match before.and_then(|line| line.strip_prefix(";; td/")) {
        Some(td) => format!("td/{td}"),
        None => format!("{}:{}", source.shown, number + 1),
    };
    Some((place, text.to_owned()))
}

/// Returns the expression in parentheses at the start of the text.
pub fn expression(text: &str) -> Option<&str> {
    let mut depth = 0usize;
    let mut is_comment = false;
    for (at, c) in text.char_indices() {
        match c {
            '\n' => is_comment = false,
            ';' => is_comment = true,
            '(' if !is_comment => depth += 1,
            ')' if !is_comment => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return text.get(..=at);
                }
            }
            _ => {}
        }
    }
    None
}
