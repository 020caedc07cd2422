//! Short loops. Unrolling makes their counters constants; the passes after it then remove branches
//! and accesses. Nested loops, whose inner loop passes a value of the outer one on.

use super::instance::Instance;
use super::operation::Small;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{BlockArg, InstBuilder as _, MemFlagsData, Type, Value, types};

/// The kinds of bodies.
const BODIES: usize = 16;

/// Bodies that compute with the counter or compare it.
const COUNTER_BODIES: [usize; 2] = [4, 8];

/// How a counter changes and when the loop continues.
#[derive(Clone, Copy)]
struct Count {
    start: i64,
    step: i64,
    /// The condition of the next counter and the bound that continues the loop.
    stays: IntCC,
    bound: i64,
}

/// Counters with one to four iterations.
const COUNTS: [Count; 12] = [
    count(3, -1, IntCC::SignedGreaterThan, 0),
    count(3, -1, IntCC::SignedGreaterThanOrEqual, 1),
    count(-2, 1, IntCC::SignedLessThan, 1),
    count(-2, 2, IntCC::SignedLessThanOrEqual, 2),
    count(1, 2, IntCC::NotEqual, 7),
    count(8, -2, IntCC::NotEqual, 2),
    count(6, -2, IntCC::UnsignedGreaterThan, 1),
    count(7, -3, IntCC::UnsignedGreaterThanOrEqual, 2),
    count(1, 3, IntCC::UnsignedLessThanOrEqual, 9),
    count(5, 1, IntCC::UnsignedLessThan, 3),
    count(0, 1, IntCC::Equal, 1),
    count(i32::MAX as i64 - 2, 1, IntCC::SignedLessThan, i32::MAX as i64),
];

const fn count(start: i64, step: i64, stays: IntCC, bound: i64) -> Count {
    Count {
        start,
        step,
        stays,
        bound,
    }
}

/// The values in a loop.
struct Scope {
    counter: Value,
    /// The loop-carried value.
    sum: Value,
    /// A parameter of the type of the sum.
    x: Value,
    /// An address.
    pointer: Value,
}

fn arg(value: Value) -> BlockArg {
    BlockArg::Value(value)
}

/// Adds two blocks with a join, chosen by a compare of the counter. Returns the parameter of the join.
fn branch(small: &mut Small, scope: &Scope, condition: IntCC, number: i64) -> Value {
    let ty = small.func.dfg.value_type(scope.sum);
    let number = small.cursor().ins().iconst(types::I32, number);
    let test = small.cursor().ins().icmp(condition, scope.counter, number);
    let (yes, no, join) = (
        small.func.dfg.make_block(),
        small.func.dfg.make_block(),
        small.func.dfg.make_block(),
    );
    let joined = small.func.dfg.append_block_param(join, ty);
    small.cursor().ins().brif(test, yes, &[], no, &[]);
    for (block, negated) in [(yes, false), (no, true)] {
        small.func.layout.append_block(block);
        small.block = block;
        let changed = match negated {
            false => small.cursor().ins().iadd(scope.sum, scope.x),
            true => small.cursor().ins().bxor(scope.sum, scope.x),
        };
        small.cursor().ins().jump(join, &[arg(changed)]);
    }
    small.func.layout.append_block(join);
    small.block = join;
    joined
}

/// Returns the address `pointer + 4 * counter`.
fn element(small: &mut Small, scope: &Scope) -> Value {
    let two = small.cursor().ins().iconst(types::I32, 2);
    let offset = small.cursor().ins().ishl(scope.counter, two);
    small.cursor().ins().iadd(scope.pointer, offset)
}

/// Adds a body. Returns the next value of the sum.
fn body(small: &mut Small, scope: &Scope, kind: usize) -> Value {
    let ty = small.func.dfg.value_type(scope.sum);
    let flags = MemFlagsData::trusted();
    match kind {
        0 => branch(small, scope, IntCC::Equal, 1),
        1 => branch(small, scope, IntCC::NotEqual, 0),
        2 => branch(small, scope, IntCC::UnsignedLessThan, 1),
        3 => {
            // The counter as a condition.
            let changed = small.cursor().ins().isub(scope.sum, scope.x);
            small.cursor().ins().select(scope.counter, changed, scope.sum)
        }
        4 => {
            let wide = match ty {
                types::I64 => small.cursor().ins().uextend(ty, scope.counter),
                types::I32 => scope.counter,
                _ => small.cursor().ins().ireduce(ty, scope.counter),
            };
            let product = small.cursor().ins().imul(wide, scope.x);
            small.cursor().ins().iadd(scope.sum, product)
        }
        5 => {
            // A store that the next load reads.
            let at = element(small, scope);
            small.cursor().ins().store(flags, scope.sum, at, 0);
            let loaded = small.cursor().ins().load(ty, flags, scope.pointer, 0);
            small.cursor().ins().bxor(loaded, scope.x)
        }
        6 => {
            // A store between two loads from one address.
            let at = element(small, scope);
            let first = small.cursor().ins().load(ty, flags, scope.pointer, 0);
            small.cursor().ins().store(flags, scope.x, at, 4);
            let second = small.cursor().ins().load(ty, flags, scope.pointer, 0);
            let both = small.cursor().ins().isub(first, second);
            small.cursor().ins().iadd(scope.sum, both)
        }
        7 => {
            let two = small.cursor().ins().iconst(types::I32, 2);
            let amount = small.cursor().ins().isub(two, scope.counter);
            let shifted = small.cursor().ins().ishl(scope.x, amount);
            small.cursor().ins().bor(scope.sum, shifted)
        }
        8 => branch(small, scope, IntCC::SignedGreaterThan, 1),
        9 => branch(small, scope, IntCC::UnsignedLessThanOrEqual, 1),
        10 => branch(small, scope, IntCC::UnsignedGreaterThanOrEqual, 2),
        11 => branch(small, scope, IntCC::SignedLessThanOrEqual, 0),
        12..15 => {
            // An operation on the counter and a constant.
            let four = small.cursor().ins().iconst(types::I32, 4);
            let number = match kind {
                12 => small.cursor().ins().bor(scope.counter, four),
                13 => small.cursor().ins().isub(four, scope.counter),
                _ => small.cursor().ins().umax(scope.counter, four),
            };
            let at = small.cursor().ins().iadd(scope.pointer, number);
            small.cursor().ins().istore8(flags, number, at, 0);
            let shifted = small.cursor().ins().ishl(scope.x, number);
            small.cursor().ins().iadd(scope.sum, shifted)
        }
        _ => {
            let left = small.cursor().ins().iadd(scope.sum, scope.x);
            let right = small.cursor().ins().iadd(scope.x, scope.sum);
            small.cursor().ins().bxor(left, right)
        }
    }
}

