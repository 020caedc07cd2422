//! What becomes of each CLIF instruction on each type, so that the machine can do it.
//!
//! # Contract
//!
//! `td/NaplesPULegalize.td` decides; this module answers questions about it. For each opcode and type there is a list of [`Rule`]s:
//! the first whose condition holds says what becomes of the instruction, in LLVM's terms ([`LegalizeAction`]). The type is the
//! controlling type of the instruction: that of the result or, where results say nothing, of the first operand.
//!
//! * [`rules`] has all that td says about an opcode and type.
//! * [`Legality`] knows the settings: [`Legality::action`] is about any such instruction, [`Legality::rule`] about one at hand.
//! * `validate` refuses functions by it, and `docs/clif-support.md` is made from it.
//! * `run` rewrites, on CLIF and before anything else, what becomes other CLIF, each kind in a file of its own. It knows from
//!   `validate` which opcodes there are, so functions without them pay nothing.
//!
//! # Limits
//!
//! Whether something can be called is decided elsewhere ([`LegalizeCondition::BadCallee`]), and whether an access is known to be
//! aligned depends on where its address comes from: here an access without the flag may be unaligned.

mod atomics;
mod casts;
mod conditions;
mod convert;
mod dynamic;
mod lanewise;
mod pairs;
mod routines;
mod rules;
mod scalarize;
mod stacks;
mod table;
mod tables;
mod tls;
mod webs;
mod zeros;

pub(crate) use casts::moved_lanes;
pub use conditions::Legality;
pub use npu_mc::tables::{LegalizeAction, LegalizeCondition};
pub(crate) use rules::{OpcodeSet, may_refuse};
pub use rules::{Rule, TypeSet, actions, conditions, instructions, rules, types, unsupported};
pub(crate) use table::{register_file, type_sets, value_type};

use crate::error::{CompileError, Refusal};
use crate::isa::Isa;
use crate::settings::Atomics;
use cranelift_codegen::ir::{Function, Opcode};

/// Rewrites, ahead of everything else, vectors that no register holds as they are. Gives the instructions on them that are refused, in whose place
/// there are zeros, so that validation finds what else is refused.
///
/// # Errors
///
/// [`CompileError::Internal`] if an invariant does not hold.
pub(crate) fn vectors(func: &mut Function, isa: &Isa, types: TypeSet) -> Result<Vec<Refusal>, CompileError> {
    if types.all_supported() {
        return Ok(Vec::new());
    }
    let mut refusals = Vec::new();
    if dynamic::has_dynamic(func) {
        refusals = dynamic::run(func);
    }
    refusals.extend(scalarize::run(func, isa)?);
    Ok(refusals)
}

/// Rewrites what becomes other CLIF instructions. The function has been validated, and has no other opcodes than these.
///
/// # Errors
///
/// [`CompileError::Internal`] if the function has no room for what it becomes.
pub(crate) fn run(func: &mut Function, isa: &Isa, opcodes: &OpcodeSet) -> Result<(), CompileError> {
    if atomics::OPCODES.iter().any(|&opcode| opcodes.contains(opcode)) {
        // The lock itself is made of plain accesses.
        let lock = match isa.settings().atomics {
            _ if isa.is_for_runtime() => None,
            Atomics::Core => Some(atomics::Lock::Core),
            Atomics::Machine => Some(atomics::Lock::Machine),
            Atomics::SingleThread | Atomics::Refuse => None,
        };
        atomics::run(func, lock)?;
    }
    if convert::OPCODES.iter().any(|&opcode| opcodes.contains(opcode)) {
        convert::run(func);
    }
    if stacks::OPCODES.iter().any(|&opcode| opcodes.contains(opcode)) {
        stacks::run(func);
    }
    if tls::OPCODES.iter().any(|&opcode| opcodes.contains(opcode)) && tls::has_symbols(func) {
        tls::run(func, opcodes.contains(Opcode::StackSwitch));
    }
    tables::run(func);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use cranelift_codegen::ir::types::INVALID;

    #[test]
    fn every_opcode_is_in_the_table() {
        for &opcode in Opcode::all() {
            let columns = 0..table::COLUMNS;
            let some = columns
                .into_iter()
                .any(|column| !table::rules(opcode, column).is_empty());
            assert!(some, "td/NaplesPULegalize.td has no record of `{opcode}`");
        }
    }

    #[test]
    fn the_last_rule_always_holds() {
        for &opcode in Opcode::all() {
            for column in 0..table::COLUMNS {
                let Some((last, conditional)) = table::rules(opcode, column).split_last() else {
                    continue;
                };
                assert_eq!(last.when, LegalizeCondition::Always, "{opcode}");
                for rule in conditional {
                    assert_ne!(rule.when, LegalizeCondition::Always, "{opcode}");
                }
            }
        }
    }

    #[test]
    fn there_is_a_rule_for_every_type_that_clif_allows() {
        let mut holes = Vec::new();
        for &opcode in Opcode::all() {
            let set = opcode.constraints().ctrl_typeset();
            let allowed = |ty| set.as_ref().map_or(ty == INVALID, |set| set.contains(ty));
            let all = types().chain([INVALID]);
            holes.extend(
                all.filter(|&ty| allowed(ty) && rules(opcode, ty).is_empty())
                    .map(|ty| format!("{opcode}.{ty}")),
            );
        }
        // No operand of these is wide or narrow enough; the last one is about dynamic vectors.
        let none = [
            "ireduce.i128",
            "uextend.i8",
            "sextend.i8",
            "fpromote.f16",
            "fdemote.f128",
        ];
        holes.retain(|form| !form.starts_with("extract_vector."));
        assert_eq!(holes, none);
    }

    #[test]
    fn a_type_that_clif_does_not_allow_has_no_rules() {
        for &opcode in Opcode::all() {
            let Some(set) = opcode.constraints().ctrl_typeset() else {
                continue;
            };
            for ty in types().filter(|&ty| !set.contains(ty)) {
                assert!(rules(opcode, ty).is_empty(), "{opcode}.{ty}");
            }
        }
    }
}
