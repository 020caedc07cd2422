//! Compares random programs with a model. Their functions call one another, throw and catch. The
//! programs cover conventions with and without stack arguments, results in memory, scalars and
//! vectors that are live across calls, and all kinds of handlers.

use cranelift_codegen::data_value::DataValue;
use cranelift_codegen::settings::{self, Configurable};
use cranelift_naplespu::isa;
use naplespu_jit::{Program, RunError};
use std::fmt::Write;

/// A random number generator with the same sequence in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(0x5851_f42d_4c95_7f2d)
            .wrapping_add(0x1405_7b7e_f767_814f);
        ((self.0 >> 33) as usize) % limit
    }

    fn choose<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len())]
    }
}

/// The result that a handler returns.
#[derive(Clone, Copy, Debug)]
enum Passed {
    First,
    Second,
    Value(usize),
    /// Throws the tag again, with the first word increased by this value.
    Again(usize),
}

/// A step of a function. Operands are numbers of values; the first argument is 0.
#[derive(Clone, Debug)]
enum Step {
    /// An operation on two values.
    Op(&'static str, usize, usize),
    /// The product of two values plus the first one, in a vector that stays live.
    Vector(usize, usize),
    /// Throws a tag with two values if the masked low bits of a value equal `bits`.
    Throw {
        value: usize,
        bits: u32,
        mask: u32,
        tag: u32,
        carried: [usize; 2],
    },
    /// A call. Each result becomes a value.
    Call(usize, Vec<usize>),
    /// A call with handlers for one tag or for all. One result, or the result of a handler, becomes
    /// a value.
    Try {
        callee: usize,
        args: Vec<usize>,
        handlers: Vec<(Option<u32>, Passed)>,
        result: usize,
        indirect: bool,
    },
}

struct Function {
    convention: &'static str,
    params: usize,
    results: Vec<usize>,
    steps: Vec<Step>,
}

/// An exception: its tag and payload.
struct Thrown {
    tag: u32,
    carried: [u32; 2],
}

fn generate(random: &mut Random) -> Vec<Function> {
    let mut functions: Vec<Function> = Vec::new();
    for number in 0..3 + random.below(5) {
        let params = random.choose(&[2, 2, 2, 3, 9, 14, 27]);
        let mut count = params;
        let mut steps = Vec::new();
        for _ in 0..4 + random.below(18) {
            let value = |random: &mut Random| match random.below(2) {
                0 => random.below(count),
                _ => count - 1 - random.below(count.min(12)),
            };
            let callee = (number > 0).then(|| random.below(number));
            let step = match (random.below(10), callee) {
                (0..4, _) => Step::Op(
                    random.choose(&["iadd", "isub", "imul", "bxor"]),
                    value(random),
                    value(random),
                ),
                (4, _) => Step::Vector(value(random), value(random)),
                (5, _) => {
                    let mask = random.choose(&[3, 7, 15, 31]);
                    Step::Throw {
                        value: value(random),
                        bits: random.below(mask as usize + 1) as u32,
                        mask,
                        tag: 1 + random.below(4) as u32,
                        carried: [value(random), value(random)],
                    }
                }
                (_, None) => continue,
                (6, Some(callee)) => {
                    let args = (0..functions[callee].params).map(|_| value(random)).collect();
                    Step::Call(callee, args)
                }
                (_, Some(callee)) => {
                    let handlers = (0..random.below(4)).map(|_| {
                        let tag = random.choose(&[None, Some(1), Some(2), Some(3), Some(4)]);
                        let passed = match (random.below(4), tag) {
                            (0, _) => Passed::First,
                            (1, _) => Passed::Second,
                            (2, Some(_)) => Passed::Again(value(random)),
                            _ => Passed::Value(value(random)),
                        };
                        (tag, passed)
                    });
                    Step::Try {
                        callee,
                        handlers: handlers.collect(),
                        args: (0..functions[callee].params).map(|_| value(random)).collect(),
                        result: random.below(functions[callee].results.len()),
                        indirect: random.below(2) == 0,
                    }
                }
            };
            count += match &step {
                Step::Throw { .. } => 0,
                Step::Call(callee, _) => functions[*callee].results.len(),
                Step::Op(..) | Step::Vector(..) | Step::Try { .. } => 1,
            };
            steps.push(step);
        }
        let results = (0..random.choose(&[1, 1, 1, 2, 7]))
            .map(|_| random.below(count))
            .collect();
        functions.push(Function {
            convention: random.choose(&["system_v", "tail", "apple_aarch64"]),
            params,
            results,
            steps,
        });
    }
    functions
}

/// Returns the results of a call, or the exception that it throws.
fn model(functions: &[Function], number: usize, args: Vec<u32>) -> Result<Vec<u32>, Thrown> {
    let mut values = args;
    let of = |values: &[u32], list: &[usize]| list.iter().map(|&value| values[value]).collect::<Vec<u32>>();
    for step in &functions[number].steps {
        match step {
            Step::Op(op, a, b) => {
                let (a, b) = (values[*a], values[*b]);
                values.push(match *op {
                    "iadd" => a.wrapping_add(b),
                    "isub" => a.wrapping_sub(b),
                    "imul" => a.wrapping_mul(b),
                    _ => a ^ b,
                });
            }
            Step::Vector(a, b) => values.push(values[*a].wrapping_mul(values[*b]).wrapping_add(values[*a])),
            Step::Throw {
                value,
                bits,
                mask,
                tag,
                carried,
            } => {
                if values[*value] & mask == *bits {
                    let carried = carried.map(|value| values[value]);
                    return Err(Thrown { tag: *tag, carried });
                }
            }
            Step::Call(callee, args) => values.extend(model(functions, *callee, of(&values, args))?),
            Step::Try {
                callee,
                args,
                handlers,
                result,
                ..
            } => match model(functions, *callee, of(&values, args)) {
                Ok(results) => values.push(results[*result]),
                Err(thrown) => {
                    let handler = handlers.iter().find(|(tag, _)| tag.is_none_or(|tag| tag == thrown.tag));
                    match handler {
                        None => return Err(thrown),
                        Some((_, Passed::First)) => values.push(thrown.carried[0]),
                        Some((_, Passed::Second)) => values.push(thrown.carried[1]),
                        Some((_, Passed::Value(value))) => values.push(values[*value]),
                        Some((_, Passed::Again(value))) => {
                            let [first, second] = thrown.carried;
                            return Err(Thrown {
                                tag: thrown.tag,
                                carried: [first.wrapping_add(values[*value]), second],
                            });
                        }
                    }
                }
            },
        }
    }
    Ok(of(&values, &functions[number].results))
}

fn signature(function: &Function) -> String {
    let words = |count: usize| vec!["i32"; count].join(", ");
    format!(
        "({}) -> {} {}",
        words(function.params),
        words(function.results.len()),
        function.convention
    )
}

/// A function that is being generated, as text.
#[derive(Default)]
struct Text {
    lines: String,
    values: usize,
    blocks: usize,
}

impl Text {
    fn value(&mut self) -> String {
        self.values += 1;
        format!("v{}", self.values)
    }

