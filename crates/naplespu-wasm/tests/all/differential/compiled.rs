//! Random loops as in C, in the form that clang emits at `-O1` and `-O2`: rotated loops with a
//! guard, incremented pointers, counters that count down, and constants in the offsets of accesses.
//!
//! A [`Program`] is a few functions. [`Program::module`] returns its WebAssembly, generated here;
//! [`Program::c`] returns its C text for a real clang. The arguments of the calls are bases and
//! trip counts near the bounds of the memory.

use super::smith::{FUEL_LEFT, Random};
use std::fmt::Write;

/// The size of a page in bytes.
const PAGE: i64 = 1 << 16;

/// The number of parameters of a function: two pointers and two counts.
pub const PARAMS: usize = 4;

/// The number of variables of a function.
pub const VARS: usize = 3;

/// The number of calls of each function.
const CALLS: usize = 8;

/// The number of functions.
const FUNCTIONS: usize = 2;

/// The type of an element in memory.
#[derive(Clone, Copy, Debug)]
pub struct Element {
    /// Its size in bytes.
    pub size: i64,
    /// Whether a load sign-extends.
    pub signed: bool,
}

/// An address: a pointer, counters times factors, and a constant.
#[derive(Clone, Debug)]
pub struct Place {
    pub element: Element,
    /// The number of the pointer.
    pub base: usize,
    /// Loop depths, and the bytes that each iteration of that loop adds.
    pub terms: Vec<(usize, i64)>,
    pub offset: i64,
}

#[derive(Clone, Debug)]
pub enum Expr {
    Number(i64),
    Var(usize),
    Counter(usize),
    Load(Place),
    Binary(&'static str, Box<Expr>, Box<Expr>),
}

#[derive(Clone, Debug)]
pub enum Stmt {
    Store(Place, Expr),
    Set(usize, Expr),
    If(Expr, Vec<Stmt>),
    Break(Expr),
    Grow,
    Loop(Box<Loop>),
}

/// The trip count of a loop.
#[derive(Clone, Copy, Debug)]
pub enum Trips {
    /// The value of a parameter; none if it is not positive.
    Param(usize),
    /// A constant.
    Number(i64),
}

/// The computation of addresses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Shape {
    /// From the counter, in each iteration.
    Indexed,
    /// An incremented pointer for each address.
    Pointers,
    /// One offset in bytes for all addresses of the loop.
    Bytes,
}

/// The counter of a loop.
#[derive(Clone, Copy, Debug)]
pub enum Counting {
    /// Counts up, until this compare with the trip count fails.
    Up(&'static str),
    /// Counts down to 0.
    Down,
    /// Counts up to 0, from a negative number.
    UpToZero,
}

#[derive(Clone, Debug)]
pub struct Loop {
    pub depth: usize,
    pub trips: Trips,
    pub shape: Shape,
    pub counting: Counting,
    pub body: Vec<Stmt>,
}

/// A function and the arguments of its calls.
pub struct Func {
    pub body: Vec<Stmt>,
    pub calls: Vec<[i64; PARAMS]>,
}

/// A few functions over one memory.
pub struct Program {
    /// The functions.
    pub funcs: Vec<Func>,
    grows: bool,
}

struct Writer {
    random: Random,
    grows: bool,
    budget: i64,
    /// The allowed sizes of elements.
    sizes: Vec<i64>,
    /// Whether loops have no branches and access consecutive elements.
    plain: bool,
}

impl Writer {
    fn below(&mut self, limit: u64) -> u64 {
        self.random.next() % limit
    }

    fn chance(&mut self, of: u64) -> bool {
        self.below(of) == 0
    }

    fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len() as u64) as usize]
    }

    fn place(&mut self, depth: usize) -> Place {
        let size = self.one_of(&self.sizes.clone());
        let signed = self.chance(2);
        let mut terms = Vec::new();
        if depth > 0 && !self.chance(10) {
            let step = match self.below(8) {
                _ if self.plain => size,
                0 if self.chance(2) => -size,
                1 => 2 * size,
                2 => self.one_of(&[3, 12, 16, 20, -4, 1]),
                _ => size,
            };
            terms.push((depth - 1, step));
            if depth > 1 && self.chance(2) {
                terms.push((depth - 2, self.one_of(&[4, 16, 64, 100, 256])));
            }
        }
        let offset = match self.below(80) {
            0 => self.one_of(&[65528, 65535, 0x7fff_ffff, 0x7fff_fff0, 0xffff_fff0, 0xffff_ffff]),
            1..32 => self.below(20) as i64 * size,
            32..40 => self.below(300) as i64,
            _ => 0,
        };
        Place {
            element: Element { size, signed },
            base: self.below(2) as usize,
            terms,
            offset,
        }
    }

    fn expr(&mut self, depth: usize, deep: u64) -> Expr {
        match self.below(10) {
            0 => Expr::Number(self.random.number() as u32 as i32 as i64),
            1 => Expr::Number(self.below(40) as i64 - 8),
            2 | 3 => Expr::Var(self.below(VARS as u64) as usize),
            4 if depth > 0 => Expr::Counter(self.below(depth as u64) as usize),
            5..8 if deep > 0 => {
                let operation = self.one_of(&[
                    "add", "add", "sub", "mul", "and", "or", "xor", "shl", "shr_u", "shr_s", "lt_s", "gt_u", "eq",
                    "rotl",
                ]);
                let (a, b) = (self.expr(depth, deep - 1), self.expr(depth, deep - 1));
                Expr::Binary(operation, Box::new(a), Box::new(b))
            }
            _ => Expr::Load(self.place(depth)),
        }
    }

    fn condition(&mut self, depth: usize) -> Expr {
        let mask = self.one_of(&[1, 7, 31, 63]);
        let value = self.expr(depth, 1);
        let low = Expr::Binary("and", Box::new(value), Box::new(Expr::Number(mask)));
        let operation = self.one_of(&["eq", "eq", "ne", "lt_s", "gt_u"]);
        let number = self.below(8) as i64;
        Expr::Binary(operation, Box::new(low), Box::new(Expr::Number(number)))
    }

    fn statement(&mut self, depth: usize, optional: bool) -> Stmt {
        self.budget -= 1;
        match self.below(if self.plain { 8 } else { 12 }) {
            6..8 if self.plain => Stmt::Store(self.place(depth), self.expr(depth, 1)),
            0..4 => Stmt::Store(self.place(depth), self.expr(depth, 2)),
            4 | 5 => Stmt::Set(self.below(VARS as u64) as usize, self.expr(depth, 2)),
            6..8 => {
                // A sum or another reduction.
                let var = self.below(VARS as u64) as usize;
                let operation = self.one_of(&["add", "add", "xor", "or", "and", "mul", "sub"]);
                let value = Expr::Load(self.place(depth));
                Stmt::Set(var, Expr::Binary(operation, Box::new(Expr::Var(var)), Box::new(value)))
            }
            8 if !optional => {
                let condition = self.condition(depth);
                let count = 1 + self.below(2);
                Stmt::If(condition, (0..count).map(|_| self.statement(depth, true)).collect())
            }
            9 if depth > 0 && !optional && self.chance(2) => Stmt::Break(self.condition(depth)),
            10 if self.grows && self.chance(2) => Stmt::Grow,
            _ => {
                let place = self.place(depth);
                Stmt::Store(
                    place.clone(),
                    Expr::Binary("add", Box::new(Expr::Load(place)), Box::new(self.expr(depth, 1))),
                )
            }
        }
    }

    fn nest(&mut self, depth: usize, inner: u64) -> Stmt {
        let mut body = Vec::new();
        for _ in 0..self.below(if inner > 0 { 3 } else { 4 }) {
            body.push(self.statement(depth + 1, false));
        }
        if inner > 0 {
            body.push(self.nest(depth + 1, inner - 1));
        }
        // An access that is certain to go out of bounds in an infinite loop.
        let mut place = self.place(depth + 1);
        if place.terms.is_empty() {
            place.terms.push((depth, place.element.size));
        }
        match self.chance(3) {
            true => {
                let sum = Expr::Binary("add", Box::new(Expr::Var(0)), Box::new(Expr::Load(place)));
                body.push(Stmt::Set(0, sum));
            }
            false => body.push(Stmt::Store(place, self.expr(depth + 1, 1))),
        }
        let trips = match (inner, self.below(3)) {
            (_, 0) => Trips::Number(self.one_of(&[1, 2, 3, 4, 8, 15, 16, 17, 20, 32, 33])),
            (0, _) => Trips::Param(2),
            _ => Trips::Param(3),
        };
        Stmt::Loop(Box::new(Loop {
            depth,
            trips,
            shape: self.one_of(&[Shape::Indexed, Shape::Pointers, Shape::Pointers, Shape::Bytes]),
            counting: match self.below(8) {
                0 => Counting::Up("lt_u"),
                1 => Counting::Up("lt_s"),
                2 | 3 => Counting::Up("ne"),
                4 => Counting::UpToZero,
                _ => Counting::Down,
            },
            body,
        }))
    }

    /// Returns arguments: pointers in the memory or near its ends, and counts that stay in the
    /// memory, just leave it, or go far beyond.
    fn arguments(&mut self) -> [i64; PARAMS] {
        let count = self.one_of(&[0, 1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 31, 32, 33, 40, 64, 100]);
        let far = self.chance(32);
        let size = self.one_of(&self.sizes.clone());
        let mut pointer = |count: i64| {
            let away = self.below(24) as i64 - 12;
            match self.below(8) {
                0 => self.below(40) as i64,
                1 | 2 => PAGE - count * size + away,
                3 => PAGE - count * size,
                4 => PAGE - self.below(600) as i64,
                5 => count * size + away,
                7 if self.plain => 1024 + self.below(64) as i64 * 64,
                6 if self.chance(4) => 0x8000_0000 - self.below(20) as i64,
                _ => 1024 + self.below(4096) as i64,
            }
        };
        let (p, q) = (pointer(count), pointer(count));
        let n = match far {
            true => self.one_of(&[0x7fff_ffff, 0x4000_0000, -1, -0x8000_0000, 70000]),
            false => count,
        };
        [p, q, n, self.below(6) as i64]
    }
}

