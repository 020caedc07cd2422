//! Runs of programs with the coherence protocol of the hardware.
//!
//! The order of the steps of threads and of the arrivals of messages is random, from a seed. Any
//! message that the rules of the networks allow can be next; some channels are slow for a while, so
//! that messages overtake others by much.

use super::controller::{Access, Reply};
use super::message::{Channel, Met};
use super::ports::Ports;
use super::system::{Delivered, System};
use crate::fill::split_mix;
use crate::findings::Hazard;
use crate::machine::{Machine, Stop, THREADS};
use crate::mem_op::{Move, access_size, is_double, is_vector_access, moves};
use crate::memory::MemoryFull;
use crate::rest::{HangReason, Rest};
use crate::schedule::Halt;
use crate::shared::is_io;
use crate::topology::Topology;
use npu_mc::machine;
use npu_mc::raw::{CtrOp, RawInst};
use npu_mc::{SReg, raw::MemOp};
use rustc_hash::{FxHashMap, FxHasher};
use std::hash::{Hash, Hasher};

const LINE: u32 = machine::CACHE_LINE;

/// The most instructions of a thread between two decisions.
const TURN: u64 = 6;

/// The decisions for which a channel stays slow or fast, as a shift.
const PHASE: u32 = 6;

/// One in this many phases of a channel is slow.
const SLOW_PHASES: u64 = 4;

/// One in this many decisions delivers a message of a slow channel.
const SLOWNESS: u64 = 64;

/// The data caches and directories of a machine with the protocol of the hardware, and the order of
/// its messages.
#[derive(Debug)]
pub struct Coherence {
    ports: Box<Ports>,
    seed: u64,
    /// The state of the generator of random numbers.
    random: u64,
    decisions: u64,
    /// Whether a thread waits for a message, by number.
    asleep: Vec<bool>,
    /// The first fault that each line met.
    met: FxHashMap<u32, Hazard>,
}

/// An access of an instruction to the data cache.
#[derive(Clone, Copy)]
struct Wanted {
    access: Access,
    address: u32,
    length: u32,
}

impl Coherence {
    /// Creates empty caches for a machine, which has to be [coherent](crate::Config::coherent): the
    /// caches here replace those of the machine. The seed determines the order of messages and
    /// threads.
    pub fn new(machine: &Machine, seed: u64) -> Coherence {
        let first_tile = machine.cores.first().map_or(0, |core| core.tile);
        Coherence {
            ports: Box::new(Ports::new(System::new(machine.cores(), first_tile, machine.topology()))),
            seed,
            random: seed,
            decisions: 0,
            asleep: vec![false; machine.threads()],
            met: FxHashMap::default(),
        }
    }

    /// Returns a random number below `bound`.
    fn draw(&mut self, bound: u64) -> u64 {
        let number = split_mix(&mut self.random);
        ((u128::from(number) * u128::from(bound)) >> 64) as u64
    }

    /// Returns a channel whose first message can arrive.
    fn next_channel(&self) -> Option<Channel> {
        self.ports.system.deliverable().map(|(channel, _)| channel).next()
    }

    /// Returns whether a channel is slow now.
    fn is_slow(&self, channel: Channel) -> bool {
        let mut hasher = FxHasher::default();
        channel.hash(&mut hasher);
        let mut state = hasher.finish() ^ (self.decisions >> PHASE) ^ self.seed.rotate_left(u64::BITS / 2);
        split_mix(&mut state).is_multiple_of(SLOW_PHASES)
    }

    /// Chooses the next message, or `None` if a thread should continue instead.
    fn choose(&mut self, threads: usize) -> Option<Channel> {
        self.decisions += 1;
        let (slow, fast): (Vec<Channel>, Vec<Channel>) = {
            let channels = self.ports.system.deliverable().map(|(channel, _)| channel);
            channels.partition(|&channel| self.is_slow(channel))
        };
        let late = fast.is_empty() && threads == 0 || self.draw(SLOWNESS) == 0;
        let from = if late && !slow.is_empty() { slow } else { fast };
        if from.is_empty() || threads != 0 && self.draw(2) == 0 {
            return None;
        }
        let place = self.draw(from.len() as u64);
        from.get(place as usize).copied()
    }

