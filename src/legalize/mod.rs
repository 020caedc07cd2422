//! Legalization by opcode and type: how each CLIF instruction is implemented on each type.
//!
//! # Contract
//!
//! `td/NaplesPULegalize.td` decides; this module answers queries about it. Each opcode and type has
//! a list of [`Rule`]s. The first rule whose condition holds selects the action, in LLVM's terms
//! ([`LegalizeAction`]). The type is the controlling type of the instruction: the type of the
//! result, or of the first operand if the result does not determine it.
//!
//! * [`rules`] returns all rules of td for an opcode and type.
//! * [`Legality`] applies the settings: [`Legality::action`] is for an opcode and type,
//!   [`Legality::rule`] for one instruction.
//! * `validate` refuses functions by these rules, and `docs/clif-support.md` is generated from
//!   them.
//! * `vectors` replaces vectors that no register holds, before `validate`. `run` rewrites other
//!   instructions to CLIF after it; each kind has a file. `run` gets the set of opcodes from
//!   `validate`, so a function without these opcodes costs nothing.
//!
//! # Limits
//!
//! Other code decides whether a callee can be called ([`LegalizeCondition::BadCallee`]). Whether an
//! address is known to be aligned depends on its origin; here, an access without the flag may be
//! unaligned.

mod atomics;
mod casts;
mod conditions;
mod convert;
mod dynamic;
mod lane_memory;
mod lanewise;
mod pairs;
mod partitions;
mod routines;
mod rules;
mod scalarize;
mod stacks;
mod table;
mod tables;
mod tls;
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

/// Rewrites vectors that no register holds, before any other pass. Returns the refused instructions
/// on such vectors. Zeros replace their results, so that validation continues.
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

/// Rewrites instructions to other CLIF instructions. The function has been validated, and `opcodes`
/// contains all its opcodes.
///
/// # Errors
///
/// [`CompileError::Internal`] if the function has no room for more memory flags.
pub(crate) fn run(func: &mut Function, isa: &Isa, opcodes: &OpcodeSet) -> Result<(), CompileError> {
    if opcodes.has_any(&atomics::OPCODES) {
        // The runtime implements the lock itself with plain accesses.
        let lock = match isa.settings().atomics {
            _ if isa.is_for_runtime() => None,
            Atomics::Core => Some(atomics::Lock::Core),
            Atomics::Machine => Some(atomics::Lock::Machine),
            Atomics::SingleThread | Atomics::Refuse => None,
        };
        atomics::run(func, lock)?;
    }
    if opcodes.has_any(&convert::OPCODES) {
        convert::run(func);
    }
    if opcodes.has_any(&stacks::OPCODES) {
        stacks::run(func);
    }
    if opcodes.has_any(&tls::OPCODES) && tls::has_symbols(func) {
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
        // CLIF has no operand type that is wide or narrow enough for these. `extract_vector` is
        // removed because it takes dynamic vectors only.
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
