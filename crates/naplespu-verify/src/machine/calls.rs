//! Calls in compiled code.

use super::{Code, Next, Obligation, State, Unsupported, routines};
use crate::abi::{initial_register, is_clobbered, pieces, place_of_word, words_of};
use crate::clif::{Call, Callee, Device, ExitKind};
use crate::goals::same_memory;
use crate::memory::{Memory, Region};
use crate::term::eval::Evaluator;
use crate::term::{Pool, Term, WORD};
use cranelift_codegen::ir::{AbiParam, ArgumentPurpose};
use cranelift_naplespu::abi::sig::{Place, Places, SigInfo};
use cranelift_naplespu::shape::vector_registers;
use npu_mc::machine::LANES;
use npu_mc::{Reg, SReg, VReg};

/// The number of trials that match a call of the code with a call of the CLIF.
const TRIALS: u64 = 24;

/// The target of a call.
pub enum Target {
    /// A function by name, with `%`.
    Name(String),
    /// A routine of the runtime.
    Routine(&'static str),
    /// The function at an address.
    Address(Term),
}

/// Returns the contents of a location at a call: a register, or a stack argument.
fn at_call(pool: &mut Pool, state: &State, place: Place, lane: u32) -> Term {
    match place {
        Place::Reg(reg) => state.get(reg, lane),
        Place::Memory(offset) => {
            let sp = state.get(Reg::S(SReg::SP), 0);
            let offset = pool.int(WORD, u64::from(offset + 4 * lane));
            let address = pool.add(sp, offset);
            state.memory.load(pool, Region::Frame, address, WORD / 8)
        }
    }
}

impl Code<'_> {
    pub(super) fn call(&mut self, offset: u32, target: Target, mut state: State) -> Result<Next, Unsupported> {
        match target {
            Target::Routine(name) => {
                self.out.routines.insert(name);
                let obligations = routines::call(self.pool, name, self.layout, &mut state).map_err(Unsupported)?;
                let path = state.path.condition(self.pool);
                for claim in obligations {
                    self.oblige(format!("the preconditions of {name} at {offset:#x}"), path, claim);
                }
            }
            target => self.call_function(offset, &target, &mut state, false)?,
        }
        Ok(Next::At(vec![(offset + 4, state)]))
    }

    /// Executes a jump to a function, which returns to the caller.
    pub(super) fn tail_call(&mut self, offset: u32, target: &Target, mut state: State) -> Result<Next, Unsupported> {
        let path = state.path.condition(self.pool);
        let expected = initial_register(self.pool, Reg::S(SReg::RA), 0);
        let returns = self.pool.eq(state.get(Reg::S(SReg::RA), 0), expected);
        self.oblige(
            format!("the return address of the tail call at {offset:#x}"),
            path,
            returns,
        );
        self.call_function(offset, target, &mut state, true)?;
        self.out.exits.push((ExitKind::Return, state));
        Ok(Next::End)
    }

    /// Executes an operation on a device. A write-back of a cache line changes nothing, so code may
    /// have more of them than CLIF.
    pub(super) fn device(
        &mut self,
        offset: u32,
        device: Device,
        operands: &[Term],
        mut state: State,
    ) -> Result<Next, Unsupported> {
        let calls = self.clif_calls;
        let path = state.path.condition(self.pool);
        let mut candidates = Vec::new();
        for (number, call) in calls.iter().enumerate() {
            if call.callee != Callee::Device(device) {
                continue;
            }
            let mut same = self.pool.bool(true);
            for (&have, lanes) in operands.iter().zip(&call.arguments) {
                let want = self.pool.extract(self.pool.width(have) - 1, 0, lanes[0]);
                let equal = self.pool.eq(want, have);
                same = self.pool.and(same, equal);
            }
            candidates.push((number, same));
        }
        let next = offset + 4;
        match self.choose(path, &candidates) {
            Some(at) => {
                let (number, agree) = candidates[at];
                self.happens(offset, number, path, agree, &state);
                let escapes = calls[number].frame_escapes;
                self.layout.after_call(self.pool, &mut state.memory, number, escapes);
            }
            None if device == Device::Flush => {}
            None => {
                return Err(Unsupported(format!(
                    "the {device:?} at {offset:#x} matches none of the CLIF function"
                )));
            }
        }
        Ok(Next::At(vec![(next, state)]))
    }

    fn oblige(&mut self, what: String, path: Term, claim: Term) {
        if !self.pool.is_true(claim) && !self.pool.is_false(path) {
            self.out.obligations.push(Obligation { what, path, claim });
        }
    }

