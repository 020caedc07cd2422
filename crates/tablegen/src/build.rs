//! The record builder: inheritance, field values, the final resolution and its checks.

use std::sync::Arc;

use smallvec::{SmallVec, smallvec};

use crate::args::{ArgValue, Args, Bound, Change, Owner};
use crate::ast::LetMode;
use crate::diagnostic::{Diagnostic, Severity, closest};
use crate::evaluator::Evaluator;
use crate::resolver::Resolver;
use crate::source::Span;
use crate::step::StepKind;
use crate::strings::Symbol;
use crate::token::Bang;
use crate::value::{ClassId, Node, RecordId, Type, TypeId, ValueId};
use crate::world::{Assertion, Cell, FieldData, Fields, ParamData, Proto, RecordData};

/// The maximum nesting depth of class values; deeper recursion is considered infinite.
const MAX_INSTANCES: u32 = 1000;

impl Evaluator {
    /// Adds a field, or sets the field with the same name.
    pub(crate) fn add_field(&mut self, proto: &mut Proto, mut new: FieldData) {
        match proto.field_index(new.name) {
            None => {
                new.value = self.w.spread_bits(new.value, new.ty);
                proto.push(new);
            }
            Some(at) => self.set_again(proto, at, new),
        }
    }

    /// Sets the value of the field at `at`, which is declared or inherited again.
    fn set_again(&mut self, proto: &mut Proto, at: usize, new: FieldData) {
        let old = proto.field_at(at);
        // Only the value has to fit. `?` always fits.
        let Some(value) = self.w.convert(new.value, old.ty) else {
            let name = self.w.text(new.name).to_owned();
            let (was, is) = (self.w.type_text(old.ty), self.w.type_text(new.ty));
            self.report(
                Diagnostic::error(
                    format!("field `{name}` of type `{is}` clashes with an earlier one of type `{was}`"),
                    self.w.span(new.decl),
                    format!("`{is}` here"),
                )
                .secondary(self.w.span(old.decl), format!("`{was}` here")),
            );
            return;
        };
        proto.cells[at] = Cell {
            value: self.w.spread_bits(value, old.ty),
            span: self.w.places.add_again(new.span, old.span),
        };
    }

    /// Sets a field or some of its bits.
    pub(crate) fn set_field(&mut self, proto: &mut Proto, change: &Change, own_value: bool) {
        let Some(at) = proto.field_index(change.name) else {
            // The field may belong to a class that could not be parsed.
            if proto.faulty {
                return;
            }
            let name = self.w.text(change.name).to_owned();
            let names = proto.layout.fields.iter().map(|field| self.w.text(field.name));
            let near = closest(&name, names).map(str::to_owned);
            let mut diagnostic = Diagnostic::error(
                format!("no field `{name}` to set"),
                change.name_span,
                "not a field of this record",
            );
            if change.name_span.file != proto.span.file || change.name_span.start != proto.span.start {
                diagnostic = diagnostic.secondary(proto.span, "in this record");
            }
            if let Some(near) = near {
                diagnostic = diagnostic.note(format!("did you mean `{near}`?"));
            }
            self.report(diagnostic);
            return;
        };
        let field = proto.field_at(at);
        if let Node::Var(name) = self.w.values.node(change.value)
            && name == change.name
            && own_value
            && change.bits.is_none()
        {
            let text = self.w.text(name).to_owned();
            self.report(Diagnostic::error(
                format!("field `{text}` is set to itself"),
                change.span,
                "refers to the same field",
            ));
            return;
        }
        let value = match &change.bits {
            Some(bits) => self.with_bits(&field, change, bits),
            None => {
                let value = match self.w.convert(change.value, field.ty) {
                    Some(value) => value,
                    None => return self.type_mismatch(&field, change.value, change.span),
                };
                match change.mode {
                    LetMode::Replace => Some(value),
                    mode => self.concatenated(&field, value, mode, change.span),
                }
            }
        };
        if let Some(value) = value {
            let value = self.w.spread_bits(value, field.ty);
            proto.cells[at] = Cell {
                value,
                span: change.place,
            };
            let kind = match own_value {
                true if change.declares => StepKind::Declared,
                true => StepKind::Let,
                false => StepKind::EnclosingLet,
            };
            self.trace(proto, change.name, kind, change.span, value);
        }
    }

