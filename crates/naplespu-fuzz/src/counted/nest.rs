//! Loops: counters, loop-carried values, bodies.

use super::params::{self, Count, Param, Start};
use super::write::{Base, Counter, Open, Writer};
use crate::generate::Ty;

/// The counter of a loop and the values that are computed before the loop.
struct Course {
    count: Count,
    /// The first value.
    first: String,
    /// The bound.
    bound: String,
    /// Whether the loop is tested at the start of an iteration.
    at_start: bool,
    /// Whether the test compares the counter of the next iteration.
    next: bool,
    /// The parameter that is the bound, if it is one.
    param: Option<usize>,
    /// The stack slot that the bound is reloaded from in each iteration, if it is in memory.
    slot: Option<usize>,
}

/// A loop-carried value.
struct Carried {
    ty: Ty,
    init: String,
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

const UP: [&str; 5] = ["slt", "ult", "sle", "ule", "ne"];
const DOWN: [&str; 5] = ["sgt", "ugt", "sge", "uge", "ne"];

/// Returns the negated condition.
fn complement(code: &str) -> &'static str {
    match code {
        "eq" => "ne",
        "ne" => "eq",
        "slt" => "sge",
        "sle" => "sgt",
        "sgt" => "sle",
        "sge" => "slt",
        "ult" => "uge",
        "ule" => "ugt",
        "ugt" => "ule",
        _ => "ult",
    }
}

/// Returns the condition for exchanged operands.
fn swapped(code: &str) -> &str {
    match code {
        "slt" => "sgt",
        "sle" => "sge",
        "sgt" => "slt",
        "sge" => "sle",
        "ult" => "ugt",
        "ule" => "uge",
        "ugt" => "ult",
        "uge" => "ule",
        same => same,
    }
}

impl Writer<'_, '_> {
    /// Adds a loop with its body to the current block, and begins the block after the loop.
    pub fn nest(&mut self, depth: usize) {
        self.budget -= 3;
        let outermost = self.pool.len();
        let course = self.course(depth);
        let ty = course.count.ty;
        let carried = self.carried();
        let pointers = self.pointers(depth);
        let mut types = vec![ty];
        types.extend(carried.iter().map(|one| one.ty));
        types.extend(pointers.iter().map(|_| Ty::I32));
        let header = self.block();
        let exit = self.block();
        let params: Vec<String> = types.iter().map(|_| self.fresh()).collect();
        let inits: Vec<String> = std::iter::once(course.first.clone())
            .chain(carried.iter().map(|one| one.init.clone()))
            .chain(pointers.iter().map(|(_, init, _)| init.clone()))
            .collect();
        // The results of the loop are the loop-carried values and sometimes the counter.
        let shows_counter = self.dice.chance(1, 3);
        let outs = if shows_counter { 0 } else { 1 };
        let out_types: Vec<Ty> = types[outs..=carried.len()].to_vec();
        let entry_outs = inits[outs..=carried.len()].join(", ");
        let enters = format!("block{header}({})", inits.join(", "));
        let mut skips = false;
        if !course.at_start && self.dice.chance(1, 2) {
            let test = self.test(&course, &course.first.clone());
            self.branch(test, &enters, &format!("block{exit}({entry_outs})"));
            skips = true;
        } else {
            self.line(&format!("jump {enters}"));
        }
        self.begin_with(header, &params, &types);
        let base_count = self.bases.len();
        self.enter(&course, &carried, &pointers, &params);
        let known: Vec<(Ty, String)> = (outs..=carried.len())
            .map(|at| (types[at], params[at].clone()))
            .collect();
        self.open.push(Open { exit, out: known });
        if course.at_start {
            let body = self.block();
            let test = self.test(&course, &params[0]);
            let list = params[outs..=carried.len()].join(", ");
            self.branch(test, &format!("block{body}"), &format!("block{exit}({list})"));
            self.begin(body, &[]);
        }
        let exits_before = self.text.len();
        self.body(depth, &course);
        let has_exits = self.text[exits_before..].contains(&format!("block{exit}("));
        let (nexts, outs_now) = self.next(&course, &carried, &pointers, &params, outs);
        let again = format!("block{header}({})", nexts.join(", "));
        if course.at_start {
            self.line(&format!("jump {again}"));
        } else {
            let tested = if course.next {
                nexts[0].clone()
            } else {
                params[0].clone()
            };
            let test = self.test(&course, &tested);
            self.branch(test, &again, &format!("block{exit}({})", outs_now.join(", ")));
        }
        self.open.pop();
        self.counters.pop();
        self.bases.truncate(base_count);
        let stays = !skips && !has_exits && !course.at_start && self.dice.chance(1, 2);
        if !stays {
            self.pool.truncate(outermost);
        }
        let values = self.begin(exit, &out_types);
        self.pool.extend(values.into_iter().zip(out_types));
    }

