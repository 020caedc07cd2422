//! Vector registers in translations. They stay in memory, each in four parts of the size of a host
//! register; a stored part can be forwarded until the next call.

use super::access::unaligned;
use super::operations::{Condition, Shift, Translation, translation};
use super::region::{Item, Source};
use super::state::State;
use super::translate::Builder;
use super::units::{self, LaneUnit};
use crate::operands::is_slow;
use crate::registers::LANES;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{I8X16, I32, I32X4, I64};
use cranelift_codegen::ir::{AbiParam, AliasRegionData, Endianness, InstBuilder, MemFlagsData, Signature, Value};
use npu_mc::raw::AluOp;
use std::mem::offset_of;

/// The number of parts of a vector register, of four lanes each.
const PARTS: i32 = 4;

/// The numbers of the parts.
const PART_NUMBERS: [i32; PARTS as usize] = [0, 1, 2, 3];

/// The number of bytes of a part.
const PART: i32 = 16;

/// An operand of an operation on lanes.
#[derive(Clone, Copy)]
enum Operand {
    Vector(u8),
    /// The same value for all parts.
    Same(Value),
}

/// A shift amount that is the same for all lanes.
#[derive(Clone, Copy)]
enum Amount {
    Immediate(u32),
    Scalar(u8),
}

impl Amount {
    fn of(source: Source) -> Option<Amount> {
        match source {
            Source::Immediate(amount) => Some(Amount::Immediate(amount)),
            Source::Scalar(number) => Some(Amount::Scalar(number)),
            Source::Vector(_) => None,
        }
    }
}

