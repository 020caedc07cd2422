//! The language Brook and its compiler.
//!
//! Brook has functions, numbers of 32 bits and arrays of them; a text is an array of its characters, and a function is a value
//! too. `programs/` has examples. Without arguments they are all run, otherwise the files that are named.
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
//! `print` writes a text that stands there as it is, and everything else as a number. `put(character)` and `put_text(array)`
//! write what a variable holds. The value of a function that ends without `return` is 0. A comment starts with `;`.

mod parser;
mod translate;

use std::error::Error;

/// Functions that every program has.
const PRELUDE: &str = include_str!("prelude.brook");

/// Runs one program and gives what it wrote to the console of the device.
pub fn run(source: &str) -> Result<String, Box<dyn Error>> {
    let mut definitions = parser::parse(PRELUDE)?;
    definitions.extend(parser::parse(source)?);
    translate::run(&definitions)
}
