//! The path to memory: the controller of both caches.
//!
//! With one core, it performs one transaction at a time (`docs/machine/memory.md`). With several
//! cores, transactions overlap, and only those of one line wait for each other
//! (`docs/machine/several-cores.md`).

use super::cache::DataCache;
use super::network::Network;
use super::queues::Ring;
use super::request::{Answer, Asks};
use crate::machine::THREADS;
use npu_mc::machine;

/// The kinds of transactions, in the order of their priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transaction {
    /// The write of a line that was evicted from the data cache.
    Replacement,
    /// The write of the dirty bytes of a line.
    Flush,
    /// The write of the dirty bytes of a line, and its invalidation.
    Invalidate,
    /// The read of a line for a store.
    StoreMiss,
    /// The read of a line for a load.
    LoadMiss,
    /// An access to I/O space.
    Io,
    /// The read of a line for the instruction cache.
    Instruction,
}

/// The number of kinds of [`Transaction`].
const KINDS: usize = 7;

/// A request to the controller.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request {
    pub kind: Transaction,
    pub line: u32,
    /// The threads that wait for the transaction, one bit per thread. None waits for a flush, or for
    /// a write to I/O.
    pub threads: u8,
    /// The first cycle in which the controller sees it.
    pub from: u64,
    /// Whether the line has already arrived.
    pub short: bool,
    /// The way from which a line was evicted.
    pub way: u8,
    /// Whether the core receives write permission for the line, or had it for an evicted line.
    pub owned: bool,
    /// The entry in the queue of instruction lines.
    slot: u8,
}

impl Request {
    const NONE: Request = Request {
        kind: Transaction::Replacement,
        line: 0,
        threads: 0,
        from: u64::MAX,
        short: false,
        way: 0,
        owned: true,
        slot: 0,
    };

    /// Creates a request that the controller sees from cycle `from` on.
    pub fn new(kind: Transaction, line: u32, threads: u8, from: u64) -> Request {
        Request {
            kind,
            line,
            threads,
            from,
            ..Request::NONE
        }
    }

    /// Returns whether the transaction fills a line of the data cache.
    fn fills(&self) -> bool {
        matches!(self.kind, Transaction::StoreMiss | Transaction::LoadMiss)
    }
}

// All in cycles, without the delay of memory.
pub(super) const READ_TO_FILL: u64 = machine::READ_TO_FILL as u64;
const LINE_TO_NEXT: u64 = machine::LINE_TO_NEXT as u64;
const READ_BUSY: u64 = machine::READ_BUSY as u64;
/// Cycles from the end of a transaction to the second lookup of the operation that waits for it.
pub(crate) const WAKE_UP: u64 = READ_TO_REPLAY - READ_TO_FILL;
const READ_TO_REPLAY: u64 = machine::READ_TO_REPLAY as u64;
const TRANSACTION_BUSY: u64 = machine::TRANSACTION_BUSY as u64;
pub(super) const WRITE_BUSY: u64 = machine::WRITE_BUSY as u64;
const PRESENT_TO_REPLAY: u64 = machine::PRESENT_TO_REPLAY as u64;
const INVALIDATE_TO_END: u64 = machine::INVALIDATE_TO_END as u64;
const INVALIDATED_TO_END: u64 = machine::INVALIDATED_TO_END as u64;

const NEXT_MESSAGE: u64 = machine::NEXT_MESSAGE_OF_SET as u64;
/// The number of messages of the response network that wait in the core from which on no flush
/// starts.
const RESPONSES_WAITING: usize = machine::RESPONSES_WAITING as usize;
const FLUSH_TO_NEXT: u64 = machine::FLUSH_TO_NEXT_OF_SET as u64;
/// The numbers of requests in a queue from which on the next one waits in the load/store unit, with
/// one core and with several.
const REQUESTS_WAITING: usize = machine::REQUESTS_WAITING as usize;
const REQUESTS_WAITING_SHARED: usize = machine::REQUESTS_WAITING_SHARED as usize;
/// The maximum number of pending requests for lines of one set, with several cores.
const SET_LIMIT: usize = machine::REQUESTS_OF_SET as usize;

