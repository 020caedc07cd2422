//! Declares and calls intrinsics while a function is built.

use super::signature;
use cranelift_codegen::ir::{
    DataFlowGraph, ExtFuncData, ExternalName, FuncRef, Function, InstBuilder, Opcode, Type, Value, ValueList, types,
};
use npu_mc::tables::{IntrinsicInfo, intrinsic_by_name};
use std::collections::HashMap;
use std::fmt;

/// The error of an invalid call of an intrinsic.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BuildError {
    /// No intrinsic has this name.
    Unknown(String),
    /// The types of the arguments do not match.
    Arguments {
        /// The intrinsic.
        name: &'static str,
        /// The parameter types of the intrinsic.
        expected: &'static str,
        /// The types of the arguments.
        given: Vec<Type>,
    },
}

impl std::error::Error for BuildError {}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(name) => write!(f, "there is no intrinsic `{name}`"),
            Self::Arguments { name, expected, given } => {
                let given: Vec<String> = given.iter().map(Type::to_string).collect();
                write!(f, "`{name}` takes ({expected}), not ({})", given.join(" "))
            }
        }
    }
}

/// Calls intrinsics in one function: declares each once, with its own signature.
///
/// ```
/// use cranelift_codegen::ir::{Function, InstBuilder, types};
/// use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
/// use cranelift_naplespu::intrinsics;
///
/// let (mut func, mut ctx) = (Function::new(), FunctionBuilderContext::new());
/// let mut builder = FunctionBuilder::new(&mut func, &mut ctx);
/// let block = builder.create_block();
/// builder.switch_to_block(block);
///
/// let mut npu = intrinsics::Builder::new();
/// let thread = npu.call(builder.ins(), "thread_id", &[])?.unwrap();
/// let others = builder.ins().iconst(types::I32, 7);
/// npu.call(builder.ins(), "barrier", &[thread, others])?;
/// # Ok::<(), intrinsics::BuildError>(())
/// ```
#[derive(Debug, Default)]
pub struct Builder {
    declared: HashMap<&'static str, FuncRef>,
}

impl Builder {
    /// Makes a builder for a function without declarations of intrinsics.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the intrinsic of this name. The prefix may be missing.
    ///
    /// # Errors
    ///
    /// Returns [`BuildError::Unknown`] if no intrinsic has this name.
    pub fn find(name: &str) -> Result<&'static IntrinsicInfo, BuildError> {
        intrinsic_by_name(name)
            .or_else(|| intrinsic_by_name(&format!("{}{name}", super::PREFIX)))
            .ok_or_else(|| BuildError::Unknown(name.to_owned()))
    }

    /// Declares an intrinsic in the function, unless it is already declared.
    ///
    /// # Errors
    ///
    /// Returns [`BuildError::Unknown`] if no intrinsic has this name.
    pub fn declare(&mut self, func: &mut Function, name: &str) -> Result<FuncRef, BuildError> {
        Ok(self.declare_in(&mut func.dfg, Self::find(name)?))
    }

    fn declare_in(&mut self, dfg: &mut DataFlowGraph, info: &'static IntrinsicInfo) -> FuncRef {
        *self.declared.entry(info.name).or_insert_with(|| import(dfg, info))
    }

    /// Inserts a call of an intrinsic at `ins`, which is `ins()` of a `FunctionBuilder` or of a
    /// cursor. Returns its result, or `None` if it has no result.
    ///
    /// # Errors
    ///
    /// Returns [`BuildError::Unknown`], or [`BuildError::Arguments`] if the argument types do not
    /// match.
    pub fn call<'f>(
        &mut self,
        mut ins: impl InstBuilder<'f>,
        name: &str,
        args: &[Value],
    ) -> Result<Option<Value>, BuildError> {
        let info = Self::find(name)?;
        let given: Vec<Type> = args.iter().map(|&arg| ins.data_flow_graph().value_type(arg)).collect();
        if !signature(info).params.iter().map(|param| &param.value_type).eq(&given) {
            return Err(BuildError::Arguments {
                name: info.name,
                expected: info.params,
                given,
            });
        }
        let dfg = ins.data_flow_graph_mut();
        let callee = self.declare_in(dfg, info);
        let list = ValueList::from_slice(args, &mut dfg.value_lists);
        let (call, dfg) = ins.Call(Opcode::Call, types::INVALID, callee, list);
        Ok(dfg.inst_results(call).first().copied())
    }
}

fn import(dfg: &mut DataFlowGraph, info: &IntrinsicInfo) -> FuncRef {
    let signature = dfg.signatures.push(signature(info));
    dfg.ext_funcs.push(ExtFuncData {
        name: ExternalName::testcase(info.name),
        signature,
        colocated: false,
        patchable: false,
    })
}
