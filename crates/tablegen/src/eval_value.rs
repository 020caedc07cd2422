//! Evaluates expressions: resolves names, determines types, and computes known values immediately.

use std::sync::Arc;

use smallvec::SmallVec;

use crate::args::Owner;
use crate::ast::{DagArg, Expr, ExprKind, Ident, Range, Suffix, TypeExpr};
use crate::diagnostic::{Diagnostic, closest};
use crate::eval::MAX_BITS;
use crate::evaluator::{Evaluator, Scope};
use crate::fold_list::MAX_LIST;
use crate::resolver::Resolver;
use crate::source::Span;
use crate::strings::Symbol;
use crate::token::Bang;
use crate::value::{ClassId, Ids, Node, Pairs, Type, TypeId, ValueId};

/// The treatment of an unknown name.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// An error.
    Value,
    /// Literal text: in the name of a record, and on the right of a paste.
    Name,
}

impl Evaluator {
    /// Evaluates `expr`. `expected` is the expected type, if it is known. Returns `None` after it
    /// has reported a fault.
    pub(crate) fn eval(&mut self, expr: &Expr, expected: Option<TypeId>) -> Option<ValueId> {
        self.eval_in(expr, expected, Mode::Value)
    }

    /// Evaluates the name of a `def` or `defm`. In a multiclass, a name or number of another type
    /// is an error only when it is used: until then it is wrapped in a list, which is never
    /// converted to a string.
    pub(crate) fn name_value(&mut self, expr: &Expr) -> Option<ValueId> {
        let value = self.eval_in(expr, Some(TypeId::STR), Mode::Name)?;
        if self.multiclass.is_some() && matches!(expr.kind, ExprKind::Ident(_) | ExprKind::Int(_)) {
            let ty = self.w.values.type_of(value);
            let name = self.w.convert(value, TypeId::STR);
            return Some(name.unwrap_or_else(|| self.w.values.list(&[value], ty)));
        }
        self.convert_or_report(value, TypeId::STR, expr.span)
    }

    /// Evaluates an expression whose value must have type `ty`.
    pub(crate) fn typed(&mut self, expr: &Expr, ty: TypeId) -> Option<ValueId> {
        let value = self.eval(expr, Some(ty))?;
        self.convert_or_report(value, ty, expr.span)
    }

    fn convert_or_report(&mut self, value: ValueId, ty: TypeId, span: Span) -> Option<ValueId> {
        let converted = self.w.convert(value, ty);
        if converted.is_none() {
            self.wrong_type(value, ty, span);
        }
        converted
    }

    fn wrong_type(&mut self, value: ValueId, ty: TypeId, span: Span) {
        let (want, have) = (self.w.type_text(ty), self.w.type_text(self.w.values.type_of(value)));
        let text = self.w.brief(value);
        self.report(Diagnostic::error(
            format!("expected a value of type `{want}`, found `{text}` of type `{have}`"),
            span,
            format!("this is a `{have}`"),
        ));
    }

    /// Reports that the name of a record is not a string when it has to be known.
    pub(crate) fn unknown_record_name(&mut self, name: ValueId, span: Span) {
        let mut left = name;
        while let Node::Paste(before, last) = self.w.values.node(left) {
            // See `name_value` about the list.
            if let Node::List(kids) = self.w.values.node(last)
                && let [value] = *self.w.values.kids(kids)
            {
                return self.wrong_type(value, TypeId::STR, span);
            }
            left = before;
        }
        let text = self.w.brief(name);
        self.report(Diagnostic::error(
            format!("the name of the record is not a known string: `{text}`"),
            span,
            "cannot be computed here",
        ));
    }

    fn eval_in(&mut self, expr: &Expr, expected: Option<TypeId>, mode: Mode) -> Option<ValueId> {
        let outer = std::mem::replace(&mut self.at, expr.span);
        // The expected type is that of the whole value, not of the operand of a suffix.
        let inner = if expr.suffixes.is_empty() { expected } else { None };
        let mut value = self.simple(expr, inner, mode);
        for suffix in &expr.suffixes {
            value = value.and_then(|value| self.suffix(value, suffix));
        }
        self.at = outer;
        self.spend(1);
        value
    }

