//! Functions as lines with one instruction each, and the origins of optimized instructions.

use cranelift_codegen::entity::SecondaryMap;
use cranelift_codegen::ir::{Block, Function, Inst, SourceLoc, Value};
use cranelift_codegen::write::{FuncWriter, PlainWriter, decorate_function};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::fmt::{self, Write};
use std::hash::{DefaultHasher, Hash, Hasher};

/// The maximum number of origins of an instruction that the optimizer made.
const MAX_ORIGINS: usize = 8;

/// A line of a function.
pub struct Line {
    /// Its text.
    pub text: String,
    /// The instruction of the line.
    pub inst: Option<Inst>,
}

/// A marker before the text of an instruction until the text is split into lines. CLIF never
/// contains it.
const MARK: char = '\u{1}';

struct Marked(PlainWriter);

impl FuncWriter for Marked {
    fn write_instruction(
        &mut self,
        w: &mut dyn Write,
        func: &Function,
        aliases: &SecondaryMap<Value, Vec<Value>>,
        inst: Inst,
        indent: usize,
    ) -> fmt::Result {
        w.write_char(MARK)?;
        self.0.write_instruction(w, func, aliases, inst, indent)
    }

    fn write_block_header(&mut self, w: &mut dyn Write, func: &Function, block: Block, indent: usize) -> fmt::Result {
        self.0.write_block_header(w, func, block, indent)
    }
}

/// Returns the lines of the function.
pub fn lines(func: &Function) -> Vec<Line> {
    let mut text = String::new();
    // Writing to a string does not fail.
    let _ = decorate_function(&mut Marked(PlainWriter), &mut text, func);
    let mut insts = func.layout.blocks().flat_map(|block| func.layout.block_insts(block));
    let line = |line: &str| match line.strip_prefix(MARK) {
        Some(text) => Line {
            text: text.to_owned(),
            inst: insts.next(),
        },
        None => Line {
            text: line.to_owned(),
            inst: None,
        },
    };
    text.lines().map(line).collect()
}

/// The instructions of the input function, by their temporary source locations.
pub struct Numbered {
    insts: Vec<Inst>,
    locations: Vec<SourceLoc>,
    /// The instructions that compute the same value, by a hash of the computation.
    computations: HashMap<u64, Vec<Inst>>,
}

/// Gives each instruction its own source location, so that its optimized instructions can be found.
pub fn number(func: &mut Function) -> Numbered {
    let blocks: Vec<Block> = func.layout.blocks().collect();
    let insts: Vec<Inst> = blocks
        .iter()
        .flat_map(|&block| func.layout.block_insts(block))
        .collect();
    let locations = insts.iter().map(|&inst| func.srcloc(inst)).collect();
    for (&inst, number) in insts.iter().zip(0..) {
        func.set_srcloc(inst, SourceLoc::new(number));
    }
    let mut computations: HashMap<u64, Vec<Inst>> = HashMap::new();
    let mut known = HashMap::new();
    for &inst in &insts {
        let computation = computation(func, inst, &mut known);
        computations.entry(computation).or_default().push(inst);
    }
    Numbered {
        insts,
        locations,
        computations,
    }
}

/// The depth to which [`computation`] searches operands that are defined later in the function.
const MAX_DEPTH: usize = 4;

