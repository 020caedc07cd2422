//! Loops that copy a structure into the frame.

use super::expand::{Expander, real};
use crate::inst::ops::access;
use crate::inst::reg::Reg;
use crate::inst::{AMode, Cond};
use npu_mc::machine::WORD_SLOT;
use npu_mc::{Opcode, Operand};

fn operand(reg: Reg) -> Operand {
    real(reg).into()
}

impl Expander<'_> {
    /// Copies `size` bytes from `src` to the area: words, and the last few bytes one by one. Without a promise that `src` is
    /// aligned, it is looked at first.
    pub(super) fn copy(&mut self, area: u32, src: Reg, size: u32, aligned: bool, tmps: [Reg; 4]) {
        let [from, to, left, _] = tmps;
        self.move_reg(real(from), real(src));
        let (base, offset) = self.resolve(AMode::Local { area, offset: 0 });
        self.add(to, base, offset);
        let bytewise = self.items.new_label();
        let end = self.items.new_label();
        if !aligned {
            let mask = (WORD_SLOT - 1).cast_signed();
            self.op(Opcode::ANDSSI, [operand(left), operand(from), mask.into()]);
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
            self.items.bind(bytewise);
            self.copy_loop(tmps, size, 1);
            self.items.bind(end);
        }
    }

    fn copy_loop(&mut self, tmps: [Reg; 4], count: u32, unit: u32) {
        let [from, to, left, _] = tmps;
        self.constant(real(left), count);
        let next = self.items.new_label();
        self.items.bind(next);
        self.copy_one(tmps, 0, unit);
        for pointer in [from, to] {
            self.op(
                Opcode::ADDSSI,
                [operand(pointer), operand(pointer), unit.cast_signed().into()],
            );
        }
        self.op(Opcode::SUBSSI, [operand(left), operand(left), 1.into()]);
        let more = Cond {
            reg: left,
            nonzero: true,
        };
        self.branch_if(more, next);
    }

    fn copy_one(&mut self, [from, to, _, value]: [Reg; 4], offset: i32, unit: u32) {
        let (load, store) = access(unit);
        self.op(load, [operand(value), operand(from), offset.into()]);
        self.op(store, [operand(value), operand(to), offset.into()]);
    }
}
