//! Where variables live: in registers, or in memory because a dynamic index selects elements.

use crate::emit::emitter::Frame;
use crate::layout::{Ty, Types};
use naga::{
    AddressSpace, Block, Constant, Expression, Function, GlobalVariable, Handle, LocalVariable, Module, Statement,
};
use std::collections::HashSet;

/// The largest number of scalars of a variable in registers, if it contains an array.
const MAX_REGISTERS: u32 = 64;

/// Arrays by value with more elements are indexed in memory, others by selects.
pub(crate) const MAX_SELECTS: u32 = 8;

/// The variables of a function that need memory.
#[derive(Debug, Default)]
pub(crate) struct Indexed {
    pub locals: HashSet<Handle<LocalVariable>>,
    pub globals: HashSet<Handle<GlobalVariable>>,
    /// Constant arrays with a dynamic index.
    pub tables: HashSet<Handle<Constant>>,
    /// The called functions.
    calls: HashSet<Handle<Function>>,
}

/// Returns the value of a constant integer expression.
pub(crate) fn constant_index(module: &Module, function: &Function, index: Handle<Expression>) -> Option<u32> {
    constant_u32(module, &function.expressions, index)
}

fn constant_u32(module: &Module, arena: &naga::Arena<Expression>, index: Handle<Expression>) -> Option<u32> {
    match &arena[index] {
        Expression::Literal(literal) => u32::try_from(*literal).ok(),
        Expression::Constant(constant) => {
            constant_u32(module, &module.global_expressions, module.constants[*constant].init)
        }
        Expression::ZeroValue(_) => Some(0),
        _ => None,
    }
}

impl Indexed {
    /// Returns the variables that a function indexes or passes on.
    pub fn of(module: &Module, function: &Function) -> Self {
        let mut found = Self::default();
        for (_, expression) in function.expressions.iter() {
            if let Expression::Access { base, index } = *expression
                && constant_index(module, function, index).is_none()
            {
                found.mark(function, base);
            }
        }
        found.add_calls(function, &function.body);
        found
    }

    /// Returns the variables that a function and the functions that it reaches index.
    pub fn reachable(module: &Module, entry: &Function) -> Self {
        let mut all = Self::of(module, entry);
        let mut waiting: Vec<_> = all.calls.iter().copied().collect();
        while let Some(function) = waiting.pop() {
            let found = Self::of(module, &module.functions[function]);
            all.globals.extend(found.globals);
            all.tables.extend(found.tables);
            for call in found.calls {
                if all.calls.insert(call) {
                    waiting.push(call);
                }
            }
        }
        all
    }

    /// Marks the variable at the root of a pointer.
    fn mark(&mut self, function: &Function, mut pointer: Handle<Expression>) {
        loop {
            pointer = match function.expressions[pointer] {
                Expression::Access { base, .. } | Expression::AccessIndex { base, .. } => base,
                Expression::LocalVariable(variable) => {
                    self.locals.insert(variable);
                    return;
                }
                Expression::GlobalVariable(variable) => {
                    self.globals.insert(variable);
                    return;
                }
                Expression::Constant(constant) => {
                    self.tables.insert(constant);
                    return;
                }
                _ => return,
            }
        }
    }

    fn add_calls(&mut self, function: &Function, block: &Block) {
        for statement in block.iter() {
            match statement {
                Statement::Call {
                    function: callee,
                    arguments,
                    ..
                } => {
                    self.calls.insert(*callee);
                    for argument in arguments {
                        self.mark(function, *argument);
                    }
                }
                Statement::Block(block) => self.add_calls(function, block),
                Statement::If { accept, reject, .. } => {
                    self.add_calls(function, accept);
                    self.add_calls(function, reject);
                }
                Statement::Switch { cases, .. } => {
                    for case in cases {
                        self.add_calls(function, &case.body);
                    }
                }
                Statement::Loop { body, continuing, .. } => {
                    self.add_calls(function, body);
                    self.add_calls(function, continuing);
                }
                _ => {}
            }
        }
    }
}

/// Returns whether a variable needs memory.
pub(crate) fn needs_memory(types: Types<'_>, ty: Ty, count: u32, indexed: bool) -> bool {
    types.has_array(ty) && (indexed || count > MAX_REGISTERS)
}

/// Returns whether a local variable holds a counter that is never negative: its value before the
/// loop is not (which the caller checks), and the only store in the loop adds a positive number in
/// the continuing block, after a test at the start of the body that the counter is less than a
/// limit.
pub(crate) fn counters(
    module: &Module,
    frame: &Frame<'_>,
    body: &Block,
    continuing: &Block,
) -> Vec<Handle<LocalVariable>> {
    let function = frame.function;
    let mut tested = Vec::new();
    for statement in body.iter() {
        match statement {
            Statement::Emit(_) => {}
            Statement::If {
                condition,
                accept,
                reject,
            } => {
                let leaves = |block: &Block| match block.split_last() {
                    Some((Statement::Break, before)) => before.iter().all(|one| matches!(one, Statement::Emit(_))),
                    _ => false,
                };
                if let Some(limit) = Limit::of(module, function, *condition)
                    && (if limit.negated { leaves(accept) } else { leaves(reject) })
                {
                    tested.push(limit);
                }
                break;
            }
            _ => break,
        }
    }
    let is_counter = |limit: &Limit| {
        let mut stores = Stores::default();
        stores.add(module, function, continuing, limit.variable, true);
        stores.add(module, function, body, limit.variable, false);
        let safe = |step: u32| {
            step == 1
                || limit
                    .limit
                    .is_some_and(|limit| limit < 0x4000_0000 && step < 0x4000_0000)
        };
        !stores.other && stores.steps.iter().all(|step| safe(*step)) && stores.steps.len() == 1
    };
    tested.retain(is_counter);
    tested.into_iter().map(|limit| limit.variable).collect()
}

