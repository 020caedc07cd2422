//! One instruction, as `docs/machine/` describes it.
//!
//! This is the definition of the machine: it executes every word correctly, whatever its value. The
//! fast interpreter ([`crate::fast`]) repeats the common cases and must agree with it.
//!
//! Where the hardware leaves a result undefined, the model reports a [`Hazard`]. It takes the value
//! that a two-state simulation of the hardware produces if that value is known, else 0.

use crate::alu::{self, Operation};
use crate::barrier::{COUNT_MASK, ID_MASK};
use crate::cache::Caches;
use crate::coherence::ports::Ports;
use crate::findings::{Findings, Hazard};
use crate::mem_op::{
    Extension, Load, Move, Store, access_size, alignment, is_double, is_store, is_vector_access, moves,
};
use crate::memory::{Memory, MemoryFull};
use crate::registers::{LANES, Lanes, PC, RM};
use crate::rest::HangReason;
use crate::shared::{Console, Shared, control_id, is_io};
use crate::sharing::{Sharing, Touch, Use};
use crate::thread::Thread;
use npu_mc::machine::{self, THREADS_PER_CORE, TrapReason};
use npu_mc::raw::{AluOp, CtrOp, JbaOp, JraOp, Mem, MemOp, MviOp, RawInst};
use npu_mc::{Reg, SReg, VReg};

/// Bytes of a cache line; no access crosses the end of the line in which it starts.
const LINE: u32 = machine::CACHE_LINE;

/// Bytes of a scalar register or a lane.
const LANE_SIZE: u32 = size_of::<u32>() as u32;

/// The destination of a memory access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Space {
    /// Main memory.
    Main,
    /// The scratchpad of the core.
    Scratchpad,
    /// Console and other I/O.
    Io,
}

/// A memory access by an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// The computed address, before the hardware drops low bits.
    pub address: u32,
    /// Bytes of the scalar or of one lane.
    pub size: u32,
    /// Whether the access moves all lanes of a vector.
    pub vector: bool,
    /// Whether the access is a store.
    pub store: bool,
    /// The accessed space.
    pub space: Space,
}

/// The effects of an instruction, except on the PC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Effect {
    /// The written scalar register.
    pub scalar: Option<SReg>,
    /// The written vector register; lanes that are off in the lane mask keep their values.
    pub vector: Option<VReg>,
    /// The memory access.
    pub access: Option<Access>,
    /// The effect of an instruction of the C format, except on registers.
    pub control: Option<Control>,
}

/// The effect of an instruction of the C format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// The instruction read a control register.
    Read {
        /// The low 6 bits of the id; the hardware ignores the others.
        register: u8,
    },
    /// The instruction wrote a control register, read-only ones included.
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
        /// The number of participants that this thread requests, itself included. The hardware uses
        /// the number of the first arrival.
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

/// How the thread continues.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Flow {
    Next,
    /// A taken branch.
    Jump(u32),
    /// Arrival at a barrier.
    Arrive {
        id: u32,
        others: u32,
    },
    /// A jump to the trap vector.
    Trap,
    Hang(HangReason),
    MemoryFull(MemoryFull),
    /// A store to this address would write to protected memory.
    ReadOnly(u32),
}

