//! The state of a run: what the statements so far have defined, where evaluation is, and how much work is left.

use std::rc::Rc;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::args::Change;
use crate::diagnostic::Diagnostic;
use crate::resolver::Cache;
use crate::source::{FileId, Span};
use crate::strings::{Strings, Symbol};
use crate::value::{ClassId, MAX_VALUES, TypeId, ValueId};
use crate::world::{Assertion, ParamData, Proto, World};

/// Errors of evaluation that are reported.
const MAX_ERRORS: usize = 200;

/// What is recorded inside loops and multiclasses.
#[derive(Clone, Debug)]
pub(crate) enum Entry {
    Record(Box<Proto>),
    Assert(Assertion),
    Dump(ValueId, Span),
    Loop(Box<Loop>),
}

/// A loop whose list is not known yet. `if` is a loop over a list of length 0 or 1 without a variable.
#[derive(Clone, Debug)]
pub(crate) struct Loop {
    pub(crate) var: Option<Symbol>,
    pub(crate) list: ValueId,
    pub(crate) span: Span,
    pub(crate) entries: Vec<Entry>,
}

#[derive(Debug)]
pub(crate) struct MulticlassData {
    pub(crate) name: Symbol,
    pub(crate) name_var: Symbol,
    pub(crate) params: Arc<Vec<ParamData>>,
    pub(crate) entries: Rc<Vec<Entry>>,
    pub(crate) span: Span,
}

/// What names mean, by nesting.
#[derive(Debug)]
pub(crate) enum Scope {
    /// `defvar`s of a block.
    Block(FxHashMap<Symbol, ValueId>),
    /// A loop variable, or a variable of an operator.
    Variable(Symbol, ValueId),
    /// The record or class being built.
    Record,
    Multiclass(usize),
}

/// A `defset` that is open.
#[derive(Debug)]
pub(crate) struct OpenSet {
    pub(crate) name: Symbol,
    pub(crate) element: TypeId,
    pub(crate) items: Vec<ValueId>,
    pub(crate) span: Span,
}

/// The state of a run.
pub(crate) struct Evaluator {
    pub(crate) w: World,
    pub(crate) diagnostics: Vec<Diagnostic>,
    errors: usize,
    pub(crate) reported: FxHashSet<(Span, String)>,
    pub(crate) type_names: FxHashMap<Symbol, TypeId>,
    pub(crate) multiclasses: Vec<MulticlassData>,
    pub(crate) multiclass_names: FxHashMap<Symbol, usize>,
    pub(crate) scopes: Vec<Scope>,
    pub(crate) lets: Vec<Rc<[Change]>>,
    pub(crate) loops: Vec<Loop>,
    /// The multiclass being defined.
    pub(crate) multiclass: Option<usize>,
    /// The record or class being built, and its class.
    pub(crate) current: Option<Box<Proto>>,
    pub(crate) current_class: Option<ClassId>,
    pub(crate) sets: Vec<OpenSet>,
    pub(crate) instances: FxHashMap<ValueId, ValueId>,
    pub(crate) anonymous: u32,
    /// Where the class values were written: for each the first place.
    pub(crate) call_places: FxHashMap<ValueId, Span>,
    /// The place evaluation is at, for faults of values.
    pub(crate) at: Span,
    pub(crate) depth: u32,
    pub(crate) instance_depth: u32,
    pub(crate) fuel: u64,
    /// Too much was asked for; everything ends as it is.
    pub(crate) stopped: bool,
    pub(crate) name_symbol: Symbol,
    pub(crate) cache: Cache,
    /// The steps that give fields their values are kept.
    pub(crate) tracing: bool,
    /// A buffer for the fields of the record being finished.
    pub(crate) spare: Vec<ValueId>,
}

impl Evaluator {
    pub(crate) fn new(fuel: u64) -> Evaluator {
        let w = World::default();
        let name_symbol = Strings::NAME;
        Evaluator {
            w,
            diagnostics: Vec::new(),
            errors: 0,
            reported: FxHashSet::default(),
            type_names: FxHashMap::default(),
            multiclasses: Vec::new(),
            multiclass_names: FxHashMap::default(),
            scopes: Vec::new(),
            lets: Vec::new(),
            loops: Vec::new(),
            multiclass: None,
            current: None,
            current_class: None,
            sets: Vec::new(),
            instances: FxHashMap::default(),
            anonymous: 0,
            call_places: FxHashMap::default(),
            at: Span::new(FileId(0), 0, 0),
            depth: 0,
            instance_depth: 0,
            fuel,
            stopped: false,
            name_symbol,
            cache: Cache::default(),
            tracing: false,
            spare: Vec::new(),
        }
    }

    /// Adds a message, unless the same was said of the same place.
    pub(crate) fn report(&mut self, diagnostic: Diagnostic) {
        if self.errors >= MAX_ERRORS && diagnostic.is_error() {
            return;
        }
        let place = diagnostic.span().unwrap_or(self.at);
        if diagnostic.is_error() && !self.reported.insert((place, diagnostic.message.clone())) {
            return;
        }
        self.errors += usize::from(diagnostic.is_error());
        self.diagnostics.push(diagnostic);
    }

    /// An error of the value being computed.
    pub(crate) fn fault(&mut self, message: &str, label: &str) {
        self.fault_with(message, label, None);
    }

    pub(crate) fn fault_with(&mut self, message: &str, label: &str, note: Option<String>) {
        let mut diagnostic = Diagnostic::error(message, self.at, label);
        diagnostic.notes.extend(note);
        self.report(diagnostic);
    }

    fn stop(&mut self, message: &str, label: &str) {
        if !self.stopped {
            self.stopped = true;
            self.report(Diagnostic::error(message, self.at, label));
        }
    }

    pub(crate) fn too_deep(&mut self) {
        self.stop(
            "the recursion does not end",
            "class values, fields or operators nest too deep here",
        );
    }

    pub(crate) fn out_of_memory(&mut self) {
        self.stop("the program needs too much memory", "while evaluating this");
    }

    /// Accounts for work; a program that works too long is stopped.
    #[inline]
    pub(crate) fn spend(&mut self, amount: u64) {
        self.fuel = self.fuel.saturating_sub(amount);
        if self.fuel == 0 || self.w.values.overflow {
            self.spent();
        }
    }

    #[cold]
    fn spent(&mut self) {
        if self.fuel == 0 {
            self.stop("the evaluation takes too long", "stopped here");
        } else if self.w.values.count() > MAX_VALUES {
            self.out_of_memory();
        } else if self.w.values.overflow {
            self.w.values.overflow = false;
            self.stop("the value is too large", "nested too deep, or too many elements");
        }
    }
}