/// Returns the local variables that the continuing block divides by a constant or shifts to the
/// right, and that the loop does not change otherwise. A nonnegative one never grows.
pub(crate) fn shrinking(
    module: &Module,
    frame: &Frame<'_>,
    body: &Block,
    continuing: &Block,
) -> Vec<Handle<LocalVariable>> {
    let function = frame.function;
    let mut found = Vec::new();
    for statement in continuing.iter() {
        let Statement::Store { pointer, value } = statement else {
            continue;
        };
        let (Expression::LocalVariable(variable), Expression::Binary { op, left, right }) =
            (&function.expressions[*pointer], &function.expressions[*value])
        else {
            continue;
        };
        let shrinks = match op {
            naga::BinaryOperator::ShiftRight => true,
            naga::BinaryOperator::Divide => constant_index(module, function, *right).is_some_and(|divisor| divisor > 0),
            _ => false,
        };
        if !shrinks || loaded(function, *left) != Some(*variable) || found.contains(variable) {
            continue;
        }
        let mut stores = Stores::default();
        stores.add(module, function, body, *variable, false);
        let mut in_continuing = 0;
        for statement in continuing.iter() {
            match statement {
                Statement::Emit(_) => {}
                Statement::Store { pointer, .. } => {
                    let is_it =
                        matches!(function.expressions[*pointer], Expression::LocalVariable(one) if one == *variable);
                    in_continuing += u32::from(is_it);
                }
                _ => stores.other = true,
            }
        }
        if !stores.other && in_continuing == 1 {
            found.push(*variable);
        }
    }
    found
}

/// A condition `variable < limit`, or its negation.
struct Limit {
    variable: Handle<LocalVariable>,
    limit: Option<u32>,
    negated: bool,
}

impl Limit {
    fn of(module: &Module, function: &Function, condition: Handle<Expression>) -> Option<Self> {
        use naga::{BinaryOperator as Op, UnaryOperator};
        match function.expressions[condition] {
            Expression::Unary {
                op: UnaryOperator::LogicalNot,
                expr,
            } => {
                let limit = Self::of(module, function, expr)?;
                Some(Self {
                    negated: !limit.negated,
                    ..limit
                })
            }
            Expression::Binary { op, left, right } => {
                let (variable, limit, negated) = match op {
                    Op::Less => (left, right, false),
                    Op::Greater => (right, left, false),
                    Op::GreaterEqual => (left, right, true),
                    Op::LessEqual => (right, left, true),
                    _ => return None,
                };
                Some(Self {
                    variable: loaded(function, variable)?,
                    limit: constant_index(module, function, limit),
                    negated,
                })
            }
            _ => None,
        }
    }
}

/// Returns the local variable that an expression loads.
fn loaded(function: &Function, expression: Handle<Expression>) -> Option<Handle<LocalVariable>> {
    let Expression::Load { pointer } = function.expressions[expression] else {
        return None;
    };
    match function.expressions[pointer] {
        Expression::LocalVariable(variable) => Some(variable),
        _ => None,
    }
}

/// The stores to a variable in a loop.
#[derive(Default)]
struct Stores {
    /// The positive numbers that the continuing block adds.
    steps: Vec<u32>,
    /// Whether the loop changes the variable in another way.
    other: bool,
}

impl Stores {
    fn add(
        &mut self,
        module: &Module,
        function: &Function,
        block: &Block,
        variable: Handle<LocalVariable>,
        is_continuing: bool,
    ) {
        let is_it = |pointer: Handle<Expression>| {
            let mut pointer = pointer;
            loop {
                match function.expressions[pointer] {
                    Expression::Access { base, .. } | Expression::AccessIndex { base, .. } => pointer = base,
                    Expression::LocalVariable(one) => return one == variable,
                    _ => return false,
                }
            }
        };
        for statement in block.iter() {
            match statement {
                Statement::Store { pointer, value } if is_it(*pointer) => {
                    match step(module, function, variable, *value) {
                        Some(step) if is_continuing => self.steps.push(step),
                        _ => self.other = true,
                    }
                }
                Statement::Call { arguments, .. } => self.other |= arguments.iter().any(|one| is_it(*one)),
                Statement::Block(block) => self.add(module, function, block, variable, is_continuing),
                Statement::If { accept, reject, .. } => {
                    self.add(module, function, accept, variable, false);
                    self.add(module, function, reject, variable, false);
                }
                Statement::Switch { cases, .. } => {
                    for case in cases {
                        self.add(module, function, &case.body, variable, false);
                    }
                }
                Statement::Loop { body, continuing, .. } => {
                    self.add(module, function, body, variable, false);
                    self.add(module, function, continuing, variable, false);
                }
                _ => {}
            }
        }
    }
}

/// Returns the positive constant in `variable + constant`.
fn step(
    module: &Module,
    function: &Function,
    variable: Handle<LocalVariable>,
    value: Handle<Expression>,
) -> Option<u32> {
    let Expression::Binary {
        op: naga::BinaryOperator::Add,
        left,
        right,
    } = function.expressions[value]
    else {
        return None;
    };
    let step = match (loaded(function, left), loaded(function, right)) {
        (Some(one), _) if one == variable => constant_index(module, function, right)?,
        (_, Some(one)) if one == variable => constant_index(module, function, left)?,
        _ => return None,
    };
    (1..0x8000_0000).contains(&step).then_some(step)
}

/// Returns whether a variable belongs to each work-item.
pub(crate) fn is_private(space: AddressSpace) -> bool {
    matches!(space, AddressSpace::Private | AddressSpace::Function)
}
