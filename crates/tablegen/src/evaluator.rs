//! The state of a run: definitions, scopes, the current position, and the remaining work limit.

use std::rc::Rc;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::args::Change;
use crate::diagnostic::Diagnostic;
use crate::resolver::Cache;
use crate::source::{FileId, Span};
use crate::strings::{Strings, Symbol};
use crate::value::{ClassId, MAX_VALUES, RecordId, TypeId, ValueId};
use crate::world::{Assertion, ParamData, Proto, World};

/// The maximum number of reported errors of evaluation.
const MAX_ERRORS: usize = 200;

/// The recorded contents of loops and multiclasses.
#[derive(Clone, Debug)]
pub(crate) enum Entry {
    Record(Box<Proto>),
    Assert(Assertion),
    Dump(ValueId, Span),
    Loop(Box<Loop>),
}

/// A loop over a list that is not known yet. `if` is a loop without a variable over a list of
/// length 0 or 1.
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

/// A scope of names.
#[derive(Debug)]
pub(crate) enum Scope {
    /// The `defvar`s of a block.
    Block(FxHashMap<Symbol, ValueId>),
    /// A loop variable, or a variable of an operator.
    Variable(Symbol, ValueId),
    /// The current record or class.
    Record,
    Multiclass(usize),
}

/// An open `defset`.
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
    /// The multiclass that is being defined.
    pub(crate) multiclass: Option<usize>,
    /// The record or class that is being built, and the id of the class.
    pub(crate) current: Option<Box<Proto>>,
    pub(crate) current_class: Option<ClassId>,
    pub(crate) sets: Vec<OpenSet>,
    pub(crate) instances: FxHashMap<ValueId, ValueId>,
    pub(crate) anonymous: u32,
    /// The span of each class value: its first occurrence.
    pub(crate) call_places: FxHashMap<ValueId, Span>,
    /// The argument that each delayed conversion to the type of a template parameter converts.
    pub(crate) cast_places: FxHashMap<ValueId, Span>,
    /// The records that lack fields because a parent is unknown.
    pub(crate) lacking: FxHashSet<RecordId>,
    /// The current span, for faults in values.
    pub(crate) at: Span,
    pub(crate) depth: u32,
    pub(crate) instance_depth: u32,
    pub(crate) fuel: u64,
    /// Whether a limit was exceeded. Evaluation ends with the values it has.
    pub(crate) stopped: bool,
    pub(crate) name_symbol: Symbol,
    pub(crate) cache: Cache,
    /// Whether the history of fields is recorded.
    pub(crate) tracing: bool,
    /// A reusable buffer for the fields of the record that is being finished.
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
            cast_places: FxHashMap::default(),
            lacking: FxHashSet::default(),
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

    /// Adds a message, unless the same message exists already for the span.
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

    /// Reports an error in the current value.
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
            "infinite recursion",
            "class values, fields or operators are nested too deeply here",
        );
    }

    pub(crate) fn out_of_memory(&mut self) {
        self.stop("the program needs too much memory", "while evaluating this");
    }

    /// Accounts for work. Stops a program that exceeds the limit.
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
            self.stop("the value is too large", "nested too deeply, or too many elements");
        }
    }
}
