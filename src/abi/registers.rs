//! The registers that a function may use and that a call may change, from the register classes of
//! td, in the form that regalloc2 expects.

use crate::inst::reg::to_preg;
use cranelift_codegen::settings::Flags;
use npu_mc::env::{ClassInfo, GPR32, VR512W};
use npu_mc::{SReg, VReg as VectorReg};
use regalloc2::{MachineEnv, PReg, PRegSet, RegClass};
use std::sync::OnceLock;

/// Returns the size of one spill slot in regalloc2's units: the spill size of a scalar, in bytes.
pub fn spill_unit() -> u32 {
    GPR32.spill_size
}

/// Returns the size of a spill slot for a register of the class, in units of [`spill_unit`].
pub fn spill_words(class: RegClass) -> usize {
    match class {
        RegClass::Int => 1,
        RegClass::Float | RegClass::Vector => (VR512W.spill_size / GPR32.spill_size) as usize,
    }
}

/// The set of registers that a function may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegisterSet {
    /// All allocatable registers (`GPR32` and `VR512W` in `td/NaplesPURegisterInfo.td`).
    All,
    /// The few registers that runtime routines may change. Callers of `preserve_all` functions rely
    /// on the rest.
    PreserveAll,
}

fn scalar(number: u8) -> Option<PReg> {
    SReg::new(number).map(|r| to_preg(npu_mc::Reg::S(r)))
}

fn vector(number: u8) -> Option<PReg> {
    VectorReg::new(number).map(|r| to_preg(npu_mc::Reg::V(r)))
}

fn set(numbers: &[u8], class: fn(u8) -> Option<PReg>) -> PRegSet {
    numbers.iter().filter_map(|&n| class(n)).collect()
}

/// Returns the registers that a call may change if the callee uses this set.
pub fn clobbered(registers: RegisterSet) -> PRegSet {
    static SETS: OnceLock<[PRegSet; 2]> = OnceLock::new();
    let [all, few] = SETS.get_or_init(|| {
        let mut all = set(GPR32.preferred, scalar);
        all.union_from(set(VR512W.preferred, vector));
        [all, preserve_all_scalars(&GPR32).into_iter().collect()]
    });
    match registers {
        RegisterSet::All => *all,
        RegisterSet::PreserveAll => *few,
    }
}

/// Returns the registers whose values are lost when a throw reaches a handler: all allocatable
/// ones.
pub fn clobbered_by_exceptions(pinned: Option<SReg>) -> PRegSet {
    let env = env(RegisterSet::All, pinned);
    let mut all = PRegSet::empty();
    for set in env
        .preferred_regs_by_class
        .iter()
        .chain(&env.non_preferred_regs_by_class)
    {
        all.union_from(*set);
    }
    all
}

/// The number of caller-saved scalars that a `preserve_all` function may change.
const PRESERVE_ALL_SCRATCH: usize = 20;

fn preserve_all_scalars(info: &ClassInfo) -> Vec<PReg> {
    info.preferred
        .iter()
        .take(PRESERVE_ALL_SCRATCH)
        .filter_map(|&n| scalar(n))
        .collect()
}

/// Returns the register of `get_pinned_reg` and `set_pinned_reg`: the last callee-saved scalar. If
/// the flag `enable_pinned_reg` is on, the register is reserved and no function saves it.
pub fn pinned(flags: &Flags) -> Option<SReg> {
    let last = GPR32.non_preferred.last().copied();
    last.filter(|_| flags.enable_pinned_reg()).and_then(SReg::new)
}

/// Builds the register environment for regalloc2, without the pinned register.
pub fn machine_env(registers: RegisterSet, pinned: Option<SReg>) -> MachineEnv {
    let vectors = (set(VR512W.preferred, vector), set(VR512W.non_preferred, vector));
    let mut scalars = match registers {
        RegisterSet::All => (set(GPR32.preferred, scalar), set(GPR32.non_preferred, scalar)),
        RegisterSet::PreserveAll => {
            let scratch: PRegSet = preserve_all_scalars(&GPR32).into_iter().collect();
            let mut rest = set(GPR32.preferred, scalar);
            rest.union_from(set(GPR32.non_preferred, scalar));
            for reg in scratch {
                rest.remove(reg);
            }
            (scratch, rest)
        }
    };
    if let Some(reg) = pinned {
        scalars.1.remove(to_preg(npu_mc::Reg::S(reg)));
    }
    MachineEnv {
        preferred_regs_by_class: [scalars.0, PRegSet::empty(), vectors.0],
        non_preferred_regs_by_class: [scalars.1, PRegSet::empty(), vectors.1],
        scratch_by_class: [None; 3],
        fixed_stack_slots: Vec::new(),
    }
}

/// Returns the register environment of a function. Each of the four kinds is built once.
pub fn env(registers: RegisterSet, pinned: Option<SReg>) -> &'static MachineEnv {
    static ENVS: [OnceLock<MachineEnv>; 4] = [const { OnceLock::new() }; 4];
    let kind = usize::from(registers == RegisterSet::PreserveAll) * 2 + usize::from(pinned.is_some());
    ENVS[kind].get_or_init(|| machine_env(registers, pinned))
}
