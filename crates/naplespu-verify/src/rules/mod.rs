//! Proves the lowering rules.
//!
//! # Contract
//!
//! A rule emits instructions for operands that it matched, and depends on them only by their types,
//! their constants and their registers. So a rule is proved at a type if the code of functions is
//! proved that apply it to parameters ([`prove_code`]): a parameter stands
//! for every value. A rule with a constant operand is proved at each constant that a machine
//! immediate can have.
//!
//! [`Prover`] compiles small functions of several families ([`instances`]), records the rules that
//! each one applies, and proves those that add something: a rule at a new type or constant, or a new
//! combination of rules. Files of CLIF supply functions for the remaining rules.
//!
//! # Structure
//!
//! | module | contents |
//! |---|---|
//! | [`operation`] | operations of CLIF with types and immediates; small functions |
//! | [`instances`], `memory`, `control`, `atomics`, `intrinsics`, `frames` | the families of functions |
//! | `rewrites`, `unrolled` | functions for the passes over CLIF |
//! | [`known`] | answers by the content of function and code |
//! | [`runs`] | runs of functions for rules that are not proved |
//! | [`routines`] | the routines of the runtime against the operations that they perform |
//! | [`table`] | the proofs by rule, as text and JSON |

mod atomics;
mod control;
mod frames;
pub mod instance;
pub mod instances;
mod intrinsics;
pub mod known;
mod memory;
pub mod operation;
mod rewrites;
pub mod routines;
pub mod runs;
pub mod table;
mod unrolled;
mod vectors;

use crate::abi::FloatUnit;
use crate::answer::{Answer, Reason, Verdict};
use crate::prove::{Options, prove_code};
use cranelift_codegen::Context;
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::ir::{Function, Type, types};
use cranelift_codegen::settings::{self, Flags};
use cranelift_codegen::verify_function;
use cranelift_naplespu::{CompileError, CompiledCode, Compiler, Isa, StageRequest};
use instance::Instance;
use instances::Family;
use known::{Key, Known};
use npu_mc::errata::Erratum;
use rayon::prelude::*;
use rustc_hash::{FxHashSet, FxHasher};
use sha2::{Digest as _, Sha256};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::Hasher as _;
use std::sync::Arc;
use std::time::{Duration, Instant};
use table::Table;

/// The number of functions that are compiled before some of them are proved.
const CHUNK: usize = 16_384;
/// The time of the first attempt at a proof. All second attempts follow at the end: then it is known
/// which rules need them, and no chunk waits for its longest proof.
const FIRST: Duration = Duration::from_secs(2);

/// A compiled instance.
struct Compiled {
    instance: Instance,
    code: CompiledCode,
    /// The applied rules, by their numbers in `RULES`, in ascending order.
    rules: Vec<u16>,
    /// Whether the function and the optimized one consist of different operations.
    is_rewritten: bool,
}

/// The result of compiling an instance.
enum Attempt {
    /// CLIF has no such instruction.
    Invalid,
    /// The compiler refuses the function.
    Refused(Box<(Function, CompileError)>),
    Done(Box<Compiled>),
}

/// A function whose code was compared with its CLIF.
#[derive(Clone, Debug)]
pub struct Proof {
    /// The settings of the compiler that differ from the default.
    pub settings: String,
    /// The function.
    pub func: Function,
    /// The name of the type.
    pub ty: String,
    /// Whether the function is of a file, not of a family.
    pub is_of_file: bool,
    /// The constant operand.
    pub constant: Option<i64>,
    /// The applied rules, by their numbers in `RULES`.
    pub rules: Vec<u16>,
    /// The answer.
    pub answer: Answer,
}

/// The numbers of functions.
#[derive(Clone, Copy, Default, Debug)]
pub struct Counts {
    /// Functions that the compiler accepts.
    pub compiled: usize,
    /// Functions that it refuses.
    pub refused: usize,
    /// Functions that were proved, refuted or undecided.
    pub compared: usize,
    /// The time to compile, on all cores.
    pub compiling: Duration,
    /// The time of the comparisons, summed over the threads.
    pub proving: Duration,
    /// The part of it that the solver needs.
    pub solving: Duration,
}

/// The result of a first attempt.
enum First {
    /// The answer.
    Final(Answer),
    /// More time may decide.
    Open(Answer),
}

/// A function without an answer after the first attempt.
struct Deferred {
    compiled: Compiled,
    /// The answer of the first attempt.
    answer: Answer,
    isa: Arc<Isa>,
    settings: String,
    /// The same function with the same code, compiled with other settings.
    others: Vec<Deferred>,
}