impl Builder<'_> {
    /// Returns the flags of an access to a part of a register: it aliases no other part and no
    /// memory.
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

    /// Writes the lanes of a part that are on.
    fn write(&mut self, register: u8, part: i32, new: Value) {
        let value = if self.known.full {
            new
        } else {
            let old = self.read(register, part);
            let on = self.on(part);
            self.b.ins().bitselect(on, new, old)
        };
        let flags = self.of_part(register, part);
        let offset = i32::from(register & 63) * PARTS * PART + part * PART;
        self.b.ins().store(flags, value, self.vectors, offset);
    }

    /// Returns the lane mask of a part, expanded to all bits of each lane.
    fn on(&mut self, part: i32) -> Value {
        let offset = offset_of!(State<'_>, lanes) as i32 + part * PART;
        self.b.ins().load(I32X4, MemFlagsData::trusted(), self.state, offset)
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

    /// Loads a register from 64 bytes of memory.
    pub fn load_vector(&mut self, register: u8, place: Value, flags: MemFlagsData) {
        for part in 0..PARTS {
            let value = self.b.ins().load(I32X4, flags, place, part * PART);
            self.write(register, part, value);
        }
    }

    /// Loads a register from the words of a line, without the `upper` topmost bits of each word,
    /// and extends them.
    pub fn load_extended(&mut self, register: u8, place: Value, upper: u32, signed: bool) {
        for part in 0..PARTS {
            let word = self.b.ins().load(I32X4, MemFlagsData::trusted(), place, part * PART);
            let upper = self.constant(upper);
            let word = self.b.ins().ishl(word, upper);
            let value = if signed {
                self.b.ins().sshr(word, upper)
            } else {
                self.b.ins().ushr(word, upper)
            };
            self.write(register, part, value);
        }
    }

    /// Stores a register to 64 bytes of memory.
    pub fn store_vector(&mut self, register: u8, place: Value) {
        for part in 0..PARTS {
            let value = self.read(register, part);
            self.b.ins().store(MemFlagsData::trusted(), value, place, part * PART);
        }
    }

    /// Stores the lanes of a register that are on to words of the scratchpad.
    pub fn store_lanes(&mut self, register: u8, place: Value) {
        for part in 0..PARTS {
            let new = self.read(register, part);
            let value = if self.known.full {
                new
            } else {
                let old = self.b.ins().load(I32X4, unaligned(), place, part * PART);
                let on = self.on(part);
                self.b.ins().bitselect(on, new, old)
            };
            self.b.ins().store(unaligned(), value, place, part * PART);
        }
    }

    /// Returns a lane of a register.
    pub fn lane(&mut self, register: u8, lane: i32) -> Value {
        let part = self.read(register, lane / PARTS);
        self.b.ins().extractlane(part, (lane % PARTS) as u8)
    }

    /// Emits Vd = (Vd & kept) | new in each lane.
    pub fn half_lanes(&mut self, register: u8, kept: u32, new: u32) -> bool {
        let (kept, new) = (self.splat(kept), self.splat(new));
        for part in 0..PARTS {
            let old = self.read(register, part);
            let old = self.b.ins().band(old, kept);
            let value = self.b.ins().bor(old, new);
            self.write(register, part, value);
        }
        false
    }

    /// Emits Sd = the lane of Va with this number, or with the number in Sb.
    pub fn get_lane(&mut self, item: &Item, done: usize, number: Option<u8>) -> bool {
        let op = item.op;
        let value = match number {
            Some(number) => self.lane(op.a, i32::from(number) % (PARTS * PARTS)),
            None => {
                let number = self.register(op.b);
                let lanes = self.constant(LANES as u32);
                let above = self.b.ins().icmp(IntCC::UnsignedGreaterThanOrEqual, number, lanes);
                self.leave_if(above, item.pc, done);
                let place = self.place_of(op.a);
                self.call(units::lane as *const () as usize, &[place, number])
            }
        };
        self.set(op.d, value);
        is_slow(AluOp::Getlane)
    }

    /// Emits Vd = the lanes of Va with the numbers in Vb. Leaves if a number exceeds the lanes.
    pub fn shuffle(&mut self, item: &Item, done: usize) -> bool {
        let op = item.op;
        let numbers = PART_NUMBERS.map(|part| self.read(op.b, part));
        let sources = PART_NUMBERS.map(|part| self.read(op.a, part));
        let mut all = numbers[0];
        for &part in &numbers[1..] {
            all = self.b.ins().bor(all, part);
        }
        let none = self.splat(!(LANES as u32 - 1));
        let above = self.b.ins().band(all, none);
        let above = self.b.ins().vany_true(above);
        self.leave_if(above, item.pc, done);
        // The byte numbers of a lane: its lowest byte number in all four bytes, plus 0 to 3.
        let [lowest, each] = [0x0404_0404, 0x0302_0100].map(|value| self.splat(value));
        let sources = sources.map(|part| self.as_bytes(part));
        let results = numbers.map(|part| {
            let first = self.b.ins().imul(part, lowest);
            let number = self.b.ins().iadd(first, each);
            let number = self.as_bytes(number);
            let mut result = None;
            for (source, from) in sources.into_iter().zip((0..).step_by(PART as usize)) {
                let inside = if from == 0 {
                    number
                } else {
                    let from = self.bytes(|_| from);
                    self.b.ins().isub(number, from)
                };
                // Bytes in other parts become 0.
                let found = self.b.ins().swizzle(source, inside);
                result = Some(match result {
                    None => found,
                    Some(result) => self.b.ins().bor(result, found),
                });
            }
            result.unwrap_or(number)
        });
        for (part, result) in PART_NUMBERS.into_iter().zip(results) {
            let flags = MemFlagsData::new().with_endianness(Endianness::Little);
            let lanes = self.b.ins().bitcast(I32X4, flags, result);
            self.write(op.d, part, lanes);
        }
        is_slow(AluOp::Shuffle)
    }

    fn as_bytes(&mut self, part: Value) -> Value {
        let flags = MemFlagsData::new().with_endianness(Endianness::Little);
        self.b.ins().bitcast(I8X16, flags, part)
    }

    /// Returns a part with these bytes.
    fn bytes(&mut self, value: impl Fn(u8) -> u8) -> Value {
        let bytes: Vec<u8> = (0..PART as u8).map(value).collect();
        let constant = self.b.func.dfg.constants.insert(bytes.into());
        self.b.ins().vconst(I8X16, constant)
    }

    /// Calls a function that returns a number.
    pub fn call(&mut self, function: usize, arguments: &[Value]) -> Value {
        let mut signature = Signature::new(self.config.default_call_conv);
        let kinds = arguments.iter().map(|&argument| self.b.func.dfg.value_type(argument));
        signature.params.extend(kinds.map(AbiParam::new));
        signature.returns.push(AbiParam::new(I32));
        let signature = self.b.import_signature(signature);
        let function = self.b.ins().iconst(I64, function as i64);
        let call = self.b.ins().call_indirect(signature, function, arguments);
        self.b.inst_results(call)[0]
    }

    /// Collects bit 0 of each lane into a bit set.
    pub fn low_bits(&mut self, register: u8) -> Value {
        self.gather_bits(|this, part| {
            let part = this.read(register, part);
            let up = this.constant(31);
            this.b.ins().ishl(part, up)
        })
    }

    /// Collects the sign bits of four parts into a bit set.
    fn gather_bits(&mut self, mut part_of: impl FnMut(&mut Self, i32) -> Value) -> Value {
        let mut set = None;
        for part in 0..PARTS {
            let value = part_of(self, part);
            let bits = self.b.ins().vhigh_bits(I32, value);
            set = Some(match set {
                None => bits,
                Some(set) => {
                    let lanes = self.constant((part * PARTS) as u32);
                    let bits = self.b.ins().ishl(bits, lanes);
                    self.b.ins().bor(set, bits)
                }
            });
        }
        match set {
            Some(set) => set,
            // Unreachable: the loop is not empty.
            None => self.constant(0),
        }
    }

    /// Emits Vd = a op b in the lanes that are on.
    pub fn lanes(&mut self, op: AluOp, d: u8, [a, b]: [Source; 2]) -> bool {
        match (translation(op), Amount::of(b)) {
            (Translation::Host(emit), _) => {
                let second = self.operand(b);
                self.each_part(d, a, |this, part, x| {
                    let y = this.part(second, part);
                    emit(this, x, y)
                });
            }
            (Translation::Extend(low), _) => self.each_part(d, a, |this, _, x| {
                let above = this.constant(I32.bits() - low.bits());
                let up = this.b.ins().ishl(x, above);
                this.b.ins().sshr(up, above)
            }),
            (Translation::Shift(shift @ (Shift::Left | Shift::Right), _), Some(amount))
            | (Translation::Shift(shift @ Shift::Signed, _), Some(amount @ Amount::Immediate(_))) => {
                self.each_part(d, a, |this, _, x| this.shifted(shift, x, amount));
            }
            (Translation::Shift(_, unit) | Translation::Scalar(_, unit) | Translation::Call(_, unit), _) => {
                self.call_lanes(op, &unit, d, [a, b]);
            }
            // These are not operations by lanes.
            (Translation::Compare(_) | Translation::Other, _) => {}
        }
        is_slow(op)
    }

    /// Writes each part of a register; `part_of` computes it from the part of the first operand.
    fn each_part(&mut self, d: u8, a: Source, part_of: impl Fn(&mut Self, i32, Value) -> Value) {
        let first = self.operand(a);
        for part in 0..PARTS {
            let x = self.part(first, part);
            let value = part_of(self, part, x);
            self.write(d, part, value);
        }
    }

    /// Shifts a part by the same amount in all lanes.
    fn shifted(&mut self, shift: Shift, x: Value, amount: Amount) -> Value {
        match (shift, amount) {
            (Shift::Signed, Amount::Immediate(amount @ 32..64)) => {
                // The result consists of copies of the sign bit, with zeros above them.
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

    /// Returns the lanes in which a compare holds.
    pub fn compare(&mut self, condition: Condition, [a, b]: [Source; 2]) -> Value {
        let (first, second) = (self.operand(a), self.operand(b));
        self.gather_bits(|this, part| {
            let (x, y) = (this.part(first, part), this.part(second, part));
            this.holds(condition, x, y)
        })
    }

    /// Calls the function of an operation: a separate one if the first operand is a vector.
    fn call_lanes(&mut self, op: AluOp, unit: &LaneUnit, d: u8, [a, b]: [Source; 2]) {
        let Source::Vector(first) = a else {
            self.call_unit(op, d, [a, b]);
            return;
        };
        let [d, first] = [d, first].map(|number| self.place_of(number));
        let (kind, second) = match b {
            Source::Vector(number) => (I64, self.place_of(number)),
            Source::Scalar(number) => (I32, self.register(number)),
            Source::Immediate(value) => (I32, self.constant(value)),
        };
        let (mut kinds, mut arguments) = (vec![I64, I64, kind], vec![d, first, second]);
        let address = match (self.known.full, kind == I64) {
            (true, true) => unit.with_vector as usize,
            (true, false) => unit.with_scalar as usize,
            (false, true) => unit.with_vector_on as usize,
            (false, false) => unit.with_scalar_on as usize,
        };
        if !self.known.full {
            let offset = self.b.ins().iconst(I64, offset_of!(State<'_>, lanes) as i64);
            kinds.push(I64);
            arguments.push(self.b.ins().iadd(self.state, offset));
        }
        let mut signature = Signature::new(self.config.default_call_conv);
        signature.params.extend(kinds.into_iter().map(AbiParam::new));
        let signature = self.b.import_signature(signature);
        let address = self.b.ins().iconst(I64, address as i64);
        self.b.ins().call_indirect(signature, address, &arguments);
    }

    /// Returns the address of a register.
    fn place_of(&mut self, register: u8) -> Value {
        let offset = i64::from(register & 63) * i64::from(PARTS * PART);
        let offset = self.b.ins().iconst(I64, offset);
        self.b.ins().iadd(self.vectors, offset)
    }

    /// Calls [`units::vector`].
    fn call_unit(&mut self, op: AluOp, d: u8, [a, b]: [Source; 2]) {
        let packed = self.b.ins().iconst(I64, units::packed(op, d, a, b) as i64);
        let scalar = match (a, b) {
            (Source::Scalar(number), _) | (_, Source::Scalar(number)) => self.register(number),
            (Source::Immediate(value), _) | (_, Source::Immediate(value)) => self.constant(value),
            (Source::Vector(_), Source::Vector(_)) => self.constant(0),
        };
        let mut signature = Signature::new(self.config.default_call_conv);
        signature.params.extend([I64, I64, I32].map(AbiParam::new));
        let signature = self.b.import_signature(signature);
        let address = self.b.ins().iconst(I64, units::vector as *const () as i64);
        self.b
            .ins()
            .call_indirect(signature, address, &[self.state, packed, scalar]);
    }

    /// Sets `rm` to `value` and continues at `pc`, in the version for full or for partial masks.
    pub fn set_mask(&mut self, value: Value, pc: u32) {
        let low = self.constant(0xffff);
        let mask = self.b.ins().band(value, low);
        let offset = offset_of!(State<'_>, mask) as i32;
        self.b.ins().store(MemFlagsData::trusted(), mask, self.state, offset);
        self.go_masked(mask, pc);
    }

    /// Continues at `pc` in the version for full or for partial masks.
    pub fn go_masked(&mut self, mask: Value, pc: u32) {
        let low = self.constant(0xffff);
        let partial = self.b.ins().icmp(IntCC::NotEqual, mask, low);
        let (partial, full) = self.split(partial);
        self.b.switch_to_block(full);
        self.known.full = true;
        self.go(pc);
        self.b.switch_to_block(partial);
        self.set_on(mask);
        self.known.full = false;
        self.go(pc);
    }

    /// Sets `rm` to a constant and continues at `pc`.
    pub fn set_constant_mask(&mut self, value: u32, pc: u32) {
        let mask = self.constant(value & 0xffff);
        let offset = offset_of!(State<'_>, mask) as i32;
        self.b.ins().store(MemFlagsData::trusted(), mask, self.state, offset);
        self.known.full = value & 0xffff == 0xffff;
        if !self.known.full {
            self.set_on(mask);
        }
        self.go(pc);
    }

    /// Returns the lane mask bits of the lanes of a part, each in its lane.
    fn bits(&mut self, part: i32) -> Value {
        let bytes: Vec<u8> = (0..4)
            .flat_map(|lane| (1u32 << (4 * part + lane)).to_le_bytes())
            .collect();
        let constant = self.b.func.dfg.constants.insert(bytes.into());
        self.b.ins().vconst(I32X4, constant)
    }

    /// Expands the lane mask and stores it in the [`State`].
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
