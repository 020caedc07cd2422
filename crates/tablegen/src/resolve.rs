//! Resolution: substitutes variables in values, and folds operators whose arguments become known.

use smallvec::SmallVec;

use crate::diagnostic::Diagnostic;
use crate::evaluator::Evaluator;
use crate::resolver::Resolver;
use crate::source::Span;
use crate::strings::Symbol;
use crate::token::Bang;
use crate::value::{Ids, Kids, Node, TypeId, ValueId};
use crate::world::{FieldData, Proto};

/// The maximum depth of resolution through references between fields, nested class values and
/// operators.
const MAX_RESOLVE_DEPTH: u32 = 12_000;

/// The maximum depth of values that are resolved without the cache.
const MAX_CHEAP: u16 = 1;

/// The maximum number of parts of a body that the test for purity visits.
const MAX_PURE: usize = 64;

impl Evaluator {
    /// Returns the value of the variable `name`.
    fn lookup(&mut self, name: Symbol, r: &mut Resolver) -> Option<ValueId> {
        if r.shadow.contains(&name) {
            return None;
        }
        if let Some((_, value)) = r.map.iter().find(|one| one.0 == name) {
            return Some(*value);
        }
        let at = r.layout.as_ref()?.find(name)?;
        let value = r.fields[at];
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
        if self.depth >= MAX_RESOLVE_DEPTH {
            self.too_deep();
            return None;
        }
        // Variables of enclosing operators are not visible in another field.
        let shadow = std::mem::take(&mut r.shadow);
        let stamp = r.stamp;
        if !shadow.is_empty() {
            r.stamp = 0;
        }
        r.stack.push(name);
        let cuts = r.cuts;
        self.depth += 1;
        let value = self.resolve(value, r);
        self.depth -= 1;
        r.stack.pop();
        if !shadow.is_empty() {
            r.shadow = shadow;
            r.stamp = stamp;
        }
        if r.cuts == cuts {
            r.fields[at] = value;
        }
        Some(value)
    }

    /// Substitutes the variables in `id`.
    #[inline]
    pub(crate) fn resolve(&mut self, id: ValueId, r: &mut Resolver) -> ValueId {
        if id.is_open() { self.resolve_open(id, r) } else { id }
    }

    /// Substitutes the variables in a value that may contain some.
    fn resolve_open(&mut self, id: ValueId, r: &mut Resolver) -> ValueId {
        if !self.w.values.is_touched(id, r.reach) || self.stopped {
            return id;
        }
        if let Node::Var(name) = self.w.values.node(id) {
            return self.lookup(name, r).unwrap_or(id);
        }
        // Resolving a small value is faster than a cache look-up. The cache is needed only if a
        // fault could be reported twice.
        let cheap = self.w.values.depth(id) <= MAX_CHEAP && !r.has_unset;
        if !cheap {
            if r.stamp == 0 {
                r.stamp = self.cache.next_stamp();
            }
            if let Some(value) = self.cache.get(id, r.stamp) {
                return value;
            }
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
        if value == ValueId::UNSET && !r.has_unset {
            r.has_unset = true;
            if r.stamp == 0 {
                r.stamp = self.cache.next_stamp();
            }
        }
        if (!cheap || r.has_unset) && cuts == r.cuts && r.stamp != 0 {
            self.cache.put(id, r.stamp, value);
        }
        value
    }

    /// Returns whether `r` may change a value.
    pub(crate) fn is_touched(&self, id: ValueId, r: &Resolver) -> bool {
        self.w.values.is_touched(id, r.reach)
    }

    fn resolve_all(&mut self, ids: &mut [ValueId], r: &mut Resolver) {
        for id in ids {
            *id = self.resolve(*id, r);
        }
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
                self.w.bit_of(new, index)
            }
            Node::Bits(kids) => self.resolve_bits(kids, r),
            Node::List(kids) => {
                let mut items = self.w.values.kid_vec(kids);
                self.resolve_all(&mut items, r);
                if items[..] == *self.w.values.kids(kids) {
                    return id;
                }
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
                let mut args = self.w.values.kid_vec(kids);
                for arg in args.iter_mut().step_by(2) {
                    *arg = self.resolve(*arg, r);
                }
                if args[..] == *self.w.values.kids(kids) {
                    return self.try_instantiate(id);
                }
                let call = self.w.values.call_of(class, &args, ty);
                if call != id
                    && let Some(place) = self.call_places.get(&id).copied()
                {
                    self.call_places.entry(call).or_insert(place);
                }
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
            Node::Op(op, kids) => self.resolve_op(id, op, kids, ty, r),
        }
    }

