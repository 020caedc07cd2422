//! Atomic operations: each one, by type, byte order and space, on an aligned address.

use super::instance::Instance;
use super::memory::space;
use super::operation::Small;
use cranelift_codegen::ir::{AtomicRmwOp, Endianness, InstBuilder as _, MemFlagsData, Type, Value, types};

/// The types of atomic operations.
const TYPES: [Type; 5] = [types::I8, types::I16, types::I32, types::I64, types::I128];

fn instance(ty: Type, flags: usize, build: impl FnOnce(&mut Small, MemFlagsData, Value) -> Vec<Value>) -> Instance {
    let mut small = Small::default();
    let pointer = small.param(types::I32);
    let aligned = MemFlagsData::new().with_aligned();
    let flags = match flags {
        0 => aligned,
        1 => aligned.with_endianness(Endianness::Big),
        _ => aligned.with_alias_region(Some(space(&mut small))),
    };
    let results = build(&mut small, flags, pointer);
    small.ret(&results);
    Instance::new(small, ty)
}

/// Returns the instances of atomic operations.
pub fn instances() -> Vec<Instance> {
    let mut out = Vec::new();
    for ty in TYPES {
        for flags in 0..3 {
            for &op in AtomicRmwOp::all() {
                out.push(instance(ty, flags, |small, flags, pointer| {
                    let operand = small.param(ty);
                    vec![small.cursor().ins().atomic_rmw(ty, flags, op, pointer, operand)]
                }));
            }
            out.push(instance(ty, flags, |small, flags, pointer| {
                let (expected, new) = (small.param(ty), small.param(ty));
                vec![small.cursor().ins().atomic_cas(flags, pointer, expected, new)]
            }));
            out.push(instance(ty, flags, |small, flags, pointer| {
                vec![small.cursor().ins().atomic_load(ty, flags, pointer)]
            }));
            out.push(instance(ty, flags, |small, flags, pointer| {
                let value = small.param(ty);
                small.cursor().ins().atomic_store(flags, value, pointer);
                Vec::new()
            }));
        }
    }
    out
}
