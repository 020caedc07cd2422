//! Inlining of calls between the functions of a unit, such as a file or a module.
//!
//! A [`Unit`] knows the functions by the names that calls use. [`Unit::inline`] returns a function
//! with the calls replaced that are worth it. All functions of the unit stay, since other units may
//! call them. Cranelift does the replacement; this module chooses the calls, and keeps the source
//! locations.
//!
//! Inlined are small callees, callees with one call in the unit, and calls in loops. A function that
//! calls itself gets its own body once for each of its calls.

use crate::{Error, Target};
use cranelift_codegen::Context;
use cranelift_codegen::inline::{Inline, InlineCommand};
use cranelift_codegen::ir::{
    ArgumentPurpose, DebugTag, ExternalName, FuncRef, Function, Inst, InstructionData, Opcode, SourceLoc,
    UserExternalName, Value,
};
use cranelift_codegen::verify_function;
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

/// The size up to which every call is replaced, in machine instructions: about what a call needs with
/// the moves of its arguments, and the saves of the callee.
const SMALL: u32 = 24;

/// The size up to which calls in loops are replaced.
const IN_LOOP: u32 = 80;

/// The size up to which the only call is replaced.
const SINGLE_CALL: u32 = 160;

/// The size up to which a function gets its own body.
const RECURSIVE: u32 = 48;

/// The machine instructions that a function gets from its callees at most.
const GROWTH: u32 = 400;

/// The bytes of stack slots that an inlined callee may have.
const SLOT_BYTES: u32 = 256;

/// The estimated size of a call, in machine instructions.
const CALL: u32 = 6;

/// The name of a function, as calls have it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Name {
    /// A name of a CLIF text, without `%`.
    Text(Vec<u8>),
    /// A number in a name space.
    User(UserExternalName),
}

impl Name {
    /// Returns the name of a callee; `None` for a library call or a known symbol.
    fn of_callee(func: &Function, callee: FuncRef) -> Option<Self> {
        match &func.dfg.ext_funcs[callee].name {
            ExternalName::TestCase(name) => Some(Self::Text(name.raw().to_vec())),
            ExternalName::User(name) => Some(Self::User(func.params.user_named_funcs()[*name].clone())),
            _ => None,
        }
    }
}

/// A function of a unit that can be inlined.
#[derive(Debug)]
struct Callee {
    /// The function. Tags of its instructions are their source locations, because Cranelift copies
    /// only tags.
    func: Function,
    /// The estimated number of machine instructions.
    size: u32,
    /// The number of calls in the unit.
    calls: u32,
    /// Whether it reaches itself by calls in the unit.
    is_recursive: bool,
}

/// The functions of a unit that can be inlined.
#[derive(Debug, Default)]
pub struct Unit {
    callees: HashMap<Name, Callee>,
}

impl Unit {
    /// Creates a unit of valid functions.
    pub fn new<'a>(functions: impl IntoIterator<Item = (Name, &'a Function)>, target: &impl Target) -> Self {
        let functions: Vec<(Name, &Function)> = functions.into_iter().collect();
        let calls: HashMap<&Name, Vec<Name>> = functions.iter().map(|(name, func)| (name, called(func))).collect();
        let mut counts: HashMap<&Name, u32> = HashMap::new();
        for name in calls.values().flatten() {
            *counts.entry(name).or_default() += 1;
        }
        let mut callees = HashMap::new();
        for (name, func) in &functions {
            let count = counts.get(name).copied().unwrap_or_default();
            let size = size(func, target);
            // Cranelift's inliner requires valid functions.
            let fits = count > 0 && size <= SINGLE_CALL && can_be_inlined(func);
            if !fits || verify_function(func, target.flags()).is_err() {
                continue;
            }
            let callee = Callee {
                func: with_tags(func),
                size,
                calls: count,
                is_recursive: reaches(&calls, name),
            };
            callees.insert(name.clone(), callee);
        }
        Self { callees }
    }

    /// Returns the function with calls replaced by the bodies of callees; `None` if no call is.
    /// `name` is its name in the unit.
    ///
    /// # Errors
    ///
    /// [`Error::Cranelift`] if Cranelift's inliner fails.
    pub fn inline(&self, name: &Name, func: &Function, target: &impl Target) -> Result<Option<Function>, Error> {
        let has_callee = called(func).iter().any(|callee| self.callees.contains_key(callee));
        if !has_callee || !func.debug_tags.is_empty() || verify_function(func, target.flags()).is_err() {
            return Ok(None);
        }
        let mut context = Context::for_function(func.clone());
        let inliner = Inliner {
            unit: self,
            name,
            in_loops: calls_in_loops(&mut context),
            left: GROWTH,
        };
        let changed = context
            .inline(inliner)
            .map_err(|error| Error::Cranelift(error.to_string()))?;
        if !changed {
            return Ok(None);
        }
        let mut func = context.func;
        set_locations(&mut func);
        Ok(Some(func))
    }
}

/// Chooses the calls in a function.
struct Inliner<'a> {
    unit: &'a Unit,
    /// The name of the function.
    name: &'a Name,
    /// The calls of the original function that are in loops.
    in_loops: HashSet<Inst>,
    /// The number of machine instructions by which the function may still grow.
    left: u32,
}

