//! The fast interpreter: predecoded operations, dispatched by one `match`, until something uncommon comes up.
//!
//! Invariant: an operation that is not done completely here is not begun here. [`Exit::Slow`] leaves registers, memory and PC
//! as they were before it, and [`crate::exec`] does it.

pub(crate) mod float;
pub(crate) mod lanes;

use self::lanes::{Source, Target};
use crate::alu::{self, Operation, operations};
use crate::cache::Caches;
use crate::hazard::word_bit;
use crate::mem_op::{alignment, lane_extension};
use crate::memory::{Memory, PAGE_SIZE};
use crate::operands::is_slow;
use crate::predecode::{CodeCache, Kind, Op, PAGE_WORDS, PageOps};
use crate::registers::{LANES, Lanes, PC, RA, RM};
use crate::shared::Shared;
use crate::thread::Thread;
use npu_mc::raw::{AluOp, MemOp};

/// Why the fast interpreter stopped. The PC of the thread is at the next operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// The budget is used up.
    Budget,
    /// The next operation is for the definition.
    Slow,
    /// The next operation is a stop address.
    Break,
    /// The next operation is not predecoded.
    NotReady,
}

/// What the definition has to look at.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Watched {
    /// Operations that touch one of these registers, scalar and vector in one set.
    pub unsettled: u64,
    /// Most operations that touch one of these scalar registers, which hold undriven bits.
    pub undriven: u64,
    /// Loads and stores of these words, by [`word_bit`].
    pub memory: u64,
}

/// Words of the I/O space and the few ordinary lines above it, which the definition tells apart.
#[inline(always)]
fn may_be_io(address: u32) -> bool {
    address >= npu_mc::machine::IO_BASE
}

/// Registers that an operation may touch, scalar and vector in one set. Too many are harmless.
#[inline(always)]
pub(crate) fn touched(op: Op) -> u64 {
    1 << (op.d & 63) | 1 << (op.a & 63) | 1 << (op.b & 63)
}

/// Follows undriven bits through an operation that touches watched registers, if that is simple and nothing else matters.
#[inline(never)]
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "what is not known to be simple is for the definition"
)]
fn follow(op: Op, thread: &mut Thread, watched: &mut Watched) -> bool {
    if touched(op) & watched.unsettled != 0 {
        return false;
    }
    let driven = |number: u8| watched.undriven >> (number & 63) & 1 == 0;
    match op.kind {
        // All of them are vectors, and the destination of a compare is looked at when it is done.
        Kind::VectorVector
        | Kind::VectorImmediate
        | Kind::SplatImmediate
        | Kind::MoveilVector
        | Kind::MoveihVector
        | Kind::ShuffleVectors
        | Kind::CompareVectors
        | Kind::CompareVectorImmediate => true,
        Kind::VectorScalar | Kind::CompareVectorScalar => driven(op.b),
        // Words are looked at when they are moved.
        Kind::ScalarVector
        | Kind::Splat
        | Kind::LoadVector
        | Kind::StoreVector
        | Kind::LoadNarrow
        | Kind::StoreNarrow
        | Kind::LoadVectorScratchpad
        | Kind::StoreVectorScratchpad
        | Kind::Load32
        | Kind::Store32 => driven(op.a),
        Kind::GetLaneOf if !driven(op.b) => false,
        Kind::GetLaneOf | Kind::GetLaneImmediate | Kind::MakeMask => {
            thread.watch.driven(op.d);
            watched.undriven = thread.watch.undriven_scalars();
            true
        }
        // The second operand is one of a copy of vectors, where undriven bits are not copied but used.
        Kind::Move | Kind::MoveMask if op.b == PC => {
            thread.watch.copied(op.d, op.a);
            watched.undriven = thread.watch.undriven_scalars();
            true
        }
        Kind::Movei | Kind::MoveiMask => {
            thread.watch.driven(op.d);
            watched.undriven = thread.watch.undriven_scalars();
            true
        }
        _ => false,
    }
}

