//! A machine of numbers: an evaluator of the semantics in td.

use super::bits::Bits;
use npu_mc::machine::{ControlRegister, SCRATCHPAD_SIZE, TrapReason};
use npu_mc::semantics::{Algebra, BinaryOp, ControlEffect, FloatFunction, Machine, Space, UnaryOp};
use npu_mc::{Reg, SReg, VReg};
use npu_sim::fp;

/// The effects of one instruction, from the state of thread 0 of the simulator.
pub struct Evaluator<'a> {
    pub before: &'a npu_sim::Machine,
    /// Whether the machine reports the known values, so that the executor takes its short paths.
    pub knows: bool,
    pub scalars: Vec<(u8, Bits)>,
    /// Register, lane, value.
    pub lanes: Vec<(u8, u32, Bits)>,
    pub mask: Option<Bits>,
    /// Stored bytes; of several entries for an address the last one counts.
    pub bytes: Vec<(Space, u32, Option<u8>)>,
    pub trap: Option<TrapReason>,
    pub stuck: Option<Option<Reg>>,
    pub effect: Option<ControlEffect<Bits>>,
    pub control_read: Option<u64>,
}

impl<'a> Evaluator<'a> {
    /// Returns the number written to a scalar register, if it is defined.
    pub fn scalar(&self, register: u8) -> Option<u64> {
        let (_, value) = self.scalars.iter().find(|(r, _)| *r == register)?;
        value.number()
    }

    /// Returns the number written to a lane, if it is defined.
    pub fn lane(&self, register: u8, lane: u32) -> Option<u64> {
        let (.., value) = self.lanes.iter().find(|(r, l, _)| (*r, *l) == (register, lane))?;
        value.number()
    }

    pub fn new(before: &'a npu_sim::Machine, knows: bool) -> Evaluator<'a> {
        Evaluator {
            before,
            knows,
            scalars: Vec::new(),
            lanes: Vec::new(),
            mask: None,
            bytes: Vec::new(),
            trap: None,
            stuck: None,
            effect: None,
            control_read: None,
        }
    }

    fn address(space: Space, address: u32) -> u32 {
        match space {
            Space::Main => address,
            Space::Scratchpad => address % SCRATCHPAD_SIZE,
        }
    }
}

/// Returns the value of a condition, which the semantics always define.
fn holds(condition: &Bits) -> bool {
    condition.number().expect("the condition is defined") == 1
}

impl Algebra for Evaluator<'_> {
    type Value = Bits;

    fn constant(&mut self, width: u32, bits: u64) -> Bits {
        Bits::new(width, bits)
    }

    fn known(&self, value: &Bits) -> Option<u64> {
        if self.knows { value.number() } else { None }
    }

    fn unary(&mut self, op: UnaryOp, a: Bits) -> Bits {
        a.unary(op)
    }

    fn binary(&mut self, op: BinaryOp, a: Bits, b: Bits) -> Bits {
        a.binary(op, &b)
    }

    fn select(&mut self, condition: Bits, then: Bits, other: Bits) -> Bits {
        condition.select(&then, &other)
    }

    fn extract(&mut self, high: u32, low: u32, a: Bits) -> Bits {
        a.extract(high, low)
    }

    fn concat(&mut self, high: Bits, low: Bits) -> Bits {
        high.concat(&low)
    }

    fn zero_extend(&mut self, width: u32, a: Bits) -> Bits {
        a.zero_extend(width)
    }

    fn sign_extend(&mut self, width: u32, a: Bits) -> Bits {
        a.sign_extend(width)
    }

    fn float(&mut self, function: FloatFunction, operands: &[Bits]) -> Bits {
        let numbers: Option<Vec<u32>> = operands.iter().map(|o| o.number().map(|n| n as u32)).collect();
        let result = match (function, numbers.as_deref()) {
            (FloatFunction::Add, Some([a, b])) => fp::add(*a, *b),
            (FloatFunction::Sub, Some([a, b])) => fp::sub(*a, *b),
            (FloatFunction::Mul, Some([a, b])) => fp::mul(*a, *b),
            (FloatFunction::Div, Some([a, b])) => fp::div(*a, *b),
            (FloatFunction::FromInt, Some([a])) => fp::from_int(*a),
            (FloatFunction::ToInt, Some([a])) => fp::to_int(*a),
            (function, operands) => panic!("{function:?} of {operands:?}"),
        };
        Bits::new(32, u64::from(result))
    }

