//! Multiplication and division of several words by routines of the runtime, with the checks that stand in front.

use super::compare;
use crate::inst::MInst;
use crate::inst::reg::Reg;
use crate::lower::call;
use crate::lower::context::Lower;
use crate::lower::words::{Word, Words};
use crate::runtime::Routine;
use cranelift_codegen::ir::TrapCode;
use npu_mc::Opcode as Op;
use smallvec::SmallVec;

/// Calls a routine on the words given, in order.
pub fn routine(ctx: &mut Lower<'_>, routine: Routine, args: Words) -> Words {
    let args: SmallVec<[Reg; 8]> = args.as_slice().iter().map(|word| ctx.reg(*word)).collect();
    let results = call::routine(ctx, routine, &args);
    Words::new(results.into_iter().map(Word::Reg))
}

/// Calls a routine on two values.
pub fn routine2(ctx: &mut Lower<'_>, which: &Routine, x: Words, y: Words) -> Words {
    routine(ctx, *which, x.then(y))
}

/// Stops with a trap if the divisor is zero.
pub fn check_divisor(ctx: &mut Lower<'_>, divisor: Words) {
    let known = divisor
        .as_slice()
        .iter()
        .any(|word| matches!(word, Word::Const(number) if *number != 0));
    if !known {
        let cond = compare::nonzero(ctx, divisor).inverted();
        ctx.emit(MInst::TrapIf {
            cond,
            code: TrapCode::INTEGER_DIVISION_BY_ZERO,
        });
    }
}

/// Stops with a trap if the quotient is one more than the largest number: the smallest one divided by -1.
pub fn check_quotient(ctx: &mut Lower<'_>, dividend: Words, divisor: Words) {
    let minus_one = Word::Const(u32::MAX);
    let known = divisor
        .as_slice()
        .iter()
        .any(|word| matches!(word, Word::Const(_)) && *word != minus_one);
    if known {
        return;
    }
    let ones = ctx.reduce(Op::ANDSSS_32, divisor);
    let not_ones = ctx.binary(Op::XORSSS_32, ones, minus_one);
    let smallest = ctx.binary(Op::XORSSS_32, dividend.top(), Word::Const(1 << 31));
    let smallest = ctx.reduce(Op::ORSSS_32, dividend.with_top(smallest));
    let either = ctx.binary(Op::ORSSS_32, not_ones, smallest);
    let cond = ctx.nonzero_word(either).inverted();
    ctx.emit(MInst::TrapIf {
        cond,
        code: TrapCode::INTEGER_OVERFLOW,
    });
}

/// Whether an unsigned product overflows: its upper half is not zero.
pub fn umul_overflow(ctx: &mut Lower<'_>, upper: Words) -> Word {
    let any = ctx.reduce(Op::ORSSS_32, upper);
    ctx.binary(Op::SNESISSS_32, any, Word::ZERO)
}

/// Whether a signed product overflows: its upper half is not the sign of the lower one.
pub fn smul_overflow(ctx: &mut Lower<'_>, low: Words, upper: Words) -> Word {
    let sign = super::arithmetic::sign_word(ctx, low);
    let differ = ctx.map1(Op::XORSSS_32, upper, sign);
    umul_overflow(ctx, differ)
}
