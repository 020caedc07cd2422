//! Loops: counters, loop-carried values, bodies.

use super::access::low_bit;
use super::params::{self, Count, Param};
use crate::instruction::{Base, Generator, Loop, Test};
use cranelift_codegen::ir::condcodes::{CondCode, IntCC};
use cranelift_codegen::ir::{Block, InstBuilder, TrapCode, Type, Value, types};

/// A parameter of a loop's header: its first value and its update. The first one is the counter.
type Carried = (Value, How);

/// The update of a loop-carried value in each iteration.
enum How {
    /// A reduction.
    Reduce,
    /// Another value replaces it.
    Last,
    /// The previous value of another loop-carried value replaces it.
    Rotate,
    /// Another value replaces it under a condition.
    Sometimes,
    /// It grows by this constant. If it is an address, it replaces the base.
    Grows(i64, Option<Base>),
}

use IntCC::{Equal, NotEqual, SignedLessThan, SignedLessThanOrEqual, UnsignedLessThan, UnsignedLessThanOrEqual};

/// The conditions under which a loop continues whose counter grows.
const UP: [IntCC; 5] = [
    SignedLessThan,
    UnsignedLessThan,
    SignedLessThanOrEqual,
    UnsignedLessThanOrEqual,
    NotEqual,
];

