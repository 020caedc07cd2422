//! Executes the semantics tables on a machine.

use super::generated::SEMANTICS;
use super::table::{Node, NodeId, NodeKind, Output, Semantics, Statement};
use super::{ControlEffect, Machine, Space};
use crate::errata::Erratum;
use crate::inst::{Inst, Opcode};
use crate::machine::LANES;
use crate::reg::{Reg, RegFile, SReg, VReg};
use core::fmt;

/// The instruction is ill-formed: an operand is missing or of the wrong kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Unsupported {
    /// The opcode.
    pub opcode: Opcode,
}

impl fmt::Display for Unsupported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the operands are not those of {}", self.opcode)
    }
}

impl core::error::Error for Unsupported {}

/// Executes the instruction at address `pc` on a machine. The next instruction is at `pc` plus 4
/// unless the machine received a jump, a branch or a trap.
///
/// # Errors
///
/// Fails if the instruction is ill-formed. The machine is unchanged then.
pub fn execute<M: Machine>(inst: &Inst, pc: u32, machine: &mut M) -> Result<(), Unsupported> {
    execute_mended(inst, pc, machine, &[])
}

/// Executes an instruction like [`execute`], on hardware without the errata in `mended`. Errata
/// that change no result, or only results of the float unit, make no difference.
///
/// # Errors
///
/// Fails like [`execute`].
pub fn execute_mended<M: Machine>(
    inst: &Inst,
    pc: u32,
    machine: &mut M,
    mended: &[Erratum],
) -> Result<(), Unsupported> {
    let unsupported = Unsupported { opcode: inst.opcode };
    let described = inst.opcode.desc().operands;
    let fits = described.len() == inst.operands.len()
        && described
            .iter()
            .zip(inst.operands.iter())
            .all(|(described, operand)| described.kind.register_file() == operand.reg().map(Reg::file));
    if !fits {
        return Err(unsupported);
    }
    let semantics = SEMANTICS.get(inst.opcode.index()).ok_or(unsupported)?;
    let mut run = Run {
        inst,
        pc,
        machine,
        mended,
        semantics,
        values: vec![None; semantics.nodes.len()],
        lanes: vec![None; semantics.nodes.len() * LANES as usize],
        writes: Vec::new(),
    };
    run.statements(run.start(), None).ok_or(unsupported)?;
    run.commit();
    Ok(())
}

/// A write that is delayed until all inputs have been read.
enum Write<V> {
    Scalar(u8, V),
    Lane(u8, u32, V),
    Mask(V),
    Store {
        space: Space,
        address: V,
        bytes: u32,
        value: V,
        condition: V,
    },
    Control(ControlEffect<V>),
}

/// The outcome of a list of statements.
#[derive(PartialEq, Eq)]
enum End {
    Through,
    /// The remaining statements are skipped.
    Left,
}

struct Run<'a, M: Machine> {
    inst: &'a Inst,
    pc: u32,
    machine: &'a mut M,
    mended: &'a [Erratum],
    semantics: &'static Semantics,
    /// Values of the nodes that are the same in all lanes.
    values: Vec<Option<M::Value>>,
    /// Values of the per-lane nodes, sixteen for each node.
    lanes: Vec<Option<M::Value>>,
    writes: Vec<Write<M::Value>>,
}

