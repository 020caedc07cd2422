//! The fast interpreter: executes predecoded operations, dispatched by one `match`, up to the first
//! uncommon one.
//!
//! Invariant: the interpreter executes an operation either completely or not at all. [`Exit::Slow`]
//! leaves registers, memory and PC in the state before the operation, and [`crate::exec`] executes
//! it.

mod access;
pub(crate) mod float;
pub(crate) mod lanes;
mod vectors;

use self::lanes::Source;
use crate::alu::{self, Operation};
use crate::cache::Caches;
use crate::memory::{Memory, PAGE_SIZE};
use crate::operands::is_slow;
use crate::predecode::{CodeCache, Kind, Op, PAGE_WORDS, PageOps};
use crate::registers::{Lanes, PC, RA};
use crate::shared::Shared;
use crate::sharing::Sharing;
use crate::thread::Thread;
use npu_mc::for_each_alu_op;
use npu_mc::raw::AluOp;

/// The reason why the fast interpreter stopped. The PC of the thread is at the next operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// The budget is exhausted.
    Budget,
    /// The next operation requires the definition.
    Slow,
    /// The next operation is a stop address.
    Break,
    /// The next operation is not predecoded.
    NotReady,
}

/// The registers and memory words that require the definition.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Watched {
    /// The registers whose accesses require the definition, scalar and vector combined.
    pub unsettled: u64,
    /// The scalar registers with undriven bits; most of their accesses require the definition.
    pub undriven: u64,
    /// The words whose accesses require the definition, by [`word_bit`](crate::hazard::word_bit).
    pub memory: u64,
}

/// Returns a superset of the registers that an operation accesses, scalar and vector combined.
#[inline(always)]
pub(crate) fn touched(op: Op) -> u64 {
    1 << (op.d & 63) | 1 << (op.a & 63) | 1 << (op.b & 63)
}

/// Propagates undriven bits through an operation on watched registers; returns the scalar registers
/// with undriven bits after it. Returns `None` if the operation requires the definition.
#[inline(never)]
fn follow(op: Op, thread: &mut Thread, watched: Watched) -> Option<u64> {
    if touched(op) & watched.unsettled != 0 {
        return None;
    }
    let driven = |number: u8| watched.undriven >> (number & 63) & 1 == 0;
    macro_rules! by_kind {
        ($($name:ident $(, $immediate:ident)?;)*) => {
            match op.kind {
                // All operands are vectors, and the destination of a compare is handled after its
                // execution.
                Kind::VectorVector | Kind::VectorImmediate | Kind::SplatImmediate | Kind::MoveilVector
                | Kind::MoveihVector | Kind::ShuffleVectors | Kind::CompareVectors | Kind::CompareVectorImmediate => {
                    return Some(watched.undriven);
                }
                Kind::VectorScalar | Kind::CompareVectorScalar => return driven(op.b).then_some(watched.undriven),
                // The memory words are checked when they are moved.
                Kind::ScalarVector | Kind::Splat | Kind::LoadVector | Kind::StoreVector | Kind::LoadNarrow
                | Kind::StoreNarrow | Kind::LoadVectorScratchpad | Kind::StoreVectorScratchpad | Kind::Load32
                | Kind::Store32 => return driven(op.a).then_some(watched.undriven),
                Kind::GetLaneOf if !driven(op.b) => return None,
                Kind::GetLaneOf | Kind::GetLaneImmediate | Kind::MakeMask | Kind::Movei | Kind::MoveiMask => {
                    thread.watch.driven(op.d);
                }
                // A `b` other than PC denotes a copy as a vector operation: it uses undriven bits
                // instead of copying them.
                Kind::Move | Kind::MoveMask if op.b == PC => thread.watch.copied(op.d, op.a),
                // All others require the definition.
                $(Kind::$name => return None, $(Kind::$immediate => return None,)?)*
                Kind::Slow | Kind::Nop | Kind::Break | Kind::NotYet | Kind::PageEnd | Kind::AddPc | Kind::Moveil
                | Kind::Moveih | Kind::MoveMask | Kind::LoadS8 | Kind::LoadS16 | Kind::LoadU8 | Kind::LoadU16
                | Kind::Store8 | Kind::Store16 | Kind::LoadScratchpad | Kind::StoreScratchpad | Kind::Jump
                | Kind::Call | Kind::Beqz | Kind::Bnez | Kind::JumpRegister => return None,
            }
        };
    }
    for_each_alu_op!(by_kind);
    Some(thread.watch.undriven_scalars())
}

