//! Intrinsics: calls of reserved names, with the semantics of `docs/intrinsics.md`.
//!
//! The lane mask is part of the state. Lanes that an intrinsic leaves undefined are unknowns.
//! Barriers, cache operations and writes of control registers are calls of a device: code and CLIF
//! have to make the same ones, with the same memory.

use super::{Callee, Clif, Device, Lanes, State, Unsupported, scalar};
use crate::floats;
use crate::memory::{Memory, Region};
use crate::term::{Pool, Term, WORD};
use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_naplespu::intrinsics;
use npu_mc::machine::{ControlRegister, LANES};
use npu_mc::semantics::FloatFunction;
use npu_mc::tables::{IntrinsicInfo, IntrinsicKind};

/// Returns the value that a control register has at the n-th read of a counter. Registers other
/// than counters have one value.
pub fn control(pool: &mut Pool, register: Term, reads: &mut u32) -> Term {
    let counters = [ControlRegister::CyclesLow, ControlRegister::CyclesHigh];
    let number = pool.as_u64(register);
    match counters
        .into_iter()
        .find(|counter| Some(u64::from(counter.number())) == number)
    {
        Some(counter) => {
            *reads += 1;
            pool.var(&format!("counter{}_{reads}", counter.number()), WORD)
        }
        None => {
            let register = pool.extract(5, 0, register);
            pool.app("control", WORD, &[register])
        }
    }
}

/// Returns the number of lane `lane` times `bytes`.
fn displacement(pool: &mut Pool, lane: usize, bytes: u32) -> Term {
    pool.int(WORD, lane as u64 * u64::from(bytes))
}

