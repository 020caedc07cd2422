//! Replacing variables in values by what they stand for, and doing what can be done then.

use rustc_hash::FxHashMap;

use crate::eval::Evaluator;
use crate::source::Span;
use crate::strings::Symbol;
use crate::token::Bang;
use crate::value::{Node, RecordId, TypeId, ValueId};
use crate::world::{FieldData, Proto};

/// Resolution may go this deep: through fields that refer to fields, class values in class values, operators.
const MAX_RESOLVE_DEPTH: u32 = 12_000;

/// What variables stand for.
#[derive(Default)]
pub(crate) struct Resolver {
    /// Template arguments, loop variables, `NAME`.
    pub(crate) map: FxHashMap<Symbol, ValueId>,
    /// The fields of the record being finished, by name.
    fields: FxHashMap<Symbol, ValueId>,
    /// The name of that record, which it may mention itself.
    pub(crate) self_name: Option<(Symbol, RecordId)>,
    /// No later resolution will follow: unknown names are errors now.
    pub(crate) is_final: bool,
    /// Bits that would become `?` stay references (resolution against a record's own fields).
    keep_unset: bool,
    shadow: Vec<Symbol>,
    cache: FxHashMap<ValueId, ValueId>,
    /// Fields being resolved, to find cycles.
    stack: Vec<Symbol>,
    /// Counts cycles that were cut; results computed meanwhile hold only there and are not cached.
    cuts: u32,
}

impl Resolver {
    pub(crate) fn new() -> Resolver {
        Resolver::default()
    }
    /// Resolution of a record against its own fields.
    pub(crate) fn of_record(proto: &Proto, is_final: bool) -> Resolver {
        Resolver {
            fields: proto.fields.iter().map(|field| (field.name, field.value)).collect(),
            is_final,
            keep_unset: true,
            ..Resolver::default()
        }
    }
    pub(crate) fn set(&mut self, name: Symbol, value: ValueId) {
        self.map.insert(name, value);
        self.cache.clear();
    }
    pub(crate) fn is_empty(&self) -> bool {
        self.map.is_empty() && self.fields.is_empty() && !self.is_final
    }
}

impl Evaluator {
    /// What the variable `name` stands for.
    fn lookup(&mut self, name: Symbol, r: &mut Resolver) -> Option<ValueId> {
        if r.shadow.contains(&name) {
            return None;
        }
        if let Some(value) = r.map.get(&name) {
            return Some(*value);
        }
        let value = *r.fields.get(&name)?;
        if value == ValueId::UNSET {
            return None;
        }
        if !self.w.values.is_open(value) {
            return Some(value);
        }
        if r.stack.contains(&name) {
            r.cuts += 1;
            return None;
        }
        // Variables of enclosing operators have no meaning inside another field.
        let shadow = std::mem::take(&mut r.shadow);
        let cache = (!shadow.is_empty()).then(|| std::mem::take(&mut r.cache));
        r.stack.push(name);
        let cuts = r.cuts;
        let value = self.resolve(value, r);
        r.stack.pop();
        r.shadow = shadow;
        if let Some(cache) = cache {
            r.cache = cache;
        }
        if r.cuts == cuts {
            r.fields.insert(name, value);
        }
        Some(value)
    }

    /// `id` with its variables replaced.
    pub(crate) fn resolve(&mut self, id: ValueId, r: &mut Resolver) -> ValueId {
        if !self.w.values.is_open(id) || self.stopped {
            return id;
        }
        if let Some(value) = r.cache.get(&id) {
            return *value;
        }
        if self.depth >= MAX_RESOLVE_DEPTH {
            self.too_deep();
            return ValueId::UNSET;
        }
        self.spend(1);
        self.depth += 1;
        let cuts = r.cuts;
        let value = self.resolve_node(id, r);
        self.depth -= 1;
        if cuts == r.cuts {
            r.cache.insert(id, value);
        }
        value
    }

    fn resolve_all(&mut self, ids: &[ValueId], r: &mut Resolver) -> Vec<ValueId> {
        ids.iter().map(|id| self.resolve(*id, r)).collect()
    }

