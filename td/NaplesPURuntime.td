//===- NaplesPURuntime.td - routines of the runtime ---------------------------===//
//
// Routines for operations that the machine has no instruction for. Compiled code calls them; they
// are written in CLIF, in `runtime/`. NaplesPULegalize.td (`CallRoutine`) and the rules in `isle/`
// determine which CLIF instruction calls which routine.
//
//===----------------------------------------------------------------------===//

// Arguments and results are words; a value of several words has its low word first.
class RuntimeRoutine<string variant, int args, int results, string summary> {
  string Variant = variant; // its name in Rust and ISLE; the record has that of the symbol
  int Args = args;          // argument words
  int Results = results;    // result words
  string Summary = summary;
}

def __npu_udiv32 : RuntimeRoutine<"Udiv32", 2, 1,
    "Quotient of unsigned 32-bit numbers; the divisor is not zero.">;
def __npu_urem32 : RuntimeRoutine<"Urem32", 2, 1,
    "Remainder of unsigned 32-bit numbers; the divisor is not zero.">;
def __npu_sdiv32 : RuntimeRoutine<"Sdiv32", 2, 1,
    "Quotient of signed 32-bit numbers, rounded towards zero; the divisor is not zero and the quotient fits.">;
def __npu_srem32 : RuntimeRoutine<"Srem32", 2, 1,
    "Remainder of signed 32-bit numbers with the sign of the dividend; the divisor is not zero.">;
def __npu_udiv64 : RuntimeRoutine<"Udiv64", 4, 2,
    "Quotient of unsigned 64-bit numbers; the divisor is not zero.">;
def __npu_urem64 : RuntimeRoutine<"Urem64", 4, 2,
    "Remainder of unsigned 64-bit numbers; the divisor is not zero.">;
def __npu_sdiv64 : RuntimeRoutine<"Sdiv64", 4, 2,
    "Quotient of signed 64-bit numbers, rounded towards zero; the divisor is not zero and the quotient fits.">;
def __npu_srem64 : RuntimeRoutine<"Srem64", 4, 2,
    "Remainder of signed 64-bit numbers with the sign of the dividend; the divisor is not zero.">;
def __npu_umulhi64 : RuntimeRoutine<"Umulhi64", 4, 2,
    "Upper half of the product of unsigned 64-bit numbers.">;
def __npu_smulhi64 : RuntimeRoutine<"Smulhi64", 4, 2,
    "Upper half of the product of signed 64-bit numbers.">;
def __npu_udiv128 : RuntimeRoutine<"Udiv128", 8, 4,
    "Quotient of unsigned 128-bit numbers; the divisor is not zero.">;
def __npu_urem128 : RuntimeRoutine<"Urem128", 8, 4,
    "Remainder of unsigned 128-bit numbers; the divisor is not zero.">;
def __npu_sdiv128 : RuntimeRoutine<"Sdiv128", 8, 4,
    "Quotient of signed 128-bit numbers, rounded towards zero; the divisor is not zero and the quotient fits.">;
def __npu_srem128 : RuntimeRoutine<"Srem128", 8, 4,
    "Remainder of signed 128-bit numbers with the sign of the dividend; the divisor is not zero.">;
def __npu_umulhi128 : RuntimeRoutine<"Umulhi128", 8, 4,
    "Upper half of the product of unsigned 128-bit numbers.">;
def __npu_smulhi128 : RuntimeRoutine<"Smulhi128", 8, 4,
    "Upper half of the product of signed 128-bit numbers.">;
def __npu_mul128 : RuntimeRoutine<"Mul128", 8, 4,
    "Product of 128-bit numbers modulo 2^128.">;
def __npu_shl128 : RuntimeRoutine<"Shl128", 5, 4,
    "Shift to the left of a 128-bit number; the amount is one word, taken modulo 128.">;
