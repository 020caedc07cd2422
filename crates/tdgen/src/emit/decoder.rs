//! Generates the decision trees as nested matches.

use super::line;
use crate::model::Target;
use crate::tree::{self, Candidate, Tree};

pub(super) fn emit(target: &Target, out: &mut String) {
    let candidates: Vec<Candidate> = target
        .instructions
        .iter()
        .enumerate()
        .filter(|(_, i)| i.decodable)
        .map(|(id, i)| Candidate {
            base: i.base & i.fixed,
            fixed: i.fixed,
            id,
        })
        .collect();
    line!(out, "\n/// The opcode of a word, all constant bits checked.");
    line!(out, "pub(crate) fn opcode_of(word: u32) -> Option<Opcode> {{");
    let leaf = |id: usize| format!("Some(Opcode::{})", target.instructions[id].record);
    node(out, &tree::build(&candidates), 1, &leaf, "None");
    line!(out, "}}");
}

/// Writes a node as an expression on separate lines.
pub(super) fn node(out: &mut String, tree: &Tree, depth: usize, leaf: &dyn Fn(usize) -> String, fail: &str) {
    let pad = "    ".repeat(depth);
    let Tree::Switch { lsb, width, arms } = tree else {
        line!(out, "{pad}{}", flat(tree, leaf, fail));
        return;
    };
    line!(out, "{pad}match {} {{", field(*lsb, *width));
    for (value, arm) in arms {
        if let Tree::Switch { .. } = arm {
            line!(out, "{pad}    {value:#x} => {{");
            node(out, arm, depth + 2, leaf, fail);
            line!(out, "{pad}    }}");
        } else {
            line!(out, "{pad}    {value:#x} => {},", flat(arm, leaf, fail));
        }
    }
    line!(out, "{pad}    _ => {fail},");
    line!(out, "{pad}}}");
}

/// Returns a node without arms as an expression on one line.
fn flat(tree: &Tree, leaf: &dyn Fn(usize) -> String, fail: &str) -> String {
    match tree {
        Tree::Leaf { mask: 0, id, .. } => leaf(*id),
        Tree::Leaf { mask, value, id } => format!(
            "if word & {mask:#010x} == {value:#010x} {{ {} }} else {{ {fail} }}",
            leaf(*id)
        ),
        Tree::Fail | Tree::Switch { .. } => fail.to_owned(),
    }
}

/// Returns an expression for the unsigned value of a field of `word`.
pub(super) fn field(lsb: u32, width: u32) -> String {
    let shifted = match lsb {
        0 => "word".to_owned(),
        _ => format!("(word >> {lsb})"),
    };
    format!("{shifted} & {:#x}", tree::low_mask(width))
}
