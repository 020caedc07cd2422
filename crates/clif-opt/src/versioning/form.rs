//! Numbers in a loop nest as linear forms: an invariant part, and variables of the loops of the
//! nest.

use crate::edit;
use crate::facts;
use crate::linear::LinearSum;
use crate::loops::{self, InductionVariable, NaturalLoop};
use cranelift_codegen::flowgraph::ControlFlowGraph;
use cranelift_codegen::ir::{AliasRegion, Function, Inst, InstructionData, Opcode, Value, ValueDef, types};
use rustc_hash::FxHashSet;
use smallvec::SmallVec;

/// The maximum number of loops through which a number is followed outwards.
const MAX_DEPTH: u32 = 4;

/// The maximum contribution of one variable to a number. The sum of a few such contributions and a
/// constant is below 2^32.
pub const SPAN: u32 = 1 << 30;

/// A nonnegative number that varies in a nest and for which a limit is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Variable {
    /// The number of completed iterations of the loop with this index in the function.
    Iterations(usize),
    /// A header parameter as an unsigned number.
    Param(Value),
    /// A value with a small upper bound: the result of a mask or shift, or a loaded byte.
    Small(Value),
}

/// A linear form modulo 2^32.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct LinearForm {
    /// Invariant terms with their factors: values from outside of the nest, parameters of its
    /// header (for their values in the first iteration), and invariant loads.
    pub invariant: SmallVec<[(Value, u32); 4]>,
    /// The constant term.
    pub constant: u32,
    /// Terms that vary in a known manner, with their factors.
    pub varying: SmallVec<[(Variable, u32); 2]>,
    /// All other varying terms, with their factors.
    pub unknown: SmallVec<[(Value, u32); 2]>,
}

/// A loop with all loops inside.
#[derive(Clone, Copy)]
pub struct LoopNest<'a> {
    /// The function.
    pub func: &'a Function,
    /// The control-flow graph.
    pub cfg: &'a ControlFlowGraph,
    /// All loops of the function.
    pub loops: &'a [NaturalLoop],
    /// The induction variables of each loop.
    pub induction_variables: &'a [Vec<InductionVariable>],
    /// The index of the outermost loop of the nest.
    pub outermost: usize,
    /// The alias regions that the nest may write; `None` for all memory.
    pub written: Option<&'a FxHashSet<AliasRegion>>,
}

impl LoopNest<'_> {
    /// Returns the outermost loop.
    pub fn outermost(&self) -> &NaturalLoop {
        &self.loops[self.outermost]
    }

    /// Returns an i32 as a linear form, or `None` if it has too many terms.
    pub fn form(&self, value: Value) -> Option<LinearForm> {
        self.form_to(value, MAX_DEPTH)
    }

    /// Returns an i32 as a linear form, and expands header parameters of up to `depth` nested
    /// loops.
    pub fn form_to(&self, value: Value, depth: u32) -> Option<LinearForm> {
        let mut form = LinearForm::default();
        self.add(&mut form, value, 1, depth)?;
        form.normalize();
        Some(form)
    }

    fn add(&self, form: &mut LinearForm, value: Value, factor: u32, depth: u32) -> Option<()> {
        let outermost = self.outermost();
        let sum = LinearSum::of(self.func, value, &|inst, _| {
            let block = self.func.layout.inst_block(inst);
            block.is_some_and(|block| outermost.contains(block))
        })?;
        form.constant = form.constant.wrapping_add(sum.constant.wrapping_mul(factor));
        for (term, own) in sum.terms {
            let factor = own.wrapping_mul(factor);
            if outermost.is_invariant(self.func, term) || self.is_invariant_load(term) {
                form.invariant.push((term, factor));
            } else if depth == 0 || self.follow(form, term, factor, depth - 1).is_none() {
                match facts::largest(self.func, term) <= u64::from(SPAN) {
                    true => form.varying.push((Variable::Small(term), factor)),
                    false => form.unknown.push((term, factor)),
                }
            }
        }
        Some(())
    }

    /// Adds a header parameter to the form. Returns `None`, and leaves the form unchanged, if its
    /// change is unknown.
    fn follow(&self, form: &mut LinearForm, term: Value, factor: u32, depth: u32) -> Option<()> {
        let (loop_index, index) = self.header_of(term)?;
        let mut own = LinearForm::default();
        let mut add_first = |index: usize, param: Value, factor: u32| {
            if loop_index == self.outermost {
                own.invariant.push((param, factor));
                return Some(());
            }
            self.add(&mut own, self.entry_value(loop_index, index)?, factor, depth)
        };
        add_first(index, term, factor)?;
        let change = match self.induction_variables[loop_index]
            .iter()
            .find(|known| known.index == index)
        {
            // The step of an i32 is less than 2^32.
            Some(known) => {
                let step = (known.step & u64::from(u32::MAX)) as u32;
                (Variable::Iterations(loop_index), step.wrapping_mul(factor))
            }
            None => {
                let (other, param) = self.companion(loop_index, index)?;
                add_first(other, param, factor.wrapping_neg())?;
                (Variable::Param(param), factor)
            }
        };
        own.varying.push(change);
        form.join(own);
        Some(())
    }

    /// Returns the indices of the loop and of the parameter, if the value is an i32 header
    /// parameter of a loop of the nest.
    pub fn header_of(&self, value: Value) -> Option<(usize, usize)> {
        let ValueDef::Param(block, index) = self.func.dfg.value_def(value) else {
            return None;
        };
        if self.func.dfg.value_type(value) != types::I32 || !self.outermost().contains(block) {
            return None;
        }
        let loop_index = self.loops.iter().position(|lp| lp.header == block)?;
        Some((loop_index, index))
    }

    /// Returns the value of a header parameter in the first iteration, if all entries pass the same
    /// value.
    pub fn entry_value(&self, loop_index: usize, index: usize) -> Option<Value> {
        let mut values = self.loops[loop_index].entries.iter().map(|&entry| {
            let value = *edit::args(self.func, entry)?.get(index)?;
            Some(self.func.dfg.resolve_aliases(value))
        });
        let first = values.next()??;
        values.all(|value| value == Some(first)).then_some(first)
    }

    /// Returns whether the value is a load that has the same result before the nest and in all
    /// iterations.
    fn is_invariant_load(&self, value: Value) -> bool {
        let is_invariant = || {
            let written = self.written?;
            let ValueDef::Result(inst, 0) = self.func.dfg.value_def(value) else {
                return None;
            };
            let load = word_load(self.func, inst)?;
            let is_invariant = symbol(self.func, load.address).is_some()
                || load.can_move && self.outermost().is_invariant(self.func, load.address);
            Some(is_invariant && !written.contains(&load.region))
        };
        is_invariant().unwrap_or(false)
    }
}

