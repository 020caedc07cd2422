//! The values that the erratum of lost results leaves in registers (`docs/errata.md`; td record `ErratumLostResult`).
//!
//! A taken branch clears the busy bit of the instruction that issued in the cycle before it. While that result is under way,
//! the thread goes through [`Late`], which keeps every new result back until the cycle in which the register file has it, and
//! computes when each instruction issues. Cycles are those of a thread that runs alone, hits in all caches and starts the
//! straight piece of code with nothing under way; a timing model gives the real ones
//! ([`Watch::clock`](crate::hazard::Watch::clock)).
//!
//! The results of loads from main memory are never kept back at the start: they are late only if the line is missing. A use
//! of one is reported, with the right value.

use crate::operands::Operands;
use crate::registers::{Lanes, PC, RM};
use crate::thread::Thread;
use npu_mc::Unit;
use npu_mc::machine::TAKEN_BRANCH;
use npu_mc::raw::RawInst;

/// Cycles by which a result is in the register file before a dependent instruction can issue.
const FORWARD: u64 = 2;

/// Words before a branch that are looked at.
const STRAIGHT: u32 = 24;

/// Undecoded words between an instruction and a branch that are looked through. They take no issue slot.
const UNDECODED: u32 = 8;

/// Words around a changed one whose [`may_be_lost`] can change with it.
pub(crate) const NEIGHBOURS: u32 = STRAIGHT;

/// Results of the float unit in a row that delay an integer result until a branch target can meet it.
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
    /// The register that an instruction writes. The lane mask and the register whose write changes it take their values at once, and
    /// are not followed.
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

/// The latency of an instruction, 0 without a result, and its unit.
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

/// The branch that issues next after the word at `pc`, if there is one.
fn branch_after(pc: u32, word: &impl Fn(u32) -> RawInst) -> Option<RawInst> {
    let next = (1..=UNDECODED + 1).map(|step| word(pc.wrapping_add(4 * step)));
    next.into_iter()
        .find(|inst| *inst != RawInst::Undefined)
        .filter(is_branch)
}

/// Whether a branch directly after the word at `pc` may lose its result, by that of the words around it alone. More than
/// [`lost_latency`] finds are harmless.
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

/// When the result of the instruction at `pc` is there, in cycles after its issue, if the branch after it issues in the next
/// cycle and the result is late enough to be lost.
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

/// Issue and the write port, for a straight piece of code.
#[derive(Default)]
struct Port {
    issued: u64,
    /// When each register is ready.
    ready: Vec<(Register, u64)>,
    /// Cycles in which a float result takes the port.
    floats: Vec<u64>,
    /// The last cycle of an integer result.
    integer: u64,
}

impl Port {
    /// The cycle in which the next instruction issues, and that in which an instruction with a use of the result can.
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

/// A result under way.
#[derive(Clone, Debug)]
struct Flight {
    register: Register,
    value: Value,
    issued: u64,
    /// The first cycle in which an instruction that issues reads it.
    visible: u64,
    /// When its own arrival clears the busy bit of its register.
    clears: u64,
    /// When the busy bit is clear: earlier if another result to the same register or a branch has cleared it.
    free: u64,
    arrived: bool,
}

/// A thread one of whose results lost its busy bit. Cycles count from the issue of that instruction, or are those of a timing model.
#[derive(Clone, Debug)]
pub(crate) struct Late {
    issued: u64,
    flights: Vec<Flight>,
}

impl Late {
    /// The cycle in which an instruction issues.
    fn issue(&mut self, operands: &Operands, clock: Option<u64>, thread: &mut Thread) {
        let awaited = self.flights.iter().filter(|flight| flight.register.is_in(operands));
        let waits = awaited.fold(self.issued + 1, |at, flight| at.max(flight.free));
        self.issued = clock.unwrap_or(waits);
        self.arrive(self.issued, thread);
    }

    /// Writes the results that an instruction that issues in this cycle sees.
    fn arrive(&mut self, cycle: u64, thread: &mut Thread) {
        self.flights.sort_by_key(|flight| flight.visible);
        for flight in &mut self.flights {
            if flight.visible <= cycle && !flight.arrived {
                flight.arrived = true;
                flight.register.set(thread, &flight.value);
            }
        }
        // An instruction that issues in the cycle of an arrival still loses its bit to it.
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

    /// A taken branch issued: the instruction of the cycle before it loses its busy bit.
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

    /// Whether every register under way is waited for as it should be.
    fn is_over(&self) -> bool {
        self.flights
            .iter()
            .all(|flight| flight.arrived || flight.free >= flight.clears)
    }
}

/// What was known before an instruction executed.
#[derive(Debug)]
pub(crate) enum Before {
    /// Nothing special.
    Nothing,
    /// Its result can get lost.
    Candidate(Candidate),
    /// The old value of the register that it writes while results are under way, and its latency.
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

/// How a thread goes on after an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum After {
    /// At the next word.
    Next,
    /// At the target of a branch; the instruction at this address stands directly before it, if it can lose its result.
    Taken(Option<u32>),
    /// It waits, traps or hangs: by then all results have arrived.
    Settled,
}

/// Keeps the result of an instruction back, or starts to.
pub(crate) fn after(thread: &mut Thread, inst: &RawInst, before: Before, after: After) {
    if *inst == RawInst::Undefined && after == After::Next {
        // No issue slot: the next instruction issues as if it stood directly behind.
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

/// Lets all results under way arrive: the thread was put somewhere else from outside.
pub(crate) fn settle(thread: &mut Thread) {
    thread.watch.candidate = None;
    if let Some(mut late) = thread.watch.late.take() {
        late.arrive(u64::MAX - FORWARD, thread);
    }
}

/// The address of the instruction that issues before the one at `pc`, if that follows it in memory.
pub(crate) fn producer(pc: u32, word: &impl Fn(u32) -> RawInst) -> Option<u32> {
    let mut before = (1..=UNDECODED + 1).map(|step| pc.wrapping_sub(4 * step));
    before.find(|&address| word(address) != RawInst::Undefined)
}