/// Returns a hash of an instruction's computation, in which all block parameters are equal. Call it
/// in the order of the function.
fn computation(func: &Function, inst: Inst, known: &mut HashMap<Inst, u64>) -> u64 {
    fn of(func: &Function, inst: Inst, depth: usize, known: &mut HashMap<Inst, u64>) -> u64 {
        if let Some(&number) = known.get(&inst) {
            return number;
        }
        let dfg = &func.dfg;
        let mut hasher = DefaultHasher::new();
        dfg.ctrl_typevar(inst).hash(&mut hasher);
        let text = dfg.display_inst(inst).to_string();
        let text = text.split("  ;").next().unwrap_or_default();
        let text = text.split_once(" = ").map_or(text, |(_, text)| text);
        let mut words = text.split([' ', ',']);
        // The type after the opcode is printed only if it is not obvious.
        words
            .next()
            .and_then(|opcode| opcode.split('.').next())
            .hash(&mut hasher);
        let is_value = |word: &str| {
            word.strip_prefix('v')
                .is_some_and(|n| n.bytes().all(|b| b.is_ascii_digit()))
        };
        words
            .filter(|word| !is_value(word))
            .for_each(|word| word.hash(&mut hasher));
        for value in dfg.inst_args(inst) {
            dfg.value_type(*value).hash(&mut hasher);
            let made = dfg.value_def(dfg.resolve_aliases(*value)).inst();
            made.filter(|_| depth < MAX_DEPTH)
                .map(|made| of(func, made, depth + 1, known))
                .hash(&mut hasher);
        }
        let number = hasher.finish();
        // A partial hash, from a search by another instruction, is not stored.
        if depth == 0 {
            known.insert(inst, number);
        }
        number
    }
    of(func, inst, 0, known)
}

/// The origin of an instruction of the optimized function.
#[derive(Clone, Default)]
pub struct Origin {
    /// Instructions of the input function.
    pub insts: BTreeSet<Inst>,
    /// Whether the optimizer made the instruction. Then `insts` compute the same value or use its
    /// result.
    pub is_guess: bool,
}

impl Numbered {
    /// Returns the origin of each instruction of the optimized function. Removes the temporary
    /// source locations.
    pub fn origins(&self, func: &mut Function) -> HashMap<Inst, Origin> {
        let blocks: Vec<Block> = func.layout.blocks().collect();
        let insts: Vec<Inst> = blocks
            .iter()
            .flat_map(|&block| func.layout.block_insts(block))
            .collect();
        let mut origins: HashMap<Inst, Origin> = HashMap::new();
        let mut locations = Vec::new();
        for &inst in &insts {
            let number = func.srcloc(inst);
            let number = usize::try_from(number.bits()).ok().filter(|_| !number.is_default());
            let known = number.and_then(|number| Some((*self.insts.get(number)?, *self.locations.get(number)?)));
            let mut origin = Origin::default();
            if let Some((from, location)) = known {
                origin.insts.insert(from);
                locations.push((inst, location));
            }
            origin.is_guess = origin.insts.is_empty();
            origins.insert(inst, origin);
        }
        func.srclocs.clear();
        for (inst, location) in locations {
            if !location.is_default() {
                func.set_srcloc(inst, location);
            }
        }
        let mut known = HashMap::new();
        for &inst in &insts {
            let computation = computation(func, inst, &mut known);
            if let Some(origin) = origins.get_mut(&inst).filter(|origin| origin.is_guess) {
                let same = self.computations.get(&computation).into_iter().flatten();
                origin.insts.extend(same.take(MAX_ORIGINS));
            }
        }
        guess(func, &insts, &mut origins);
        origins
    }
}

/// Sets the origin of an instruction that the optimizer made to the users of its result.
fn guess(func: &Function, insts: &[Inst], origins: &mut HashMap<Inst, Origin>) {
    let dfg = &func.dfg;
    let unknown: HashSet<Inst> = origins
        .iter()
        .filter(|(_, origin)| origin.insts.is_empty())
        .map(|(&inst, _)| inst)
        .collect();
    // Backwards, users mostly come first; a second pass handles loop-carried values.
    for _ in 0..2 {
        for &user in insts.iter().rev() {
            let Some(of_user) = origins.get(&user).map(|origin| origin.insts.clone()) else {
                continue;
            };
            for value in dfg.inst_values(user) {
                let made = dfg.value_def(dfg.resolve_aliases(value)).inst();
                if let Some(origin) = made.and_then(|made| origins.get_mut(&made).filter(|_| unknown.contains(&made))) {
                    let room = MAX_ORIGINS.saturating_sub(origin.insts.len());
                    let more: Vec<Inst> = of_user.difference(&origin.insts).copied().take(room).collect();
                    origin.insts.extend(more);
                }
            }
        }
    }
}
