//! Calls CLIF functions in `cranelift-interpreter`, with limits.
//!
//! The interpreter's own driver recurses on the host stack for each call and has no limit on
//! memory. This driver keeps the calls in a list, so that no program can crash the process.

use super::lanes::{has_wide, is_wide};
use super::lines::CallError;
use cranelift_codegen::data_value::DataValue;
use cranelift_codegen::ir::{Function, Inst, LibCall, Opcode, TrapCode, types};
use cranelift_interpreter::environment::FunctionStore;
use cranelift_interpreter::instruction::DfgInstructionContext;
use cranelift_interpreter::interpreter::{InterpreterState, LibCallValues};
use cranelift_interpreter::state::State;
use cranelift_interpreter::step::{ControlFlow, CraneliftTrap, step};
use cranelift_interpreter::value::DataValueExt;
use naplespu_reader::panics::{Panic, PanicIn, caught};
use std::collections::HashSet;
use std::error::Error;
use std::fmt;

/// The limit of nested calls.
pub const MAX_DEPTH: usize = 100_000;
/// The limit of values in all live frames together.
const MAX_VALUES: usize = 16 << 20;
/// The limit of bytes of stack slots in all live frames together.
const MAX_STACK: u64 = 256 << 20;

/// Why a call returned no results.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InterpretError {
    /// The function does not exist.
    UnknownFunction(String),
    /// The arguments do not fit the signature.
    Arguments,
    /// A function has vectors that Cranelift cannot represent as values.
    WideVectors,
    /// A function has vectors of dynamic size.
    DynamicVectors,
    /// The program trapped.
    Trap {
        /// The trap code, if the trap has one.
        code: Option<TrapCode>,
        /// The interpreter's text.
        message: String,
    },
    /// The call exceeded this limit of instructions.
    Steps(u64),
    /// The calls exceeded the limit of depth or of frame size.
    Stack,
    /// The interpreter does not support an instruction, or the program did something wrong without
    /// a trap (a bad address).
    Interpreter(String),
    /// The interpreter panicked.
    Panicked(Panic),
}

impl fmt::Display for InterpretError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownFunction(name) => write!(f, "function {name} does not exist"),
            Self::Arguments => f.write_str("the arguments do not match the signature"),
            Self::WideVectors => f.write_str("the interpreter does not support vectors of more than 128 bits"),
            Self::DynamicVectors => f.write_str("the interpreter does not support vectors of dynamic size"),
            Self::Trap { message, .. } => write!(f, "trap: {message}"),
            Self::Steps(limit) => write!(f, "no result after {limit} instructions"),
            Self::Stack => f.write_str("stack overflow"),
            Self::Interpreter(what) => write!(f, "interpreter: {what}"),
            Self::Panicked(panic) => write!(f, "interpreter: {panic}"),
        }
    }
}

impl Error for InterpretError {}

impl From<InterpretError> for CallError {
    fn from(error: InterpretError) -> Self {
        let message = error.to_string();
        match error {
            InterpretError::Trap { code: Some(code), .. } => Self::Trap {
                code: code.to_string(),
                message,
            },
            InterpretError::WideVectors | InterpretError::DynamicVectors => Self::Refused(message),
            InterpretError::Panicked(panic) => Self::Panicked(PanicIn::Interpreter, panic),
            _ => Self::Failed(message),
        }
    }
}

/// Returns whether the interpreter executes an instruction wrongly: it returns another result than
/// Rust's arithmetic, or misses a trap.
pub fn is_wrong(func: &Function, inst: Inst) -> bool {
    let data = &func.dfg.insts[inst];
    let result = func.dfg.inst_results(inst).first();
    let result = result.map_or(types::INVALID, |&result| func.dfg.value_type(result));
    match data.opcode() {
        // The remainder of the least number by -1 traps, but should be 0.
        Opcode::Srem => true,
        // For numbers out of the range of i128, saturated results are wrong and traps are missing.
        Opcode::FcvtToUint | Opcode::FcvtToSint | Opcode::FcvtToUintSat => result == types::I128,
        // The flag is set even if adding the carry reverts the overflow.
        Opcode::SaddOverflowCin | Opcode::SsubOverflowBin => true,
        // The lanes of vectors are in the wrong order.
        Opcode::Bitcast => true,
        // Results have other types.
        Opcode::Uload32 | Opcode::Sload32 => true,
        Opcode::Isplit => result != types::I64,
        Opcode::Iconcat => result != types::I128,
        Opcode::StackAddr => result == types::I32,
        // Negative offsets are extended with zeros.
        _ => data.load_store_offset().is_some_and(|offset| offset < 0),
    }
}

