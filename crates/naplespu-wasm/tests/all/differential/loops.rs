//! Random loop nests over memory: all kinds of induction variables, near the limits of integers and
//! memories, with accesses at linear sums of them.
//!
//! `wasm-smith` generates few loops whose behavior can be predicted; compilers generate almost only
//! such loops.

use super::smith::{FUEL_LEFT, Random};
use std::fmt::Write;

/// The local of an induction variable.
#[derive(Clone, Copy)]
struct Counter(usize);

/// The locals of a function: its parameters, the sum that it returns, and its induction variables.
const PARAMS: usize = 3;
const SUM: usize = 3;
const COUNTERS: usize = 10;

struct Writer {
    random: Random,
    text: String,
    /// The induction variables of the loops around the current position.
    counters: Vec<Counter>,
    /// The next free local.
    free: usize,
    grows: bool,
}

/// Returns the text of a module with a few functions.
pub fn module(number: u64) -> String {
    let mut random = Random::new(number ^ 0x6c6f_6f70);
    let grows = random.next().is_multiple_of(4);
    let most = if grows { 3 } else { 1 };
    let mut text = format!(
        "(module (memory (export \"m\") 1 {most}) (global $fuel (export \"{FUEL_LEFT}\") (mut i32) (i32.const 0))\n\
         (data (i32.const 0) \"the quick brown fox jumps over the lazy dog\")\n"
    );
    for function in 0..3 {
        write!(
            text,
            "(func (export \"f{function}\") (param i32 i32 i32) (result i32) (local"
        )
        .expect("strings grow");
        text.push_str(&" i32".repeat(1 + COUNTERS));
        text.push_str(")\n");
        let mut writer = Writer {
            random,
            text,
            counters: Vec::new(),
            free: SUM + 1,
            grows,
        };
        writer.nest(0);
        if writer.chance(2) {
            writer.nest(0);
        }
        Writer { random, text, .. } = writer;
        text.push_str("local.get 3)\n");
    }
    text.push(')');
    text
}

impl Writer {
    fn chance(&mut self, of: u64) -> bool {
        self.random.next().is_multiple_of(of)
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.random.next() % limit
    }

    fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len() as u64) as usize]
    }

    fn line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    /// Emits a loop-invariant number: small, near the end of the memory, or near the limits of
    /// integers.
    fn base(&mut self) {
        let param = self.below(PARAMS as u64);
        let mask = self.one_of(&[3, 15, 60, 255]);
        let line = match self.below(40) {
            0 => format!("local.get {param}"),
            1 => format!("local.get {param} i32.const {mask} i32.and i32.const 65280 i32.add"),
            2 => format!("i32.const 0 local.get {param} i32.const {mask} i32.and i32.sub"),
            3 => format!("local.get {param} i32.const {mask} i32.and i32.const 0x80000000 i32.xor"),
            4 => format!("i32.const {}", 65536 - mask),
            5..16 => format!("local.get {param} i32.const {mask} i32.and"),
            16..28 => format!("local.get {param} i32.const {mask} i32.and i32.const 640 i32.add"),
            _ => format!("i32.const {}", self.below(2000)),
        };
        self.line(&line);
    }

    /// Emits a sum of a loop-invariant number and multiples of induction variables.
    fn index(&mut self) {
        self.base();
        for Counter(local) in self.counters.clone() {
            if self.chance(4) {
                continue;
            }
            let factor = match self.chance(16) {
                true => self.one_of(&["-4", "260", "0x40000000"]),
                false => self.one_of(&["1", "1", "4", "8", "3"]),
            };
            let sum = if self.chance(12) { "sub" } else { "add" };
            self.line(&format!("local.get {local} i32.const {factor} i32.mul i32.{sum}"));
        }
    }

    fn access(&mut self) {
        let offset = match self.chance(24) {
            true => 65528,
            false => self.one_of(&[0, 0, 0, 1, 4, 12, 64]),
        };
        match self.below(6) {
            0 | 1 => {
                self.index();
                let load = self.one_of(&["load8_u", "load16_s", "load", "load"]);
                self.line(&format!("i32.{load} offset={offset} local.get {SUM} i32.xor"));
                self.line(&format!("i32.const 7 i32.rotl local.set {SUM}"));
            }
            2 => {
                self.index();
                self.line(&format!("i64.load offset={offset} i32.wrap_i64"));
                self.line(&format!("local.get {SUM} i32.add local.set {SUM}"));
            }
            3 => {
                self.index();
                self.line(&format!("local.get {SUM} i64.extend_i32_u i64.store offset={offset}"));
            }
            _ => {
                self.index();
                let store = self.one_of(&["store8", "store16", "store", "store"]);
                self.line(&format!("local.get {SUM} i32.{store} offset={offset}"));
            }
        }
    }

    fn body(&mut self, depth: u64) {
        for _ in 0..1 + self.below(3) {
            match self.below(8) {
                0 => {
                    self.line(&format!("local.get {SUM} i32.const 1 i32.and if"));
                    self.access();
                    self.line("end");
                }
                1 | 2 if depth < 2 => self.nest(depth + 1),
                3 if self.grows && self.chance(3) => self.line("i32.const 1 memory.grow drop"),
                _ => self.access(),
            }
        }
    }

    /// Emits a counting loop that is tested at its top or bottom, or only its body if no locals are
    /// left.
    fn nest(&mut self, depth: u64) {
        // A counter, a second induction variable with the same step, and the bound.
        if self.free + 3 > SUM + 1 + COUNTERS {
            return self.access();
        }
        let (counter, second, bound) = (self.free, self.free + 1, self.free + 2);
        self.free += 3;
        self.base();
        self.line(&format!("local.set {counter}"));
        self.base();
        self.line(&format!("local.set {second}"));
        let step = match self.below(5) {
            0 => format!("local.get {} i32.const 7 i32.and", self.below(PARAMS as u64)),
            _ => format!(
                "i32.const {}",
                self.one_of(&["1", "1", "1", "-1", "2", "-2", "4", "-4", "3", "28", "-5"])
            ),
        };
        // A few iterations away, so that most loops end before the steps run out.
        let iterations = self.one_of(&["0", "1", "2", "5", "8", "17"]);
        if self.chance(3) {
            self.base();
        } else {
            self.line(&format!(
                "{step} i32.const {iterations} i32.mul local.get {counter} i32.add"
            ));
        }
        self.line(&format!("local.set {bound}"));
        let up = !step.contains('-');
        let usual = match up {
            true => ["ne", "lt_u", "le_u", "lt_s", "le_s"],
            false => ["ne", "gt_u", "ge_u", "gt_s", "ge_s"],
        };
        let odd = ["eq", "gt_u", "lt_s", "ge_s", "le_u"];
        let compare = if self.chance(8) {
            self.one_of(&odd)
        } else {
            self.one_of(&usual)
        };
        let test = match self.chance(4) {
            true => format!("local.get {bound} local.get {counter} i32.{}", swapped(compare)),
            false => format!("local.get {counter} local.get {bound} i32.{compare}"),
        };
        let before = self.chance(3);
        self.line("block");
        if self.chance(2) || before {
            self.line(&format!("{test} i32.eqz br_if 0"));
        }
        self.line("loop");
        if before {
            self.line(&format!("{test} i32.eqz br_if 1"));
        }
        self.line("global.get $fuel i32.eqz if");
        self.line(&format!("local.get {SUM} return end"));
        self.line("global.get $fuel i32.const 1 i32.sub global.set $fuel");
        self.counters.extend([Counter(counter), Counter(second)]);
        self.body(depth);
        if self.chance(5) {
            // An exit with an unpredictable iteration.
            self.line(&format!(
                "local.get {SUM} i32.const 63 i32.and i32.const 5 i32.eq br_if 1"
            ));
        }
        self.counters.truncate(self.counters.len() - 2);
        self.line(&format!("local.get {second} {step} i32.add local.set {second}"));
        self.line(&format!("local.get {counter} {step} i32.add local.set {counter}"));
        match before {
            true => self.line("br 0"),
            false => self.line(&format!("{test} br_if 0")),
        }
        self.line("end end");
        if self.chance(2) {
            self.line(&format!("local.get {SUM} local.get {counter} i32.add local.set {SUM}"));
        }
    }
}

/// Returns the compare with swapped operands.
fn swapped(compare: &str) -> &str {
    match compare {
        "lt_u" => "gt_u",
        "le_u" => "ge_u",
        "gt_u" => "lt_u",
        "ge_u" => "le_u",
        "lt_s" => "gt_s",
        "le_s" => "ge_s",
        "gt_s" => "lt_s",
        "ge_s" => "le_s",
        same => same,
    }
}