    /// Returns the value of `field` after replacing some of its bits.
    fn with_bits(&mut self, field: &FieldData, change: &Change, bits: &[u32]) -> Option<ValueId> {
        let name = self.w.text(field.name).to_owned();
        let Node::Bits(kids) = self.w.values.node(field.value) else {
            let ty = self.w.type_text(field.ty);
            self.report(
                Diagnostic::error(
                    format!("field `{name}` of type `{ty}` has no bits to set"),
                    change.name_span,
                    format!("this is a `{ty}`"),
                )
                .secondary(self.w.span(field.decl), "declared here"),
            );
            return None;
        };
        let mut new = self.w.values.kids(kids).to_vec();
        let ty = self.w.values.ty(Type::Bits(bits.len() as u32));
        let Some(value) = self.w.convert(change.value, ty) else {
            let range = FieldData {
                ty,
                decl: self.w.places.add(change.name_span),
                ..*field
            };
            self.type_mismatch(&range, change.value, change.span);
            return None;
        };
        let mut seen = rustc_hash::FxHashSet::default();
        for (at, index) in bits.iter().rev().enumerate() {
            let Some(slot) = new.get_mut(*index as usize) else {
                let width = new.len();
                self.report(
                    Diagnostic::error(
                        format!("bit {index} of `{name}` does not exist"),
                        change.name_span,
                        format!("has {width} bits"),
                    )
                    .secondary(self.w.span(field.decl), "declared here"),
                );
                return None;
            };
            if !seen.insert(*index) {
                self.report(Diagnostic::error(
                    format!("bit {index} of `{name}` is set twice"),
                    change.name_span,
                    "the bit occurs twice in this range",
                ));
                return None;
            }
            *slot = self.w.bit_of(value, at as u32);
        }
        Some(self.w.values.bits(&new))
    }

    fn concatenated(&mut self, field: &FieldData, value: ValueId, mode: LetMode, span: Span) -> Option<ValueId> {
        let op = match self.w.values.get_type(field.ty) {
            Type::List(_) => Bang::ListConcat,
            Type::Str => Bang::StrConcat,
            Type::Dag => Bang::Con,
            _ => {
                let ty = self.w.type_text(field.ty);
                self.report(Diagnostic::error(
                    format!("a value of type `{ty}` cannot be extended"),
                    span,
                    "`append` and `prepend` work on lists, strings and dags",
                ));
                return None;
            }
        };
        if field.value == ValueId::UNSET {
            return Some(value);
        }
        let args = match mode {
            LetMode::Prepend => [value, field.value],
            _ => [field.value, value],
        };
        Some(self.fold(op, &args, field.ty, &Resolver::new()))
    }

    /// Assigns arguments and defaults to parameters, and adds them and the name to `r`, which is
    /// empty. Returns `None` after a fault.
    pub(crate) fn bind_args(
        &mut self,
        what: Owner,
        params: &[ParamData],
        args: &[ArgValue],
        span: Span,
        own_name: Option<(Symbol, ValueId)>,
        r: &mut Resolver,
    ) -> Option<Bound> {
        let mut slots: SmallVec<[Option<(ValueId, Span)>; 8]> = smallvec![None; params.len()];
        for (at, arg) in args.iter().enumerate() {
            let at = match arg.name.some() {
                None => at,
                Some(name) => match params.iter().position(|param| param.name == name) {
                    Some(at) => at,
                    None => {
                        let text = self.w.text(name).to_owned();
                        let names = params.iter().map(|param| self.w.text(param.name));
                        let near = closest(&text, names).map(str::to_owned);
                        let what = self.owner_text(what);
                        let mut diagnostic = Diagnostic::error(
                            format!("{what} has no template argument `{text}`"),
                            arg.span,
                            "no such argument",
                        );
                        if let Some(near) = near {
                            diagnostic = diagnostic.note(format!("did you mean `{near}`?"));
                        }
                        self.report(diagnostic);
                        return None;
                    }
                },
            };
            if at >= params.len() {
                let what = self.owner_text(what);
                self.report(Diagnostic::error(
                    format!("too many template arguments for {what}: it takes {}", params.len()),
                    arg.span,
                    "one too many",
                ));
                return None;
            }
            let param = params[at];
            let converted = match what {
                Owner::ParentMulticlass(_) => Some(arg.value),
                Owner::Class(_) | Owner::Multiclass(_) => self.w.convert(arg.value, param.ty),
            };
            let Some(value) = converted else {
                let name = self.w.text(param.name).to_owned();
                let (want, have) = (
                    self.w.type_text(param.ty),
                    self.w.type_text(self.w.values.type_of(arg.value)),
                );
                let text = self.w.brief(arg.value);
                let what = self.owner_text(what);
                self.report(
                    Diagnostic::error(
                        format!("template argument `{name}` of {what} is a `{want}`, not `{text}` of type `{have}`"),
                        arg.span,
                        format!("expected a `{want}`"),
                    )
                    .secondary(param.span, "declared here"),
                );
                return None;
            };
            if slots[at].is_some() {
                let name = self.w.text(param.name).to_owned();
                self.report(Diagnostic::error(
                    format!("template argument `{name}` is given twice"),
                    arg.span,
                    "given again",
                ));
                return None;
            }
            if value != arg.value && matches!(self.w.values.node(value), Node::Op(Bang::Cast, _)) {
                self.cast_places.insert(value, arg.span);
            }
            slots[at] = Some((value, arg.span));
        }
        let mut bound = Bound::new();
        r.extend(own_name);
        for (param, slot) in params.iter().zip(slots) {
            let (value, place) = match slot {
                Some(given) => given,
                None => {
                    let value = self.resolve(param.default, r);
                    if self.is_unset(value) {
                        let name = self.w.text(param.name).to_owned();
                        let what = self.owner_text(what);
                        self.report(
                            Diagnostic::error(
                                format!("no value for template argument `{name}` of {what}"),
                                span,
                                format!("`{name}` is missing"),
                            )
                            .secondary(param.span, "declared without a default here"),
                        );
                        return None;
                    }
                    (self.w.convert(value, param.ty).unwrap_or(value), param.span)
                }
            };
            r.set(param.qualified, value);
            bound.push((param.qualified, value, place));
        }
        Some(bound)
    }

