//! Makes the generated rules say which of them made an instruction: for the feature `explain`.
//!
//! The code that the ISLE compiler makes has a function for each term and a comment `// Rule at FILE line N.` before each way out of it. Each function gets
//! a line at its start and one at each way out, which tell the context when a rule starts and which one is done; a table has the rules by number.
//! Constructors of machine instructions, whose names start with an upper-case letter, stay as they are: they say what is emitted, not why.

use std::collections::HashMap;
use std::fmt::Write;

/// A file of ISLE: the name that the ISLE compiler gives it, the one that it has in the table, and its text.
pub struct Source {
    pub name: String,
    pub shown: String,
    pub text: String,
}

/// What is written before the line of a rule in the generated code.
const MARK: &str = "// Rule at ";

/// The functions that the rules call, in the trait that the compiler implements.
const HOOKS: &str = "    /// A rule is about to be looked for; gives a number for `rule_done`.
    fn rule_starts(&mut self) -> usize;
    /// The rule with this number in `RULES` has made what was made since.
    fn rule_done(&mut self, started: usize, rule: u16);
";

/// The code with the calls, and the table.
pub fn instrument(code: &str, sources: &[Source]) -> Result<(String, String), String> {
    let mut out = String::with_capacity(code.len() + code.len() / 8);
    let mut table = Table::default();
    // The function at hand: its term, and whether its body has begun.
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
        return Err("the code of the rules has another form than the one that `explain` knows".to_owned());
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
    /// The number of the rule of a term at `FILE line N`.
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

/// Where the rule at `FILE line N` comes from, and its text. The ISLE compiler counts lines from 0.
pub fn rule_at(place: &str, sources: &[Source]) -> Option<(String, String)> {
    let (file, number) = place.rsplit_once(" line ")?;
    let number: usize = number.parse().ok()?;
    let source = sources.iter().find(|source| source.name == file)?;
    let start = source.text.lines().take(number).map(|line| line.len() + 1).sum();
    let text = source.text.get(start..)?;
    let text = expression(text.get(text.find("(rule")?..)?)?;
    // What was made of td says so in the line before.
    let before = number.checked_sub(1).and_then(|before| source.text.lines().nth(before));
    let place = match before.and_then(|line| line.strip_prefix(";; td/")) {
        Some(td) => format!("td/{td}"),
        None => format!("{}:{}", source.shown, number + 1),
    };
    Some((place, text.to_owned()))
}

/// The expression in parentheses that the text begins with.
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