impl Program {
    /// Returns the program with this seed.
    pub fn new(number: u64) -> Self {
        let mut random = Random::new(number ^ 0x0063_6c61_6e67);
        let grows = random.next().is_multiple_of(5);
        let mut writer = Writer {
            random,
            grows,
            budget: 0,
            sizes: vec![4],
            plain: false,
        };
        let funcs = (0..FUNCTIONS)
            .map(|_| {
                writer.budget = 20;
                writer.plain = writer.chance(2);
                let all: &[i64] = if writer.plain { &[1, 2, 4] } else { &[1, 2, 4, 8] };
                writer.sizes = (0..1 + writer.below(2)).map(|_| writer.one_of(all)).collect();
                let mut body = Vec::new();
                for _ in 0..1 + writer.below(2) {
                    let inner = writer.one_of(&[0, 0, 0, 1, 1, 2]);
                    body.push(writer.nest(0, inner));
                }
                let calls = (0..CALLS).map(|_| writer.arguments()).collect();
                Func { body, calls }
            })
            .collect();
        Self { funcs, grows }
    }

    /// Returns the arguments of call `call` of function `number`, as constants.
    fn call(&self, number: usize, call: usize) -> String {
        let numbers: Vec<String> = self.funcs[number].calls[call]
            .iter()
            .map(|&number| format!("i32.const {}", number as u32 as i32))
            .collect();
        numbers.join(" ")
    }

    /// Returns the WebAssembly text.
    pub fn module(&self) -> String {
        let most = if self.grows { 3 } else { 1 };
        let mut text = format!(
            "(module (memory (export \"m\") 1 {most}) (global (export \"{FUEL_LEFT}\") (mut i32) (i32.const 0))\n"
        );
        for page in 0..4 {
            let at = [0, 1000, 4000, PAGE - 300][page];
            let bytes: String = (0..300u64).map(|byte| format!("\\{:02x}", byte * 37 % 256)).collect();
            writeln!(text, "(data (i32.const {at}) \"{bytes}\")").expect("strings grow");
        }
        for (number, func) in self.funcs.iter().enumerate() {
            let mut emitter = Emitter {
                text: String::new(),
                locals: 0,
                counters: Vec::new(),
            };
            emitter.statements(&func.body, 0);
            let locals = " i32".repeat(VARS + emitter.locals);
            write!(
                text,
                "(func $g{number} (param i32 i32 i32 i32) (result i32) (local{locals})\n{}local.get 4 local.get 5 i32.add local.get 6 i32.xor)\n",
                emitter.text
            )
            .expect("strings grow");
            for call in 0..func.calls.len() {
                writeln!(
                    text,
                    "(func (export \"f{number}_{call}\") (result i32) {} call $g{number})",
                    self.call(number, call)
                )
                .expect("strings grow");
            }
        }
        text.push(')');
        text
    }
}

/// The local of a pointer, its base, its terms of outer loops, and its step.
type Pointer = (usize, usize, Vec<(usize, i64)>, i64);

