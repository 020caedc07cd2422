//! The register values that the lost-result erratum produces (`docs/errata.md`; td record
//! `ErratumLostResult`).
//!
//! A taken branch clears the busy bit of the instruction that issued in the cycle before it. While
//! this result is in flight, [`Late`] delays every new result until the cycle in which the register
//! file receives it, and computes the issue cycle of each instruction. The model assumes that the
//! thread runs alone, hits in all caches and starts the straight-line code with no result in
//! flight. A timing model provides the real cycles ([`Watch::clock`](crate::hazard::Watch::clock)).
//!
//! The result of a load from main memory never starts a delay: it is late only if the load misses.
//! A use of such a result is reported, with the correct value.

use crate::operands::Operands;
use crate::registers::{Lanes, PC, RM};
use crate::thread::Thread;
use npu_mc::Unit;
use npu_mc::machine::TAKEN_BRANCH;
use npu_mc::raw::RawInst;

/// The number of cycles from the first issue slot that can read a result to the cycle in which its
/// busy bit permits the issue of a dependent instruction.
const FORWARD: u64 = 2;

/// The number of words before a branch that the model examines.
const STRAIGHT: u32 = 24;

/// The maximum number of undecoded words that the model skips between an instruction and a branch.
/// They take no issue slot.
const UNDECODED: u32 = 8;

/// The distance in words at which a changed word can change the result of [`may_be_lost`].
pub(crate) const NEIGHBOURS: u32 = STRAIGHT;

/// The number of preceding float results that can delay an integer result until it reaches a branch
/// target.
const BURST: usize = 4;

/// A value of a register.
#[derive(Clone, Debug)]
enum Value {
    Scalar(u32),
    Vector(Box<Lanes>),
}

/// A register, scalar or vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Register {
    number: u8,
    vector: bool,
}

impl Register {
    /// Returns the register that an instruction writes. Excludes the lane mask and the registers
    /// whose writes change it, because the hardware updates them immediately.
    fn written(operands: &Operands) -> Option<Register> {
        let found = |set: u64, vector| {
            (set != 0).then(|| Register {
                number: set.trailing_zeros() as u8,
                vector,
            })
        };
        let register = found(operands.scalar_writes, false).or_else(|| found(operands.vector_writes, true))?;
        (register.number != RM && register.number != PC).then_some(register)
    }

    fn is_in(self, operands: &Operands) -> bool {
        let set = if self.vector {
            operands.vector_reads | operands.vector_writes
        } else {
            operands.scalar_reads | operands.scalar_writes
        };
        set >> self.number & 1 != 0
    }

    fn get(self, thread: &Thread) -> Value {
        if self.vector {
            Value::Vector(Box::new(*thread.v(self.number)))
        } else {
            Value::Scalar(thread.s(self.number))
        }
    }

    fn set(self, thread: &mut Thread, value: &Value) {
        match value {
            Value::Scalar(value) => thread.scalars[usize::from(self.number)] = *value,
            Value::Vector(lanes) => thread.vectors[usize::from(self.number & 63)] = **lanes,
        }
    }
}

/// Returns the latency of an instruction in cycles, or 0 if it has no result, and its unit.
fn latency(inst: &RawInst) -> (u64, Unit) {
    let (latency, unit) = match (inst, inst.info()) {
        (RawInst::Mem(i), Some(info)) if i.shared => (info.scratchpad_latency, Unit::Spm),
        (_, Some(info)) => (info.latency, info.unit),
        (_, None) => (0, Unit::None),
    };
    (u64::from(latency), unit)
}

fn is_branch(inst: &RawInst) -> bool {
    matches!(
        inst,
        RawInst::Jba(_) | RawInst::JbaUnassigned(_) | RawInst::Jra(_) | RawInst::JraUnassigned(_)
    )
}

fn is_float(inst: &RawInst) -> bool {
    let (latency, unit) = latency(inst);
    unit == Unit::Fp && latency != 0
}

/// Returns the branch that issues directly after the word at `pc`, if any.
fn branch_after(pc: u32, word: &impl Fn(u32) -> RawInst) -> Option<RawInst> {
    let next = (1..=UNDECODED + 1).map(|step| word(pc.wrapping_add(4 * step)));
    next.into_iter()
        .find(|inst| *inst != RawInst::Undefined)
        .filter(is_branch)
}

/// Returns whether a branch directly after the word at `pc` may lose its result, based on the
/// surrounding words alone. A superset of the results that [`lost_latency`] finds is harmless.
pub(crate) fn may_be_lost(pc: u32, inst: &RawInst, word: &impl Fn(u32) -> RawInst) -> bool {
    let (latency, unit) = latency(inst);
    if latency == 0 {
        return false;
    }
    let Some(branch) = branch_after(pc, word) else {
        return false;
    };
    let late = match unit {
        Unit::Fp | Unit::Spm => latency >= u64::from(npu_mc::machine::LOST_RESULT),
        Unit::Int | Unit::Control => {
            let before = (1..=STRAIGHT).map(|step| word(pc.wrapping_sub(4 * step)));
            before.filter(is_float).count() >= BURST
        }
        Unit::Lsu | Unit::Branch | Unit::None => false,
    };
    let register = Register::written(&Operands::of(inst)).filter(|_| late);
    register.is_some_and(|register| !register.is_in(&Operands::of(&branch)))
}

