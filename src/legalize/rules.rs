//! What td says about opcodes and types, and sets of both.

use super::table;
use crate::routine::Routine;
use cranelift_codegen::entity::EntityRef;
use cranelift_codegen::ir::{Function, Opcode, Type, Value};
use npu_mc::tables::{LegalizeAction, LegalizeCondition};

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
    /// or on each lane of them; f16 is computed in f32. `None` if lowering chooses what is called.
    pub routine: Option<Routine>,
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

/// How many machine instructions an opcode on a type is, alone in a function at `opt_level=none`, by td's `InstructionCounts`; `None` if CLIF has no
/// such form, a routine of the runtime does it, or the type has no column.
pub fn instructions(opcode: Opcode, ty: Type) -> Option<u32> {
    table::instructions(opcode, table::column(ty))
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
