//! The runtime as compiled code sees it: routines for what the machine has no instruction for. The routines themselves are CLIF, in
//! the crate `naplespu-runtime`, and are compiled by this back end when a program needs them.
//!
//! They use the convention that CLIF spells `preserve_all`, or `probestack` where there is a result: only the first few
//! caller-saved registers change, so that a call costs its caller little. What library calls name (`memcpy` and its like) is
//! called as those are, with `system_v`.

use crate::abi::sig::SigInfo;
use cranelift_codegen::ir::{AbiParam, Signature, types};
use cranelift_codegen::isa::CallConv;
use std::sync::OnceLock;

/// Declares the routines: variant, name, words of arguments, words of results.
macro_rules! routines {
    ($($(#[$doc:meta])* $variant:ident = $name:literal, $args:literal -> $results:literal;)*) => {
        /// A routine that compiled code calls on its own. Arguments and results are words; a value of several words has
        /// its low word first.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Routine {
            $($(#[$doc])* $variant,)*
        }

        impl Routine {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// Its name, without the `%` of CLIF.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }

            /// The routine of this name.
            pub fn named(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|routine| routine.name() == name)
            }

            /// How many words it takes and gives.
            pub fn words(self) -> (usize, usize) {
                match self {
                    $(Self::$variant => ($args, $results),)*
                }
            }
        }
    };
}

routines! {
    /// Quotient of unsigned 32-bit numbers; the divisor is not zero.
    Udiv32 = "__npu_udiv32", 2 -> 1;
    /// Remainder of unsigned 32-bit numbers; the divisor is not zero.
    Urem32 = "__npu_urem32", 2 -> 1;
    /// Quotient of signed 32-bit numbers, rounded towards zero; the divisor is not zero and the quotient fits.
    Sdiv32 = "__npu_sdiv32", 2 -> 1;
    /// Remainder of signed 32-bit numbers with the sign of the dividend; the divisor is not zero.
    Srem32 = "__npu_srem32", 2 -> 1;
    /// Quotient of unsigned 64-bit numbers; the divisor is not zero.
    Udiv64 = "__npu_udiv64", 4 -> 2;
    /// Remainder of unsigned 64-bit numbers; the divisor is not zero.
    Urem64 = "__npu_urem64", 4 -> 2;
    /// Quotient of signed 64-bit numbers, rounded towards zero; the divisor is not zero and the quotient fits.
    Sdiv64 = "__npu_sdiv64", 4 -> 2;
    /// Remainder of signed 64-bit numbers with the sign of the dividend; the divisor is not zero.
    Srem64 = "__npu_srem64", 4 -> 2;
    /// Upper half of the product of unsigned 64-bit numbers.
    Umulhi64 = "__npu_umulhi64", 4 -> 2;
    /// Upper half of the product of signed 64-bit numbers.
    Smulhi64 = "__npu_smulhi64", 4 -> 2;
    /// Quotient of unsigned 128-bit numbers; the divisor is not zero.
    Udiv128 = "__npu_udiv128", 8 -> 4;
    /// Remainder of unsigned 128-bit numbers; the divisor is not zero.
    Urem128 = "__npu_urem128", 8 -> 4;
    /// Quotient of signed 128-bit numbers, rounded towards zero; the divisor is not zero and the quotient fits.
    Sdiv128 = "__npu_sdiv128", 8 -> 4;
    /// Remainder of signed 128-bit numbers with the sign of the dividend; the divisor is not zero.
    Srem128 = "__npu_srem128", 8 -> 4;
    /// Upper half of the product of unsigned 128-bit numbers.
    Umulhi128 = "__npu_umulhi128", 8 -> 4;
    /// Upper half of the product of signed 128-bit numbers.
    Smulhi128 = "__npu_smulhi128", 8 -> 4;
    /// Product of 128-bit numbers modulo 2^128.
    Mul128 = "__npu_mul128", 8 -> 4;
    /// Shift to the left of a 128-bit number; the amount is one word, taken modulo 128.
    Shl128 = "__npu_shl128", 5 -> 4;
    /// Shift to the right, zeros coming in of a 128-bit number; the amount is one word, taken modulo 128.
    Ushr128 = "__npu_ushr128", 5 -> 4;
    /// Shift to the right, the sign coming in of a 128-bit number; the amount is one word, taken modulo 128.
    Sshr128 = "__npu_sshr128", 5 -> 4;
    /// Rotation to the left of a 128-bit number; the amount is one word, taken modulo 128.
    Rotl128 = "__npu_rotl128", 5 -> 4;
    /// Sum, rounded to nearest even.
    F32Add = "__npu_f32_add", 2 -> 1;
    /// Difference, rounded to nearest even.
    F32Sub = "__npu_f32_sub", 2 -> 1;
    /// Product, rounded to nearest even.
    F32Mul = "__npu_f32_mul", 2 -> 1;
    /// Quotient, rounded to nearest even.
    F32Div = "__npu_f32_div", 2 -> 1;
    /// Square root, rounded to nearest even.
    F32Sqrt = "__npu_f32_sqrt", 1 -> 1;
    /// Product of the first two plus the third, rounded once.
    F32Fma = "__npu_f32_fma", 3 -> 1;
    /// Rounded up to an integral number.
    F32Ceil = "__npu_f32_ceil", 1 -> 1;
    /// Rounded down to an integral number.
    F32Floor = "__npu_f32_floor", 1 -> 1;
    /// Rounded towards zero to an integral number.
    F32Trunc = "__npu_f32_trunc", 1 -> 1;
    /// Rounded to nearest even to an integral number.
    F32Nearest = "__npu_f32_nearest", 1 -> 1;
    /// The smaller number; -0 is below +0, and a NaN wins.
    F32Min = "__npu_f32_min", 2 -> 1;
    /// The larger number; -0 is below +0, and a NaN wins.
    F32Max = "__npu_f32_max", 2 -> 1;
    /// Sum, rounded to nearest even.
    F64Add = "__npu_f64_add", 4 -> 2;
    /// Difference, rounded to nearest even.
    F64Sub = "__npu_f64_sub", 4 -> 2;
    /// Product, rounded to nearest even.
    F64Mul = "__npu_f64_mul", 4 -> 2;
    /// Quotient, rounded to nearest even.
    F64Div = "__npu_f64_div", 4 -> 2;
    /// Square root, rounded to nearest even.
    F64Sqrt = "__npu_f64_sqrt", 2 -> 2;
    /// Product of the first two plus the third, rounded once.
    F64Fma = "__npu_f64_fma", 6 -> 2;
    /// Rounded up to an integral number.
    F64Ceil = "__npu_f64_ceil", 2 -> 2;
    /// Rounded down to an integral number.
    F64Floor = "__npu_f64_floor", 2 -> 2;
    /// Rounded towards zero to an integral number.
    F64Trunc = "__npu_f64_trunc", 2 -> 2;
    /// Rounded to nearest even to an integral number.
    F64Nearest = "__npu_f64_nearest", 2 -> 2;
    /// The smaller number; -0 is below +0, and a NaN wins.
    F64Min = "__npu_f64_min", 4 -> 2;
    /// The larger number; -0 is below +0, and a NaN wins.
    F64Max = "__npu_f64_max", 4 -> 2;
    /// 1 if the first is less, 2 if both are equal, 4 if it is greater, 8 if one is a NaN.
    F64Compare = "__npu_f64_compare", 4 -> 1;
    /// To a signed 32-bit number, rounded towards zero and saturated, 0 for a NaN; then a word that is 0 if the number was in range, 1 if it was not, 2 for a NaN.
    F32ToS32 = "__npu_f32_to_s32", 1 -> 2;
    /// To a signed 64-bit number, rounded towards zero and saturated, 0 for a NaN; then a word that is 0 if the number was in range, 1 if it was not, 2 for a NaN.
    F32ToS64 = "__npu_f32_to_s64", 1 -> 3;
    /// To a signed 128-bit number, rounded towards zero and saturated, 0 for a NaN; then a word that is 0 if the number was in range, 1 if it was not, 2 for a NaN.
    F32ToS128 = "__npu_f32_to_s128", 1 -> 5;
    /// To a unsigned 32-bit number, rounded towards zero and saturated, 0 for a NaN; then a word that is 0 if the number was in range, 1 if it was not, 2 for a NaN.
    F32ToU32 = "__npu_f32_to_u32", 1 -> 2;
    /// To a unsigned 64-bit number, rounded towards zero and saturated, 0 for a NaN; then a word that is 0 if the number was in range, 1 if it was not, 2 for a NaN.
    F32ToU64 = "__npu_f32_to_u64", 1 -> 3;
    /// To a unsigned 128-bit number, rounded towards zero and saturated, 0 for a NaN; then a word that is 0 if the number was in range, 1 if it was not, 2 for a NaN.
    F32ToU128 = "__npu_f32_to_u128", 1 -> 5;
    /// From a signed 32-bit number, rounded to nearest even.
    F32FromS32 = "__npu_f32_from_s32", 1 -> 1;
    /// From a signed 64-bit number, rounded to nearest even.
    F32FromS64 = "__npu_f32_from_s64", 2 -> 1;
    /// From a signed 128-bit number, rounded to nearest even.
    F32FromS128 = "__npu_f32_from_s128", 4 -> 1;
    /// From a unsigned 32-bit number, rounded to nearest even.
    F32FromU32 = "__npu_f32_from_u32", 1 -> 1;
    /// From a unsigned 64-bit number, rounded to nearest even.
    F32FromU64 = "__npu_f32_from_u64", 2 -> 1;
    /// From a unsigned 128-bit number, rounded to nearest even.
    F32FromU128 = "__npu_f32_from_u128", 4 -> 1;
    /// To a signed 32-bit number, rounded towards zero and saturated, 0 for a NaN; then a word that is 0 if the number was in range, 1 if it was not, 2 for a NaN.
    F64ToS32 = "__npu_f64_to_s32", 2 -> 2;
    /// To a signed 64-bit number, rounded towards zero and saturated, 0 for a NaN; then a word that is 0 if the number was in range, 1 if it was not, 2 for a NaN.
    F64ToS64 = "__npu_f64_to_s64", 2 -> 3;
    /// To a signed 128-bit number, rounded towards zero and saturated, 0 for a NaN; then a word that is 0 if the number was in range, 1 if it was not, 2 for a NaN.
    F64ToS128 = "__npu_f64_to_s128", 2 -> 5;
    /// To a unsigned 32-bit number, rounded towards zero and saturated, 0 for a NaN; then a word that is 0 if the number was in range, 1 if it was not, 2 for a NaN.
    F64ToU32 = "__npu_f64_to_u32", 2 -> 2;
    /// To a unsigned 64-bit number, rounded towards zero and saturated, 0 for a NaN; then a word that is 0 if the number was in range, 1 if it was not, 2 for a NaN.
    F64ToU64 = "__npu_f64_to_u64", 2 -> 3;
    /// To a unsigned 128-bit number, rounded towards zero and saturated, 0 for a NaN; then a word that is 0 if the number was in range, 1 if it was not, 2 for a NaN.
    F64ToU128 = "__npu_f64_to_u128", 2 -> 5;
    /// From a signed 32-bit number, rounded to nearest even.
    F64FromS32 = "__npu_f64_from_s32", 1 -> 2;
    /// From a signed 64-bit number, rounded to nearest even.
    F64FromS64 = "__npu_f64_from_s64", 2 -> 2;
    /// From a signed 128-bit number, rounded to nearest even.
    F64FromS128 = "__npu_f64_from_s128", 4 -> 2;
    /// From a unsigned 32-bit number, rounded to nearest even.
    F64FromU32 = "__npu_f64_from_u32", 1 -> 2;
    /// From a unsigned 64-bit number, rounded to nearest even.
    F64FromU64 = "__npu_f64_from_u64", 2 -> 2;
    /// From a unsigned 128-bit number, rounded to nearest even.
    F64FromU128 = "__npu_f64_from_u128", 4 -> 2;
    /// Exact.
    F64FromF32 = "__npu_f64_from_f32", 1 -> 2;
    /// Rounded to nearest even.
    F32FromF64 = "__npu_f32_from_f64", 2 -> 1;
    /// Exact. Upper bits of the argument do not matter.
    F32FromF16 = "__npu_f32_from_f16", 1 -> 1;
    /// Exact. Upper bits of the argument do not matter.
    F64FromF16 = "__npu_f64_from_f16", 1 -> 2;
    /// Rounded to nearest even; upper bits of the result are zero.
    F16FromF32 = "__npu_f16_from_f32", 1 -> 1;
    /// Rounded to nearest even, once; upper bits of the result are zero.
    F16FromF64 = "__npu_f16_from_f64", 2 -> 1;
    /// Sum, rounded to nearest even.
    F128Add = "__npu_f128_add", 8 -> 4;
    /// Difference, rounded to nearest even.
    F128Sub = "__npu_f128_sub", 8 -> 4;
    /// Product, rounded to nearest even.
    F128Mul = "__npu_f128_mul", 8 -> 4;
    /// Quotient, rounded to nearest even.
    F128Div = "__npu_f128_div", 8 -> 4;
    /// Square root, rounded to nearest even.
    F128Sqrt = "__npu_f128_sqrt", 4 -> 4;
    /// Product of the first two plus the third, rounded once.
    F128Fma = "__npu_f128_fma", 12 -> 4;
    /// Rounded up to an integral number.
    F128Ceil = "__npu_f128_ceil", 4 -> 4;
    /// Rounded down to an integral number.
    F128Floor = "__npu_f128_floor", 4 -> 4;
    /// Rounded towards zero to an integral number.
    F128Trunc = "__npu_f128_trunc", 4 -> 4;
    /// Rounded to nearest even to an integral number.
    F128Nearest = "__npu_f128_nearest", 4 -> 4;
    /// The smaller number; -0 is below +0, and a NaN wins.
    F128Min = "__npu_f128_min", 8 -> 4;
    /// The larger number; -0 is below +0, and a NaN wins.
    F128Max = "__npu_f128_max", 8 -> 4;
    /// 1 if the first is less, 2 if both are equal, 4 if it is greater, 8 if one is a NaN.
    F128Compare = "__npu_f128_compare", 8 -> 1;
    /// To a signed 32-bit number, rounded towards zero and saturated, 0 for a NaN; then a word that is 0 if the number was in range, 1 if it was not, 2 for a NaN.
    F128ToS32 = "__npu_f128_to_s32", 4 -> 2;
    /// To a signed 64-bit number, rounded towards zero and saturated, 0 for a NaN; then a word that is 0 if the number was in range, 1 if it was not, 2 for a NaN.
    F128ToS64 = "__npu_f128_to_s64", 4 -> 3;
    /// To a signed 128-bit number, rounded towards zero and saturated, 0 for a NaN; then a word that is 0 if the number was in range, 1 if it was not, 2 for a NaN.
    F128ToS128 = "__npu_f128_to_s128", 4 -> 5;
    /// To an unsigned 32-bit number, rounded towards zero and saturated, 0 for a NaN; then a word that is 0 if the number was in range, 1 if it was not, 2 for a NaN.
    F128ToU32 = "__npu_f128_to_u32", 4 -> 2;
    /// To an unsigned 64-bit number, rounded towards zero and saturated, 0 for a NaN; then a word that is 0 if the number was in range, 1 if it was not, 2 for a NaN.
    F128ToU64 = "__npu_f128_to_u64", 4 -> 3;
    /// To an unsigned 128-bit number, rounded towards zero and saturated, 0 for a NaN; then a word that is 0 if the number was in range, 1 if it was not, 2 for a NaN.
    F128ToU128 = "__npu_f128_to_u128", 4 -> 5;
    /// From a signed 32-bit number, exact.
    F128FromS32 = "__npu_f128_from_s32", 1 -> 4;
    /// From a signed 64-bit number, exact.
    F128FromS64 = "__npu_f128_from_s64", 2 -> 4;
    /// From a signed 128-bit number, rounded to nearest even.
    F128FromS128 = "__npu_f128_from_s128", 4 -> 4;
    /// From an unsigned 32-bit number, exact.
    F128FromU32 = "__npu_f128_from_u32", 1 -> 4;
    /// From an unsigned 64-bit number, exact.
    F128FromU64 = "__npu_f128_from_u64", 2 -> 4;
    /// From an unsigned 128-bit number, rounded to nearest even.
    F128FromU128 = "__npu_f128_from_u128", 4 -> 4;
    /// Exact.
    F128FromF64 = "__npu_f128_from_f64", 2 -> 4;
    /// Rounded to nearest even, once.
    F64FromF128 = "__npu_f64_from_f128", 4 -> 2;
    /// Rounded to nearest even, once.
    F32FromF128 = "__npu_f32_from_f128", 4 -> 1;
    /// Rounded to nearest even, once; upper bits of the result are zero.
    F16FromF128 = "__npu_f16_from_f128", 4 -> 1;
    /// Copies to the first address from the second one as many bytes as the third word says, a multiple of four.
    Copy = "__npu_copy", 3 -> 0;
    /// Stores to the first address the sixteen bytes at the second one, which is aligned to words.
    Store16 = "__npu_store_16", 2 -> 0;
}

impl Routine {
    /// Where its arguments and results are; nowhere if the convention has no place for them, which a test excludes.
    pub fn signature(self) -> Option<&'static SigInfo> {
        static SIGNATURES: OnceLock<Vec<Option<SigInfo>>> = OnceLock::new();
        let all = SIGNATURES.get_or_init(|| {
            let info = |routine: &Self| {
                let (args, results) = routine.words();
                let mut sig = Signature::new(CallConv::Probestack);
                sig.params.resize(args, AbiParam::new(types::I32));
                sig.returns.resize(results, AbiParam::new(types::I32));
                SigInfo::new(&sig, routine.name()).ok()
            };
            Self::ALL.iter().map(info).collect()
        });
        all.get(self as usize)?.as_ref()
    }
}

/// A routine that calls another one, for scalars, on every lane of its arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LaneRoutine {
    /// Of one vector.
    One,
    /// Of two.
    Two,
    /// Of three.
    Three,
}