/// The target of loads and stores. Addresses are multiples of `N`.
pub(crate) trait Port {
    /// Main memory, from which code is fetched.
    fn memory(&self) -> &Memory;

    /// Returns `None` if the load requires the definition.
    fn load<const N: usize>(&mut self, address: u32) -> Option<[u8; N]>;

    /// Returns `false` if the store requires the definition; nothing was stored then.
    fn store<const N: usize>(&mut self, address: u32, bytes: [u8; N]) -> bool;

    /// Handles a taken backward branch, call or return to `pc`. Returns whether it executed
    /// operations from `pc` on; thread and budget are then up to date.
    #[inline(always)]
    fn turned(
        &mut self,
        _code: &CodeCache,
        _thread: &mut Thread,
        _shared: &mut Shared,
        _pc: u32,
        _budget: &mut u64,
    ) -> bool {
        false
    }
}

/// Direct accesses to main memory.
impl Port for &mut Memory {
    #[inline(always)]
    fn memory(&self) -> &Memory {
        self
    }

    #[inline(always)]
    fn load<const N: usize>(&mut self, address: u32) -> Option<[u8; N]> {
        self.bring(address);
        Some(Memory::load(self, address))
    }

    #[inline(always)]
    fn store<const N: usize>(&mut self, address: u32, bytes: [u8; N]) -> bool {
        Memory::store(self, address, bytes)
    }
}

/// Hits in the data cache of a core.
pub(crate) struct Cached<'a> {
    pub memory: &'a mut Memory,
    pub caches: &'a mut Caches,
    pub core: usize,
    pub write_through: bool,
}

impl Port for Cached<'_> {
    #[inline(always)]
    fn memory(&self) -> &Memory {
        self.memory
    }

    #[inline(always)]
    fn load<const N: usize>(&mut self, address: u32) -> Option<[u8; N]> {
        self.caches.load_hit(self.core, address)
    }

    #[inline(always)]
    fn store<const N: usize>(&mut self, address: u32, bytes: [u8; N]) -> bool {
        !self.write_through && self.caches.store_hit(self.core, address, bytes)
    }
}

/// Accesses that repeat the last ones to their sets, while faults of several cores are detected.
pub(crate) struct Tracked<'a, P> {
    pub port: P,
    pub sharing: &'a Sharing,
    /// The number of the thread, counted over all cores.
    pub thread: usize,
}

impl<P: Port> Port for Tracked<'_, P> {
    fn memory(&self) -> &Memory {
        self.port.memory()
    }

    fn load<const N: usize>(&mut self, address: u32) -> Option<[u8; N]> {
        let repeats = self.sharing.repeats(self.thread, address, false);
        repeats.then(|| self.port.load(address)).flatten()
    }

    fn store<const N: usize>(&mut self, address: u32, bytes: [u8; N]) -> bool {
        self.sharing.repeats(self.thread, address, true) && self.port.store(address, bytes)
    }
}