    /// Describes a class or multiclass for messages.
    fn owner_text(&self, owner: Owner) -> String {
        match owner {
            Owner::Class(class) => format!("class `{}`", self.w.text(self.w.class(class).name)),
            Owner::Multiclass(at) | Owner::ParentMulticlass(at) => {
                format!("multiclass `{}`", self.w.text(self.multiclasses[at].name))
            }
        }
    }

    /// Adds `class` as a parent of `proto`. `args` is `None` if the arguments have errors.
    pub(crate) fn inherit(
        &mut self,
        proto: &mut Proto,
        class: ClassId,
        args: Option<&[ArgValue]>,
        span: Span,
        own_name: ValueId,
    ) -> bool {
        let parents = self.w.class(class).proto.supers;
        let supers = match self.w.lists.inherit(proto.supers, class, parents) {
            Ok(supers) => supers,
            Err(twice) => {
                let twice = self.w.text(self.w.class(twice).name).to_owned();
                self.report(Diagnostic::error(
                    format!("class `{twice}` is inherited twice"),
                    span,
                    "inherited again here",
                ));
                return false;
            }
        };
        let params = Arc::clone(&self.w.class(class).params);
        let name_var = self.w.class(class).name_var;
        let mut r = Resolver::new();
        let own = Some((name_var, own_name));
        let bound = args.and_then(|args| self.bind_args(Owner::Class(class), &params, args, span, own, &mut r));
        // The class still becomes a parent, so that its absence causes no follow-up errors.
        if bound.is_none() {
            proto.faulty = true;
            r = Resolver::new();
            r.extend(own);
        }
        self.inherit_fields(proto, class, bound.as_deref().unwrap_or_default(), &mut r);
        self.trace_inherited(proto, class, span);
        proto.supers = supers;
        proto.direct = self.w.lists.push(proto.direct, class);
        bound.is_some()
    }

