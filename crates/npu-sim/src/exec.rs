//! One instruction, as `docs/machine/` describes it.
//!
//! This is the definition of the machine: every word goes through here correctly, whatever it is. The fast interpreter
//! ([`crate::fast`]) repeats the common cases and must agree with it.
//!
//! Where the hardware leaves a result undefined, the model takes the value that a two-state simulation of it gives where that
//! is known, else 0, and reports a [`Hazard`].

use crate::alu::{self, Operation};
use crate::barrier::{COUNT_MASK, ID_MASK};
use crate::cache::Caches;
use crate::findings::{Findings, Hazard};
use crate::mem_op::{
    Extension, Load, Move, Store, access_size, alignment, is_double, is_store, is_vector_access, moves,
};
use crate::memory::{Memory, MemoryFull};
use crate::operands::scalar_name;
use crate::registers::{LANES, Lanes, PC, RA, RM};
use crate::rest::HangReason;
use crate::shared::{Console, Shared, control_id, is_io};
use crate::thread::Thread;
use npu_mc::machine::{self, TrapReason};
use npu_mc::raw::{AluOp, CtrOp, JbaOp, JraOp, MemOp, MviOp, RawInst};
use npu_mc::{SReg, VReg};

/// Bytes of a cache line; no access leaves the line it starts in.
const LINE: u32 = machine::CACHE_LINE;

/// Bytes of a scalar register or a lane.
const LANE_SIZE: u32 = size_of::<u32>() as u32;

/// Where a memory access went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Space {
    /// Main memory.
    Main,
    /// The scratchpad of the core.
    Scratchpad,
    /// Console and other I/O.
    Io,
}

/// A memory access of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// The address computed, before any dropping of low bits.
    pub address: u32,
    /// Bytes a scalar or one lane takes.
    pub size: u32,
    /// Whether all lanes of a vector move.
    pub vector: bool,
    /// Store or load.
    pub store: bool,
    /// Where to.
    pub space: Space,
}

/// What an instruction changed, apart from the PC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Effect {
    /// Scalar register written.
    pub scalar: Option<SReg>,
    /// Vector register written; the lanes that the mask had off keep their values.
    pub vector: Option<VReg>,
    /// Memory access.
    pub access: Option<Access>,
    /// Everything of the C format that is not a register.
    pub control: Option<Control>,
}

/// What an instruction of the C format did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// A control register was read.
    Read {
        /// The low 6 bits of the id, which are those that count.
        register: u8,
    },
    /// A control register was written, or would have been if it were writable.
    Write {
        /// The low 6 bits of the id.
        register: u8,
        /// The value.
        value: u32,
    },
    /// Arrival at a barrier.
    Barrier {
        /// Barrier id, 9 bits.
        id: u32,
        /// Participants that this thread asks for, itself included. The first arrival decides.
        participants: u32,
    },
    /// `flush` of the line that holds the address.
    Flush {
        /// The address, aligned or not.
        address: u32,
    },
    /// `dcache_inv` of the line that holds the address.
    Invalidate {
        /// The address, aligned or not.
        address: u32,
    },
}

/// How the thread goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Flow {
    Next,
    /// A taken branch.
    Jump(u32),
    /// Arrives at a barrier.
    Arrive {
        id: u32,
        others: u32,
    },
    /// To the trap vector.
    Trap,
    Hang(HangReason),
    MemoryFull(MemoryFull),
    /// It would write to this address, which programs must not write.
    ReadOnly(u32),
}

/// Everything an instruction can touch.
pub(crate) struct Env<'a> {
    pub thread: &'a mut Thread,
    /// Number of the thread in its core.
    pub id: u32,
    /// Number of the thread, counted over all cores.
    pub number: u32,
    pub shared: &'a mut Shared,
    pub console: &'a mut Console,
    pub memory: &'a mut Memory,
    /// The data caches and which of them is that of the core; without them memory is used directly.
    pub caches: Option<(&'a mut Caches, usize)>,
    pub findings: &'a mut Findings,
    pub pc: u32,
    pub effect: Effect,
}