/// The proofs so far.
pub struct Prover {
    options: Options,
    features: FxHashSet<u64>,
    /// Whether the compiler may refuse functions.
    may_refuse: bool,
    /// The functions of the second attempt, by function and code.
    deferred: BTreeMap<Key, Deferred>,
    /// The answers so far, by function and code.
    pub known: Known,
    /// The proofs by rule.
    pub table: Table,
}

/// Returns the name of the type of an instance.
fn type_name(ty: Type) -> String {
    match ty {
        types::INVALID => "several types".to_owned(),
        ty => ty.to_string(),
    }
}

/// Returns the hash of a property that an instance can have.
fn feature(parts: impl std::hash::Hash) -> u64 {
    let mut hasher = FxHasher::default();
    parts.hash(&mut hasher);
    hasher.finish()
}

/// Selects the functions that are compared with their CLIF.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scope {
    /// Rules at new types, with new constants or in new combinations, and functions of a new shape.
    All,
    /// Rules at new types.
    Types,
    /// Rules at new types, and functions that the optimizer rewrites in a new way.
    Rewrites,
    /// Functions that the optimizer rewrites.
    Rewritten,
    /// Only rules that no function applied so far.
    NewRules,
}

impl Prover {
    /// Creates a prover without proofs. `options.timeout` limits the second attempt at a function.
    pub fn new(options: Options) -> Self {
        Self {
            options,
            features: FxHashSet::default(),
            may_refuse: true,
            deferred: BTreeMap::new(),
            known: Known::default(),
            table: Table::default(),
        }
    }

    /// Returns the options of the proofs.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Compiles the instances of a family and proves those that add something. Functions that need
    /// more time than a first attempt has wait for [`Prover::second_attempts`].
    pub fn family(&mut self, family: Family, isa: &Arc<Isa>, settings: &str, scope: Scope) -> Counts {
        let mut counts = Counts::default();
        self.may_refuse = family.has_refusals();
        self.all(family.instances(), isa, settings, scope, &mut counts);
        self.may_refuse = true;
        counts
    }

    fn all(&mut self, mut instances: Vec<Instance>, isa: &Arc<Isa>, settings: &str, scope: Scope, counts: &mut Counts) {
        while !instances.is_empty() {
            let rest = instances.split_off(CHUNK.min(instances.len()));
            self.chunk(instances, isa, settings, scope, counts);
            instances = rest;
        }
    }

    /// Compiles functions and proves those that apply rules that no function applied so far. With
    /// `Scope::Rewritten`, it also proves short functions without loops that the optimizer rewrites.
    pub fn functions(&mut self, functions: Vec<Function>, isa: &Arc<Isa>, settings: &str, scope: Scope) -> Counts {
        let (short, others): (Vec<Function>, _) = functions
            .into_iter()
            .partition(|func| scope == Scope::Rewritten && is_short(func));
        let instances = |functions: Vec<Function>| {
            let instance = |func| Instance {
                func,
                constant: None,
                ty: types::INVALID,
                is_distinct: false,
            };
            functions.into_iter().map(instance).collect()
        };
        let mut counts = Counts::default();
        self.all(instances(short.clone()), isa, settings, scope, &mut counts);
        let all = short.into_iter().chain(others).collect();
        self.all(instances(all), isa, settings, Scope::NewRules, &mut counts);
        counts
    }

    fn chunk(&mut self, instances: Vec<Instance>, isa: &Arc<Isa>, settings: &str, scope: Scope, counts: &mut Counts) {
        let start = Instant::now();
        let attempts: Vec<Attempt> = instances
            .into_par_iter()
            .map_init(Compiler::new, |compiler, instance| compile(compiler, isa, instance))
            .collect();
        counts.compiling += start.elapsed();
        let mut chosen = Vec::new();
        for attempt in attempts {
            match attempt {
                Attempt::Invalid => {}
                Attempt::Refused(refused) => {
                    let (func, error) = *refused;
                    counts.refused += 1;
                    if !self.may_refuse || !error.is_refusal() {
                        self.table
                            .uncompiled
                            .push((func.display().to_string(), error.to_string()));
                    }
                }
                Attempt::Done(compiled) => {
                    counts.compiled += 1;
                    if self.is_new(&compiled, settings, scope) {
                        chosen.push(*compiled);
                    }
                }
            }
        }
        counts.compared += chosen.len();
        let proofs: Vec<(Key, Compiled, First)> = chosen
            .into_par_iter()
            .with_max_len(1)
            .map(|compiled| {
                let key = key(&compiled, isa);
                let first = self.first_attempt(&compiled, &key, isa);
                (key, compiled, first)
            })
            .collect();
        for (key, compiled, first) in proofs {
            match first {
                First::Final(answer) => {
                    self.known.add(key, &answer.verdict, self.options.timeout.as_secs());
                    self.add(compiled, answer, isa, settings, counts);
                }
                First::Open(answer) => self.defer(key, compiled, answer, isa, settings),
            }
        }
    }