    fn undefined(&mut self, width: u32) -> Bits {
        Bits::undefined(width)
    }
}

impl Machine for Evaluator<'_> {
    fn read_scalar(&mut self, register: u8) -> Bits {
        assert_ne!(register, SReg::PC.number(), "the executor knows the pc");
        assert!(self.scalars.is_empty(), "all reads come before writes");
        let register = SReg::new(register).expect("a register");
        Bits::new(32, u64::from(self.before.thread(0).scalar(register)))
    }

    fn write_scalar(&mut self, register: u8, value: Bits) {
        assert_eq!(value.width, 32);
        let written = self.scalars.iter().any(|(other, _)| *other == register);
        assert!(!written, "written twice");
        self.scalars.push((register, value));
    }

    fn read_lane(&mut self, register: u8, lane: u32) -> Bits {
        assert!(self.lanes.is_empty(), "all reads come before writes");
        let register = VReg::new(register).expect("a register");
        Bits::new(32, u64::from(self.before.thread(0).vector(register).0[lane as usize]))
    }

    fn write_lane(&mut self, register: u8, lane: u32, value: Bits) {
        assert_eq!(value.width, 32);
        let written = self.lanes.iter().any(|(r, l, _)| (*r, *l) == (register, lane));
        assert!(!written, "written twice");
        self.lanes.push((register, lane, value));
    }

    fn read_mask(&mut self) -> Bits {
        Bits::new(16, u64::from(self.before.thread(0).mask()))
    }

    fn write_mask(&mut self, value: Bits) {
        assert_eq!(value.width, 16);
        assert!(self.mask.replace(value).is_none(), "written twice");
    }

    fn load(&mut self, space: Space, address: Bits, bytes: u32, condition: Bits) -> Bits {
        assert!(self.bytes.is_empty(), "all reads come before writes");
        if !holds(&condition) {
            return Bits::undefined(8 * bytes);
        }
        let address = address.number().expect("the address is defined") as u32;
        let byte = |index: u32| {
            let at = Self::address(space, address.wrapping_add(index));
            match space {
                Space::Main => self.before.memory().read_u8(at),
                Space::Scratchpad => self.before.scratchpad()[at as usize],
            }
        };
        let mut value = Bits::new(8, u64::from(byte(0)));
        for index in 1..bytes {
            value = Bits::new(8, u64::from(byte(index))).concat(&value);
        }
        value
    }

    fn store(&mut self, space: Space, address: Bits, bytes: u32, value: Bits, condition: Bits) {
        assert_eq!(value.width, 8 * bytes);
        if !holds(&condition) {
            return;
        }
        let address = address.number().expect("the address is defined") as u32;
        for index in 0..bytes {
            let at = Self::address(space, address.wrapping_add(index));
            self.bytes.push((space, at, value.byte(index)));
        }
    }

    fn read_control(&mut self, register: Bits) -> Bits {
        assert_eq!(register.width, 6);
        let number = register.number().expect("the number is defined");
        self.control_read = Some(number);
        match ControlRegister::from_number(number as u8) {
            Some(register) => Bits::new(32, u64::from(self.before.control_register(0, register))),
            None => Bits::undefined(32),
        }
    }

    fn trap(&mut self, reason: TrapReason, condition: Bits) -> bool {
        let trapped = holds(&condition);
        if trapped {
            self.trap = Some(reason);
        }
        trapped
    }

    fn never_completes(&mut self, register: Option<Reg>, condition: Bits) -> bool {
        let stuck = holds(&condition);
        if stuck {
            self.stuck = Some(register);
        }
        stuck
    }

    fn control(&mut self, effect: ControlEffect<Bits>) {
        assert!(self.effect.replace(effect).is_none(), "more than one effect");
    }
}