/// Calls the function `name` (such as `%f`) with `args`. `max_steps` limits the number of CLIF
/// instructions.
///
/// # Errors
///
/// See [`InterpretError`].
pub fn call(
    store: &FunctionStore<'_>,
    name: &str,
    args: &[DataValue],
    max_steps: u64,
) -> Result<Vec<DataValue>, InterpretError> {
    let entry = store
        .get_by_name(name)
        .ok_or_else(|| InterpretError::UnknownFunction(name.to_owned()))?;
    match caught(|| run(store.clone(), entry, args, max_steps)) {
        Ok(result) => result,
        Err(panic) => Err(InterpretError::Panicked(panic)),
    }
}

fn run<'a>(
    store: FunctionStore<'a>,
    entry: &'a Function,
    args: &[DataValue],
    max_steps: u64,
) -> Result<Vec<DataValue>, InterpretError> {
    let mut state = InterpreterState::default()
        .with_function_store(store)
        .with_libcall_handler(libcall);
    let mut live = Live::default();
    let mut callers: Vec<(&'a Function, Inst)> = Vec::new();
    let mut function = entry;
    let mut cursor = live.enter(&mut state, function, args)?;
    for _ in 0..max_steps {
        let Some(inst) = cursor else {
            return Err(InterpretError::Interpreter(format!(
                "{} runs past the end of a block",
                function.name
            )));
        };
        let context = DfgInstructionContext::new(inst, &function.dfg);
        let flow = step(&mut state, context).map_err(|e| InterpretError::Interpreter(chain(&e, function, inst)))?;
        cursor = match flow {
            ControlFlow::Assign(values) => {
                let frame = state.current_frame_mut();
                frame.set_all(function.dfg.inst_results(inst), values.to_vec());
                function.layout.next_inst(inst)
            }
            ControlFlow::Continue => function.layout.next_inst(inst),
            ControlFlow::ContinueAt(block, values) => {
                let frame = state.current_frame_mut();
                frame.set_all(function.dfg.block_params(block), values.to_vec());
                function.layout.first_inst(block)
            }
            ControlFlow::Call(callee, values) => {
                callers.push((function, inst));
                if callers.len() > MAX_DEPTH {
                    return Err(InterpretError::Stack);
                }
                function = callee;
                live.enter(&mut state, callee, &values)?
            }
            ControlFlow::ReturnCall(callee, values) => {
                live.leave(&mut state, function);
                function = callee;
                live.enter(&mut state, callee, &values)?
            }
            ControlFlow::Return(values) => {
                live.leave(&mut state, function);
                let Some((caller, site)) = callers.pop() else {
                    return Ok(values.to_vec());
                };
                function = caller;
                let frame = state.current_frame_mut();
                frame.set_all(caller.dfg.inst_results(site), values.to_vec());
                caller.layout.next_inst(site)
            }
            ControlFlow::Trap(trap) => {
                let message = trap.to_string();
                let code = match trap {
                    CraneliftTrap::User(code) => Some(code),
                    _ => None,
                };
                return Err(InterpretError::Trap { code, message });
            }
        };
    }
    Err(InterpretError::Steps(max_steps))
}

/// The resources of the live frames.
#[derive(Default)]
struct Live {
    values: usize,
    stack: u64,
    /// The functions whose types are supported.
    checked: HashSet<*const Function>,
}

impl Live {
    /// Refuses a function with vectors that the interpreter panics at.
    fn check_types(&mut self, function: &Function) -> Result<(), InterpretError> {
        if !self.checked.insert(function) {
            return Ok(());
        }
        if !function.dfg.dynamic_types.is_empty() {
            return Err(InterpretError::DynamicVectors);
        }
        let mut types = function.dfg.values().map(|value| function.dfg.value_type(value));
        if types.any(is_wide) || has_wide(&function.signature) {
            return Err(InterpretError::WideVectors);
        }
        Ok(())
    }

    /// Creates a frame and returns the first instruction.
    fn enter<'a>(
        &mut self,
        state: &mut InterpreterState<'a>,
        function: &'a Function,
        args: &[DataValue],
    ) -> Result<Option<Inst>, InterpretError> {
        self.check_types(function)?;
        self.values += function.dfg.num_values();
        self.stack += u64::from(function.fixed_stack_size());
        if self.values > MAX_VALUES || self.stack > MAX_STACK {
            return Err(InterpretError::Stack);
        }
        let Some(block) = function.layout.entry_block() else {
            return Err(InterpretError::Interpreter(format!("{} has no body", function.name)));
        };
        let params = function.dfg.block_params(block);
        if params.len() != args.len() {
            return Err(InterpretError::Arguments);
        }
        state.push_frame(function);
        state.current_frame_mut().set_all(params, args.to_vec());
        Ok(function.layout.first_inst(block))
    }

    fn leave(&mut self, state: &mut InterpreterState<'_>, function: &Function) {
        state.pop_frame();
        self.values -= function.dfg.num_values();
        self.stack -= u64::from(function.fixed_stack_size());
    }
}