    fn call_function(
        &mut self,
        offset: u32,
        target: &Target,
        state: &mut State,
        is_tail: bool,
    ) -> Result<(), Unsupported> {
        let calls = self.clif_calls;
        let path = state.path.condition(self.pool);
        let (mut candidates, mut signatures) = (Vec::new(), Vec::new());
        for (number, call) in calls.iter().enumerate() {
            if call.is_tail != is_tail || !self.is_callee(&call.callee, target) {
                continue;
            }
            let sig = SigInfo::new(&call.signature, "a callee").map_err(|error| Unsupported(error.to_string()))?;
            if sig.ret_area.is_some() {
                return Err(Unsupported("a call with results in memory is not followed".to_owned()));
            }
            let same = self.arguments_agree(call, &sig, state);
            candidates.push((number, same));
            signatures.push(sig);
        }
        let Some(chosen) = self.choose(path, &candidates) else {
            return Err(Unsupported(format!(
                "the call at {offset:#x} matches no call of the CLIF function"
            )));
        };
        let ((number, agree), sig) = (candidates[chosen], &signatures[chosen]);
        self.happens(offset, number, path, agree, state);
        self.state_at_call(offset, path, state);
        self.forget_structures(&calls[number], sig, state);
        self.after(number, &calls[number], sig, state);
        Ok(())
    }

    /// Adds obligations that a call of the code is the call of the CLIF with this number, and that
    /// memory is the same there.
    fn happens(&mut self, offset: u32, number: usize, path: Term, agree: Term, state: &State) {
        let calls = self.clif_calls;
        let call = &calls[number];
        let clif_path = call.path.condition(self.pool);
        self.oblige(format!("the call at {offset:#x} happens in CLIF"), path, clif_path);
        self.oblige(
            format!("the callee and arguments of the call at {offset:#x}"),
            path,
            agree,
        );
        let memory = same_memory(self.pool, &call.memory, &state.memory, Region::Main);
        self.oblige(format!("memory at the call at {offset:#x}"), path, memory);
        let scratchpad = same_memory(self.pool, &call.memory, &state.memory, Region::Scratchpad);
        self.oblige(format!("the scratchpad at the call at {offset:#x}"), path, scratchpad);
        if call.frame_escapes {
            let mut same = self.pool.bool(true);
            for address in self.layout.slot_bytes(self.pool) {
                let a = call.memory.load(self.pool, Region::Frame, address, 1);
                let b = state.memory.load(self.pool, Region::Frame, address, 1);
                let equal = self.pool.eq(a, b);
                same = self.pool.and(same, equal);
            }
            self.oblige(format!("stack slots at the call at {offset:#x}"), path, same);
        }
        self.out.calls[number].push(path);
    }

    /// Returns whether a call of the CLIF can have the target. Addresses are compared with the
    /// arguments.
    fn is_callee(&mut self, callee: &Callee, target: &Target) -> bool {
        match (callee, target) {
            (Callee::Name(name), Target::Name(to)) => name == to,
            (Callee::Name(name), &Target::Address(to)) => self.layout.symbol_named(self.pool, name) == to,
            (Callee::Address(_), Target::Address(_)) => true,
            (&Callee::Address(from), Target::Name(name)) => self.layout.symbol_named(self.pool, name) == from,
            (_, Target::Routine(_)) | (Callee::Device(_), _) => false,
        }
    }

    /// Returns the condition that callee and arguments match a call of the CLIF.
    fn arguments_agree(&mut self, call: &Call, sig: &SigInfo, state: &State) -> Term {
        let mut same = self.pool.bool(true);
        for ((param, places), lanes) in call.signature.params.iter().zip(&sig.args).zip(&call.arguments) {
            if let ArgumentPurpose::StructArgument(_) = param.purpose {
                let agrees = self.structure_agrees(places, lanes, state);
                same = self.pool.and(same, agrees);
                continue;
            }
            let expected = words_of(self.pool, param, lanes);
            let given = words_in(self.pool, param, places, |pool, place, lane| {
                at_call(pool, state, place, lane)
            });
            for (want, have) in expected.into_iter().zip(given) {
                let have = match self.pool.width(want) < WORD {
                    true => self.pool.extract(self.pool.width(want) - 1, 0, have),
                    false => have,
                };
                let equal = self.pool.eq(want, have);
                same = self.pool.and(same, equal);
            }
        }
        same
    }

    /// Returns the condition that an argument is the word-aligned address of these bytes.
    fn structure_agrees(&mut self, places: &Places, bytes: &[Term], state: &State) -> Term {
        let Some(address) = places.first().map(|&place| at_call(self.pool, state, place, 0)) else {
            return self.pool.bool(false);
        };
        let (low, zero) = (self.pool.extract(1, 0, address), self.pool.int(2, 0));
        let mut same = self.pool.eq(low, zero);
        let area = region(self.pool, address, self.layout.sp);
        for (at, &byte) in bytes.iter().enumerate() {
            let offset = self.pool.int(WORD, at as u64);
            let place = self.pool.add(address, offset);
            let have = state.memory.load(self.pool, area, place, 1);
            let equal = self.pool.eq(byte, have);
            same = self.pool.and(same, equal);
        }
        same
    }

