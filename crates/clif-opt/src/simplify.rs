//! Simplification after unrolling, in one walk over the function: folds constants, numbers values
//! and loads, and moves constants in addresses into the offsets of accesses.
//!
//! The original body is already simplified. The copies only need folding of constants, sums of one
//! value with different constants, and values and loads that an earlier copy also has. This costs a
//! fraction of the time of Cranelift's simplification.
//!
//! An i32 is represented as a root value and a constant offset. Addresses go further: `(i + 1) <<
//! 2` has the root `i << 2`, which is emitted only if an access needs it, and once for all copies.

use super::access;
use super::edit::{self, Edge};
use super::loops;
use crate::clean::resolve_aliases;
use crate::{MEMORIES, Target};
use cranelift_codegen::Context;
use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::dominator_tree::DominatorTree;
use cranelift_codegen::entity::SecondaryMap;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Block, Function, Inst, InstBuilder, InstructionData, Opcode, Type, Value, types};
use rustc_hash::{FxBuildHasher, FxHashMap};

/// An operand of a value number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Operand {
    Value(Value),
    /// A value that no instruction computes yet: the number of its key.
    Pending(u32),
    Constant(u64),
    None,
}

/// A value number: instructions with the same key have the same result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Key {
    opcode: Opcode,
    ty: Type,
    /// The condition of a compare, or the memory and endianness of a load.
    detail: u32,
    operands: [Operand; 3],
}

impl Key {
    fn binary(opcode: Opcode, ty: Type, a: Operand, b: Operand) -> Self {
        let (a, b) = if commutes(opcode) && b < a { (b, a) } else { (a, b) };
        Self {
            opcode,
            ty,
            detail: 0,
            operands: [a, b, Operand::None],
        }
    }
}

fn commutes(opcode: Opcode) -> bool {
    matches!(
        opcode,
        Opcode::Iadd | Opcode::Imul | Opcode::Band | Opcode::Bor | Opcode::Bxor
    )
}

/// An i32 as a root and an offset; constants have the root [`Operand::None`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct RootOffset {
    root: Operand,
    offset: u32,
}

/// A version of the contents of memory, which changes with every store; 0 is none.
type Version = u32;

/// The state of the walk.
struct Simplifier<'a> {
    func: &'a mut Function,
    domtree: &'a DominatorTree,
    target: &'a dyn Target,
    /// The value of each key, and its block.
    known: FxHashMap<Key, (Value, Block)>,
    sums: SecondaryMap<Value, Option<RootOffset>>,
    pending: Vec<Key>,
    numbers: FxHashMap<Key, u32>,
    block: Block,
    /// The constants that are defined in the current block.
    constants: FxHashMap<(Type, u64), Value>,
    /// The bits of constants in all blocks visited so far.
    bits: SecondaryMap<Value, Option<u64>>,
    memory: [Version; MEMORIES],
    versions: Version,
    /// Whether a branch became a jump.
    branches: bool,
}

/// Simplifies the function. Requires the control-flow graph and the dominator tree. Returns whether
/// a branch became a jump; the analyses are then out of date.
pub fn run(ctx: &mut Context, target: &dyn Target) -> bool {
    let Some(entry) = ctx.func.layout.entry_block() else {
        return false;
    };
    let order: Vec<Block> = ctx.domtree.cfg_rpo().copied().collect();
    let mut simplifier = Simplifier {
        sums: SecondaryMap::with_capacity(ctx.func.dfg.num_values()),
        bits: SecondaryMap::with_capacity(ctx.func.dfg.num_values()),
        known: FxHashMap::with_capacity_and_hasher(ctx.func.dfg.num_insts() / 2, FxBuildHasher),
        func: &mut ctx.func,
        domtree: &ctx.domtree,
        target,
        pending: Vec::new(),
        numbers: FxHashMap::default(),
        block: entry,
        constants: FxHashMap::default(),
        memory: [0; MEMORIES],
        versions: 0,
        branches: false,
    };
    let mut ends: SecondaryMap<Block, [Version; MEMORIES]> = SecondaryMap::new();
    for &block in &order {
        simplifier.block = block;
        simplifier.constants.clear();
        for space in 0..MEMORIES {
            let mut before = ctx.cfg.pred_iter(block).map(|pred| ends[pred.block][space]);
            let first = before.next().unwrap_or(0);
            simplifier.memory[space] = if first != 0 && before.all(|other| other == first) {
                first
            } else {
                simplifier.new_version()
            };
        }
        let mut next = simplifier.func.layout.first_inst(block);
        while let Some(inst) = next {
            next = simplifier.func.layout.next_inst(inst);
            simplifier.visit(inst);
        }
        ends[block] = simplifier.memory;
    }
    let branches = simplifier.branches;
    resolve_aliases(&mut ctx.func);
    remove_dead(&mut ctx.func, order.iter().rev().copied());
    branches
}