    fn resolve_node(&mut self, id: ValueId, r: &mut Resolver) -> ValueId {
        let ty = self.w.values.type_of(id);
        match self.w.values.node(id) {
            Node::Unset | Node::Bit(_) | Node::Int(_) | Node::Str(_) | Node::Code(_) | Node::Def(_) => id,
            Node::Var(name) => self.lookup(name, r).unwrap_or(id),
            Node::VarBit(base, index) => {
                let new = self.resolve(base, r);
                if new == base {
                    return id;
                }
                let bit = self.w.bit_of(new, index);
                if bit == ValueId::UNSET && r.keep_unset {
                    return id;
                }
                bit
            }
            Node::Bits(kids) => {
                let kids = self.w.values.kids(kids).to_vec();
                let bits = self.resolve_all(&kids, r);
                self.w.values.bits(&bits)
            }
            Node::List(kids) => {
                let kids = self.w.values.kids(kids).to_vec();
                let items = self.resolve_all(&kids, r);
                let element = self.w.values.element(ty).unwrap_or(TypeId::ANY);
                self.w.values.list(&items, element)
            }
            Node::Dag(kids) => {
                let mut parts = self.w.values.pair_vec(kids);
                for part in &mut parts {
                    part.0 = self.resolve(part.0, r);
                }
                self.w.values.dag(&parts)
            }
            Node::Call(class, kids) => {
                let mut args = self.w.values.pair_vec(kids);
                for arg in &mut args {
                    arg.0 = self.resolve(arg.0, r);
                }
                let call = self.w.values.call(class, &args, ty);
                self.try_instantiate(call)
            }
            Node::Field(base, field) => {
                let new = self.resolve(base, r);
                self.fold_field(new, field, ty, r)
            }
            Node::Index(base, index) => {
                let base = self.resolve(base, r);
                let index = self.resolve(index, r);
                self.fold_index(base, index, ty)
            }
            Node::Paste(left, right) => {
                let left = self.resolve(left, r);
                let right = self.resolve(right, r);
                self.fold_paste(left, right, ty)
            }
            Node::Op(op, kids) => {
                let kids = self.w.values.kids(kids).to_vec();
                self.resolve_op(op, &kids, ty, r)
            }
        }
    }

    fn resolve_op(&mut self, op: Bang, kids: &[ValueId], ty: TypeId, r: &mut Resolver) -> ValueId {
        let args = match op {
            // Only the arm that is taken is looked at once the condition is known.
            Bang::If => {
                let test = self.resolve(kids[0], r);
                if let Some(test) = self.w.as_int(test) {
                    let arm = self.resolve(kids[if test != 0 { 1 } else { 2 }], r);
                    return self.w.convert(arm, ty).unwrap_or(arm);
                }
                vec![test, self.resolve(kids[1], r), self.resolve(kids[2], r)]
            }
            Bang::Cond => {
                let mut args = Vec::new();
                for pair in kids.chunks_exact(2) {
                    let test = self.resolve(pair[0], r);
                    match self.w.as_int(test) {
                        Some(0) => {}
                        Some(_) if args.is_empty() => {
                            let value = self.resolve(pair[1], r);
                            return self.w.convert(value, ty).unwrap_or(value);
                        }
                        _ => {
                            let value = self.resolve(pair[1], r);
                            args.extend([test, value]);
                        }
                    }
                }
                if args.is_empty() {
                    self.fault("no condition of `!cond` is true", "all conditions are false");
                    return ValueId::UNSET;
                }
                args
            }
            Bang::And | Bang::Or => {
                let mut args = Vec::with_capacity(kids.len());
                let stop = if op == Bang::And { 0 } else { -1 };
                for (at, kid) in kids.iter().enumerate() {
                    let arg = self.resolve(*kid, r);
                    if at == 0 && self.w.as_int(arg) == Some(stop) {
                        return self.w.values.int(stop);
                    }
                    args.push(arg);
                }
                args
            }
            // The first arguments are variables that the last argument binds.
            Bang::Foreach | Bang::Filter | Bang::Sort => {
                let list = self.resolve(kids[1], r);
                let body = self.resolve_shadowed(kids[2], &kids[..1], r);
                vec![kids[0], list, body]
            }
            Bang::Foldl => {
                let init = self.resolve(kids[0], r);
                let list = self.resolve(kids[1], r);
                let body = self.resolve_shadowed(kids[4], &kids[2..4], r);
                vec![init, list, kids[2], kids[3], body]
            }
            // The first argument only carries a type.
            Bang::IsA | Bang::Exists => {
                let mut args = vec![kids[0]];
                args.extend(self.resolve_all(&kids[1..], r));
                args
            }
            _ => self.resolve_all(kids, r),
        };
        self.fold(op, &args, ty, r)
    }