/// The address computation of a loop: locals of the counter, the offset in bytes, and the pointers.
struct Active {
    counter: usize,
    shape: Shape,
    /// With [`Shape::Pointers`]: the pointers.
    pointers: Vec<Pointer>,
    /// With [`Shape::Bytes`]: the local and its step.
    bytes: Option<(usize, i64)>,
}

struct Emitter {
    text: String,
    locals: usize,
    counters: Vec<Active>,
}

impl Emitter {
    fn line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    fn local(&mut self) -> usize {
        self.locals += 1;
        PARAMS + VARS + self.locals - 1
    }

    fn statements(&mut self, all: &[Stmt], inside: usize) {
        for stmt in all {
            self.statement(stmt, inside);
        }
    }

    /// Emits a statement. `inside` is the number of labels between it and the body of the loop.
    fn statement(&mut self, stmt: &Stmt, inside: usize) {
        match stmt {
            Stmt::Store(place, value) => {
                let offset = self.address(place);
                self.expr(value);
                let store = match place.element.size {
                    1 => "i32.store8",
                    2 => "i32.store16",
                    4 => "i32.store",
                    _ => "i64.extend_i32_s i64.store",
                };
                self.line(&format!("{store} offset={offset}"));
            }
            Stmt::Set(var, value) => {
                self.expr(value);
                self.line(&format!("local.set {}", PARAMS + var));
            }
            Stmt::If(condition, then) => {
                self.expr(condition);
                self.line("if");
                self.statements(then, inside + 1);
                self.line("end");
            }
            Stmt::Break(condition) => {
                self.expr(condition);
                self.line(&format!("br_if {}", inside + 1));
            }
            Stmt::Grow => self.line("i32.const 1 memory.grow drop"),
            Stmt::Loop(inner) => self.nest(inner),
        }
    }

    /// Pushes the variable part of an address; returns the constant part.
    fn address(&mut self, place: &Place) -> i64 {
        let mut terms = place.terms.clone();
        let mut start = None;
        if let Some(active) = self.counters.last() {
            let depth = self.counters.len() - 1;
            let outer: Vec<(usize, i64)> = terms.iter().copied().filter(|term| term.0 != depth).collect();
            let own = terms.iter().find(|term| term.0 == depth).map(|term| term.1);
            match (active.shape, own) {
                (Shape::Pointers, Some(step)) => {
                    let pointer = active
                        .pointers
                        .iter()
                        .find(|(_, base, others, by)| *base == place.base && *others == outer && *by == step);
                    if let Some(pointer) = pointer {
                        start = Some(pointer.0);
                        terms.clear();
                    }
                }
                (Shape::Bytes, Some(step)) => {
                    if let Some((local, _)) = active.bytes.filter(|bytes| bytes.1 == step) {
                        self.text
                            .push_str(&format!("local.get {} local.get {local} i32.add\n", place.base));
                        for (depth, factor) in outer {
                            self.term(depth, factor);
                        }
                        return place.offset;
                    }
                }
                _ => {}
            }
        }
        self.line(&format!("local.get {}", start.unwrap_or(place.base)));
        for (depth, factor) in terms {
            self.term(depth, factor);
        }
        place.offset
    }

    /// Adds a counter times a factor.
    fn term(&mut self, depth: usize, factor: i64) {
        let counter = self.counters[depth].counter;
        let scaled = match factor {
            1 => String::new(),
            _ if factor > 0 && factor.count_ones() == 1 => {
                format!("i32.const {} i32.shl ", factor.trailing_zeros())
            }
            _ => format!("i32.const {factor} i32.mul "),
        };
        self.line(&format!("local.get {counter} {scaled}i32.add"));
    }

    fn expr(&mut self, expr: &Expr) {
        match expr {
            Expr::Number(number) => self.line(&format!("i32.const {}", *number as i32)),
            Expr::Var(var) => self.line(&format!("local.get {}", PARAMS + var)),
            Expr::Counter(depth) => {
                let counter = self.counters[*depth].counter;
                self.line(&format!("local.get {counter}"));
            }
            Expr::Load(place) => {
                let offset = self.address(place);
                let sign = if place.element.signed { "s" } else { "u" };
                match place.element.size {
                    1 => self.line(&format!("i32.load8_{sign} offset={offset}")),
                    2 => self.line(&format!("i32.load16_{sign} offset={offset}")),
                    4 => self.line(&format!("i32.load offset={offset}")),
                    _ => self.line(&format!("i64.load offset={offset} i32.wrap_i64")),
                }
            }
            Expr::Binary(operation, a, b) => {
                self.expr(a);
                self.expr(b);
                self.line(&format!("i32.{operation}"));
            }
        }
    }