/// Where loads and stores go. Addresses are multiples of `N`.
pub(crate) trait Port {
    /// Main memory, which code is fetched from.
    fn memory(&self) -> &Memory;

    /// `None` when it is for the definition.
    fn load<const N: usize>(&mut self, address: u32) -> Option<[u8; N]>;

    /// `false` when it is for the definition, and nothing was stored.
    fn store<const N: usize>(&mut self, address: u32, bytes: [u8; N]) -> bool;

    /// A backward branch, a call or a return to `pc` was taken. Gives whether operations from there on were done in another way: then thread and
    /// budget are as after them.
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

/// Main memory itself.
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

/// What hits in the data cache of a core.
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

/// Runs `thread` from its PC in the page `first` for at most `budget` operations, which is counted down.
///
/// With `WATCH`, what touches `watched` is left to the definition.
pub(crate) fn run<const WATCH: bool, P: Port>(
    code: &CodeCache,
    first: &PageOps,
    thread: &mut Thread,
    shared: &mut Shared,
    mut port: P,
    mut watched: Watched,
    budget: &mut u64,
) -> Exit {
    let mut ops = first;
    // Address of the first operation of the page; the low bits are those of a misaligned PC, which fetch ignores.
    let mut base = thread.pc & !(PAGE_SIZE - 4);
    let mut index = (thread.pc % PAGE_SIZE / 4) as usize;
    let mut left = *budget;

    macro_rules! pc {
        () => {
            base.wrapping_add((index as u32) << 2)
        };
    }
    macro_rules! leave {
        ($exit:expr) => {{
            thread.pc = pc!();
            *budget = left;
            return $exit;
        }};
    }
    loop {
        if left == 0 {
            leave!(Exit::Budget);
        }
        let op = ops[index];
        if WATCH && touched(op) & (watched.unsettled | watched.undriven) != 0 && !follow(op, thread, &mut watched) {
            leave!(Exit::Slow);
        }
        macro_rules! a {
            () => {
                thread.scalars[usize::from(op.a)]
            };
        }
        macro_rules! b {
            () => {
                thread.scalars[usize::from(op.b)]
            };
        }
        macro_rules! v {
            ($register:expr) => {
                &thread.vectors[usize::from($register & 63)]
            };
        }
        macro_rules! set {
            ($value:expr) => {{
                let value = $value;
                thread.scalars[usize::from(op.d)] = value;
            }};
        }
        // The result can be lost to a taken branch directly after it.
        macro_rules! long {
            () => {
                thread.watch.last_long = pc!()
            };
        }
        // An operation of the R format on scalars.
        macro_rules! operate {
            ($name:ident, $b:expr) => {{
                if const { is_slow(AluOp::$name) } {
                    long!();
                }
                match const { alu::operation(AluOp::$name) } {
                    Operation::Unary(f) | Operation::FloatUnary(f) => set!(f(a!())),
                    Operation::Binary(f) | Operation::FloatBinary(f) => set!(f(a!(), $b)),
                    Operation::Compare(f) => set!(u32::from(f(a!(), $b))),
                    Operation::FloatCompare(f) => set!(if f(a!(), $b) { 0xffff } else { 0 }),
                    Operation::Shuffle | Operation::GetLane | Operation::Mask | Operation::NoUnit | Operation::Hang => {
                        leave!(Exit::Slow)
                    }
                }
            }};
        }
        // The words of an aligned access as a set.
        macro_rules! words {
            ($address:expr, $size:expr) => {
                match $size {
                    64 => 0xffff << ($address >> 2 & 63),
                    _ => word_bit($address),
                }
            };
        }
        // The address of an access, if the fast path can do it.
        macro_rules! address {
            ($alignment:expr) => {{
                let address = any_address!($alignment);
                if WATCH && watched.memory & words!(address, $alignment) != 0 {
                    leave!(Exit::Slow);
                }
                address
            }};
        }
        // The address of a packed vector. The words of its line, and those behind it that the definition takes it to have.
        macro_rules! narrow_address {
            () => {{
                let Some(kind) = MemOp::from_code(op.b) else {
                    leave!(Exit::Slow);
                };
                let address = any_address!(alignment(kind));
                if WATCH
                    && watched.memory & (0xffff_u64.rotate_left(address >> 2 & 63) | words!(address & !63, 64)) != 0
                {
                    leave!(Exit::Slow);
                }
                address
            }};
        }
        // Aligned words of the scratchpad that do not wrap. With no lane on the access never ends.
        macro_rules! scratchpad_line {
            () => {{
                let address = a!().wrapping_add(op.imm as u32);
                if address & 3 != 0 || thread.mask == 0 {
                    leave!(Exit::Slow);
                }
                let Some(line) = shared.scratchpad_line::<64>(address) else {
                    leave!(Exit::Slow);
                };
                line
            }};
        }
        // The same for accesses that look at undriven bits themselves.
        macro_rules! any_address {
            ($alignment:expr) => {{
                let address = a!().wrapping_add(op.imm as u32);
                if !address.is_multiple_of($alignment) || may_be_io(address) {
                    leave!(Exit::Slow);
                }
                address
            }};
        }
        // Follows undriven bits through a move of a word that is done.
        macro_rules! word_moved {
            ($name:ident, $address:expr) => {
                if WATCH && (watched.memory & word_bit($address) != 0 || watched.undriven >> (op.d & 63) & 1 != 0) {
                    thread.watch.word_moved(MemOp::$name, op.d, $address);
                    watched.memory = thread.watch.memory();
                    watched.undriven = thread.watch.undriven_scalars();
                }
            };
        }
        macro_rules! load {
            ($size:expr, $convert:expr) => {{
                let address = address!($size);
                let Some(bytes) = port.load::<$size>(address) else {
                    leave!(Exit::Slow);
                };
                long!();
                set!($convert(bytes));
            }};
        }
        macro_rules! store {
            ($size:expr, $convert:expr) => {{
                let address = address!($size);
                let bytes: [u8; $size] = $convert(thread.scalars[usize::from(op.d)]);
                if !port.store(address, bytes) {
                    leave!(Exit::Slow);
                }
            }};
        }
        macro_rules! target {
            () => {
                Target {
                    register: op.d,
                    mask: thread.mask,
                }
            };
        }
        macro_rules! vector_result {
            ($value:expr) => {{
                let value = $value;
                target!().write(&mut thread.vectors, &value);
            }};
        }
        macro_rules! by_lane {
            ($operation:expr, $a:expr, $b:expr) => {{
                let operation = $operation;
                let (a, b) = ($a, $b);
                if lanes::operate(operation, &mut thread.vectors, target!(), a, b).is_none() {
                    leave!(Exit::Slow);
                }
                if is_long(operation) {
                    long!();
                }
            }};
        }
        // Of an integer compare the upper half of the result is not driven, which is followed from the first one on.
        macro_rules! compare {
            ($operation:expr, $a:expr, $b:expr) => {{
                let operation = $operation;
                let partly_driven = is_partly_driven(operation);
                if partly_driven && !WATCH {
                    leave!(Exit::Slow);
                }
                let Some(set) = lanes::compare(operation, &thread.vectors, $a, $b) else {
                    leave!(Exit::Slow);
                };
                if is_long(operation) {
                    long!();
                }
                set!(set);
                if op.d == RM {
                    thread.mask = set as u16;
                }
                if WATCH {
                    if partly_driven {
                        thread.watch.mark_upper_half(op.d);
                    } else {
                        thread.watch.driven(op.d);
                    }
                    watched.undriven = thread.watch.undriven_scalars();
                }
            }};
        }
        // Goes on at another page.
        macro_rules! far {
            ($target:expr) => {{
                let target = $target;
                base = target & !(PAGE_SIZE - 4);
                index = (target % PAGE_SIZE / 4) as usize;
                let page = port.memory().page_index(target);
                // Index 0 is the shared page of unwritten memory, which the caller looks at.
                match code.page(page) {
                    Some(found) if page != 0 => ops = found,
                    _ => leave!(Exit::NotReady),
                }
            }};
        }
        // A taken branch directly after a long operation needs the definition to look at it.
        macro_rules! check_lost {
            () => {
                if thread.watch.last_long.wrapping_add(4) == pc!() {
                    leave!(Exit::Slow);
                }
                thread.watch.forget_long();
                thread.last_branch = Some(pc!());
            };
        }
        // What may have been done in another way.
        macro_rules! turn {
            () => {
                if port.turned(code, thread, shared, pc!(), &mut left) {
                    far!(thread.pc);
                    // What has to be watched now makes it another loop.
                    if !WATCH && thread.watch.active() {
                        leave!(Exit::NotReady);
                    }
                    if WATCH {
                        watched.undriven = thread.watch.undriven_scalars();
                        watched.memory = thread.watch.memory();
                    }
                }
            };
        }
        macro_rules! near {
            ($call:expr) => {{
                let target = index.wrapping_add_signed(op.imm as isize);
                left -= 1;
                if target < PAGE_WORDS {
                    index = target;
                } else {
                    far!(pc!().wrapping_add((op.imm as u32) << 2));
                }
                if $call || op.imm < 0 {
                    turn!();
                }
                continue;
            }};
        }
        macro_rules! dispatch {
            ($($name:ident, $immediate:ident = $kind:ident $(($function:expr))?;)*) => {
                match op.kind {
                    $(
                        Kind::$name => operate!($name, b!()),
                        Kind::$immediate => operate!($name, op.imm as u32),
                    )*
                    Kind::Slow => leave!(Exit::Slow),
                    Kind::Break => leave!(Exit::Break),
                    Kind::NotYet => leave!(Exit::NotReady),
                    Kind::PageEnd => {
                        far!(base.wrapping_add(PAGE_SIZE));
                        continue;
                    }
                    Kind::Nop => {
                        if thread.watch.last_long.wrapping_add(4) == pc!() {
                            thread.watch.last_long = pc!();
                        }
                    }
                    Kind::AddPc => set!(pc!().wrapping_add(op.imm as u32)),
                    Kind::Movei => set!(op.imm as u32),
                    Kind::Moveil => {
                        let old = thread.scalars[usize::from(op.d)];
                        set!((old & 0xffff_0000) | op.imm as u32);
                    }
                    Kind::Moveih => {
                        let old = thread.scalars[usize::from(op.d)];
                        set!((old & 0x0000_ffff) | (op.imm as u32) << 16);
                    }
                    Kind::MoveMask => {
                        let value = a!();
                        set!(value);
                        thread.mask = value as u16;
                    }
                    Kind::MoveiMask => {
                        set!(op.imm as u32);
                        thread.mask = op.imm as u16;
                    }
                    Kind::LoadS8 => load!(1, |b: [u8; 1]| b[0] as i8 as u32),
                    Kind::LoadU8 => load!(1, |b: [u8; 1]| u32::from(b[0])),
                    Kind::LoadS16 => load!(2, |b| i16::from_le_bytes(b) as u32),
                    Kind::LoadU16 => load!(2, |b| u32::from(u16::from_le_bytes(b))),
                    Kind::Load32 => {
                        let address = any_address!(4);
                        let Some(bytes) = port.load::<4>(address) else {
                            leave!(Exit::Slow);
                        };
                        long!();
                        set!(u32::from_le_bytes(bytes));
                        word_moved!(Load32, address);
                    }
                    Kind::Store8 => store!(1, |x: u32| [x as u8]),
                    Kind::Store16 => store!(2, |x: u32| (x as u16).to_le_bytes()),
                    Kind::Store32 => {
                        let address = any_address!(4);
                        let bytes = thread.scalars[usize::from(op.d)].to_le_bytes();
                        if !port.store(address, bytes) {
                            leave!(Exit::Slow);
                        }
                        word_moved!(Store32, address);
                    }
                    Kind::LoadVector => {
                        let address = address!(64);
                        let Some(line) = port.load::<64>(address) else {
                            leave!(Exit::Slow);
                        };
                        long!();
                        vector_result!(from_line(&line));
                    }
                    Kind::StoreVector => {
                        let address = address!(64);
                        let line = to_line(&thread.vectors[usize::from(op.d & 63)]);
                        if !port.store(address, line) {
                            leave!(Exit::Slow);
                        }
                    }
                    Kind::LoadScratchpad => {
                        let address = a!().wrapping_add(op.imm as u32);
                        if address & 3 != 0 {
                            leave!(Exit::Slow);
                        }
                        set!(u32::from_le_bytes(shared.scratchpad_load(address)));
                    }
                    Kind::StoreScratchpad => {
                        let address = a!().wrapping_add(op.imm as u32);
                        if address & 3 != 0 {
                            leave!(Exit::Slow);
                        }
                        let value = thread.scalars[usize::from(op.d)];
                        shared.scratchpad_store(address, value.to_le_bytes());
                    }
                    Kind::Jump => {
                        check_lost!();
                        near!(false);
                    }
                    Kind::Call => {
                        check_lost!();
                        thread.scalars[usize::from(RA)] = pc!().wrapping_add(4);
                        near!(true);
                    }
                    Kind::Beqz => {
                        if a!() == 0 {
                            check_lost!();
                            near!(false);
                        }
                    }
                    Kind::Bnez => {
                        if a!() != 0 {
                            check_lost!();
                            near!(false);
                        }
                    }
                    Kind::JumpRegister => {
                        let target = a!();
                        if target == pc!() {
                            leave!(Exit::Slow);
                        }
                        check_lost!();
                        left -= 1;
                        far!(target);
                        turn!();
                        continue;
                    }
                    Kind::VectorVector => by_lane!(op.imm as u8, Source::Vector(op.a), Source::Vector(op.b)),
                    Kind::VectorScalar => by_lane!(op.imm as u8, Source::Vector(op.a), Source::Scalar(b!())),
                    Kind::ScalarVector => by_lane!(op.imm as u8, Source::Scalar(a!()), Source::Vector(op.b)),
                    Kind::VectorImmediate => by_lane!(op.b, Source::Vector(op.a), Source::Scalar(op.imm as u32)),
                    Kind::CompareVectors => compare!(op.imm as u8, Source::Vector(op.a), Source::Vector(op.b)),
                    Kind::CompareVectorScalar => compare!(op.imm as u8, Source::Vector(op.a), Source::Scalar(b!())),
                    Kind::CompareVectorImmediate => compare!(op.b, Source::Vector(op.a), Source::Scalar(op.imm as u32)),
                    Kind::Splat => vector_result!(Lanes::splat(a!())),
                    Kind::SplatImmediate => vector_result!(Lanes::splat(op.imm as u32)),
                    Kind::MoveilVector => vector_result!(v!(op.d).map(|old| (old & 0xffff_0000) | op.imm as u32)),
                    Kind::MoveihVector => vector_result!(v!(op.d).map(|old| (old & 0x0000_ffff) | (op.imm as u32) << 16)),
                    Kind::ShuffleVectors => {
                        let Some(lanes) = lanes::shuffle(v!(op.a), v!(op.b)) else {
                            leave!(Exit::Slow);
                        };
                        if const { is_slow(AluOp::Shuffle) } {
                            long!();
                        }
                        vector_result!(lanes);
                    }
                    Kind::GetLaneOf => {
                        let Some(&lane) = v!(op.a).0.get(b!() as usize) else {
                            leave!(Exit::Slow);
                        };
                        if const { is_slow(AluOp::Getlane) } {
                            long!();
                        }
                        set!(lane);
                    }
                    Kind::GetLaneImmediate => {
                        if const { is_slow(AluOp::Getlane) } {
                            long!();
                        }
                        set!(v!(op.a).0[op.imm as usize % LANES]);
                    }
                    Kind::MakeMask => {
                        let set = lanes::low_bits(v!(op.a));
                        if const { is_slow(AluOp::CrtMask) } {
                            long!();
                        }
                        set!(set);
                        if op.d == RM {
                            thread.mask = set as u16;
                        }
                    }
                    Kind::LoadNarrow => {
                        let address = narrow_address!();
                        let Some(line) = port.load::<64>(address & !63) else {
                            leave!(Exit::Slow);
                        };
                        long!();
                        vector_result!(lanes::extend(lane_extension(op.b), &from_line(&line)));
                    }
                    Kind::StoreNarrow => {
                        let address = narrow_address!();
                        let lanes = v!(op.d);
                        let stored = if MemOp::from_code(op.b) == Some(MemOp::StoreV16i8) {
                            port.store(address, lanes.0.map(|lane| lane as u8))
                        } else {
                            let mut bytes = [0; 2 * LANES];
                            for (place, lane) in bytes.chunks_exact_mut(2).zip(lanes.0) {
                                place.copy_from_slice(&(lane as u16).to_le_bytes());
                            }
                            port.store(address, bytes)
                        };
                        if !stored {
                            leave!(Exit::Slow);
                        }
                    }
                    Kind::LoadVectorScratchpad => {
                        let line = scratchpad_line!();
                        vector_result!(from_line(line));
                    }
                    Kind::StoreVectorScratchpad => {
                        let line = scratchpad_line!();
                        let mut lanes = from_line(line);
                        lanes::write(&mut lanes, thread.mask, v!(op.d));
                        *line = to_line(&lanes);
                    }
                }
            };
        }
        operations!(dispatch);
        left -= 1;
        index += 1;
    }
}

/// Opcodes whose results can be lost, and those of integer compares, of whose scalar result on vectors nothing drives the upper half.
const LONG: u64 = opcodes().0;
const PARTLY_DRIVEN: u64 = opcodes().1;

const fn opcodes() -> (u64, u64) {
    let (mut long, mut partly_driven) = (0, 0);
    macro_rules! each {
        ($($name:ident, $immediate:ident = $kind:ident $(($function:expr))?;)*) => {
            $(
                if is_slow(AluOp::$name) {
                    long |= 1 << AluOp::$name as u8;
                }
                if matches!(alu::operation(AluOp::$name), Operation::Compare(_)) {
                    partly_driven |= 1 << AluOp::$name as u8;
                }
            )*
        };
    }
    operations!(each);
    (long, partly_driven)
}

/// Whether a result can be lost, by opcode.
#[inline(always)]
fn is_long(op: u8) -> bool {
    LONG >> (op & 63) & 1 != 0
}

/// Whether nothing drives the upper half of the scalar result of a compare of vectors, by opcode.
#[inline(always)]
fn is_partly_driven(op: u8) -> bool {
    PARTLY_DRIVEN >> (op & 63) & 1 != 0
}

#[inline(always)]
fn from_line(line: &[u8; 64]) -> Lanes {
    let mut lanes = Lanes::default();
    for (lane, bytes) in lanes.0.iter_mut().zip(line.chunks_exact(4)) {
        *lane = bytes.iter().rev().fold(0, |word, &byte| word << 8 | u32::from(byte));
    }
    lanes
}

#[inline(always)]
fn to_line(lanes: &Lanes) -> [u8; 64] {
    let mut line = [0; 64];
    for (bytes, lane) in line.chunks_exact_mut(4).zip(lanes.0) {
        bytes.copy_from_slice(&lane.to_le_bytes());
    }
    line
}