    /// Puts the parameters of a header into scope.
    fn enter(&mut self, course: &Course, carried: &[Carried], pointers: &[(Base, String, i64)], params: &[String]) {
        let start = match course.count.start {
            Start::Constant(number) => Some(number),
            Start::Param(_) => None,
        };
        if self.dice.chance(1, 3) {
            self.pool.push((params[0].clone(), course.count.ty));
        }
        for (one, param) in carried.iter().zip(&params[1..]) {
            let visible = match one.how {
                How::Reduce => self.dice.chance(1, if self.style.pure { 30 } else { 6 }),
                _ => true,
            };
            if visible {
                self.pool.push((param.clone(), one.ty));
            }
        }
        for ((base, _, _), param) in pointers.iter().zip(&params[1 + carried.len()..]) {
            let mut base = base.clone();
            base.value.clone_from(param);
            base.depth = self.counters.len() + 1;
            self.bases.push(base.clone());
            self.bases.push(base);
        }
        self.counters.push(Counter {
            value: params[0].clone(),
            ty: course.count.ty,
            start,
            step: course.count.step,
        });
    }

    /// Returns the arguments of the back edge and of the exit at the end of an iteration.
    fn next(
        &mut self,
        course: &Course,
        carried: &[Carried],
        pointers: &[(Base, String, i64)],
        params: &[String],
        outs: usize,
    ) -> (Vec<String>, Vec<String>) {
        let mut nexts = vec![String::new()];
        for (at, one) in carried.iter().enumerate() {
            let param = params[at + 1].clone();
            nexts.push(match one.how {
                How::Reduce => {
                    let value = self.any(one.ty);
                    self.reduce(one.ty, &param, &value)
                }
                How::Last => self.any(one.ty),
                How::Rotate => params[at].clone(),
                How::Sometimes => {
                    let (test, value) = (self.compare(), self.any(one.ty));
                    self.push(&format!("select {test}, {value}, {param}"))
                }
                How::Grows(by) => {
                    let by = self.constant(one.ty, by);
                    self.push(&format!("iadd {param}, {by}"))
                }
            });
        }
        for ((_, _, step), param) in pointers.iter().zip(&params[1 + carried.len()..]) {
            let step = self.constant(Ty::I32, *step);
            let next = self.push(&format!("iadd {param}, {step}"));
            nexts.push(next);
        }
        let step = course.count.step;
        nexts[0] = if step < 0 && self.dice.chance(1, 4) {
            let step = self.constant(course.count.ty, -step);
            self.push(&format!("isub {}, {step}", params[0]))
        } else {
            let step = self.constant(course.count.ty, step);
            self.push(&format!("iadd {}, {step}", params[0]))
        };
        let out = (outs..=carried.len())
            .map(|at| match self.dice.chance(1, 6) {
                true => params[at].clone(),
                false => nexts[at].clone(),
            })
            .collect();
        (nexts, out)
    }

    /// Adds a branch with its targets in either order. The flag tells whether `yes` is taken if the
    /// test is not 0.
    fn branch(&mut self, (test, holds): (String, bool), yes: &str, no: &str) {
        let (first, second) = if holds { (yes, no) } else { (no, yes) };
        self.line(&format!("brif {test}, {first}, {second}"));
    }

