//! Constants that lowering has promised to somebody and not yet defined.
//!
//! Lowering runs backwards, so a constant is asked for by its last user first. Users that are close together share one
//! definition, placed before the first of them; a constant nobody has asked for in a while is defined at once, so
//! that it does not occupy a register over a long stretch.

use crate::inst::MInst;
use crate::inst::reg::Reg;
use regalloc2::VReg;
use rustc_hash::FxHashMap;

/// How many machine instructions may lie between two users that share a definition.
const WINDOW: usize = 48;

/// A constant in a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Constant {
    /// A word.
    Scalar(u32),
    /// A vector with the same word in every lane.
    Splat(u32),
    /// A vector of the function's pool.
    Lanes(u32),
}

impl Constant {
    /// The instruction that makes it.
    pub fn define(self, reg: VReg) -> MInst {
        let dst = Reg::Virtual(reg);
        match self {
            Self::Scalar(value) | Self::Splat(value) => MInst::Const { dst, value },
            Self::Lanes(index) => MInst::PoolLoad { dst, index },
        }
    }
}

/// Constants with the register promised and the position of the latest request.
#[derive(Debug, Default)]
pub struct ConstantPool {
    pending: FxHashMap<Constant, (VReg, usize)>,
    /// No pending constant was asked for before this position.
    oldest: usize,
}

impl ConstantPool {
    /// The register of a pending constant, whose latest use is now at `position`.
    pub fn get(&mut self, value: Constant, position: usize) -> Option<VReg> {
        let (reg, last) = self.pending.get_mut(&value)?;
        *last = position;
        Some(*reg)
    }

    /// Promises `reg` for the constant.
    pub fn insert(&mut self, value: Constant, reg: VReg, position: usize) {
        if self.pending.is_empty() {
            self.oldest = position;
        }
        self.pending.insert(value, (reg, position));
    }

    /// Removes and returns the constants that nobody asked for lately, in a fixed order.
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