impl Inline for Inliner<'_> {
    fn inline(
        &mut self,
        caller: &Function,
        call: Inst,
        opcode: Opcode,
        callee: FuncRef,
        arguments: &[Value],
    ) -> InlineCommand<'_> {
        let found = Name::of_callee(caller, callee).and_then(|name| self.unit.callees.get_key_value(&name));
        let Some((name, found)) = found.filter(|_| opcode == Opcode::Call) else {
            return InlineCommand::KeepCall;
        };
        let limit = if found.is_recursive {
            // A cycle of several functions is left alone.
            if name == self.name { RECURSIVE } else { 0 }
        } else if found.calls == 1 {
            SINGLE_CALL
        } else if self.in_loops.contains(&call) {
            IN_LOOP
        } else {
            SMALL
        };
        let signature = &caller.dfg.signatures[caller.dfg.ext_funcs[callee].signature];
        let fits = *signature == found.func.signature
            && has_same_context(caller, &found.func, arguments)
            && (found.func.stack_limit.is_none() || caller.stack_limit.is_some());
        if found.size > limit.min(self.left) || !fits {
            return InlineCommand::KeepCall;
        }
        self.left -= found.size;
        InlineCommand::Inline {
            callee: Cow::Borrowed(&found.func),
            visit_callee: !found.is_recursive,
        }
    }
}

/// Returns the direct callees of a function, one for each call.
fn called(func: &Function) -> Vec<Name> {
    let insts = func.layout.blocks().flat_map(|block| func.layout.block_insts(block));
    let callee = |inst: Inst| match func.dfg.insts[inst] {
        InstructionData::Call { func_ref, .. } | InstructionData::TryCall { func_ref, .. } => {
            Name::of_callee(func, func_ref)
        }
        _ => None,
    };
    insts.filter_map(callee).collect()
}

/// Returns whether a function reaches itself by calls.
fn reaches(calls: &HashMap<&Name, Vec<Name>>, start: &Name) -> bool {
    let mut seen = HashSet::new();
    let mut todo = vec![start];
    while let Some(name) = todo.pop() {
        for callee in calls.get(name).into_iter().flatten() {
            if callee == start {
                return true;
            }
            if seen.insert(callee) {
                todo.push(callee);
            }
        }
    }
    false
}

/// Estimates the number of machine instructions of a function.
fn size(func: &Function, target: &impl Target) -> u32 {
    let insts = func.layout.blocks().flat_map(|block| func.layout.block_insts(block));
    insts.map(|inst| target.instructions(func, inst).unwrap_or(CALL)).sum()
}

/// Returns whether a copy of the body in another frame means the same.
fn can_be_inlined(func: &Function) -> bool {
    let slots = func
        .sized_stack_slots
        .values()
        .map(|slot| slot.size)
        .fold(0, u32::saturating_add);
    let is_plain = |purpose| matches!(purpose, ArgumentPurpose::Normal | ArgumentPurpose::VMContext);
    let mut insts = func.layout.blocks().flat_map(|block| func.layout.block_insts(block));
    func.debug_tags.is_empty()
        && slots <= SLOT_BYTES
        && func.dynamic_stack_slots.is_empty()
        && func.signature.params.iter().all(|param| is_plain(param.purpose))
        && func.signature.returns.iter().all(|param| is_plain(param.purpose))
        && insts.all(|inst| {
            let opcode = func.dfg.insts[inst].opcode();
            !matches!(
                opcode,
                Opcode::GetFramePointer
                    | Opcode::GetStackPointer
                    | Opcode::GetReturnAddress
                    | Opcode::GetExceptionHandlerAddress
                    | Opcode::StackSwitch
                    | Opcode::SequencePoint
                    | Opcode::TryCall
                    | Opcode::TryCallIndirect
                    | Opcode::ReturnCall
                    | Opcode::ReturnCallIndirect
            )
        })
}

/// Returns whether a callee gets the context of its caller, if it has one: global values are relative
/// to it.
fn has_same_context(caller: &Function, callee: &Function, arguments: &[Value]) -> bool {
    let mut params = callee.signature.params.iter().zip(arguments);
    let context = caller.special_param(ArgumentPurpose::VMContext);
    params.all(|(param, &argument)| {
        param.purpose != ArgumentPurpose::VMContext || context == Some(caller.dfg.resolve_aliases(argument))
    })
}

fn calls_in_loops(context: &mut Context) -> HashSet<Inst> {
    context.compute_cfg();
    context.compute_domtree();
    context.compute_loop_analysis();
    let (func, loops) = (&context.func, &context.loop_analysis);
    let blocks = func
        .layout
        .blocks()
        .filter(|&block| loops.innermost_loop(block).is_some());
    let insts = blocks.flat_map(|block| func.layout.block_insts(block));
    insts.filter(|&inst| func.dfg.insts[inst].opcode().is_call()).collect()
}

/// Returns a copy of a function in which the source location of each instruction is its tag.
fn with_tags(func: &Function) -> Function {
    let mut copy = func.clone();
    for block in func.layout.blocks() {
        for inst in func.layout.block_insts(block) {
            let location = func.srcloc(inst);
            if !location.is_default() {
                copy.debug_tags.set(inst, [DebugTag::User(location.bits())]);
            }
        }
    }
    copy
}

/// Sets the source locations of inlined instructions from their tags, and removes the tags.
fn set_locations(func: &mut Function) {
    let insts: Vec<Inst> = func
        .layout
        .blocks()
        .flat_map(|block| func.layout.block_insts(block))
        .collect();
    for inst in insts {
        if let Some(&DebugTag::User(bits)) = func.debug_tags.get(inst).last() {
            func.set_srcloc(inst, SourceLoc::new(bits));
        }
    }
    func.debug_tags.clear();
}