/// Returns the set of the data cache for a line.
const fn set_of(line: u32) -> u32 {
    line % machine::DCACHE_SETS
}

/// An invalid line number.
const NO_LINE: u32 = u32::MAX;

/// The queue of requests for instruction lines: a ring that keeps the line numbers of answered
/// requests.
///
/// An entry is found by its line number. The hardware compares all entries, including answered
/// ones, and combines the numbers of equal ones by OR (erratum `repeated_instruction_line_miss`).
/// The contents of entries after reset are undefined: with zeros, two threads hang if the line at
/// address 0 is one of the first seven lines that they miss.
#[derive(Clone, Debug)]
struct LineQueue {
    lines: [u32; THREADS],
    next: u8,
}

impl LineQueue {
    const fn new() -> LineQueue {
        LineQueue {
            lines: [NO_LINE; THREADS],
            next: 0,
        }
    }

    /// Puts a request into the next entry; returns the number of the entry.
    fn put(&mut self, line: u32) -> u8 {
        let slot = self.next;
        self.lines[usize::from(slot)] = line;
        self.next = (slot + 1) % self.lines.len() as u8;
        slot
    }

    /// Returns the entry number that the hardware finds for a line.
    fn find(&self, line: u32) -> u8 {
        let equal = (0..).zip(&self.lines).filter(|&(_, &entry)| entry == line);
        equal.fold(0, |found, (slot, _)| found | slot)
    }
}

/// The outcome of an instruction line miss for its thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LineMiss {
    /// The thread continues when the line arrives.
    Waits,
    /// The thread never continues.
    Lost,
}

/// The controller.
pub(crate) struct Controller {
    /// Whether the core shares memory with others.
    shared: bool,
    queues: [Ring<Request, 32>; KINDS],
    pending: usize,
    /// The cycle in which the next transaction can be chosen.
    free_at: u64,
    /// The cycle in which the next instruction line can be read: the instruction cache requests one
    /// at a time.
    next_line_at: u64,
    /// The cycle in which memory has completed the last write.
    memory_free_at: u64,
    /// Transactions whose effects on the caches are pending, in the order of their cycles.
    ending: Ring<(Request, u64), 32>,
    /// With several cores, the requests for lines that have not been answered.
    sent: Vec<Request>,
    /// With several cores: for each data line on its way, its set, and the cycle from which another
    /// request of the set can take its place.
    coming: Vec<(u32, u64)>,
    /// With several cores, the set of the last request for a data line, and the cycle in which the
    /// next one of this set can start.
    last_set: (u32, u64),
    /// With several cores, the lines that have left the data cache, and the cycles in which their
    /// homes have acknowledged that.
    leaving: Vec<(u32, u64)>,
    /// The last two transactions, with the cycles in which they started.
    last_starts: [(Transaction, u64); 2],
    /// The cycle in which the next access to I/O can start.
    next_io_at: u64,
    delay: u64,
    /// The number of the core.
    core: usize,
    lines: LineQueue,
    reads: u64,
    writes: u64,
}

impl Controller {
    pub fn new(delay: u32, core: usize) -> Controller {
        Controller {
            shared: false,
            queues: std::array::from_fn(|_| Ring::new(Request::NONE)),
            pending: 0,
            free_at: 0,
            next_line_at: 0,
            memory_free_at: 0,
            ending: Ring::new((Request::NONE, u64::MAX)),
            sent: Vec::new(),
            coming: Vec::new(),
            last_set: (0, 0),
            leaving: Vec::new(),
            last_starts: [(Transaction::Replacement, u64::MAX); 2],
            next_io_at: 0,
            delay: delay.into(),
            core,
            lines: LineQueue::new(),
            reads: 0,
            writes: 0,
        }
    }

    /// Connects the controller to the network of several cores.
    pub fn share(&mut self) {
        self.shared = true;
    }

    /// Returns the number of reads and writes of memory.
    pub fn transactions(&self) -> (u64, u64) {
        (self.reads, self.writes)
    }

    /// Resets the counters.
    pub fn reset_counters(&mut self) {
        (self.reads, self.writes) = (0, 0);
    }

