//! The symbolic state of a thread, and the execution of one instruction.

use crate::abi::{Layout, initial_register};
use crate::clif::intrinsics::control;
use crate::memory::{Memory, Region};
use crate::path::Path;
use crate::term::{Pool, Term, WORD};
use npu_mc::machine::{LANES, TrapReason};
use npu_mc::semantics::{Algebra, BinaryOp, ControlEffect, FloatFunction, Machine, Space, UnaryOp};
use npu_mc::{Reg, SReg, VReg};

const REGISTERS: usize = 64;

/// Registers and memory.
#[derive(Clone)]
pub struct State {
    /// The path condition.
    pub path: Path,
    scalars: Vec<Term>,
    lanes: Vec<Term>,
    mask: Term,
    /// The number of reads of counters.
    pub reads: u32,
    /// Memory.
    pub memory: Memory,
}

impl State {
    /// Returns the state at the start of a function.
    pub fn new(pool: &mut Pool, layout: &Layout) -> Self {
        let mut scalars: Vec<Term> = SReg::all().map(|reg| initial_register(pool, Reg::S(reg), 0)).collect();
        let ones = pool.int(LANES, (1 << LANES) - 1);
        let above = pool.extract(WORD - 1, LANES, scalars[usize::from(SReg::RM.number())]);
        scalars[usize::from(SReg::RM.number())] = pool.concat(&[above, ones]);
        scalars[usize::from(SReg::SP.number())] = layout.sp;
        let lanes = VReg::all()
            .flat_map(|reg| (0..LANES).map(move |lane| (reg, lane)))
            .map(|(reg, lane)| initial_register(pool, Reg::V(reg), lane))
            .collect();
        Self {
            path: Path::default(),
            scalars,
            lanes,
            mask: ones,
            reads: 0,
            memory: Memory::default(),
        }
    }

    /// Returns a scalar register, or a lane of a vector register.
    pub fn get(&self, reg: Reg, lane: u32) -> Term {
        match reg {
            Reg::S(reg) => self.scalars[usize::from(reg.number())],
            Reg::V(reg) => self.lanes[usize::from(reg.number()) * LANES as usize + lane as usize],
        }
    }

    /// Sets a scalar register, or a lane of a vector register.
    pub fn set(&mut self, reg: Reg, lane: u32, value: Term) {
        match reg {
            Reg::S(reg) => self.scalars[usize::from(reg.number())] = value,
            Reg::V(reg) => self.lanes[usize::from(reg.number()) * LANES as usize + lane as usize] = value,
        }
    }

    /// Returns the state with another path.
    pub fn on(self, path: Path) -> Self {
        Self { path, ..self }
    }

    /// Returns the current lane mask.
    pub fn mask(&self) -> Term {
        self.mask
    }

    /// Joins the states of two mutually exclusive paths.
    pub fn join(self, other: Self, pool: &mut Pool) -> Self {
        let (path, selector) = self.path.join(&other.path, pool);
        let memory = self.memory.merge(&other.memory, pool, selector);
        let mut join = |a: Vec<Term>, b: Vec<Term>| -> Vec<Term> {
            a.into_iter().zip(b).map(|(x, y)| pool.ite(selector, x, y)).collect()
        };
        let scalars = join(self.scalars, other.scalars);
        let lanes = join(self.lanes, other.lanes);
        let mask = pool.ite(selector, self.mask, other.mask);
        Self {
            path,
            scalars,
            lanes,
            mask,
            reads: self.reads.max(other.reads),
            memory,
        }
    }
}

/// A precondition of an instruction.
#[derive(Clone)]
pub struct Obligation {
    /// A description for messages.
    pub what: String,
    /// The path condition of the instruction.
    pub path: Term,
    /// The condition that has to hold there.
    pub claim: Term,
}

/// The execution of one instruction.
pub struct Step<'a> {
    /// The pool of terms.
    pub pool: &'a mut Pool,
    /// The state.
    pub state: &'a mut State,
    /// The layout of the function.
    pub layout: &'a Layout,
    /// The code and its address, for loads of its constants.
    pub code: (&'a [u8], u32),
    /// The offset of the instruction.
    pub offset: u32,
    /// Whether the instruction completes without a condition, because an erratum is mended.
    pub completes: bool,
    /// The control effect, unless execution continues after the instruction.
    pub effect: Option<ControlEffect<Term>>,
    /// The preconditions of the instruction.
    pub obligations: Vec<Obligation>,
}

impl Step<'_> {
    fn oblige(&mut self, what: &str, never: Term) {
        let claim = self.pool.not(never);
        if self.pool.is_true(claim) {
            return;
        }
        let path = self.state.path.condition(self.pool);
        self.obligations.push(Obligation {
            what: format!("{what} at {:#x}", self.offset),
            path,
            claim,
        });
    }

    /// Returns the region of an access.
    fn region(&mut self, space: Space, address: Term) -> Region {
        match space {
            Space::Main => Memory::region(self.pool, address, self.layout.sp),
            Space::Scratchpad => Region::Scratchpad,
        }
    }

    /// Returns bytes of the code, if the address is a constant in it.
    fn constant_bytes(&mut self, address: Term, bytes: u32) -> Option<Term> {
        let at = self.pool.as_u64(address)? as u32;
        let from = at.checked_sub(self.code.1)? as usize;
        let bytes = self.code.0.get(from..from + bytes as usize)?;
        let value = bytes
            .iter()
            .rev()
            .fold(0u64, |value, &byte| value << 8 | u64::from(byte));
        Some(self.pool.int(bytes.len() as u32 * 8, value))
    }
}

