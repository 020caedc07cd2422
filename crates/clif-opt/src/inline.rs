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
    ArgumentPurpose, DebugTag, ExternalName, FuncRef, Function, GlobalValueData, Inst, InstructionData, Opcode,
    SourceLoc, UserExternalName, Value,
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
            ExternalName::User(name) => func.params.user_named_funcs().get(*name).cloned().map(Self::User),
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
    /// Whether it is in a cycle of calls, or between two.
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
        // A second definition of a name is refused later, so the first one counts.
        let mut numbers: HashMap<&Name, usize> = HashMap::new();
        for (number, (name, _)) in functions.iter().enumerate() {
            numbers.entry(name).or_insert(number);
        }
        let in_unit = |func: &Function| {
            called(func)
                .iter()
                .filter_map(|name| numbers.get(name).copied())
                .collect()
        };
        let calls: Vec<Vec<usize>> = functions.iter().map(|(_, func)| in_unit(func)).collect();
        let mut counts = vec![0; functions.len()];
        calls.iter().flatten().for_each(|&callee| counts[callee] += 1);
        let cycles = in_cycles(&calls);
        let mut callees = HashMap::new();
        for (number, (name, func)) in functions.iter().enumerate() {
            let count = if numbers[name] == number { counts[number] } else { 0 };
            let size = size(func, target);
            // Cranelift's inliner requires valid functions.
            let fits = count > 0 && size <= SINGLE_CALL && can_be_inlined(func) && !target.has_own_state(func);
            if !fits || verify_function(func, target.flags()).is_err() {
                continue;
            }
            let callee = Callee {
                func: with_tags(func),
                size,
                calls: count,
                is_recursive: cycles[number],
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
        if !has_callee || !can_inline_others(func) || target.has_own_state(func) {
            return Ok(None);
        }
        // Cranelift's inliner requires valid functions.
        if verify_function(func, target.flags()).is_err() {
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

/// Returns for each function whether it is in a cycle of calls, or between two of them. `calls` has
/// the callees of each function.
fn in_cycles(calls: &[Vec<usize>]) -> Vec<bool> {
    let mut callers = vec![Vec::new(); calls.len()];
    for (caller, callees) in calls.iter().enumerate() {
        callees.iter().for_each(|&callee| callers[callee].push(caller));
    }
    let mut left = vec![true; calls.len()];
    remove_ends(&mut left, calls, &callers);
    remove_ends(&mut left, &callers, calls);
    left
}

/// Removes the nodes without a `next` node that is left, as long as there are any. `before` is the
/// inverse of `next`.
fn remove_ends(left: &mut [bool], next: &[Vec<usize>], before: &[Vec<usize>]) {
    let count = |nodes: &Vec<usize>| nodes.iter().filter(|&&node| left[node]).count();
    let mut counts: Vec<usize> = next.iter().map(count).collect();
    let mut ends: Vec<usize> = (0..left.len())
        .filter(|&node| left[node] && counts[node] == 0)
        .collect();
    while let Some(end) = ends.pop() {
        left[end] = false;
        for &node in before[end].iter().filter(|&&node| left[node]) {
            counts[node] -= 1;
            if counts[node] == 0 {
                ends.push(node);
            }
        }
    }
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
    // Cranelift's inliner does not translate the numbers of names of symbols.
    let has_symbols = func.global_values.values().any(|global| {
        matches!(
            global,
            GlobalValueData::Symbol {
                name: ExternalName::User(_),
                ..
            }
        )
    });
    let is_plain = |purpose| matches!(purpose, ArgumentPurpose::Normal | ArgumentPurpose::VMContext);
    let mut insts = func.layout.blocks().flat_map(|block| func.layout.block_insts(block));
    func.debug_tags.is_empty()
        && !has_symbols
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

/// Returns whether Cranelift's inliner accepts a function as a caller.
fn can_inline_others(func: &Function) -> bool {
    let mut insts = func.layout.blocks().flat_map(|block| func.layout.block_insts(block));
    func.debug_tags.is_empty() && insts.all(|inst| func.dfg.insts[inst].opcode() != Opcode::StackSwitch)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_target::TestTarget;

    /// Inlines the calls in the first function of a text, and counts its calls by callee.
    fn inlined(text: &str) -> (Function, Vec<String>) {
        let functions = cranelift_reader::parse_functions(text).unwrap();
        let name = |func: &Function| match &func.name {
            cranelift_codegen::ir::UserFuncName::Testcase(name) => Name::Text(name.raw().to_vec()),
            other => panic!("{other}"),
        };
        let target = TestTarget::new();
        let unit = Unit::new(functions.iter().map(|func| (name(func), func)), &target);
        let first = &functions[0];
        let result = unit.inline(&name(first), first, &target).unwrap();
        let func = result.unwrap_or_else(|| first.clone());
        verify_function(&func, target.flags()).unwrap();
        assert!(func.debug_tags.is_empty());
        let calls = called(&func).into_iter().map(|name| match name {
            Name::Text(name) => String::from_utf8(name).unwrap(),
            Name::User(name) => name.to_string(),
        });
        let calls = calls.collect();
        (func, calls)
    }

    /// Returns a function with `count` additions and these lines before its return.
    fn adds(name: &str, count: usize, lines: &str) -> String {
        let adds: String = (1..=count).map(|n| format!("v{n} = iadd v{}, v0\n", n - 1)).collect();
        format!("function %{name}(i32) -> i32 {{\nblock0(v0: i32):\n{adds}{lines}return v{count}\n}}\n")
    }

    const TWICE: &str = "
function %caller(i32) -> i32 {
    fn0 = %leaf(i32) -> i32
block0(v0: i32):
    v1 = call fn0(v0)
    v2 = call fn0(v1)
    return v2
}
";

    #[test]
    fn small_callees_are_inlined_everywhere() {
        // The estimate counts the return.
        assert!(inlined(&format!("{TWICE}{}", adds("leaf", 23, ""))).1.is_empty());
        assert_eq!(inlined(&format!("{TWICE}{}", adds("leaf", 24, ""))).1, ["leaf", "leaf"]);
    }

    #[test]
    fn the_only_call_is_inlined() {
        let once = TWICE.replace("v2 = call fn0(v1)", "v2 = iadd v1, v1");
        assert!(inlined(&format!("{once}{}", adds("leaf", 159, ""))).1.is_empty());
        assert_eq!(inlined(&format!("{once}{}", adds("leaf", 160, ""))).1, ["leaf"]);
    }

    #[test]
    fn calls_in_loops_are_inlined() {
        let text = "
function %caller(i32) -> i32 {
    fn0 = %leaf(i32) -> i32
block0(v0: i32):
    v1 = call fn0(v0)
    jump block1(v1)
block1(v2: i32):
    v3 = call fn0(v2)
    brif v3, block1(v3), block2
block2:
    return v3
}
";
        assert_eq!(inlined(&format!("{text}{}", adds("leaf", 79, ""))).1, ["leaf"]);
        assert_eq!(inlined(&format!("{text}{}", adds("leaf", 80, ""))).1, ["leaf", "leaf"]);
    }

    #[test]
    fn a_function_gets_its_own_body_once() {
        let text = "
function %fib(i32) -> i32 {
    fn0 = %fib(i32) -> i32
block0(v0: i32):
    v1 = iconst.i32 2
    v2 = icmp ult v0, v1
    brif v2, block2, block1
block1:
    v3 = isub v0, v1
    v4 = call fn0(v3)
    v5 = iadd v3, v1
    v6 = call fn0(v5)
    v7 = iadd v4, v6
    return v7
block2:
    return v0
}
";
        assert_eq!(inlined(text).1.len(), 4);
        // A cycle of two functions stays as it is.
        let other = text.replace("%fib", "%a").replacen("fn0 = %a", "fn0 = %b", 1);
        let back = text.replace("%fib", "%b").replacen("fn0 = %b", "fn0 = %a", 1);
        assert_eq!(inlined(&format!("{other}{back}")).1.len(), 2);
    }

    #[test]
    fn a_function_grows_by_a_limited_number_of_instructions() {
        let calls: String = (1..=30).map(|n| format!("v{n} = call fn0(v{})\n", n - 1)).collect();
        let text = format!(
            "function %caller(i32) -> i32 {{\nfn0 = %leaf(i32) -> i32\nblock0(v0: i32):\n{calls}return v30\n}}\n"
        );
        // 400 instructions have room for 20 callees of 20.
        assert_eq!(inlined(&format!("{text}{}", adds("leaf", 19, ""))).1.len(), 10);
    }

    /// The callees of a callee are inlined too, and every instruction keeps its location.
    #[test]
    fn instructions_keep_their_locations() {
        let middle = "
function %leaf(i32) -> i32 {
    fn0 = %inner(i32) -> i32
block0(v0: i32):
@0007 v1 = call fn0(v0)
@0008 v2 = imul v1, v1
    return v2
}
";
        let inner = "
function %inner(i32) -> i32 {
block0(v0: i32):
@0009 v1 = ishl v0, v0
    return v1
}
";
        let caller = TWICE
            .replace("    v1 = call", "@0005 v1 = call")
            .replace("return v2", "v3 = ishl v2, v2\nreturn v3");
        let (func, calls) = inlined(&format!("{caller}{middle}{inner}"));
        assert!(calls.is_empty());
        let insts = func.layout.blocks().flat_map(|block| func.layout.block_insts(block));
        let located = insts.filter_map(|inst| {
            let opcode = func.dfg.insts[inst].opcode();
            let is_shown = matches!(opcode, Opcode::Ishl | Opcode::Imul);
            is_shown.then(|| (opcode.to_string(), func.srcloc(inst).bits()))
        });
        let mut located: Vec<(String, u32)> = located.collect();
        located.sort();
        let default = SourceLoc::default().bits();
        let expected = [("imul", 8), ("imul", 8), ("ishl", 9), ("ishl", 9), ("ishl", default)];
        assert_eq!(located, expected.map(|(name, line)| (name.to_owned(), line)));
    }

    #[test]
    fn callees_that_depend_on_their_frame_stay_calls() {
        for lines in [
            "v900 = get_frame_pointer.i64\n",
            "v900 = get_return_address.i64\n",
            "v900 = get_stack_pointer.i64\n",
        ] {
            assert_eq!(
                inlined(&format!("{TWICE}{}", adds("leaf", 2, lines))).1.len(),
                2,
                "{lines}"
            );
        }
        let slot = |bytes| adds("leaf", 2, "").replace("block0", &format!("ss0 = explicit_slot {bytes}\nblock0"));
        assert!(inlined(&format!("{TWICE}{}", slot(256))).1.is_empty());
        assert_eq!(inlined(&format!("{TWICE}{}", slot(257))).1.len(), 2);
    }

    #[test]
    fn the_first_definition_of_a_name_is_the_callee() {
        let (func, calls) = inlined(&format!("{TWICE}{}{}", adds("leaf", 3, ""), adds("leaf", 0, "")));
        assert!(calls.is_empty());
        assert_eq!(func.to_string().matches("iadd").count(), 6);
    }

    /// Cranelift's inliner copies the number of a symbol's name, which means another name in the
    /// caller.
    #[test]
    fn a_callee_with_numbered_symbols_stays_a_call() {
        let leaf = |symbol: &str| {
            let address = format!("gv0 = symbol {symbol}\nblock0");
            adds("leaf", 2, "v9 = symbol_value.i64 gv0\n").replace("block0", &address)
        };
        assert_eq!(inlined(&format!("{TWICE}{}", leaf("u1:3"))).1.len(), 2);
        assert!(inlined(&format!("{TWICE}{}", leaf("%text"))).1.is_empty());
    }

    /// Cranelift's inliner does not know the instruction.
    #[test]
    fn a_caller_that_switches_stacks_stays_as_it_is() {
        let switch = "v9 = iconst.i64 0\nv8 = stack_switch.i64 v9, v9, v9\nreturn v2";
        let caller = TWICE.replace("return v2", switch);
        assert_eq!(inlined(&format!("{caller}{}", adds("leaf", 2, ""))).1.len(), 2);
    }

    /// A definition with another signature than the declaration is not the callee.
    #[test]
    fn a_wrong_declaration_stays_a_call() {
        let leaf = adds("leaf", 2, "").replace("(i32) -> i32 {", "(i32) -> i32 system_v {");
        assert_eq!(inlined(&format!("{TWICE}{leaf}")).1.len(), 2);
        let tail = "function %leaf(i32) -> i32 tail {\nfn0 = %other(i32) -> i32 tail\nblock0(v0: i32):\nreturn_call fn0(v0)\n}\n";
        let caller = TWICE.replace("%leaf(i32) -> i32", "%leaf(i32) -> i32 tail");
        assert_eq!(inlined(&format!("{caller}{tail}")).1.len(), 2);
    }
}
