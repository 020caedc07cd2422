//! The language Brook and its compiler.
//!
//! Brook has functions, 32-bit numbers and arrays of them. A text is an array of its characters,
//! and a function is a value too. `programs/` has examples. Without arguments all examples run,
//! otherwise the given files.
//!
//! ```text
//! program    = { definition }
//! definition = "func" name "(" [ name { "," name } ] ")" { statement } "end"
//!            | "array" name ( "[" number "]" | "=" "[" element { "," element } "]" )
//! element    = [ "-" ] number | text | name
//! statement  = "let" name "=" expr | place "=" expr | expr | "return" expr | "print" expr { "," expr }
//!            | "while" expr "do" { statement } "end"
//!            | "if" expr "then" { statement } { "elif" expr "then" { statement } } [ "else" { statement } ] "end"
//! place      = name | expr "[" expr "]"
//! expr       = comparisons, + - * / %, and, or, not, "#" array (its length), calls, indices, numbers, texts, names
//! ```
//!
//! `print` writes a text literal as text, and everything else as a number. `put(character)` and
//! `put_text(array)` write the characters in a variable. The value of a function without `return`
//! is 0. A comment starts with `;`.

mod parser;
mod translate;

use std::error::Error;

/// Predefined functions of every program.
const PRELUDE: &str = include_str!("prelude.brook");

/// Runs a program and returns its output on the console of the device.
pub fn run(source: &str) -> Result<String, Box<dyn Error>> {
    let mut definitions = parser::parse(PRELUDE)?;
    definitions.extend(parser::parse(source)?);
    translate::run(&definitions)
}
