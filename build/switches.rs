//! Adds a condition to each lowering rule, by which the rule can be disabled: for the feature
//! `rule-switches`.
//!
//! `(rule PATTERN EXPR)` becomes `(rule PATTERN (if (rule_is_on N)) EXPR)` on the same lines.
//! Constructors of machine instructions, whose names start with an upper-case letter, are not
//! changed: their records cannot be removed without the rules that use them.

use crate::rules::{Source, expression, rule_at};

/// The additional declarations for the prelude.
pub const TERM: &str = "\n(decl pure partial rule_is_on (u32) Unit)\n(extern constructor rule_is_on rule_is_on)\n";

/// The rules that have a condition, by number.
#[derive(Default)]
pub struct Switches(Vec<(String, String)>);

impl Switches {
    /// Returns the text of a file with a condition in each of its rules.
    pub fn add_to(&mut self, source: &Source) -> Result<String, String> {
        let mut out = String::with_capacity(source.text.len() * 5 / 4);
        let mut at = 0;
        while let Some(start) = next_rule(&source.text, at) {
            let line = source.text[..start].matches('\n').count();
            let pattern = pattern_of(&source.text, start)
                .ok_or_else(|| format!("{}:{}: a rule without a pattern", source.shown, line + 1))?;
            let end = pattern.0 + pattern.1.len();
            out.push_str(&source.text[at..end]);
            at = end;
            if pattern.1.starts_with('(') && !pattern.1[1..].starts_with(|c: char| c.is_ascii_uppercase()) {
                let (place, text) = rule_at(&format!("{} line {line}", source.name), std::slice::from_ref(source))
                    .ok_or_else(|| format!("{}:{}: a rule without an end", source.shown, line + 1))?;
                out.push_str(&format!(" (if (rule_is_on {}))", self.0.len()));
                self.0.push((place, text));
            }
        }
        out.push_str(&source.text[at..]);
        Ok(out)
    }

    /// Returns the source of the table of the rules.
    pub fn table(&self) -> String {
        let rows: String = self
            .0
            .iter()
            .map(|(place, text)| format!("    ({place:?}, {text:?}),\n"))
            .collect();
        format!("/// Place and text of each rule, by number.\npub static RULES: &[(&str, &str)] = &[\n{rows}];\n")
    }
}

/// Returns the offset of the next rule.
fn next_rule(text: &str, from: usize) -> Option<usize> {
    let mut at = from;
    for line in text[from..].split_inclusive('\n') {
        let indent = line.len() - line.trim_start().len();
        if line[indent..].starts_with("(rule ") {
            return Some(at + indent);
        }
        at += line.len();
    }
    None
}

/// Returns the pattern of the rule at this offset, and the offset of the pattern. It follows the
/// name and the priority.
fn pattern_of(text: &str, rule: usize) -> Option<(usize, &str)> {
    let open = rule + 1 + text.get(rule + 1..)?.find('(')?;
    Some((open, expression(&text[open..])?))
}
