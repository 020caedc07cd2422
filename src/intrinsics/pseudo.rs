//! Emits calls of reserved names in passes on CLIF: runtime routines, pseudo-instructions, and
//! intrinsics that are machine instructions.

use super::PARTS;
use crate::error::CompileError;
use cranelift_codegen::cursor::FuncCursor;
use cranelift_codegen::ir::{
    AbiParam, ExtFuncData, ExternalName, FuncRef, InstBuilder, Opcode, Signature, Type, Value,
};
use cranelift_codegen::isa::CallConv;
use std::collections::HashMap;

/// The functions with reserved names that a function calls. Each is declared once.
#[derive(Debug, Default)]
pub struct PseudoCalls {
    imports: HashMap<(String, Vec<Type>), FuncRef>,
    /// The first call without a result where a result is required.
    broken: Option<&'static str>,
}

impl PseudoCalls {
    /// Emits a call of `name` and returns its result, if it has one.
    pub fn call(
        &mut self,
        cursor: &mut FuncCursor<'_>,
        name: &str,
        args: &[Value],
        result: Option<Type>,
    ) -> Option<Value> {
        let types: Vec<Type> = {
            let args = args.iter().map(|&arg| cursor.func.dfg.value_type(arg));
            args.chain(result).collect()
        };
        let key = (name.to_owned(), types);
        let callee = *self.imports.entry(key).or_insert_with_key(|(name, types)| {
            let mut signature = Signature::new(CallConv::Probestack);
            let (params, returns) = types.split_at(args.len());
            signature.params = params.iter().copied().map(AbiParam::new).collect();
            signature.returns = returns.iter().copied().map(AbiParam::new).collect();
            let signature = cursor.func.import_signature(signature);
            cursor.func.import_function(ExtFuncData {
                name: ExternalName::testcase(name.as_bytes()),
                signature,
                colocated: false,
                patchable: false,
            })
        });
        let call = cursor.ins().call(callee, args);
        cursor.func.dfg.inst_results(call).first().copied()
    }

    /// Converts a vector of narrow elements to lanes with undefined upper bits, or back.
    pub fn reinterpret(&mut self, cursor: &mut FuncCursor<'_>, lanes: Value, to: Type) -> Value {
        if cursor.func.dfg.value_type(lanes) == to {
            return lanes;
        }
        self.value(cursor, "__builtin_npu_lanes_reinterpret", &[lanes], to)
    }

    /// Returns a vector whose lanes are the lanes of `words` selected by `index`.
    pub fn shuffle(&mut self, cursor: &mut FuncCursor<'_>, words: Value, index: Value) -> Value {
        let ty = cursor.func.dfg.value_type(words);
        self.value(cursor, "__builtin_npu_shufflei32", &[words, index], ty)
    }

    /// Emits an opcode on vectors with more lanes than CLIF allows for it.
    pub fn parts(
        &mut self,
        cursor: &mut FuncCursor<'_>,
        opcode: Opcode,
        args: &[Value],
        result: Type,
    ) -> Option<Value> {
        self.call(cursor, &format!("{PARTS}{opcode}"), args, Some(result))
    }

    /// Emits a call of `name`, which must have a result. [`PseudoCalls::check`] reports a missing
    /// result.
    fn value<const N: usize>(
        &mut self,
        cursor: &mut FuncCursor<'_>,
        name: &'static str,
        args: &[Value; N],
        result: Type,
    ) -> Value {
        self.call(cursor, name, args, Some(result)).unwrap_or_else(|| {
            self.broken.get_or_insert(name);
            args[0]
        })
    }

    /// Checks that every call has the required result.
    ///
    /// # Errors
    ///
    /// Returns [`CompileError::Internal`] with the first call without a result.
    pub fn check(&self) -> Result<(), CompileError> {
        let error = |name| CompileError::internal("legalize", name, "a call with a result");
        self.broken.map_or(Ok(()), |name| Err(error(name)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_without_a_result_is_an_internal_error() {
        let mut calls = PseudoCalls::default();
        assert!(calls.check().is_ok());
        calls.broken = Some("__builtin_npu_shufflei32");
        let error = calls.check().unwrap_err();
        assert!(
            matches!(error, CompileError::Internal { stage: "legalize", .. }),
            "{error}"
        );
    }
}
