//! Loops: counters, loop-carried values, bodies.

use super::access::low_bit;
use super::params::{self, Count, Param, Start};
use super::{Base, Counter, Open, Writer};
use cranelift_codegen::ir::condcodes::{CondCode, IntCC};
use cranelift_codegen::ir::{Block, InstBuilder, StackSlot, TrapCode, Type, Value, types};

/// The counter of a loop and the values that are computed before the loop.
pub struct Course {
    count: Count,
    /// The first value.
    first: Value,
    /// The bound.
    bound: Value,
    /// Whether the loop is tested at the start of an iteration.
    at_start: bool,
    /// Whether the test compares the counter of the next iteration.
    next: bool,
    /// The parameter that is the bound, if it is one.
    param: Option<usize>,
    /// The stack slot that the bound is reloaded from in each iteration, if it is in memory.
    slot: Option<StackSlot>,
}

/// A loop-carried value.
struct Carried {
    ty: Type,
    init: Value,
    how: How,
}

/// The update of a loop-carried value in each iteration.
#[derive(Clone, Copy)]
enum How {
    /// A reduction.
    Reduce,
    /// Another value replaces it.
    Last,
    /// The previous value of another loop-carried value replaces it.
    Rotate,
    /// Another value replaces it under a condition.
    Sometimes,
    /// It grows by this constant.
    Grows(i64),
}

/// A condition, and whether a branch is taken if it is not 0.
type Test = (Value, bool);

/// A target with arguments.
type Target<'a> = (Block, &'a [Value]);

use IntCC::{Equal, NotEqual, SignedLessThan, SignedLessThanOrEqual, UnsignedLessThan, UnsignedLessThanOrEqual};

/// The conditions under which a loop continues whose counter grows.
const UP: [IntCC; 5] = [
    SignedLessThan,
    UnsignedLessThan,
    SignedLessThanOrEqual,
    UnsignedLessThanOrEqual,
    NotEqual,
];

