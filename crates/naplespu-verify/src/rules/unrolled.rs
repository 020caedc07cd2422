//! Short loops. Unrolling makes their counters constants; the passes after it then remove branches
//! and accesses.

use super::instance::Instance;
use super::operation::Small;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{BlockArg, InstBuilder as _, MemFlagsData, Type, Value, types};

/// The kinds of bodies.
const BODIES: usize = 9;

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
        _ => {
            let left = small.cursor().ins().iadd(scope.sum, scope.x);
            let right = small.cursor().ins().iadd(scope.x, scope.sum);
            small.cursor().ins().bxor(left, right)
        }
    }
}

/// A loop with a number of iterations.
fn counted(ty: Type, trips: i64, kind: usize) -> Instance {
    let mut small = Small::default();
    let (pointer, x, first) = (small.param(types::I32), small.param(ty), small.param(ty));
    let zero = small.cursor().ins().iconst(types::I32, 0);
    let header = small.func.dfg.make_block();
    let counter = small.func.dfg.append_block_param(header, types::I32);
    let sum = small.func.dfg.append_block_param(header, ty);
    small.cursor().ins().jump(header, &[arg(zero), arg(first)]);
    small.func.layout.append_block(header);
    small.block = header;
    let scope = Scope {
        counter,
        sum,
        x,
        pointer,
    };
    let next = body(&mut small, &scope, kind);
    let one = small.cursor().ins().iconst(types::I32, 1);
    let following = small.cursor().ins().iadd(counter, one);
    let bound = small.cursor().ins().iconst(types::I32, trips);
    let stays = small.cursor().ins().icmp(IntCC::UnsignedLessThan, following, bound);
    let exit = small.func.dfg.make_block();
    let args = [arg(following), arg(next)];
    small.cursor().ins().brif(stays, header, &args, exit, &[]);
    small.func.layout.append_block(exit);
    small.block = exit;
    small.ret(&[next]);
    Instance::new(small, ty)
}

/// Returns the loops.
pub fn instances() -> Vec<Instance> {
    let mut out = Vec::new();
    for ty in [types::I8, types::I32, types::I64] {
        for trips in 1..=4 {
            out.extend((0..BODIES).map(|kind| counted(ty, trips, kind)));
        }
    }
    out
}