    /// Returns whether the load/store unit can request a transaction for which no thread waits: a
    /// flush or a write to I/O.
    pub fn has_room_for(&self, kind: Transaction, now: u64) -> bool {
        let queue = &self.queues[kind as usize];
        let (limit, leaves_after) = match self.shared {
            false => (REQUESTS_WAITING, 1),
            true => (REQUESTS_WAITING_SHARED, 2),
        };
        let leaves = |&&(last, start): &&(Transaction, u64)| last == kind && start <= now && now - start < leaves_after;
        let leaving = self.last_starts.iter().filter(leaves).count();
        let mut waiting = (0..queue.len()).filter_map(|index| queue.get(index));
        waiting.nth(limit - 1 - leaving).is_none_or(|last| last.from >= now)
    }

    pub fn request(&mut self, request: Request) {
        self.queues[request.kind as usize].push(request);
        self.pending += 1;
    }

    /// Returns whether a request was lost because its queue was full.
    pub fn overflowed(&self) -> bool {
        self.ending.overflowed() || self.queues.iter().any(Ring::overflowed)
    }

    /// Returns whether no transaction is pending.
    #[inline]
    pub fn is_idle(&self) -> bool {
        self.pending == 0 && self.ending.is_empty() && self.sent.is_empty()
    }

    /// Requests an instruction line for a thread, or adds the thread to a pending request.
    pub fn instruction_line(&mut self, line: u32, thread: u8, from: u64) -> LineMiss {
        if !self.joins(0, |request| request.line == line) {
            let mut request = Request::new(Transaction::Instruction, line, thread, from);
            request.slot = self.lines.put(line);
            self.request(request);
            return LineMiss::Waits;
        }
        let slot = self.lines.find(line);
        if self.joins(thread, |request| request.slot == slot) {
            LineMiss::Waits
        } else {
            LineMiss::Lost
        }
    }

    /// Adds threads to a request for an instruction line that `chosen` accepts; returns whether one
    /// exists.
    fn joins(&mut self, threads: u8, chosen: impl Fn(&Request) -> bool) -> bool {
        let mut join = |request: &mut Request| {
            let joins = request.kind == Transaction::Instruction && chosen(request);
            if joins {
                request.threads |= threads;
            }
            joins
        };
        self.ending.join(|(request, _)| join(request))
            || self.queues[Transaction::Instruction as usize].join(&mut join)
            || self.sent.iter_mut().any(join)
    }

    /// Returns the transaction whose effects on the caches take place in cycle `now`, if any.
    #[inline]
    pub fn step(&mut self, now: u64) -> Option<Request> {
        if self.ending.front().is_some_and(|&(_, end)| end <= now) {
            return self.ending.pop().map(|(request, _)| request);
        }
        None
    }

    /// Starts a transaction if the controller is free.
    #[inline]
    pub fn start(&mut self, now: u64, data: &mut DataCache, network: &mut Network) {
        if self.pending == 0 || self.free_at > now {
            return;
        }
        if self.shared {
            self.start_over_network(now, data, network);
        } else {
            self.start_alone(now, data);
        }
    }