/// Runs `thread` from its PC in the page `first` for at most `budget` operations, and counts
/// `budget` down.
///
/// With `WATCH`, operations on `watched` state require the definition.
pub(crate) fn run<const WATCH: bool, P: Port>(
    code: &CodeCache,
    first: &PageOps,
    thread: &mut Thread,
    shared: &mut Shared,
    port: P,
    watched: Watched,
    budget: &mut u64,
) -> Exit {
    let mut run = Run::<WATCH, P> {
        code,
        ops: first,
        base: thread.pc & !(PAGE_SIZE - 4),
        index: (thread.pc % PAGE_SIZE / 4) as usize,
        left: *budget,
        thread,
        shared,
        port,
        watched,
    };
    let exit = loop {
        if run.left == 0 {
            break Exit::Budget;
        }
        let ops = run.ops;
        let op = &ops[run.index];
        if WATCH && touched(*op) & (run.watched.unsettled | run.watched.undriven) != 0 {
            match follow(*op, run.thread, run.watched) {
                Some(undriven) => run.watched.undriven = undriven,
                None => break Exit::Slow,
            }
        }
        if let Err(exit) = run.operation(op) {
            break exit;
        }
    };
    run.thread.pc = run.pc();
    *budget = run.left;
    exit
}

/// The outcome of an operation: the run proceeds to the next one, or leaves before this one.
type Done = Result<(), Exit>;

/// A run of the interpreter. Its functions are inlined into the loop, so that its fields are in
/// host registers: no reference to a field may be passed to a function that is not inlined. An
/// operation is read from memory, since its fields would occupy too many host registers. Each
/// operation advances the run itself: if it returned how to advance, the address of the next
/// operation would depend on the result.
struct Run<'a, const WATCH: bool, P> {
    code: &'a CodeCache,
    thread: &'a mut Thread,
    shared: &'a mut Shared,
    port: P,
    watched: Watched,
    ops: &'a PageOps,
    /// The address of the first operation of the page; the low bits are those of a misaligned PC,
    /// which fetch ignores.
    base: u32,
    index: usize,
    /// The rest of the budget.
    left: u64,
}

