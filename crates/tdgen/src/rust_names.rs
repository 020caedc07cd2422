//! Converts names of records and texts of values to names in generated Rust.

use crate::load::{KEYWORDS, fault};
use tablegen::{Diagnostic, Span};

/// Checks the name of a record that becomes a variant or a constant unchanged; escapes keywords.
pub(crate) fn kept(name: &str, span: Span) -> Result<String, Diagnostic> {
    let mut chars = name.chars();
    let begins = chars.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
    let goes_on = chars.all(|c| c.is_ascii_alphanumeric() || c == '_');
    if !begins || !goes_on || name == "_" || matches!(name, "self" | "Self" | "super" | "crate") {
        return Err(fault(span, format!("`{name}` cannot be a name in Rust")));
    }
    Ok(if KEYWORDS.contains(&name) {
        format!("r#{name}")
    } else {
        name.to_owned()
    })
}

/// Splits a name at every change to an upper-case letter, and at every character that is neither
/// letter nor digit.
fn words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = vec![String::new()];
    let mut lower_before = false;
    for c in text.chars() {
        if !c.is_ascii_alphanumeric() || c.is_ascii_uppercase() && lower_before {
            words.push(String::new());
        }
        lower_before = c.is_ascii_lowercase() || c.is_ascii_digit();
        if c.is_ascii_alphanumeric()
            && let Some(last) = words.last_mut()
        {
            last.push(c);
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Converts `getPredOpcode` to `get_pred_opcode`.
pub(crate) fn snake(name: &str) -> String {
    let text = words(name).join("_").to_ascii_lowercase();
    if KEYWORDS.contains(&text.as_str()) {
        format!("r#{text}")
    } else {
        text
    }
}

/// Converts `getPredOpcode` to `GET_PRED_OPCODE`.
pub(crate) fn upper(name: &str) -> String {
    words(name).join("_").to_ascii_uppercase()
}

/// Formats a single part as it is, several parts in parentheses.
pub(crate) fn tuple(parts: &[String]) -> String {
    match parts {
        [only] => only.clone(),
        parts => format!("({})", parts.join(", ")),
    }
}

/// Converts the text of a value to a variant name: `true` to `True`, `{ 0, 1 }` to `V01`, an empty
/// text to `Empty`.
pub(crate) fn variant(text: &str) -> String {
    let mut out = String::new();
    for word in words(text) {
        let (first, rest) = word.split_at(1);
        out.push_str(&first.to_ascii_uppercase());
        out.push_str(rest);
    }
    match out.chars().next() {
        None => "Empty".to_owned(),
        Some(first) if first.is_ascii_digit() => format!("V{out}"),
        Some(_) if out == "Self" => "SelfValue".to_owned(),
        Some(_) => out,
    }
}