    /// Keeps a function for the second attempt.
    fn defer(&mut self, key: Key, compiled: Compiled, answer: Answer, isa: &Arc<Isa>, settings: &str) {
        let deferred = Deferred {
            compiled,
            answer,
            isa: isa.clone(),
            settings: settings.to_owned(),
            others: Vec::new(),
        };
        match self.deferred.entry(key) {
            Entry::Occupied(first) => first.into_mut().others.push(deferred),
            Entry::Vacant(place) => {
                place.insert(deferred);
            }
        }
    }

    /// Proves the functions without an answer so far, with all the time of the options, if they apply
    /// a rule that no other function proves at their type, or at any type for functions of files.
    /// The others stay undecided; their code was compared in the trials of the first attempt, and
    /// [`Table::run_unproved`] runs them.
    pub fn second_attempts(&mut self) -> Counts {
        let mut counts = Counts::default();
        let deferred = std::mem::take(&mut self.deferred).into_iter();
        let (needed, others): (Vec<_>, Vec<_>) = deferred.partition(|(_, first)| self.is_needed(&first.compiled));
        let prove = |(_, first): &(Key, Deferred)| {
            let Deferred { compiled, isa, .. } = first;
            prove_code(&compiled.instance.func, &compiled.code, isa, &self.options)
        };
        let answers: Vec<Answer> = needed.par_iter().with_max_len(1).map(prove).collect();
        let seconds = self.options.timeout.as_secs();
        let needed = needed.into_iter().zip(answers);
        let needed = needed.map(|((key, first), answer)| (key, first, answer, seconds));
        let others = others.into_iter().map(|(key, first)| {
            let answer = first.answer.clone();
            (key, first, answer, FIRST.as_secs())
        });
        for (key, mut first, answer, seconds) in needed.chain(others).collect::<Vec<_>>() {
            self.known.add(key, &answer.verdict, seconds);
            let same = std::mem::take(&mut first.others);
            for one in std::iter::once(first).chain(same) {
                counts.compared += 1;
                self.add(one.compiled, answer.clone(), &one.isa, &one.settings, &mut counts);
            }
        }
        counts
    }

    /// Returns whether a function applies a rule that no function proves at its type.
    fn is_needed(&self, compiled: &Compiled) -> bool {
        let ty = compiled.instance.ty;
        let name = type_name(ty);
        let has_type = |types: &BTreeSet<String>| types.contains(&name) || ty.is_invalid() && !types.is_empty();
        let is_proved = |&rule: &u16| self.table.of(rule).is_some_and(|proofs| has_type(&proofs.types));
        !compiled.rules.iter().all(is_proved)
    }

    /// Records an answer.
    fn add(&mut self, compiled: Compiled, answer: Answer, isa: &Arc<Isa>, settings: &str, counts: &mut Counts) {
        counts.proving += answer.time;
        counts.solving += answer.solving;
        let Compiled { instance, rules, .. } = compiled;
        let proof = Proof {
            settings: settings.to_owned(),
            ty: type_name(instance.ty),
            is_of_file: instance.ty.is_invalid(),
            func: instance.func,
            constant: instance.constant,
            rules,
            answer,
        };
        self.table.add(proof, isa);
    }

    /// Records the features of an instance. Returns whether one of them is new.
    fn is_new(&mut self, compiled: &Compiled, settings: &str, scope: Scope) -> bool {
        let Compiled { instance, rules, .. } = compiled;
        if scope == Scope::Rewritten {
            return compiled.is_rewritten;
        }
        if scope == Scope::NewRules {
            let unseen = rules
                .iter()
                .filter(|&&rule| self.features.insert(feature((rule, "any"))));
            return unseen.count() > 0;
        }
        let ty = instance.ty;
        let mut is_new = false;
        if scope == Scope::Rewrites && compiled.is_rewritten && !ty.is_vector() {
            is_new |= self
                .features
                .insert(feature((settings, "rewrite", instance::rewrite(&instance.func))));
        }
        if scope == Scope::All {
            is_new |= self.features.insert(feature((settings, "rules", rules, ty)));
            if instance.is_distinct {
                is_new |= self
                    .features
                    .insert(feature((settings, "shape", instance::shape(&instance.func))));
            }
        }
        for &rule in rules {
            self.features.insert(feature((rule, "any")));
            is_new |= self.features.insert(feature((settings, rule, ty)));
            if let Some(constant) = instance.constant {
                is_new |= self.features.insert(feature((settings, rule, "constant", constant)));
            }
        }
        is_new
    }

