//! Loops over the words of a stack slot, as front ends emit them.
//!
//! The index is an induction variable with a constant step. It is compared with a constant or
//! unknown bound at the start or end of an iteration. Some loops have a second exit.

use super::body::Body;
use super::generate::Ty;
use arbitrary::Result;

/// The largest trip count.
const ROUNDS: u64 = 40;

/// The counter of a loop: first value, step, exit test.
struct Course {
    start: i64,
    step: i64,
    /// The loop continues while the tested value (the index or its next value) compares with
    /// `bound` by this condition.
    condition: &'static str,
    bound: String,
    /// The smallest and largest index, if they are known.
    range: Option<(i64, i64)>,
}

impl Body<'_, '_> {
    /// Adds a loop over a slot, or nothing if the function has no slots.
    pub(super) fn array_loop(&mut self) -> Result<()> {
        let slots = self.funcs[self.index].slots.clone();
        if slots.is_empty() {
            return Ok(());
        }
        let slot = self.u.choose_index(slots.len())?;
        let words = i64::from(slots[slot] / 4);
        let at_start = self.u.ratio(1, 3)?;
        let course = self.course(at_start)?;
        let base = self.hidden(Ty::I32, format!("stack_addr.i32 ss{slot}"));
        let start = self.constant(Ty::I32, course.start as u128);
        let sum = self.value(Ty::I32)?;

        let (header, carried) = self.block(&[Ty::I32, Ty::I32]);
        let (exit, left) = self.block(&[Ty::I32]);
        self.end(format!("jump block{header}(v{start}, {sum})"));
        self.current = header;
        self.scope.extend(&carried);
        let outer = self.scope.len();
        let (index, sum) = (carried[0].0, carried[1].0);
        if at_start {
            let (body, _) = self.block(&[]);
            self.leave(index, &course, body, "", exit, &format!("(v{sum})"))?;
            self.current = body;
        }
        // A word of the slot at the index or near it.
        let near = course.range.is_some_and(|(low, high)| low >= 0 && high < words);
        let place = if near && self.u.ratio(2, 3)? {
            index
        } else {
            let away = self.u.int_in_range(0..=3u128)?;
            let away = self.constant(Ty::I32, away);
            let moved = self.push(&[Ty::I32], format!("iadd v{index}, v{away}"))[0].0;
            let mask = self.constant(Ty::I32, (words - 1) as u128);
            self.push(&[Ty::I32], format!("band v{moved}, v{mask}"))[0].0
        };
        let scaled = if self.u.arbitrary()? {
            let two = self.constant(Ty::I32, 2);
            self.push(&[Ty::I32], format!("ishl v{place}, v{two}"))[0].0
        } else {
            let four = self.constant(Ty::I32, 4);
            self.push(&[Ty::I32], format!("imul v{place}, v{four}"))[0].0
        };
        let address = self.hidden(Ty::I32, format!("iadd v{base}, v{scaled}"));
        let loaded = self.push(&[Ty::I32], format!("load.i32 v{address}"))[0].0;
        for _ in 0..self.u.int_in_range(0..=2)? {
            self.instruction()?;
        }
        let operation = *self.u.choose(&["iadd", "isub", "bxor", "imul"])?;
        let next_sum = self.push(&[Ty::I32], format!("{operation} v{sum}, v{loaded}"))[0].0;
        if self.u.arbitrary()? {
            let stored = self.value(Ty::I32)?;
            self.push(&[], format!("store {stored}, v{address}"));
        }
        if self.u.ratio(1, 4)? {
            let condition = self.condition()?.0;
            let (on, _) = self.block(&[]);
            self.end(format!("brif {condition}, block{exit}(v{next_sum}), block{on}"));
            self.current = on;
        }
        let step = self.constant(Ty::I32, course.step as u128);
        let next = self.push(&[Ty::I32], format!("iadd v{index}, v{step}"))[0].0;
        let again = format!("(v{next}, v{next_sum})");
        if at_start {
            self.end(format!("jump block{header}{again}"));
        } else {
            self.leave(next, &course, header, &again, exit, &format!("(v{next_sum})"))?;
        }
        self.scope.truncate(outer);
        self.current = exit;
        self.scope.extend(&left);
        Ok(())
    }