/// Formats an error with its causes and the instruction.
fn chain(error: &dyn Error, function: &Function, inst: Inst) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text += ": ";
        text += &cause.to_string();
        source = cause.source();
    }
    format!("{text}, in {}: {}", function.name, function.dfg.display_inst(inst))
}

/// Implements the rounding functions, which CLIF calls on machines without such instructions.
fn libcall(call: LibCall, args: LibCallValues) -> Result<LibCallValues, CraneliftTrap> {
    let wrong = |_| CraneliftTrap::BadSignature;
    let mut args = args.into_iter();
    let (Some(value), None) = (args.next(), args.next()) else {
        return Err(CraneliftTrap::BadSignature);
    };
    let result = match call {
        LibCall::CeilF32 | LibCall::CeilF64 => value.ceil(),
        LibCall::FloorF32 | LibCall::FloorF64 => value.floor(),
        LibCall::TruncF32 | LibCall::TruncF64 => value.trunc(),
        LibCall::NearestF32 | LibCall::NearestF64 => value.nearest(),
        _ => return Err(CraneliftTrap::UnreachableCodeReached),
    };
    Ok([result.map_err(wrong)?].into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interpret(text: &str, name: &str, args: &[DataValue]) -> Result<Vec<DataValue>, InterpretError> {
        let functions = cranelift_reader::parse_functions(text).unwrap();
        let mut store = FunctionStore::default();
        for function in &functions {
            store.add(function.name.to_string(), function);
        }
        call(&store, name, args, 100_000)
    }

    #[test]
    fn calls_return_and_recurse() {
        let text = "function %sum(i32) -> i32 {
            fn0 = %sum(i32) -> i32
        block0(v0: i32):
            brif v0, block1, block2
        block1:
            v4 = iconst.i32 -1
            v1 = iadd v0, v4
            v2 = call fn0(v1)
            v3 = iadd v2, v0
            return v3
        block2:
            return v0
        }";
        let five = [DataValue::I32(5)];
        assert_eq!(interpret(text, "%sum", &five), Ok(vec![DataValue::I32(15)]));
        assert_eq!(
            interpret(text, "%sum", &[DataValue::I32(-1)]),
            Err(InterpretError::Steps(100_000))
        );
        assert_eq!(interpret(text, "%sum", &[]), Err(InterpretError::Arguments));
        assert!(interpret(text, "%no", &[]).is_err());
    }

    #[test]
    fn nothing_takes_the_process_down() {
        let endless = "function %f() {\n ss0 = explicit_slot 1000000\n fn0 = %f()\nblock0:\n call fn0()\n return\n}";
        assert_eq!(interpret(endless, "%f", &[]), Err(InterpretError::Stack));
        let deep = "function %f() {\n fn0 = %f()\nblock0:\n call fn0()\n return\n}";
        assert!(interpret(deep, "%f", &[]).is_err());
        let trap = "function %f() {\nblock0:\n trap user3\n}";
        assert!(matches!(
            interpret(trap, "%f", &[]),
            Err(InterpretError::Trap { code: Some(_), .. })
        ));
        let dynamic = "function %f(i32) {\n gv0 = dyn_scale_target_const.i32x4\n dt0 = i32x4*gv0\n\
                       block0(v0: i32):\n v1 = splat.dt0 v0\n return\n}";
        let zero = [DataValue::I32(0)];
        assert_eq!(interpret(dynamic, "%f", &zero), Err(InterpretError::DynamicVectors));
        let wide = "function %f(i32) {\nblock0(v0: i32):\n v1 = splat.i32x16 v0\n return\n}";
        assert_eq!(interpret(wide, "%f", &zero), Err(InterpretError::WideVectors));
        let unknown = "function %f() {\n fn0 = %g()\nblock0:\n call fn0()\n return\n}";
        assert!(matches!(
            interpret(unknown, "%f", &[]),
            Err(InterpretError::Interpreter(_))
        ));
    }
}