    /// Adds the test of a loop. Returns the condition, and whether the loop continues if the
    /// condition is not 0.
    fn test(&mut self, course: &Course, tested: &str) -> (String, bool) {
        let stays = course.count.stays;
        let ty = course.count.ty;
        let bound = match course.slot {
            Some(slot) => {
                let at = self.push(&format!("stack_addr.i32 ss{slot}"));
                self.push(&format!("load.{ty} notrap aligned {at}"))
            }
            None => course.bound.clone(),
        };
        let holds = self.dice.chance(1, 2);
        let code = if holds { stays } else { complement(stays) };
        if stays == "ne" && course.param.is_none() && self.dice.chance(1, 4) {
            let distance = self.push(&format!("isub {tested}, {bound}"));
            return (distance, true);
        }
        let test = match self.dice.chance(1, 4) {
            true => self.push(&format!("icmp {} {bound}, {tested}", swapped(code))),
            false => self.push(&format!("icmp {code} {tested}, {bound}")),
        };
        if self.dice.chance(1, 12) {
            return (self.push(&format!("uextend.i32 {test}")), holds);
        }
        (test, holds)
    }

    fn course(&mut self, depth: usize) -> Course {
        let plain = self.style.plain;
        let pure = self.style.pure;
        let ty = match plain {
            true if pure || self.dice.chance(19, 20) => Ty::I32,
            _ => self.dice.one_of(&[Ty::I32, Ty::I32, Ty::I32, Ty::I64, Ty::I16, Ty::I8]),
        };
        let smallest = self.style.elements.iter().map(|ty| i64::from(ty.bits() / 8)).min();
        let size = match self.dice.below(if plain { 9 } else { 5 }) {
            0 if pure => self.dice.one_of(&[1, 2, 4]).min(smallest.unwrap_or(1)),
            0 => self.dice.one_of(&[2, 4, 8, 1]),
            1 if !plain => self.dice.one_of(&[2, 3, 4, 5, 7, 8, 16]),
            _ => 1,
        };
        let step = if self.dice.chance(3, 4) { size } else { -size };
        let usual = if step > 0 { UP } else { DOWN };
        let stays = match self.dice.below(if pure { 48 } else { 24 }) {
            0 => self.dice.one_of(&["slt", "ult", "sgt", "ugt", "sge", "ule", "eq"]),
            1..10 => "ne",
            _ => self.dice.one_of(&usual),
        };
        let at_start = self.dice.chance(1, 3);
        let next = !self.dice.chance(1, 5);
        let inner = depth < self.style.depth;
        let most = match (inner, depth) {
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
        let outer = self.counters.last().cloned().filter(|outer| outer.ty == ty);
        let first = match self.dice.below(10) {
            0 => {
                let param = self.param(Param::Start(ty));
                count.start = Start::Param(self.params.len() - 1);
                param
            }
            1 if outer.is_some() => return self.course_from(&count, at_start, next),
            2 => {
                let edge = self.dice.one_of(&[0, 1i64 << (ty.bits() - 1), 1i64 << 31]);
                let start = params::wrapped(edge.wrapping_sub(step * self.dice.range(-2, trips + 2)), ty);
                count.start = Start::Constant(start);
                self.constant(ty, start)
            }
            3 | 4 if !pure || self.dice.chance(1, 4) => {
                let start = self.dice.range(-5, 60);
                count.start = Start::Constant(start);
                self.constant(ty, start)
            }
            _ => {
                let start = match step > 0 {
                    true if pure && self.dice.chance(1, 8) => 64,
                    true => 0,
                    false => (trips - i64::from(at_start)).max(0) * -step,
                };
                count.start = Start::Constant(start);
                self.constant(ty, start)
            }
        };
        let mut param = None;
        let bound = match count.start {
            Start::Constant(start) if self.dice.chance(1, 3) => {
                let number = params::bound(&mut self.dice, &count, start, trips);
                self.constant(ty, number)
            }
            _ => {
                param = Some(self.params.len());
                self.param(Param::Bound(count))
            }
        };
        let mut slot = None;
        if !plain && self.dice.chance(1, 16) {
            slot = Some(self.slots.len());
            self.slots.push(8);
            let at = self.push(&format!("stack_addr.i32 ss{}", self.slots.len() - 1));
            self.line(&format!("store notrap aligned {bound}, {at}"));
        }
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
        let outer = self.counters[self.counters.len() - 1].value.clone();
        let mut count = *count;
        let zero = Count {
            start: Start::Constant(0),
            ..count
        };
        let param = self.param(Param::Bound(zero));
        let index = self.params.len() - 1;
        let (first, bound) = match self.dice.below(2) {
            0 => {
                let bound = self.push(&format!("iadd {outer}, {param}"));
                (outer, bound)
            }
            _ => {
                count.start = Start::Constant(0);
                let first = self.constant(count.ty, 0);
                (first, self.push(&format!("iadd {param}, {outer}")))
            }
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
                0 => match self.dice.one_of(&self.style.elements.clone()) {
                    Ty::F32 if plain => Ty::I32,
                    ty => ty,
                },
                1 if !plain => self.dice.one_of(&[Ty::I8, Ty::I16, Ty::I64]),
                _ => Ty::I32,
            };
            let how = match self.dice.below(if self.style.pure {
                60
            } else if plain {
                30
            } else {
                10
            }) {
                0 => How::Last,
                1 => How::Sometimes,
                2 | 3 if ty != Ty::F32 => How::Grows(self.dice.one_of(&[1, 2, 3, -1, 4, 100, 0x4000_0000])),
                _ => How::Reduce,
            };
            let init = self.any(ty);
            all.push(Carried { ty, init, how });
            if matches!(how, How::Last) && self.dice.chance(1, 2) {
                for _ in 0..self.dice.range(1, 3) {
                    let init = self.any(ty);
                    all.push(Carried {
                        ty,
                        init,
                        how: How::Rotate,
                    });
                }
            }
        }
        all
    }