    fn inherit_fields(
        &mut self,
        proto: &mut Proto,
        class: ClassId,
        bound: &[(Symbol, ValueId, Span)],
        r: &mut Resolver,
    ) {
        let layout = Arc::clone(&self.w.class(class).proto.layout);
        if proto.cells.is_empty() {
            proto.layout = layout;
            let parent = &self.w.classes[class.0 as usize].proto.cells;
            proto.cells.reserve_exact(parent.len());
            proto.cells.extend_from_slice(parent);
            for at in 0..proto.cells.len() {
                if self.is_touched(proto.cells[at].value, r) {
                    let field = self.inherited(proto.field_at(at), bound, r);
                    proto.cells[at] = Cell {
                        value: field.value,
                        span: field.span,
                    };
                }
            }
        } else if !layout.fields.is_empty() {
            let joined = self.w.joins.join(&proto.layout, &layout);
            let old = proto.cells.len();
            proto.layout = joined.layout;
            for (at, position) in joined.positions.iter().enumerate() {
                let position = *position as usize;
                let mut field = self.w.class(class).proto.field_at(at);
                if self.is_touched(field.value, r) {
                    field = self.inherited(field, bound, r);
                }
                if position < old {
                    self.set_again(proto, position, field);
                } else {
                    proto.cells.push(Cell {
                        value: field.value,
                        span: field.span,
                    });
                }
            }
        }
        let parent = &self.w.class(class).proto;
        proto.faulty |= parent.faulty;
        proto.lacks_parent |= parent.lacks_parent;
        if !parent.asserts.is_empty() || !parent.dumps.is_empty() {
            let (asserts, dumps) = (parent.asserts.clone(), parent.dumps.clone());
            for assertion in asserts {
                let condition = self.resolve(assertion.condition, r);
                let message = self.resolve(assertion.message, r);
                proto.asserts.push(Assertion {
                    condition,
                    message,
                    span: assertion.span,
                });
            }
            for (value, span) in dumps {
                let value = self.resolve(value, r);
                proto.dumps.push((value, span));
            }
        }
    }

    /// Returns a field of a class after substituting the arguments of the derived record or class.
    fn inherited(&mut self, mut field: FieldData, bound: &[(Symbol, ValueId, Span)], r: &mut Resolver) -> FieldData {
        // If the value is only an argument, its span is that of the argument.
        let mut span = self.w.span(field.span);
        if let Node::Var(name) = self.w.values.node(field.value)
            && let Some((_, _, place)) = bound.iter().find(|one| one.0 == name)
        {
            span = *place;
            field.span = self.w.places.add_passed(span, field.span);
        }
        let outer = std::mem::replace(&mut self.at, span);
        let value = self.resolve(field.value, r);
        self.at = outer;
        field.value = match self.w.convert(value, field.ty) {
            Some(value) => self.w.spread_bits(value, field.ty),
            None => {
                self.type_mismatch(&field, value, span);
                ValueId::UNSET
            }
        };
        field
    }

    /// Returns a new name for an anonymous record.
    pub(crate) fn anonymous_name(&mut self) -> Symbol {
        let name = format!("anonymous_{}", self.anonymous);
        self.anonymous += 1;
        self.w.intern(&name)
    }

    /// Returns the record of a class value. If its arguments contain variables, returns the value
    /// unchanged.
    pub(crate) fn try_instantiate(&mut self, call: ValueId) -> ValueId {
        if self.w.values.has_var(call) || self.stopped {
            return call;
        }
        let Node::Call(class, kids) = self.w.values.node(call) else {
            return call;
        };
        if let Some(record) = self.instances.get(&call) {
            return *record;
        }
        if self.instance_depth >= MAX_INSTANCES {
            self.too_deep();
            return ValueId::UNSET;
        }
        let span = self.call_places.get(&call).copied().unwrap_or(self.at);
        let args: Args = self
            .w
            .values
            .pairs(kids)
            .map(|(value, name)| ArgValue { name, value, span })
            .collect();
        let name = self.anonymous_name();
        let name = self.w.values.str(name);
        let mut proto = self.w.new_proto(name, span);
        proto.anonymous = true;
        self.instance_depth += 1;
        self.depth += 4;
        // A class value has no name to substitute for `NAME` of the class, so `NAME` stays a
        // variable.
        let own_name = self.w.values.var(self.w.class(class).name_var, TypeId::STR);
        self.inherit(&mut proto, class, Some(&args), span, own_name);
        let record = self.finish(proto, false);
        self.depth -= 4;
        self.instance_depth -= 1;
        let value = record.unwrap_or(ValueId::UNSET);
        self.instances.insert(call, value);
        value
    }

    /// Finishes a record: performs its final resolution, checks it, and adds it to the records.
    pub(crate) fn finish(&mut self, proto: Proto, named: bool) -> Option<ValueId> {
        let outer = std::mem::replace(&mut self.at, proto.span);
        let value = self.finish_at(proto, named);
        self.at = outer;
        value
    }

