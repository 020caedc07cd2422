//! Tests the origins of instructions: each instruction of the filetests' functions has one, and
//! rules have correct positions.

use crate::compiled::{FUNCTIONS, codes, isa};
use cranelift_codegen::Context;
use cranelift_codegen::control::ControlPlane;
use cranelift_naplespu::explain::{Explanation, Producer, RULES, Reason};
use cranelift_naplespu::{CompiledCode, Compiler, StageRequest};
use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Calls `look` for each function that compiles, with its explanation. The code must be the same as
/// without one.
fn for_all(opt_level: &str, mut look: impl FnMut(&str, &CompiledCode, &Explanation, &Context)) {
    let isa = isa(opt_level, &[]);
    let mut compiler = Compiler::new();
    for (function, code) in FUNCTIONS.iter().zip(codes(opt_level)) {
        let Some(code) = code else { continue };
        let mut ctx = Context::for_function(function.clone());
        let control = &mut ControlPlane::default();
        let explained = compiler.compile_explained(&isa, &mut ctx, control, StageRequest::default());
        let (same, explanation) = explained.unwrap();
        let name = function.name.to_string();
        assert_eq!(code.bytes, same.bytes, "{name}");
        assert_eq!(code.relocs, same.relocs, "{name}");
        look(&name, code, &explanation, &ctx);
    }
}

#[test]
fn every_instruction_has_a_reason() {
    let mut producers = HashSet::new();
    let mut seen = HashSet::new();
    for opt_level in ["none", "speed"] {
        for_all(opt_level, |name, code, explanation, ctx| {
            let padding = code.pool_start as usize / 4 - explanation.insts.len();
            assert!(
                padding < 16 && (padding == 0 || code.pool_start as usize != code.bytes.len()),
                "{name}"
            );
            assert_eq!(
                explanation
                    .vcode
                    .iter()
                    .filter_map(|line| line.number)
                    .collect::<Vec<_>>(),
                (0..explanation.vcode_insts.len()).collect::<Vec<_>>(),
                "{name}"
            );
            for known in explanation.insts.iter().chain(&explanation.vcode_insts) {
                match &known.reason {
                    Reason::Rules(rules) => {
                        // Rules of other terms are only used by rules for CLIF instructions.
                        let last = rules.last().unwrap();
                        let entries = ["lower", "lower_words", "lower_by_routine"];
                        assert!(entries.contains(&last.term), "{name}: {}", known.reason);
                        let inst = known.inst.unwrap_or_else(|| panic!("{name}: {}", known.reason));
                        assert!(ctx.func.layout.inst_block(inst).is_some(), "{name}: {}", known.reason);
                        assert!(
                            known.vcode.is_some_and(|number| number < explanation.vcode_insts.len()),
                            "{name}"
                        );
                        seen.extend(rules.iter().map(|rule| (rule.term, rule.place, rule.text)));
                    }
                    Reason::Producer(producer) => {
                        // Constants and edge moves belong to the instruction that uses them.
                        assert!(
                            !matches!(producer, Producer::Constant | Producer::Edge) || known.inst.is_some(),
                            "{name}: {known:?}"
                        );
                        producers.insert(*producer);
                    }
                }
            }
        });
    }
    assert!(!producers.contains(&Producer::Text));
    for producer in [
        Producer::Argument,
        Producer::Constant,
        Producer::Edge,
        Producer::TryCall,
        Producer::Move,
        Producer::Spill,
        Producer::Reload,
        Producer::Prologue,
        Producer::Epilogue,
        Producer::Landing,
        Producer::Trap,
        Producer::LoopCopies,
        Producer::Rotation,
        Producer::Hazard,
    ] {
        assert!(producers.contains(&producer), "nothing is a {}", producer.name());
    }
    assert!(seen.len() > 800, "{} of {} rules", seen.len(), RULES.len());
}

/// A position is `td/FILE:LINE`, which ` from ` may follow with another position, or
/// `isle/FILE:LINE`.
#[test]
fn rules_are_where_they_are_said_to_be() {
    let line = |place: &str| {
        let (file, line) = place.rsplit_once(':').unwrap();
        let text = fs::read_to_string(root().join(file)).unwrap_or_else(|error| panic!("{place}: {error}"));
        let line: usize = line.parse().unwrap();
        text.lines().nth(line - 1).unwrap().to_owned()
    };
    let [mut td, mut isle] = [0, 0];
    for rule in RULES {
        assert!(rule.text.starts_with("(rule") && rule.text.ends_with(')'), "{rule}");
        assert!(
            rule.text.contains(&format!("({} ", rule.term)) || rule.text.contains(&format!("({})", rule.term)),
            "{rule}"
        );
        for place in rule.place.split(" from ") {
            let line = line(place);
            if place.starts_with("isle/") {
                isle += 1;
                assert_eq!(line.trim_start(), rule.text.lines().next().unwrap(), "{rule}");
            } else {
                td += 1;
                assert!(
                    !line.trim().is_empty() && !line.trim_start().starts_with("//"),
                    "{rule}: {line}"
                );
            }
        }
    }
    assert!(td > 1000 && isle > 200, "{td} {isle}");
}
