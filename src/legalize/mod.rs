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
mod bytes;
mod conditions;
mod convert;
mod dynamic;
mod pairs;
mod routines;
mod scalarize;
mod stacks;
mod table;
mod tables;
mod tls;
mod webs;
mod widen;

pub use conditions::Legality;
pub use dynamic::fixed;
pub use npu_mc::tables::{LegalizeAction, LegalizeCondition};
pub(crate) use scalarize::parts;
pub use widen::register_type;

use crate::error::{CompileError, Refusal};
use crate::isa::Isa;
use crate::settings::Atomics;
use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::entity::EntityRef;
use cranelift_codegen::ir::{Function, Inst, InstBuilder, MemFlagsData, Opcode, Type, Value, types};

/// What becomes of an opcode on a type under a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// When it counts.
    pub when: LegalizeCondition,
    /// What the compiler does.
    pub action: LegalizeAction,
    /// Of refusals: what is refused, with `$op` for the opcode and `$ty` for the type.
    pub what: &'static str,
    /// Of refusals: the nearest form that works.
    pub nearest_form: &'static str,
    /// Of [`LegalizeAction::LibCall`] and [`LegalizeAction::Scalarize`]: the routine of the runtime that does all of it, on the operands
    /// or on each lane of them; f16 is computed in f32. Empty if lowering says what is called.
    pub routine: &'static str,
}

impl Rule {
    /// What is refused, for an opcode and type; empty if nothing is.
    pub fn refusal(&self, opcode: Opcode, ty: Type) -> String {
        let text = self.what.replace("$op", &opcode.to_string());
        if text.contains("$ty") {
            text.replace("$ty", &ty.to_string())
        } else {
            text
        }
    }
}

/// What td says about an opcode on a type: rules with conditions and, last, one that always holds. Empty if CLIF has no such
/// form. The type of an instruction without a controlling type is [`INVALID`](cranelift_codegen::ir::types::INVALID).
pub fn rules(opcode: Opcode, ty: Type) -> &'static [Rule] {
    table::rules(opcode, table::column(ty))
}

/// Whether the opcode may be refused on the type, or the table says nothing about that.
pub(crate) fn may_refuse(opcode: Opcode, ty: Type) -> bool {
    table::REFUSABLE[opcode as usize] & (1 << table::column(ty)) != 0
}

/// Whether values of the type are compiled.
pub fn is_supported(ty: Type) -> bool {
    (table::column(ty) != table::OTHER || ty.is_dynamic_vector() || is_other(ty)) && !ty.is_invalid()
}

/// Whether the type is one of the vectors that the table does not list, which become other values first.
pub fn is_other(ty: Type) -> bool {
    ty.is_vector() && !ty.is_dynamic_vector() && table::column(ty) == table::OTHER
}

/// Whether values of the type are taken apart into their lanes: vectors that no register holds.
pub fn is_split(ty: Type) -> bool {
    is_other(ty) && register_type(ty).is_none()
}

/// The types of values that are compiled.
pub fn types() -> impl Iterator<Item = Type> {
    table::TYPES.iter().copied().filter(|ty| !ty.is_invalid())
}

/// What is said of values of all other types.
pub fn unsupported() -> &'static Rule {
    &table::UNSUPPORTED
}

/// Every action with its meaning.
pub fn actions() -> &'static [(LegalizeAction, &'static str)] {
    &table::LEGALIZE_ACTIONS
}

/// Every condition with its meaning.
pub fn conditions() -> &'static [(LegalizeCondition, &'static str)] {
    &table::LEGALIZE_CONDITIONS
}

