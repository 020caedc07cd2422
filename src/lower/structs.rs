//! Passes structures by value: the caller copies them to its frame and passes the address of the
//! copy (`docs/abi.md`).

use super::context::Lower;
use crate::inst::ops::access;
use crate::inst::reg::Reg;
use crate::inst::{AMode, MInst};
use cranelift_codegen::ir::Value;
use npu_mc::machine::{STACK_ALIGN, WORD_SLOT};
use regalloc2::{RegClass, VReg};

/// The maximum number of accesses of an unrolled copy.
const MAX_UNROLLED: u32 = 8;

/// Copies `size` bytes from the address in `source`. Returns the address of the copy.
pub fn copy(ctx: &mut Lower<'_>, source: Value, size: u32) -> VReg {
    let align = size.clamp(1, STACK_ALIGN).next_power_of_two().max(WORD_SLOT);
    let area = ctx.new_local(size, align);
    let aligned = ctx.known_alignment(source) >= u64::from(WORD_SLOT);
    let src = Reg::Virtual(ctx.put_in_regs(source).as_slice()[0]);
    let unit = if aligned { WORD_SLOT } else { 1 };
    if size / unit + size % unit <= MAX_UNROLLED {
        let words = (0..size / unit).map(|n| (n * unit, unit));
        let rest = (size - size % unit..size).map(|at| (at, 1));
        // Emits all loads first, so that they do not wait for one another.
        let units: Vec<(u32, u32)> = words.chain(rest).collect();
        let loaded: Vec<Reg> = units.iter().map(|&(at, bytes)| load(ctx, src, at, bytes)).collect();
        for (&(at, bytes), src) in units.iter().zip(loaded) {
            let (_, op) = access(bytes);
            let addr = AMode::Local {
                area,
                offset: at.cast_signed(),
            };
            ctx.emit(MInst::Store { op, src, addr });
        }
    } else {
        let tmps = std::array::from_fn(|_| Reg::Virtual(ctx.new_vreg(RegClass::Int)));
        ctx.emit(MInst::Copy {
            area,
            src,
            size,
            aligned,
            tmps,
        });
    }
    let pointer = ctx.new_vreg(RegClass::Int);
    ctx.emit(MInst::Address {
        dst: Reg::Virtual(pointer),
        addr: AMode::Local { area, offset: 0 },
    });
    pointer
}

fn load(ctx: &mut Lower<'_>, base: Reg, at: u32, bytes: u32) -> Reg {
    let dst = Reg::Virtual(ctx.new_vreg(RegClass::Int));
    let (op, _) = access(bytes);
    let addr = AMode::Reg {
        base,
        offset: at.cast_signed(),
    };
    ctx.emit(MInst::Load { op, dst, addr });
    dst
}
