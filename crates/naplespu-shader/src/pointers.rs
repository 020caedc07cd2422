//! Functions with parameters that point to buffers or to workgroup memory.
//!
//! WGSL has them as an extension of the language, `unrestricted_pointer_parameters`. The validator
//! refuses them. The translation inlines all calls, so it can follow such pointers, and needs only
//! the types of the expressions. Therefore stubs without these parameters take the place of the
//! functions in the validated module, and the types of their expressions are inferred.

use naga::front::Typifier;
use naga::proc::ResolveContext;
use naga::valid::ModuleInfo;
use naga::{AddressSpace, Arena, Block, Expression, Function, GlobalVariable, Handle, Module, Span, Statement};
use std::collections::{HashMap, HashSet};

/// The functions of a module that the validator did not see.
pub(crate) struct Unchecked {
    /// The types of their expressions.
    pub types: HashMap<Handle<Function>, Typifier>,
    /// The global variables that each entry point reaches.
    pub reached: Vec<HashSet<Handle<GlobalVariable>>>,
}

/// Which parameters of functions point to buffers or to workgroup memory.
type Special = HashMap<Handle<Function>, Vec<bool>>;

/// Returns the functions that the validator has not to see, and the module with their stubs. Returns
/// `None` if there are none, or if the types of one are wrong.
pub(crate) fn separated(module: &Module) -> Option<(Unchecked, Module)> {
    let special = special(module);
    // Overrides are resolved in a module that is valid as a whole.
    if special.is_empty() || !module.overrides.is_empty() {
        return None;
    }
    let mut types = HashMap::new();
    for &handle in special.keys() {
        types.insert(handle, inferred(module, &module.functions[handle])?);
    }
    let reached = module.entry_points.iter();
    let reached = reached.map(|entry| reached_from(module, &entry.function)).collect();
    Some((Unchecked { types, reached }, with_stubs(module, &special)))
}

impl Unchecked {
    /// Returns whether an entry point uses a variable.
    pub fn uses(&self, entry: usize, variable: Handle<GlobalVariable>) -> bool {
        self.reached
            .get(entry)
            .is_some_and(|reached| reached.contains(&variable))
    }
}

/// Returns whether an entry point uses a global variable.
pub(crate) fn is_used(
    info: &ModuleInfo,
    unchecked: Option<&Unchecked>,
    entry: usize,
    variable: Handle<GlobalVariable>,
) -> bool {
    match unchecked {
        Some(unchecked) => unchecked.uses(entry, variable),
        None => !info.get_entry_point(entry)[variable].is_empty(),
    }
}

fn special(module: &Module) -> Special {
    let mut all = Special::new();
    for (handle, function) in module.functions.iter() {
        let points = |argument: &naga::FunctionArgument| {
            let space = module.types[argument.ty].inner.pointer_space();
            matches!(
                space,
                Some(AddressSpace::Storage { .. } | AddressSpace::Uniform | AddressSpace::WorkGroup)
            )
        };
        let flags: Vec<bool> = function.arguments.iter().map(points).collect();
        if flags.contains(&true) {
            all.insert(handle, flags);
        }
    }
    all
}

fn inferred(module: &Module, function: &Function) -> Option<Typifier> {
    let mut types = Typifier::new();
    let context = ResolveContext::with_locals(module, &function.local_variables, &function.arguments);
    for (handle, _) in function.expressions.iter() {
        types.grow(handle, &function.expressions, &context).ok()?;
    }
    Some(types)
}

/// Returns the global variables in a function and in those that it calls.
fn reached_from(module: &Module, entry: &Function) -> HashSet<Handle<GlobalVariable>> {
    let (mut found, mut seen, mut waiting) = (HashSet::new(), HashSet::new(), vec![entry]);
    while let Some(function) = waiting.pop() {
        for (_, expression) in function.expressions.iter() {
            if let Expression::GlobalVariable(variable) = *expression {
                found.insert(variable);
            }
        }
        let mut calls = Vec::new();
        each_block(&function.body, &mut |block| {
            for statement in block.iter() {
                if let Statement::Call { function, .. } = statement {
                    calls.push(*function);
                }
            }
        });
        waiting.extend(
            calls
                .into_iter()
                .filter(|call| seen.insert(*call))
                .map(|call| &module.functions[call]),
        );
    }
    found
}

/// Visits a block and all blocks in it.
fn each_block(block: &Block, visit: &mut impl FnMut(&Block)) {
    visit(block);
    for statement in block.iter() {
        match statement {
            Statement::Block(block) => each_block(block, visit),
            Statement::If { accept, reject, .. } => {
                each_block(accept, visit);
                each_block(reject, visit);
            }
            Statement::Switch { cases, .. } => cases.iter().for_each(|case| each_block(&case.body, visit)),
            Statement::Loop { body, continuing, .. } => {
                each_block(body, visit);
                each_block(continuing, visit);
            }
            _ => {}
        }
    }
}

/// Returns the module in which the functions have no such parameters, and return zero.
fn with_stubs(module: &Module, special: &Special) -> Module {
    let mut stubs = module.clone();
    for (handle, function) in stubs.functions.iter_mut() {
        if let Some(flags) = special.get(&handle) {
            *function = stub(function, flags);
        } else {
            drop_arguments(&mut function.body, special);
        }
    }
    for entry in &mut stubs.entry_points {
        drop_arguments(&mut entry.function.body, special);
    }
    stubs
}

fn stub(function: &Function, flags: &[bool]) -> Function {
    let kept = function.arguments.iter().zip(flags).filter(|(_, special)| !**special);
    let mut stub = Function {
        name: function.name.clone(),
        arguments: kept.map(|(argument, _)| argument.clone()).collect(),
        result: function.result.clone(),
        expressions: Arena::new(),
        ..Function::default()
    };
    let value = function.result.as_ref().map(|result| {
        let zero = Expression::ZeroValue(result.ty);
        stub.expressions.append(zero, Span::UNDEFINED)
    });
    stub.body.push(Statement::Return { value }, Span::UNDEFINED);
    stub
}

/// Removes the pointers from the calls in a block.
fn drop_arguments(block: &mut Block, special: &Special) {
    for statement in block.iter_mut() {
        match statement {
            Statement::Call {
                function, arguments, ..
            } => {
                if let Some(flags) = special.get(function) {
                    let mut flags = flags.iter();
                    arguments.retain(|_| flags.next().is_some_and(|special| !special));
                }
            }
            Statement::Block(block) => drop_arguments(block, special),
            Statement::If { accept, reject, .. } => {
                drop_arguments(accept, special);
                drop_arguments(reject, special);
            }
            Statement::Switch { cases, .. } => {
                for case in cases {
                    drop_arguments(&mut case.body, special);
                }
            }
            Statement::Loop { body, continuing, .. } => {
                drop_arguments(body, special);
                drop_arguments(continuing, special);
            }
            _ => {}
        }
    }
}
