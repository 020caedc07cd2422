//! Expansion: loops and multiclasses store their contents as entries with variables. A `defm` or
//! the end of the outermost loop instantiates them.

use std::rc::Rc;
use std::sync::Arc;

use crate::args::{Args, Owner};
use crate::ast::{ClassRef, Expr, Ident, Param, Stmt};
use crate::diagnostic::{Diagnostic, closest};
use crate::evaluator::{Entry, Evaluator, Loop, MulticlassData, Scope};
use crate::resolver::Resolver;
use crate::shape::Link;
use crate::source::Span;
use crate::strings::Symbol;
use crate::value::{ClassId, Node, TypeId, ValueId};
use crate::world::Assertion;

impl Evaluator {
    /// Records an entry, or instantiates it if no loop or multiclass encloses it.
    pub(crate) fn add_entry(&mut self, entry: Entry) {
        if let Some(open) = self.loops.last_mut() {
            return open.entries.push(entry);
        }
        let Some(at) = self.multiclass else {
            return self.make(entry);
        };
        if let Entry::Loop(one) = entry {
            let mut out = Vec::new();
            self.expand_loop(&one, &mut Vec::new(), false, &mut Some(&mut out), None);
            Rc::make_mut(&mut self.multiclasses[at].entries).extend(out);
        } else {
            Rc::make_mut(&mut self.multiclasses[at].entries).push(entry);
        }
    }

    pub(crate) fn make(&mut self, entry: Entry) {
        match entry {
            Entry::Record(proto) => {
                self.finish(*proto, true);
            }
            Entry::Assert(mut assertion) => {
                let mut r = Resolver::last(true);
                assertion.condition = self.resolve(assertion.condition, &mut r);
                assertion.message = self.resolve(assertion.message, &mut r);
                self.check_assertion(&assertion, None);
            }
            Entry::Dump(value, span) => {
                let mut r = Resolver::last(true);
                let value = self.resolve(value, &mut r);
                self.dump(value, span);
            }
            Entry::Loop(one) => {
                self.expand_loop(&one, &mut Vec::new(), true, &mut None, None);
            }
        }
    }

    /// Appends an entry to `out`, or instantiates it if `out` is `None`.
    pub(crate) fn emit(&mut self, entry: Entry, out: &mut Option<&mut Vec<Entry>>) {
        match out {
            Some(out) => out.push(entry),
            None => self.make(entry),
        }
    }

    /// Copies `entries` with variables substituted. If `out` is `None`, each entry is instantiated
    /// before the next one is copied.
    pub(crate) fn expand(
        &mut self,
        entries: &[Entry],
        substitutions: &mut Vec<(Symbol, ValueId)>,
        is_final: bool,
        out: &mut Option<&mut Vec<Entry>>,
        place: Option<Link>,
    ) {
        for entry in entries {
            if self.stopped {
                return;
            }
            if let Entry::Loop(one) = entry {
                let place = place.map(|link| Link { shown: false, ..link });
                self.expand_loop(one, substitutions, is_final, out, place);
                continue;
            }
            let mut r = Resolver::new();
            r.extend(substitutions.iter().copied());
            match entry {
                Entry::Record(proto) => {
                    let mut proto = proto.clone();
                    if let Some(place) = place {
                        proto.chain = self.w.chains.push(proto.chain, place);
                    }
                    let old = if self.tracing { proto.cells.clone() } else { Vec::new() };
                    self.resolve_proto(&mut proto, &mut r);
                    self.trace_changes(&mut proto, &old, place.map(|link| link.span));
                    self.spend(1 + proto.cells.len() as u64 / 8);
                    self.emit(Entry::Record(proto), out);
                }
                Entry::Assert(assertion) => {
                    let assertion = Assertion {
                        condition: self.resolve(assertion.condition, &mut r),
                        message: self.resolve(assertion.message, &mut r),
                        span: assertion.span,
                    };
                    self.emit(Entry::Assert(assertion), out);
                }
                Entry::Dump(value, span) => {
                    let value = self.resolve(*value, &mut r);
                    self.emit(Entry::Dump(value, *span), out);
                }
                Entry::Loop(_) => {}
            }
        }
    }

    pub(crate) fn expand_loop(
        &mut self,
        one: &Loop,
        substitutions: &mut Vec<(Symbol, ValueId)>,
        is_final: bool,
        out: &mut Option<&mut Vec<Entry>>,
        place: Option<Link>,
    ) {
        let mut r = Resolver::last(is_final);
        r.extend(substitutions.iter().copied());
        let outer = std::mem::replace(&mut self.at, one.span);
        let list = self.resolve(one.list, &mut r);
        self.at = outer;
        let Node::List(kids) = self.w.values.node(list) else {
            if !is_final {
                let mut entries = Vec::new();
                self.expand(&one.entries, substitutions, false, &mut Some(&mut entries), place);
                let waiting = Loop {
                    var: one.var,
                    list,
                    span: one.span,
                    entries,
                };
                self.emit(Entry::Loop(Box::new(waiting)), out);
            } else if !self.stopped {
                let text = self.w.brief(list);
                self.report(Diagnostic::error(
                    format!("the loop runs over `{text}`, which is not a known list"),
                    one.span,
                    "cannot be computed here",
                ));
            }
            return;
        };
        let items = self.w.values.kids(kids).to_vec();
        for item in items {
            if self.stopped {
                return;
            }
            self.spend(1);
            if let Some(var) = one.var {
                substitutions.push((var, item));
            }
            self.expand(&one.entries, substitutions, is_final, out, place);
            if one.var.is_some() {
                substitutions.pop();
            }
        }
    }