    /// Sets the bytes of structures that a callee got to unknowns, since it may change its copies.
    fn forget_structures(&mut self, call: &Call, sig: &SigInfo, state: &mut State) {
        for (param, places) in call.signature.params.iter().zip(&sig.args) {
            let (ArgumentPurpose::StructArgument(size), Some(&place)) = (param.purpose, places.first()) else {
                continue;
            };
            let address = at_call(self.pool, state, place, 0);
            let area = region(self.pool, address, self.layout.sp);
            for at in 0..size {
                let offset = self.pool.int(WORD, u64::from(at));
                let place = self.pool.add(address, offset);
                let byte = self.pool.fresh("changed", 8);
                state.memory.store(self.pool, area, place, byte);
            }
        }
    }

    /// Returns the candidate that matches the call in every trial in which the call happens.
    fn choose(&mut self, path: Term, candidates: &[(usize, Term)]) -> Option<usize> {
        if candidates.len() < 2 {
            return candidates.len().checked_sub(1);
        }
        let mut possible: Vec<usize> = (0..candidates.len()).collect();
        for seed in 0..TRIALS {
            let mut values = Evaluator::new(seed);
            if values.value(self.pool, path).is_zero() {
                continue;
            }
            possible.retain(|&at| {
                let (number, agree) = candidates[at];
                let path = self.clif_calls[number].path.condition(self.pool);
                !values.value(self.pool, path).is_zero() && !values.value(self.pool, agree).is_zero()
            });
        }
        // Among equal candidates, prefers the first without a matching call.
        let unused = possible
            .iter()
            .find(|&&at| self.out.calls[candidates[at].0].is_empty())
            .copied();
        unused.or(possible.first().copied())
    }

    /// Adds obligations for the state that callees rely on.
    fn state_at_call(&mut self, offset: u32, path: Term, state: &State) {
        let ones = self.pool.int(LANES, (1 << LANES) - 1);
        let mask = self.pool.eq(state.mask(), ones);
        self.oblige(format!("the lane mask at the call at {offset:#x}"), path, mask);
        let sp = state.get(Reg::S(SReg::SP), 0);
        let low = npu_mc::machine::STACK_ALIGN.trailing_zeros();
        let low = self.pool.extract(low - 1, 0, sp);
        let zero = self.pool.int(self.pool.width(low), 0);
        let aligned = self.pool.eq(low, zero);
        self.oblige(format!("the alignment of sp at the call at {offset:#x}"), path, aligned);
    }

    /// Computes the state after a call.
    fn after(&mut self, number: usize, call: &Call, sig: &SigInfo, state: &mut State) {
        clobber(self.pool, sig, state);
        for ((param, places), lanes) in call.signature.returns.iter().zip(&sig.rets).zip(&call.results) {
            let words = words_of(self.pool, param, lanes);
            for (at, word) in words.into_iter().enumerate() {
                if let Some((Place::Reg(reg), lane)) = place_of_word(param.value_type, places, at as u32) {
                    let width = self.pool.width(word);
                    let full = match width < WORD {
                        true => {
                            let open = self.pool.fresh("undefined", WORD - width);
                            self.pool.concat(&[open, word])
                        }
                        false => word,
                    };
                    state.set(reg, lane, full);
                }
            }
        }
        self.layout
            .after_call(self.pool, &mut state.memory, number, call.frame_escapes);
        let popped = self.pool.int(WORD, u64::from(sig.popped));
        let sp = state.get(Reg::S(SReg::SP), 0);
        let sp = self.pool.add(sp, popped);
        state.set(Reg::S(SReg::SP), 0, sp);
    }
}

/// Returns the words of a value in its locations, lane by lane for vectors in registers.
fn words_in(
    pool: &mut Pool,
    param: &AbiParam,
    places: &Places,
    mut read: impl FnMut(&mut Pool, Place, u32) -> Term,
) -> Vec<Term> {
    let ty = param.value_type;
    if vector_registers(ty).is_some() {
        return pieces(pool, ty, places, read);
    }
    places.iter().map(|&place| read(pool, place, 0)).collect()
}

/// Sets all registers that a callee may change to unknowns.
pub fn clobber(pool: &mut Pool, sig: &SigInfo, state: &mut State) {
    for reg in SReg::all().map(Reg::S) {
        if is_clobbered(sig, reg) {
            let value = pool.fresh("clobbered", WORD);
            state.set(reg, 0, value);
        }
    }
    for reg in VReg::all().map(Reg::V) {
        if is_clobbered(sig, reg) {
            for lane in 0..LANES {
                let value = pool.fresh("clobbered", WORD);
                state.set(reg, lane, value);
            }
        }
    }
}

/// Returns the region of an address in memory.
pub fn region(pool: &mut Pool, address: Term, sp: Term) -> Region {
    Memory::region(pool, address, sp)
}
