//! Vector registers in translations: they stay in memory, each in four parts that the host has registers for, and what is stored in one
//! is known until the next call.

use super::host::State;
use super::region::Source;
use super::translate::{Builder, Known};
use super::units;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{I32, I32X4, I64};
use cranelift_codegen::ir::{AbiParam, AliasRegionData, InstBuilder, MemFlagsData, Signature, Value};
use npu_mc::raw::AluOp;
use std::mem::offset_of;

/// Parts of a vector register, of four lanes each.
const PARTS: i32 = 4;

/// Bytes of a part.
const PART: i32 = 16;

/// An operand of an operation on lanes.
#[derive(Clone, Copy)]
enum Operand {
    Vector(u8),
    /// A part that all parts are like.
    Same(Value),
}

/// An operation that the host has instructions for.
#[derive(Clone, Copy)]
enum InLine {
    Copy,
    Not,
    /// Lanes that are shifted up by so many bits, and back with copies of the sign.
    Extend(u32),
    Shift(Shift, Amount),
    Binary(Binary),
}

#[derive(Clone, Copy)]
enum Binary {
    Or,
    And,
    Xor,
    Add,
    Sub,
    Mul,
}

#[derive(Clone, Copy)]
enum Shift {
    Left,
    Right,
    /// [`crate::alu::ashr`], by an immediate only.
    Signed,
}

/// The same for all lanes.
#[derive(Clone, Copy)]
enum Amount {
    Immediate(u32),
    Scalar(u8),
}

/// What the host does for an operation with this second operand; `None` for those that are called.
#[expect(clippy::wildcard_enum_match_arm, reason = "all others are called")]
fn in_line(op: AluOp, b: Source) -> Option<InLine> {
    let shift = |shift| match b {
        Source::Immediate(amount) => Some(InLine::Shift(shift, Amount::Immediate(amount))),
        Source::Scalar(number) => Some(InLine::Shift(shift, Amount::Scalar(number))),
        Source::Vector(_) => None,
    };
    match op {
        AluOp::Move | AluOp::Sext32 => Some(InLine::Copy),
        AluOp::Not => Some(InLine::Not),
        AluOp::Sext8 => Some(InLine::Extend(24)),
        AluOp::Sext16 => Some(InLine::Extend(16)),
        AluOp::Or => Some(InLine::Binary(Binary::Or)),
        AluOp::And => Some(InLine::Binary(Binary::And)),
        AluOp::Xor => Some(InLine::Binary(Binary::Xor)),
        AluOp::Add => Some(InLine::Binary(Binary::Add)),
        AluOp::Sub => Some(InLine::Binary(Binary::Sub)),
        AluOp::Mull => Some(InLine::Binary(Binary::Mul)),
        AluOp::Shl => shift(Shift::Left),
        AluOp::Shr => shift(Shift::Right),
        AluOp::Ashr if matches!(b, Source::Immediate(_)) => shift(Shift::Signed),
        _ => None,
    }
}