/// The state that an instruction can access.
pub(crate) struct Env<'a> {
    pub thread: &'a mut Thread,
    /// Number of the thread in its core.
    pub id: u32,
    /// Number of the thread, counted over all cores.
    pub number: u32,
    pub shared: &'a mut Shared,
    pub console: &'a mut Console,
    pub memory: &'a mut Memory,
    /// The data caches and the index of the core's own cache; `None` if accesses go directly to
    /// memory.
    pub caches: Option<(&'a mut Caches, usize)>,
    /// Caches with the hardware's protocol, which have the line of each access, and the core.
    pub ports: Option<(&'a mut Ports, u8)>,
    pub findings: &'a mut Findings,
    /// Detects faults of several cores, in a strict machine.
    pub sharing: Option<&'a mut Sharing>,
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
    /// Executes `inst`, the instruction at `self.pc`. The caller updates the PC of the thread.
    pub fn execute(&mut self, inst: &RawInst) -> Flow {
        match *inst {
            RawInst::Rr(i) if i.dst.number() == PC => self.destination_63(i.op.code(), i.src0, i.src1),
            RawInst::RrUnassigned(i) if i.dst.number() == PC => self.destination_63(i.op, i.src0, i.src1),
            RawInst::Rr(i) => self.operate(i.op, i.dst, self.source(i.src0), self.source(i.src1), i.long),
            RawInst::Ri(i) => self.operate(i.op, i.dst, self.source(i.src0), Source::Scalar(i.imm as u32), false),
            RawInst::RrUnassigned(i) => self.undefined_operation(i.op, i.dst),
            RawInst::RiUnassigned(i) => self.undefined_operation(i.op, i.dst),
            RawInst::Mvi(i) => self.move_immediate(i.op, i.dst, i.imm),
            RawInst::Mem(i) => {
                let address = self.scalar(i.base).wrapping_add(i.offset as u32);
                match (moves(i.op), i.shared) {
                    (_, false) if is_io(address) => self.io(i.op, i.reg, address),
                    (Move::Load(load), false) => self.load(i.op, load, i.reg, address),
                    (Move::Store(store), false) => self.store(i.op, store, i.reg, address),
                    (Move::Load(load), true) => self.scratchpad_load(i.op, load, i.reg, address),
                    (Move::Store(store), true) => self.scratchpad_store(i.op, store, i.reg, address),
                }
            }
            RawInst::MemUnassigned(i) => self.undefined_access(i),
            RawInst::Ctr(i) => self.control(i.op, i.reg0, i.reg1),
            RawInst::Jba(i) => self.jump_register(i.op, i.reg, i.offset),
            RawInst::Jra(i) => self.jump_relative(i.op, i.offset),
            RawInst::MviUnassigned(_)
            | RawInst::CtrUnassigned(_)
            | RawInst::JbaUnassigned(_)
            | RawInst::JraUnassigned(_)
            | RawInst::Undefined => Flow::Next,
        }
    }

    pub(crate) fn report(&mut self, hazard: Hazard, detail: impl FnOnce() -> String) {
        self.findings.report(self.number, self.pc, hazard, detail);
    }

    fn scalar(&self, register: SReg) -> u32 {
        if register == SReg::PC {
            self.pc
        } else {
            self.thread.scalar(register)
        }
    }

    fn source(&self, register: Reg) -> Source {
        match register {
            Reg::S(register) => Source::Scalar(self.scalar(register)),
            Reg::V(register) => Source::Vector(*self.thread.vector(register)),
        }
    }

    /// Writes a scalar result. `bus` is the value on the result bus; its low half becomes the lane
    /// mask if the destination is `rm`.
    fn write_scalar(&mut self, dst: SReg, value: u32, bus: u32) {
        self.thread.scalars[usize::from(dst.number())] = value;
        if dst == SReg::RM {
            self.thread.mask = bus as u16;
        }
        self.effect.scalar = (dst != SReg::PC).then_some(dst);
    }

    /// Writes the lanes that are on in the lane mask. `bus` is lane 0 of the result bus; a write to
    /// `v59` replaces the lane mask by its low half.
    fn write_vector(&mut self, dst: VReg, lanes: &Lanes, bus: u32) {
        let mask = self.thread.mask;
        let old = &mut self.thread.vectors[usize::from(dst.number() & 63)];
        for (lane, value) in lanes.0.iter().enumerate() {
            if mask >> lane & 1 != 0 {
                old.0[lane] = *value;
            }
        }
        if dst.number() == RM {
            self.thread.mask = bus as u16;
            self.report(Hazard::MaskByV59, || {
                format!("the write to v59 sets the lane mask to {:#06x}", bus as u16)
            });
        }
        self.effect.vector = Some(dst);
    }

    fn write(&mut self, dst: Reg, lanes: &Lanes) {
        match dst {
            Reg::S(dst) => self.write_scalar(dst, lanes.0[0], lanes.0[0]),
            Reg::V(dst) => self.write_vector(dst, lanes, lanes.0[0]),
        }
    }

    /// Executes an R instruction with destination number 63: the hardware takes the ALU opcode as a
    /// jump opcode and writes no register.
    fn destination_63(&mut self, code: u8, src0: Reg, src1: Reg) -> Flow {
        let (a, b) = (self.source(src0).lane(0), self.source(src1).lane(0));
        self.report(Hazard::Destination63, || {
            format!("operation {code} with destination 63 is taken as a jump")
        });
        let taken = |taken: bool, target: u32| {
            if taken { Flow::Jump(target) } else { Flow::Next }
        };
        match JbaOp::from_code(code) {
            Some(JbaOp::Jmp | JbaOp::Jmpsr | JbaOp::Jret | JbaOp::Jeret) => Flow::Jump(a),
            Some(JbaOp::Beqz) => taken(a == 0, self.pc.wrapping_add(b)),
            Some(JbaOp::Bnez) => taken(a != 0, self.pc.wrapping_add(b)),
            Some(JbaOp::Jsys) | None => Flow::Next,
        }
    }

    fn operate(&mut self, op: AluOp, dst: Reg, a: Source, b: Source, long: bool) -> Flow {
        let vector = a.is_vector() || b.is_vector();
        match alu::operation(op) {
            Operation::Unary(f) => {
                let lanes = per_lane(&a, &b, |a, _| f(a));
                self.write(dst, &lanes);
            }
            Operation::Binary(f) => {
                let lanes = per_lane(&a, &b, f);
                self.write(dst, &lanes);
            }
            Operation::FloatUnary(f) => {
                // `ftoi` has no separate 64-bit form.
                let lanes = if long && op != AluOp::Ftoi {
                    self.long_form(op);
                    Lanes::default()
                } else {
                    per_lane(&a, &b, |a, _| f(a))
                };
                self.write_float(dst, &lanes, vector);
            }
            Operation::FloatBinary(f) => {
                let lanes = if long {
                    self.long_form(op);
                    Lanes::default()
                } else {
                    per_lane(&a, &b, f)
                };
                self.write_float(dst, &lanes, vector);
            }
            Operation::Compare(f) => {
                let result = if vector {
                    lane_bits(&a, &b, f)
                } else {
                    u32::from(f(a.lane(0), b.lane(0)))
                };
                self.write_set(op, dst, result);
                if let Reg::S(dst) = dst
                    && vector
                {
                    self.thread.watch.mark_upper_half(dst.number());
                }
            }
            Operation::FloatCompare(f) => {
                let result = if long {
                    self.long_form(op);
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
                self.write(dst, &lanes);
            }
            Operation::Shuffle => {
                let lanes = Lanes(std::array::from_fn(|k| a.lane(b.lane(k) as usize)));
                let above = (0..LANES).any(|k| b.lane(k) >= LANES as u32);
                self.lane_index(above);
                self.write(dst, &lanes);
            }
            Operation::GetLane => {
                let index = b.lane(0);
                self.lane_index(index >= LANES as u32);
                self.write(dst, &Lanes::splat(a.lane(index as usize)));
            }
            Operation::Mask => {
                let result = (0..LANES).fold(0, |set, k| set | (a.lane(k) & 1) << k);
                self.write_set(op, dst, result);
            }
            Operation::NoUnit => self.thread.watch.stick(dst),
            Operation::Hang => return Flow::Hang(HangReason::MissingUnit { op: op.code() }),
        }
        Flow::Next
    }

    /// Writes a result of the float unit. A scalar result of an operation on vectors does not exist
    /// if lane 0 is off.
    fn write_float(&mut self, dst: Reg, lanes: &Lanes, vector: bool) {
        match dst {
            Reg::S(dst) if vector && self.thread.mask & 1 == 0 => {
                self.report(Hazard::StaleFloat, || {
                    format!("{dst} gets an earlier result of the float unit: lane 0 is off")
                });
                self.write_scalar(dst, 0, 0);
            }
            Reg::S(_) | Reg::V(_) => self.write(dst, lanes),
        }
    }

    /// Executes an R opcode without a name: 26 to 31 produce 0, the others need float units that
    /// the hardware lacks.
    fn undefined_operation(&mut self, code: u8, dst: Reg) -> Flow {
        if code >= 32 {
            return Flow::Hang(HangReason::MissingUnit { op: code });
        }
        self.report(Hazard::UndefinedOperation, || {
            format!("operation {code} has no defined result")
        });
        self.write(dst, &Lanes::default());
        Flow::Next
    }

    fn long_form(&mut self, op: AluOp) {
        self.report(Hazard::UndefinedOperation, || {
            let code = op.code();
            format!("the 64-bit form of float operation {code} has no unit and no defined result")
        });
    }

    fn lane_index(&mut self, above: bool) {
        if above {
            self.report(Hazard::LaneIndex, || {
                "a lane index above 15 has no defined result".to_owned()
            });
        }
    }

    /// Writes the bit set of an integer compare or `crt_mask`. In a vector destination the set goes
    /// to lane 0, and the other lanes get leftovers of earlier results.
    fn write_set(&mut self, op: AluOp, dst: Reg, result: u32) {
        let mut lanes = Lanes::default();
        lanes.0[0] = result;
        if let Reg::V(dst) = dst {
            self.report(Hazard::UndefinedOperation, || {
                let code = op.code();
                format!("lanes 1 to 15 of {dst} get leftovers: operation {code} has a scalar result")
            });
        }
        self.write(dst, &lanes);
    }

    fn move_immediate(&mut self, op: MviOp, dst: Reg, imm: u32) -> Flow {
        let (bus, written) = match op {
            MviOp::Movei => (imm, u32::MAX),
            MviOp::Moveil => (imm, 0x0000_ffff),
            MviOp::Moveih => (imm << 16, 0xffff_0000),
        };
        match dst {
            Reg::V(dst) => {
                let lanes = self.thread.vector(dst).map(|x| (x & !written) | (bus & written));
                self.write_vector(dst, &lanes, bus);
            }
            Reg::S(dst) => {
                let old = self.thread.scalar(dst);
                if op == MviOp::Moveih && dst == SReg::RM {
                    self.check_half_mask();
                }
                self.write_scalar(dst, (old & !written) | (bus & written), bus);
            }
        }
        Flow::Next
    }

    /// Reports a `moveih rm` without a `moveil rm` directly after it.
    fn check_half_mask(&mut self) {
        let next = npu_mc::split(self.memory.read_u32(self.pc.wrapping_add(4) & !3));
        let completes = matches!(next, RawInst::Mvi(i) if i.op == MviOp::Moveil && i.dst.number() == RM);
        if !completes {
            self.report(Hazard::HalfMask, || {
                "the lane mask becomes 0; `movei rm` or a `moveil rm` directly after sets it".to_owned()
            });
        }
    }

    /// Reads `N` bytes of main memory as the core sees it; the low bits of the address are dropped.
    fn read<const N: usize>(&mut self, address: u32) -> Result<[u8; N], MemoryFull> {
        if let Some((ports, core)) = &self.ports
            && let Some(bytes) = ports.load(*core, address)
        {
            return Ok(bytes);
        }
        match &mut self.caches {
            None => Ok(self.memory.load(address)),
            Some((caches, core)) => caches.load(*core, &self.shared.mode, self.memory, address),
        }
    }

    /// Stores to main memory; the bytes do not cross the end of the line in which they start.
    fn write_bytes(&mut self, address: u32, bytes: &[u8]) -> Result<(), MemoryFull> {
        if let Some((ports, core)) = &mut self.ports {
            ports.store(*core, address, bytes);
            return Ok(());
        }
        match &mut self.caches {
            None => self.memory.write(address, bytes),
            Some((caches, core)) => caches.store(*core, &self.shared.mode, self.memory, address, bytes),
        }
    }

    /// Reports a fault of several cores that an access to main memory can meet.
    fn share(&mut self, kind: Use, address: u32) {
        let Some(sharing) = self.sharing.as_deref_mut() else {
            return;
        };
        let touch = Touch {
            thread: self.number as usize,
            address,
            kind,
            coherent: self.shared.mode.coherent(address),
        };
        if let Some(fault) = sharing.touch(touch) {
            let (core, thread) = (self.number / THREADS_PER_CORE, self.id);
            self.report(fault.hazard, || {
                format!("core {core}, thread {thread}: {}", fault.detail)
            });
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

    /// Ends an access: a misaligned access was performed, and now traps.
    fn finish(&mut self, misaligned: bool, reason: TrapReason) -> Flow {
        if !misaligned {
            return Flow::Next;
        }
        self.thread.trap = reason;
        let next = npu_mc::split(self.memory.read_u32(self.pc.wrapping_add(4)));
        let cannot_slip = match next {
            RawInst::Undefined => true,
            RawInst::Mem(i) => !i.shared,
            RawInst::MemUnassigned(i) => !i.shared,
            RawInst::Rr(_)
            | RawInst::RrUnassigned(_)
            | RawInst::Ri(_)
            | RawInst::RiUnassigned(_)
            | RawInst::Mvi(_)
            | RawInst::MviUnassigned(_)
            | RawInst::Ctr(_)
            | RawInst::CtrUnassigned(_)
            | RawInst::Jba(_)
            | RawInst::JbaUnassigned(_)
            | RawInst::Jra(_)
            | RawInst::JraUnassigned(_) => false,
        };
        if !cannot_slip {
            self.report(Hazard::ImpreciseTrap, || {
                "misaligned access: the instruction after it may or may not execute before the trap".to_owned()
            });
        }
        Flow::Trap
    }

    /// Executes a load from main memory.
    fn load(&mut self, kind: MemOp, load: Load, reg: u8, address: u32) -> Flow {
        let vector = matches!(load, Load::Vector(_));
        self.access(address, access_size(kind), vector, false, Space::Main);
        self.share(Use::Load, address);
        let misaligned = !address.is_multiple_of(alignment(kind));
        match load {
            Load::Vector(extension) => {
                // Each lane takes the low bytes of its own word of the line: the packed forms have
                // a stride of 4 bytes.
                let line: [u8; LINE as usize] = match self.read(address) {
                    Ok(line) => line,
                    Err(full) => return Flow::MemoryFull(full),
                };
                let lanes = Lanes(std::array::from_fn(|k| {
                    extension.apply(word_of(&line[4 * k..4 * k + 4]))
                }));
                self.write_vector(VReg::of_field(reg), &lanes, lanes.0[0]);
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
                self.write_scalar(SReg::of_field(reg), value, value);
            }
        }
        self.finish(misaligned, TrapReason::MemoryMisaligned)
    }

    /// Executes a store to main memory. The lane mask has no effect.
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
                bytes[..4].copy_from_slice(&self.scalar(SReg::of_field(reg)).to_le_bytes());
                size as usize
            }
        };
        self.access(address, size, store == Store::Vector, true, Space::Main);
        let written = if misaligned {
            // The byte at address p takes byte p mod `length` of the register; the store writes
            // nothing past the end of the line.
            let start = address as usize % length;
            bytes[..length].rotate_left(start);
            length.min((LINE - address % LINE) as usize)
        } else {
            length
        };
        if let Some(address) = self.memory.protected(address, written) {
            return Flow::ReadOnly(address);
        }
        self.share(Use::Store, address);
        if let Err(full) = self.write_bytes(address, &bytes[..written]) {
            return Flow::MemoryFull(full);
        }
        self.finish(misaligned, TrapReason::MemoryMisaligned)
    }

    /// Executes an unassigned memory opcode: a load from main memory returns 0, a load from the
    /// scratchpad never completes.
    fn undefined_access(&mut self, inst: Mem<u8>) -> Flow {
        let address = self.scalar(inst.base).wrapping_add(inst.offset as u32);
        let register = SReg::of_field(inst.reg);
        let store = is_store(inst.op);
        if inst.shared || !is_io(address) {
            self.report(Hazard::UndefinedOperation, || {
                format!("memory operation {} does not exist", inst.op)
            });
        } else if self.shared.io_blocked {
            return Flow::Hang(HangReason::BlockedIo);
        } else {
            self.access(address, LANE_SIZE, false, store, Space::Io);
            self.console.read(address);
        }
        match (store, inst.shared) {
            (true, _) => {}
            (false, true) => self.thread.watch.stick(Reg::S(register)),
            (false, false) => self.write_scalar(register, 0, 0),
        }
        Flow::Next
    }

    /// Accesses the I/O space: `store32` writes, every other opcode reads, byte stores included.
    fn io(&mut self, op: MemOp, reg: u8, address: u32) -> Flow {
        if self.shared.io_blocked {
            return Flow::Hang(HangReason::BlockedIo);
        }
        let misaligned = !address.is_multiple_of(alignment(op));
        let store = matches!(moves(op), Move::Store(_));
        self.access(address, access_size(op), is_vector_access(op), store, Space::Io);
        if op == MemOp::Store32 {
            let value = self.scalar(SReg::of_field(reg));
            self.shared.io_blocked = !self.console.write(address, value);
        } else {
            let word = self.console.read(address);
            match moves(op) {
                Move::Load(Load::Vector(extension)) => {
                    let mut lanes = Lanes::default();
                    lanes.0[0] = extension.apply(word);
                    self.write_vector(VReg::of_field(reg), &lanes, lanes.0[0]);
                }
                Move::Load(Load::Scalar(extension)) => {
                    let value = scalar_of(op, extension, word, address);
                    self.write_scalar(SReg::of_field(reg), value, value);
                }
                Move::Load(Load::Gather) => self.write_scalar(SReg::of_field(reg), 0, 0),
                Move::Store(Store::Scalar | Store::Vector | Store::Splat) => {}
            }
        }
        self.finish(misaligned, TrapReason::MemoryMisaligned)
    }

    /// Records a scratchpad access and returns whether it is misaligned. Returns `None` if the
    /// access never completes.
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

    /// Executes a scratchpad load: lane *i* of a vector is at the address plus 4 *i*.
    fn scratchpad_load(&mut self, kind: MemOp, load: Load, reg: u8, address: u32) -> Flow {
        let vector = matches!(load, Load::Vector(_));
        let Some(misaligned) = self.scratchpad_access(kind, address, vector, false, load != Load::Gather) else {
            self.thread.watch.stick(Reg::V(VReg::of_field(reg)));
            return Flow::Next;
        };
        match load {
            Load::Gather => self.write_scalar(SReg::of_field(reg), 0, 0),
            Load::Vector(extension) => {
                let lanes = Lanes(std::array::from_fn(|k| {
                    let at = address.wrapping_add(4 * k as u32);
                    self.scratchpad_read(kind, extension, at, misaligned)
                }));
                self.write_vector(VReg::of_field(reg), &lanes, lanes.0[0]);
            }
            Load::Scalar(extension) => {
                let value = self.scratchpad_read(kind, extension, address, misaligned);
                self.write_scalar(SReg::of_field(reg), value, value);
            }
        }
        self.finish(misaligned, TrapReason::ScratchpadMisaligned)
    }

    /// Executes a scratchpad store: lane *i* of a vector goes to the address plus 4 *i*, subject to
    /// the lane mask.
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
                let value = self.scalar(SReg::of_field(reg));
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
                let value = self.scalar(SReg::of_field(reg));
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

    fn control(&mut self, op: CtrOp, reg0: SReg, reg1: SReg) -> Flow {
        match op {
            CtrOp::Barrier => {
                let id = self.scalar(reg0) & ID_MASK;
                let others = self.scalar(reg1) & COUNT_MASK;
                if self.thread.watch.anything_stuck() {
                    return Flow::Hang(HangReason::PendingAtBarrier);
                }
                let participants = others + 1;
                self.effect.control = Some(Control::Barrier { id, participants });
                Flow::Arrive { id, others }
            }
            CtrOp::ReadCr => {
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
            CtrOp::WriteCr => {
                let (register, value) = (self.scalar(reg1), self.scalar(reg0));
                self.shared.write_control(register, value, self.thread);
                let register = control_id(register);
                self.effect.control = Some(Control::Write { register, value });
                Flow::Next
            }
            // The opcodes of `flush` and `dcache_inv` alias those of load32 and load_u16, and so do
            // the alignment checks.
            CtrOp::Flush => {
                let address = self.scalar(reg0);
                self.effect.control = Some(Control::Flush { address });
                self.share(Use::Flush, address);
                if let Err(full) = self.flush(address) {
                    return Flow::MemoryFull(full);
                }
                self.finish(!address.is_multiple_of(4), TrapReason::MemoryMisaligned)
            }
            CtrOp::DcacheInv => {
                let address = self.scalar(reg0);
                self.effect.control = Some(Control::Invalidate { address });
                self.share(Use::Invalidate, address);
                if let Err(full) = self.invalidate(address) {
                    return Flow::MemoryFull(full);
                }
                self.finish(!address.is_multiple_of(2), TrapReason::MemoryMisaligned)
            }
            CtrOp::BarrierThread => Flow::Next,
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
                format!("the dirty bytes of the line at {lost:#010x} are lost when the line is evicted")
            });
        }
        Ok(())
    }

    fn jump_register(&mut self, op: JbaOp, reg: SReg, offset: i32) -> Flow {
        let value = self.scalar(reg);
        let target = self.pc.wrapping_add(offset as u32);
        match op {
            JbaOp::Jmp | JbaOp::Jeret => Flow::Jump(value),
            JbaOp::Jmpsr => {
                // The adder adds 4 to operand 0, which is the target in this format.
                let link = value.wrapping_add(4);
                self.report(Hazard::IndirectCall, || {
                    format!("the return address becomes {link:#010x}, the target plus 4; `addi ra, pc, 8` and `jmp` make a call")
                });
                self.write_scalar(SReg::RA, link, link);
                Flow::Jump(value)
            }
            JbaOp::Jret => Flow::Jump(self.scalar(SReg::RA)),
            JbaOp::Beqz if value == 0 => Flow::Jump(target),
            JbaOp::Bnez if value != 0 => Flow::Jump(target),
            JbaOp::Beqz | JbaOp::Bnez | JbaOp::Jsys => Flow::Next,
        }
    }

    fn jump_relative(&mut self, op: JraOp, offset: i32) -> Flow {
        let target = self.pc.wrapping_add(offset as u32);
        match op {
            JraOp::Jmp | JraOp::Jret | JraOp::Jeret => Flow::Jump(target),
            JraOp::Jmpsr => {
                let link = self.pc.wrapping_add(4);
                self.write_scalar(SReg::RA, link, link);
                Flow::Jump(target)
            }
            JraOp::Beqz | JraOp::Bnez => {
                self.report(Hazard::UndefinedOperation, || {
                    "a conditional branch in the unconditional format has no defined condition".to_owned()
                });
                Flow::Next
            }
            JraOp::Jsys => Flow::Next,
        }
    }
}

fn per_lane(a: &Source, b: &Source, f: impl Fn(u32, u32) -> u32) -> Lanes {
    if let (Source::Scalar(a), Source::Scalar(b)) = (a, b) {
        return Lanes::splat(f(*a, *b));
    }
    Lanes(std::array::from_fn(|k| f(a.lane(k), b.lane(k))))
}

/// Compares all lanes, regardless of the lane mask.
fn lane_bits(a: &Source, b: &Source, holds: fn(u32, u32) -> bool) -> u32 {
    (0..LANES).fold(0, |set, k| set | u32::from(holds(a.lane(k), b.lane(k))) << k)
}

fn word_of(bytes: &[u8]) -> u32 {
    bytes.iter().rev().fold(0, |word, &byte| word << 8 | u32::from(byte))
}

/// Extracts the value of a scalar load from the aligned word at `address`; address bits below the
/// size are ignored.
fn scalar_of(kind: MemOp, extension: Extension, word: u32, address: u32) -> u32 {
    let size = access_size(kind).min(LANE_SIZE);
    let shift = 8 * (address & 3 & !(size - 1));
    extension.apply(word >> shift)
}