    fn resolve_shadowed(&mut self, body: ValueId, variables: &[ValueId], r: &mut Resolver) -> ValueId {
        let length = r.shadow.len();
        for variable in variables {
            if let Node::Var(name) = self.w.values.node(*variable) {
                r.shadow.push(name);
            }
        }
        let cache = std::mem::take(&mut r.cache);
        let body = self.resolve(body, r);
        r.cache = cache;
        r.shadow.truncate(length);
        body
    }

    /// `body` with one or two bound variables replaced, in the setting of `r`.
    pub(crate) fn apply(&mut self, body: ValueId, bindings: &[(ValueId, ValueId)], outer: &Resolver) -> ValueId {
        let mut r = Resolver::new();
        r.is_final = outer.is_final;
        r.self_name = outer.self_name;
        for (variable, value) in bindings {
            if let Node::Var(name) = self.w.values.node(*variable) {
                r.map.insert(name, *value);
            }
        }
        self.resolve(body, &mut r)
    }

    /// Replaces variables in all of a record but its name.
    pub(crate) fn resolve_proto(&mut self, proto: &mut Proto, r: &mut Resolver) {
        if r.is_empty() {
            return;
        }
        proto.name = self.resolve(proto.name, r);
        for at in 0..proto.fields.len() {
            let field = proto.fields[at];
            if !self.w.values.is_open(field.value) {
                continue;
            }
            proto.fields[at].value = self.resolve_field(&field, r);
        }
        for assertion in &mut proto.asserts {
            assertion.condition = self.resolve(assertion.condition, r);
            assertion.message = self.resolve(assertion.message, r);
        }
        for dump in &mut proto.dumps {
            dump.0 = self.resolve(dump.0, r);
        }
    }

    fn resolve_field(&mut self, field: &FieldData, r: &mut Resolver) -> ValueId {
        let at = std::mem::replace(&mut self.at, field.span);
        r.stack.push(field.name);
        let value = self.resolve(field.value, r);
        r.stack.pop();
        self.at = at;
        if value == field.value {
            return value;
        }
        let value = match self.w.convert(value, field.ty) {
            Some(value) => self.w.spread_bits(value, field.ty),
            None => {
                self.type_mismatch(field, value, field.span);
                ValueId::UNSET
            }
        };
        r.fields.entry(field.name).and_modify(|old| *old = value);
        value
    }

    /// Says that a value does not have the type of its field.
    pub(crate) fn type_mismatch(&mut self, field: &FieldData, value: ValueId, span: Span) {
        let name = self.w.text(field.name).to_owned();
        let want = self.w.type_text(field.ty);
        let have = self.w.type_text(self.w.values.type_of(value));
        let text = self.w.brief(value);
        let mut diagnostic = crate::Diagnostic::error(
            format!("field `{name}` of type `{want}` cannot hold `{text}` of type `{have}`"),
            span,
            match self.w.as_int(value) {
                Some(number) if want.starts_with("bit") => format!("{number} does not fit into `{want}`"),
                _ => format!("this is a `{have}`"),
            },
        );
        if field.decl != span {
            diagnostic = diagnostic.secondary(field.decl, format!("declared as `{want}` here"));
        }
        self.report(diagnostic);
    }
}
