//! Names of symbols as text.

use super::lexer::is_word;

/// Returns the name of a symbol as written in a source, with quotes if necessary.
pub fn symbol_text(name: &str) -> String {
    if is_word(name) && super::expr::register_fault(name, &(0..0), "").is_none() {
        name.to_owned()
    } else {
        // Quoted text is UTF-8. Only the quote and the backslash have to be escaped.
        let mut out = String::from("\"");
        for c in name.chars() {
            if matches!(c, '"' | '\\') {
                out.push('\\');
            }
            out.push(c);
        }
        out.push('"');
        out
    }
}