/// Returns the alias regions that may change while the loop runs; `None` for all memory. After an
/// atomic access, the loop may observe stores of other threads to any region.
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

/// A 32-bit load that does not trap at its position.
struct WordLoad {
    region: AliasRegion,
    address: Value,
    /// Whether the load does not trap elsewhere either: `notrap` alone may rely on a test before
    /// the load. Loads from the address of a symbol do not rely on a test.
    can_move: bool,
}

fn word_load(func: &Function, inst: Inst) -> Option<WordLoad> {
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
    Some(WordLoad {
        region: flags.alias_region().filter(|_| is_word && flags.notrap())?,
        address: func.dfg.resolve_aliases(arg),
        can_move: flags.can_move(),
    })
}

/// Returns the instruction if it computes the address of a symbol.
pub fn symbol(func: &Function, value: Value) -> Option<Inst> {
    let inst = func.dfg.value_def(func.dfg.resolve_aliases(value)).inst()?;
    (func.dfg.insts[inst].opcode() == Opcode::SymbolValue).then_some(inst)
}

impl LinearForm {
    /// Returns the form of a parameter of the outermost header, for the first iteration.
    pub fn of(param: Value) -> LinearForm {
        let mut form = LinearForm::default();
        form.invariant.push((param, 1));
        form
    }

    /// Returns the form of a constant.
    pub fn number(constant: u32) -> LinearForm {
        LinearForm {
            constant,
            ..LinearForm::default()
        }
    }

    /// Returns the number if the form is constant.
    pub fn as_number(&self) -> Option<u32> {
        (self.is_invariant() && self.invariant.is_empty()).then_some(self.constant)
    }

    /// Adds another form.
    fn join(&mut self, other: LinearForm) {
        self.invariant.extend(other.invariant);
        self.constant = self.constant.wrapping_add(other.constant);
        self.varying.extend(other.varying);
        self.unknown.extend(other.unknown);
    }

    /// Subtracts another form.
    pub fn minus(mut self, other: &LinearForm) -> LinearForm {
        self.join(LinearForm {
            invariant: negated(&other.invariant).collect(),
            constant: other.constant.wrapping_neg(),
            varying: negated(&other.varying).collect(),
            unknown: negated(&other.unknown).collect(),
        });
        self.normalize();
        self
    }

    /// Returns whether the form is the same in all iterations.
    pub fn is_invariant(&self) -> bool {
        self.varying.is_empty() && self.unknown.is_empty()
    }

    /// Sorts the terms and merges terms of the same value.
    fn normalize(&mut self) {
        collect(&mut self.invariant);
        collect(&mut self.varying);
        collect(&mut self.unknown);
    }
}

fn negated<T: Copy>(terms: &[(T, u32)]) -> impl Iterator<Item = (T, u32)> {
    terms.iter().map(|&(term, factor)| (term, factor.wrapping_neg()))
}

/// Sorts the terms, adds up their factors and removes terms with factor 0.
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

/// Returns the induction variables of each loop.
pub fn induction_variables(func: &Function, all: &[NaturalLoop]) -> Vec<Vec<InductionVariable>> {
    all.iter().map(|lp| loops::induction_variables(func, lp)).collect()
}