impl Simplifier<'_> {
    fn new_version(&mut self) -> Version {
        self.versions += 1;
        self.versions
    }

    fn visit(&mut self, inst: Inst) {
        let data = self.func.dfg.insts[inst];
        match data {
            InstructionData::UnaryImm {
                opcode: Opcode::Iconst, ..
            } => self.constant(inst),
            InstructionData::Unary { opcode, arg } => self.unary(inst, opcode, arg),
            InstructionData::Binary { opcode, args } => self.binary(inst, opcode, args),
            InstructionData::IntCompare { opcode, cond, args } => self.compare(inst, opcode, cond, args),
            InstructionData::FloatCompare { opcode, cond, args } => {
                let [a, b] = args.map(|arg| Operand::Value(self.resolve(arg)));
                let ty = self.func.dfg.value_type(args[0]);
                let detail = cond as u32;
                self.number(
                    inst,
                    Key {
                        opcode,
                        ty,
                        detail,
                        operands: [a, b, Operand::None],
                    },
                );
            }
            InstructionData::Ternary { opcode, args } => self.ternary(inst, opcode, args),
            InstructionData::Load { opcode, .. } => self.load(inst, opcode),
            InstructionData::Store { opcode, args, .. } => self.store(inst, opcode, args[0]),
            InstructionData::Brif { arg, .. } => {
                if let Some(number) = self.bits(arg) {
                    let number = usize::from(number == 0);
                    edit::make_unconditional(self.func, Edge { inst, number });
                    self.branches = true;
                }
            }
            _ => {
                let opcode = data.opcode();
                if opcode.can_store() || opcode.is_call() || opcode.other_side_effects() {
                    self.memory = std::array::from_fn(|_| self.new_version());
                }
            }
        }
    }

    fn resolve(&self, value: Value) -> Value {
        self.func.dfg.resolve_aliases(value)
    }

    /// Returns the bits of a constant.
    fn bits(&self, value: Value) -> Option<u64> {
        self.bits[self.resolve(value)]
    }

    /// Returns the value as an operand. Equal constants of different types are equal operands.
    fn operand(&self, value: Value) -> Operand {
        let value = self.resolve(value);
        self.bits[value].map_or(Operand::Value(value), Operand::Constant)
    }

    /// Removes the instruction and replaces its result by the value.
    fn replace(&mut self, inst: Inst, value: Value) {
        let result = self.func.dfg.first_result(inst);
        self.func.dfg.clear_results(inst);
        self.func.dfg.change_to_alias(result, value);
        self.func.layout.remove_inst(inst);
    }

    /// Replaces the result of the instruction by a constant.
    fn fold(&mut self, inst: Inst, ty: Type, bits: u64) {
        let value = self.make_constant(inst, ty, bits);
        self.replace(inst, value);
    }

    fn make_constant(&mut self, before: Inst, ty: Type, bits: u64) -> Value {
        let bits = bits & loops::mask(ty);
        let (func, known) = (&mut *self.func, &mut self.bits);
        *self.constants.entry((ty, bits)).or_insert_with(|| {
            let unused = 64 - ty.bits();
            let mut cursor = FuncCursor::new(func).at_inst(before);
            let made = cursor.ins().iconst(ty, (bits << unused).cast_signed() >> unused);
            known[made] = Some(bits);
            made
        })
    }

    /// Records a constant, or replaces it by an equal one in the same block.
    fn constant(&mut self, inst: Inst) {
        let result = self.func.dfg.first_result(inst);
        let ty = self.func.dfg.value_type(result);
        let Some(bits) = loops::constant(self.func, result) else {
            return;
        };
        self.bits[result] = Some(bits);
        match self.constants.get(&(ty, bits)) {
            Some(&same) => self.replace(inst, same),
            None => {
                self.constants.insert((ty, bits), result);
            }
        }
    }

    /// Returns the value of the key if it dominates the current block.
    fn find(&self, key: &Key) -> Option<Value> {
        let &(value, block) = self.known.get(key)?;
        self.domtree
            .block_dominates(block, self.block)
            .then(|| self.resolve(value))
    }

    /// Replaces the instruction by an earlier one with the same key, or records it. Returns whether
    /// it remains.
    fn number(&mut self, inst: Inst, key: Key) -> bool {
        if let Some(same) = self.find(&key) {
            self.replace(inst, same);
            return false;
        }
        let result = self.func.dfg.first_result(inst);
        self.known.insert(key, (result, self.block));
        true
    }

    /// Returns the type of the result if the instruction is pure and has one result.
    fn pure(&self, inst: Inst, opcode: Opcode) -> Option<Type> {
        let &[result] = self.func.dfg.inst_results(inst) else {
            return None;
        };
        edit::is_pure(opcode).then(|| self.func.dfg.value_type(result))
    }

    fn unary(&mut self, inst: Inst, opcode: Opcode, arg: Value) {
        let Some(ty) = self.pure(inst, opcode) else {
            return;
        };
        let arg = self.resolve(arg);
        let from = self.func.dfg.value_type(arg);
        if let Some(bits) = self.bits(arg).filter(|_| ty.is_int() && ty.bits() <= 64) {
            let folded = match opcode {
                Opcode::Uextend | Opcode::Ireduce => Some(bits),
                Opcode::Sextend => Some(signed(bits, from).cast_unsigned()),
                Opcode::Bnot => Some(!bits),
                Opcode::Ineg => Some(bits.wrapping_neg()),
                _ => None,
            };
            if let Some(bits) = folded {
                return self.fold(inst, ty, bits);
            }
        }
        self.number(
            inst,
            Key {
                opcode,
                ty,
                detail: 0,
                operands: [Operand::Value(arg), Operand::None, Operand::None],
            },
        );
    }

    fn binary(&mut self, inst: Inst, opcode: Opcode, args: [Value; 2]) {
        let result = self.func.dfg.inst_results(inst).first().copied();
        let Some(result) = result.filter(|_| self.func.dfg.inst_results(inst).len() == 1) else {
            return;
        };
        let ty = self.func.dfg.value_type(result);
        let [a, b] = args.map(|arg| self.resolve(arg));
        let (left, right) = (self.operand(a), self.operand(b));
        if ty.is_int() && ty.bits() <= 64 {
            if let (Operand::Constant(a), Operand::Constant(b)) = (left, right)
                && let Some(bits) = fold(opcode, ty, a, b)
            {
                return self.fold(inst, ty, bits);
            }
            match identity(opcode, ty, left, right) {
                Some(Identity::Left) => return self.replace(inst, a),
                Some(Identity::Right) => return self.replace(inst, b),
                Some(Identity::Number(bits)) => return self.fold(inst, ty, bits),
                Some(Identity::Shifted(amount)) => {
                    let value = if matches!(left, Operand::Constant(_)) { b } else { a };
                    let amount = self.make_constant(inst, ty, amount);
                    self.func.replace(inst).ishl(value, amount);
                    return self.binary(inst, Opcode::Ishl, [value, amount]);
                }
                None => {}
            }
        }
        if !edit::is_pure(opcode) {
            return;
        }
        if ty != types::I32 {
            self.number(inst, Key::binary(opcode, ty, left, right));
            return;
        }
        let sum = self.binary_sum(opcode, [a, b], [left, right]);
        let mut key = Key::binary(opcode, ty, left, right);
        if let Some(sum) = sum
            && let Operand::Value(root) = sum.root
        {
            if sum.offset == 0 {
                return self.replace(inst, root);
            }
            // Adds the total offset to the root, so that the sum does not depend on earlier sums.
            let sums = matches!(opcode, Opcode::Iadd | Opcode::Isub);
            let constant = matches!(left, Operand::Constant(_)) || matches!(right, Operand::Constant(_));
            if sums && constant {
                key = Key::binary(Opcode::Iadd, ty, sum.root, Operand::Constant(sum.offset.into()));
                if let Some(same) = self.find(&key) {
                    return self.replace(inst, same);
                }
                if root != a {
                    let offset = self.make_constant(inst, ty, sum.offset.into());
                    self.func.replace(inst).iadd(root, offset);
                }
            }
        }
        if self.number(inst, key) {
            self.sums[result] = sum;
        }
    }

    /// Returns the value as a root and an offset.
    fn sum(&self, value: Value, operand: Operand) -> RootOffset {
        match operand {
            Operand::Constant(bits) => RootOffset {
                root: Operand::None,
                offset: word(bits),
            },
            _ => self.sums[value].unwrap_or(RootOffset {
                root: operand,
                offset: 0,
            }),
        }
    }

    /// Returns the result of an operation as a root and an offset, unless the root is the result
    /// itself.
    fn binary_sum(&mut self, opcode: Opcode, args: [Value; 2], operands: [Operand; 2]) -> Option<RootOffset> {
        let [a, b] = args;
        match (opcode, operands) {
            (Opcode::Iadd | Opcode::Isub, [left, right]) => {
                let (a, b) = (self.sum(a, left), self.sum(b, right));
                let minus = opcode == Opcode::Isub;
                let offset = if minus {
                    a.offset.wrapping_sub(b.offset)
                } else {
                    a.offset.wrapping_add(b.offset)
                };
                let root = match (a.root, b.root) {
                    (root, Operand::None) => root,
                    (Operand::None, root) if !minus => root,
                    (Operand::None, _) => return None,
                    (x, y) if x == left && y == right => return None,
                    (x, y) => self.root(Key::binary(opcode, types::I32, x, y)),
                };
                Some(RootOffset { root, offset })
            }
            (Opcode::Ishl | Opcode::Imul, [left, Operand::Constant(number)]) => {
                let sum = self.sum(a, left);
                if sum.root == left {
                    return None;
                }
                let (number, factor) = match opcode {
                    Opcode::Ishl => (number & 31, 1 << (number & 31)),
                    _ => (number, word(number)),
                };
                let key = Key::binary(opcode, types::I32, sum.root, Operand::Constant(number));
                Some(RootOffset {
                    root: self.root(key),
                    offset: sum.offset.wrapping_mul(factor),
                })
            }
            _ => None,
        }
    }

    /// Returns the operand for a key, without an instruction if none computes it yet.
    fn root(&mut self, key: Key) -> Operand {
        if let Some(value) = self.find(&key) {
            return Operand::Value(value);
        }
        let next = self.pending.len() as u32;
        let number = *self.numbers.entry(key).or_insert(next);
        if number == next {
            self.pending.push(key);
        }
        Operand::Pending(number)
    }

    /// Returns the operand as a value; emits it before the instruction if necessary.
    fn materialize(&mut self, before: Inst, operand: Operand) -> Option<Value> {
        match operand {
            Operand::Value(value) => Some(value),
            Operand::Constant(bits) => Some(self.make_constant(before, types::I32, bits)),
            Operand::Pending(number) => {
                let key = *self.pending.get(number as usize)?;
                self.materialize_key(before, key)
            }
            Operand::None => None,
        }
    }

    fn materialize_key(&mut self, before: Inst, key: Key) -> Option<Value> {
        if let Some(value) = self.find(&key) {
            return Some(value);
        }
        let [a, b, _] = key.operands;
        let (left, right) = (self.materialize(before, a)?, self.materialize(before, b)?);
        let made = Key::binary(key.opcode, key.ty, self.operand(left), self.operand(right));
        let value = match self.find(&made) {
            Some(value) => value,
            None => {
                let mut cursor = FuncCursor::new(self.func).at_inst(before);
                cursor.use_srcloc(before);
                match key.opcode {
                    Opcode::Iadd => cursor.ins().iadd(left, right),
                    Opcode::Isub => cursor.ins().isub(left, right),
                    Opcode::Imul => cursor.ins().imul(left, right),
                    Opcode::Ishl => cursor.ins().ishl(left, right),
                    _ => return None,
                }
            }
        };
        self.known.insert(made, (value, self.block));
        self.known.insert(key, (value, self.block));
        Some(value)
    }

    fn compare(&mut self, inst: Inst, opcode: Opcode, cond: IntCC, args: [Value; 2]) {
        let Some(ty) = self.pure(inst, opcode) else {
            return;
        };
        let [a, b] = args.map(|arg| self.resolve(arg));
        let (left, right) = (self.operand(a), self.operand(b));
        let of = self.func.dfg.value_type(a);
        let known = match (left, right) {
            (Operand::Constant(a), Operand::Constant(b)) => Some(compares(cond, of, a, b)),
            _ if of == types::I32 && matches!(cond, IntCC::Equal | IntCC::NotEqual) => {
                let (a, b) = (self.sum(a, left), self.sum(b, right));
                (a.root == b.root).then(|| (a.offset == b.offset) == (cond == IntCC::Equal))
            }
            _ => None,
        };
        if let Some(known) = known.filter(|_| of.is_int() && ty.is_int()) {
            return self.fold(inst, ty, known.into());
        }
        self.number(
            inst,
            Key {
                opcode,
                ty: of,
                detail: cond as u32,
                operands: [left, right, Operand::None],
            },
        );
    }

    fn ternary(&mut self, inst: Inst, opcode: Opcode, args: [Value; 3]) {
        let Some(ty) = self.pure(inst, opcode) else {
            return;
        };
        let args = args.map(|arg| self.resolve(arg));
        if opcode == Opcode::Select {
            let [condition, then, other] = args;
            match self.bits(condition) {
                Some(0) => return self.replace(inst, other),
                Some(_) => return self.replace(inst, then),
                None if then == other => return self.replace(inst, then),
                None => {}
            }
        }
        let operands = args.map(|arg| self.operand(arg));
        self.number(
            inst,
            Key {
                opcode,
                ty,
                detail: 0,
                operands,
            },
        );
    }

    /// Rewrites the address of an access to a root and an offset in range. Returns root and total
    /// offset.
    fn address(&mut self, inst: Inst) -> Option<(Operand, u32)> {
        let pointer = access::address(self.func, inst)?;
        let operand = self.operand(pointer);
        let sum = self.sum(pointer, operand);
        let offset = self.func.dfg.insts[inst].load_store_offset()?;
        let total = offset.wrapping_add(sum.offset.cast_signed());
        let found = Some((sum.root, total.cast_unsigned()));
        if sum.root == operand || sum.root == Operand::None {
            return found;
        }
        let (root, near) = if access::is_in_range(self.target, total) {
            (self.materialize(inst, sum.root)?, total)
        } else if matches!(sum.root, Operand::Value(_)) {
            return found;
        } else {
            // Neighboring accesses share the part of the offset that is out of range.
            let far = Operand::Constant((total & !0x7f).cast_unsigned().into());
            let key = Key::binary(Opcode::Iadd, types::I32, sum.root, far);
            (self.materialize_key(inst, key)?, total & 0x7f)
        };
        access::set_address(self.func, inst, root, near);
        found
    }

    /// Returns the key of a load with this address and type, and the memory.
    fn memory_key(&self, inst: Inst, opcode: Opcode, ty: Type, address: (Operand, u32)) -> Option<(Key, usize)> {
        let flags = self.func.dfg.insts[inst].memflags()?;
        let space = self.target.memory(self.func, flags);
        let flags = self.func.dfg.mem_flags[flags];
        let order = flags.explicit_endianness().map_or(0, |order| 1 + order as u32);
        let version = Operand::Constant(self.memory[space].into());
        let key = Key {
            opcode,
            ty,
            detail: space as u32 | order << 1,
            operands: [address.0, Operand::Constant(address.1.into()), version],
        };
        Some((key, space))
    }

    fn load(&mut self, inst: Inst, opcode: Opcode) {
        let &[result] = self.func.dfg.inst_results(inst) else {
            return;
        };
        let ty = self.func.dfg.value_type(result);
        if let Some(address) = self.address(inst)
            && let Some((key, _)) = self.memory_key(inst, opcode, ty, address)
        {
            self.number(inst, key);
        }
    }

    fn store(&mut self, inst: Inst, opcode: Opcode, value: Value) {
        let value = self.resolve(value);
        let ty = self.func.dfg.value_type(value);
        let address = self.address(inst);
        let key = address.and_then(|address| self.memory_key(inst, Opcode::Load, ty, address));
        let Some((_, space)) = key else {
            self.memory = std::array::from_fn(|_| self.new_version());
            return;
        };
        self.memory[space] = self.new_version();
        // A load of the same type from this address returns the stored value.
        if opcode == Opcode::Store
            && let Some((key, _)) = address.and_then(|address| self.memory_key(inst, Opcode::Load, ty, address))
        {
            self.known.insert(key, (value, self.block));
        }
    }
}