    fn simple(&mut self, expr: &Expr, expected: Option<TypeId>, mode: Mode) -> Option<ValueId> {
        Some(match &expr.kind {
            ExprKind::Unset => ValueId::UNSET,
            ExprKind::Int(value) => self.w.values.int(*value),
            ExprKind::Binary { value, width } => self.w.values.bits_of(*value, u32::from(*width)),
            ExprKind::Str(text) => self.w.values.str(*text),
            ExprKind::Code(text) => self.w.values.code(*text),
            ExprKind::Ident(name) => {
                let ident = Ident {
                    name: *name,
                    span: expr.span,
                };
                return self.ident(ident, mode);
            }
            ExprKind::Braces(items) => return self.braces(items, expr.span),
            ExprKind::List { items, ty } => {
                return self.list(items, ty.as_deref(), expected, expr.span);
            }
            ExprKind::Dag(dag) => {
                let mut parts = Pairs::new();
                parts.push(self.dag_part(&dag.operator)?);
                for arg in &dag.args {
                    parts.push(self.dag_part(arg)?);
                }
                self.w.values.dag(&parts)
            }
            ExprKind::ClassCall { class, args } => {
                let id = self.find_class(*class)?;
                let args = self.args(args, Some(id))?;
                let params = Arc::clone(&self.w.class(id).params);
                // Check the arguments here, so that faults have the right span.
                self.bind_args(Owner::Class(id), &params, &args, expr.span, None, &mut Resolver::new())?;
                let mut pairs = Pairs::new();
                for (at, arg) in args.iter().enumerate() {
                    let param = match arg.name.some() {
                        None => params.get(at),
                        Some(name) => params.iter().find(|param| param.name == name),
                    };
                    let ty = param.map_or(TypeId::ANY, |param| param.ty);
                    pairs.push((self.w.convert(arg.value, ty)?, arg.name));
                }
                let ty = self.w.class(id).ty;
                let call = self.w.values.call(id, &pairs, ty);
                self.call_places.entry(call).or_insert(expr.span);
                self.try_instantiate(call)
            }
            ExprKind::Bang { op, op_span, ty, args } => return self.bang(*op, *op_span, ty.as_deref(), args, expected),
            ExprKind::Cond(cases) => return self.cond(cases, None, expected),
            ExprKind::Switch { key, cases, default } => {
                let key = self.eval(key, None)?;
                let mut tests = Vec::with_capacity(cases.len());
                for (case, value) in cases {
                    let case = self.eval(case, None)?;
                    let test = self.fold(Bang::Eq, &[key, case], TypeId::BIT, &Resolver::new());
                    tests.push((test, value));
                }
                return self.choice(&tests, Some(default), expected);
            }
            ExprKind::Paste(parts) => return self.pasted(parts, expected, mode),
            ExprKind::Error => return None,
        })
    }

    fn dag_part(&mut self, arg: &DagArg) -> Option<(ValueId, Symbol)> {
        let value = match &arg.value {
            Some(value) => self.eval(value, None)?,
            None => ValueId::UNSET,
        };
        Some((value, arg.name.unwrap_or(Symbol::NONE)))
    }

    /// Resolves a name, from the innermost scope outwards.
    fn ident(&mut self, name: Ident, mode: Mode) -> Option<ValueId> {
        if let Some(value) = self.local(name.name) {
            return Some(value);
        }
        if mode == Mode::Name {
            return Some(self.w.values.str(name.name));
        }
        if let Some(id) = self.w.record_names.get(&name.name) {
            let ty = self.w.record(*id).ty;
            return Some(self.w.values.def(*id, ty));
        }
        if let Some(value) = self.w.globals.get(&name.name) {
            return Some(*value);
        }
        // A record may refer to itself. The reference is resolved when the record is finished.
        if self.current_class.is_none()
            && let Some(proto) = &self.current
            && self.w.as_str(proto.name) == Some(name.name)
        {
            let (own, supers) = (proto.name, proto.supers);
            let ty = self.w.list_type(supers);
            return Some(self.w.values.op(Bang::Cast, &[own], ty));
        }
        // The name may be a field of an unknown parent, which is reported already.
        if self.current.as_ref().is_none_or(|proto| !proto.lacks_parent) {
            self.unknown_name(name);
        }
        None
    }