def __npu_ushr128 : RuntimeRoutine<"Ushr128", 5, 4,
    "Logical shift to the right of a 128-bit number; the amount is one word, taken modulo 128.">;
def __npu_sshr128 : RuntimeRoutine<"Sshr128", 5, 4,
    "Arithmetic shift to the right of a 128-bit number; the amount is one word, taken modulo 128.">;
def __npu_rotl128 : RuntimeRoutine<"Rotl128", 5, 4,
    "Rotation to the left of a 128-bit number; the amount is one word, taken modulo 128.">;
def __npu_f32_add : RuntimeRoutine<"F32Add", 2, 1,
    "Sum, rounded to nearest even.">;
def __npu_f32_sub : RuntimeRoutine<"F32Sub", 2, 1,
    "Difference, rounded to nearest even.">;
def __npu_f32_mul : RuntimeRoutine<"F32Mul", 2, 1,
    "Product, rounded to nearest even.">;
def __npu_f32_div : RuntimeRoutine<"F32Div", 2, 1,
    "Quotient, rounded to nearest even.">;
def __npu_f32_sqrt : RuntimeRoutine<"F32Sqrt", 1, 1,
    "Square root, rounded to nearest even.">;
def __npu_f32_fma : RuntimeRoutine<"F32Fma", 3, 1,
    "Product of the first two plus the third, rounded once.">;
def __npu_f32_ceil : RuntimeRoutine<"F32Ceil", 1, 1,
    "Rounded up to an integral number.">;
def __npu_f32_floor : RuntimeRoutine<"F32Floor", 1, 1,
    "Rounded down to an integral number.">;
def __npu_f32_trunc : RuntimeRoutine<"F32Trunc", 1, 1,
    "Rounded towards zero to an integral number.">;
def __npu_f32_nearest : RuntimeRoutine<"F32Nearest", 1, 1,
    "Rounded to nearest even to an integral number.">;
def __npu_f32_min : RuntimeRoutine<"F32Min", 2, 1,
    "The smaller number; -0 is below +0; a NaN if an operand is a NaN.">;
def __npu_f32_max : RuntimeRoutine<"F32Max", 2, 1,
    "The larger number; -0 is below +0; a NaN if an operand is a NaN.">;
def __npu_f64_add : RuntimeRoutine<"F64Add", 4, 2,
    "Sum, rounded to nearest even.">;
def __npu_f64_sub : RuntimeRoutine<"F64Sub", 4, 2,
    "Difference, rounded to nearest even.">;
def __npu_f64_mul : RuntimeRoutine<"F64Mul", 4, 2,
    "Product, rounded to nearest even.">;
def __npu_f64_div : RuntimeRoutine<"F64Div", 4, 2,
    "Quotient, rounded to nearest even.">;
def __npu_f64_sqrt : RuntimeRoutine<"F64Sqrt", 2, 2,
    "Square root, rounded to nearest even.">;
def __npu_f64_fma : RuntimeRoutine<"F64Fma", 6, 2,
    "Product of the first two plus the third, rounded once.">;
def __npu_f64_ceil : RuntimeRoutine<"F64Ceil", 2, 2,
    "Rounded up to an integral number.">;
def __npu_f64_floor : RuntimeRoutine<"F64Floor", 2, 2,
    "Rounded down to an integral number.">;
def __npu_f64_trunc : RuntimeRoutine<"F64Trunc", 2, 2,
    "Rounded towards zero to an integral number.">;
def __npu_f64_nearest : RuntimeRoutine<"F64Nearest", 2, 2,
    "Rounded to nearest even to an integral number.">;
def __npu_f64_min : RuntimeRoutine<"F64Min", 4, 2,
    "The smaller number; -0 is below +0; a NaN if an operand is a NaN.">;
def __npu_f64_max : RuntimeRoutine<"F64Max", 4, 2,
    "The larger number; -0 is below +0; a NaN if an operand is a NaN.">;