    /// Ends the block: continues at `on` while the condition holds, and otherwise leaves the loop.
    fn leave(
        &mut self,
        tested: u32,
        course: &Course,
        on: usize,
        on_args: &str,
        out: usize,
        out_args: &str,
    ) -> Result<()> {
        let (condition, bound) = (course.condition, &course.bound);
        let negated = |name: &str| match name {
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
        };
        let text = if self.u.arbitrary()? {
            let test = self.push(&[Ty::I8], format!("icmp {condition} v{tested}, {bound}"))[0].0;
            format!("brif v{test}, block{on}{on_args}, block{out}{out_args}")
        } else {
            let test = self.push(&[Ty::I8], format!("icmp {} v{tested}, {bound}", negated(condition)))[0].0;
            format!("brif v{test}, block{out}{out_args}, block{on}{on_args}")
        };
        self.end(text);
        Ok(())
    }

    fn course(&mut self, at_start: bool) -> Result<Course> {
        let up: bool = self.u.arbitrary()?;
        let size = self.u.int_in_range(1..=4i64)?;
        let size = if self.u.arbitrary()? { 1 } else { size };
        let step = if up { size } else { -size };
        let rounds = self.u.int_in_range(1..=ROUNDS)?.cast_signed();
        // The last test sees the final value of the index. Both forms of the loop agree on that: at
        // the end of an iteration the next value is tested.
        let known = self.u.ratio(2, 3)?;
        if known {
            let start = self.u.int_in_range(0..=60i64)? + if up { -5 } else { size * (rounds - 1) };
            let last = start + step * rounds;
            let (condition, bound) = match (up, self.u.int_in_range(0..=3)?) {
                (_, 0) => ("ne", last),
                (true, 1) => ("slt", last - self.u.int_in_range(0..=size - 1)?),
                (true, 2) if start >= 0 => ("ult", last),
                (true, _) => ("sle", last - 1),
                (false, 1) => ("sgt", last + self.u.int_in_range(0..=size - 1)?),
                (false, 2) if last >= 0 => ("ugt", last),
                (false, _) => ("sge", last + 1),
            };
            let bound = format!("v{}", self.constant(Ty::I32, bound as u128));
            let ends = (start, last - step);
            return Ok(Course {
                start,
                step,
                condition,
                bound,
                range: Some((ends.0.min(ends.1), ends.0.max(ends.1))),
            });
        }
        // A bound that is known to be small: the low bits of a value.
        let value = self.value(Ty::I32)?;
        let mask = self.constant(Ty::I32, 31);
        let low = self.push(&[Ty::I32], format!("band {value}, v{mask}"))[0].0;
        let start = if up { 0 } else { 32 * size };
        let bound = if self.u.arbitrary()? && size == 1 {
            // An equality test needs a bound that is reached after the first test.
            let first = self.constant(Ty::I32, if at_start { 0 } else { 1 });
            let bound = self.push(&[Ty::I32], format!("iadd v{low}, v{first}"))[0].0;
            let bound = if up {
                bound
            } else {
                let top = self.constant(Ty::I32, 32);
                self.push(&[Ty::I32], format!("isub v{top}, v{bound}"))[0].0
            };
            return Ok(Course {
                start,
                step,
                condition: "ne",
                bound: format!("v{bound}"),
                range: None,
            });
        } else {
            low
        };
        let condition = match (up, self.u.arbitrary()?) {
            (true, true) => "slt",
            (true, false) => "ult",
            (false, true) => "sgt",
            // The index may become negative, which an unsigned comparison takes for a large number.
            (false, false) => "sge",
        };
        Ok(Course {
            start,
            step,
            condition,
            bound: format!("v{bound}"),
            range: None,
        })
    }
}