impl Generator<'_, '_, '_> {
    /// Adds a loop with its body to the current block, and begins the block after the loop.
    pub fn nest(&mut self, depth: usize) {
        self.budget -= 3;
        let outermost = self.scope.len();
        let mut course = self.course(depth);
        let mut all = self.carried(&course);
        // The results of the loop are the loop-carried values and sometimes the counter.
        let outs = usize::from(!self.dice.chance(1, 3))..all.len();
        self.pointers(depth, &mut all);
        let inits: Vec<Value> = all.iter().map(|one| one.0).collect();
        let types: Vec<Type> = inits.iter().map(|&init| self.type_of(init)).collect();
        let (header, params) = self.block(&types);
        let exit = course.exit;
        let append = |&ty: &Type| self.func.dfg.append_block_param(exit, ty);
        let results: Vec<Value> = types[outs.clone()].iter().map(append).collect();
        let skips = !course.at_start && self.dice.chance(1, 2);
        if skips {
            let test = self.test(&course, course.counter);
            self.branch(test, (header, &inits), (exit, &inits[outs.clone()]));
        } else {
            self.jump((header, &inits));
        }
        self.begin(header);
        let base_count = self.bases.len();
        self.enter(&all, &params);
        (course.counter, course.out) = (params[0], params[outs.clone()].to_vec());
        self.open.push(course.clone());
        if course.at_start {
            let (body, _) = self.block(&[]);
            let test = self.test(&course, params[0]);
            self.branch(test, (body, &[]), (exit, &params[outs.clone()]));
            self.begin(body);
        }
        self.loop_body(depth);
        let nexts = self.next(&all, &params);
        if course.at_start {
            self.jump((header, &nexts));
        } else {
            let out = |at| if self.dice.chance(1, 6) { params[at] } else { nexts[at] };
            let outs: Vec<Value> = outs.map(out).collect();
            let test = self.test(&course, if course.next { nexts[0] } else { params[0] });
            self.branch(test, (header, &nexts), (exit, &outs));
        }
        let is_left = self.open.pop().is_some_and(|open| open.is_left);
        self.bases.truncate(base_count);
        let stays = !skips && !is_left && !course.at_start && self.dice.chance(1, 2);
        if !stays {
            self.scope.truncate(outermost);
        }
        self.begin(exit);
        self.scope.extend(results);
    }

    /// Puts the parameters of a header into scope, addresses as bases.
    fn enter(&mut self, all: &[Carried], params: &[Value]) {
        for (at, ((_, how), &value)) in all.iter().zip(params).enumerate() {
            if let How::Grows(step, Some(base)) = how {
                let mut base = base.clone();
                (base.value, base.moves) = (value, Some((*step, self.open.len() + 1)));
                self.bases.extend([base.clone(), base]);
                continue;
            }
            let (times, of) = match how {
                _ if at == 0 => (1, 3),
                How::Reduce if self.style.pure => (1, 30),
                How::Reduce if self.style.memory => (1, 6),
                _ => (1, 1),
            };
            if self.dice.chance(times, of) {
                self.scope.push(value);
            }
        }
    }

    /// Returns the arguments of the back edge.
    fn next(&mut self, all: &[Carried], params: &[Value]) -> Vec<Value> {
        let mut nexts = Vec::new();
        for (at, (init, how)) in all.iter().enumerate() {
            let (param, ty) = (params[at], self.type_of(*init));
            nexts.push(match *how {
                How::Reduce => {
                    let value = self.any(ty);
                    self.reduce(param, value)
                }
                How::Last => self.any(ty),
                How::Rotate => params[at - 1],
                How::Sometimes => {
                    let (test, value) = (self.compare(), self.any(ty));
                    self.cursor().ins().select(test, value, param)
                }
                How::Grows(by, _) if by < 0 && self.dice.chance(1, 4) => {
                    let by = self.int(ty, -by);
                    self.cursor().ins().isub(param, by)
                }
                How::Grows(by, _) => self.cursor().ins().iadd_imm_s(param, by),
            });
        }
        nexts
    }

    /// Adds a comparison with operands in either order.
    fn icmp(&mut self, condition: IntCC, a: Value, b: Value, of: u32) -> Value {
        match self.dice.chance(1, of) {
            true => self.cursor().ins().icmp(condition.swap_args(), b, a),
            false => self.cursor().ins().icmp(condition, a, b),
        }
    }

    /// Adds the test of a loop. The test holds while the loop continues.
    fn test(&mut self, course: &Loop, tested: Value) -> Test {
        let stays = course.count.stays;
        let bound = match course.slot {
            Some(slot) => self.cursor().ins().stack_load(types::I32, course.count.ty, slot, 0),
            None => course.bound,
        };
        let holds = self.dice.chance(1, 2);
        let condition = if holds { stays } else { stays.complement() };
        if stays == NotEqual && course.count.bound.is_none() && self.dice.chance(1, 4) {
            return (self.cursor().ins().isub(tested, bound), true);
        }
        let test = self.icmp(condition, tested, bound, 4);
        if self.dice.chance(1, 12) {
            return (self.cursor().ins().uextend(types::I32, test), holds);
        }
        (test, holds)
    }

    fn course(&mut self, depth: usize) -> Loop {
        let (plain, pure, memory) = (self.style.plain, self.style.pure, self.style.memory);
        use types::{I8, I16, I32, I64};
        let ty = match plain {
            true if pure || self.dice.chance(19, 20) => I32,
            _ => self.dice.one_of(&[I32, I32, I32, I64, I16, I8]),
        };
        let smallest = self.style.elements.iter().map(|ty| i64::from(ty.bytes())).min();
        let size = match self.dice.below(if plain { 9 } else { 5 }) {
            0 if pure => self.dice.one_of(&[1, 2, 4]).min(smallest.unwrap_or(1)),
            0 => self.dice.one_of(&[2, 4, 8, 1]),
            1 if !plain => self.dice.one_of(&[2, 3, 4, 5, 7, 8, 16]),
            _ => 1,
        };
        let step = if self.dice.chance(3, 4) { size } else { -size };
        let usual = if step > 0 { UP } else { UP.map(IntCC::swap_args) };
        let stays = match self.dice.below(if pure { 48 } else { 24 }) {
            0 if memory => self.dice.one_of(IntCC::all()),
            1..10 => NotEqual,
            _ => self.dice.one_of(&usual),
        };
        let (at_start, next) = (self.dice.chance(1, 3), !self.dice.chance(1, 5));
        let inner = depth < self.style.depth;
        let most = match (memory, inner) {
            (false, _) => [40, 6, 3],
            (true, true) => [6, 4, 4],
            (true, false) => [100, 64, 20],
        }[depth.min(2)];
        let more = if at_start { 0 } else { i64::from(next) - 1 };
        let trips = match pure && !inner && self.dice.chance(5, 6) {
            true => self.dice.one_of(&[16, 17, 31, 32, 33, 47, 48, 64, 100]).min(most),
            false => params::trips(self.dice, most),
        };
        let outer = self.open.last().map(|outer| outer.counter);
        let outer = outer.filter(|&outer| memory && self.type_of(outer) == ty);
        let (mut start, mut first) = (0, None);
        let (mut start_param, mut nested) = (None, None);
        match self.dice.below(10) {
            0 if memory => {
                first = Some(self.param(Param::Start(ty)));
                start_param = Some(self.params.len() - 1);
            }
            // The loop starts at the enclosing loop's counter or ends there.
            1 if outer.is_some() => {
                first = outer.filter(|_| self.dice.chance(1, 2));
                nested = outer;
            }
            2 => {
                let edge = self.dice.one_of(&[0, 1i64 << (ty.bits() - 1), 1i64 << 31]);
                start = edge.wrapping_sub(step * self.dice.range(-2, trips + 2));
            }
            3 | 4 if !pure || self.dice.chance(1, 4) => start = self.dice.range(-5, 60),
            _ if step < 0 => start = (trips - i64::from(at_start)).max(0) * -step,
            _ if pure && self.dice.chance(1, 8) => start = 64,
            _ => {}
        }
        start = params::wrapped(start, ty);
        let counter = first.unwrap_or_else(|| self.int(ty, start));
        let mut count = Count {
            ty,
            start,
            param: start_param,
            step,
            stays,
            more,
            most,
            bound: None,
        };
        let is_known = start_param.is_none() && nested.is_none();
        let mut bound = if is_known && (!memory || self.dice.chance(1, 3)) {
            let number = params::bound(self.dice, &count, start, trips);
            self.int(ty, number)
        } else {
            count.bound = Some(self.params.len());
            self.param(Param::Bound(count))
        };
        if let Some(outer) = nested {
            count.param = count.bound;
            bound = self.cursor().ins().iadd(outer, bound);
        }
        let slot = (!plain && self.dice.chance(1, 16)).then(|| self.in_slot(bound));
        let (exit, _) = self.block(&[]);
        Loop {
            count,
            counter,
            bound,
            at_start,
            next,
            slot,
            exit,
            out: Vec::new(),
            is_left: false,
        }
    }

    /// Chooses the loop-carried values; the first is the counter.
    fn carried(&mut self, course: &Loop) -> Vec<Carried> {
        let mut all = vec![(course.counter, How::Grows(course.count.step, None))];
        let plain = self.style.plain;
        for _ in 0..self.dice.one_of(&[0, 0, 1, 1, 1, 2, 3]) {
            let ty = match self.dice.below(4) {
                _ if !self.style.memory => self.ty(),
                0 => match self.dice.one_of(&self.style.elements) {
                    types::F32 if plain => types::I32,
                    ty => ty,
                },
                1 if !plain => self.dice.one_of(&[types::I8, types::I16, types::I64]),
                _ => types::I32,
            };
            let kinds = match (self.style.pure, plain) {
                (true, _) => 60,
                (false, true) => 30,
                (false, false) => 10,
            };
            let how = match self.dice.below(kinds) {
                0 => How::Last,
                1 => How::Sometimes,
                2 | 3 if ty.is_int() && !ty.is_vector() => {
                    How::Grows(self.dice.one_of(&[1, 2, 3, -1, 4, 100, 0x4000_0000]), None)
                }
                _ => How::Reduce,
            };
            let is_last = matches!(how, How::Last);
            all.push((self.any(ty), how));
            if is_last && self.dice.chance(1, 2) {
                for _ in 0..self.dice.range(1, 3) {
                    all.push((self.any(ty), How::Rotate));
                }
            }
        }
        all
    }

    /// Adds addresses that are induction variables.
    fn pointers(&mut self, depth: usize, all: &mut Vec<Carried>) {
        let (outer, pure) = (depth < self.style.depth, self.style.pure);
        let most = if self.bases.is_empty() { 0 } else { 2 };
        for _ in 0..self.dice.one_of(&[0, 0, 0, 1, 1, 2]).min(most) {
            let mut base = self.dice.one_of(&self.bases);
            let bytes = i64::from(self.dice.one_of(&self.style.elements).bytes());
            let step = match self.dice.below(8) {
                0..6 if pure && outer => self.dice.one_of(&[64, 128]),
                _ if pure => bytes,
                0 => -bytes,
                1 => 2 * bytes,
                2 => 3 * bytes,
                _ => bytes,
            };
            if base.slot.is_some() {
                continue;
            }
            let mut init = base.value;
            if let Some(open) = self.open.last().cloned()
                && self.dice.chance(1, 2)
                && open.count.first().is_none_or(|first| first.unsigned_abs() < 100)
            {
                let row = match pure && self.dice.chance(4, 5) {
                    true => self.dice.one_of(&[64, 128]),
                    false => self.dice.one_of(&[16, 64, 40, 4, 100]),
                };
                let term = self.scaled(&open, row, 0);
                init = self.cursor().ins().iadd(init, term);
                base.align = base.align.min(low_bit(row));
            }
            if self.dice.chance(1, 4) {
                let away = match pure && self.dice.chance(5, 6) {
                    true => self.dice.range(-4, 12) * 64,
                    false => self.dice.range(-8, 40) * bytes,
                };
                init = self.plus(init, away);
                base.align = base.align.min(low_bit(away));
            }
            base.align = base.align.min(low_bit(step));
            all.push((init, How::Grows(step, Some(base))));
        }
    }

    /// Writes the body of a loop.
    fn loop_body(&mut self, depth: usize) {
        let inner = depth < self.style.depth && self.style.memory;
        self.statements(i64::from(!inner), 4, depth + 1);
        if inner {
            self.nest(depth + 1);
            if self.dice.chance(1, 6) && self.budget > 0 {
                self.nest(depth + 1);
            }
            return self.statements(0, 2, depth + 1);
        }
        self.statements(1, 6, depth + 1);
        let stores = if self.style.pure { 9 } else { 6 };
        self.access(stores, 9);
    }

    /// Adds a store with probability `stores / of`, or else a load.
    fn access(&mut self, stores: u32, of: u32) {
        match self.dice.chance(stores, of) {
            true => self.store(),
            false => self.load(),
        }
    }

    /// Adds `least` to `most` statements.
    pub fn statements(&mut self, least: i64, most: i64, depth: usize) {
        for _ in 0..self.dice.range(least, most) {
            self.statement(depth, true);
        }
    }

    /// Adds a statement. Only statements at the top of a loop's body may leave the loop.
    fn statement(&mut self, depth: usize, top: bool) {
        self.budget -= 1;
        if self.budget < 0 {
            return;
        }
        let (plain, checks) = (self.style.plain, self.style.checks);
        let choice = self.dice.below(20);
        let branches = top && (!plain || self.dice.chance(1, 3));
        if !self.style.memory {
            return match choice {
                0..3 => self.access(1, 2),
                3 | 4 if depth < 4 => self.choice(depth),
                5 if depth < 4 => self.nest(depth),
                6 | 7 => self.call(),
                8 if checks => self.check(),
                _ => self.operation(),
            };
        }
        match choice {
            0..7 => self.load(),
            7..9 => self.store(),
            9 if branches => self.choice(depth),
            10 | 11 if checks => self.check(),
            12 if self.style.exits && top => self.early_exit(),
            _ => self.operation(),
        }
    }

    /// Adds a branch or a table with arms and a join.
    fn choice(&mut self, depth: usize) {
        let arms = match self.dice.below(4) {
            0 | 1 => 2,
            2 if !self.style.memory => self.dice.range(1, 5),
            _ => 1,
        };
        let types: Vec<Type> = (0..self.dice.range(0, 2)).map(|_| self.some_type()).collect();
        let blocks: Vec<Block> = (0..arms).map(|_| self.block(&[]).0).collect();
        let (join, results) = self.block(&types);
        let scope = self.scope.len();
        if arms > 2 {
            let index = match self.dice.chance(2, 3) {
                true => self.low_bits(types::I32, 3),
                false => self.any(types::I32),
            };
            self.targets.clone_from(&blocks);
            if let Some(table) = self.jump_table() {
                self.cursor().ins().br_table(index, table);
            }
        } else {
            let test = self.compare();
            let direct: Vec<Value> = types.iter().map(|&ty| self.any(ty)).collect();
            let other = blocks.get(1).map_or((join, &direct[..]), |&block| (block, &[]));
            self.branch((test, true), (blocks[0], &[]), other);
        }
        for block in blocks {
            self.begin(block);
            let scope = self.scope.len();
            let most = if self.style.memory { 3 } else { 8 };
            for _ in 0..self.dice.range(0, most) {
                if self.style.plain && self.dice.chance(9, 10) {
                    self.operation();
                } else {
                    self.statement(depth + 1, false);
                }
            }
            if !self.style.memory && self.dice.chance(1, 30) {
                let code = TrapCode::unwrap_user(self.dice.range(1, 9));
                self.cursor().ins().trap(code);
            } else {
                let passed: Vec<Value> = types.iter().map(|&ty| self.any(ty)).collect();
                self.jump((join, &passed));
            }
            self.scope.truncate(scope);
        }
        self.scope.truncate(scope);
        self.begin(join);
        self.scope.extend(results);
    }

    /// Adds an exit from an open loop.
    fn early_exit(&mut self) {
        let count = self.open.len();
        let is_last = self.dice.chance(5, 6);
        let at = if is_last { count - 1 } else { self.dice.below(count) };
        self.open[at].is_left = true;
        let Loop { exit, out, .. } = self.open[at].clone();
        let mask = self.dice.one_of(&[7, 15, 31, 63, 127]);
        let test = self.equals_low_bits(mask, 7);
        let value = |param| {
            let ty = self.type_of(param);
            if self.dice.chance(1, 3) { self.any(ty) } else { param }
        };
        let values: Vec<Value> = out.into_iter().map(value).collect();
        let (on, _) = self.block(&[]);
        self.branch(test, (exit, &values), (on, &[]));
        self.begin(on);
    }

    /// Compares the low bits of a value with a number from 0 to `most`. The test holds if they are
    /// equal.
    fn equals_low_bits(&mut self, mask: i64, most: i64) -> Test {
        let ty = self.some_type();
        let ty = if ty.is_int() && !ty.is_vector() { ty } else { types::I32 };
        let low = self.low_bits(ty, mask);
        let number = self.dice.range(0, most);
        let number = self.int(ty, number);
        let holds = self.dice.chance(2, 3);
        let condition = if holds { Equal } else { NotEqual };
        (self.cursor().ins().icmp(condition, low, number), holds)
    }

    /// Adds a check that traps: a bounds check as in WebAssembly, an alignment check, or a check of
    /// a value.
    fn check(&mut self) {
        let user = TrapCode::unwrap_user(self.dice.one_of(&[1, 7]));
        let known = [TrapCode::HEAP_OUT_OF_BOUNDS, TrapCode::INTEGER_OVERFLOW];
        let code = self.dice.one_of(&[known[0], known[1], user, user]);
        let in_loop = self.style.memory && !self.open.is_empty();
        let test = match self.dice.below(8) {
            1 if in_loop && !self.bases.is_empty() => self.alignment_check(),
            2.. if in_loop => self.bound_check(),
            _ => self.equals_low_bits(127, 20),
        };
        if self.dice.chance(1, 2) {
            match test.1 {
                true => self.cursor().ins().trapnz(test.0, code),
                false => self.cursor().ins().trapz(test.0, code),
            };
            return;
        }
        let ((trap, _), (on, _)) = (self.block(&[]), self.block(&[]));
        self.branch(test, (trap, &[]), (on, &[]));
        self.begin(trap);
        if self.dice.chance(3, 4) {
            self.func.layout.set_cold(trap);
        }
        self.cursor().ins().trap(code);
        self.begin(on);
    }

    /// Compares a sum of counters with a limit. Returns the condition, and whether the check traps
    /// if the condition is true.
    fn bound_check(&mut self) -> Test {
        let scale = self.dice.one_of(&[1, 1, 4, 2, 8, -1, -4]);
        let offset = self.dice.one_of(&[0, 0, 4, 1, 100, 0x7fff_ff00, -0x8000_0000]);
        let (outer, inner) = (self.open[0].clone(), self.open[self.open.len() - 1].clone());
        let mut value = self.scaled(&inner, scale, 0);
        if self.open.len() > 1 && self.dice.chance(1, 3) {
            let by = self.dice.one_of(&[1, 4, 16, -4]);
            let term = self.scaled(&outer, by, 0);
            value = self.cursor().ins().iadd(value, term);
        }
        if self.dice.chance(1, 8) {
            let mask = self.dice.one_of(&[3, 15, 255]);
            let term = self.low_bits(types::I32, mask);
            value = self.cursor().ins().iadd(value, term);
        }
        if offset != 0 {
            value = self.plus(value, offset);
        }
        let limit = self.param(Param::Limit {
            count: inner.count,
            scale,
            offset,
        });
        let traps = self.dice.chance(1, 2);
        // Unsigned comparisons are more frequent.
        let inside = UP[self.dice.one_of(&[0, 1, 3, 1])];
        let condition = if traps { inside.complement() } else { inside };
        (self.icmp(condition, value, limit, 3), traps)
    }

    /// Tests the low bits of an address, without a comparison.
    fn alignment_check(&mut self) -> Test {
        let size = self.dice.one_of(&self.style.elements).bytes();
        let address = self.address(size, false);
        let value = self.plus(address.value, address.offset.into());
        let mask = self.dice.one_of(&[1, 3, 3, 7]);
        (self.cursor().ins().band_imm_s(value, mask), true)
    }
}
