//! Constants whose registers have uses but no definition yet.
//!
//! Lowering runs backwards, so the last use of a constant is lowered first. Uses that are close
//! together share one definition, which precedes the first of them. A constant without a recent use
//! is defined at once, so that it does not occupy a register over a long range.

use crate::inst::MInst;
use crate::inst::reg::Reg;
use regalloc2::VReg;
use rustc_hash::FxHashMap;

/// The maximum number of machine instructions between two uses that share a definition.
const WINDOW: usize = 48;

/// A constant in a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Constant {
    /// A word.
    Scalar(u32),
    /// A vector with the same word in every lane.
    Splat(u32),
    /// A vector of the function's constant pool.
    Lanes(u32),
}

impl Constant {
    /// Returns the instruction that defines the constant.
    pub fn define(self, reg: VReg) -> MInst {
        let dst = Reg::Virtual(reg);
        match self {
            Self::Scalar(value) | Self::Splat(value) => MInst::Const { dst, value },
            Self::Lanes(index) => MInst::PoolLoad { dst, index },
        }
    }
}

/// The constants to define, each with its register and the position of its latest use.
#[derive(Debug, Default)]
pub struct ConstantPool {
    pending: FxHashMap<Constant, (VReg, usize)>,
    /// A lower bound on the latest use of every pending constant.
    oldest: usize,
}

impl ConstantPool {
    /// Returns the register of a pending constant, and records a use at `position`.
    pub fn get(&mut self, value: Constant, position: usize) -> Option<VReg> {
        let (reg, last) = self.pending.get_mut(&value)?;
        *last = position;
        Some(*reg)
    }

    /// Records that `reg` is to hold the constant.
    pub fn insert(&mut self, value: Constant, reg: VReg, position: usize) {
        if self.pending.is_empty() {
            self.oldest = position;
        }
        self.pending.insert(value, (reg, position));
    }

    /// Removes and returns the constants without a recent use, in a fixed order.
    pub fn take_older_than(&mut self, position: usize) -> Vec<(Constant, VReg)> {
        let limit = position.saturating_sub(WINDOW);
        if self.pending.is_empty() || self.oldest >= limit {
            return Vec::new();
        }
        let mut old: Vec<(Constant, VReg)> = self
            .pending
            .iter()
            .filter(|(_, (_, last))| *last < limit)
            .map(|(&value, &(reg, _))| (value, reg))
            .collect();
        for (value, _) in &old {
            self.pending.remove(value);
        }
        self.oldest = self.pending.values().map(|&(_, last)| last).min().unwrap_or(limit);
        old.sort_by_key(|(_, reg)| reg.vreg());
        old
    }

    /// Removes and returns all pending constants, in a fixed order.
    pub fn take_all(&mut self) -> Vec<(Constant, VReg)> {
        if self.pending.is_empty() {
            return Vec::new();
        }
        let mut all: Vec<(Constant, VReg)> = self.pending.drain().map(|(value, (reg, _))| (value, reg)).collect();
        all.sort_by_key(|(_, reg)| reg.vreg());
        all
    }
}
