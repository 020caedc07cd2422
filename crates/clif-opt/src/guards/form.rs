//! What a number is in every round of a loop nest: what it is when the nest is entered, and what the rounds of each of its loops add.

use crate::bits;
use crate::edit;
use crate::linear::Sum;
use crate::loops::{self, Induction, NaturalLoop};
use cranelift_codegen::flowgraph::ControlFlowGraph;
use cranelift_codegen::ir::{AliasRegion, Function, Inst, InstructionData, Opcode, Value, ValueDef, types};
use rustc_hash::FxHashSet;
use smallvec::SmallVec;

/// How many loops a number is followed outwards.
const DEPTH: u32 = 4;

/// The most that one variable may add to a number, so that the sum of what a few of them and a constant add is below 2^32.
pub const SPAN: u32 = 1 << 30;

/// Something in a nest that is not negative, and of which the largest number is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Variable {
    /// The rounds before this one of the loop with this place among those of the function.
    Rounds(usize),
    /// A parameter of a header, as an unsigned number.
    Param(Value),
    /// A value that its operations keep small: a mask, a shift, a byte that was loaded.
    Small(Value),
}

/// A number modulo 2^32 as a sum.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Form {
    /// Values from outside of the nest, parameters of its header, which stand for what they are in the first round, and loads that give the same in
    /// all rounds. Each with its factor.
    pub start: SmallVec<[(Value, u32); 4]>,
    /// What is added to them.
    pub constant: u32,
    /// What changes in a way that is known, with its factor.
    pub changes: SmallVec<[(Variable, u32); 2]>,
    /// Whatever else changes.
    pub others: SmallVec<[(Value, u32); 2]>,
}

/// A loop, with everything that is inside.
#[derive(Clone, Copy)]
pub struct Nest<'a> {
    /// The function.
    pub func: &'a Function,
    /// Where its blocks come from.
    pub cfg: &'a ControlFlowGraph,
    /// All loops of the function.
    pub loops: &'a [NaturalLoop],
    /// The induction variables of each.
    pub inductions: &'a [Vec<Induction>],
    /// The outermost one, by its place.
    pub top: usize,
    /// What the nest may write, if that is known.
    pub written: Option<&'a FxHashSet<AliasRegion>>,
}

impl Nest<'_> {
    /// The loop that is the whole nest.
    pub fn top(&self) -> &NaturalLoop {
        &self.loops[self.top]
    }

    /// The number, an i32, as a sum; `None` if it has too many terms.
    pub fn form(&self, value: Value) -> Option<Form> {
        self.form_to(value, DEPTH)
    }

    /// The same with parameters of so many headers, one outside of the other, taken apart.
    pub fn form_to(&self, value: Value, depth: u32) -> Option<Form> {
        let mut form = Form::default();
        self.add(&mut form, value, 1, depth)?;
        form.tidy();
        Some(form)
    }

    fn add(&self, form: &mut Form, value: Value, factor: u32, depth: u32) -> Option<()> {
        let top = self.top();
        let sum = Sum::of(self.func, value, &|inst, _| {
            let block = self.func.layout.inst_block(inst);
            block.is_some_and(|block| top.contains(block))
        })?;
        form.constant = form.constant.wrapping_add(sum.constant.wrapping_mul(factor));
        for (term, own) in sum.terms {
            let factor = own.wrapping_mul(factor);
            if top.is_invariant(self.func, term) || self.is_steady(term) {
                form.start.push((term, factor));
            } else if depth == 0 || self.follow(form, term, factor, depth - 1).is_none() {
                match bits::largest(self.func, term) <= u64::from(SPAN) {
                    true => form.changes.push((Variable::Small(term), factor)),
                    false => form.others.push((term, factor)),
                }
            }
        }
        Some(())
    }

    /// Adds a parameter of a header; `None`, with nothing changed, if it is not known how it changes.
    fn follow(&self, form: &mut Form, term: Value, factor: u32, depth: u32) -> Option<()> {
        let (place, index) = self.header_of(term)?;
        let mut own = Form::default();
        let mut add_first = |index: usize, param: Value, factor: u32| {
            if place == self.top {
                own.start.push((param, factor));
                return Some(());
            }
            self.add(&mut own, self.entry_value(place, index)?, factor, depth)
        };
        add_first(index, term, factor)?;
        let change = match self.inductions[place].iter().find(|known| known.index == index) {
            // A step is less than the size of the type, which is 32 bits here.
            Some(known) => {
                let step = (known.step & u64::from(u32::MAX)) as u32;
                (Variable::Rounds(place), step.wrapping_mul(factor))
            }
            None => {
                let (other, param) = self.companion(place, index)?;
                add_first(other, param, factor.wrapping_neg())?;
                (Variable::Param(param), factor)
            }
        };
        own.changes.push(change);
        form.join(own);
        Some(())
    }

    /// The loop of the nest whose header has this parameter, an i32, and the place of the parameter.
    pub fn header_of(&self, value: Value) -> Option<(usize, usize)> {
        let ValueDef::Param(block, index) = self.func.dfg.value_def(value) else {
            return None;
        };
        if self.func.dfg.value_type(value) != types::I32 || !self.top().contains(block) {
            return None;
        }
        let place = self.loops.iter().position(|lp| lp.header == block)?;
        Some((place, index))
    }

    /// What the parameter of the loop's header is in the first round, if that is one value.
    pub fn entry_value(&self, place: usize, index: usize) -> Option<Value> {
        let mut values = self.loops[place].entries.iter().map(|&entry| {
            let value = *edit::args(self.func, entry)?.get(index)?;
            Some(self.func.dfg.resolve_aliases(value))
        });
        let first = values.next()??;
        values.all(|value| value == Some(first)).then_some(first)
    }

    /// Whether the value is a load that gives the same in all rounds, and before them.
    fn is_steady(&self, value: Value) -> bool {
        let steady = || {
            let written = self.written?;
            let ValueDef::Result(inst, 0) = self.func.dfg.value_def(value) else {
                return None;
            };
            let load = plain_load(self.func, inst)?;
            let steady = symbol(self.func, load.address).is_some()
                || load.can_move && self.top().is_invariant(self.func, load.address);
            Some(steady && !written.contains(&load.region))
        };
        steady().unwrap_or(false)
    }
}