fn word(bits: u64) -> u32 {
    (bits & u64::from(u32::MAX)) as u32
}

fn signed(bits: u64, ty: Type) -> i64 {
    let unused = 64 - ty.bits();
    (bits << unused).cast_signed() >> unused
}

/// Evaluates an operation on constants, modulo the size of the type.
fn fold(opcode: Opcode, ty: Type, a: u64, b: u64) -> Option<u64> {
    let amount = (b & u64::from(ty.bits() - 1)) as u32;
    Some(match opcode {
        Opcode::Iadd => a.wrapping_add(b),
        Opcode::Isub => a.wrapping_sub(b),
        Opcode::Imul => a.wrapping_mul(b),
        Opcode::Band => a & b,
        Opcode::Bor => a | b,
        Opcode::Bxor => a ^ b,
        Opcode::Ishl => a << amount,
        Opcode::Ushr => a >> amount,
        Opcode::Sshr => (signed(a, ty) >> amount).cast_unsigned(),
        Opcode::Udiv if b != 0 => a / b,
        Opcode::Urem if b != 0 => a % b,
        _ => return None,
    })
}

/// The result of an operation with a constant.
enum Identity {
    Left,
    Right,
    Number(u64),
    /// The other operand, shifted left.
    Shifted(u64),
}