    /// Substitutes variables in bits. Consecutive bits often belong to the same field.
    fn resolve_bits(&mut self, kids: Kids, r: &mut Resolver) -> ValueId {
        let mut bits: SmallVec<[ValueId; 64]> = SmallVec::from_slice(self.w.values.kids(kids));
        let mut last = None;
        for bit in &mut bits {
            if !self.w.values.is_touched(*bit, r.reach) {
                continue;
            }
            let Node::VarBit(base, index) = self.w.values.node(*bit) else {
                // The value of a bit may be a `bit`, a `bits<1>` or a number.
                let new = self.resolve(*bit, r);
                let value = self.w.bit_of(new, 0);
                if value != ValueId::UNSET || !r.keep_unset {
                    *bit = value;
                }
                continue;
            };
            let new = match last {
                Some((known, new)) if known == base => new,
                _ => {
                    let new = self.resolve(base, r);
                    last = Some((base, new));
                    new
                }
            };
            if new != base {
                let value = self.w.bit_of(new, index);
                if value != ValueId::UNSET || !r.keep_unset {
                    *bit = value;
                }
            }
        }
        self.w.values.bits(&bits)
    }

    /// Substitutes variables in an operator, `id`.
    fn resolve_op(&mut self, id: ValueId, op: Bang, parts: Kids, ty: TypeId, r: &mut Resolver) -> ValueId {
        let mut kids = self.w.values.kid_vec(parts);
        match op {
            // Once the condition is known, only the selected arm is resolved.
            Bang::If => {
                let test = self.resolve(kids[0], r);
                if let Some(test) = self.w.as_int(test) {
                    return self.resolve(kids[if test != 0 { 1 } else { 2 }], r);
                }
                kids[0] = test;
                self.resolve_all(&mut kids[1..], r);
            }
            Bang::Cond => {
                let mut args = Ids::new();
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
                kids = args;
            }
            Bang::And | Bang::Or => {
                let stop = if op == Bang::And { 0 } else { -1 };
                kids[0] = self.resolve(kids[0], r);
                if self.w.as_int(kids[0]) == Some(stop) {
                    return self.w.values.int(stop);
                }
                self.resolve_all(&mut kids[1..], r);
            }
            // The first argument is a variable that the last argument binds.
            Bang::Foreach | Bang::Filter | Bang::Sort => {
                kids[1] = self.resolve(kids[1], r);
                kids[2] = self.resolve_shadowed(kids[2], &kids[..1], r);
            }
            Bang::Foldl => {
                self.resolve_all(&mut kids[..2], r);
                kids[4] = self.resolve_shadowed(kids[4], &kids[2..4], r);
            }
            // The first argument only represents a type.
            Bang::IsA | Bang::Exists => self.resolve_all(&mut kids[1..], r),
            _ => self.resolve_all(&mut kids, r),
        }
        match self.folded(op, &kids, ty, r) {
            Some(value) => value,
            // Nothing was substituted.
            None if kids[..] == *self.w.values.kids(parts) => id,
            None => {
                let value = self.w.values.op(op, &kids, ty);
                if op == Bang::Cast
                    && let Some(place) = self.cast_places.get(&id).copied()
                {
                    self.cast_places.insert(value, place);
                }
                value
            }
        }
    }

    fn resolve_shadowed(&mut self, body: ValueId, variables: &[ValueId], r: &mut Resolver) -> ValueId {
        let length = r.shadow.len();
        for variable in variables {
            if let Node::Var(name) = self.w.values.node(*variable) {
                r.shadow.push(name);
            }
        }
        let stamp = std::mem::take(&mut r.stamp);
        let body = self.resolve(body, r);
        r.stamp = stamp;
        r.shadow.truncate(length);
        body
    }

    /// Substitutes one bound variable in `body`, in the context of `outer`. The result is cached if
    /// it depends on the element only.
    pub(crate) fn apply_to(&mut self, body: ValueId, variable: ValueId, item: ValueId, outer: &Resolver) -> ValueId {
        if !self.is_pure(body, variable) {
            return self.apply(body, &[(variable, item)], outer);
        }
        if let Some(value) = self.cache.applied(body, item, outer.is_final) {
            return value;
        }
        let value = self.apply(body, &[(variable, item)], outer);
        // An open value may be resolved later, and an unset value may be the result of an error.
        if !value.is_open() && value != ValueId::UNSET {
            self.cache.put_applied(body, item, outer.is_final, value);
        }
        value
    }