    /// Chooses addresses that are induction variables: base, first value and increment.
    fn pointers(&mut self, depth: usize) -> Vec<(Base, String, i64)> {
        let outer = depth < self.style.depth;
        let mut all = Vec::new();
        let inner = self.dice.one_of(&[0, 0, 0, 1, 1, 2]);
        for _ in 0..inner {
            let mut base = self.dice.one_of(&self.bases.clone());
            let bytes = i64::from(self.dice.one_of(&self.style.elements.clone()).bits() / 8);
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
            let mut init = base.value.clone();
            if let Some(counter) = self.counters.last().cloned()
                && self.dice.chance(1, 2)
            {
                let row = match self.style.pure && self.dice.chance(4, 5) {
                    true => self.dice.one_of(&[64, 128]),
                    false => self.dice.one_of(&[16, 64, 40, 4, 100]),
                };
                if counter.start.is_none_or(|start| start.unsigned_abs() < 100) {
                    let term = self.scaled(&counter, row, 0);
                    init = self.push(&format!("iadd {init}, {term}"));
                    base.align = base.align.min(1 << row.trailing_zeros());
                }
            }
            if self.dice.chance(1, 4) {
                let away = match self.style.pure && self.dice.chance(5, 6) {
                    true => self.dice.range(-4, 12) * 64,
                    false => self.dice.range(-8, 40) * bytes,
                };
                let c = self.constant(Ty::I32, away);
                init = self.push(&format!("iadd {init}, {c}"));
                base.align = base.align.min(1 << away.trailing_zeros().min(6));
            }
            base.align = base.align.min(1 << step.trailing_zeros().min(6));
            base.moves = Some(step);
            all.push((base, init, step));
        }
        all
    }