    /// Lets a line leave the cache of a core in which `line` has just come, if a random way of the set
    /// holds one. Returns whether one has left.
    fn make_room(&mut self, core: u8, line: u32) -> bool {
        let set = line % machine::DCACHE_SETS;
        let system = &self.ports.system;
        let others: Vec<u32> = system.in_set(core, set).filter(|&other| other != line).collect();
        let is_full = others.len() >= machine::DCACHE_WAYS as usize;
        let able: Vec<u32> = others
            .iter()
            .copied()
            .filter(|&other| system.can_evict(core, other))
            .collect();
        let ways = if is_full {
            able.len() as u64
        } else {
            u64::from(machine::DCACHE_WAYS)
        };
        let way = self.draw(ways.max(1));
        match able.get(way as usize) {
            Some(&victim) => {
                self.ports.system.evict(core, victim);
                true
            }
            None => false,
        }
    }
}

/// Returns the access of an instruction to the data cache, if it has one.
fn wanted(inst: &RawInst, pc: u32, scalar: impl Fn(SReg) -> u32) -> Option<Wanted> {
    let value = |register: SReg| if register == SReg::PC { pc } else { scalar(register) };
    let (access, address, length) = match *inst {
        RawInst::Mem(i) if !i.shared => {
            let address = value(i.base).wrapping_add(i.offset as u32);
            let (access, length) = match moves(i.op) {
                Move::Store(_) if is_double(i.op) => return None,
                Move::Store(_) => (Access::Store, 0),
                Move::Load(_) => (Access::Load, length_of_load(i.op)),
            };
            // A load ignores the low bits of its address.
            let address = match access {
                Access::Load => address & !(length - 1),
                Access::Store | Access::Flush | Access::Invalidate => address,
            };
            (access, address, length)
        }
        RawInst::Ctr(i) if i.op == CtrOp::Flush => (Access::Flush, value(i.reg0), 0),
        RawInst::Ctr(i) if i.op == CtrOp::DcacheInv => (Access::Invalidate, value(i.reg0), 0),
        RawInst::Mem(_)
        | RawInst::Ctr(_)
        | RawInst::Rr(_)
        | RawInst::RrUnassigned(_)
        | RawInst::Ri(_)
        | RawInst::RiUnassigned(_)
        | RawInst::Mvi(_)
        | RawInst::MviUnassigned(_)
        | RawInst::MemUnassigned(_)
        | RawInst::CtrUnassigned(_)
        | RawInst::Jba(_)
        | RawInst::JbaUnassigned(_)
        | RawInst::Jra(_)
        | RawInst::JraUnassigned(_)
        | RawInst::Undefined => return None,
    };
    (!is_io(address)).then_some(Wanted {
        access,
        address,
        length,
    })
}

fn length_of_load(op: MemOp) -> u32 {
    match is_vector_access(op) {
        true => LINE,
        false => access_size(op).min(4),
    }
}

/// What a thread did.
enum Turn {
    Executed,
    /// The thread waits for a message, or hangs.
    Rests,
}

impl Machine {
    /// Runs the enabled threads with the coherence protocol of the hardware, until none can continue,
    /// for at most `limit` instructions in total. The order of instructions and messages is random;
    /// equal seeds have equal results.
    ///
    /// Threads that wait for a message that never comes hang with [`HangReason::Line`]. The machine
    /// collects a [`Finding`](crate::Finding) for each fault of the hardware that the program meets,
    /// and for each load of a value that an earlier completed store has replaced. At the end, main
    /// memory has the lines as a new load would get them. `coherence` has to be one of this machine.
    ///
    /// Stop addresses have no effect, and nothing is translated.
    pub fn run_coherence(&mut self, coherence: &mut Coherence, limit: u64) -> Halt {
        let caches = self.caches.take();
        coherence.asleep.resize(self.threads.len(), false);
        // Instructions exchange these empty caches for those of the run.
        self.ports = Some(Box::new(Ports::new(System::new(0, 0, Topology::default()))));
        let halt = self.run_until_rest(coherence, limit);
        self.ports = None;
        self.caches = caches;
        match (self.settle(coherence), halt) {
            (Ok(()), halt) | (Err(_), halt @ Halt::Thread { .. }) => halt,
            (Err(full), _) => {
                let (thread, stop) = self.full(full);
                Halt::Thread { thread, stop }
            }
        }
    }