fn identity(opcode: Opcode, ty: Type, left: Operand, right: Operand) -> Option<Identity> {
    let (number, other) = match (left, right) {
        (_, Operand::Constant(number)) => (number, Identity::Left),
        (Operand::Constant(number), _) if commutes(opcode) => (number, Identity::Right),
        _ => return None,
    };
    let all = loops::mask(ty);
    match (opcode, number) {
        (Opcode::Iadd | Opcode::Isub | Opcode::Bor | Opcode::Bxor, 0) => Some(other),
        (Opcode::Ishl | Opcode::Ushr | Opcode::Sshr | Opcode::Rotl | Opcode::Rotr, amount)
            if amount & u64::from(ty.bits() - 1) == 0 =>
        {
            Some(other)
        }
        (Opcode::Imul | Opcode::Band, 0) => Some(Identity::Number(0)),
        (Opcode::Imul, 1) => Some(other),
        (Opcode::Imul, factor) if factor.is_power_of_two() => Some(Identity::Shifted(factor.trailing_zeros().into())),
        (Opcode::Band, number) if number == all => Some(other),
        (Opcode::Bor, number) if number == all => Some(Identity::Number(all)),
        _ => None,
    }
}

fn compares(cond: IntCC, ty: Type, a: u64, b: u64) -> bool {
    let (x, y) = (signed(a, ty), signed(b, ty));
    match cond {
        IntCC::Equal => a == b,
        IntCC::NotEqual => a != b,
        IntCC::SignedLessThan => x < y,
        IntCC::SignedLessThanOrEqual => x <= y,
        IntCC::SignedGreaterThan => x > y,
        IntCC::SignedGreaterThanOrEqual => x >= y,
        IntCC::UnsignedLessThan => a < b,
        IntCC::UnsignedLessThanOrEqual => a <= b,
        IntCC::UnsignedGreaterThan => a > b,
        IntCC::UnsignedGreaterThanOrEqual => a >= b,
    }
}