impl LaneRoutine {
    /// The one for this many vectors, which are one to three.
    pub fn of(vectors: usize) -> Self {
        match vectors {
            0 | 1 => Self::One,
            2 => Self::Two,
            _ => Self::Three,
        }
    }

    /// Its name, without the `%` of CLIF.
    pub fn name(self) -> &'static str {
        match self {
            Self::One => "__npu_lanes_1",
            Self::Two => "__npu_lanes_2",
            Self::Three => "__npu_lanes_3",
        }
    }

    /// Where its arguments and its result are; nowhere if the convention has no place for them, which a test excludes.
    pub fn signature(self) -> Option<SigInfo> {
        let mut sig = Signature::new(CallConv::Probestack);
        sig.params.push(AbiParam::new(types::I32));
        sig.params.resize(2 + self as usize, AbiParam::new(types::I32X16));
        sig.returns.push(AbiParam::new(types::I32X16));
        SigInfo::new(&sig, self.name()).ok()
    }
}

/// The name as the compiler itself has it, if it refers to a routine of that name.
pub(crate) fn static_name(name: &str) -> Option<&'static str> {
    let lanes = [LaneRoutine::One, LaneRoutine::Two, LaneRoutine::Three];
    let known = Routine::ALL.iter().map(|routine| routine.name());
    let known = known
        .chain(lanes.map(LaneRoutine::name))
        .chain(crate::intrinsics::routine_names());
    known.into_iter().find(|known| *known == name)
}

/// Whether a name is one of the runtime's.
pub fn is_reserved(name: &str) -> bool {
    name.starts_with("__npu_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_routine_has_a_signature() {
        for routine in Routine::ALL {
            assert!(routine.signature().is_some(), "{}", routine.name());
        }
        for vectors in 1..=3 {
            assert!(LaneRoutine::of(vectors).signature().is_some());
        }
    }
}
