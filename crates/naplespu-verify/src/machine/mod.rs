//! The semantics of compiled code: decodes its bytes and executes them symbolically.
//!
//! # Contract
//!
//! [`Code::run`] executes from the first instruction until every path has ended: by a return to the
//! address in `ra` at entry, or by the sequence that stops the thread with a trap code. States are
//! joined at instructions with several predecessors. [`npu_mc::semantics`] has the semantics of an
//! instruction. A relocation is the address of its symbol, which is an unknown. A call is matched
//! with a call of the CLIF that has the same callee and, in trials, the same arguments; obligations
//! then claim that they are equal. A tail call is a call that is followed by a return. Routines of
//! the runtime have the semantics in [`routines`].

mod calls;
mod flow;
pub mod routines;
mod state;

pub use state::{Obligation, State};

use crate::abi::{BASE, Layout, initial_register, symbol_name};
use crate::clif::{Call, Device, ExitKind, Limits};
use crate::term::{Pool, Term, WORD};
use cranelift_codegen::ir::Function;
use cranelift_naplespu::CompiledCode;
use cranelift_naplespu::code::{Reloc, RelocTarget};
use flow::Flow;
use npu_mc::machine::{ControlRegister, ThreadStatus};
use npu_mc::raw::{JraOp, RawInst};
use npu_mc::reloc::Formula;
use npu_mc::semantics::{ControlEffect, Erratum, execute_mended};
use npu_mc::{Reg, SReg, decode, split};
use state::Step;
use std::collections::{BTreeMap, BTreeSet};

/// An unsupported construct.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unsupported(pub String);

/// The result of executing code.
#[derive(Default)]
pub struct Outcome {
    /// The exits and their states.
    pub exits: Vec<(ExitKind, State)>,
    /// Additional proof obligations.
    pub obligations: Vec<Obligation>,
    /// For each call of the CLIF, the paths of the matching calls.
    pub calls: Vec<Vec<Term>>,
    /// The runtime routines whose semantics is assumed.
    pub routines: BTreeSet<&'static str>,
}

/// Code during its execution.
pub struct Code<'a> {
    func: &'a Function,
    code: &'a CompiledCode,
    pool: &'a mut Pool,
    layout: &'a Layout,
    clif_calls: &'a [Call],
    limits: Limits,
    mended: &'a [Erratum],
    relocs: BTreeMap<u32, &'a Reloc>,
    flow: Flow,
    waiting: BTreeMap<usize, State>,
    visits: Vec<u32>,
    out: Outcome,
}

/// The successors of an instruction.
enum Next {
    /// Execution continues at these offsets.
    At(Vec<(u32, State)>),
    /// The path ends.
    End,
}

impl<'a> Code<'a> {
    /// Executes the code of a function with these calls in its CLIF, on a machine without the
    /// errata in `mended`.
    ///
    /// # Errors
    ///
    /// The unsupported construct.
    pub fn run(
        func: &'a Function,
        code: &'a CompiledCode,
        pool: &'a mut Pool,
        layout: &'a Layout,
        clif_calls: &'a [Call],
        limits: Limits,
        mended: &'a [Erratum],
    ) -> Result<Outcome, Unsupported> {
        let flow = Flow::new(&code.bytes, code.pool_start.min(code.bytes.len() as u32));
        let state = State::new(pool, layout);
        let mut run = Self {
            func,
            code,
            layout,
            clif_calls,
            limits,
            mended,
            relocs: code.relocs.iter().map(|reloc| (reloc.offset, reloc)).collect(),
            visits: vec![0; flow.offsets.len()],
            flow,
            waiting: BTreeMap::new(),
            out: Outcome {
                calls: vec![Vec::new(); clif_calls.len()],
                ..Outcome::default()
            },
            pool,
        };
        run.enter(0, state)?;
        while let Some((at, state)) = run.waiting.pop_first() {
            run.from(at, state)?;
        }
        Ok(run.out)
    }

    /// Adds a state to those waiting at an offset.
    fn enter(&mut self, offset: u32, mut state: State) -> Result<(), Unsupported> {
        let Some(at) = self.flow.order.get((offset / 4) as usize).copied().flatten() else {
            return Err(Unsupported(format!("control goes to {offset:#x}, which is not code")));
        };
        state.memory.seal();
        let state = match self.waiting.remove(&at) {
            Some(other) => other.join(state, self.pool),
            None => state,
        };
        self.waiting.insert(at, state);
        Ok(())
    }

