//! Trap codes of WebAssembly, in addition to Cranelift's.

use cranelift_codegen::ir::TrapCode;

/// The instruction `unreachable`.
pub const UNREACHABLE: TrapCode = TrapCode::unwrap_user(1);
/// An access to a table element out of bounds.
pub const TABLE_OUT_OF_BOUNDS: TrapCode = TrapCode::unwrap_user(2);
/// An indirect call of a table element out of bounds.
pub const UNDEFINED_ELEMENT: TrapCode = TrapCode::unwrap_user(3);
/// An indirect call of a null element.
pub const UNINITIALIZED_ELEMENT: TrapCode = TrapCode::unwrap_user(4);
/// An indirect call of a function with another type.
pub const INDIRECT_CALL_TYPE: TrapCode = TrapCode::unwrap_user(5);
/// A null reference where null is not allowed.
pub const NULL_REFERENCE: TrapCode = TrapCode::unwrap_user(6);
/// A call of a null function reference.
pub const NULL_FUNCTION: TrapCode = TrapCode::unwrap_user(7);
/// An atomic access at an address that is not a multiple of its size.
pub const UNALIGNED_ATOMIC: TrapCode = TrapCode::unwrap_user(8);
/// A wait on memory that is not shared.
pub const EXPECTED_SHARED: TrapCode = TrapCode::unwrap_user(9);
/// A throw of a null exception reference.
pub const NULL_EXCEPTION: TrapCode = TrapCode::unwrap_user(10);
/// The memory for referenced exceptions is full.
pub const TOO_MANY_EXCEPTIONS: TrapCode = TrapCode::unwrap_user(11);
/// A call of a function for one work-item outside of a dispatch.
pub const OUTSIDE_OF_DISPATCH: TrapCode = TrapCode::unwrap_user(12);
/// An exception without a handler. `npu_throw` of the runtime traps with this code.
pub const UNCAUGHT_EXCEPTION: TrapCode = TrapCode::unwrap_user(250);

/// Returns the name of a trap in the specification, or `None` for codes that translated modules do
/// not use.
pub fn describe(code: TrapCode) -> Option<&'static str> {
    Some(match code {
        TrapCode::STACK_OVERFLOW => "call stack exhausted",
        TrapCode::INTEGER_OVERFLOW => "integer overflow",
        TrapCode::HEAP_OUT_OF_BOUNDS => "out of bounds memory access",
        TrapCode::INTEGER_DIVISION_BY_ZERO => "integer divide by zero",
        TrapCode::BAD_CONVERSION_TO_INTEGER => "invalid conversion to integer",
        UNREACHABLE => "unreachable",
        TABLE_OUT_OF_BOUNDS => "out of bounds table access",
        UNDEFINED_ELEMENT => "undefined element",
        UNINITIALIZED_ELEMENT => "uninitialized element",
        INDIRECT_CALL_TYPE => "indirect call type mismatch",
        NULL_REFERENCE => "null reference",
        NULL_FUNCTION => "null function reference",
        UNALIGNED_ATOMIC => "unaligned atomic",
        EXPECTED_SHARED => "expected shared memory",
        NULL_EXCEPTION => "null exception reference",
        TOO_MANY_EXCEPTIONS => "out of memory for exceptions",
        OUTSIDE_OF_DISPATCH => "call of a work-item function outside of a dispatch",
        UNCAUGHT_EXCEPTION => "uncaught exception",
        _ => return None,
    })
}