impl Writer<'_, '_, '_> {
    /// Adds a loop with its body to the current block, and begins the block after the loop.
    pub fn nest(&mut self, depth: usize) {
        self.budget -= 3;
        let outermost = self.scope.len();
        let course = self.course(depth);
        let carried = self.carried();
        let pointers = self.pointers(depth);
        let mut types = vec![course.count.ty];
        types.extend(carried.iter().map(|one| one.ty));
        types.extend(pointers.iter().map(|_| types::I32));
        let inits: Vec<Value> = std::iter::once(course.first)
            .chain(carried.iter().map(|one| one.init))
            .chain(pointers.iter().map(|(_, init, _)| *init))
            .collect();
        // The results of the loop are the loop-carried values and sometimes the counter.
        let shows_counter = self.dice.chance(1, 3);
        let outs = if shows_counter {
            0..=carried.len()
        } else {
            1..=carried.len()
        };
        let (header, params) = self.block(&types);
        let (exit, results) = self.block(&types[outs.clone()]);
        let skips = !course.at_start && self.dice.chance(1, 2);
        if skips {
            let test = self.test(&course, course.first);
            self.branch(test, (header, &inits), (exit, &inits[outs.clone()]));
        } else {
            self.jump((header, &inits));
        }
        self.begin(header);
        let base_count = self.bases.len();
        self.enter(&course, &carried, &pointers, &params);
        self.open.push(Open {
            exit,
            out: params[outs.clone()].to_vec(),
            is_left: false,
        });
        if course.at_start {
            let (body, _) = self.block(&[]);
            let test = self.test(&course, params[0]);
            self.branch(test, (body, &[]), (exit, &params[outs.clone()]));
            self.begin(body);
        }
        self.body(depth, &course);
        let nexts = self.next(&course, &carried, &pointers, &params);
        if course.at_start {
            self.jump((header, &nexts));
        } else {
            let outs_now: Vec<Value> = outs
                .map(|at| if self.dice.chance(1, 6) { params[at] } else { nexts[at] })
                .collect();
            let test = self.test(&course, if course.next { nexts[0] } else { params[0] });
            self.branch(test, (header, &nexts), (exit, &outs_now));
        }
        let is_left = self.open.pop().is_some_and(|open| open.is_left);
        self.counters.pop();
        self.bases.truncate(base_count);
        let stays = !skips && !is_left && !course.at_start && self.dice.chance(1, 2);
        if !stays {
            self.scope.truncate(outermost);
        }
        self.begin(exit);
        self.scope.extend(results);
    }

    /// Puts the parameters of a header into scope.
    fn enter(&mut self, course: &Course, carried: &[Carried], pointers: &[(Base, Value, i64)], params: &[Value]) {
        let start = match course.count.start {
            Start::Constant(number) => Some(number),
            Start::Param(_) => None,
        };
        if self.dice.chance(1, 3) {
            self.scope.push(params[0]);
        }
        for (one, &param) in carried.iter().zip(&params[1..]) {
            let visible = match one.how {
                How::Reduce => !self.style.memory || self.g.dice.chance(1, if self.style.pure { 30 } else { 6 }),
                _ => true,
            };
            if visible {
                self.scope.push(param);
            }
        }
        for ((base, _, _), &value) in pointers.iter().zip(&params[1 + carried.len()..]) {
            let base = Base {
                value,
                depth: self.counters.len() + 1,
                ..base.clone()
            };
            self.bases.extend([base.clone(), base]);
        }
        self.counters.push(Counter {
            value: params[0],
            ty: course.count.ty,
            start,
            step: course.count.step,
        });
    }

    /// Returns the arguments of the back edge.
    fn next(
        &mut self,
        course: &Course,
        carried: &[Carried],
        pointers: &[(Base, Value, i64)],
        params: &[Value],
    ) -> Vec<Value> {
        let (ty, step) = (course.count.ty, course.count.step);
        let next = if step < 0 && self.dice.chance(1, 4) {
            let step = self.int(ty, -step);
            self.cursor().ins().isub(params[0], step)
        } else {
            let step = self.int(ty, step);
            self.cursor().ins().iadd(params[0], step)
        };
        let mut nexts = vec![next];
        for (at, one) in carried.iter().enumerate() {
            let param = params[at + 1];
            nexts.push(match one.how {
                How::Reduce => {
                    let value = self.any(one.ty);
                    self.reduce(param, value)
                }
                How::Last => self.any(one.ty),
                How::Rotate => params[at],
                How::Sometimes => {
                    let (test, value) = (self.compare(), self.any(one.ty));
                    self.cursor().ins().select(test, value, param)
                }
                How::Grows(by) => {
                    let by = self.int(one.ty, by);
                    self.cursor().ins().iadd(param, by)
                }
            });
        }
        for ((_, _, step), &param) in pointers.iter().zip(&params[1 + carried.len()..]) {
            let step = self.int(types::I32, *step);
            nexts.push(self.cursor().ins().iadd(param, step));
        }
        nexts
    }

    /// Adds a branch with its targets in either order.
    fn branch(&mut self, (test, holds): Test, yes: Target<'_>, no: Target<'_>) {
        let (first, second) = if holds { (yes, no) } else { (no, yes) };
        self.brif(test, first, second);
    }

    /// Adds a comparison with operands in either order.
    fn icmp(&mut self, condition: IntCC, a: Value, b: Value, of: u32) -> Value {
        match self.dice.chance(1, of) {
            true => self.cursor().ins().icmp(condition.swap_args(), b, a),
            false => self.cursor().ins().icmp(condition, a, b),
        }
    }

    /// Adds the test of a loop. The test holds while the loop continues.
    fn test(&mut self, course: &Course, tested: Value) -> Test {
        let stays = course.count.stays;
        let bound = match course.slot {
            Some(slot) => self.reload(slot, course.count.ty),
            None => course.bound,
        };
        let holds = self.dice.chance(1, 2);
        let condition = if holds { stays } else { stays.complement() };
        if stays == NotEqual && course.param.is_none() && self.dice.chance(1, 4) {
            return (self.cursor().ins().isub(tested, bound), true);
        }
        let test = self.icmp(condition, tested, bound, 4);
        if self.dice.chance(1, 12) {
            return (self.cursor().ins().uextend(types::I32, test), holds);
        }
        (test, holds)
    }

    fn course(&mut self, depth: usize) -> Course {
        let (plain, pure) = (self.style.plain, self.style.pure);
        let ty = match plain {
            true if pure || self.dice.chance(19, 20) => types::I32,
            _ => self
                .dice
                .one_of(&[types::I32, types::I32, types::I32, types::I64, types::I16, types::I8]),
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
            0 if self.style.memory => self.dice.one_of(IntCC::all()),
            1..10 => NotEqual,
            _ => self.dice.one_of(&usual),
        };
        let at_start = self.dice.chance(1, 3);
        let next = !self.dice.chance(1, 5);
        let inner = depth < self.style.depth;
        let most = match (inner, depth) {
            _ if !self.style.memory => [40, 6, 3][depth.min(2)],
            (true, 0) => 6,
            (true, _) => 4,
            (false, 0) => 100,
            (false, 1) => 64,
            (false, _) => 20,
        };
        let more = if at_start { 0 } else { i64::from(next) - 1 };
        let trips = match pure && !inner && self.dice.chance(5, 6) {
            true => self.dice.one_of(&[16, 17, 31, 32, 33, 47, 48, 64, 100]).min(most),
            false => params::trips(&mut self.dice, most),
        };
        let mut count = Count {
            ty,
            start: Start::Constant(0),
            step,
            stays,
            more,
            most,
        };
        let outer = self
            .counters
            .last()
            .cloned()
            .filter(|outer| outer.ty == ty && self.style.memory);
        let (mut start, mut first) = (0, None);
        match self.dice.below(10) {
            0 if self.style.memory => {
                first = Some(self.param(Param::Start(ty)));
                count.start = Start::Param(self.params.len() - 1);
            }
            1 if outer.is_some() => return self.course_from(&count, at_start, next),
            2 => {
                let edge = self.dice.one_of(&[0, 1i64 << (ty.bits() - 1), 1i64 << 31]);
                start = edge.wrapping_sub(step * self.dice.range(-2, trips + 2));
            }
            3 | 4 if !pure || self.dice.chance(1, 4) => start = self.dice.range(-5, 60),
            _ if step < 0 => start = (trips - i64::from(at_start)).max(0) * -step,
            _ if pure && self.dice.chance(1, 8) => start = 64,
            _ => {}
        }
        let first = match first {
            Some(first) => first,
            None => {
                start = params::wrapped(start, ty);
                count.start = Start::Constant(start);
                self.int(ty, start)
            }
        };
        let mut param = None;
        let bound = match count.start {
            Start::Constant(start) if !self.style.memory || self.dice.chance(1, 3) => {
                let number = params::bound(&mut self.dice, &count, start, trips);
                self.int(ty, number)
            }
            _ => {
                param = Some(self.params.len());
                self.param(Param::Bound(count))
            }
        };
        let slot = (!plain && self.dice.chance(1, 16)).then(|| self.in_slot(bound));
        Course {
            count,
            first,
            bound,
            at_start,
            next,
            param,
            slot,
        }
    }

    /// Returns a counter that starts at the enclosing loop's counter or ends there.
    fn course_from(&mut self, count: &Count, at_start: bool, next: bool) -> Course {
        let outer = self.counters[self.counters.len() - 1].value;
        let mut count = *count;
        let param = self.param(Param::Bound(count));
        let index = self.params.len() - 1;
        let bound = self.cursor().ins().iadd(outer, param);
        let first = if self.dice.chance(1, 2) {
            outer
        } else {
            self.int(count.ty, 0)
        };
        count.start = Start::Param(index);
        Course {
            count,
            first,
            bound,
            at_start,
            next,
            param: Some(index),
            slot: None,
        }
    }

    fn carried(&mut self) -> Vec<Carried> {
        let mut all: Vec<Carried> = Vec::new();
        let plain = self.style.plain;
        for _ in 0..self.dice.one_of(&[0, 0, 1, 1, 1, 2, 3]) {
            let ty = match self.dice.below(4) {
                _ if !self.style.memory => self.ty(),
                0 => match self.g.dice.one_of(&self.style.elements) {
                    types::F32 if plain => types::I32,
                    ty => ty,
                },
                1 if !plain => self.dice.one_of(&[types::I8, types::I16, types::I64]),
                _ => types::I32,
            };
            let kinds = if self.style.pure {
                60
            } else {
                10 + 20 * usize::from(plain)
            };
            let how = match self.dice.below(kinds) {
                0 => How::Last,
                1 => How::Sometimes,
                2 | 3 if ty.is_int() && !ty.is_vector() => {
                    How::Grows(self.dice.one_of(&[1, 2, 3, -1, 4, 100, 0x4000_0000]))
                }
                _ => How::Reduce,
            };
            let init = self.any(ty);
            all.push(Carried { ty, init, how });
            if matches!(how, How::Last) && self.dice.chance(1, 2) {
                for _ in 0..self.dice.range(1, 3) {
                    let (init, how) = (self.any(ty), How::Rotate);
                    all.push(Carried { ty, init, how });
                }
            }
        }
        all
    }

    /// Chooses addresses that are induction variables: base, first value and increment.
    fn pointers(&mut self, depth: usize) -> Vec<(Base, Value, i64)> {
        let outer = depth < self.style.depth;
        let mut all = Vec::new();
        let count = if self.bases.is_empty() {
            0
        } else {
            self.dice.one_of(&[0, 0, 0, 1, 1, 2])
        };
        for _ in 0..count {
            let mut base = self.g.dice.one_of(&self.bases);
            let bytes = i64::from(self.g.dice.one_of(&self.style.elements).bytes());
            let step = match self.dice.below(8) {
                0..6 if self.style.pure && outer => self.dice.one_of(&[64, 128]),
                _ if self.style.pure => bytes,
                0 => -bytes,
                1 => 2 * bytes,
                2 => 3 * bytes,
                _ => bytes,
            };
            if base.slot.take().is_some() {
                continue;
            }
            let mut init = base.value;
            if let Some(counter) = self.counters.last().cloned()
                && self.dice.chance(1, 2)
            {
                let row = match self.style.pure && self.dice.chance(4, 5) {
                    true => self.dice.one_of(&[64, 128]),
                    false => self.dice.one_of(&[16, 64, 40, 4, 100]),
                };
                if counter.start.is_none_or(|start| start.unsigned_abs() < 100) {
                    let term = self.scaled(&counter, row, 0);
                    init = self.cursor().ins().iadd(init, term);
                    base.align = base.align.min(low_bit(row));
                }
            }
            if self.dice.chance(1, 4) {
                let away = match self.style.pure && self.dice.chance(5, 6) {
                    true => self.dice.range(-4, 12) * 64,
                    false => self.dice.range(-8, 40) * bytes,
                };
                let c = self.int(types::I32, away);
                init = self.cursor().ins().iadd(init, c);
                base.align = base.align.min(low_bit(away));
            }
            base.align = base.align.min(low_bit(step));
            base.moves = Some(step);
            all.push((base, init, step));
        }
        all
    }

    /// Writes the body of a loop.
    fn body(&mut self, depth: usize, course: &Course) {
        let inner = depth < self.style.depth && self.style.memory;
        for _ in 0..self.dice.range(i64::from(!inner), 4) {
            self.statement(depth + 1, Some(course), true);
        }
        if inner {
            self.nest(depth + 1);
            if self.dice.chance(1, 6) && self.budget > 0 {
                self.nest(depth + 1);
            }
            for _ in 0..self.dice.range(0, 2) {
                self.statement(depth + 1, Some(course), true);
            }
            return;
        }
        for _ in 0..self.dice.range(1, 6) {
            self.statement(depth + 1, Some(course), true);
        }
        let stores = if self.style.pure { 9 } else { 6 };
        match self.dice.chance(stores, 9) {
            true => self.store(),
            false => self.load(),
        }
    }

    /// Adds a statement. Only statements at the top of a loop's body may leave the loop.
    pub fn statement(&mut self, depth: usize, course: Option<&Course>, top: bool) {
        self.budget -= 1;
        if self.budget < 0 {
            return;
        }
        let (plain, checks) = (self.style.plain, self.style.checks);
        let choice = self.dice.below(20);
        let branches = top && (!plain || self.dice.chance(1, 3));
        if !self.style.memory {
            return match choice {
                0..3 => self.load(),
                3 | 4 if depth < 4 => self.choice(depth, course),
                5 if depth < 4 => self.nest(depth),
                6 | 7 => self.call(),
                8 if checks => self.check(course),
                _ => self.operation(),
            };
        }
        match choice {
            0..7 => self.load(),
            7..9 => self.store(),
            9 if branches => self.choice(depth, course),
            10 | 11 if checks => self.check(course),
            12 if self.style.exits && top => self.early_exit(),
            _ => self.operation(),
        }
    }

    /// Adds a branch or a table with arms and a join.
    fn choice(&mut self, depth: usize, course: Option<&Course>) {
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
            let index = if self.dice.chance(2, 3) {
                self.low_bits(types::I32, 3)
            } else {
                self.any(types::I32)
            };
            self.table(index, &blocks);
        } else {
            let test = self.compare();
            let direct: Vec<Value> = types.iter().map(|&ty| self.any(ty)).collect();
            let other = blocks.get(1).map_or((join, &direct[..]), |&block| (block, &[]));
            self.brif(test, (blocks[0], &[]), other);
        }
        for block in blocks {
            self.begin(block);
            let scope = self.scope.len();
            let most = if self.style.memory { 3 } else { 8 };
            for _ in 0..self.dice.range(0, most) {
                if self.style.plain && self.dice.chance(9, 10) {
                    self.operation();
                } else {
                    self.statement(depth + 1, course, false);
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
        let last = self.open.len() - 1;
        let at = if self.dice.chance(5, 6) {
            last
        } else {
            self.dice.below(last + 1)
        };
        self.open[at].is_left = true;
        let Open { exit, out, .. } = self.open[at].clone();
        let mask = self.dice.one_of(&[7, 15, 31, 63, 127]);
        let test = self.equals_low_bits(mask, 7);
        let mut values = Vec::new();
        for param in out {
            values.push(match self.dice.chance(1, 3) {
                true => self.any(self.type_of(param)),
                false => param,
            });
        }
        let (on, _) = self.block(&[]);
        self.branch(test, (exit, &values), (on, &[]));
        self.begin(on);
    }

    /// Compares the low bits of a value with a number from 0 to `most`. The test holds if they are
    /// equal.
    fn equals_low_bits(&mut self, mask: i64, most: i64) -> Test {
        let ty = self.some_int();
        let low = self.low_bits(ty, mask);
        let number = self.dice.range(0, most);
        let number = self.int(ty, number);
        let holds = self.dice.chance(2, 3);
        let condition = if holds { Equal } else { NotEqual };
        (self.cursor().ins().icmp(condition, low, number), holds)
    }

    /// Adds a check that traps: a bounds check as in WebAssembly, an alignment check, or a check of
    /// a value.
    fn check(&mut self, course: Option<&Course>) {
        let user = TrapCode::unwrap_user;
        let codes = [
            TrapCode::HEAP_OUT_OF_BOUNDS,
            user(1),
            user(7),
            TrapCode::INTEGER_OVERFLOW,
        ];
        let code = self.dice.one_of(&codes);
        let (test, traps) = match (self.dice.below(8), course) {
            (1, Some(_)) if !self.bases.is_empty() => (self.alignment_check(), None),
            (2.., Some(course)) if self.style.memory => {
                let (test, traps) = self.bound_check(course);
                (test, Some(traps))
            }
            _ => {
                let (test, traps) = self.equals_low_bits(127, 20);
                (test, Some(traps))
            }
        };
        if self.dice.chance(1, 2) && traps.is_some() {
            match traps {
                Some(true) => self.cursor().ins().trapnz(test, code),
                _ => self.cursor().ins().trapz(test, code),
            };
            return;
        }
        let ((trap, _), (on, _)) = (self.block(&[]), self.block(&[]));
        self.branch((test, traps.unwrap_or(true)), (trap, &[]), (on, &[]));
        self.begin(trap);
        if self.dice.chance(3, 4) {
            self.func.layout.set_cold(trap);
        }
        self.cursor().ins().trap(code);
        self.begin(on);
    }

    /// Compares a sum of counters with a limit. Returns the condition, and whether the check traps
    /// if the condition is true.
    fn bound_check(&mut self, course: &Course) -> Test {
        let counter = self.counters[self.counters.len() - 1].clone();
        let scale = self.dice.one_of(&[1, 1, 4, 2, 8, -1, -4]);
        let offset = self.dice.one_of(&[0, 0, 4, 1, 100, 0x7fff_ff00, -0x8000_0000]);
        let mut value = self.scaled(&counter, scale, 0);
        let mut terms = Vec::new();
        if self.counters.len() > 1 && self.dice.chance(1, 3) {
            let outer = self.counters[0].clone();
            let by = self.dice.one_of(&[1, 4, 16, -4]);
            terms.push(self.scaled(&outer, by, 0));
        }
        if self.dice.chance(1, 8) {
            let mask = self.dice.one_of(&[3, 15, 255]);
            terms.push(self.low_bits(types::I32, mask));
        }
        if offset != 0 {
            terms.push(self.int(types::I32, offset));
        }
        for term in terms {
            value = self.cursor().ins().iadd(value, term);
        }
        let limit = self.param(Param::Limit {
            count: course.count,
            bound: course.param,
            scale,
            offset,
        });
        let traps = self.dice.chance(1, 2);
        let unsigned = [UnsignedLessThan, UnsignedLessThanOrEqual];
        let inside = if self.dice.chance(3, 4) {
            self.dice.one_of(&unsigned)
        } else {
            SignedLessThan
        };
        let condition = if traps { inside.complement() } else { inside };
        (self.icmp(condition, value, limit, 3), traps)
    }

    /// Computes the low bits of an address. A branch tests them without a comparison.
    fn alignment_check(&mut self) -> Value {
        let counter = self.counters[self.counters.len() - 1].clone();
        let base = self.g.dice.one_of(&self.bases);
        let scale = self.dice.one_of(&[1, 2, 4, 4, 8]);
        let term = self.scaled(&counter, scale, 0);
        let mut sum = self.cursor().ins().iadd(base.value, term);
        if base.bias != 0 {
            let bias = self.int(types::I32, i64::from(base.bias.cast_signed()));
            sum = self.cursor().ins().iadd(sum, bias);
        }
        let mask = self.dice.one_of(&[1, 3, 3, 7]);
        let mask = self.int(types::I32, mask);
        self.cursor().ins().band(sum, mask)
    }
}