/// Removes dead instructions. Requires a function without aliases and the blocks in postorder.
fn remove_dead(func: &mut Function, blocks: impl Iterator<Item = Block>) {
    let mut uses: SecondaryMap<Value, u32> = SecondaryMap::with_capacity(func.dfg.num_values());
    for block in func.layout.blocks() {
        for inst in func.layout.block_insts(block) {
            for value in func.dfg.inst_values(inst) {
                uses[value] += 1;
            }
        }
    }
    for block in blocks {
        let mut at = func.layout.last_inst(block);
        while let Some(inst) = at {
            at = func.layout.prev_inst(inst);
            let unused = |&result: &Value| uses[result] == 0;
            if edit::is_removable(func, inst) && func.dfg.inst_results(inst).iter().all(unused) {
                for value in func.dfg.inst_values(inst) {
                    uses[value] -= 1;
                }
                func.layout.remove_inst(inst);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::straight_line::check_results;
    use super::*;
    use std::fmt::Write as _;

    fn simplified(func: &mut Function) -> bool {
        let mut ctx = Context::for_function(func.clone());
        ctx.compute_cfg();
        ctx.compute_domtree();
        run(&mut ctx, &crate::test_target::TestTarget::new());
        *func = ctx.func;
        true
    }

    const OPERATIONS: [&str; 15] = [
        "iadd", "isub", "iadd", "isub", "imul", "ishl", "ushr", "sshr", "band", "bor", "bxor", "rotl", "rotr", "udiv",
        "urem",
    ];
    const CONSTANTS: [i64; 12] = [0, 1, -1, 2, 3, 4, 7, 8, 31, 33, 100, -128];

    /// Returns a function of ten operations; two thirds have a constant operand.
    fn random(ty: &str, seed: u64) -> String {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut below = |count: usize| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 20) as usize % count
        };
        let mut text = format!("function %f({ty}, {ty}) -> {ty} {{\nblock0(v0: {ty}, v1: {ty}):\n");
        for (number, constant) in CONSTANTS.iter().enumerate() {
            let _ = writeln!(text, "    v{} = iconst.{ty} {constant}", number + 2);
        }
        let first = CONSTANTS.len() + 2;
        for number in first..first + 10 {
            let mut value = |constant: bool| match below(3) {
                0 if number > first => first + below(number - first),
                _ if constant => 2 + below(CONSTANTS.len()),
                _ => below(2),
            };
            let (a, b) = (value(false), value(true));
            match below(8) {
                0 => {
                    let condition = IntCC::all()[below(IntCC::all().len())];
                    let _ = writeln!(text, "    v1{number} = icmp {condition} v{a}, v{b}");
                    let _ = writeln!(text, "    v{number} = select v1{number}, v{b}, v{a}");
                }
                1 => {
                    let opcode = ["ineg", "bnot"][below(2)];
                    let _ = writeln!(text, "    v{number} = {opcode} v{a}");
                }
                _ => {
                    let opcode = OPERATIONS[below(OPERATIONS.len())];
                    let (a, b) = if below(4) == 0 { (b, a) } else { (a, b) };
                    let _ = writeln!(text, "    v{number} = {opcode} v{a}, v{b}");
                }
            }
        }
        let last = first + 9;
        let _ = writeln!(
            text,
            "    v500 = isub v{last}, v{}\n    v501 = bxor v500, v{}\n    return v501\n}}",
            last - 1,
            last - 2
        );
        text
    }

    #[test]
    fn operations_have_the_same_results() {
        for ty in ["i32", "i8", "i64"] {
            for seed in 0..300 {
                check_results(&random(ty, seed + 1), simplified);
            }
        }
    }

    #[test]
    fn compares_of_sums_have_the_same_results() {
        for (a, b) in [(4, 8), (8, 4), (5, 5), (-1, 0xffff)] {
            for condition in ["eq", "ne", "ult", "slt"] {
                for opcode in ["iadd", "isub"] {
                    check_results(
                        &format!(
                            "function %f(i32, i32) -> i8 {{\nblock0(v0: i32, v1: i32):\n    v2 = iconst.i32 {a}\n    \
                             v3 = iconst.i32 {b}\n    v4 = {opcode} v0, v2\n    v5 = iadd v0, v3\n    v6 = isub v5, v4\n    \
                             v7 = icmp {condition} v4, v5\n    v8 = ireduce.i8 v6\n    v9 = bxor v7, v8\n    return v9\n}}"
                        ),
                        simplified,
                    );
                }
            }
        }
    }

    #[test]
    fn branches_on_constants_are_jumps() {
        for (number, target) in [(0, 2), (1, 1), (256, 1)] {
            let text = format!(
                "function %f(i32) -> i32 {{\nblock0(v0: i32):\n    v1 = iconst.i32 {number}\n    brif v1, block1, block2\n\
                 block1:\n    return v0\nblock2:\n    return v1\n}}"
            );
            let mut func = cranelift_reader::parse_functions(&text).unwrap().remove(0);
            simplified(&mut func);
            let last = func.layout.last_inst(Block::from_u32(0)).unwrap();
            let to = edit::target(&func, Edge { inst: last, number: 0 });
            assert_eq!(to, Some(Block::from_u32(target)), "{func}");
        }
    }

    #[test]
    fn extensions_have_the_same_results() {
        for opcode in ["uextend", "sextend"] {
            for number in [0, 1, 127, -128, -1] {
                check_results(
                    &format!(
                        "function %f(i32) -> i32 {{\nblock0(v0: i32):\n    v1 = iconst.i8 {number}\n    v2 = {opcode}.i32 v1\n    \
                         v3 = iadd v0, v2\n    v4 = ireduce.i8 v3\n    v5 = {opcode}.i32 v4\n    v6 = bxor v3, v5\n    return v6\n}}"
                    ),
                    simplified,
                );
            }
        }
    }
}
