//! Generates modules of any size, with known results.
//!
//! A function applies steps to a number. [`Source::run`] applies the same steps, so it computes the
//! result without another engine. The generator is deterministic.

/// A step of a function, which changes its number.
#[derive(Clone, Copy, Debug)]
enum Step {
    Add(i32),
    Xor(i32),
    Mul(i32),
    Rotate(i32),
    /// Stores the number plus the old value of the word at this address; the number becomes the old
    /// value.
    Exchange(u32),
    /// Adds the first value to an odd number, the second to an even one.
    Choose(i32, i32),
    /// Multiplies by the second value and adds the third, in this many iterations.
    Repeat(u8, i32, i32),
    /// Calls an earlier leaf function.
    Call(u32),
}

/// The number of leaf functions at the start, so that calls span all of the code.
const LEAVES: u32 = 16;
/// The number of steps of a function.
const STEPS: usize = 60;
/// The number of words of memory in use.
const WORDS: u32 = 4096;

/// A module as a list of functions.
#[derive(Debug)]
pub struct Source {
    functions: Vec<Vec<Step>>,
}

impl Source {
    /// Generates this many functions, of about a kilobyte each.
    pub fn new(functions: u32) -> Self {
        let mut state = 0x2545_f491_4f6c_dd1d_u64;
        let mut random = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 16) as u32
        };
        let functions = (0..functions).map(|number| {
            let step = |_| {
                let (a, b) = (random() as i32, random() as i32);
                match random() % 8 {
                    0 => Step::Add(a),
                    1 => Step::Xor(a),
                    2 => Step::Mul(a | 1),
                    3 => Step::Rotate(a & 31),
                    4 => Step::Exchange(random() % WORDS * 4),
                    5 => Step::Choose(a, b),
                    6 => Step::Repeat(1 + (random() % 3) as u8, a, b),
                    _ if number < LEAVES => Step::Add(b),
                    _ => Step::Call(random() % LEAVES),
                }
            };
            (0..STEPS).map(step).collect()
        });
        Self {
            functions: functions.collect(),
        }
    }

    /// Returns the result of the export `run`, which passes a number through all functions.
    pub fn run(&self, number: i32) -> i32 {
        let mut memory = vec![0; WORDS as usize];
        let all = 0..self.functions.len() as u32;
        all.fold(number, |number, function| self.apply(function, number, &mut memory))
    }

    fn apply(&self, function: u32, number: i32, memory: &mut [i32]) -> i32 {
        let steps = &self.functions[function as usize];
        steps.iter().fold(number, |x, step| match *step {
            Step::Add(a) => x.wrapping_add(a),
            Step::Xor(a) => x ^ a,
            Step::Mul(a) => x.wrapping_mul(a),
            Step::Rotate(a) => x.rotate_left(a as u32),
            Step::Exchange(address) => {
                let word = &mut memory[address as usize / 4];
                let before = *word;
                *word = before.wrapping_add(x);
                before
            }
            Step::Choose(a, b) => x.wrapping_add(if x & 1 == 1 { a } else { b }),
            Step::Repeat(times, a, b) => (0..times).fold(x, |x, _| x.wrapping_mul(a).wrapping_add(b)),
            Step::Call(callee) => self.apply(callee, x, memory),
        })
    }

    /// Returns the binary module.
    pub fn module(&self) -> Vec<u8> {
        let count = self.functions.len() as u32;
        let mut module = b"\0asm\x01\0\0\0".to_vec();
        // The only type: a word to a word.
        section(&mut module, 1, &[1, 0x60, 1, 0x7f, 1, 0x7f]);
        let mut types = Vec::new();
        unsigned(&mut types, count + 1);
        types.resize(types.len() + count as usize + 1, 0);
        section(&mut module, 3, &types);
        section(&mut module, 5, &[1, 0, 1]);
        let mut exports = b"\x01\x03run\0".to_vec();
        unsigned(&mut exports, count);
        section(&mut module, 7, &exports);
        let mut code = Vec::new();
        unsigned(&mut code, count + 1);
        for steps in &self.functions {
            // Local 1 is the old value of an exchange, local 2 an iteration counter.
            let mut body = vec![1, 2, 0x7f];
            for step in steps {
                step.encode(&mut body);
            }
            body.extend([0x20, 0, 0x0b]);
            unsigned(&mut code, body.len() as u32);
            code.extend(body);
        }
        let mut body = vec![0, 0x20, 0];
        for function in 0..count {
            body.push(0x10);
            unsigned(&mut body, function);
        }
        body.push(0x0b);
        unsigned(&mut code, body.len() as u32);
        code.extend(body);
        section(&mut module, 10, &code);
        module
    }
}

impl Step {
    /// Encodes the instructions of a step on local 0.
    fn encode(self, body: &mut Vec<u8>) {
        let constant = |body: &mut Vec<u8>, value| {
            body.push(0x41);
            signed(body, value);
        };
        let with = |body: &mut Vec<u8>, value, op| {
            body.extend([0x20, 0]);
            constant(body, value);
            body.extend([op, 0x21, 0]);
        };
        match self {
            Self::Add(a) => with(body, a, 0x6a),
            Self::Xor(a) => with(body, a, 0x73),
            Self::Mul(a) => with(body, a, 0x6c),
            Self::Rotate(a) => with(body, a, 0x77),
            Self::Exchange(address) => {
                constant(body, 0);
                body.extend([0x28, 2]);
                unsigned(body, address);
                body.extend([0x21, 1]);
                constant(body, 0);
                body.extend([0x20, 0, 0x20, 1, 0x6a, 0x36, 2]);
                unsigned(body, address);
                body.extend([0x20, 1, 0x21, 0]);
            }
            Self::Choose(a, b) => {
                // (if (i32.and (local.get 0) (i32.const 1)) ...
                body.extend([0x20, 0, 0x41, 1, 0x71, 0x04, 0x40]);
                with(body, a, 0x6a);
                body.push(0x05);
                with(body, b, 0x6a);
                body.push(0x0b);
            }
            Self::Repeat(times, a, b) => {
                constant(body, times.into());
                // (local.set 2) (loop ...
                body.extend([0x21, 2, 0x03, 0x40]);
                with(body, a, 0x6c);
                with(body, b, 0x6a);
                // (br_if 0 (local.tee 2 (i32.sub (local.get 2) (i32.const 1))))
                body.extend([0x20, 2, 0x41, 1, 0x6b, 0x22, 2, 0x0d, 0, 0x0b]);
            }
            Self::Call(function) => {
                body.extend([0x20, 0, 0x10]);
                unsigned(body, function);
                body.extend([0x21, 0]);
            }
        }
    }
}

fn section(module: &mut Vec<u8>, id: u8, bytes: &[u8]) {
    module.push(id);
    unsigned(module, bytes.len() as u32);
    module.extend(bytes);
}

/// Appends a LEB128 number in WebAssembly's encoding.
fn unsigned(out: &mut Vec<u8>, mut value: u32) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn signed(out: &mut Vec<u8>, mut value: i32) {
    while !(-0x40..0x40).contains(&value) {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8 & 0x7f);
}