impl Algebra for Step<'_> {
    type Value = Term;

    fn constant(&mut self, width: u32, bits: u64) -> Term {
        self.pool.int(width, bits)
    }

    fn known(&self, value: &Term) -> Option<u64> {
        self.pool.as_u64(*value).filter(|_| self.pool.width(*value) <= 64)
    }

    fn unary(&mut self, op: UnaryOp, a: Term) -> Term {
        match op {
            UnaryOp::Not => self.pool.not(a),
            UnaryOp::Neg => self.pool.neg(a),
            UnaryOp::Clz => self.pool.clz(a),
            UnaryOp::Ctz => self.pool.ctz(a),
        }
    }

    fn binary(&mut self, op: BinaryOp, a: Term, b: Term) -> Term {
        let pool = &mut *self.pool;
        match op {
            BinaryOp::And => pool.and(a, b),
            BinaryOp::Or => pool.or(a, b),
            BinaryOp::Xor => pool.xor(a, b),
            BinaryOp::Add => pool.add(a, b),
            BinaryOp::Sub => pool.sub(a, b),
            BinaryOp::Mul => product(pool, a, b),
            BinaryOp::Shl => pool.shl(a, b),
            BinaryOp::Lshr => pool.lshr(a, b),
            BinaryOp::Ashr => pool.ashr(a, b),
            BinaryOp::Eq => pool.eq(a, b),
            BinaryOp::Ne => {
                let same = pool.eq(a, b);
                pool.not(same)
            }
            BinaryOp::Ult => pool.ult(a, b),
            BinaryOp::Ule => {
                let above = pool.ult(b, a);
                pool.not(above)
            }
            BinaryOp::Slt => pool.slt(a, b),
            BinaryOp::Sle => {
                let above = pool.slt(b, a);
                pool.not(above)
            }
        }
    }

    fn select(&mut self, condition: Term, then: Term, other: Term) -> Term {
        self.pool.ite(condition, then, other)
    }

    fn extract(&mut self, high: u32, low: u32, a: Term) -> Term {
        self.pool.extract(high, low, a)
    }

    fn concat(&mut self, high: Term, low: Term) -> Term {
        self.pool.concat(&[high, low])
    }

    fn zero_extend(&mut self, width: u32, a: Term) -> Term {
        self.pool.zext(a, width)
    }

    fn sign_extend(&mut self, width: u32, a: Term) -> Term {
        self.pool.sext(a, width)
    }

    fn float(&mut self, function: FloatFunction, operands: &[Term]) -> Term {
        self.pool.app(&crate::floats::unit_name(function), WORD, operands)
    }

    fn undefined(&mut self, width: u32) -> Term {
        self.pool.fresh("undefined", width)
    }
}

/// Returns a product as the machine computes it. The product of two sign-extended words is built
/// from the words, in the same form as for CLIF.
fn product(pool: &mut Pool, a: Term, b: Term) -> Term {
    let width = pool.width(a);
    if width != 2 * WORD {
        return pool.mul(a, b);
    }
    let (x, y) = (pool.extract(WORD - 1, 0, a), pool.extract(WORD - 1, 0, b));
    let (p, q) = (pool.sext(x, width), pool.sext(y, width));
    if (p, q) == (a, b) && !(pool.zext(x, width) == a && pool.zext(y, width) == b) {
        let (low, high) = (pool.mul(x, y), pool.smulhi(x, y));
        return pool.concat(&[high, low]);
    }
    pool.mul(a, b)
}

impl Machine for Step<'_> {
    fn read_scalar(&mut self, register: u8) -> Term {
        self.state.scalars[usize::from(register) % REGISTERS]
    }

    fn write_scalar(&mut self, register: u8, value: Term) {
        self.state.scalars[usize::from(register) % REGISTERS] = value;
    }

    fn read_lane(&mut self, register: u8, lane: u32) -> Term {
        self.state.lanes[usize::from(register) % REGISTERS * LANES as usize + lane as usize]
    }

    fn write_lane(&mut self, register: u8, lane: u32, value: Term) {
        self.state.lanes[usize::from(register) % REGISTERS * LANES as usize + lane as usize] = value;
    }

    fn read_mask(&mut self) -> Term {
        self.state.mask
    }

    fn write_mask(&mut self, value: Term) {
        self.state.mask = value;
    }

    fn load(&mut self, space: Space, address: Term, bytes: u32, _condition: Term) -> Term {
        if space == Space::Main
            && let Some(value) = self.constant_bytes(address, bytes)
        {
            return value;
        }
        let region = self.region(space, address);
        self.state.memory.load(self.pool, region, address, bytes)
    }

    fn store(&mut self, space: Space, address: Term, bytes: u32, value: Term, condition: Term) {
        let region = self.region(space, address);
        let old = match self.pool.is_true(condition) {
            true => value,
            false => self.state.memory.load(self.pool, region, address, bytes),
        };
        let value = self.pool.ite(condition, value, old);
        self.state.memory.store(self.pool, region, address, value);
    }

    fn read_control(&mut self, register: Term) -> Term {
        let register = self.pool.zext(register, WORD);
        control(self.pool, register, &mut self.state.reads)
    }

    fn trap(&mut self, reason: TrapReason, condition: Term) -> bool {
        self.oblige(&format!("no trap of the hardware ({reason:?})"), condition);
        false
    }

    fn never_completes(&mut self, _register: Option<Reg>, condition: Term) -> bool {
        if !self.completes {
            self.oblige("the instruction completes", condition);
        }
        false
    }

    fn control(&mut self, effect: ControlEffect<Term>) {
        self.effect = Some(effect);
    }
}