    fn nest(&mut self, all: &Loop) {
        let trips = match all.trips {
            Trips::Param(param) => format!("local.get {param}"),
            Trips::Number(number) => format!("i32.const {number}"),
        };
        self.line("block");
        if let Trips::Param(param) = all.trips {
            match all.counting {
                Counting::Up("lt_s") => self.line(&format!("local.get {param} i32.const 1 i32.lt_s br_if 0")),
                _ => self.line(&format!("local.get {param} i32.eqz br_if 0")),
            }
        }
        let counter = self.local();
        // If the trip counter counts down, a second local holds the index.
        let left = self.local();
        self.line(&format!("i32.const 0 local.set {counter}"));
        match all.counting {
            Counting::Down => self.line(&format!("{trips} local.set {left}")),
            Counting::UpToZero => self.line(&format!("i32.const 0 {trips} i32.sub local.set {left}")),
            Counting::Up(_) => {}
        }
        let mut found = Vec::new();
        places(&all.body, &mut found);
        let depth = all.depth;
        let mut active = Active {
            counter,
            shape: all.shape,
            pointers: Vec::new(),
            bytes: None,
        };
        for place in found {
            let Some(&(_, step)) = place.terms.iter().find(|term| term.0 == depth) else {
                continue;
            };
            let outer: Vec<(usize, i64)> = place.terms.iter().copied().filter(|term| term.0 < depth).collect();
            match all.shape {
                Shape::Bytes if active.bytes.is_none() => {
                    let local = self.local();
                    self.line(&format!("i32.const 0 local.set {local}"));
                    active.bytes = Some((local, step));
                }
                Shape::Pointers => {
                    let known = active
                        .pointers
                        .iter()
                        .any(|(_, base, others, by)| *base == place.base && *others == outer && *by == step);
                    if !known && place.terms.iter().all(|term| term.0 <= depth) {
                        let local = self.local();
                        self.line(&format!("local.get {}", place.base));
                        for &(depth, factor) in &outer {
                            self.term(depth, factor);
                        }
                        self.line(&format!("local.set {local}"));
                        active.pointers.push((local, place.base, outer, step));
                    }
                }
                _ => {}
            }
        }
        self.line("loop");
        self.counters.push(active);
        self.statements(&all.body, 0);
        let Some(active) = self.counters.pop() else { return };
        for (local, _, _, step) in &active.pointers {
            self.line(&format!("local.get {local} i32.const {step} i32.add local.set {local}"));
        }
        if let Some((local, step)) = active.bytes {
            self.line(&format!("local.get {local} i32.const {step} i32.add local.set {local}"));
        }
        let next = format!("local.get {counter} i32.const 1 i32.add local.tee {counter}");
        match all.counting {
            Counting::Up(compare) => self.line(&format!("{next} {trips} i32.{compare} br_if 0")),
            Counting::Down => {
                self.line(&format!(
                    "{next} drop local.get {left} i32.const -1 i32.add local.tee {left} br_if 0"
                ));
            }
            Counting::UpToZero => {
                self.line(&format!(
                    "{next} drop local.get {left} i32.const 1 i32.add local.tee {left} br_if 0"
                ));
            }
        }
        self.line("end end");
    }
}

/// Collects all addresses in statements, in inner loops too.
fn places<'a>(all: &'a [Stmt], found: &mut Vec<&'a Place>) {
    for stmt in all {
        match stmt {
            Stmt::Store(place, value) => {
                found.push(place);
                in_expr(value, found);
            }
            Stmt::Set(_, value) => in_expr(value, found),
            Stmt::If(condition, then) => {
                in_expr(condition, found);
                places(then, found);
            }
            Stmt::Break(condition) => in_expr(condition, found),
            Stmt::Grow | Stmt::Loop(_) => {}
        }
    }
}

fn in_expr<'a>(expr: &'a Expr, found: &mut Vec<&'a Place>) {
    match expr {
        Expr::Load(place) => found.push(place),
        Expr::Binary(_, a, b) => {
            in_expr(a, found);
            in_expr(b, found);
        }
        Expr::Number(_) | Expr::Var(_) | Expr::Counter(_) => {}
    }
}