    /// Delivers the messages that can arrive, and writes all lines to memory. Messages whose receivers
    /// wait for ever stay on their way.
    fn settle(&mut self, coherence: &mut Coherence) -> Result<(), MemoryFull> {
        while let Some(channel) = coherence.next_channel() {
            let Delivered { core, woken, .. } = coherence.ports.system.deliver(channel, &mut self.memory)?;
            for thread in woken {
                let first = core.map_or(0, |core| usize::from(core) * THREADS);
                if let Some(asleep) = coherence.asleep.get_mut(first + usize::from(thread)) {
                    *asleep = false;
                }
            }
        }
        coherence.ports.write_back(&mut self.memory)
    }

    /// Returns the stop of a write that exceeds the limit of memory. No thread writes a line; the stop
    /// names the first one.
    fn full(&self, MemoryFull { address }: MemoryFull) -> (usize, Stop) {
        let pc = self.threads.first().map_or(0, |thread| thread.pc);
        (0, Stop::MemoryFull { pc, address })
    }

    fn run_until_rest(&mut self, coherence: &mut Coherence, limit: u64) -> Halt {
        let mut left = limit;
        loop {
            let ready: Vec<usize> = (0..self.threads.len())
                .filter(|&number| self.can_go_on(number) && !coherence.asleep[number])
                .collect();
            if left == 0 && !ready.is_empty() {
                return Halt::StepLimit;
            }
            let stopped = match coherence.choose(ready.len()) {
                Some(channel) => self.arrive(coherence, channel, &mut left),
                None => {
                    let place = coherence.draw(ready.len() as u64);
                    match ready.get(place as usize) {
                        Some(&number) => {
                            let turn = coherence.draw(TURN) + 1;
                            self.take_turn(coherence, number, turn, &mut left)
                        }
                        None if coherence.next_channel().is_some() => Ok(()),
                        None => return self.all_asleep(coherence),
                    }
                }
            };
            if let Err((thread, stop)) = stopped {
                return Halt::Thread { thread, stop };
            }
        }
    }

    /// Marks the threads that wait for messages as hung.
    fn all_asleep(&mut self, coherence: &Coherence) -> Halt {
        for number in 0..self.threads.len() {
            if self.threads[number].rest.is_none() && coherence.asleep[number] {
                // A thread sleeps only at an access.
                if let Some(Wanted { address, .. }) = self.wanted_by(number) {
                    self.hang_at(number, address, coherence.met.get(&(address / LINE)).copied());
                }
            }
        }
        self.all_at_rest()
    }

    fn wanted_by(&self, number: usize) -> Option<Wanted> {
        let thread = &self.threads[number];
        let inst = npu_mc::split(self.word_at(thread.pc));
        wanted(&inst, thread.pc, |register| thread.scalar(register))
    }

    fn hang_at(&mut self, number: usize, address: u32, hazard: Option<Hazard>) {
        let address = address & !(LINE - 1);
        self.threads[number].rest = Some(Rest::Hung {
            pc: self.threads[number].pc,
            reason: HangReason::Line { address, hazard },
        });
    }

    /// Delivers a message, and repeats the accesses that waited for it.
    fn arrive(&mut self, coherence: &mut Coherence, channel: Channel, left: &mut u64) -> Result<(), (usize, Stop)> {
        let line = coherence.ports.system.head(channel).map(|message| message.line);
        let requester = coherence.ports.system.head(channel).map(|message| message.requester);
        let delivered = coherence.ports.system.deliver(channel, &mut self.memory);
        let Delivered {
            core,
            woken,
            fills,
            met,
        } = delivered.map_err(|full| self.full(full))?;
        self.record(coherence, &met, requester)?;
        let (Some(core), Some(line)) = (core, line) else {
            return Ok(());
        };
        if fills {
            coherence.make_room(core, line);
        }
        for thread in woken {
            let number = usize::from(core) * THREADS + usize::from(thread);
            if let Some(asleep) = coherence.asleep.get_mut(number) {
                *asleep = false;
                self.take_turn(coherence, number, 1, left)?;
            }
        }
        Ok(())
    }