    fn unknown_name(&mut self, name: Ident) {
        let text = self.w.text(name.name).to_owned();
        let mut candidates: Vec<Symbol> = self.w.globals.keys().copied().collect();
        candidates.extend(self.w.record_names.keys());
        for scope in &self.scopes {
            match scope {
                Scope::Block(names) => candidates.extend(names.keys()),
                Scope::Variable(name, _) => candidates.push(*name),
                Scope::Record => {
                    if let Some(proto) = &self.current {
                        candidates.extend(proto.layout.fields.iter().map(|field| field.name));
                    }
                    if let Some(class) = self.current_class {
                        let params = &self.w.class(class).params;
                        candidates.extend(params.iter().map(|param| param.name));
                    }
                }
                Scope::Multiclass(at) => {
                    let (params, _) = self.multiclass_data(*at);
                    candidates.extend(params.iter().map(|param| param.name));
                }
            }
        }
        candidates.sort_unstable();
        let near = closest(&text, candidates.iter().map(|name| self.w.text(*name)));
        let mut diagnostic = Diagnostic::error(format!("unknown name `{text}`"), name.span, "not defined");
        if let Some(near) = near {
            diagnostic = diagnostic.note(format!("did you mean `{near}`?"));
        }
        if self.w.class_names.contains_key(&name.name) {
            diagnostic = diagnostic.note(format!("`{text}` is a class; `{text}<>` is a value of it"));
        }
        self.report(diagnostic);
    }

    fn local(&mut self, name: Symbol) -> Option<ValueId> {
        for at in (0..self.scopes.len()).rev() {
            match &self.scopes[at] {
                Scope::Block(names) => {
                    if let Some(value) = names.get(&name) {
                        return Some(*value);
                    }
                }
                Scope::Variable(variable, value) => {
                    if *variable == name {
                        return Some(*value);
                    }
                }
                Scope::Record => {
                    if let Some(value) = self.record_name(name) {
                        return Some(value);
                    }
                }
                Scope::Multiclass(index) => {
                    let (params, name_var) = self.multiclass_data(*index);
                    let found = params
                        .iter()
                        .find(|param| param.name == name)
                        .map(|param| (param.qualified, param.ty))
                        .or((name == self.name_symbol).then_some((name_var, TypeId::STR)));
                    if let Some((variable, ty)) = found {
                        return Some(self.w.values.var(variable, ty));
                    }
                }
            }
        }
        None
    }

    /// Resolves a name in the current record or class: a field, a template argument or `NAME`.
    fn record_name(&mut self, name: Symbol) -> Option<ValueId> {
        let proto = self.current.as_ref()?;
        if let Some(field) = proto.field(name) {
            let ty = field.ty;
            return Some(self.w.values.var(name, ty));
        }
        let Some(class) = self.current_class else {
            let own = proto.name;
            return (name == self.name_symbol && self.multiclass.is_none()).then_some(own);
        };
        let class = self.w.class(class);
        let param = class.params.iter().find(|param| param.name == name);
        if let Some((variable, ty)) = param.map(|param| (param.qualified, param.ty)) {
            return Some(self.w.values.var(variable, ty));
        }
        if name == self.name_symbol {
            let variable = class.name_var;
            return Some(self.w.values.var(variable, TypeId::STR));
        }
        None
    }

    /// Evaluates `{ a, b, c }`, the most significant element first. An element of n bits
    /// contributes n bits.
    fn braces(&mut self, items: &[Expr], span: Span) -> Option<ValueId> {
        let mut bits = Vec::new();
        for item in items.iter().rev() {
            let value = self.eval(item, None)?;
            let ty = self.w.values.type_of(value);
            // An unresolved value contributes all of its bits only if it is a variable.
            let spreads = matches!(self.w.values.node(value), Node::Bits(_) | Node::Var(_));
            if let Some(width) = self.width(ty).filter(|_| spreads) {
                bits.extend((0..width).map(|at| self.w.bit_of(value, at)));
            } else {
                match self.w.convert(value, TypeId::BIT) {
                    Some(bit) => bits.push(bit),
                    None => {
                        let text = self.w.brief(value);
                        self.report(Diagnostic::error(
                            format!("`{text}` is not a bit"),
                            item.span,
                            "expected 0, 1, `?` or a value of type `bit` or `bits`",
                        ));
                        return None;
                    }
                }
            }
            if bits.len() as i64 > MAX_BITS {
                self.report(Diagnostic::error(
                    "too many bits",
                    span,
                    format!("more than {MAX_BITS}"),
                ));
                return None;
            }
        }
        Some(self.w.values.bits(&bits))
    }