/// The regions that change while a loop runs; `None` if that may be all memory. After an atomic access the loop may see what other
/// threads have stored anywhere.
pub fn written(func: &Function, lp: &NaturalLoop) -> Option<FxHashSet<AliasRegion>> {
    let mut written = FxHashSet::default();
    for inst in lp.blocks.iter().flat_map(|&block| func.layout.block_insts(block)) {
        let data = &func.dfg.insts[inst];
        let opcode = data.opcode();
        let synchronizes = matches!(
            opcode,
            Opcode::Fence | Opcode::AtomicLoad | Opcode::AtomicStore | Opcode::AtomicRmw | Opcode::AtomicCas
        );
        if opcode.is_call() || synchronizes {
            return None;
        }
        if opcode.can_store() {
            let flags = func.dfg.mem_flags[data.memflags()?];
            written.insert(flags.alias_region()?);
        }
    }
    Some(written)
}

/// A load of 32 bits that does not trap where it stands.
struct PlainLoad {
    region: AliasRegion,
    address: Value,
    /// Whether it does not trap elsewhere either: `notrap` alone may rely on a test in front of the load. A load from the address of a
    /// symbol relies on none.
    can_move: bool,
}

fn plain_load(func: &Function, inst: Inst) -> Option<PlainLoad> {
    let InstructionData::Load {
        opcode: Opcode::Load,
        arg,
        flags,
        ..
    } = func.dfg.insts[inst]
    else {
        return None;
    };
    let flags = func.dfg.mem_flags[flags];
    let is_word = func.dfg.value_type(func.dfg.first_result(inst)) == types::I32;
    Some(PlainLoad {
        region: flags.alias_region().filter(|_| is_word && flags.notrap())?,
        address: func.dfg.resolve_aliases(arg),
        can_move: flags.can_move(),
    })
}

/// The instruction that makes the value, if that is the address of a symbol.
pub fn symbol(func: &Function, value: Value) -> Option<Inst> {
    let inst = func.dfg.value_def(func.dfg.resolve_aliases(value)).inst()?;
    (func.dfg.insts[inst].opcode() == Opcode::SymbolValue).then_some(inst)
}

impl Form {
    /// A parameter of the nest's header in the first round.
    pub fn of(param: Value) -> Form {
        let mut form = Form::default();
        form.start.push((param, 1));
        form
    }

    /// A number.
    pub fn number(constant: u32) -> Form {
        Form {
            constant,
            ..Form::default()
        }
    }

    /// The number, if it is known.
    pub fn as_number(&self) -> Option<u32> {
        (self.is_invariant() && self.start.is_empty()).then_some(self.constant)
    }

    /// Adds another sum.
    fn join(&mut self, other: Form) {
        self.start.extend(other.start);
        self.constant = self.constant.wrapping_add(other.constant);
        self.changes.extend(other.changes);
        self.others.extend(other.others);
    }

    /// The difference to another sum.
    pub fn minus(mut self, other: &Form) -> Form {
        self.join(Form {
            start: negated(&other.start).collect(),
            constant: other.constant.wrapping_neg(),
            changes: negated(&other.changes).collect(),
            others: negated(&other.others).collect(),
        });
        self.tidy();
        self
    }

    /// Whether it is the same in every round.
    pub fn is_invariant(&self) -> bool {
        self.changes.is_empty() && self.others.is_empty()
    }

    /// Terms in order, each once.
    fn tidy(&mut self) {
        collect(&mut self.start);
        collect(&mut self.changes);
        collect(&mut self.others);
    }
}

fn negated<T: Copy>(terms: &[(T, u32)]) -> impl Iterator<Item = (T, u32)> {
    terms.iter().map(|&(term, factor)| (term, factor.wrapping_neg()))
}

/// Adds up the factors of each term.
fn collect<T: Copy + Ord, A: smallvec::Array<Item = (T, u32)>>(terms: &mut SmallVec<A>) {
    terms.sort_unstable_by_key(|term| term.0);
    terms.dedup_by(|next, kept| {
        let same = next.0 == kept.0;
        if same {
            kept.1 = kept.1.wrapping_add(next.1);
        }
        same
    });
    terms.retain(|term| term.1 != 0);
}

/// The induction variables of each loop.
pub fn inductions(func: &Function, all: &[NaturalLoop]) -> Vec<Vec<Induction>> {
    all.iter().map(|lp| loops::inductions(func, lp)).collect()
}