impl<const WATCH: bool, P: Port> Run<'_, WATCH, P> {
    /// Executes an operation.
    #[inline(always)]
    fn operation(&mut self, op: &Op) -> Done {
        macro_rules! dispatch {
            ($($name:ident $(, $immediate:ident)?;)*) => {
                match op.kind {
                    $(
                        Kind::$name => self.alu(op, const { Alu::of(AluOp::$name) }, self.scalar(op.b)),
                        $(Kind::$immediate => self.alu(op, const { Alu::of(AluOp::$name) }, op.imm as u32),)?
                    )*
                    Kind::Slow => Err(Exit::Slow),
                    Kind::Break => Err(Exit::Break),
                    Kind::NotYet => Err(Exit::NotReady),
                    Kind::PageEnd => self.far(self.base.wrapping_add(PAGE_SIZE)),
                    Kind::Nop => self.nop(),
                    Kind::AddPc => self.set(op, self.pc().wrapping_add(op.imm as u32)),
                    Kind::Movei => self.set(op, op.imm as u32),
                    Kind::Moveil => self.set(op, low_half(self.scalar(op.d), op)),
                    Kind::Moveih => self.set(op, high_half(self.scalar(op.d), op)),
                    Kind::MoveMask => self.set_mask(op, self.scalar(op.a)),
                    Kind::MoveiMask => self.set_mask(op, op.imm as u32),
                    Kind::LoadS8 => self.load(op, |b: [u8; 1]| b[0] as i8 as u32),
                    Kind::LoadU8 => self.load(op, |b: [u8; 1]| u32::from(b[0])),
                    Kind::LoadS16 => self.load(op, |b| i16::from_le_bytes(b) as u32),
                    Kind::LoadU16 => self.load(op, |b| u32::from(u16::from_le_bytes(b))),
                    Kind::Load32 => self.load_word(op),
                    Kind::Store8 => self.store(op, |x| [x as u8]),
                    Kind::Store16 => self.store(op, |x| (x as u16).to_le_bytes()),
                    Kind::Store32 => self.store_word(op),
                    Kind::LoadVector => self.load_vector(op),
                    Kind::StoreVector => self.store_vector(op),
                    Kind::LoadNarrow => self.load_narrow(op),
                    Kind::StoreNarrow => self.store_narrow(op),
                    Kind::LoadScratchpad => self.load_scratchpad(op),
                    Kind::StoreScratchpad => self.store_scratchpad(op),
                    Kind::LoadVectorScratchpad => self.load_vector_scratchpad(op),
                    Kind::StoreVectorScratchpad => self.store_vector_scratchpad(op),
                    Kind::Jump => self.branch(op, true, false),
                    Kind::Call => self.branch(op, true, true),
                    Kind::Beqz => self.branch(op, self.scalar(op.a) == 0, false),
                    Kind::Bnez => self.branch(op, self.scalar(op.a) != 0, false),
                    Kind::JumpRegister => self.jump_register(self.scalar(op.a)),
                    Kind::VectorVector => self.by_lane(op, op.imm as u8, Source::Vector(op.a), Source::Vector(op.b)),
                    Kind::VectorScalar => self.by_lane(op, op.imm as u8, Source::Vector(op.a), self.in_lanes(op.b)),
                    Kind::ScalarVector => self.by_lane(op, op.imm as u8, self.in_lanes(op.a), Source::Vector(op.b)),
                    Kind::VectorImmediate => self.by_lane(op, op.b, Source::Vector(op.a), Source::Scalar(op.imm as u32)),
                    Kind::CompareVectors => self.compare(op, op.imm as u8, Source::Vector(op.b)),
                    Kind::CompareVectorScalar => self.compare(op, op.imm as u8, self.in_lanes(op.b)),
                    Kind::CompareVectorImmediate => self.compare(op, op.b, Source::Scalar(op.imm as u32)),
                    Kind::Splat => self.set_lanes(op, &Lanes::splat(self.scalar(op.a))),
                    Kind::SplatImmediate => self.set_lanes(op, &Lanes::splat(op.imm as u32)),
                    Kind::MoveilVector => self.set_lanes(op, &self.vector(op.d).map(|old| low_half(old, op))),
                    Kind::MoveihVector => self.set_lanes(op, &self.vector(op.d).map(|old| high_half(old, op))),
                    Kind::ShuffleVectors => self.shuffle(op),
                    Kind::GetLaneOf => self.get_lane(op, self.scalar(op.b)),
                    Kind::GetLaneImmediate => self.get_lane(op, op.imm as u32),
                    Kind::MakeMask => self.make_mask(op),
                }
            };
        }
        for_each_alu_op!(dispatch)
    }

    #[inline(always)]
    fn pc(&self) -> u32 {
        self.base.wrapping_add((self.index as u32) << 2)
    }

    #[inline(always)]
    fn scalar(&self, number: u8) -> u32 {
        self.thread.scalars[usize::from(number)]
    }

    /// Counts an operation and advances to the next one.
    #[inline(always)]
    fn next(&mut self) -> Done {
        self.left -= 1;
        self.index += 1;
        Ok(())
    }

    #[inline(always)]
    fn set(&mut self, op: &Op, value: u32) -> Done {
        self.thread.scalars[usize::from(op.d)] = value;
        self.next()
    }

    #[inline(always)]
    fn set_mask(&mut self, op: &Op, value: u32) -> Done {
        self.thread.mask = value as u16;
        self.set(op, value)
    }

    /// Records that a taken branch directly after this operation can lose its result.
    #[inline(always)]
    fn can_be_lost(&mut self) {
        self.thread.watch.last_long = self.pc();
    }

    /// Executes an operation of the R format on scalars.
    #[inline(always)]
    fn alu(&mut self, op: &Op, alu: Alu, b: u32) -> Done {
        let a = self.scalar(op.a);
        let value = match alu.operation {
            Operation::Unary(f) | Operation::FloatUnary(f) => f(a),
            Operation::Binary(f) | Operation::FloatBinary(f) => f(a, b),
            Operation::Compare(f) => u32::from(f(a, b)),
            Operation::FloatCompare(f) => {
                if f(a, b) {
                    0xffff
                } else {
                    0
                }
            }
            Operation::Shuffle | Operation::GetLane | Operation::Mask | Operation::NoUnit | Operation::Hang => {
                return Err(Exit::Slow);
            }
        };
        if alu.is_slow {
            self.can_be_lost();
        }
        self.set(op, value)
    }

    /// Executes an undecoded word, which takes no issue slot.
    #[inline(always)]
    fn nop(&mut self) -> Done {
        if self.follows_long() {
            self.can_be_lost();
        }
        self.next()
    }

    /// Returns whether the previous operation is one whose result can be lost.
    #[inline(always)]
    fn follows_long(&self) -> bool {
        self.thread.watch.last_long.wrapping_add(4) == self.pc()
    }

    /// Executes a branch by `imm` words.
    #[inline(always)]
    fn branch(&mut self, op: &Op, is_taken: bool, links: bool) -> Done {
        if !is_taken {
            return self.next();
        }
        self.take()?;
        if links {
            self.thread.scalars[usize::from(RA)] = self.pc().wrapping_add(4);
        }
        self.left -= 1;
        let target = self.index.wrapping_add_signed(op.imm as isize);
        if target < PAGE_WORDS {
            self.index = target;
        } else {
            self.far(self.pc().wrapping_add((op.imm as u32) << 2))?;
        }
        if links || op.imm < 0 {
            self.turn()?;
        }
        Ok(())
    }

    #[inline(always)]
    fn jump_register(&mut self, target: u32) -> Done {
        if target == self.pc() {
            return Err(Exit::Slow);
        }
        self.take()?;
        self.left -= 1;
        self.far(target)?;
        self.turn()
    }

    /// Takes a branch. Leaves to the definition if the branch can lose a result.
    #[inline(always)]
    fn take(&mut self) -> Done {
        if self.follows_long() {
            return Err(Exit::Slow);
        }
        self.thread.watch.forget_long();
        self.thread.last_branch = Some(self.pc());
        Ok(())
    }

    /// Continues in another page.
    #[inline(always)]
    fn far(&mut self, target: u32) -> Done {
        self.base = target & !(PAGE_SIZE - 4);
        self.index = (target % PAGE_SIZE / 4) as usize;
        let page = self.port.memory().page_index(target);
        // Index 0 is the shared page of unwritten memory, which the caller handles.
        match self.code.page(page) {
            Some(found) if page != 0 => self.ops = found,
            _ => return Err(Exit::NotReady),
        }
        Ok(())
    }

    /// Continues after a port that may have executed operations from here on.
    #[inline(always)]
    fn turn(&mut self) -> Done {
        let (pc, mut left) = (self.pc(), self.left);
        let turned = self.port.turned(self.code, self.thread, self.shared, pc, &mut left);
        self.left = left;
        if turned {
            self.far(self.thread.pc)?;
            // If watching is necessary now, the run needs the watching loop.
            if !WATCH && self.thread.watch.active() {
                return Err(Exit::NotReady);
            }
            if WATCH {
                self.watched.undriven = self.thread.watch.undriven_scalars();
                self.watched.memory = self.thread.watch.memory();
            }
        }
        Ok(())
    }
}

/// The execution of an operation of the R format.
#[derive(Clone, Copy)]
struct Alu {
    operation: Operation,
    is_slow: bool,
}

impl Alu {
    const fn of(op: AluOp) -> Alu {
        Alu {
            operation: alu::operation(op),
            is_slow: is_slow(op),
        }
    }
}

/// Replaces the low half of a word.
#[inline(always)]
fn low_half(old: u32, op: &Op) -> u32 {
    (old & 0xffff_0000) | op.imm as u32
}

/// Replaces the high half of a word.
#[inline(always)]
fn high_half(old: u32, op: &Op) -> u32 {
    (old & 0x0000_ffff) | (op.imm as u32) << 16
}