    fn list(&mut self, items: &[Expr], ty: Option<&TypeExpr>, expected: Option<TypeId>, span: Span) -> Option<ValueId> {
        let given = match ty {
            Some(ty) => Some(self.type_expr(ty)?),
            None => None,
        };
        let wanted = expected.and_then(|ty| self.w.values.element(ty));
        let element = given.or(wanted).filter(|ty| *ty != TypeId::ANY);
        let mut values: SmallVec<[(ValueId, Span); 8]> = SmallVec::new();
        let mut good = true;
        for item in items {
            match self.eval(item, element) {
                Some(value) => values.push((value, item.span)),
                None => good = false,
            }
        }
        if !good {
            return None;
        }
        // The elements determine the type, not the expected type. A conversion follows where the
        // list is used.
        let mut common = TypeId::ANY;
        for (value, place) in &values {
            let ty = self.w.values.type_of(*value);
            if let Some(element) = element
                && !self.w.type_converts(ty, element)
            {
                self.convert_or_report(*value, element, *place)?;
            }
            let Some(joined) = self.w.common_type(common, ty) else {
                let (a, b) = (self.w.type_text(common), self.w.type_text(ty));
                self.report(
                    Diagnostic::error(
                        format!("list elements of types `{a}` and `{b}` have no common type"),
                        *place,
                        format!("this is a `{b}`"),
                    )
                    .secondary(span, format!("the elements before are `{a}`")),
                );
                return None;
            };
            common = joined;
        }
        let element = match (given, element) {
            (Some(given), _) => given,
            (None, Some(wanted)) if common == TypeId::ANY => wanted,
            _ => common,
        };
        let items: Ids = values.into_iter().map(|one| one.0).collect();
        Some(self.w.values.list(&items, element))
    }

    fn suffix(&mut self, value: ValueId, suffix: &Suffix) -> Option<ValueId> {
        match suffix {
            Suffix::Bits(ranges, span) => {
                let ty = self.w.values.type_of(value);
                let limit = match self.w.values.get_type(ty) {
                    Type::Bits(width) => *width,
                    Type::Bit => 1,
                    Type::Int => 64,
                    _ => {
                        let have = self.w.type_text(ty);
                        self.report(Diagnostic::error(
                            format!("a value of type `{have}` has no bits"),
                            *span,
                            "bits are taken here",
                        ));
                        return None;
                    }
                };
                let indices = self.bit_list(ranges)?;
                if let Some(bad) = indices.iter().find(|index| **index >= limit) {
                    self.report(Diagnostic::error(
                        format!("bit {bad} does not exist"),
                        *span,
                        format!("the value has {limit} bits"),
                    ));
                    return None;
                }
                let bits: Vec<ValueId> = indices.iter().rev().map(|index| self.w.bit_of(value, *index)).collect();
                Some(self.w.values.bits(&bits))
            }
            Suffix::Items(ranges, trailing, span) => self.slice(value, ranges, *trailing, *span),
            Suffix::Field(field) => {
                let ty = self.w.values.type_of(value);
                // A record may have fields that none of its classes has.
                let own = match self.w.values.node(value) {
                    Node::Def(id) => self.w.fields(self.w.record(id)).find(field.name),
                    _ => None,
                };
                let own = own.map(|field| field.ty);
                let Some(field_ty) = own.or_else(|| self.field_type(ty, field.name)) else {
                    if !self.may_lack_fields(value, ty) {
                        self.unknown_field(ty, *field);
                    }
                    return None;
                };
                let r = Resolver::new();
                Some(self.fold_field(value, field.name, field_ty, &r))
            }
        }
    }