/// A counted loop.
fn counted(ty: Type, count: Count, kind: usize) -> Instance {
    let mut small = Small::default();
    let (pointer, x, first) = (small.param(types::I32), small.param(ty), small.param(ty));
    let start = number(&mut small, count.start);
    let header = small.func.dfg.make_block();
    let counter = small.func.dfg.append_block_param(header, types::I32);
    let sum = small.func.dfg.append_block_param(header, ty);
    small.cursor().ins().jump(header, &[arg(start), arg(first)]);
    small.func.layout.append_block(header);
    small.block = header;
    let scope = Scope {
        counter,
        sum,
        x,
        pointer,
    };
    let next = body(&mut small, &scope, kind);
    let (step, bound) = (number(&mut small, count.step), number(&mut small, count.bound));
    let following = small.cursor().ins().iadd(counter, step);
    let stays = small.cursor().ins().icmp(count.stays, following, bound);
    let exit = small.func.dfg.make_block();
    let args = [arg(following), arg(next)];
    small.cursor().ins().brif(stays, header, &args, exit, &[]);
    small.func.layout.append_block(exit);
    small.block = exit;
    small.ret(&[next]);
    Instance::new(small, ty)
}

/// Adds a 32-bit constant.
fn number(small: &mut Small, value: i64) -> Value {
    let narrow = i64::from((value as i32).cast_unsigned());
    small.cursor().ins().iconst(types::I32, narrow)
}

/// Two nested loops. The inner one passes a value of the outer one on without a change. With
/// `is_used`, its body uses that value.
fn nested(ty: Type, is_used: bool) -> Instance {
    let mut small = Small::default();
    let (x, first) = (small.param(ty), small.param(ty));
    let [outer, inner, latch, exit] = [(); 4].map(|()| small.func.dfg.make_block());
    let zero = number(&mut small, 0);
    let param = |small: &mut Small, block, ty| small.func.dfg.append_block_param(block, ty);
    let (i, kept) = (param(&mut small, outer, types::I32), param(&mut small, outer, ty));
    let (j, copy, sum) = (
        param(&mut small, inner, types::I32),
        param(&mut small, inner, ty),
        param(&mut small, inner, ty),
    );
    small.cursor().ins().jump(outer, &[arg(zero), arg(first)]);
    let start = |small: &mut Small, block| {
        small.func.layout.append_block(block);
        small.block = block;
    };
    start(&mut small, outer);
    small.cursor().ins().jump(inner, &[arg(zero), arg(kept), arg(x)]);
    start(&mut small, inner);
    let with = if is_used { copy } else { x };
    let next = small.cursor().ins().iadd(sum, with);
    let one = number(&mut small, 1);
    let two = number(&mut small, 2);
    let following = small.cursor().ins().iadd(j, one);
    let stays = small.cursor().ins().icmp(IntCC::UnsignedLessThan, following, two);
    let args = [arg(following), arg(copy), arg(next)];
    small.cursor().ins().brif(stays, inner, &args, latch, &[]);
    start(&mut small, latch);
    let changed = small.cursor().ins().bxor(copy, next);
    let one = number(&mut small, 1);
    let two = number(&mut small, 2);
    let following = small.cursor().ins().iadd(i, one);
    let stays = small.cursor().ins().icmp(IntCC::NotEqual, following, two);
    let args = [arg(following), arg(changed)];
    small.cursor().ins().brif(stays, outer, &args, exit, &[]);
    start(&mut small, exit);
    small.ret(&[changed, copy]);
    Instance::new(small, ty)
}

/// Returns the loops.
pub fn instances() -> Vec<Instance> {
    let mut out = Vec::new();
    for ty in [types::I8, types::I32, types::I64] {
        for trips in 1..=4 {
            let count = count(0, 1, IntCC::UnsignedLessThan, trips);
            out.extend((0..BODIES).map(|kind| counted(ty, count, kind)));
        }
        for count in COUNTS {
            out.extend(COUNTER_BODIES.map(|kind| counted(ty, count, kind)));
        }
        out.extend([false, true].map(|is_used| nested(ty, is_used)));
    }
    out
}