impl<M: Machine> Run<'_, M> {
    /// Returns the statements for the destination register: some instructions behave differently if
    /// its number is 63.
    fn start(&self) -> &'static [Statement] {
        let Some(at_63) = self.semantics.at_63 else {
            return self.semantics.does;
        };
        let pc = SReg::PC.number();
        let destination = self.inst.desc().operands.iter().position(|operand| operand.is_def);
        let is_63 = destination.and_then(|index| self.number(index as u8)) == Some(pc);
        let works = self.mended.contains(&Erratum::VectorResultIn63)
            && destination.and_then(|index| self.file(index as u8)) == Some(RegFile::Vector);
        if is_63 && !works { at_63 } else { self.semantics.does }
    }

    /// Runs the statements. Returns `None` if the tables do not fit the instruction.
    fn statements(&mut self, statements: &'static [Statement], lane: Option<u32>) -> Option<End> {
        for statement in statements {
            if self.statement(statement, lane)? == End::Left {
                return Some(End::Left);
            }
        }
        Some(End::Through)
    }

    fn statement(&mut self, statement: &'static Statement, lane: Option<u32>) -> Option<End> {
        let effect = match *statement {
            Statement::Set { output, value, mask } => {
                self.set(output, value, mask)?;
                return Some(End::Through);
            }
            Statement::Store {
                space,
                bytes,
                address,
                value,
                condition,
            } => {
                let condition = self.value(condition, lane)?;
                if self.machine.known(&condition) != Some(0) {
                    let store = Write::Store {
                        space,
                        address: self.value(address, lane)?,
                        bytes: u32::from(bytes),
                        value: self.value(value, lane)?,
                        condition,
                    };
                    self.writes.push(store);
                }
                return Some(End::Through);
            }
            Statement::EachLane(inner) => {
                for lane in 0..LANES {
                    if self.statements(inner, Some(lane))? == End::Left {
                        return Some(End::Left);
                    }
                }
                return Some(End::Through);
            }
            Statement::TrapIf {
                reason,
                condition,
                does,
            } => {
                let condition = self.value(condition, lane)?;
                let trapped = self.machine.known(&condition) != Some(0) && self.machine.trap(reason, condition);
                if trapped {
                    self.statements(does, lane)?;
                    return Some(End::Left);
                }
                return Some(End::Through);
            }
            Statement::NeverIf { condition, output } => {
                let condition = self.value(condition, lane)?;
                let register = match output {
                    Some(output) => Some(self.register(output)?),
                    None => None,
                };
                let stuck =
                    self.machine.known(&condition) != Some(0) && self.machine.never_completes(register, condition);
                return Some(if stuck { End::Left } else { End::Through });
            }
            Statement::Erratum(erratum, faulty, intended) => {
                let statements = if self.mended.contains(&erratum) {
                    intended
                } else {
                    faulty
                };
                return self.statements(statements, lane);
            }
            Statement::Jump(target) => ControlEffect::Jump {
                target: self.value(target, lane)?,
            },
            Statement::Branch(condition, target) => ControlEffect::Branch {
                condition: self.value(condition, lane)?,
                target: self.value(target, lane)?,
            },
            Statement::Barrier(id, others) => ControlEffect::Barrier {
                id: self.value(id, lane)?,
                others: self.value(others, lane)?,
            },
            Statement::WriteControl(register, value) => ControlEffect::WriteControl {
                register: self.value(register, lane)?,
                value: self.value(value, lane)?,
            },
            Statement::Flush(address) => ControlEffect::Flush {
                address: self.value(address, lane)?,
            },
            Statement::Invalidate(address) => ControlEffect::Invalidate {
                address: self.value(address, lane)?,
            },
        };
        self.writes.push(Write::Control(effect));
        Some(End::Through)
    }

    /// Queues the write of a result, and of the lane mask if the destination is `rm`.
    fn set(&mut self, output: Output, value: NodeId, mask: NodeId) -> Option<()> {
        let rm = SReg::RM.number();
        match self.register(output)? {
            Reg::S(register) => {
                // The value is computed even if it is discarded, because loads and reads of control
                // registers are effects.
                let value = self.value(value, None)?;
                if register == SReg::PC {
                    return Some(());
                }
                self.writes.push(Write::Scalar(register.number(), value));
                if register.number() == rm {
                    let mask = self.value(mask, None)?;
                    self.writes.push(Write::Mask(mask));
                }
            }
            Reg::V(register) => {
                for lane in 0..LANES {
                    let enabled = self.enabled(lane);
                    let enabled_known = self.machine.known(&enabled);
                    if enabled_known == Some(0) {
                        continue;
                    }
                    let mut new = self.value(value, Some(lane))?;
                    if enabled_known.is_none() {
                        let old = self.machine.read_lane(register.number(), lane);
                        new = self.machine.select(enabled, new, old);
                    }
                    self.writes.push(Write::Lane(register.number(), lane, new));
                }
                if register.number() == rm && !self.mended.contains(&Erratum::VectorWriteTo59) {
                    let mask = self.value(mask, Some(0))?;
                    self.writes.push(Write::Mask(mask));
                }
            }
        }
        Some(())
    }

    /// Returns the lane's bit of the lane mask.
    fn enabled(&mut self, lane: u32) -> M::Value {
        let mask = self.machine.read_mask();
        match self.machine.known(&mask) {
            Some(mask) => self.machine.constant(1, mask >> lane & 1),
            None => self.machine.extract(lane, lane, mask),
        }
    }

    /// Returns the register number of an operand.
    fn number(&self, operand: u8) -> Option<u8> {
        Some(self.inst.operands.get(usize::from(operand))?.reg()?.number())
    }

    fn file(&self, operand: u8) -> Option<RegFile> {
        Some(self.inst.operands.get(usize::from(operand))?.reg()?.file())
    }

    fn register(&self, output: Output) -> Option<Reg> {
        Some(match output {
            Output::Register(number) => Reg::S(SReg::new(number)?),
            Output::Scalar(operand) => Reg::S(SReg::new(self.number(operand)?)?),
            Output::Vector(operand) => Reg::V(VReg::new(self.number(operand)?)?),
        })
    }

    /// Returns the value of a node in a lane. `lane` is `None` outside of a lane-wise statement.
    /// Returns `None` if the tables do not fit the instruction.
    fn value(&mut self, id: NodeId, lane: Option<u32>) -> Option<M::Value> {
        let index = usize::from(id);
        let node = self.semantics.nodes.get(index)?;
        if !node.per_lane {
            if let Some(value) = self.values.get(index)? {
                return Some(value.clone());
            }
            let value = self.compute(node, None)?;
            *self.values.get_mut(index)? = Some(value.clone());
            return Some(value);
        }
        // Without a lane, a per-lane node has its value in lane 0: operations with scalar results
        // use it.
        let lane = lane.unwrap_or(0);
        let slot = index * LANES as usize + lane as usize;
        if let Some(value) = self.lanes.get(slot)? {
            return Some(value.clone());
        }
        let value = self.compute(node, Some(lane))?;
        *self.lanes.get_mut(slot)? = Some(value.clone());
        Some(value)
    }

    fn scalar(&mut self, number: u8) -> M::Value {
        if number == SReg::PC.number() {
            self.machine.constant(32, u64::from(self.pc))
        } else {
            self.machine.read_scalar(number)
        }
    }

    fn compute(&mut self, node: &'static Node, lane: Option<u32>) -> Option<M::Value> {
        let width = u32::from(node.width);
        let number = lane.unwrap_or(0);
        Some(match node.kind {
            NodeKind::Constant(bits) => self.machine.constant(width, bits),
            NodeKind::Register(number) => self.scalar(number),
            NodeKind::Scalar(operand) => {
                let number = self.number(operand)?;
                self.scalar(number)
            }
            NodeKind::Vector(operand) => {
                let register = self.number(operand)?;
                self.machine.read_lane(register, number)
            }
            NodeKind::Immediate(operand) => {
                let bits = self.inst.operands.get(usize::from(operand))?.imm()?.cast_unsigned();
                self.machine.constant(width, u64::from(bits))
            }
            NodeKind::Pc => self.machine.constant(width, u64::from(self.pc)),
            NodeKind::Lane(factor) => self.machine.constant(width, u64::from(number * u32::from(factor))),
            NodeKind::Mask => self.machine.read_mask(),
            NodeKind::Enabled => self.enabled(number),
            NodeKind::Undefined => self.machine.undefined(width),
            NodeKind::Unary(op, a) => {
                let a = self.value(a, lane)?;
                self.machine.unary(op, a)
            }
            NodeKind::Binary(op, a, b) => {
                let (a, b) = (self.value(a, lane)?, self.value(b, lane)?);
                self.machine.binary(op, a, b)
            }
            NodeKind::Select(condition, then, other) => {
                let condition = self.value(condition, lane)?;
                match self.machine.known(&condition) {
                    Some(0) => self.value(other, lane)?,
                    Some(_) => self.value(then, lane)?,
                    None => {
                        let (then, other) = (self.value(then, lane)?, self.value(other, lane)?);
                        self.machine.select(condition, then, other)
                    }
                }
            }
            NodeKind::Extract(high, low, a) => {
                let a = self.value(a, lane)?;
                self.machine.extract(u32::from(high), u32::from(low), a)
            }
            NodeKind::Concat(high, low) => {
                let (high, low) = (self.value(high, lane)?, self.value(low, lane)?);
                self.machine.concat(high, low)
            }
            NodeKind::ZeroExtend(a) => {
                let a = self.value(a, lane)?;
                self.machine.zero_extend(width, a)
            }
            NodeKind::SignExtend(a) => {
                let a = self.value(a, lane)?;
                self.machine.sign_extend(width, a)
            }
            NodeKind::Float(function, operands) => {
                let operands: Option<Vec<M::Value>> = operands.iter().map(|id| self.value(*id, lane)).collect();
                self.machine.float(function, &operands?)
            }
            NodeKind::LaneOf(value, index) => {
                let index = self.value(index, lane)?;
                self.lane_of(value, index)?
            }
            NodeKind::Lanes(value) => {
                let mut all = self.value(value, Some(0))?;
                for lane in 1..LANES {
                    let next = self.value(value, Some(lane))?;
                    all = self.machine.concat(next, all);
                }
                all
            }
            NodeKind::Load(space, address, condition) => {
                let (address, condition) = (self.value(address, lane)?, self.value(condition, lane)?);
                self.machine.load(space, address, width / 8, condition)
            }
            NodeKind::ReadControl(register) => {
                let register = self.value(register, lane)?;
                self.machine.read_control(register)
            }
            NodeKind::Erratum(erratum, faulty, intended) => {
                let id = if self.mended.contains(&erratum) {
                    intended
                } else {
                    faulty
                };
                self.value(id, lane)?
            }
        })
    }

    /// Selects the lane with this index, by a tree of selects on the bits of the index if it is not
    /// constant.
    fn lane_of(&mut self, value: NodeId, index: M::Value) -> Option<M::Value> {
        if let Some(lane) = self.machine.known(&index) {
            return self.value(value, Some(lane as u32 % LANES));
        }
        let values: Option<Vec<M::Value>> = (0..LANES).map(|lane| self.value(value, Some(lane))).collect();
        let mut values = values?;
        let mut bit = 0;
        while values.len() > 1 {
            let odd = self.machine.extract(bit, bit, index.clone());
            let mut halved = Vec::with_capacity(values.len() / 2);
            for pair in values.chunks_exact(2) {
                halved.push(self.machine.select(odd.clone(), pair[1].clone(), pair[0].clone()));
            }
            values = halved;
            bit += 1;
        }
        values.pop()
    }

    fn commit(self) {
        for write in self.writes {
            match write {
                Write::Scalar(register, value) => self.machine.write_scalar(register, value),
                Write::Lane(register, lane, value) => self.machine.write_lane(register, lane, value),
                Write::Mask(value) => self.machine.write_mask(value),
                Write::Store {
                    space,
                    address,
                    bytes,
                    value,
                    condition,
                } => self.machine.store(space, address, bytes, value, condition),
                Write::Control(effect) => self.machine.control(effect),
            }
        }
    }
}