impl Builder<'_> {
    /// What is said of an access to a part of a register: that it is of no other part, nor of memory.
    fn of_part(&mut self, register: u8, part: i32) -> MemFlagsData {
        let region = self.b.func.dfg.alias_regions.insert(AliasRegionData {
            user_id: u32::from(register & 63) * PARTS as u32 + part as u32,
            description: "part of a vector register".into(),
        });
        MemFlagsData::trusted().with_alias_region(Some(region))
    }

    fn read(&mut self, register: u8, part: i32) -> Value {
        let flags = self.of_part(register, part);
        let offset = i32::from(register & 63) * PARTS * PART + part * PART;
        self.b.ins().load(I32X4, flags, self.vectors, offset)
    }

    /// Writes a part of a register, as far as its lanes are on.
    fn write(&mut self, register: u8, part: i32, new: Value, full: bool) {
        let value = if full {
            new
        } else {
            let old = self.read(register, part);
            let offset = offset_of!(State<'_>, lanes) as i32 + part * PART;
            let on = self.b.ins().load(I32X4, MemFlagsData::trusted(), self.state, offset);
            self.b.ins().bitselect(on, new, old)
        };
        let flags = self.of_part(register, part);
        let offset = i32::from(register & 63) * PARTS * PART + part * PART;
        self.b.ins().store(flags, value, self.vectors, offset);
    }

    fn splat(&mut self, value: u32) -> Value {
        let value = self.constant(value);
        self.b.ins().splat(I32X4, value)
    }

    fn operand(&mut self, source: Source) -> Operand {
        match source {
            Source::Vector(number) => Operand::Vector(number),
            Source::Scalar(number) => {
                let value = self.register(number);
                Operand::Same(self.b.ins().splat(I32X4, value))
            }
            Source::Immediate(value) => Operand::Same(self.splat(value)),
        }
    }

    fn part(&mut self, operand: Operand, part: i32) -> Value {
        match operand {
            Operand::Vector(number) => self.read(number, part),
            Operand::Same(value) => value,
        }
    }

    /// A copy of 64 bytes of memory in a register.
    pub fn load_vector(&mut self, register: u8, place: Value, full: bool) {
        for part in 0..PARTS {
            let value = self.b.ins().load(I32X4, MemFlagsData::trusted(), place, part * PART);
            self.write(register, part, value, full);
        }
    }

    /// A copy of a register in 64 bytes of memory.
    pub fn store_vector(&mut self, register: u8, place: Value) {
        for part in 0..PARTS {
            let value = self.read(register, part);
            self.b.ins().store(MemFlagsData::trusted(), value, place, part * PART);
        }
    }

    /// Vd = a op b, in the lanes that are on.
    pub fn lanes(&mut self, op: AluOp, d: u8, [a, b]: [Source; 2], full: bool) {
        let Some(in_line) = in_line(op, b) else {
            self.call_lanes(op, d, [a, b], full);
            return;
        };
        let (first, second) = (self.operand(a), self.operand(b));
        for part in 0..PARTS {
            let x = self.part(first, part);
            let value = match in_line {
                InLine::Copy => x,
                InLine::Not => self.b.ins().bnot(x),
                InLine::Extend(bits) => {
                    let bits = self.constant(bits);
                    let up = self.b.ins().ishl(x, bits);
                    self.b.ins().sshr(up, bits)
                }
                InLine::Shift(shift, amount) => self.shifted(shift, x, amount),
                InLine::Binary(binary) => {
                    let y = self.part(second, part);
                    let ins = self.b.ins();
                    match binary {
                        Binary::Or => ins.bor(x, y),
                        Binary::And => ins.band(x, y),
                        Binary::Xor => ins.bxor(x, y),
                        Binary::Add => ins.iadd(x, y),
                        Binary::Sub => ins.isub(x, y),
                        Binary::Mul => ins.imul(x, y),
                    }
                }
            };
            self.write(d, part, value, full);
        }
    }

    /// A part shifted by the same amount in all lanes.
    fn shifted(&mut self, shift: Shift, x: Value, amount: Amount) -> Value {
        match (shift, amount) {
            (Shift::Signed, Amount::Immediate(amount @ 32..64)) => {
                // What is left are copies of the sign, and zeros above them.
                let [last, rest] = [31, amount - 32].map(|amount| self.constant(amount));
                let signs = self.b.ins().sshr(x, last);
                self.b.ins().ushr(signs, rest)
            }
            (_, Amount::Immediate(32..)) => self.splat(0),
            (_, Amount::Immediate(amount)) => {
                let amount = self.constant(amount);
                self.shifted_in_range(shift, x, amount)
            }
            (_, Amount::Scalar(number)) => {
                let amount = self.register(number);
                let shifted = self.shifted_in_range(shift, x, amount);
                let bits = self.constant(32);
                let inside = self.b.ins().icmp(IntCC::UnsignedLessThan, amount, bits);
                let inside = self.b.ins().uextend(I32, inside);
                let inside = self.b.ins().ineg(inside);
                let inside = self.b.ins().splat(I32X4, inside);
                self.b.ins().band(shifted, inside)
            }
        }
    }

    fn shifted_in_range(&mut self, shift: Shift, x: Value, amount: Value) -> Value {
        match shift {
            Shift::Left => self.b.ins().ishl(x, amount),
            Shift::Right => self.b.ins().ushr(x, amount),
            Shift::Signed => self.b.ins().sshr(x, amount),
        }
    }

    /// The lanes in which a compare of floats holds.
    pub fn compare(&mut self, op: AluOp, operands: [Source; 2]) -> Value {
        match self.call_unit(op, 0, operands, true) {
            Some(value) => value,
            None => self.constant(0),
        }
    }

    /// An operation that is called: that on whole registers, if all lanes are on and it has one.
    fn call_lanes(&mut self, op: AluOp, d: u8, [a, b]: [Source; 2], full: bool) {
        let unit = units::lane_unit(op).filter(|_| full);
        let (Some(unit), Source::Vector(first)) = (unit, a) else {
            self.call_unit(op, d, [a, b], false);
            return;
        };
        let (address, last, second) = match b {
            Source::Vector(number) => (unit.with_vector as usize, I64, self.place_of(number)),
            Source::Scalar(number) => (unit.with_scalar as usize, I32, self.register(number)),
            Source::Immediate(value) => (unit.with_scalar as usize, I32, self.constant(value)),
        };
        let [d, first] = [d, first].map(|number| self.place_of(number));
        let mut signature = Signature::new(self.config.default_call_conv);
        signature.params.extend([I64, I64, last].map(AbiParam::new));
        let signature = self.b.import_signature(signature);
        let address = self.b.ins().iconst(I64, address as i64);
        self.b.ins().call_indirect(signature, address, &[d, first, second]);
    }

    /// Where a register is.
    fn place_of(&mut self, register: u8) -> Value {
        let offset = i64::from(register & 63) * i64::from(PARTS * PART);
        let offset = self.b.ins().iconst(I64, offset);
        self.b.ins().iadd(self.vectors, offset)
    }

    /// Calls [`units::vector`] or [`units::compare`].
    fn call_unit(&mut self, op: AluOp, d: u8, [a, b]: [Source; 2], compares: bool) -> Option<Value> {
        let packed = self.b.ins().iconst(I64, units::packed(op, d, a, b) as i64);
        let scalar = match (a, b) {
            (Source::Scalar(number), _) | (_, Source::Scalar(number)) => self.register(number),
            (Source::Immediate(value), _) | (_, Source::Immediate(value)) => self.constant(value),
            (Source::Vector(_), Source::Vector(_)) => self.constant(0),
        };
        let mut signature = Signature::new(self.config.default_call_conv);
        signature.params.extend([I64, I64, I32].map(AbiParam::new));
        let address = if compares {
            signature.returns.push(AbiParam::new(I32));
            units::compare as *const () as usize
        } else {
            units::vector as *const () as usize
        };
        let signature = self.b.import_signature(signature);
        let address = self.b.ins().iconst(I64, address as i64);
        let call = self
            .b
            .ins()
            .call_indirect(signature, address, &[self.state, packed, scalar]);
        self.b.inst_results(call).first().copied()
    }

    /// `rm` was set to `value`: goes on at `pc`, in one of two ways.
    pub fn set_mask(&mut self, value: Value, pc: u32) {
        let low = self.constant(0xffff);
        let mask = self.b.ins().band(value, low);
        let offset = offset_of!(State<'_>, mask) as i32;
        self.b.ins().store(MemFlagsData::trusted(), mask, self.state, offset);
        let partial = self.b.ins().icmp(IntCC::NotEqual, mask, low);
        let (partial, full) = self.split(partial);
        self.b.switch_to_block(full);
        self.go(
            pc,
            Known {
                long: false,
                full: true,
            },
        );
        self.b.switch_to_block(partial);
        self.set_on(mask);
        self.go(
            pc,
            Known {
                long: false,
                full: false,
            },
        );
    }

    /// `rm` was set to a number: goes on at `pc`.
    pub fn set_constant_mask(&mut self, value: u32, pc: u32) {
        let mask = self.constant(value & 0xffff);
        let offset = offset_of!(State<'_>, mask) as i32;
        self.b.ins().store(MemFlagsData::trusted(), mask, self.state, offset);
        let full = value & 0xffff == 0xffff;
        if !full {
            self.set_on(mask);
        }
        self.go(pc, Known { long: false, full });
    }

    /// The bits of the lanes of a part in a mask, each in its lane.
    fn bits(&mut self, part: i32) -> Value {
        let bytes: Vec<u8> = (0..4)
            .flat_map(|lane| (1u32 << (4 * part + lane)).to_le_bytes())
            .collect();
        let constant = self.b.func.dfg.constants.insert(bytes.into());
        self.b.ins().vconst(I32X4, constant)
    }

    /// Notes which lanes are on.
    fn set_on(&mut self, mask: Value) {
        let mask = self.b.ins().splat(I32X4, mask);
        for part in 0..PARTS {
            let bits = self.bits(part);
            let hit = self.b.ins().band(mask, bits);
            let on = self.b.ins().icmp(IntCC::Equal, hit, bits);
            let offset = offset_of!(State<'_>, lanes) as i32 + part * PART;
            self.b.ins().store(MemFlagsData::trusted(), on, self.state, offset);
        }
    }
}
