//! Expansion of loops that copy a structure into the frame.

use super::expand::Expander;
use crate::error::CompileError;
use crate::inst::ops::access;
use crate::inst::{AMode, Cond};
use npu_mc::machine::WORD_SLOT;
use npu_mc::{Opcode, Reg};

impl Expander<'_> {
    /// Copies `size` bytes from `src` to the area, by words and then the remaining bytes.
    ///
    /// If `aligned` is false, emits a test of the alignment of `src`, and a loop by bytes for an
    /// unaligned one.
    pub(super) fn copy(
        &mut self,
        area: u32,
        src: Reg,
        size: u32,
        aligned: bool,
        tmps: [Reg; 4],
    ) -> Result<(), CompileError> {
        let [from, to, left, _] = tmps;
        self.move_reg(from, src);
        let (base, offset) = self.resolve(AMode::Local { area, offset: 0 })?;
        self.add(to, base, offset);
        let bytewise = self.func.new_label();
        let end = self.func.new_label();
        if !aligned {
            let mask = (WORD_SLOT - 1).cast_signed();
            self.op(Opcode::ANDSSI, [left.into(), from.into(), mask.into()]);
            let odd = Cond {
                reg: left,
                nonzero: true,
            };
            self.branch_if(odd, bytewise);
        }
        self.copy_loop(tmps, size / WORD_SLOT, WORD_SLOT);
        for at in 0..size % WORD_SLOT {
            self.copy_one(tmps, at.cast_signed(), 1);
        }
        if !aligned {
            self.jump(end);
            self.func.bind(bytewise);
            self.copy_loop(tmps, size, 1);
            self.func.bind(end);
        }
        Ok(())
    }

    fn copy_loop(&mut self, tmps: [Reg; 4], count: u32, unit: u32) {
        let [from, to, left, _] = tmps;
        self.constant(left, count);
        let next = self.func.new_label();
        self.func.bind(next);
        self.copy_one(tmps, 0, unit);
        for pointer in [from, to] {
            self.op(
                Opcode::ADDSSI,
                [pointer.into(), pointer.into(), unit.cast_signed().into()],
            );
        }
        self.op(Opcode::SUBSSI, [left.into(), left.into(), 1.into()]);
        let more = Cond {
            reg: left,
            nonzero: true,
        };
        self.branch_if(more, next);
    }

    fn copy_one(&mut self, [from, to, _, value]: [Reg; 4], offset: i32, unit: u32) {
        let (load, store) = access(unit);
        self.op(load, [value.into(), from.into(), offset.into()]);
        self.op(store, [value.into(), to.into(), offset.into()]);
    }
}