    /// Returns whether a body depends on this variable only: it has no other variables, and no
    /// operator that uses or creates definitions.
    fn is_pure(&mut self, body: ValueId, variable: ValueId) -> bool {
        if let Some(pure) = self.cache.pure.get(&(body, variable)) {
            return *pure;
        }
        let mut todo = vec![body];
        let mut pure = true;
        while let Some(id) = todo.pop().filter(|_| pure && todo.len() < MAX_PURE) {
            match self.w.values.node(id) {
                Node::Unset | Node::Bit(_) | Node::Int(_) | Node::Str(_) | Node::Code(_) | Node::Def(_) => {}
                Node::Var(_) => pure = id == variable,
                Node::VarBit(base, _) => todo.push(base),
                Node::Bits(kids) | Node::List(kids) => todo.extend_from_slice(self.w.values.kids(kids)),
                Node::Field(base, _) => todo.push(base),
                Node::Index(base, index) | Node::Paste(base, index) => todo.extend([base, index]),
                Node::Op(Bang::Exists | Bang::Cast | Bang::Instances | Bang::Repr, _)
                | Node::Dag(_)
                | Node::Call(..) => pure = false,
                Node::Op(_, kids) => todo.extend_from_slice(self.w.values.kids(kids)),
            }
        }
        let pure = pure && todo.is_empty();
        self.cache.pure.insert((body, variable), pure);
        pure
    }

    /// Substitutes one or two bound variables in `body`, in the context of `outer`.
    pub(crate) fn apply(&mut self, body: ValueId, bindings: &[(ValueId, ValueId)], outer: &Resolver) -> ValueId {
        let mut r = Resolver::last(outer.is_final);
        r.self_name = outer.self_name;
        for (variable, value) in bindings {
            if let Node::Var(name) = self.w.values.node(*variable) {
                r.set(name, *value);
            }
        }
        self.resolve(body, &mut r)
    }

    /// Substitutes variables in a record.
    pub(crate) fn resolve_proto(&mut self, proto: &mut Proto, r: &mut Resolver) {
        if r.is_empty() {
            return;
        }
        proto.name = self.resolve(proto.name, r);
        for at in 0..proto.cells.len() {
            if self.is_touched(proto.cells[at].value, r) {
                proto.cells[at].value = self.resolve_field(&proto.field_at(at), at, r);
            }
        }
        for assertion in &mut proto.asserts {
            assertion.condition = self.resolve(assertion.condition, r);
            assertion.message = self.resolve(assertion.message, r);
        }
        for dump in &mut proto.dumps {
            dump.0 = self.resolve(dump.0, r);
        }
    }

    /// Resolves a field of a record. If the record is being finished, the values of its fields are
    /// in `r`.
    pub(crate) fn resolve_field(&mut self, field: &FieldData, at: usize, r: &mut Resolver) -> ValueId {
        let span = self.w.span(field.span);
        let outer = std::mem::replace(&mut self.at, span);
        r.stack.push(field.name);
        let value = self.resolve(field.value, r);
        r.stack.pop();
        self.at = outer;
        if value == field.value {
            return value;
        }
        let value = match self.w.convert(value, field.ty) {
            Some(value) => self.w.spread_bits(value, field.ty),
            None => {
                self.type_mismatch(field, value, span);
                ValueId::UNSET
            }
        };
        if let Some(slot) = r.fields.get_mut(at) {
            *slot = value;
        }
        value
    }

    /// Reports that a value does not have the type of its field.
    pub(crate) fn type_mismatch(&mut self, field: &FieldData, value: ValueId, span: Span) {
        let name = self.w.text(field.name).to_owned();
        let want = self.w.type_text(field.ty);
        let have = self.w.type_text(self.w.values.type_of(value));
        let text = self.w.brief(value);
        let mut diagnostic = Diagnostic::error(
            format!("field `{name}` of type `{want}` cannot hold `{text}` of type `{have}`"),
            span,
            match self.w.as_int(value) {
                Some(number) if want.starts_with("bit") => format!("{number} does not fit into `{want}`"),
                _ => format!("this is a `{have}`"),
            },
        );
        let decl = self.w.span(field.decl);
        if decl != span {
            diagnostic = diagnostic.secondary(decl, format!("declared as `{want}` here"));
        }
        self.report(diagnostic);
    }
}