def __npu_f64_compare : RuntimeRoutine<"F64Compare", 4, 1,
    "1 if the first is less, 2 if both are equal, 4 if it is greater, 8 if one is a NaN.">;
def __npu_f32_to_s32 : RuntimeRoutine<"F32ToS32", 1, 2,
    "To a signed 32-bit number, rounded towards zero and saturated, 0 for a NaN; the last word is 0 if the number was in range, 1 if it was not, 2 for a NaN.">;
def __npu_f32_to_s64 : RuntimeRoutine<"F32ToS64", 1, 3,
    "To a signed 64-bit number, rounded towards zero and saturated, 0 for a NaN; the last word is 0 if the number was in range, 1 if it was not, 2 for a NaN.">;
def __npu_f32_to_s128 : RuntimeRoutine<"F32ToS128", 1, 5,
    "To a signed 128-bit number, rounded towards zero and saturated, 0 for a NaN; the last word is 0 if the number was in range, 1 if it was not, 2 for a NaN.">;
def __npu_f32_to_u32 : RuntimeRoutine<"F32ToU32", 1, 2,
    "To an unsigned 32-bit number, rounded towards zero and saturated, 0 for a NaN; the last word is 0 if the number was in range, 1 if it was not, 2 for a NaN.">;
def __npu_f32_to_u64 : RuntimeRoutine<"F32ToU64", 1, 3,
    "To an unsigned 64-bit number, rounded towards zero and saturated, 0 for a NaN; the last word is 0 if the number was in range, 1 if it was not, 2 for a NaN.">;
def __npu_f32_to_u128 : RuntimeRoutine<"F32ToU128", 1, 5,
    "To an unsigned 128-bit number, rounded towards zero and saturated, 0 for a NaN; the last word is 0 if the number was in range, 1 if it was not, 2 for a NaN.">;
def __npu_f32_from_s32 : RuntimeRoutine<"F32FromS32", 1, 1,
    "From a signed 32-bit number, rounded to nearest even.">;
def __npu_f32_from_s64 : RuntimeRoutine<"F32FromS64", 2, 1,
    "From a signed 64-bit number, rounded to nearest even.">;
def __npu_f32_from_s128 : RuntimeRoutine<"F32FromS128", 4, 1,
    "From a signed 128-bit number, rounded to nearest even.">;
def __npu_f32_from_u32 : RuntimeRoutine<"F32FromU32", 1, 1,
    "From an unsigned 32-bit number, rounded to nearest even.">;
def __npu_f32_from_u64 : RuntimeRoutine<"F32FromU64", 2, 1,
    "From an unsigned 64-bit number, rounded to nearest even.">;
def __npu_f32_from_u128 : RuntimeRoutine<"F32FromU128", 4, 1,
    "From an unsigned 128-bit number, rounded to nearest even.">;
def __npu_f64_to_s32 : RuntimeRoutine<"F64ToS32", 2, 2,
    "To a signed 32-bit number, rounded towards zero and saturated, 0 for a NaN; the last word is 0 if the number was in range, 1 if it was not, 2 for a NaN.">;
def __npu_f64_to_s64 : RuntimeRoutine<"F64ToS64", 2, 3,
    "To a signed 64-bit number, rounded towards zero and saturated, 0 for a NaN; the last word is 0 if the number was in range, 1 if it was not, 2 for a NaN.">;
def __npu_f64_to_s128 : RuntimeRoutine<"F64ToS128", 2, 5,
    "To a signed 128-bit number, rounded towards zero and saturated, 0 for a NaN; the last word is 0 if the number was in range, 1 if it was not, 2 for a NaN.">;
def __npu_f64_to_u32 : RuntimeRoutine<"F64ToU32", 2, 2,
    "To an unsigned 32-bit number, rounded towards zero and saturated, 0 for a NaN; the last word is 0 if the number was in range, 1 if it was not, 2 for a NaN.">;
