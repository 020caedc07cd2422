//! The decision trees as nested matches.

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
    line!(
        out,
        "\n/// The opcode of a word, all constant bits checked."
    );
    line!(
        out,
        "pub(crate) fn opcode_of(word: u32) -> Option<Opcode> {{"
    );
    let leaf = |id: usize| format!("Some(Opcode::{})", target.instructions[id].record);
    node(out, &tree::build(&candidates), 1, &leaf, "None");
    line!(out, "}}");
}

/// Writes a node as an expression.
pub(super) fn node(
    out: &mut String,
    tree: &Tree,
    depth: usize,
    leaf: &dyn Fn(usize) -> String,
    fail: &str,
) {
    let pad = "    ".repeat(depth);
    match tree {
        Tree::Fail => line!(out, "{pad}{fail}"),
        Tree::Leaf { mask: 0, id, .. } => line!(out, "{pad}{}", leaf(*id)),
        Tree::Leaf { mask, value, id } => line!(
            out,
            "{pad}if word & {mask:#010x} == {value:#010x} {{ {} }} else {{ {fail} }}",
            leaf(*id)
        ),
        Tree::Switch { lsb, width, arms } => {
            line!(
                out,
                "{pad}match word >> {lsb} & {:#x} {{",
                tree::low_mask(*width)
            );
            for (value, arm) in arms {
                line!(out, "{pad}    {value:#x} => {{");
                node(out, arm, depth + 2, leaf, fail);
                line!(out, "{pad}    }}");
            }
            line!(out, "{pad}    _ => {fail},");
            line!(out, "{pad}}}");
        }
    }
}