    /// Executes from an instruction to the next branch or join.
    fn from(&mut self, at: usize, mut state: State) -> Result<(), Unsupported> {
        let mut offset = self.flow.offsets[at];
        self.visits[at] += 1;
        if self.visits[at] > self.limits.visits {
            self.out.exits.push((ExitKind::Cut, state));
            return Ok(());
        }
        loop {
            if self.pool.len() > self.limits.terms {
                return Err(Unsupported(
                    "the function is too large: its code has too many terms".to_owned(),
                ));
            }
            match self.instruction(offset, state)? {
                Next::End => return Ok(()),
                Next::At(mut ways) => {
                    if ways.len() == 1
                        && let Some((next, after)) = ways.pop()
                    {
                        if next == offset + 4 && !self.flow.joins.contains(&next) {
                            (offset, state) = (next, after);
                            continue;
                        }
                        return self.enter(next, after);
                    }
                    for (next, after) in ways {
                        self.enter(next, after)?;
                    }
                    return Ok(());
                }
            }
        }
    }

    fn instruction(&mut self, offset: u32, mut state: State) -> Result<Next, Unsupported> {
        let bytes = &self.code.bytes;
        let word = flow::word_at(bytes, offset)
            .filter(|_| offset < self.code.pool_start)
            .ok_or_else(|| Unsupported(format!("control leaves the code at {offset:#x}")))?;
        if let Some(&reloc) = self.relocs.get(&offset) {
            return self.relocated(offset, word, reloc, state);
        }
        if matches!(split(word), RawInst::Undefined) {
            return Ok(Next::At(vec![(offset + 4, state)]));
        }
        let inst = decode(word).map_err(|error| Unsupported(format!("{error} at {offset:#x}")))?;
        let mut step = Step {
            pool: self.pool,
            state: &mut state,
            layout: self.layout,
            code: (bytes, BASE),
            offset,
            completes: inst.desc().scratchpad && self.mended.contains(&Erratum::ScratchpadEmptyMask),
            effect: None,
            obligations: Vec::new(),
        };
        execute_mended(&inst, BASE + offset, &mut step, self.mended)
            .map_err(|error| Unsupported(format!("{error} at {offset:#x}")))?;
        let effect = step.effect.take();
        let obligations = std::mem::take(&mut step.obligations);
        self.out.obligations.extend(obligations);
        let next = offset + 4;
        match effect {
            None => Ok(Next::At(vec![(next, state)])),
            Some(ControlEffect::Jump { target }) => self.jump(offset, target, state),
            Some(ControlEffect::Branch { condition, target }) => {
                let not = self.pool.not(condition);
                let mut ways = Vec::new();
                if let Some(path) = state.path.with(self.pool, condition) {
                    let target = self.offset_of(target, offset)?;
                    ways.push((target, state.clone().on(path)));
                }
                if let Some(path) = state.path.with(self.pool, not) {
                    ways.push((next, state.on(path)));
                }
                Ok(Next::At(ways))
            }
            Some(ControlEffect::WriteControl { register, value }) => {
                let status = u64::from(ControlRegister::ThreadStatus.number());
                let trapped = u64::from(ThreadStatus::Trapped.value());
                if self.pool.as_u64(register) != Some(status) || self.pool.as_u64(value) != Some(trapped) {
                    return self.device(offset, Device::WriteControl, &[value, register], state);
                }
                let code = self.pool.as_u64(state.get(Reg::S(SReg::TR), 0));
                let Some(code) = code.and_then(|code| u8::try_from(code).ok()) else {
                    return Err(Unsupported(format!("a trap without a known code at {offset:#x}")));
                };
                self.out.exits.push((ExitKind::Trap(code), state));
                Ok(Next::End)
            }
            Some(ControlEffect::Flush { address }) => self.device(offset, Device::Flush, &[address], state),
            Some(ControlEffect::Barrier { id, others }) => self.device(offset, Device::Barrier, &[id, others], state),
            Some(ControlEffect::Invalidate { address }) => self.device(offset, Device::Invalidate, &[address], state),
        }
    }

    /// Returns the offset of a known address in the code.
    fn offset_of(&self, target: Term, offset: u32) -> Result<u32, Unsupported> {
        let address = self.pool.as_u64(target).map(|address| address as u32);
        let inside = address
            .and_then(|address| address.checked_sub(BASE))
            .filter(|&to| to < self.code.pool_start);
        inside.ok_or_else(|| Unsupported(format!("a jump out of the code at {offset:#x}")))
    }

    /// Executes a jump to an address: in the code, to the caller, to a function, or by a table.
    fn jump(&mut self, offset: u32, target: Term, state: State) -> Result<Next, Unsupported> {
        if self.pool.as_u64(target).is_some() {
            let to = self.offset_of(target, offset)?;
            // In a recursive call, `ra` is the address after it.
            return match self.returns_behind(offset, &state) && to == 0 {
                true => self.call(offset, calls::Target::Name(self.func.name.to_string()), state),
                false => Ok(Next::At(vec![(to, state)])),
            };
        }
        let return_address = initial_register(self.pool, Reg::S(SReg::RA), 0);
        if target == return_address {
            self.out.exits.push((ExitKind::Return, state));
            return Ok(Next::End);
        }
        if self.returns_behind(offset, &state) {
            return self.call(offset, calls::Target::Address(target), state);
        }
        self.table(offset, target, state)
    }