    /// Records the faults that a message met. The finding has the address of an access that waits for
    /// the line, if there is one.
    fn record(&mut self, coherence: &mut Coherence, met: &Met, requester: Option<u8>) -> Result<(), (usize, Stop)> {
        for &(hazard, line) in met {
            coherence.met.entry(line).or_insert(hazard);
            let waits = |&number: &usize| {
                let wanted = self.wanted_by(number);
                coherence.asleep[number] && wanted.is_some_and(|wanted| wanted.address / LINE == line)
            };
            let first = requester.map_or(0, |core| usize::from(core) * THREADS);
            let own = (first..(first + THREADS).min(self.threads.len())).find(waits);
            let Some(number) = own.or_else(|| (0..self.threads.len()).find(waits)) else {
                continue;
            };
            let (core, thread, pc) = (number / THREADS, number % THREADS, self.threads[number].pc);
            self.findings.report(number as u32, pc, hazard, || {
                let address = line * LINE;
                format!("core {core}, thread {thread}: met while the access to the line at {address:#010x} waited")
            });
            self.stop_at_finding(number)?;
        }
        Ok(())
    }

    /// Returns the first finding of a strict machine as an error.
    fn stop_at_finding(&mut self, number: usize) -> Result<(), (usize, Stop)> {
        match self.findings.pending.take() {
            Some(finding) => Err((number, Stop::Erratum(finding))),
            None => Ok(()),
        }
    }

    /// Executes instructions of a thread until it has to wait.
    fn take_turn(
        &mut self,
        coherence: &mut Coherence,
        number: usize,
        turn: u64,
        left: &mut u64,
    ) -> Result<(), (usize, Stop)> {
        for _ in 0..turn.min(*left) {
            if !self.can_go_on(number) {
                break;
            }
            match self.one_instruction(coherence, number)? {
                Turn::Executed => *left -= 1,
                Turn::Rests => break,
            }
        }
        Ok(())
    }

    /// Gives the data caches to the machine for an instruction, or takes them back.
    fn exchange(&mut self, coherence: &mut Coherence) {
        if let Some(ports) = &mut self.ports {
            std::mem::swap(ports, &mut coherence.ports);
        }
    }

    /// Executes an instruction, if its access to the data cache can happen now.
    fn one_instruction(&mut self, coherence: &mut Coherence, number: usize) -> Result<Turn, (usize, Stop)> {
        let (core, thread) = ((number / THREADS) as u8, (number % THREADS) as u8);
        let access = self.wanted_by(number);
        if let Some(Wanted {
            access,
            address,
            length,
        }) = access
        {
            let coherent = self.cores[number / THREADS].mode.coherent(address);
            let line = address / LINE;
            let (reply, allocates) = coherence.ports.system.access(core, thread, access, address, coherent);
            match reply {
                Reply::Ready => {}
                Reply::Waits => {
                    coherence.asleep[number] = true;
                    return Ok(Turn::Rests);
                }
                Reply::Hangs(fault) => {
                    coherence.met.entry(line).or_insert(fault.hazard());
                    self.hang_at(number, address, Some(fault.hazard()));
                    return Ok(Turn::Rests);
                }
            }
            if allocates && coherence.make_room(core, line) {
                coherence.ports.system.stick(core);
            }
            if access == Access::Store && !coherent {
                coherence.ports.forget(line);
            }
            if access == Access::Load
                && coherent
                && let Some(at) = coherence.ports.stale(core, address, length)
            {
                let pc = self.threads[number].pc;
                self.findings.report(number as u32, pc, Hazard::StaleCopy, || {
                    format!(
                        "core {core}, thread {thread}: the byte at {at:#010x} is not that of the last completed store"
                    )
                });
            }
        }
        self.exchange(coherence);
        let step = self.execute(number);
        self.exchange(coherence);
        step.map_err(|stop| (number, stop))?;
        Ok(Turn::Executed)
    }
}
