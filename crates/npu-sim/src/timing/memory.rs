//! The way to memory: the controller of both caches, which does one transaction at a time (`microarch.md` 8).

use super::queues::Ring;
use npu_mc::machine;

/// Transactions, in the order in which the controller prefers them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transaction {
    /// A line that left the data cache is written.
    Replacement,
    /// The dirty bytes of a line are written.
    Flush,
    /// The same, and the line is dropped.
    Invalidate,
    /// A line is read for a store.
    StoreMiss,
    /// A line is read for a load.
    LoadMiss,
    /// I/O space.
    Io,
    /// A line is read for the instruction cache.
    Instruction,
}

/// Kinds of [`Transaction`].
const KINDS: usize = 7;

/// A request to the controller.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request {
    pub kind: Transaction,
    pub line: u32,
    /// Threads that wait for it, one bit per thread.
    pub threads: u8,
    /// The first cycle in which the controller sees it.
    pub from: u64,
    /// The line is already there.
    pub short: bool,
    /// A second thread that waits for the line, which is woken one cycle later.
    pub partner: u8,
}

impl Request {
    const NONE: Request = Request {
        kind: Transaction::Replacement,
        line: 0,
        threads: 0,
        from: u64::MAX,
        short: false,
        partner: 0,
    };

    /// A request that the controller sees from cycle `from` on.
    pub fn new(kind: Transaction, line: u32, threads: u8, from: u64) -> Request {
        Request {
            kind,
            line,
            threads,
            from,
            ..Request::NONE
        }
    }

    /// Whether a line comes into the data cache.
    fn fills(&self) -> bool {
        matches!(self.kind, Transaction::StoreMiss | Transaction::LoadMiss)
    }
}

// Cycles; all without the delay of memory. Short reads are those whose line has come meanwhile.
const READ_TO_ANSWER: u64 = machine::READ_TO_ANSWER as u64;
pub(crate) const READ_TO_FILL: u64 = machine::READ_TO_FILL as u64;
const READ_BUSY: u64 = machine::READ_BUSY as u64;
const WRITE_BUSY: u64 = machine::WRITE_BUSY as u64;
const SHORT_BUSY: u64 = machine::PRESENT_BUSY as u64;
const SHORT_TO_ANSWER: u64 = machine::PRESENT_TO_ANSWER as u64;
const SHORT_TO_FILL: u64 = machine::PRESENT_TO_FILL as u64;

/// The controller.
pub(crate) struct Controller {
    queues: [Ring<Request, 32>; KINDS],
    pending: usize,
    /// When the next transaction can start.
    free_at: u64,
    /// A data read that is not answered yet, with the cycle of the answer.
    active: Option<(Request, u64)>,
    /// Transactions whose effect on the caches is to come, in the order of its cycle.
    ending: Ring<(Request, u64), 8>,
    delay: u64,
    reads: u64,
    writes: u64,
}

impl Controller {
    pub fn new(delay: u32) -> Controller {
        Controller {
            queues: std::array::from_fn(|_| Ring::new(Request::NONE)),
            pending: 0,
            free_at: 0,
            active: None,
            ending: Ring::new((Request::NONE, u64::MAX)),
            delay: delay.into(),
            reads: 0,
            writes: 0,
        }
    }

    /// Reads and writes of memory so far.
    pub fn transactions(&self) -> (u64, u64) {
        (self.reads, self.writes)
    }

    /// Forgets them.
    pub fn reset_counters(&mut self) {
        (self.reads, self.writes) = (0, 0);
    }

    pub fn request(&mut self, request: Request) {
        self.queues[request.kind as usize].push(request);
        self.pending += 1;
    }

    /// Whether a request was lost because its queue was full.
    pub fn overflowed(&self) -> bool {
        self.ending.overflowed() || self.queues.iter().any(Ring::overflowed)
    }

    /// Whether it has nothing to do.
    #[inline]
    pub fn is_idle(&self) -> bool {
        self.pending == 0 && self.active.is_none() && self.ending.is_empty()
    }

