//! Queries td's legalization rules, and defines sets of opcodes and types.

use super::table;
use crate::routine::Routine;
use cranelift_codegen::entity::EntityRef;
use cranelift_codegen::ir::{Function, Opcode, Type, Value};
use npu_mc::tables::{LegalizeAction, LegalizeCondition};

/// The action for an opcode on a type under a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The condition of the rule.
    pub when: LegalizeCondition,
    /// The action of the compiler.
    pub action: LegalizeAction,
    /// For refusals: the refused form, with `$op` for the opcode and `$ty` for the type.
    pub what: &'static str,
    /// For refusals: the nearest supported form.
    pub nearest_form: &'static str,
    /// For [`LegalizeAction::LibCall`] and [`LegalizeAction::Scalarize`]: the routine of the
    /// runtime for the whole operation, on the operands or on each lane; f16 is computed in f32.
    /// `None` if lowering selects the routine.
    pub routine: Option<Routine>,
}

impl Rule {
    /// Returns the text of the refused form for an opcode and type; empty if the rule does not
    /// refuse.
    pub fn refusal(&self, opcode: Opcode, ty: Type) -> String {
        let text = self.what.replace("$op", &opcode.to_string());
        if text.contains("$ty") {
            text.replace("$ty", &ty.to_string())
        } else {
            text
        }
    }
}

/// Returns td's rules for an opcode on a type: conditional rules, and last a rule that always
/// holds. The list is empty if CLIF has no such form. The type of an instruction without a
/// controlling type is [`INVALID`](cranelift_codegen::ir::types::INVALID).
pub fn rules(opcode: Opcode, ty: Type) -> &'static [Rule] {
    table::rules(opcode, table::column(ty))
}

/// Returns whether the opcode may be refused on the type, or has no rule for it.
pub(crate) fn may_refuse(opcode: Opcode, ty: Type) -> bool {
    table::REFUSABLE[opcode as usize] & (1 << table::column(ty)) != 0
}

/// Returns the number of machine instructions of an opcode on a type, in a function of its own at
/// `opt_level=none`, by td's `InstructionCounts`. Returns `None` if CLIF has no such form, a
/// routine of the runtime implements it, or the type has no column.
pub fn instructions(opcode: Opcode, ty: Type) -> Option<u32> {
    table::instructions(opcode, table::column(ty))
}

/// Returns the supported types of values.
pub fn types() -> impl Iterator<Item = Type> {
    table::TYPES.iter().copied().filter(|ty| !ty.is_invalid())
}

/// Returns the refusal for values of all other types.
pub fn unsupported() -> &'static Rule {
    &table::UNSUPPORTED
}

/// Returns every action with its meaning.
pub fn actions() -> &'static [(LegalizeAction, &'static str)] {
    &table::LEGALIZE_ACTIONS
}

/// Returns every condition with its meaning.
pub fn conditions() -> &'static [(LegalizeCondition, &'static str)] {
    &table::LEGALIZE_CONDITIONS
}

/// A set of opcodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct OpcodeSet([u64; 4]);

impl OpcodeSet {
    /// Returns the opcodes of a function. Passes use it to skip functions without their opcodes.
    pub fn of(func: &Function) -> Self {
        let mut set = Self::default();
        for block in func.layout.blocks() {
            for inst in func.layout.block_insts(block) {
                set.insert(func.dfg.insts[inst].opcode());
            }
        }
        set
    }

    /// Returns whether the set contains one of the opcodes.
    pub fn has_any(&self, opcodes: &[Opcode]) -> bool {
        opcodes.iter().any(|&opcode| self.contains(opcode))
    }

    /// Adds an opcode.
    pub fn insert(&mut self, opcode: Opcode) {
        self.0[usize::from(opcode as u8 >> 6)] |= 1 << (opcode as u8 & 63);
    }

    /// Returns whether the set contains the opcode.
    pub fn contains(&self, opcode: Opcode) -> bool {
        self.0[usize::from(opcode as u8 >> 6)] & 1 << (opcode as u8 & 63) != 0
    }
}

/// A set of types, with one element per column of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TypeSet(u16);

impl TypeSet {
    /// Creates a set without types. Instructions without a controlling type are always in the set.
    pub fn new() -> Self {
        Self(1 << const { table::column(cranelift_codegen::ir::types::INVALID) })
    }

    /// Returns the types of all values of a function, including values of instructions outside the
    /// layout.
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

    /// Returns whether the table has a column for each type of the set.
    pub fn all_supported(self) -> bool {
        self.0 & (1 << table::OTHER) == 0
    }

    /// Returns whether the opcode may be refused on a type of the set, or has no rule for one.
    pub fn may_refuse(self, opcode: Opcode) -> bool {
        table::REFUSABLE[opcode as usize] & self.0 != 0
    }
}

impl Default for TypeSet {
    fn default() -> Self {
        Self::new()
    }
}