    pub(crate) fn define_multiclass(&mut self, name: Ident, params: &[Param], parents: &[ClassRef], body: &[Stmt]) {
        if !self.at_top() {
            return self.report(Diagnostic::error(
                "a multiclass cannot be defined inside a loop, `if` or multiclass",
                name.span,
                "move it out",
            ));
        }
        if let Some(at) = self.multiclass_names.get(&name.name) {
            let earlier = self.multiclasses[*at].span;
            let text = self.w.text(name.name).to_owned();
            return self.report(
                Diagnostic::error(
                    format!("multiclass `{text}` is defined twice"),
                    name.span,
                    "defined again here",
                )
                .secondary(earlier, "first defined here"),
            );
        }
        let at = self.multiclasses.len();
        let name_var = format!("{}::NAME", self.w.text(name.name));
        let name_var = self.w.intern(&name_var);
        self.multiclasses.push(MulticlassData {
            name: name.name,
            name_var,
            params: Arc::default(),
            entries: Rc::default(),
            span: name.span,
        });
        self.multiclass = Some(at);
        self.scoped(Scope::Multiclass(at), |this| {
            this.params(name.name, "::", params, |this, param| {
                Arc::make_mut(&mut this.multiclasses[at].params).push(param);
            });
            for parent in parents {
                let own_name = this.w.values.var(name_var, TypeId::STR);
                let entries = this.use_multiclass(parent, Owner::ParentMulticlass, own_name, false, None);
                if let Some(entries) = entries {
                    Rc::make_mut(&mut this.multiclasses[at].entries).extend(entries);
                }
            }
            this.block(body);
        });
        self.multiclass = None;
        self.multiclass_names.insert(name.name, at);
    }

    pub(crate) fn find_multiclass(&mut self, name: Ident) -> Option<usize> {
        if let Some(at) = self.multiclass_names.get(&name.name) {
            return Some(*at);
        }
        let text = self.w.text(name.name).to_owned();
        let names = self.multiclass_names.keys().map(|name| self.w.text(*name));
        let near = closest(&text, names).map(str::to_owned);
        let mut diagnostic = Diagnostic::error(
            format!("unknown multiclass `{text}`"),
            name.span,
            "no multiclass of this name so far",
        );
        if let Some(near) = near {
            diagnostic = diagnostic.note(format!("did you mean `{near}`?"));
        }
        self.report(diagnostic);
        None
    }

    /// Returns the entries of a multiclass with its arguments and `NAME` substituted.
    pub(crate) fn use_multiclass(
        &mut self,
        parent: &ClassRef,
        owner: impl FnOnce(usize) -> Owner,
        own_name: ValueId,
        is_final: bool,
        place: Option<Span>,
    ) -> Option<Vec<Entry>> {
        let at = self.find_multiclass(parent.name)?;
        let params = Arc::clone(&self.multiclasses[at].params);
        let args = self.arg_values(&parent.args, &params)?;
        let bound = self.bind_args(
            owner(at),
            &params,
            &args,
            parent.span,
            Some((self.multiclasses[at].name_var, own_name)),
            &mut Resolver::new(),
        )?;
        let mut substitutions: Vec<(Symbol, ValueId)> =
            bound.into_iter().map(|(name, value, _)| (name, value)).collect();
        substitutions.push((self.multiclasses[at].name_var, own_name));
        let entries = Rc::clone(&self.multiclasses[at].entries);
        let mut out = Vec::new();
        let link = place.map(|span| Link { span, shown: true });
        self.expand(&entries, &mut substitutions, is_final, &mut Some(&mut out), link);
        Some(out)
    }

    pub(crate) fn defm(&mut self, name: Option<&Expr>, parents: &[ClassRef]) {
        let own_name = match self.object_name(name) {
            Some(value) if value != ValueId::UNSET => value,
            None if name.is_some() => return,
            // `?` is no name either.
            _ => {
                let symbol = self.anonymous_name();
                let value = self.w.values.str(symbol);
                match self.multiclass {
                    Some(at) => {
                        let prefix = self.multiclasses[at].name_var;
                        let prefix = self.w.values.var(prefix, TypeId::STR);
                        self.fold_paste(prefix, value, TypeId::STR)
                    }
                    None => value,
                }
            }
        };
        let is_final = self.at_top();
        let mut entries = Vec::new();
        let mut classes = Vec::new();
        for parent in parents {
            let is_multiclass = self.multiclass_names.contains_key(&parent.name.name);
            let is_class = self.w.class_names.contains_key(&parent.name.name);
            if is_class && (!is_multiclass || !classes.is_empty()) {
                let Some(class) = self.find_class(parent.name) else {
                    continue;
                };
                if let Some(args) = self.args(&parent.args, Some(class)) {
                    classes.push((class, args, parent.span));
                }
                continue;
            }
            if let Some(more) = self.use_multiclass(parent, Owner::Multiclass, own_name, is_final, Some(parent.span)) {
                entries.extend(more);
            }
        }
        for entry in &mut entries {
            self.finish_defm_entry(entry, &classes);
        }
        for entry in entries {
            if self.stopped {
                return;
            }
            self.add_entry(entry);
        }
    }

    /// Applies the ordinary classes of a `defm`, and the `let`s around it, to each of its records.
    pub(crate) fn finish_defm_entry(&mut self, entry: &mut Entry, classes: &[(ClassId, Args, Span)]) {
        match entry {
            Entry::Record(proto) => {
                for (class, args, span) in classes {
                    let own_name = self.own_name(proto);
                    self.inherit(proto, *class, Some(args), *span, own_name);
                }
                self.apply_lets(proto);
            }
            Entry::Loop(one) => {
                for entry in &mut one.entries {
                    self.finish_defm_entry(entry, classes);
                }
            }
            Entry::Assert(_) | Entry::Dump(..) => {}
        }
    }
}