impl Clif<'_> {
    /// Executes an intrinsic. Returns its results.
    pub(super) fn intrinsic(
        &mut self,
        info: &'static IntrinsicInfo,
        args: &[Lanes],
        state: &mut State,
    ) -> Result<Vec<Lanes>, Unsupported> {
        let unsupported = || Unsupported::inst(format_args!("a call of %{}", info.name));
        let number = |at: usize| args.get(at).and_then(|lanes| lanes.first()).copied();
        let lanes = |at: usize| args.get(at).filter(|lanes| lanes.len() == LANES as usize);
        Ok(match info.kind {
            IntrinsicKind::Operation | IntrinsicKind::LaneBits => self.instruction(info, args, state)?,
            IntrinsicKind::ShiftLeft | IntrinsicKind::ShiftRight => {
                let (a, by) = (number(0).ok_or_else(unsupported)?, number(1).ok_or_else(unsupported)?);
                vec![vec![match info.kind {
                    IntrinsicKind::ShiftLeft => self.pool.shl(a, by),
                    _ => self.pool.lshr(a, by),
                }]]
            }
            IntrinsicKind::Compare => {
                let (a, b) = (lanes(0).ok_or_else(unsupported)?, lanes(1).ok_or_else(unsupported)?);
                let mut bits = Vec::new();
                for (&a, &b) in a.iter().zip(b) {
                    bits.push(match info.params.starts_with('f') {
                        true => {
                            let cond: FloatCC = info.condition.parse().map_err(|_| unsupported())?;
                            floats::compare(self.pool, cond, a, b)
                        }
                        false => {
                            let cond: IntCC = info.condition.parse().map_err(|_| unsupported())?;
                            scalar::compare(self.pool, cond, a, b)
                        }
                    });
                }
                vec![vec![self.of_bits(bits)]]
            }
            IntrinsicKind::BlockLoad => {
                let pointer = number(0).ok_or_else(unsupported)?;
                vec![self.block_load(info, pointer, state)]
            }
            IntrinsicKind::BlockStore => {
                let (pointer, value) = (
                    number(0).ok_or_else(unsupported)?,
                    lanes(1).ok_or_else(unsupported)?.clone(),
                );
                self.block_store(info, pointer, &value, state);
                Vec::new()
            }
            IntrinsicKind::Gather => {
                let addresses = lanes(0).ok_or_else(unsupported)?.clone();
                vec![self.gather(info, &addresses, state)]
            }
            IntrinsicKind::Scatter => {
                let (addresses, value) = (
                    lanes(0).ok_or_else(unsupported)?.clone(),
                    lanes(1).ok_or_else(unsupported)?.clone(),
                );
                for (lane, (address, word)) in addresses.into_iter().zip(value).enumerate() {
                    let enabled = self.enabled(info, state, lane);
                    self.assume_aligned(state, address, WORD / 8, enabled);
                    self.store_if(state, Region::Scratchpad, address, word, enabled);
                }
                Vec::new()
            }
            IntrinsicKind::Mix => {
                let (a, b) = (lanes(0).ok_or_else(unsupported)?, lanes(1).ok_or_else(unsupported)?);
                let mut out = Lanes::new();
                for (lane, (&x, &y)) in a.iter().zip(b).enumerate() {
                    let enabled = self.enabled(info, state, lane);
                    out.push(self.pool.ite(enabled, x, y));
                }
                vec![out]
            }
            IntrinsicKind::ReadMask => vec![vec![self.pool.zext(state.mask, WORD)]],
            IntrinsicKind::WriteMask => {
                let mask = number(0).ok_or_else(unsupported)?;
                state.mask = self.pool.extract(LANES - 1, 0, mask);
                Vec::new()
            }
            IntrinsicKind::WriteMaskLanes => {
                let bits = self.lowest_bits(lanes(0).ok_or_else(unsupported)?);
                let mask = self.of_bits(bits);
                state.mask = self.pool.extract(LANES - 1, 0, mask);
                Vec::new()
            }
            IntrinsicKind::ReadRegister => {
                let register = self.pool.int(WORD, info.register.into());
                vec![vec![control(self.pool, register, &mut state.reads)]]
            }
            IntrinsicKind::ReadCycles => {
                // High, low, high: a low half with its sign bit set belongs to the first high half.
                let mut read = |register: ControlRegister| {
                    let register = self.pool.int(WORD, register.number().into());
                    control(self.pool, register, &mut state.reads)
                };
                let (before, low, after) = (
                    read(ControlRegister::CyclesHigh),
                    read(ControlRegister::CyclesLow),
                    read(ControlRegister::CyclesHigh),
                );
                let is_large = self.pool.extract(WORD - 1, WORD - 1, low);
                let high = self.pool.ite(is_large, before, after);
                vec![vec![self.pool.concat(&[high, low])]]
            }
            IntrinsicKind::Missing => return Err(unsupported()),
        })
    }

    /// Executes an intrinsic that is one instruction.
    fn instruction(
        &mut self,
        info: &'static IntrinsicInfo,
        args: &[Lanes],
        state: &mut State,
    ) -> Result<Vec<Lanes>, Unsupported> {
        let unsupported = || Unsupported::inst(format_args!("a call of %{}", info.name));
        let first = args.first().ok_or_else(unsupported)?.clone();
        let device = |device| Callee::Device(device);
        let callee = match info.instruction {
            "BARRIER" => device(Device::Barrier),
            "FLUSH" => device(Device::Flush),
            "DCACHE_INV" => device(Device::Invalidate),
            "WRITECR" => device(Device::WriteControl),
            _ => {
                let operands: Vec<Term> = args.iter().filter_map(|lanes| lanes.first()).copied().collect();
                let float = |pool: &mut Pool, function| pool.app(&floats::unit_name(function), WORD, &operands);
                return Ok(vec![match info.instruction {
                    "READCR" => vec![control(self.pool, first[0], &mut state.reads)],
                    "CLZSS_32" | "CLZVV_U_32" => first.into_iter().map(|lane| self.pool.clz(lane)).collect(),
                    "CTZSS_32" | "CTZVV_U_32" => first.into_iter().map(|lane| self.pool.ctz(lane)).collect(),
                    "SHUFFLEI_32" => {
                        let index = args.get(1).ok_or_else(unsupported)?.clone();
                        index.into_iter().map(|index| self.lane_at(&first, index)).collect()
                    }
                    "CREATEMASK_32" => {
                        let bits = self.lowest_bits(&first);
                        vec![self.of_bits(bits)]
                    }
                    "ADDFSSS_32" => vec![float(self.pool, FloatFunction::Add)],
                    "MULFSSS_32" => vec![float(self.pool, FloatFunction::Mul)],
                    "DIVFSSS_32" => vec![float(self.pool, FloatFunction::Div)],
                    "I32TOF32_SS" => vec![float(self.pool, FloatFunction::FromInt)],
                    "F32TOI32_SS" => vec![float(self.pool, FloatFunction::ToInt)],
                    _ => return Err(unsupported()),
                }]);
            }
        };
        // The hardware traps otherwise.
        if callee == Callee::Device(Device::Invalidate) {
            let always = self.pool.bool(true);
            self.assume_aligned(state, first[0], WORD / 8, always);
        }
        let signature = intrinsics::signature(info);
        Ok(self.record_call(callee, signature, args.to_vec(), state, false))
    }

    /// Returns the lane with a number, which is undefined for numbers above the last.
    fn lane_at(&mut self, lanes: &Lanes, index: Term) -> Term {
        let mut value = self.pool.fresh("undefined", WORD);
        for (lane, &term) in lanes.iter().enumerate() {
            let number = self.pool.int(WORD, lane as u64);
            let same = self.pool.eq(index, number);
            value = self.pool.ite(same, term, value);
        }
        value
    }

    /// Returns a word with a bit for each lane.
    fn of_bits(&mut self, bits: Vec<Term>) -> Term {
        let bits: Vec<Term> = bits.into_iter().rev().collect();
        let bits = self.pool.concat(&bits);
        self.pool.zext(bits, WORD)
    }

    fn lowest_bits(&mut self, lanes: &Lanes) -> Vec<Term> {
        lanes.iter().map(|&lane| self.pool.extract(0, 0, lane)).collect()
    }

    /// Returns whether the intrinsic affects a lane.
    fn enabled(&mut self, info: &IntrinsicInfo, state: &State, lane: usize) -> Term {
        match info.masked {
            true => self.pool.extract(lane as u32, lane as u32, state.mask),
            false => self.pool.bool(true),
        }
    }

    /// Assumes that an address is aligned, if the access happens.
    fn assume_aligned(&mut self, state: &State, address: Term, unit: u32, happens: Term) {
        let bits = unit.trailing_zeros();
        if bits == 0 {
            return;
        }
        let low = self.pool.extract(bits - 1, 0, address);
        let zero = self.pool.int(bits, 0);
        let aligned = self.pool.eq(low, zero);
        let path = state.path.condition(self.pool);
        let here = self.pool.and(path, happens);
        let elsewhere = self.pool.not(here);
        let assumption = self.pool.or(elsewhere, aligned);
        self.out.assumptions.push(assumption);
    }

    fn block_region(&mut self, info: &IntrinsicInfo, pointer: Term) -> Region {
        match info.scratchpad {
            true => Region::Scratchpad,
            false => Memory::region(self.pool, pointer, self.layout.sp),
        }
    }

    fn block_load(&mut self, info: &IntrinsicInfo, pointer: Term, state: &State) -> Lanes {
        let bytes = u32::from(info.element_bits) / 8;
        let always = self.pool.bool(true);
        self.assume_aligned(state, pointer, bytes * LANES, always);
        let region = self.block_region(info, pointer);
        let mut out = Lanes::new();
        for lane in 0..LANES as usize {
            let offset = displacement(self.pool, lane, bytes);
            let at = self.pool.add(pointer, offset);
            let element = state.memory.load(self.pool, region, at, bytes);
            let word = match info.signed {
                true => self.pool.sext(element, WORD),
                false => self.pool.zext(element, WORD),
            };
            let enabled = self.enabled(info, state, lane);
            let open = self.pool.fresh("undefined", WORD);
            out.push(self.pool.ite(enabled, word, open));
        }
        out
    }

    fn block_store(&mut self, info: &IntrinsicInfo, pointer: Term, value: &Lanes, state: &mut State) {
        let bytes = u32::from(info.element_bits) / 8;
        let always = self.pool.bool(true);
        self.assume_aligned(state, pointer, bytes * LANES, always);
        let region = self.block_region(info, pointer);
        for (lane, &word) in value.iter().enumerate() {
            let offset = displacement(self.pool, lane, bytes);
            let at = self.pool.add(pointer, offset);
            let element = self.pool.extract(8 * bytes - 1, 0, word);
            let enabled = self.enabled(info, state, lane);
            self.store_if(state, region, at, element, enabled);
        }
    }

    fn gather(&mut self, info: &IntrinsicInfo, addresses: &Lanes, state: &State) -> Lanes {
        let mut out = Lanes::new();
        for (lane, &address) in addresses.iter().enumerate() {
            let enabled = self.enabled(info, state, lane);
            self.assume_aligned(state, address, WORD / 8, enabled);
            let word = state.memory.load(self.pool, Region::Scratchpad, address, WORD / 8);
            let open = self.pool.fresh("undefined", WORD);
            out.push(self.pool.ite(enabled, word, open));
        }
        out
    }

    /// Stores a value, if a condition holds.
    fn store_if(&mut self, state: &mut State, region: Region, address: Term, value: Term, condition: Term) {
        let bytes = self.pool.width(value) / 8;
        let old = match self.pool.is_true(condition) {
            true => value,
            false => state.memory.load(self.pool, region, address, bytes),
        };
        let value = self.pool.ite(condition, value, old);
        state.memory.store(self.pool, region, address, value);
    }
}