    /// Starts a transaction of the only core.
    fn start_alone(&mut self, now: u64, data: &mut DataCache) {
        let can_start = |queue: &Ring<Request, 32>| queue.front().is_some_and(|request| self.turn(request) <= now);
        let Some(number) = self.queues.iter().position(can_start) else {
            return;
        };
        let Some(mut request) = self.queues[number].pop() else {
            return;
        };
        self.pending -= 1;
        self.last_starts = [(request.kind, now), self.last_starts[0]];
        let delay = self.delay;
        // The controller chooses a transaction while the last write is in progress, but memory
        // performs one at a time.
        let start = now.max(self.memory_free_at);
        // For other transactions, lines of pending invalidations count as absent and those of
        // pending fills as present.
        let line = request.line;
        let going = self
            .ending
            .join(|(r, _)| r.kind == Transaction::Invalidate && !r.short && data.is_in(line, r.line, r.way));
        let comes = self.ending.join(|(r, _)| r.line == line && r.fills() && !r.short);
        match request.kind {
            Transaction::Flush if !comes && (going || !data.find(line)) => self.free_at = now + TRANSACTION_BUSY,
            Transaction::Invalidate if !comes && (going || !data.holds(line)) => {
                request.short = true;
                self.free_at = now + TRANSACTION_BUSY;
                self.ending.push((request, now + INVALIDATE_TO_END));
            }
            Transaction::Replacement | Transaction::Flush | Transaction::Invalidate => {
                self.writes += 1;
                self.write(start);
                if request.kind == Transaction::Replacement {
                    data.leaves(request.way);
                }
                if request.kind == Transaction::Invalidate {
                    request.way = data.way_to_empty(line, comes, start > now);
                    // The thread does not wait for memory.
                    self.ending.push((request, start + INVALIDATE_TO_END));
                }
            }
            Transaction::Io if request.threads == 0 => {
                self.free_at = now + 1;
                self.next_io_at = now + TRANSACTION_BUSY;
            }
            Transaction::Io => {
                self.write(start);
                self.free_at = self.memory_free_at;
                self.ending.push((request, self.free_at));
            }
            Transaction::Instruction => {
                self.reads += 1;
                self.free_at = start + READ_BUSY + delay;
                let fill = start + READ_TO_FILL + delay;
                self.next_line_at = fill + LINE_TO_NEXT;
                self.ending.push((request, fill));
            }
            Transaction::StoreMiss | Transaction::LoadMiss => {
                if comes {
                    data.expect(line);
                }
                if comes || !going && data.find(line) {
                    request.short = true;
                    self.free_at = now + TRANSACTION_BUSY;
                    self.ending.push((request, now + PRESENT_TO_REPLAY - WAKE_UP));
                } else {
                    self.reads += 1;
                    self.free_at = start + READ_BUSY + delay;
                    self.ending.push((request, start + READ_TO_FILL + delay));
                }
            }
        }
    }

    /// Records the cycle in which a requested line will arrive.
    pub fn receive(&mut self, answer: &Answer) {
        let is_answered = |request: &Request| {
            request.line == answer.line && (request.kind == Transaction::Instruction) == answer.is_code()
        };
        let Some(index) = self.sent.iter().position(is_answered) else {
            return;
        };
        let mut request = self.sent.swap_remove(index);
        request.owned = answer.owned;
        if answer.is_code() {
            self.next_line_at = answer.fill + LINE_TO_NEXT;
        } else {
            self.coming.push((set_of(answer.line), answer.fill + NEXT_MESSAGE));
        }
        self.ending.push_in_order((request, answer.fill), |&(_, end)| end);
    }

    /// Returns whether a request waits for another transaction of its line, or for its turn.
    fn is_blocked(&self, request: &Request, now: u64, network: &Network) -> bool {
        match request.kind {
            Transaction::Flush if self.last_set.0 == set_of(request.line) && self.last_set.1 > now => true,
            Transaction::Flush if network.responses_of(self.core, now) >= RESPONSES_WAITING => true,
            Transaction::Instruction => self.next_line_at > now,
            Transaction::Io => self.next_io_at > now,
            Transaction::StoreMiss | Transaction::LoadMiss if self.set_is_busy(set_of(request.line), now) => true,
            Transaction::StoreMiss
            | Transaction::LoadMiss
            | Transaction::Replacement
            | Transaction::Flush
            | Transaction::Invalidate => {
                let line = request.line;
                let mut ending = (0..self.ending.len()).filter_map(|index| self.ending.get(index));
                let is_same = |r: &Request| r.line == line && !r.short && r.kind != Transaction::Instruction;
                ending.any(|(r, _)| is_same(r))
                    || self.sent.iter().any(is_same)
                    || self.leaving.iter().any(|&(left, until)| left == line && until > now)
            }
        }
    }

