//! Reads `AsmString`: the assembly text of an instruction, with `$name` for an operand.

use super::operands::{Compound, Part};
use super::{fault, field_span};
use crate::model::AsmPiece;
use tablegen::{Diagnostic, Record, Span};

/// A piece of text or an operand name.
enum Token {
    Text(String),
    Name(String),
}

/// Splits the assembly text of an instruction into pieces that refer to its parts.
pub(super) fn pieces(
    record: Record<'_>,
    asm: &str,
    parts: &[Part],
    compounds: &[Compound],
) -> Result<Vec<AsmPiece>, Diagnostic> {
    let span = field_span(record, "AsmString");
    let mut pieces = Vec::new();
    for token in tokens(asm, span)? {
        match token {
            Token::Text(text) => push_text(&mut pieces, &text),
            Token::Name(name) => match compounds.iter().find(|c| c.name == name) {
                Some(compound) => expand(compound, parts, &mut pieces)?,
                None => pieces.push(AsmPiece::Operand(part_named(record, &name, parts, span)?)),
            },
        }
    }
    for (i, part) in parts.iter().enumerate() {
        let shown = pieces.iter().any(|p| match p {
            AsmPiece::Operand(index) | AsmPiece::OperandUnlessZero(index) => *index == i,
            AsmPiece::Text(_) => false,
        });
        if !shown {
            return Err(fault(
                span,
                format!(
                    "operand `${}` of `{}` does not appear in `AsmString`",
                    part.name,
                    record.name()
                ),
            ));
        }
    }
    Ok(pieces)
}

fn part_named(record: Record<'_>, name: &str, parts: &[Part], span: Span) -> Result<usize, Diagnostic> {
    parts.iter().position(|p| p.name == name).ok_or_else(|| {
        fault(
            span,
            format!(
                "`AsmString` of `{}` names `${name}`, which is not an operand of it",
                record.name()
            ),
        )
    })
}

/// Adds the text of a compound operand. An immediate before a parenthesis is not printed if it is
/// zero.
fn expand(compound: &Compound, parts: &[Part], pieces: &mut Vec<AsmPiece>) -> Result<(), Diagnostic> {
    let tokens = tokens(&compound.format, compound.span)?;
    for (i, token) in tokens.iter().enumerate() {
        let name = match token {
            Token::Text(text) => {
                push_text(pieces, text);
                continue;
            }
            Token::Name(name) => name,
        };
        let own = compound.renamed.iter().find(|(class, _)| class == name);
        let index = own.and_then(|(_, own)| parts.iter().position(|p| p.name == *own));
        let Some(index) = index else {
            return Err(fault(
                compound.span,
                format!(
                    "the text `{}` of operand class `{}` names `${name}`, which is not a sub-operand of it",
                    compound.format, compound.class
                ),
            ));
        };
        let before_parenthesis = matches!(tokens.get(i + 1), Some(Token::Text(text)) if text.starts_with('('));
        pieces.push(if before_parenthesis {
            AsmPiece::OperandUnlessZero(index)
        } else {
            AsmPiece::Operand(index)
        });
    }
    Ok(())
}

fn push_text(pieces: &mut Vec<AsmPiece>, text: &str) {
    match pieces.last_mut() {
        Some(AsmPiece::Text(last)) => last.push_str(text),
        _ => pieces.push(AsmPiece::Text(text.to_owned())),
    }
}

/// Splits text at `$name` and `${name}`. `$$` is a dollar sign; a tab becomes a blank.
fn tokens(text: &str, span: Span) -> Result<Vec<Token>, Diagnostic> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut out = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        if at > 0 {
            out.push(Token::Text(rest[..at].replace('\t', " ")));
        }
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix('$') {
            out.push(Token::Text("$".to_owned()));
            rest = after;
            continue;
        }
        let (name, after) = match rest.strip_prefix('{') {
            Some(inner) => inner.split_once('}').unwrap_or(("", "")),
            None => rest.split_at(rest.find(|c| !is_name(c)).unwrap_or(rest.len())),
        };
        if name.is_empty() || !name.chars().all(is_name) {
            return Err(fault(span, format!("`{text}`: `$` is not followed by an operand name")));
        }
        out.push(Token::Name(name.to_owned()));
        rest = after;
    }
    if !rest.is_empty() {
        out.push(Token::Text(rest.replace('\t', " ")));
    }
    Ok(out)
}