    fn finish_at(&mut self, mut proto: Proto, named: bool) -> Option<ValueId> {
        let mut r = Resolver::of_record(&proto, true, std::mem::take(&mut self.spare));
        proto.name = self.resolve(proto.name, &mut r);
        let Some(mut name) = self.w.as_str(proto.name) else {
            self.unknown_record_name(proto.name, proto.span);
            return None;
        };
        if let Some(earlier) = self.w.record_names.get(&name) {
            if !proto.anonymous {
                self.defined_twice(&proto, name, *earlier);
                return None;
            }
            name = self.anonymous_name();
            proto.name = self.w.values.str(name);
        }
        let ty = self.w.list_type(proto.supers);
        let id = RecordId(self.w.records.len() as u32);
        r.self_name = Some((name, id));
        let name_value = self.w.values.str(name);
        r.set(self.name_symbol, name_value);
        let mut asserts = std::mem::take(&mut proto.asserts);
        let mut dumps = std::mem::take(&mut proto.dumps);
        let cells = proto.cells.iter().enumerate();
        let open: SmallVec<[u32; 64]> = cells
            .filter(|(_, cell)| cell.value.is_open())
            .map(|(at, _)| at as u32)
            .collect();
        // The record is added before its resolution, because it may refer to itself.
        let (span, start, faulty) = (proto.span, self.w.cells.len(), proto.faulty);
        if proto.lacks_parent {
            self.lacking.insert(id);
        }
        self.w.cells.append(&mut proto.cells);
        if self.tracing {
            self.w.histories.insert(id, proto.history);
        }
        self.w.records.push(RecordData {
            name,
            ty,
            span,
            layout: proto.layout,
            start,
            supers: proto.supers,
            direct: proto.direct,
            chain: proto.chain,
            anonymous: proto.anonymous,
            complete: false,
        });
        for at in open {
            let at = at as usize;
            let field = self.own(id).at(at);
            let value = self.resolve_field(&field, at, &mut r);
            self.trace_final(id, &field, value);
            self.w.cells[start + at].value = value;
        }
        for assertion in &mut asserts {
            assertion.condition = self.resolve(assertion.condition, &mut r);
            assertion.message = self.resolve(assertion.message, &mut r);
        }
        for dump in &mut dumps {
            dump.0 = self.resolve(dump.0, &mut r);
        }
        // A class value is a temporary: an unresolved field is an error only if it is used.
        if named && !faulty {
            self.check_concrete(id, name);
        }
        let value = self.w.values.def(id, ty);
        self.w.records[id.0 as usize].complete = true;
        self.w.record_names.insert(name, id);
        self.run_checks(&asserts, &dumps, span);
        if named {
            self.add_to_sets(value, ty, span);
        }
        self.w.order.push(id);
        self.spare = r.fields;
        Some(value)
    }

