//! Parses a program in memory and reads its records: `cargo run -p tablegen --example records`.

use std::path::PathBuf;

use tablegen::{BitValue, Options, parse_str};

const MAIN: &str = r#"
include "formats.td"
def ADD : Inst<0b0001, (ops "rd", "ra", "rb")> { let Commutes = 1; }
def NOT : Inst<0b0010, (ops "rd", "ra")>;
"#;

const FORMATS: &str = r#"
class Operands; def ops : Operands;
class Inst<bits<4> opcode, dag args> {
  bits<3> rd; bits<3> ra;
  bits<12> Word; let Word{11-8} = opcode; let Word{5-3} = rd; let Word{2-0} = ra;
  dag Args = args;
  bit Commutes = 0;
}
"#;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Virtual files, which take precedence over the file system.
    let mut options = Options::default();
    options.files.insert(PathBuf::from("formats.td"), FORMATS.to_owned());
    let parsed = parse_str("main.td", MAIN, &options);
    eprint!("{}", parsed.render_diagnostics());
    if parsed.has_errors() {
        return Err("the program is wrong".into());
    }
    for inst in parsed.records.defs_derived_from("Inst") {
        let bits = inst.bits("Word")?;
        let word: String = bits
            .iter()
            .rev()
            .map(|bit| match bit {
                BitValue::Zero => '0',
                BitValue::One => '1',
                BitValue::Unset => '.',
                BitValue::Field { field, .. } => field.chars().last().unwrap_or('?'),
            })
            .collect();
        let place = parsed.sources.location(inst.span());
        let args = inst.dag("Args")?.len();
        println!("{}:{} {} {word} {args} operands", place.file, place.line, inst.name());
        if inst.bit("Commutes")? {
            println!("    commutes");
        }
    }
    Ok(())
}