/// Returns the latency of the result of the instruction at `pc` in cycles, if the branch after it
/// issues in the next cycle and the result is late enough to be lost.
fn lost_latency(pc: u32, inst: &RawInst, word: &impl Fn(u32) -> RawInst) -> Option<u64> {
    if !may_be_lost(pc, inst, word) {
        return None;
    }
    let branch = branch_after(pc, word)?;
    let mut straight: Vec<RawInst> = (1..=STRAIGHT).map(|step| word(pc.wrapping_sub(4 * step))).collect();
    straight.truncate(straight.iter().position(is_branch).unwrap_or(straight.len()));
    straight.reverse();
    straight.retain(|inst| *inst != RawInst::Undefined);
    straight.extend([*inst, branch]);
    let mut port = Port::default();
    let mut last = (0, 0);
    let mut before = last;
    for inst in &straight {
        before = last;
        last = port.issue(inst);
    }
    let (issued, done) = before;
    let latency = done - issued;
    (last.0 == issued + 1 && latency >= u64::from(npu_mc::machine::LOST_RESULT)).then_some(latency)
}

/// Issue and the write port, for straight-line code.
#[derive(Default)]
struct Port {
    issued: u64,
    /// The cycle in which each register is ready.
    ready: Vec<(Register, u64)>,
    /// The cycles in which a float result uses the port.
    floats: Vec<u64>,
    /// The cycle of the last integer result.
    integer: u64,
}

impl Port {
    /// Returns the issue cycle of the next instruction and the cycle of its result.
    fn issue(&mut self, inst: &RawInst) -> (u64, u64) {
        let operands = Operands::of(inst);
        let awaited = self.ready.iter().filter(|(register, _)| register.is_in(&operands));
        let mut at = awaited.fold(self.issued + 1, |at, &(_, ready)| at.max(ready));
        let (latency, unit) = latency(inst);
        let done = if unit == Unit::Fp {
            while self.floats.contains(&(at + latency)) {
                at += 1;
            }
            self.floats.push(at + latency);
            at + latency
        } else {
            let mut done = at + latency;
            if matches!(unit, Unit::Int | Unit::Control) && latency != 0 {
                done = done.max(self.integer + 1);
            }
            while latency != 0 && self.floats.contains(&done) {
                done += 1;
            }
            if matches!(unit, Unit::Int | Unit::Control) && latency != 0 {
                self.integer = done;
            }
            done
        };
        self.issued = at;
        if let Some(register) = Register::written(&operands) {
            self.ready.retain(|&(other, _)| other != register);
            self.ready.push((register, done));
        }
        (at, done)
    }
}

/// An instruction whose result a branch directly after it may lose.
#[derive(Clone, Debug)]
pub(crate) struct Candidate {
    pc: u32,
    register: Register,
    old: Value,
    latency: u64,
    clock: Option<u64>,
}

/// A result in flight.
#[derive(Clone, Debug)]
struct Flight {
    register: Register,
    value: Value,
    issued: u64,
    /// The first issue cycle of an instruction that reads the result.
    visible: u64,
    /// The cycle in which the arrival of this result clears the busy bit of its register.
    clears: u64,
    /// The cycle from which the busy bit is clear. It is earlier than `clears` if a branch or
    /// another result for the register has cleared the bit.
    free: u64,
    arrived: bool,
}

/// The state of a thread after one of its results lost its busy bit. Cycles count from the issue of
/// the instruction, or are those of a timing model.
#[derive(Clone, Debug)]
pub(crate) struct Late {
    issued: u64,
    flights: Vec<Flight>,
}

impl Late {
    /// Issues an instruction.
    fn issue(&mut self, operands: &Operands, clock: Option<u64>, thread: &mut Thread) {
        let awaited = self.flights.iter().filter(|flight| flight.register.is_in(operands));
        let waits = awaited.fold(self.issued + 1, |at, flight| at.max(flight.free));
        self.issued = clock.unwrap_or(waits);
        self.arrive(self.issued, thread);
    }

    /// Writes the results that are visible to an instruction that issues in this cycle.
    fn arrive(&mut self, cycle: u64, thread: &mut Thread) {
        self.flights.sort_by_key(|flight| flight.visible);
        for flight in &mut self.flights {
            if flight.visible <= cycle && !flight.arrived {
                flight.arrived = true;
                flight.register.set(thread, &flight.value);
            }
        }
        // An instruction that issues in the cycle of an arrival still loses its busy bit to the
        // arrival.
        self.flights
            .retain(|flight| !flight.arrived || flight.clears >= cycle + FORWARD);
    }

    fn push(&mut self, register: Register, value: Value, latency: u64) {
        let issued = self.issued;
        let clears = issued + latency;
        let earlier = self.flights.iter().filter(|other| other.register == register);
        let free = earlier.fold(clears, |free, other| {
            if issued + FORWARD <= other.clears {
                free.min(other.clears)
            } else {
                free
            }
        });
        self.flights.push(Flight {
            register,
            value,
            issued,
            visible: (clears).saturating_sub(FORWARD),
            clears,
            free,
            arrived: false,
        });
    }