def __npu_f64_to_u64 : RuntimeRoutine<"F64ToU64", 2, 3,
    "To an unsigned 64-bit number, rounded towards zero and saturated, 0 for a NaN; the last word is 0 if the number was in range, 1 if it was not, 2 for a NaN.">;
def __npu_f64_to_u128 : RuntimeRoutine<"F64ToU128", 2, 5,
    "To an unsigned 128-bit number, rounded towards zero and saturated, 0 for a NaN; the last word is 0 if the number was in range, 1 if it was not, 2 for a NaN.">;
def __npu_f64_from_s32 : RuntimeRoutine<"F64FromS32", 1, 2,
    "From a signed 32-bit number, rounded to nearest even.">;
def __npu_f64_from_s64 : RuntimeRoutine<"F64FromS64", 2, 2,
    "From a signed 64-bit number, rounded to nearest even.">;
def __npu_f64_from_s128 : RuntimeRoutine<"F64FromS128", 4, 2,
    "From a signed 128-bit number, rounded to nearest even.">;
def __npu_f64_from_u32 : RuntimeRoutine<"F64FromU32", 1, 2,
    "From an unsigned 32-bit number, rounded to nearest even.">;
def __npu_f64_from_u64 : RuntimeRoutine<"F64FromU64", 2, 2,
    "From an unsigned 64-bit number, rounded to nearest even.">;
def __npu_f64_from_u128 : RuntimeRoutine<"F64FromU128", 4, 2,
    "From an unsigned 128-bit number, rounded to nearest even.">;
def __npu_f64_from_f32 : RuntimeRoutine<"F64FromF32", 1, 2,
    "Exact.">;
def __npu_f32_from_f64 : RuntimeRoutine<"F32FromF64", 2, 1,
    "Rounded to nearest even.">;
def __npu_f32_from_f16 : RuntimeRoutine<"F32FromF16", 1, 1,
    "Exact. Upper bits of the argument do not matter.">;
def __npu_f64_from_f16 : RuntimeRoutine<"F64FromF16", 1, 2,
    "Exact. Upper bits of the argument do not matter.">;
def __npu_f16_from_f32 : RuntimeRoutine<"F16FromF32", 1, 1,
    "Rounded to nearest even; upper bits of the result are zero.">;
def __npu_f16_from_f64 : RuntimeRoutine<"F16FromF64", 2, 1,
    "Rounded to nearest even, once; upper bits of the result are zero.">;
def __npu_f128_add : RuntimeRoutine<"F128Add", 8, 4,
    "Sum, rounded to nearest even.">;
def __npu_f128_sub : RuntimeRoutine<"F128Sub", 8, 4,
    "Difference, rounded to nearest even.">;
def __npu_f128_mul : RuntimeRoutine<"F128Mul", 8, 4,
    "Product, rounded to nearest even.">;
def __npu_f128_div : RuntimeRoutine<"F128Div", 8, 4,
    "Quotient, rounded to nearest even.">;
def __npu_f128_sqrt : RuntimeRoutine<"F128Sqrt", 4, 4,
    "Square root, rounded to nearest even.">;
def __npu_f128_fma : RuntimeRoutine<"F128Fma", 12, 4,
    "Product of the first two plus the third, rounded once.">;
def __npu_f128_ceil : RuntimeRoutine<"F128Ceil", 4, 4,
    "Rounded up to an integral number.">;
def __npu_f128_floor : RuntimeRoutine<"F128Floor", 4, 4,
    "Rounded down to an integral number.">;
def __npu_f128_trunc : RuntimeRoutine<"F128Trunc", 4, 4,
    "Rounded towards zero to an integral number.">;
def __npu_f128_nearest : RuntimeRoutine<"F128Nearest", 4, 4,
    "Rounded to nearest even to an integral number.">;
def __npu_f128_min : RuntimeRoutine<"F128Min", 8, 4,
    "The smaller number; -0 is below +0; a NaN if an operand is a NaN.">;