    /// Compares the code of a function with its CLIF, unless the answer for the same code of the same
    /// function is known.
    fn first_attempt(&self, compiled: &Compiled, key: &Key, isa: &Arc<Isa>) -> First {
        let func = &compiled.instance.func;
        if let Some(verdict) = self.known.get(key, self.options.timeout.as_secs()) {
            return First::Final(Answer {
                verdict,
                ..Answer::new(func)
            });
        }
        if let Some(first) = self.deferred.get(key) {
            return First::Open(first.answer.clone());
        }
        let mut options = self.options.clone();
        options.timeout = options.timeout.min(FIRST);
        let answer = prove_code(func, &compiled.code, isa, &options);
        match answer.verdict {
            Verdict::Undecided(Reason::Time(_)) if self.options.timeout > FIRST => First::Open(answer),
            _ => First::Final(answer),
        }
    }
}

/// The maximum number of instructions of a function of a file that is chosen for more than its rules.
const SHORT: usize = 40;

/// Returns whether a function has few instructions, no loop, no call, and no access to memory.
fn is_short(func: &Function) -> bool {
    let position = |block| func.layout.blocks().position(|other| other == block);
    let mut insts = 0;
    for block in func.layout.blocks() {
        for inst in func.layout.block_insts(block) {
            insts += 1;
            let opcode = func.dfg.insts[inst].opcode();
            if opcode.can_load() || opcode.can_store() || opcode.is_call() {
                return false;
            }
        }
        let targets = func
            .layout
            .last_inst(block)
            .map(|inst| func.dfg.insts[inst].branch_destination(&func.dfg.jump_tables, &func.dfg.exception_tables));
        for target in targets.into_iter().flatten() {
            if position(target.block(&func.dfg.value_lists)) <= position(block) {
                return false;
            }
        }
    }
    insts <= SHORT
}

/// Compiles an instance.
fn compile(compiler: &mut Compiler, isa: &Arc<Isa>, instance: Instance) -> Attempt {
    if verify_function(&instance.func, &Flags::new(settings::builder())).is_err() {
        return Attempt::Invalid;
    }
    let mut ctx = Context::for_function(instance.func.clone());
    let compiled = compiler.compile_explained(isa, &mut ctx, &mut ControlPlane::default(), StageRequest::default());
    match compiled {
        Err(error) => Attempt::Refused(Box::new((instance.func, error))),
        Ok((code, explanation)) => Attempt::Done(Box::new(Compiled {
            // Compilation optimizes the function of the context in place.
            is_rewritten: instance::operations_of(&instance.func) != instance::operations_of(&ctx.func),
            instance,
            code,
            rules: explanation.applied,
        })),
    }
}

/// Compiles a function. Returns its code and the applied rules.
fn compile_explained(
    compiler: &mut Compiler,
    isa: &Isa,
    func: &Function,
) -> Result<(CompiledCode, Vec<u16>), CompileError> {
    let mut ctx = Context::for_function(func.clone());
    let request = StageRequest::default();
    let (code, explanation) = compiler.compile_explained(isa, &mut ctx, &mut ControlPlane::default(), request)?;
    Ok((code, explanation.applied))
}

/// Returns a hash of everything on which a proof depends.
fn key(compiled: &Compiled, isa: &Isa) -> Key {
    let Compiled { instance, code, .. } = compiled;
    let settings = isa.settings();
    let mended = Erratum::ALL.iter().filter(|&&erratum| !isa.has_erratum(erratum));
    let text = instance.func.display().to_string();
    let float_unit = match text.contains("f32") || text.contains("f16") {
        true => FloatUnit::of(settings),
        false => FloatUnit::None,
    };
    let parts = [
        text,
        format!("{:?} {:?} {}", code.relocs, code.frame, code.pool_start),
        format!("{:?}", mended.collect::<Vec<_>>()),
        format!("{float_unit:?}"),
    ];
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    hash.update(&code.bytes);
    hash.finalize().into()
}