    /// Joins a request for the same instruction line that has not ended; gives whether there was one.
    pub fn join(&mut self, line: u32, threads: u8) -> bool {
        let joined = |request: &mut Request| {
            let same = request.kind == Transaction::Instruction && request.line == line;
            if same {
                request.threads |= threads;
            }
            same
        };
        self.ending.join(|(request, _)| joined(request)) || self.queues[Transaction::Instruction as usize].join(joined)
    }

    /// Takes a thread away from the instruction lines that are waited for.
    pub fn forget(&mut self, threads: u8) {
        self.pending -= self.queues[Transaction::Instruction as usize].remove(|r| r.threads == threads);
        self.queues[Transaction::Instruction as usize].join(|r| {
            r.threads &= !threads;
            false
        });
    }

    /// The transaction whose effect on the caches comes in cycle `now`, if there is one.
    #[inline]
    pub fn step(&mut self, now: u64) -> Option<Request> {
        if let Some((mut request, answer)) = self.active
            && answer <= now
        {
            self.active = None;
            // One more that waits for the line goes with it.
            let queue = &mut self.queues[request.kind as usize];
            if let Some(&next) = queue.front()
                && next.line == request.line
                && next.from <= now
            {
                queue.pop();
                self.pending -= 1;
                request.partner = next.threads;
            }
            let after = if request.short {
                SHORT_TO_FILL - SHORT_TO_ANSWER
            } else {
                READ_TO_FILL - READ_TO_ANSWER
            };
            self.ending.push((request, answer + after));
        }
        if self.ending.front().is_some_and(|&(_, end)| end <= now) {
            return self.ending.pop().map(|(request, _)| request);
        }
        None
    }

    /// Starts a transaction if the controller is free. `present` says whether the data cache holds a line.
    #[inline]
    pub fn start(&mut self, now: u64, present: impl Fn(u32) -> bool) {
        if self.pending == 0 || self.free_at > now || self.active.is_some() {
            return;
        }
        let seen = |queue: &Ring<Request, 32>| queue.front().is_some_and(|r| r.from <= now);
        let Some(queue) = self.queues.iter_mut().find(|queue| seen(queue)) else {
            return;
        };
        let Some(mut request) = queue.pop() else { return };
        self.pending -= 1;
        match request.kind {
            Transaction::Replacement | Transaction::Flush | Transaction::Invalidate | Transaction::Io => {
                self.writes += u64::from(request.kind != Transaction::Io);
                self.free_at = now + WRITE_BUSY + self.delay;
                self.ending.push((request, self.free_at));
            }
            Transaction::Instruction => {
                self.reads += 1;
                self.free_at = now + READ_BUSY + self.delay;
                self.ending.push((request, now + READ_TO_FILL + self.delay));
            }
            Transaction::StoreMiss | Transaction::LoadMiss => {
                let line = request.line;
                let comes = self
                    .ending
                    .join(|(r, _)| r.kind != Transaction::Instruction && r.line == line && r.fills());
                if comes || present(line) {
                    request.short = true;
                    self.free_at = now + SHORT_BUSY;
                    self.active = Some((request, now + SHORT_TO_ANSWER));
                } else {
                    self.reads += 1;
                    self.free_at = now + READ_BUSY + self.delay;
                    self.active = Some((request, now + READ_TO_ANSWER + self.delay));
                }
            }
        }
    }

    /// The next cycle in which something happens here by itself.
    pub fn next_event(&self) -> u64 {
        let mut next = self.ending.front().map_or(u64::MAX, |&(_, end)| end);
        if let Some((_, answer)) = self.active {
            next = next.min(answer);
        } else if self.pending != 0 {
            let first = self.queues.iter().filter_map(|q| q.front()).map(|r| r.from).min();
            next = next.min(first.unwrap_or(u64::MAX).max(self.free_at));
        }
        next
    }
}
