//! Names of symbols as text.

use super::lexer::is_word;

/// The name of a symbol as a source has to write it: in quotes if need be.
pub fn symbol_text(name: &str) -> String {
    if is_word(name) && super::expr::register_fault(name, &(0..0), "").is_none() {
        name.to_owned()
    } else {
        // Quoted text is UTF-8; only the two marks that end or escape it are special.
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