    /// Returns whether `ra` holds the address after the instruction.
    fn returns_behind(&self, offset: u32, state: &State) -> bool {
        self.pool.as_u64(state.get(Reg::S(SReg::RA), 0)) == Some(u64::from(BASE + offset + 4))
    }

    /// Executes a jump into a table of jumps, by an index below its length.
    fn table(&mut self, offset: u32, target: Term, state: State) -> Result<Next, Unsupported> {
        let table = flow::table_from(&self.code.bytes, self.code.pool_start, offset + 4);
        if table.is_empty() {
            return self.tail_call(offset, &calls::Target::Address(target), state);
        }
        let mut ways = Vec::new();
        let mut inside = self.pool.bool(false);
        // The address is a multiple of the index, which CLIF compares. Obligations claim that the
        // ignored bits are zero.
        let (terms, start) = self.pool.summands(target);
        let index = match terms[..] {
            [(index, npu_mc::machine::INSTRUCTION_SIZE)] => Some(index),
            _ => None,
        };
        for to in table {
            let same = match index {
                Some(index) => {
                    let distance = (BASE + to).wrapping_sub(start);
                    let number = self
                        .pool
                        .int(WORD, u64::from(distance / npu_mc::machine::INSTRUCTION_SIZE));
                    self.pool.eq(index, number)
                }
                None => {
                    let address = self.pool.int(WORD, u64::from(BASE + to));
                    self.pool.eq(target, address)
                }
            };
            if let Some(path) = state.path.with(self.pool, same) {
                ways.push((to, state.clone().on(path)));
            }
            inside = self.pool.or(inside, same);
        }
        if let Some(index) = index {
            let unused = npu_mc::machine::INSTRUCTION_SIZE.trailing_zeros();
            let top = self.pool.extract(WORD - 1, WORD - unused, index);
            let zero = self.pool.int(unused, 0);
            let fits = self.pool.eq(top, zero);
            inside = self.pool.and(inside, fits);
        }
        let path = state.path.condition(self.pool);
        self.out.obligations.push(Obligation {
            what: format!("the jump stays in its table at {offset:#x}"),
            path,
            claim: inside,
        });
        Ok(Next::At(ways))
    }

    /// Executes an instruction with a relocation.
    fn relocated(&mut self, offset: u32, word: u32, reloc: &Reloc, mut state: State) -> Result<Next, Unsupported> {
        let formula = reloc.kind.info().formula;
        match (split(word), formula) {
            (RawInst::Mvi(inst), Formula::AbsHigh | Formula::AbsLow) if !inst.dst.is_vector() => {
                let name = match &reloc.target {
                    RelocTarget::Name(name) => symbol_name(self.func, name),
                    RelocTarget::Function => self.func.name.to_string(),
                    RelocTarget::Runtime(name) => format!("%{name}"),
                };
                let symbol = self.layout.symbol_named(self.pool, &name);
                let addend = self.pool.int(WORD, reloc.addend as u64 & u64::from(u32::MAX));
                let address = self.pool.add(symbol, addend);
                let old = state.get(inst.dst, 0);
                let half = WORD / 2;
                let value = match formula {
                    Formula::AbsHigh => {
                        let (high, low) = (
                            self.pool.extract(WORD - 1, half, address),
                            self.pool.extract(half - 1, 0, old),
                        );
                        self.pool.concat(&[high, low])
                    }
                    _ => {
                        let (high, low) = (
                            self.pool.extract(WORD - 1, half, old),
                            self.pool.extract(half - 1, 0, address),
                        );
                        self.pool.concat(&[high, low])
                    }
                };
                state.set(inst.dst, 0, value);
                Ok(Next::At(vec![(offset + 4, state)]))
            }
            (RawInst::Jra(inst), Formula::Pc) if inst.op == JraOp::Jmpsr => {
                let behind = self.pool.int(WORD, u64::from(BASE + offset + 4));
                state.set(Reg::S(SReg::RA), 0, behind);
                let target = match &reloc.target {
                    RelocTarget::Name(name) => calls::Target::Name(symbol_name(self.func, name)),
                    RelocTarget::Function => calls::Target::Name(self.func.name.to_string()),
                    RelocTarget::Runtime(name) => calls::Target::Routine(name),
                };
                self.call(offset, target, state)
            }
            (RawInst::Jra(_), Formula::Pc) => {
                let target = match &reloc.target {
                    RelocTarget::Name(name) => calls::Target::Name(symbol_name(self.func, name)),
                    RelocTarget::Function => calls::Target::Name(self.func.name.to_string()),
                    RelocTarget::Runtime(name) => {
                        return Err(Unsupported(format!("a tail call of {name} at {offset:#x}")));
                    }
                };
                self.tail_call(offset, &target, state)
            }
            _ => Err(Unsupported(format!(
                "the relocation {} at {offset:#x}",
                reloc.kind.name()
            ))),
        }
    }
}