    /// Records a taken branch: the instruction that issued in the cycle before it loses its busy
    /// bit.
    fn taken(&mut self, timed: bool) {
        for flight in &mut self.flights {
            if flight.issued + 1 == self.issued {
                flight.free = 0;
            }
        }
        if !timed {
            self.issued += u64::from(TAKEN_BRANCH) - 1;
        }
    }

    /// Returns whether the busy bits of all results in flight are correct.
    fn is_over(&self) -> bool {
        self.flights
            .iter()
            .all(|flight| flight.arrived || flight.free >= flight.clears)
    }
}

/// The state before the execution of an instruction.
#[derive(Debug)]
pub(crate) enum Before {
    /// No special case.
    Nothing,
    /// A branch may lose the result of the instruction.
    Candidate(Candidate),
    /// Results are in flight: the old value of the destination register, and the latency of the
    /// instruction.
    Follow(Option<(u8, bool, OldValue)>, u64),
}

/// The old value of a register.
#[derive(Debug)]
pub(crate) struct OldValue(Value);

/// Prepares a thread for the instruction at `pc`.
pub(crate) fn before(thread: &mut Thread, pc: u32, inst: &RawInst, word: impl Fn(u32) -> RawInst) -> Before {
    let operands = Operands::of(inst);
    let clock = thread.watch.clock;
    if let Some(mut late) = thread.watch.late.take() {
        late.issue(&operands, clock, thread);
        thread.watch.late = Some(late);
        let register = Register::written(&operands);
        let old = register.map(|register| (register.number, register.vector, OldValue(register.get(thread))));
        return Before::Follow(old, latency(inst).0);
    }
    let Some(latency) = lost_latency(pc, inst, &word) else {
        return Before::Nothing;
    };
    let Some(register) = Register::written(&operands) else {
        return Before::Nothing;
    };
    let old = register.get(thread);
    Before::Candidate(Candidate {
        pc,
        register,
        old,
        latency,
        clock,
    })
}

/// How a thread continues after an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum After {
    /// At the next word.
    Next,
    /// At the target of a branch; the address is that of the instruction directly before the
    /// branch, if it can lose its result.
    Taken(Option<u32>),
    /// The thread waits, traps or hangs: all results arrive before it continues.
    Settled,
}

/// Delays the result of an instruction, or starts a delay.
pub(crate) fn after(thread: &mut Thread, inst: &RawInst, before: Before, after: After) {
    if *inst == RawInst::Undefined && after == After::Next {
        // Undecoded words take no issue slot: the next instruction issues as if it directly
        // followed.
        return;
    }
    let clock = thread.watch.clock;
    let candidate = thread.watch.candidate.take();
    if let Before::Candidate(new) = before {
        if after == After::Next {
            thread.watch.candidate = Some(Box::new(new));
        }
        return;
    }
    if let Before::Follow(old, latency) = before
        && let Some(mut late) = thread.watch.late.take()
    {
        if let Some((number, vector, OldValue(old))) = old
            && latency != 0
        {
            let register = Register { number, vector };
            let new = register.get(thread);
            register.set(thread, &old);
            late.push(register, new, latency);
        }
        match after {
            After::Taken(_) => late.taken(clock.is_some()),
            After::Settled => late.arrive(u64::MAX - FORWARD, thread),
            After::Next => {}
        }
        if late.is_over() {
            late.arrive(u64::MAX - FORWARD, thread);
        } else {
            thread.watch.late = Some(late);
        }
        return;
    }
    let (Some(candidate), After::Taken(Some(producer))) = (candidate, after) else {
        return;
    };
    let adjacent = match (candidate.clock, clock) {
        (Some(first), Some(second)) => first + 1 == second,
        _ => true,
    };
    if candidate.pc != producer || !adjacent {
        return;
    }
    let Register { number, vector } = candidate.register;
    thread
        .watch
        .expect_lost(number, vector, candidate.pc, candidate.latency);
    let value = candidate.register.get(thread);
    candidate.register.set(thread, &candidate.old);
    let mut late = Late {
        issued: candidate.clock.unwrap_or(0),
        flights: Vec::new(),
    };
    late.push(candidate.register, value, candidate.latency);
    late.issued += 1;
    late.taken(clock.is_some());
    thread.watch.late = Some(Box::new(late));
}

/// Lets all results in flight arrive, for example because the host changed the PC.
pub(crate) fn settle(thread: &mut Thread) {
    thread.watch.candidate = None;
    if let Some(mut late) = thread.watch.late.take() {
        late.arrive(u64::MAX - FORWARD, thread);
    }
}

/// Returns the address of the instruction that issues before the one at `pc`, if it precedes that
/// instruction in memory.
pub(crate) fn producer(pc: u32, word: &impl Fn(u32) -> RawInst) -> Option<u32> {
    let mut before = (1..=UNDECODED + 1).map(|step| pc.wrapping_sub(4 * step));
    before.find(|&address| word(address) != RawInst::Undefined)
}