    /// Returns whether fields can be missing because a parent is unknown, which is reported already.
    fn may_lack_fields(&self, value: ValueId, ty: TypeId) -> bool {
        let lacks = |class: &ClassId| self.w.class(*class).proto.lacks_parent;
        matches!(self.w.values.node(value), Node::Def(id) if self.lacking.contains(&id))
            || matches!(self.w.values.get_type(ty), Type::Record(classes) if classes.iter().any(lacks))
    }

    fn unknown_field(&mut self, ty: TypeId, field: Ident) {
        let (name, have) = (self.w.text(field.name).to_owned(), self.w.type_text(ty));
        let mut diagnostic = Diagnostic::error(
            format!("a value of type `{have}` has no field `{name}`"),
            field.span,
            "no such field",
        );
        if let Type::Record(classes) = self.w.values.get_type(ty) {
            let fields = classes
                .iter()
                .flat_map(|class| &self.w.class(*class).proto.layout.fields)
                .map(|field| self.w.text(field.name));
            if let Some(near) = closest(&name, fields) {
                diagnostic = diagnostic.note(format!("did you mean `{near}`?"));
            }
        }
        self.report(diagnostic);
    }

    fn slice(&mut self, value: ValueId, ranges: &[Range], trailing: bool, span: Span) -> Option<ValueId> {
        let ty = self.w.values.type_of(value);
        let Some(element) = self.w.values.element(ty) else {
            let have = self.w.type_text(ty);
            self.report(Diagnostic::error(
                format!("a value of type `{have}` has no elements"),
                span,
                "elements are taken here",
            ));
            return None;
        };
        let ints = self.w.values.list_of(TypeId::INT);
        if let ([only], false) = (ranges, trailing)
            && only.end.is_none()
        {
            let index = self.eval(&only.start, None)?;
            let index_ty = self.w.values.type_of(index);
            if self.w.values.element(index_ty).is_some() {
                let index = self.convert_or_report(index, ints, only.start.span)?;
                return Some(self.fold_index(value, index, ty));
            }
            let index = self.convert_or_report(index, TypeId::INT, only.start.span)?;
            return Some(self.fold_index(value, index, element));
        }
        // A slice by a list of indices, which may contain variables.
        let mut parts = Vec::new();
        for range in ranges {
            let start = self.eval(&range.start, None)?;
            let start_ty = self.w.values.type_of(start);
            if range.end.is_none() && self.w.values.element(start_ty).is_some() {
                parts.push(self.convert_or_report(start, ints, range.start.span)?);
                continue;
            }
            let start = self.convert_or_report(start, TypeId::INT, range.start.span)?;
            match &range.end {
                None => parts.push(self.w.values.list(&[start], TypeId::INT)),
                Some(end_expr) => {
                    let end = self.typed(end_expr, TypeId::INT)?;
                    parts.push(self.inclusive_range(start, end, ints));
                }
            }
        }
        let r = Resolver::new();
        let index = match parts.as_slice() {
            [only] => *only,
            _ => self.fold(Bang::ListConcat, &parts, ints, &r),
        };
        Some(self.fold_index(value, index, ty))
    }

    /// Returns the numbers from `start` to `end`, both included, ascending or descending.
    fn inclusive_range(&mut self, start: ValueId, end: ValueId, ints: TypeId) -> ValueId {
        let r = Resolver::new();
        let (one, minus) = (self.w.values.int(1), self.w.values.int(-1));
        let up = self.fold(Bang::Le, &[start, end], TypeId::BIT, &r);
        let step = self.fold(Bang::If, &[up, one, minus], TypeId::INT, &r);
        let after = self.fold(Bang::Add, &[end, step], TypeId::INT, &r);
        self.fold(Bang::Range, &[start, after, step], ints, &r)
    }

    /// Returns the numbers of ranges in source order. None is negative.
    pub(crate) fn number_list(&mut self, ranges: &[Range]) -> Option<Vec<i64>> {
        let mut out = Vec::new();
        for range in ranges {
            let start = self.constant(&range.start)?;
            let end = match &range.end {
                Some(end) => self.constant(end)?,
                None => start,
            };
            if start.abs_diff(end) as usize >= MAX_LIST - out.len().min(MAX_LIST) {
                self.report(Diagnostic::error(
                    "the range is too long",
                    range.start.span,
                    format!("more than {MAX_LIST} numbers"),
                ));
                return None;
            }
            if start <= end {
                out.extend(start..=end);
            } else {
                out.extend((end..=start).rev());
            }
        }
        self.spend(out.len() as u64 / 8);
        Some(out)
    }

