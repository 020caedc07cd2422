//! Golden files, a small assembler for them, and random words.

use npu_mc::{Inst, Opcode, Operand, OperandKind, Operands, RegFile, SReg, VReg};
use std::path::PathBuf;

/// The text of a golden file: from the folder named by `NAPLESPU_GOLDENS`, or the project's own copy.
pub fn golden(name: &str) -> String {
    let folder = std::env::var_os("NAPLESPU_GOLDENS").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/goldens"),
        PathBuf::from,
    );
    let path = folder.join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// The rows of a golden file as columns, without comments and, if `header` is its first column, the heading.
pub fn rows<'a>(text: &'a str, header: &str) -> Vec<Vec<&'a str>> {
    text.lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(|line| line.split('\t').collect::<Vec<_>>())
        .filter(|columns| columns[0] != header)
        .collect()
}

/// Assembles one line with the instruction table alone: the mnemonic and the kinds of the operands choose the
/// record, the first of td's order if several fit, unless one is asked for by name.
pub fn assemble(text: &str, record: Option<&str>) -> Result<Inst, String> {
    let (mnemonic, rest) = text.split_once(' ').unwrap_or((text, ""));
    let tokens = operand_tokens(rest)?;
    let mut why = format!("no instruction `{mnemonic}`");
    for &opcode in Opcode::ALL {
        let desc = opcode.desc();
        if desc.mnemonic != mnemonic || record.is_some_and(|r| r != desc.name) {
            continue;
        }
        match fit(opcode, &tokens) {
            Ok(operands) => return Ok(Inst { opcode, operands }),
            Err(e) => why = format!("`{}`: {e}", desc.asm),
        }
    }
    Err(why)
}

/// Comma-separated operands; `off(base)` becomes base and offset.
fn operand_tokens(text: &str) -> Result<Vec<Operand>, String> {
    let mut out = Vec::new();
    for token in text.split(',').map(str::trim).filter(|t| !t.is_empty()) {
        match token.strip_suffix(')').and_then(|t| t.split_once('(')) {
            Some((offset, base)) => {
                out.push(operand(base)?);
                out.push(match offset {
                    "" => Operand::Imm(0),
                    text => operand(text)?,
                });
            }
            None => out.push(operand(token)?),
        }
    }
    Ok(out)
}

fn operand(token: &str) -> Result<Operand, String> {
    if let Some(r) = SReg::from_name(token) {
        return Ok(Operand::S(r));
    }
    if let Some(r) = VReg::from_name(token) {
        return Ok(Operand::V(r));
    }
    token
        .parse()
        .map(Operand::Imm)
        .map_err(|_| format!("`{token}` is no operand"))
}

fn fit(opcode: Opcode, tokens: &[Operand]) -> Result<Operands, String> {
    let kinds: Vec<OperandKind> = opcode.desc().operands.iter().map(|o| o.kind).collect();
    if kinds.len() != tokens.len() {
        return Err(format!("{} operands for {}", tokens.len(), kinds.len()));
    }
    for (kind, token) in kinds.iter().zip(tokens) {
        let fits = match kind.register_file() {
            Some(RegFile::Scalar) => matches!(token, Operand::S(_)),
            Some(RegFile::Vector) => matches!(token, Operand::V(_)),
            None => matches!(token, Operand::Imm(_)),
        };
        if !fits {
            return Err(format!("{token:?} is no {kind:?}"));
        }
    }
    Operands::from_slice(tokens).ok_or_else(|| "too many operands".to_owned())
}

/// A small generator of random numbers (a permuted counter), the same on every host.
pub struct Random(u64);

impl Random {
    /// Numbers from this seed.
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A random word.
    pub fn word(&mut self) -> u32 {
        self.bits() as u32
    }

    /// A number below `n`.
    pub fn below(&mut self, n: usize) -> usize {
        (self.bits() % n as u64) as usize
    }
}