    /// Writes the body of a loop.
    fn body(&mut self, depth: usize, course: &Course) {
        let inner = depth < self.style.depth;
        let before = self.dice.range(if inner { 0 } else { 1 }, 4);
        for _ in 0..before {
            self.statement(depth, course, true);
        }
        if inner {
            self.nest(depth + 1);
            if self.dice.chance(1, 6) && self.budget > 0 {
                self.nest(depth + 1);
            }
            for _ in 0..self.dice.range(0, 2) {
                self.statement(depth, course, true);
            }
        } else {
            for _ in 0..self.dice.range(1, 6) {
                self.statement(depth, course, true);
            }
            self.store_or_load();
        }
    }

    fn store_or_load(&mut self) {
        match self.dice.chance(if self.style.pure { 9 } else { 6 }, 9) {
            true => self.store(),
            false => self.load(),
        }
    }

    fn statement(&mut self, depth: usize, course: &Course, top: bool) {
        self.budget -= 1;
        if self.budget < 0 {
            return;
        }
        let plain = self.style.plain;
        match self.dice.below(20) {
            0..7 => self.load(),
            7..9 => self.store(),
            9 if top && (!plain || self.dice.chance(1, 3)) => self.choice(depth, course),
            10 if self.style.checks || self.dice.chance(1, 30) => self.check(course),
            11 if self.style.checks => self.check(course),
            12 if self.style.exits && top => self.early_exit(),
            _ => self.operation(),
        }
    }

    /// Adds a branch with one or two arms and a join.
    fn choice(&mut self, depth: usize, course: &Course) {
        let test = self.compare();
        let types: Vec<Ty> = (0..self.dice.range(0, 2)).map(|_| self.some_type()).collect();
        let (yes, no, join) = (self.block(), self.block(), self.block());
        let scope = self.pool.len();
        let both = self.dice.chance(1, 2);
        let passed = |writer: &mut Self| {
            let values: Vec<String> = types.iter().map(|ty| writer.any(*ty)).collect();
            format!("block{join}({})", values.join(", "))
        };
        let target = if both { format!("block{no}") } else { passed(self) };
        self.line(&format!("brif {test}, block{yes}, {target}"));
        for block in if both { vec![yes, no] } else { vec![yes] } {
            self.begin(block, &[]);
            for _ in 0..self.dice.range(0, 3) {
                match self.style.plain {
                    true if self.dice.chance(9, 10) => self.operation(),
                    _ => self.statement(depth, course, false),
                }
            }
            let target = passed(self);
            self.line(&format!("jump {target}"));
            self.pool.truncate(scope);
        }
        let values = self.begin(join, &types);
        self.pool.extend(values.into_iter().zip(types));
    }

    /// Adds an exit from an open loop.
    fn early_exit(&mut self) {
        let last = self.open.len() - 1;
        let at = if self.dice.chance(5, 6) {
            last
        } else {
            self.dice.below(last + 1)
        };
        let Open { exit, out } = self.open[at].clone();
        let ty = self.some_type();
        let ty = if ty == Ty::F32 { Ty::I32 } else { ty };
        let value = self.any(ty);
        let mask = self.dice.one_of(&[7, 15, 31, 63, 127]);
        let mask = self.constant(ty, mask);
        let low = self.push(&format!("band {value}, {mask}"));
        let number = self.dice.range(0, 7);
        let number = self.constant(ty, number);
        let test = self.push(&format!("icmp eq {low}, {number}"));
        let values: Vec<String> = out
            .iter()
            .map(|(ty, param)| match self.dice.chance(1, 3) {
                true => self.any(*ty),
                false => param.clone(),
            })
            .collect();
        let on = self.block();
        let leaves = format!("block{exit}({})", values.join(", "));
        self.branch((test, true), &leaves, &format!("block{on}"));
        self.begin(on, &[]);
    }

