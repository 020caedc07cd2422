//! The cost of each instruction in cycles, over all timed calls of a module.

use npu_sim::{Issue, STALLS, Sink, Stall};
use std::collections::BTreeMap;

/// The cost of an instruction in the timing model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct InstCycles {
    /// The number of executions.
    pub executed: u64,
    /// Cycles of its thread from the previous issue to its own. For a branch, this includes the
    /// cycles of the instructions that were killed because it was taken.
    pub cycles: u64,
    /// The stall cycles among these, by cause, in the order of [`Stall::ALL`].
    pub stalls: [u64; STALLS],
}

impl InstCycles {
    /// Adds the cost of the same instruction in another copy of its function.
    pub(super) fn add(&mut self, other: &Self) {
        self.executed += other.executed;
        self.cycles += other.cycles;
        for (sum, cycles) in self.stalls.iter_mut().zip(other.stalls) {
            *sum += cycles;
        }
    }

    /// Returns the nonzero stall cycles with their causes.
    pub fn causes(&self) -> impl Iterator<Item = (Stall, u64)> {
        let all = Stall::ALL.into_iter().zip(self.stalls);
        all.filter(|&(_, cycles)| cycles > 0)
    }
}

/// Accumulates costs from the events of the pipelines.
#[derive(Clone, Debug, Default)]
pub(super) struct CycleProfile {
    /// The costs by address.
    pub(super) insts: BTreeMap<u32, InstCycles>,
    threads: Vec<Thread>,
}

/// The state of a thread.
#[derive(Clone, Copy, Debug, Default)]
struct Thread {
    /// The last executed instruction.
    last: Option<u32>,
    /// The stall cycles since the last issue.
    stalls: [u64; STALLS],
}

impl CycleProfile {
    /// Starts another call.
    pub(super) fn start(&mut self) {
        self.threads.clear();
    }

    fn thread(&mut self, number: usize) -> &mut Thread {
        if self.threads.len() <= number {
            self.threads.resize(number + 1, Thread::default());
        }
        &mut self.threads[number]
    }
}

impl Sink for CycleProfile {
    fn issue(&mut self, issue: &Issue) {
        let thread = self.thread(issue.thread);
        let stalls = std::mem::take(&mut thread.stalls);
        let pc = if issue.killed {
            thread.last.unwrap_or(issue.pc)
        } else {
            thread.last = Some(issue.pc);
            issue.pc
        };
        let inst = self.insts.entry(pc).or_default();
        inst.executed += u64::from(!issue.killed);
        inst.cycles += 1 + stalls.iter().sum::<u64>();
        for (sum, cycles) in inst.stalls.iter_mut().zip(stalls) {
            *sum += cycles;
        }
    }

    fn stall(&mut self, thread: usize, cause: Stall, from: u64, to: u64) {
        self.thread(thread).stalls[cause as usize] += to.saturating_sub(from);
    }
}
#[cfg(test)]
mod tests {
    use super::*;

    fn issue(pc: u32, killed: bool) -> Issue {
        Issue {
            cycle: 0,
            fetched: 0,
            thread: 2,
            pc,
            word: 0,
            latency: 1,
            killed,
        }
    }

    /// The cycles of killed instructions are attributed to the branch before them, those of stalls
    /// to the stalled instruction.
    #[test]
    fn cycles_belong_to_instructions() {
        let mut profile = CycleProfile::default();
        profile.issue(&issue(0x400, false));
        profile.stall(2, Stall::Load, 1, 5);
        profile.issue(&issue(0x404, false));
        profile.issue(&issue(0x408, true));
        profile.issue(&issue(0x400, false));
        let costs: Vec<(u32, u64, u64)> = profile
            .insts
            .iter()
            .map(|(&pc, inst)| (pc, inst.executed, inst.cycles))
            .collect();
        assert_eq!(costs, [(0x400, 2, 2), (0x404, 1, 6)]);
        assert_eq!(profile.insts[&0x404].causes().collect::<Vec<_>>(), [(Stall::Load, 4)]);
    }
}