/// A source operand.
#[derive(Clone, Copy)]
enum Source {
    Scalar(u32),
    Vector(Lanes),
}

impl Source {
    fn lane(&self, lane: usize) -> u32 {
        match self {
            Source::Scalar(value) => *value,
            Source::Vector(lanes) => lanes.0[lane % LANES],
        }
    }

    fn is_vector(&self) -> bool {
        matches!(self, Source::Vector(_))
    }
}

impl Env<'_> {
    /// Executes `inst`, the instruction at `self.pc`. The PC of the thread is left to the caller.
    pub fn execute(&mut self, inst: &RawInst) -> Flow {
        match *inst {
            RawInst::Rr {
                op,
                dst,
                src0,
                src1,
                long,
                dst_v,
                src0_v,
                src1_v,
                ..
            } => {
                let a = self.source(src0, src0_v);
                let b = self.source(src1, src1_v);
                if dst == PC {
                    return self.destination_63(op, a.lane(0), b.lane(0));
                }
                self.operate(op, dst, dst_v, a, b, long)
            }
            RawInst::Ri {
                op,
                dst,
                src0,
                imm,
                dst_v,
                src0_v,
                ..
            } => {
                let a = self.source(src0, src0_v);
                self.operate(op, dst, dst_v, a, Source::Scalar(imm as u32), false)
            }
            RawInst::Mvi {
                op, dst, imm, dst_v, ..
            } => {
                self.move_immediate(op, dst, dst_v, imm);
                Flow::Next
            }
            RawInst::Mem {
                op,
                reg,
                base,
                offset,
                shared,
                ..
            } => {
                let address = self.scalar(base).wrapping_add(offset as u32);
                let kind = MemOp::from_code(op);
                if !shared && is_io(address) {
                    return self.io(op, kind, reg, address);
                }
                match (kind.map(|kind| (kind, moves(kind))), shared) {
                    (None, _) => self.undefined_access(op, reg, shared),
                    (Some((kind, Move::Load(load))), false) => self.load(kind, load, reg, address),
                    (Some((kind, Move::Store(store))), false) => self.store(kind, store, reg, address),
                    (Some((kind, Move::Load(load))), true) => self.scratchpad_load(kind, load, reg, address),
                    (Some((kind, Move::Store(store))), true) => self.scratchpad_store(kind, store, reg, address),
                }
            }
            RawInst::Ctr { op, reg0, reg1 } => self.control(op, reg0, reg1),
            RawInst::Jba { op, reg, offset } => self.jump_register(op, reg, offset),
            RawInst::Jra { op, offset } => self.jump_relative(op, offset),
            RawInst::Undefined => Flow::Next,
        }
    }

    pub(crate) fn report(&mut self, hazard: Hazard, detail: impl FnOnce() -> String) {
        self.findings.report(self.number, self.pc, hazard, detail);
    }

    fn scalar(&self, number: u8) -> u32 {
        if number == PC { self.pc } else { self.thread.s(number) }
    }

    fn source(&self, number: u8, vector: bool) -> Source {
        if vector {
            Source::Vector(*self.thread.v(number))
        } else {
            Source::Scalar(self.scalar(number))
        }
    }

    /// Writes a scalar result. `bus` is the value on the result bus, whose low half becomes the lane mask when the
    /// destination number is that of `rm`.
    fn write_scalar(&mut self, dst: u8, value: u32, bus: u32) {
        self.thread.scalars[usize::from(dst & 63)] = value;
        if dst == RM {
            self.thread.mask = bus as u16;
        }
        self.effect.scalar = SReg::new(dst).filter(|&r| r != SReg::PC);
    }

    /// Writes the lanes that the mask has on. `bus` is lane 0 of the result bus: a write to `v59` replaces the mask with it.
    fn write_vector(&mut self, dst: u8, lanes: &Lanes, bus: u32) {
        let mask = self.thread.mask;
        let old = &mut self.thread.vectors[usize::from(dst & 63)];
        for (lane, value) in lanes.0.iter().enumerate() {
            if mask >> lane & 1 != 0 {
                old.0[lane] = *value;
            }
        }
        if dst == RM {
            self.thread.mask = bus as u16;
            self.report(Hazard::MaskByV59, || {
                format!("the write to v59 sets the lane mask to {:#06x}", bus as u16)
            });
        }
        self.effect.vector = VReg::new(dst);
    }

    fn write(&mut self, dst: u8, dst_v: bool, lanes: &Lanes) {
        if dst_v {
            self.write_vector(dst, lanes, lanes.0[0]);
        } else {
            self.write_scalar(dst, lanes.0[0], lanes.0[0]);
        }
    }

    /// RR with destination number 63: the ALU opcode is read as a jump opcode and nothing is written.
    fn destination_63(&mut self, op: u8, a: u32, b: u32) -> Flow {
        self.report(Hazard::Destination63, || {
            format!("operation {op} with destination 63 is taken as a jump")
        });
        let taken = |taken: bool, target: u32| {
            if taken { Flow::Jump(target) } else { Flow::Next }
        };
        match JbaOp::from_code(op) {
            Some(JbaOp::Jmp | JbaOp::Jmpsr | JbaOp::Jret | JbaOp::Jeret) => Flow::Jump(a),
            Some(JbaOp::Beqz) => taken(a == 0, self.pc.wrapping_add(b)),
            Some(JbaOp::Bnez) => taken(a != 0, self.pc.wrapping_add(b)),
            Some(JbaOp::Jsys) | None => Flow::Next,
        }
    }

    fn operate(&mut self, code: u8, dst: u8, dst_v: bool, a: Source, b: Source, long: bool) -> Flow {
        let Some(op) = AluOp::from_code(code) else {
            return self.undefined_operation(code, dst, dst_v);
        };
        let vector = a.is_vector() || b.is_vector();
        match alu::operation(op) {
            Operation::Unary(f) => {
                let lanes = per_lane(&a, &b, |a, _| f(a));
                self.write(dst, dst_v, &lanes);
            }
            Operation::Binary(f) => {
                let lanes = per_lane(&a, &b, f);
                self.write(dst, dst_v, &lanes);
            }
            Operation::FloatUnary(f) => {
                // `ftoi` has no 64-bit form of its own.
                let lanes = if long && op != AluOp::Ftoi {
                    self.long_form(code);
                    Lanes::default()
                } else {
                    per_lane(&a, &b, |a, _| f(a))
                };
                self.write_float(dst, dst_v, &lanes, vector);
            }
            Operation::FloatBinary(f) => {
                let lanes = if long {
                    self.long_form(code);
                    Lanes::default()
                } else {
                    per_lane(&a, &b, f)
                };
                self.write_float(dst, dst_v, &lanes, vector);
            }
            Operation::Compare(f) => {
                let result = if vector {
                    lane_bits(&a, &b, f)
                } else {
                    u32::from(f(a.lane(0), b.lane(0)))
                };
                self.write_set(code, dst, dst_v, result);
                if vector && !dst_v {
                    self.thread.watch.mark_upper_half(dst);
                }
            }
            Operation::FloatCompare(f) => {
                let result = if long {
                    self.long_form(code);
                    0
                } else if a.is_vector() {
                    lane_bits(&a, &b, f)
                } else if f(a.lane(0), b.lane(0)) {
                    0xffff
                } else {
                    0
                };
                let mut lanes = Lanes::default();
                lanes.0[0] = result;
                self.write(dst, dst_v, &lanes);
            }
            Operation::Shuffle => {
                let lanes = Lanes(std::array::from_fn(|k| a.lane(b.lane(k) as usize)));
                let above = (0..LANES).any(|k| b.lane(k) >= LANES as u32);
                self.lane_index(above);
                self.write(dst, dst_v, &lanes);
            }
            Operation::GetLane => {
                let index = b.lane(0);
                self.lane_index(index >= LANES as u32);
                self.write(dst, dst_v, &Lanes::splat(a.lane(index as usize)));
            }
            Operation::Mask => {
                let result = (0..LANES).fold(0, |set, k| set | (a.lane(k) & 1) << k);
                self.write_set(code, dst, dst_v, result);
            }
            Operation::NoUnit => self.thread.watch.stick(dst, dst_v),
            Operation::Hang => return Flow::Hang(HangReason::MissingUnit { op: code }),
        }
        Flow::Next
    }

    /// Writes a result of the float unit. A scalar one of an operation on vectors is missing if lane 0 is off.
    fn write_float(&mut self, dst: u8, dst_v: bool, lanes: &Lanes, vector: bool) {
        if !dst_v && vector && self.thread.mask & 1 == 0 {
            self.report(Hazard::StaleFloat, || {
                format!(
                    "{} gets an earlier result of the float unit: lane 0 is off",
                    scalar_name(dst)
                )
            });
            self.write_scalar(dst, 0, 0);
        } else {
            self.write(dst, dst_v, lanes);
        }
    }

    /// R opcodes without a name: 26 to 31 give 0, the others go to float units that were not built.
    fn undefined_operation(&mut self, code: u8, dst: u8, dst_v: bool) -> Flow {
        if code >= 32 {
            return Flow::Hang(HangReason::MissingUnit { op: code });
        }
        self.report(Hazard::UndefinedOperation, || {
            format!("operation {code} has no defined result")
        });
        self.write(dst, dst_v, &Lanes::default());
        Flow::Next
    }

    fn long_form(&mut self, code: u8) {
        self.report(Hazard::UndefinedOperation, || {
            format!("the 64-bit form of float operation {code} has no unit and no defined result")
        });
    }

    fn lane_index(&mut self, above: bool) {
        if above {
            self.report(Hazard::LaneIndex, || {
                "a lane index above 15 selects nothing defined".to_owned()
            });
        }
    }

    /// Writes the bit set of an integer compare or `crt_mask`: to a vector destination it is lane 0, and the other lanes get
    /// leftovers.
    fn write_set(&mut self, code: u8, dst: u8, dst_v: bool, result: u32) {
        let mut lanes = Lanes::default();
        lanes.0[0] = result;
        if dst_v {
            self.report(Hazard::UndefinedOperation, || {
                format!("lanes 1 to 15 of v{dst} get leftovers: operation {code} has a scalar result")
            });
        }
        self.write(dst, dst_v, &lanes);
    }

    fn move_immediate(&mut self, op: u8, dst: u8, dst_v: bool, imm: u32) {
        let (bus, written) = match MviOp::from_code(op) {
            Some(MviOp::Movei) => (imm, u32::MAX),
            Some(MviOp::Moveil) => (imm, 0x0000_ffff),
            Some(MviOp::Moveih) => (imm << 16, 0xffff_0000),
            None => return,
        };
        if dst_v {
            let old = *self.thread.v(dst);
            let lanes = Lanes(old.0.map(|x| (x & !written) | (bus & written)));
            self.write_vector(dst, &lanes, bus);
        } else {
            let old = self.thread.s(dst);
            if dst == RM && bus as u16 == 0 && written == 0xffff_0000 {
                let completes = |word| matches!(npu_mc::split(word), RawInst::Mvi { op, dst, .. } if op == MviOp::Moveil as u8 && dst == RM);
                if !completes(self.memory.read_u32(self.pc.wrapping_add(4) & !3)) {
                    self.report(Hazard::HalfMask, || {
                        "the lane mask becomes 0; `movei rm` or a `moveil rm` directly after sets it".to_owned()
                    });
                }
            }
            self.write_scalar(dst, (old & !written) | (bus & written), bus);
        }
    }

    /// `N` bytes of main memory as the core sees it, at a multiple of `N`; the low bits of the address are dropped.
    fn read<const N: usize>(&mut self, address: u32) -> Result<[u8; N], MemoryFull> {
        match &mut self.caches {
            None => Ok(self.memory.load(address)),
            Some((caches, core)) => caches.load(*core, &self.shared.mode, self.memory, address),
        }
    }

    /// Stores to main memory; the bytes do not leave the line they start in.
    fn write_bytes(&mut self, address: u32, bytes: &[u8]) -> Result<(), MemoryFull> {
        match &mut self.caches {
            None => self.memory.write(address, bytes),
            Some((caches, core)) => caches.store(*core, &self.shared.mode, self.memory, address, bytes),
        }
    }

    fn access(&mut self, address: u32, size: u32, vector: bool, store: bool, space: Space) {
        self.effect.access = Some(Access {
            address,
            size,
            vector,
            store,
            space,
        });
    }

    /// The end of an access: a misaligned one has been performed, and traps.
    fn finish(&mut self, misaligned: bool, reason: TrapReason) -> Flow {
        if !misaligned {
            return Flow::Next;
        }
        self.thread.trap = reason;
        let next = npu_mc::split(self.memory.read_u32(self.pc.wrapping_add(4)));
        let cannot_slip = match next {
            RawInst::Undefined => true,
            RawInst::Mem { shared, .. } => !shared,
            RawInst::Rr { .. }
            | RawInst::Ri { .. }
            | RawInst::Mvi { .. }
            | RawInst::Ctr { .. }
            | RawInst::Jba { .. }
            | RawInst::Jra { .. } => false,
        };
        if !cannot_slip {
            self.report(Hazard::ImpreciseTrap, || {
                "misaligned access: the instruction after it may or may not execute before the trap".to_owned()
            });
        }
        Flow::Trap
    }

    /// A load from main memory.
    fn load(&mut self, kind: MemOp, load: Load, reg: u8, address: u32) -> Flow {
        let vector = matches!(load, Load::Vector(_));
        self.access(address, access_size(kind), vector, false, Space::Main);
        let misaligned = !address.is_multiple_of(alignment(kind));
        match load {
            Load::Vector(extension) => {
                // Every lane takes the low bytes of its own word of the line: the packed forms have a stride of 4.
                let line: [u8; LINE as usize] = match self.read(address) {
                    Ok(line) => line,
                    Err(full) => return Flow::MemoryFull(full),
                };
                let lanes = Lanes(std::array::from_fn(|k| {
                    extension.apply(word_of(&line[4 * k..4 * k + 4]))
                }));
                self.write_vector(reg, &lanes, lanes.0[0]);
            }
            Load::Scalar(_) | Load::Gather => {
                let word = match self.read(address) {
                    Ok(bytes) => u32::from_le_bytes(bytes),
                    Err(full) => return Flow::MemoryFull(full),
                };
                let value = match load {
                    Load::Scalar(extension) => scalar_of(kind, extension, word, address),
                    Load::Vector(_) | Load::Gather => 0,
                };
                self.write_scalar(reg, value, value);
            }
        }
        self.finish(misaligned, TrapReason::MemoryMisaligned)
    }

    /// A store to main memory. The lane mask plays no part.
    fn store(&mut self, kind: MemOp, store: Store, reg: u8, address: u32) -> Flow {
        if is_double(kind) {
            return Flow::Next;
        }
        let size = access_size(kind);
        let misaligned = !address.is_multiple_of(alignment(kind));
        let mut bytes = [0; LINE as usize];
        let length = match store {
            Store::Vector => {
                let lanes = self.thread.v(reg);
                let size = size as usize;
                for (place, value) in bytes.chunks_exact_mut(size).zip(lanes.0) {
                    place.copy_from_slice(&value.to_le_bytes()[..size]);
                }
                size * LANES
            }
            Store::Scalar | Store::Splat => {
                bytes[..4].copy_from_slice(&self.scalar(reg).to_le_bytes());
                size as usize
            }
        };
        self.access(address, size, store == Store::Vector, true, Space::Main);
        let written = if misaligned {
            // The byte at address p takes byte p mod length of the register; nothing is written past the end of the line.
            let start = address as usize % length;
            bytes[..length].rotate_left(start);
            length.min((LINE - address % LINE) as usize)
        } else {
            length
        };
        if let Some(address) = self.memory.protected(address, written) {
            return Flow::ReadOnly(address);
        }
        if let Err(full) = self.write_bytes(address, &bytes[..written]) {
            return Flow::MemoryFull(full);
        }
        self.finish(misaligned, TrapReason::MemoryMisaligned)
    }

    /// A number that is not an operation: a load gives 0, and never arrives from the scratchpad.
    fn undefined_access(&mut self, op: u8, reg: u8, shared: bool) -> Flow {
        self.report(Hazard::UndefinedOperation, || {
            format!("memory operation {op} does not exist")
        });
        match (is_store(op), shared) {
            (true, _) => {}
            (false, true) => self.thread.watch.stick(reg, false),
            (false, false) => self.write_scalar(reg, 0, 0),
        }
        Flow::Next
    }

    /// The I/O space: `store32` writes, every other opcode reads, byte stores included.
    fn io(&mut self, op: u8, kind: Option<MemOp>, reg: u8, address: u32) -> Flow {
        if self.shared.io_blocked {
            return Flow::Hang(HangReason::BlockedIo);
        }
        let size = kind.map_or(LANE_SIZE, access_size);
        let misaligned = kind.is_some_and(|kind| !address.is_multiple_of(alignment(kind)));
        self.access(address, size, is_vector_access(op), is_store(op), Space::Io);
        if kind == Some(MemOp::Store32) {
            let value = self.scalar(reg);
            self.shared.io_blocked = !self.console.write(address, value);
        } else {
            let word = self.console.read(address);
            match kind.map(|kind| (kind, moves(kind))) {
                Some((_, Move::Load(Load::Vector(extension)))) => {
                    let mut lanes = Lanes::default();
                    lanes.0[0] = extension.apply(word);
                    self.write_vector(reg, &lanes, lanes.0[0]);
                }
                Some((kind, Move::Load(Load::Scalar(extension)))) => {
                    let value = scalar_of(kind, extension, word, address);
                    self.write_scalar(reg, value, value);
                }
                Some((_, Move::Load(Load::Gather))) => self.write_scalar(reg, 0, 0),
                Some((_, Move::Store(Store::Scalar | Store::Vector | Store::Splat))) => {}
                None if is_store(op) => {}
                None => self.write_scalar(reg, 0, 0),
            }
        }
        self.finish(misaligned, TrapReason::MemoryMisaligned)
    }

    /// What loads and stores of the scratchpad have in common: the access is noted, with whether it is misaligned, unless it never
    /// completes.
    fn scratchpad_access(
        &mut self,
        kind: MemOp,
        address: u32,
        vector: bool,
        store: bool,
        checked: bool,
    ) -> Option<bool> {
        if checked && is_double(kind) {
            self.report(Hazard::UndefinedOperation, || {
                format!("memory operation {} is undefined in the scratchpad", kind as u8)
            });
        }
        if vector && self.thread.mask == 0 {
            self.report(Hazard::EmptyMask, || {
                "a scratchpad vector access with an empty mask never completes".to_owned()
            });
            return None;
        }
        let size = access_size(kind).min(LANE_SIZE);
        self.access(address, size, vector, store, Space::Scratchpad);
        Some(checked && !is_double(kind) && !address.is_multiple_of(size))
    }

    /// Scratchpad loads: lane *i* of a vector is at the address plus 4 *i*.
    fn scratchpad_load(&mut self, kind: MemOp, load: Load, reg: u8, address: u32) -> Flow {
        let vector = matches!(load, Load::Vector(_));
        let Some(misaligned) = self.scratchpad_access(kind, address, vector, false, load != Load::Gather) else {
            self.thread.watch.stick(reg, true);
            return Flow::Next;
        };
        match load {
            Load::Gather => self.write_scalar(reg, 0, 0),
            Load::Vector(extension) => {
                let lanes = Lanes(std::array::from_fn(|k| {
                    let at = address.wrapping_add(4 * k as u32);
                    self.scratchpad_read(kind, extension, at, misaligned)
                }));
                self.write_vector(reg, &lanes, lanes.0[0]);
            }
            Load::Scalar(extension) => {
                let value = self.scratchpad_read(kind, extension, address, misaligned);
                self.write_scalar(reg, value, value);
            }
        }
        self.finish(misaligned, TrapReason::ScratchpadMisaligned)
    }

    /// Scratchpad stores: lane *i* of a vector goes to the address plus 4 *i*, and the mask counts.
    fn scratchpad_store(&mut self, kind: MemOp, store: Store, reg: u8, address: u32) -> Flow {
        let vector = store == Store::Vector;
        let Some(misaligned) = self.scratchpad_access(kind, address, vector, true, true) else {
            self.thread.watch.stick_store();
            return Flow::Next;
        };
        // A misaligned access moves the whole word that contains the address.
        let unit = if misaligned { LANE_SIZE } else { access_size(kind) };
        let mask = self.thread.mask;
        match store {
            _ if is_double(kind) => {}
            Store::Splat => {
                let value = self.scalar(reg);
                for lane in 0..LANES as u32 {
                    self.scratchpad_write(address.wrapping_add(4 * lane), unit, value);
                }
            }
            Store::Vector => {
                let lanes = *self.thread.v(reg);
                for (lane, value) in (0..).zip(lanes.0) {
                    if mask >> lane & 1 != 0 {
                        self.scratchpad_write(address.wrapping_add(4 * lane), unit, value);
                    }
                }
            }
            Store::Scalar => {
                let value = self.scalar(reg);
                self.scratchpad_write(address, unit, value);
            }
        }
        self.finish(misaligned, TrapReason::ScratchpadMisaligned)
    }

    fn scratchpad_read(&self, kind: MemOp, extension: Extension, address: u32, misaligned: bool) -> u32 {
        let word = u32::from_le_bytes(self.shared.scratchpad_load(address));
        if misaligned {
            extension.apply(word)
        } else {
            scalar_of(kind, extension, word, address)
        }
    }

    fn scratchpad_write(&mut self, address: u32, size: u32, value: u32) {
        match size {
            1 => self.shared.scratchpad_store(address, [value as u8]),
            2 => self.shared.scratchpad_store(address, (value as u16).to_le_bytes()),
            _ => self.shared.scratchpad_store(address, value.to_le_bytes()),
        }
    }

    fn control(&mut self, op: u8, reg0: u8, reg1: u8) -> Flow {
        match CtrOp::from_code(op) {
            Some(CtrOp::Barrier) => {
                let id = self.scalar(reg0) & ID_MASK;
                let others = self.scalar(reg1) & COUNT_MASK;
                if self.thread.watch.anything_stuck() {
                    return Flow::Hang(HangReason::PendingAtBarrier);
                }
                let participants = others + 1;
                self.effect.control = Some(Control::Barrier { id, participants });
                Flow::Arrive { id, others }
            }
            Some(CtrOp::ReadCr) => {
                let register = self.scalar(reg1);
                self.thread.pc = self.pc;
                let value = self.shared.read_control(register, self.id, self.thread);
                if value.is_none() {
                    self.report(Hazard::ControlRegister, || {
                        format!("control register {} does not exist", register & 63)
                    });
                }
                let value = value.unwrap_or(0);
                let register = control_id(register);
                self.effect.control = Some(Control::Read { register });
                self.write_scalar(reg0, value, value);
                Flow::Next
            }
            Some(CtrOp::WriteCr) => {
                let (register, value) = (self.scalar(reg1), self.scalar(reg0));
                self.shared.write_control(register, value, self.thread);
                let register = control_id(register);
                self.effect.control = Some(Control::Write { register, value });
                Flow::Next
            }
            // The opcodes alias those of load32 and load_u16, and so do the alignment checks.
            Some(CtrOp::Flush) => {
                let address = self.scalar(reg0);
                self.effect.control = Some(Control::Flush { address });
                if let Err(full) = self.flush(address) {
                    return Flow::MemoryFull(full);
                }
                self.finish(!address.is_multiple_of(4), TrapReason::MemoryMisaligned)
            }
            Some(CtrOp::DcacheInv) => {
                let address = self.scalar(reg0);
                self.effect.control = Some(Control::Invalidate { address });
                if let Err(full) = self.invalidate(address) {
                    return Flow::MemoryFull(full);
                }
                self.finish(!address.is_multiple_of(2), TrapReason::MemoryMisaligned)
            }
            Some(CtrOp::BarrierThread) | None => Flow::Next,
        }
    }

    fn flush(&mut self, address: u32) -> Result<(), MemoryFull> {
        match &mut self.caches {
            None => Ok(()),
            Some((caches, core)) => caches.flush(*core, &self.shared.mode, self.memory, address),
        }
    }

    fn invalidate(&mut self, address: u32) -> Result<(), MemoryFull> {
        let Some((caches, core)) = &mut self.caches else {
            return Ok(());
        };
        if let Some(lost) = caches.invalidate(*core, self.memory, address)? {
            self.report(Hazard::InvalidateWay0, || {
                format!("what the line at {lost:#010x} has that memory has not is lost when the line is evicted")
            });
        }
        Ok(())
    }

    fn jump_register(&mut self, op: u8, reg: u8, offset: i32) -> Flow {
        let value = self.scalar(reg);
        let target = self.pc.wrapping_add(offset as u32);
        match JbaOp::from_code(op) {
            Some(JbaOp::Jmp | JbaOp::Jeret) => Flow::Jump(value),
            Some(JbaOp::Jmpsr) => {
                // The adder takes operand 0, which is the target here.
                let link = value.wrapping_add(4);
                self.report(Hazard::IndirectCall, || {
                    format!("the return address becomes {link:#010x}, the target plus 4; `addi ra, pc, 8` and `jmp` make a call")
                });
                self.write_scalar(RA, link, link);
                Flow::Jump(value)
            }
            Some(JbaOp::Jret) => Flow::Jump(self.scalar(RA)),
            Some(JbaOp::Beqz) if value == 0 => Flow::Jump(target),
            Some(JbaOp::Bnez) if value != 0 => Flow::Jump(target),
            Some(JbaOp::Beqz | JbaOp::Bnez | JbaOp::Jsys) | None => Flow::Next,
        }
    }

    fn jump_relative(&mut self, op: u8, offset: i32) -> Flow {
        let target = self.pc.wrapping_add(offset as u32);
        match JraOp::from_code(op) {
            Some(JraOp::Jmp | JraOp::Jret | JraOp::Jeret) => Flow::Jump(target),
            Some(JraOp::Jmpsr) => {
                let link = self.pc.wrapping_add(4);
                self.write_scalar(RA, link, link);
                Flow::Jump(target)
            }
            Some(JraOp::Beqz | JraOp::Bnez) => {
                self.report(Hazard::UndefinedOperation, || {
                    "a conditional branch in the unconditional format tests nothing defined".to_owned()
                });
                Flow::Next
            }
            Some(JraOp::Jsys) | None => Flow::Next,
        }
    }
}

fn per_lane(a: &Source, b: &Source, f: impl Fn(u32, u32) -> u32) -> Lanes {
    if let (Source::Scalar(a), Source::Scalar(b)) = (a, b) {
        return Lanes::splat(f(*a, *b));
    }
    Lanes(std::array::from_fn(|k| f(a.lane(k), b.lane(k))))
}

/// Compares all lanes, whatever the mask.
fn lane_bits(a: &Source, b: &Source, holds: fn(u32, u32) -> bool) -> u32 {
    (0..LANES).fold(0, |set, k| set | u32::from(holds(a.lane(k), b.lane(k))) << k)
}

fn word_of(bytes: &[u8]) -> u32 {
    bytes.iter().rev().fold(0, |word, &byte| word << 8 | u32::from(byte))
}

/// The part of the aligned word at `address` that a scalar load wants; address bits below the size are ignored.
fn scalar_of(kind: MemOp, extension: Extension, word: u32, address: u32) -> u32 {
    let size = access_size(kind).min(LANE_SIZE);
    let shift = 8 * (address & 3 & !(size - 1));
    extension.apply(word >> shift)
}
