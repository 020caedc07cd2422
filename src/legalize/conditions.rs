//! Evaluates the conditions of legalization rules, on the settings and on an instruction.

use super::rules::{Rule, rules};
use crate::settings::{Atomics, TargetSettings};
use crate::shape::fixed;
use cranelift_codegen::ir::{Function, GlobalValueData, Inst, InstructionData, MemFlagsData, Opcode, Type};
use cranelift_codegen::settings::Flags;
use npu_mc::tables::{LegalizeAction, LegalizeCondition};

/// The legalization table under the settings of a target.
#[derive(Clone, Copy)]
pub struct Legality<'a> {
    flags: &'a Flags,
    settings: &'a TargetSettings,
}

impl<'a> Legality<'a> {
    /// Creates the view of the table under these settings.
    pub fn new(flags: &'a Flags, settings: &'a TargetSettings) -> Self {
        Self { flags, settings }
    }

    /// Returns the action for the opcode on the type, ignoring conditions on the instruction.
    /// Returns `None` if CLIF has no such form.
    pub fn action(&self, opcode: Opcode, ty: Type) -> Option<LegalizeAction> {
        self.rule_on(opcode, ty).map(|rule| rule.action)
    }

    /// Returns the rule for the opcode on the type, ignoring conditions on the instruction. Returns
    /// `None` if CLIF has no such form.
    pub(crate) fn rule_on(&self, opcode: Opcode, ty: Type) -> Option<&'static Rule> {
        let mut rules = rules(opcode, ty).iter();
        rules.find(|rule| self.of_settings(rule.when) == Some(true))
    }

    /// Returns the rule for an instruction, without [`LegalizeCondition::BadCallee`]. Returns
    /// `None` if CLIF has no such form.
    pub fn rule(&self, func: &Function, inst: Inst) -> Option<&'static Rule> {
        let opcode = func.dfg.insts[inst].opcode();
        let rules = rules(opcode, func.dfg.ctrl_typevar(inst));
        rules.iter().find(|rule| self.holds(rule.when, func, inst))
    }

    /// Returns whether a condition holds for an instruction. [`LegalizeCondition::BadCallee`] is
    /// not decided here and counts as false.
    pub fn holds(&self, condition: LegalizeCondition, func: &Function, inst: Inst) -> bool {
        self.of_settings(condition)
            .unwrap_or_else(|| of_instruction(condition, func, inst))
    }

    /// Returns whether the runtime performs f32 arithmetic.
    pub(crate) fn has_soft_float(&self) -> bool {
        self.settings.strict_float || !self.settings.has_fpu
    }

    /// Returns whether a condition on the settings holds, or `None` for a condition on the
    /// instruction.
    fn of_settings(&self, condition: LegalizeCondition) -> Option<bool> {
        match condition {
            LegalizeCondition::Always => Some(true),
            LegalizeCondition::SoftFloat => Some(self.has_soft_float()),
            LegalizeCondition::NoFloatUnit => Some(!self.settings.has_fpu),
            LegalizeCondition::AtomicsRefused => Some(self.settings.atomics == Atomics::Refuse),
            LegalizeCondition::AtomicsUnlocked => {
                Some(!matches!(self.settings.atomics, Atomics::Core | Atomics::Machine))
            }
            LegalizeCondition::AtomicsOfMachine => Some(self.settings.atomics == Atomics::Machine),
            LegalizeCondition::PinnedReg => Some(self.flags.enable_pinned_reg()),
            LegalizeCondition::NoPinnedReg => Some(!self.flags.enable_pinned_reg()),
            LegalizeCondition::MaybeUnaligned
            | LegalizeCondition::OperandIsNarrow
            | LegalizeCondition::LanesDiffer
            | LegalizeCondition::DynamicSize
            | LegalizeCondition::ThreadLocal
            | LegalizeCondition::NotThreadLocal
            | LegalizeCondition::NotASymbol
            | LegalizeCondition::BadCallee => None,
        }
    }
}

fn of_instruction(condition: LegalizeCondition, func: &Function, inst: Inst) -> bool {
    let dfg = &func.dfg;
    let operand = || dfg.inst_values(inst).next().map(|value| dfg.value_type(value));
    let result = || dfg.inst_results(inst).first().map(|&value| dfg.value_type(value));
    match condition {
        LegalizeCondition::MaybeUnaligned => !flags(func, inst).aligned(),
        LegalizeCondition::OperandIsNarrow => operand().is_some_and(|ty| ty.lane_bits() < 32),
        LegalizeCondition::LanesDiffer => {
            let lanes = |ty: Option<Type>| ty.and_then(fixed).map(Type::lane_count);
            lanes(operand()) != lanes(result())
        }
        LegalizeCondition::DynamicSize => operand().is_some_and(Type::is_dynamic_vector),
        LegalizeCondition::ThreadLocal => {
            matches!(global(func, inst), Some(GlobalValueData::Symbol { tls: true, .. }))
        }
        LegalizeCondition::NotThreadLocal => {
            !matches!(global(func, inst), Some(GlobalValueData::Symbol { tls: true, .. }))
        }
        LegalizeCondition::NotASymbol => !matches!(global(func, inst), Some(GlobalValueData::Symbol { .. })),
        LegalizeCondition::Always => true,
        LegalizeCondition::SoftFloat
        | LegalizeCondition::NoFloatUnit
        | LegalizeCondition::AtomicsRefused
        | LegalizeCondition::AtomicsUnlocked
        | LegalizeCondition::AtomicsOfMachine
        | LegalizeCondition::PinnedReg
        | LegalizeCondition::NoPinnedReg
        | LegalizeCondition::BadCallee => false,
    }
}

/// Returns the flags of a memory access, or default flags for any other instruction.
fn flags(func: &Function, inst: Inst) -> MemFlagsData {
    let flags = func.dfg.insts[inst].memflags();
    flags.map_or_else(MemFlagsData::new, |flags| func.dfg.mem_flags[flags])
}

fn global(func: &Function, inst: Inst) -> Option<&GlobalValueData> {
    match func.dfg.insts[inst] {
        InstructionData::UnaryGlobalValue { global_value, .. } => Some(&func.global_values[global_value]),
        _ => None,
    }
}