    fn own(&self, id: RecordId) -> Fields<'_> {
        self.w.fields(self.w.record(id))
    }

    fn defined_twice(&mut self, proto: &Proto, name: Symbol, earlier: RecordId) {
        let earlier = self.w.record(earlier).span;
        let text = self.w.text(name).to_owned();
        let chain = self.w.chains.spans(proto.chain);
        let mut diagnostic = Diagnostic::error(
            format!("record `{text}` is defined twice"),
            chain.last().copied().unwrap_or(proto.span),
            "defined again here",
        )
        .secondary(earlier, "first defined here");
        if !chain.is_empty() {
            diagnostic = diagnostic.secondary(proto.span, "by this definition");
        }
        self.report(diagnostic);
    }

    fn run_checks(&mut self, asserts: &[Assertion], dumps: &[(ValueId, Span)], record: Span) {
        for assertion in asserts {
            self.check_assertion(assertion, Some(record));
        }
        for (value, span) in dumps {
            self.dump(*value, *span);
        }
    }

    /// Checks an assertion and reports its failure. `record` is the span of the record that
    /// inherited it.
    pub(crate) fn check_assertion(&mut self, assertion: &Assertion, record: Option<Span>) {
        let mut diagnostic = match self.w.as_int(assertion.condition) {
            Some(0) => {
                let message = self.w.unquoted(assertion.message);
                Diagnostic::error(format!("assertion failed: {message}"), assertion.span, "does not hold")
            }
            Some(_) => return,
            None if self.stopped => return,
            None => {
                let text = self.w.brief(assertion.condition);
                Diagnostic::error(
                    format!("the condition of the assertion is not known: `{text}`"),
                    assertion.span,
                    "neither true nor false",
                )
            }
        };
        if let Some(record) = record {
            diagnostic = diagnostic.secondary(record, "for this record");
        }
        self.report(diagnostic);
    }

    /// Prints a `dump` statement as a note.
    pub(crate) fn dump(&mut self, value: ValueId, span: Span) {
        let text = self.w.unquoted(value);
        self.report(Diagnostic::new(Severity::Note, text).primary(span, "dumped here"));
    }

    fn add_to_sets(&mut self, value: ValueId, ty: TypeId, record: Span) {
        for at in 0..self.sets.len() {
            let element = self.sets[at].element;
            if self.w.type_is(ty, element) {
                self.sets[at].items.push(value);
                continue;
            }
            let (name, want) = (self.w.text(self.sets[at].name).to_owned(), self.w.type_text(element));
            let place = self.sets[at].span;
            self.report(
                Diagnostic::error(
                    format!("record in `defset {name}` does not derive from `{want}`"),
                    record,
                    format!("not a `{want}`"),
                )
                .secondary(place, "the set is opened here"),
            );
        }
    }

    /// Checks that every field is fully resolved.
    fn check_concrete(&mut self, id: RecordId, name: Symbol) {
        if self.stopped {
            return;
        }
        let data = self.w.record(id);
        let cells = &self.w.cells[data.start..];
        let decls = data.layout.fields.iter().zip(cells).enumerate();
        let open = decls.filter(|(_, (decl, cell))| cell.value.is_open() && !decl.nonconcrete);
        let open: SmallVec<[usize; 8]> = open.map(|(at, _)| at).collect();
        for at in open {
            let own = self.own(id);
            let field = own.at(at);
            if let Node::Bits(kids) = self.w.values.node(field.value) {
                let bits = self.w.values.kids(kids);
                let is_field =
                    |id: ValueId| matches!(self.w.values.node(id), Node::Var(name) if own.find(name).is_some());
                // A bit of a field, or a whole field of type `bit`, may remain.
                let fine = bits.iter().all(|bit| {
                    !self.w.values.is_open(*bit)
                        || is_field(*bit)
                        || matches!(self.w.values.node(*bit), Node::VarBit(base, _) if is_field(base))
                });
                if fine {
                    continue;
                }
            }
            let (field_name, record) = (self.w.text(field.name).to_owned(), self.w.text(name).to_owned());
            let text = self.w.brief(field.value);
            let message = format!("field `{field_name}` of `{record}` cannot be fully resolved: `{text}` remains");
            let record = self.w.record(id);
            let (stuck, place) = (self.stuck(field.value), self.w.span(field.span));
            let argument = self.cast_places.get(&stuck).copied();
            let mut diagnostic = Diagnostic::error(message, argument.unwrap_or(place), self.why_open(stuck));
            if argument.is_some_and(|argument| argument != place) {
                diagnostic = diagnostic.secondary(place, "the field gets its value here");
            }
            diagnostic = diagnostic.secondary(record.span, "in this record");
            for place in self.w.chains.spans(record.chain) {
                diagnostic = diagnostic.secondary(place, "instantiated here");
            }
            self.report(diagnostic);
        }
    }

    /// Returns the innermost unresolved part of a value.
    fn stuck(&self, id: ValueId) -> ValueId {
        let values = &self.w.values;
        let first = |kids: &[ValueId]| kids.iter().copied().find(|kid| values.is_open(*kid));
        let part = match values.node(id) {
            Node::Op(Bang::Cast, kids) => first(&values.kids(kids)[..1]),
            Node::Bits(kids) | Node::List(kids) | Node::Op(_, kids) => first(values.kids(kids)),
            Node::VarBit(base, _) | Node::Field(base, _) | Node::Index(base, _) => first(&[base]),
            _ => None,
        };
        part.map_or(id, |part| self.stuck(part))
    }

    /// Describes in a few words why a value without unresolved parts is unresolved itself.
    fn why_open(&self, id: ValueId) -> String {
        match self.w.values.node(id) {
            Node::Var(name) => format!("`{}` has no value", self.w.text(name)),
            Node::Op(Bang::Cast, kids) => format!(
                "`{}` does not fit into `{}`",
                self.w.brief(self.w.values.kids(kids)[0]),
                self.w.type_text(self.w.values.type_of(id))
            ),
            Node::List(_) | Node::Op(..) => "this cannot be computed".into(),
            _ => "this is not known".into(),
        }
    }
}