    fn constant(&mut self, expr: &Expr) -> Option<i64> {
        let value = self.eval(expr, Some(TypeId::INT))?;
        let problem = match self.w.values.node(value) {
            Node::Int(number) if number >= 0 => return Some(number),
            Node::Int(_) => ("is negative", "a range starts at 0 at least"),
            _ => ("is not a constant number", "must be known here"),
        };
        let text = self.w.brief(value);
        self.report(Diagnostic::error(
            format!("`{text}` {}", problem.0),
            expr.span,
            problem.1,
        ));
        None
    }

    /// Returns constant bit positions in source order.
    pub(crate) fn bit_list(&mut self, ranges: &[Range]) -> Option<Vec<u32>> {
        let place = ranges.first().map_or(self.at, |range| range.start.span);
        let numbers = self.number_list(ranges)?;
        let bits: Option<Vec<u32>> = numbers
            .into_iter()
            .map(|number| u32::try_from(number).ok().filter(|bit| i64::from(*bit) < MAX_BITS))
            .collect();
        if bits.as_ref().is_none_or(|bits| bits.len() as i64 > MAX_BITS) {
            self.report(Diagnostic::error(
                "bit position out of range",
                place,
                format!("0 to {} is possible", MAX_BITS - 1),
            ));
            return None;
        }
        bits
    }

    /// Evaluates `a # b # c`: concatenates strings, or lists if the left operand is one.
    fn pasted(&mut self, parts: &[Expr], expected: Option<TypeId>, mode: Mode) -> Option<ValueId> {
        let (first, rest) = parts.split_first()?;
        let list_wanted = expected.filter(|ty| self.w.values.element(*ty).is_some());
        let mut value = self.eval_in(first, list_wanted, mode)?;
        let ty = self.w.values.type_of(value);
        if self.w.values.element(ty).is_some() {
            let mut lists = Ids::new();
            lists.push(value);
            for part in rest {
                if matches!(part.kind, ExprKind::Str(Symbol::EMPTY)) {
                    continue;
                }
                let more = self.eval(part, list_wanted.or(Some(ty)))?;
                if self.w.common_type(ty, self.w.values.type_of(more)).is_none() {
                    self.convert_or_report(more, ty, part.span)?;
                    return None;
                }
                lists.push(more);
            }
            value = lists.pop()?;
            for list in lists.into_iter().rev() {
                let ty = self.concatenated_type(list, ty);
                value = self.fold_paste(list, value, ty);
            }
            return Some(value);
        }
        // `#` is right-associative: `a # b # c` is `a # (b # c)`.
        let mut texts = Ids::new();
        texts.push(self.as_text(value, first.span)?);
        for part in rest {
            let more = self.eval_in(part, Some(TypeId::STR), Mode::Name)?;
            texts.push(self.as_text(more, part.span)?);
        }
        value = texts.pop()?;
        for text in texts.into_iter().rev() {
            value = self.fold_paste(text, value, TypeId::STR);
        }
        Some(value)
    }

    /// Converts a part of a paste to a string.
    fn as_text(&mut self, value: ValueId, span: Span) -> Option<ValueId> {
        let ty = self.w.values.type_of(value);
        if ty == TypeId::STR {
            return Some(value);
        }
        let fits = ty == TypeId::INT || ty == TypeId::BIT || self.width(ty).is_some() || self.w.values.is_record(ty);
        if !fits || value == ValueId::UNSET {
            let (text, have) = (self.w.brief(value), self.w.type_text(ty));
            self.report(Diagnostic::error(
                format!("`{text}` of type `{have}` cannot be pasted"),
                span,
                "expected a string, a number or a record",
            ));
            return None;
        }
        Some(self.fold(Bang::Cast, &[value], TypeId::STR, &Resolver::new()))
    }
}
