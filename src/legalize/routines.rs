//! Calls routines of the runtime from CLIF.

use cranelift_codegen::cursor::FuncCursor;
use cranelift_codegen::ir::{
    AbiParam, ExtFuncData, ExternalName, FuncRef, Function, InstBuilder, Signature, Value, types,
};
use cranelift_codegen::isa::CallConv;

/// Declares a routine with the given numbers of word parameters and word results.
pub(super) fn import(func: &mut Function, name: &str, convention: CallConv, params: usize, returns: usize) -> FuncRef {
    let mut signature = Signature::new(convention);
    signature.params.resize(params, AbiParam::new(types::I32));
    signature.returns.resize(returns, AbiParam::new(types::I32));
    let signature = func.import_signature(signature);
    func.import_function(ExtFuncData {
        name: ExternalName::testcase(name),
        signature,
        colocated: true,
        patchable: false,
    })
}

/// Converts an address to a word: the low word of a wider address.
pub(super) fn word_of(cursor: &mut FuncCursor<'_>, address: Value) -> Value {
    match cursor.func.dfg.value_type(address) {
        types::I32 => address,
        ty if ty.bits() < types::I32.bits() => cursor.ins().uextend(types::I32, address),
        _ => cursor.ins().ireduce(types::I32, address),
    }
}