def __npu_f128_max : RuntimeRoutine<"F128Max", 8, 4,
    "The larger number; -0 is below +0; a NaN if an operand is a NaN.">;
def __npu_f128_compare : RuntimeRoutine<"F128Compare", 8, 1,
    "1 if the first is less, 2 if both are equal, 4 if it is greater, 8 if one is a NaN.">;
def __npu_f128_to_s32 : RuntimeRoutine<"F128ToS32", 4, 2,
    "To a signed 32-bit number, rounded towards zero and saturated, 0 for a NaN; the last word is 0 if the number was in range, 1 if it was not, 2 for a NaN.">;
def __npu_f128_to_s64 : RuntimeRoutine<"F128ToS64", 4, 3,
    "To a signed 64-bit number, rounded towards zero and saturated, 0 for a NaN; the last word is 0 if the number was in range, 1 if it was not, 2 for a NaN.">;
def __npu_f128_to_s128 : RuntimeRoutine<"F128ToS128", 4, 5,
    "To a signed 128-bit number, rounded towards zero and saturated, 0 for a NaN; the last word is 0 if the number was in range, 1 if it was not, 2 for a NaN.">;
def __npu_f128_to_u32 : RuntimeRoutine<"F128ToU32", 4, 2,
    "To an unsigned 32-bit number, rounded towards zero and saturated, 0 for a NaN; the last word is 0 if the number was in range, 1 if it was not, 2 for a NaN.">;
def __npu_f128_to_u64 : RuntimeRoutine<"F128ToU64", 4, 3,
    "To an unsigned 64-bit number, rounded towards zero and saturated, 0 for a NaN; the last word is 0 if the number was in range, 1 if it was not, 2 for a NaN.">;
def __npu_f128_to_u128 : RuntimeRoutine<"F128ToU128", 4, 5,
    "To an unsigned 128-bit number, rounded towards zero and saturated, 0 for a NaN; the last word is 0 if the number was in range, 1 if it was not, 2 for a NaN.">;
def __npu_f128_from_s32 : RuntimeRoutine<"F128FromS32", 1, 4,
    "From a signed 32-bit number, exact.">;
def __npu_f128_from_s64 : RuntimeRoutine<"F128FromS64", 2, 4,
    "From a signed 64-bit number, exact.">;
def __npu_f128_from_s128 : RuntimeRoutine<"F128FromS128", 4, 4,
    "From a signed 128-bit number, rounded to nearest even.">;
def __npu_f128_from_u32 : RuntimeRoutine<"F128FromU32", 1, 4,
    "From an unsigned 32-bit number, exact.">;
def __npu_f128_from_u64 : RuntimeRoutine<"F128FromU64", 2, 4,
    "From an unsigned 64-bit number, exact.">;
def __npu_f128_from_u128 : RuntimeRoutine<"F128FromU128", 4, 4,
    "From an unsigned 128-bit number, rounded to nearest even.">;
def __npu_f128_from_f64 : RuntimeRoutine<"F128FromF64", 2, 4,
    "Exact.">;
def __npu_f64_from_f128 : RuntimeRoutine<"F64FromF128", 4, 2,
    "Rounded to nearest even, once.">;
def __npu_f32_from_f128 : RuntimeRoutine<"F32FromF128", 4, 1,
    "Rounded to nearest even, once.">;
def __npu_f16_from_f128 : RuntimeRoutine<"F16FromF128", 4, 1,
    "Rounded to nearest even, once; upper bits of the result are zero.">;
def __npu_copy : RuntimeRoutine<"Copy", 3, 0,
    "Copies bytes from the second address to the first one; the third word is their number, a multiple of four.">;
def __npu_store_16 : RuntimeRoutine<"Store16", 2, 0,
    "Stores to the first address the sixteen bytes at the second one, which is aligned to words.">;