    /// Adds a check that traps: a bounds check as in WebAssembly, an alignment check, or a check of
    /// a value.
    fn check(&mut self, course: &Course) {
        let code = self.dice.one_of(&["heap_oob", "user1", "user7", "int_ovf"]);
        let (test, traps) = match self.dice.below(8) {
            0 => self.value_check(),
            1 => self.alignment_check(),
            _ => self.bound_check(course),
        };
        if self.dice.chance(1, 2) && traps.is_some() {
            let opcode = if traps == Some(true) { "trapnz" } else { "trapz" };
            self.line(&format!("{opcode} {test}, {code}"));
            return;
        }
        let (trap, on) = (self.block(), self.block());
        let traps = traps.unwrap_or(true);
        self.branch((test, traps), &format!("block{trap}"), &format!("block{on}"));
        let cold = if self.dice.chance(3, 4) { " cold" } else { "" };
        self.line(&format!("block{trap}{cold}:"));
        self.line(&format!("trap {code}"));
        self.begin(on, &[]);
    }

    /// Compares a sum of counters with a limit. Returns the condition, and whether the check traps
    /// if the condition is true.
    fn bound_check(&mut self, course: &Course) -> (String, Option<bool>) {
        let counter = self.counters[self.counters.len() - 1].clone();
        let scale = self.dice.one_of(&[1, 1, 4, 2, 8, -1, -4]);
        let offset = self.dice.one_of(&[0, 0, 4, 1, 100, 0x7fff_ff00, -0x8000_0000]);
        let mut value = self.scaled(&counter, scale, 0);
        if self.counters.len() > 1 && self.dice.chance(1, 3) {
            let outer = self.counters[0].clone();
            let by = self.dice.one_of(&[1, 4, 16, -4]);
            let term = self.scaled(&outer, by, 0);
            value = self.push(&format!("iadd {value}, {term}"));
        }
        if self.dice.chance(1, 8) {
            let (ty, mask) = (self.some_type(), self.dice.one_of(&[3, 15, 255]));
            let ty = if ty == Ty::F32 { Ty::I32 } else { ty };
            let more = self.any(ty);
            let more = self.convert(&more, ty, Ty::I32);
            let mask = self.constant(Ty::I32, mask);
            let small = self.push(&format!("band {more}, {mask}"));
            value = self.push(&format!("iadd {value}, {small}"));
        }
        if offset != 0 {
            let c = self.constant(Ty::I32, offset);
            value = self.push(&format!("iadd {value}, {c}"));
        }
        let limit = self.param(Param::Limit {
            count: course.count,
            bound: course.param,
            scale,
            offset,
        });
        let (code, traps) = self.dice.one_of(&[
            ("ugt", true),
            ("uge", true),
            ("ult", false),
            ("ule", false),
            ("ugt", true),
            ("uge", true),
            ("ult", false),
            ("sgt", true),
            ("slt", false),
        ]);
        match self.dice.chance(1, 3) {
            true => (
                self.push(&format!("icmp {} {limit}, {value}", swapped(code))),
                Some(traps),
            ),
            false => (self.push(&format!("icmp {code} {value}, {limit}")), Some(traps)),
        }
    }

    /// Computes the low bits of an address. A branch tests them without a comparison, hence `None`.
    fn alignment_check(&mut self) -> (String, Option<bool>) {
        let counter = self.counters[self.counters.len() - 1].clone();
        let base = self.dice.one_of(&self.bases.clone());
        let scale = self.dice.one_of(&[1, 2, 4, 4, 8]);
        let term = self.scaled(&counter, scale, 0);
        let mut sum = self.push(&format!("iadd {}, {term}", base.value));
        if base.bias != 0 {
            let bias = self.constant(Ty::I32, i64::from(base.bias.cast_signed()));
            sum = self.push(&format!("iadd {sum}, {bias}"));
        }
        let mask = self.dice.one_of(&[1, 3, 3, 7]);
        let mask = self.constant(Ty::I32, mask);
        (self.push(&format!("band {sum}, {mask}")), None)
    }

    fn value_check(&mut self) -> (String, Option<bool>) {
        let ty = self.some_type();
        let ty = if ty == Ty::F32 { Ty::I32 } else { ty };
        let value = self.any(ty);
        let mask = self.constant(ty, 127);
        let low = self.push(&format!("band {value}, {mask}"));
        let number = self.dice.range(0, 20);
        let number = self.constant(ty, number);
        (self.push(&format!("icmp eq {low}, {number}")), Some(true))
    }
}