/// Rewrites, ahead of everything else, vectors that no register holds as they are. Gives the instructions on them that are refused, in whose place
/// there are zeros, so that validation finds what else is refused.
///
/// # Errors
///
/// [`CompileError::Internal`] if an invariant does not hold.
pub(crate) fn vectors(func: &mut Function, isa: &Isa, types: TypeSet) -> Result<Vec<Refusal>, CompileError> {
    if types.has_vectors() && bytes::has_big_endian(func) {
        bytes::run(func);
    }
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

/// Puts zeros in place of the results of a refused instruction, and removes it.
fn replace_by_zeros(func: &mut Function, inst: Inst) {
    let mut cursor = FuncCursor::new(func).at_inst(inst);
    for result in cursor.func.dfg.inst_results(inst).to_vec() {
        let ty = cursor.func.dfg.value_type(result);
        let zero = zero(&mut cursor, ty);
        cursor.func.dfg.clear_results(inst);
        cursor.func.dfg.change_to_alias(result, zero);
    }
    cursor.func.layout.remove_inst(inst);
}

/// A zero of a type, in every lane of a vector.
fn zero(cursor: &mut FuncCursor<'_>, ty: Type) -> Value {
    let lane = ty.lane_type();
    let bits = lane.as_int();
    let number = match bits {
        types::I128 => {
            let half = cursor.ins().iconst(types::I64, 0);
            cursor.ins().iconcat(half, half)
        }
        _ => cursor.ins().iconst(bits, 0),
    };
    let scalar = match lane == bits {
        true => number,
        false => cursor.ins().bitcast(lane, MemFlagsData::new(), number),
    };
    match ty.is_vector() {
        true => cursor.ins().splat(ty, scalar),
        false => scalar,
    }
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

/// A set of opcodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct OpcodeSet([u64; 4]);

impl OpcodeSet {
    /// Adds an opcode.
    pub fn insert(&mut self, opcode: Opcode) {
        self.0[usize::from(opcode as u8 >> 6)] |= 1 << (opcode as u8 & 63);
    }

    /// Whether it was added.
    pub fn contains(&self, opcode: Opcode) -> bool {
        self.0[usize::from(opcode as u8 >> 6)] & 1 << (opcode as u8 & 63) != 0
    }
}

/// A set of types, as far as the table tells them apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TypeSet(u16);

impl TypeSet {
    /// No type: instructions without one are always in the set.
    pub fn new() -> Self {
        Self(1 << const { table::column(cranelift_codegen::ir::types::INVALID) })
    }

    /// The types of all values of a function, also of those that no instruction in the layout has.
    pub fn of(func: &Function) -> Self {
        let mut types = Self::new();
        for value in 0..func.dfg.num_values() {
            types.insert(func.dfg.value_type(Value::new(value)));
        }
        types
    }

    /// Adds a type.
    pub fn insert(&mut self, ty: Type) {
        self.0 |= 1 << table::column(ty);
    }

    /// Whether any of them is a vector.
    pub(crate) fn has_vectors(self) -> bool {
        let mut columns = 0..table::COLUMNS;
        columns.any(|column| {
            self.0 & 1 << column != 0
                && (column == table::OTHER || table::TYPES.get(column).is_some_and(|ty| ty.is_vector()))
        })
    }

    /// Whether all of them are in the table.
    pub fn all_supported(self) -> bool {
        self.0 & (1 << table::OTHER) == 0
    }

    /// Whether the opcode may be refused on one of them, or the table says nothing about that.
    pub fn may_refuse(self, opcode: Opcode) -> bool {
        table::REFUSABLE[opcode as usize] & self.0 != 0
    }
}

impl Default for TypeSet {
    fn default() -> Self {
        Self::new()
    }
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
    fn there_is_every_routine() {
        let cells = Opcode::all()
            .iter()
            .flat_map(|&opcode| (0..table::COLUMNS).map(move |column| (opcode, column)));
        for (opcode, column) in cells {
            for rule in table::rules(opcode, column)
                .iter()
                .filter(|rule| !rule.routine.is_empty())
            {
                assert!(
                    crate::runtime::Routine::named(rule.routine).is_some(),
                    "{opcode}: {}",
                    rule.routine
                );
            }
        }
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