    /// Returns whether a request for a line of a set of the data cache has to wait because the last
    /// one has just started, or as many as the hardware allows are pending.
    fn set_is_busy(&self, set: u32, now: u64) -> bool {
        let sent = self.sent.iter().filter(|r| r.fills() && set_of(r.line) == set).count();
        let coming = self
            .coming
            .iter()
            .filter(|&&(other, until)| other == set && until > now);
        self.last_set.0 == set && self.last_set.1 > now || sent + coming.count() >= SET_LIMIT
    }

    /// Starts a transaction of a core that shares memory with others.
    fn start_over_network(&mut self, now: u64, data: &mut DataCache, network: &mut Network) {
        self.leaving.retain(|&(_, until)| until > now);
        self.coming.retain(|&(_, until)| until > now);
        let can_start = |queue: &Ring<Request, 32>| {
            let front = queue.front();
            front.is_some_and(|request| request.from <= now && !self.is_blocked(request, now, network))
        };
        let Some(number) = self.queues.iter().position(can_start) else {
            return;
        };
        let Some(mut request) = self.queues[number].pop() else {
            return;
        };
        self.pending -= 1;
        self.free_at = now + 1;
        self.last_starts = [(request.kind, now), self.last_starts[0]];
        let line = request.line;
        let asks = Asks {
            core: self.core,
            seen: request.from,
            now,
            start: now,
        };
        let end = match request.kind {
            Transaction::Replacement => {
                self.writes += 1;
                let left = network.give_back(asks, line, request.owned);
                self.leaving.push((line, left));
                return;
            }
            Transaction::Flush => {
                if data.find(line) {
                    self.writes += 1;
                    self.last_set = (set_of(line), now + FLUSH_TO_NEXT);
                    network.flush(asks, line);
                }
                return;
            }
            Transaction::Invalidate if data.find(line) => {
                self.writes += 1;
                request.way = data.way_to_empty(line, false, true);
                let left = network.give_back(asks, line, !data.only_reads(line));
                self.leaving.push((line, left));
                left + INVALIDATED_TO_END
            }
            Transaction::Invalidate => {
                request.short = true;
                now + INVALIDATE_TO_END
            }
            Transaction::Io if request.threads == 0 => {
                self.next_io_at = network.write_io(asks);
                return;
            }
            Transaction::Io => {
                self.next_io_at = network.read_io(asks);
                self.next_io_at
            }
            Transaction::Instruction => {
                self.reads += 1;
                network.instructions(asks, line);
                self.next_line_at = u64::MAX;
                self.sent.push(request);
                return;
            }
            Transaction::StoreMiss | Transaction::LoadMiss => {
                let own = request.kind == Transaction::StoreMiss;
                if data.find(line) && !(own && data.only_reads(line)) {
                    request.short = true;
                    now + PRESENT_TO_REPLAY - WAKE_UP
                } else {
                    self.reads += 1;
                    self.last_set = (set_of(line), now + NEXT_MESSAGE);
                    network.data(asks, line, own);
                    self.sent.push(request);
                    return;
                }
            }
        };
        self.ending.push_in_order((request, end), |&(_, end)| end);
    }

    /// Starts a write in cycle `start`; the next transaction can be chosen before memory has
    /// completed it.
    fn write(&mut self, start: u64) {
        self.free_at = start + TRANSACTION_BUSY;
        self.memory_free_at = start + WRITE_BUSY + self.delay;
    }

    /// Returns the first cycle in which a request can start, apart from other transactions.
    #[inline]
    fn turn(&self, request: &Request) -> u64 {
        match request.kind {
            Transaction::Instruction => request.from.max(self.next_line_at),
            Transaction::Io => request.from.max(self.next_io_at),
            Transaction::StoreMiss
            | Transaction::LoadMiss
            | Transaction::Replacement
            | Transaction::Flush
            | Transaction::Invalidate => request.from,
        }
    }

    /// Returns the next cycle with an event of the controller.
    pub fn next_event(&self) -> u64 {
        let mut next = self.ending.front().map_or(u64::MAX, |&(_, end)| end);
        if self.pending != 0 {
            let first = self
                .queues
                .iter()
                .filter_map(Ring::front)
                .map(|request| self.turn(request))
                .min();
            next = next.min(first.unwrap_or(u64::MAX).max(self.free_at));
        }
        next
    }
}