    fn block(&mut self) -> String {
        self.blocks += 1;
        format!("block{}", self.blocks)
    }

    fn line(&mut self, line: String) {
        writeln!(self.lines, "    {line}").unwrap();
    }

    /// Adds an instruction with one result.
    fn inst(&mut self, inst: &str) -> String {
        let result = self.value();
        self.line(format!("{result} = {inst}"));
        result
    }
}

fn clif(functions: &[Function], number: usize) -> String {
    let function = &functions[number];
    let mut text = Text::default();
    for (callee, other) in functions[..number].iter().enumerate() {
        text.line(format!("sig{callee} = {}", signature(other)));
        text.line(format!("fn{callee} = %f{callee} sig{callee}"));
    }
    text.line("fn50 = %npu_throw(i32, i32, i32) tail".to_owned());
    let mut values: Vec<String> = (0..function.params).map(|_| text.value()).collect();
    let params: Vec<String> = values.iter().map(|value| format!("{value}: i32")).collect();
    text.line(format!("block0({}):", params.join(", ")));
    let mut vectors = Vec::new();
    let list = |values: &[String], of: &[usize]| of.iter().map(|&v| values[v].as_str()).collect::<Vec<_>>().join(", ");
    for step in &function.steps {
        match step {
            Step::Op(op, a, b) => {
                let result = text.inst(&format!("{op} {}, {}", values[*a], values[*b]));
                values.push(result);
            }
            Step::Vector(a, b) => {
                let a = text.inst(&format!("splat.i32x16 {}", values[*a]));
                let b = text.inst(&format!("splat.i32x16 {}", values[*b]));
                let product = text.inst(&format!("imul {a}, {b}"));
                let sum = text.inst(&format!("iadd {product}, {a}"));
                let lane = text.inst(&format!("extractlane {sum}, 3"));
                values.push(lane);
                vectors.push((sum, values.len() - 1));
            }
            Step::Throw {
                value,
                bits,
                mask,
                tag,
                carried,
            } => {
                let mask = text.inst(&format!("iconst.i32 {mask}"));
                let low = text.inst(&format!("band {}, {mask}", values[*value]));
                let bits = text.inst(&format!("iconst.i32 {bits}"));
                let same = text.inst(&format!("icmp eq {low}, {bits}"));
                let (throw, on) = (text.block(), text.block());
                text.line(format!("brif {same}, {throw}, {on}\n{throw}:"));
                let tag = text.inst(&format!("iconst.i32 {tag}"));
                let carried = list(&values, carried);
                text.line(format!("call fn50({tag}, {carried})\n    trap user1\n{on}:"));
            }
            Step::Call(callee, args) => {
                let results: Vec<String> = functions[*callee].results.iter().map(|_| text.value()).collect();
                let args = list(&values, args);
                text.line(format!("{} = call fn{callee}({args})", results.join(", ")));
                values.extend(results);
            }
            Step::Try {
                callee,
                args,
                handlers,
                result,
                indirect,
            } => {
                let on = text.block();
                let mut items = Vec::new();
                let mut again = Vec::new();
                for (tag, passed) in handlers {
                    let key = tag.map_or("default".to_owned(), |tag| format!("tag{tag}"));
                    items.push(match passed {
                        Passed::First => format!("{key}: {on}(exn0)"),
                        Passed::Second => format!("{key}: {on}(exn1)"),
                        Passed::Value(value) => format!("{key}: {on}({})", values[*value]),
                        Passed::Again(value) => {
                            let handler = text.block();
                            again.push((handler.clone(), tag.unwrap(), values[*value].clone()));
                            format!("{key}: {handler}(exn0, exn1)")
                        }
                    });
                }
                let args = list(&values, args);
                let call = if *indirect {
                    let address = text.inst(&format!("func_addr.i32 fn{callee}"));
                    format!("try_call_indirect {address}({args})")
                } else {
                    format!("try_call fn{callee}({args})")
                };
                text.line(format!(
                    "{call}, sig{callee}, {on}(ret{result}), [ {} ]",
                    items.join(", ")
                ));
                for (handler, tag, value) in again {
                    let (first, second) = (text.value(), text.value());
                    text.line(format!("{handler}({first}: i32, {second}: i32):"));
                    let sum = text.inst(&format!("iadd {first}, {value}"));
                    let tag = text.inst(&format!("iconst.i32 {tag}"));
                    text.line(format!("call fn50({tag}, {sum}, {second})\n    trap user2"));
                }
                let passed = text.value();
                text.line(format!("{on}({passed}: i32):"));
                values.push(passed);
            }
        }
    }
    for (vector, value) in vectors {
        let lane = text.inst(&format!("extractlane {vector}, 12"));
        let difference = text.inst(&format!("bxor {lane}, {}", values[value]));
        text.line(format!("trapnz {difference}, user9"));
    }
    text.line(format!("return {}", list(&values, &function.results)));
    format!("function %f{number}{} {{\n{}}}\n", signature(function), text.lines)
}

fn check(opt_level: &str, algorithm: &str) {
    let (mut returned, mut uncaught) = (0, 0);
    for seed in 0..150 {
        let mut random = Random(seed);
        let functions = generate(&mut random);
        let mut flags = settings::builder();
        flags.set("opt_level", opt_level).unwrap();
        flags.set("regalloc_algorithm", algorithm).unwrap();
        flags.set("regalloc_checker", "true").unwrap();
        let isa = isa::lookup_by_name("naplespu").unwrap();
        let isa = isa.finish(settings::Flags::new(flags)).unwrap();
        let mut program = Program::with_config(isa, npu_sim::Config::testing(seed));
        for number in 0..functions.len() {
            let text = clif(&functions, number);
            let parsed = cranelift_reader::parse_functions(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
            program.define(&parsed[0]).unwrap();
        }
        for _ in 0..10 {
            let number = functions.len() - 1 - random.below(2);
            let small = random.below(2) == 0;
            let word = |random: &mut Random| (random.below(if small { 20 } else { 1 << 31 })) as u32;
            let args: Vec<u32> = (0..functions[number].params).map(|_| word(&mut random)).collect();
            let given: Vec<DataValue> = args.iter().map(|word| DataValue::I32(word.cast_signed())).collect();
            let found = program.call(&format!("f{number}"), &given);
            match (model(&functions, number, args), found) {
                (Ok(expected), Ok(found)) => {
                    let expected: Vec<_> = expected.iter().map(|word| DataValue::I32(word.cast_signed())).collect();
                    assert_eq!(found, expected, "seed {seed}: f{number}({given:?})");
                    returned += 1;
                }
                (Err(_), Err(RunError::Trap(trap))) => {
                    let code = trap.code.map(|code| code.to_string());
                    assert_eq!(code.as_deref(), Some("user250"), "seed {seed}: f{number}({given:?})");
                    uncaught += 1;
                }
                (Ok(_), Err(error)) => panic!("seed {seed}: f{number}({given:?}): {error}"),
                (Err(_), found) => panic!("seed {seed}: f{number}({given:?}) gives {found:?}"),
            }
        }
    }
    assert!(
        returned > 400 && uncaught > 400,
        "{returned} returned, {uncaught} uncaught"
    );
}

#[test]
fn unoptimized() {
    check("none", "backtracking");
    check("none", "single_pass");
}

#[test]
fn optimized() {
    check("speed", "backtracking");
    check("speed", "single_pass");
}
