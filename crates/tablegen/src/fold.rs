//! Folds operators with known arguments: numbers, strings, comparisons, conversions. `fold_list`
//! folds lists and dags.
//!
//! An operator that cannot be folded yet stays as a value and is folded again by a later
//! resolution.

use smallvec::SmallVec;

use crate::diagnostic::closest;
use crate::evaluator::Evaluator;
use crate::print::record_text;
use crate::resolver::Resolver;
use crate::strings::Symbol;
use crate::text::numeric_order;
use crate::token::Bang;
use crate::value::{Node, Type, TypeId, ValueId};

/// The maximum length of a string in bytes.
const MAX_STRING: usize = 16 << 20;

impl Evaluator {
    /// Folds `op` with `args` to a value of type `ty`, or returns the unfolded operator.
    pub(crate) fn fold(&mut self, op: Bang, args: &[ValueId], ty: TypeId, r: &Resolver) -> ValueId {
        match self.folded(op, args, ty, r) {
            Some(value) => value,
            None => self.w.values.op(op, args, ty),
        }
    }

    /// Folds like [`Self::fold`], but returns `None` if the operator cannot be folded yet.
    pub(crate) fn folded(&mut self, op: Bang, args: &[ValueId], ty: TypeId, r: &Resolver) -> Option<ValueId> {
        let value = self.try_fold(op, args, ty, r)?;
        // The selected arm of an `!if` and an argument of a dag keep their own types.
        if matches!(op, Bang::If | Bang::GetDagArg) {
            return Some(value);
        }
        Some(self.w.convert(value, ty).unwrap_or(value))
    }

    fn ints(&self, args: &[ValueId]) -> Option<SmallVec<[i64; 4]>> {
        args.iter().map(|arg| self.w.as_int(*arg)).collect()
    }

    fn try_fold(&mut self, op: Bang, args: &[ValueId], ty: TypeId, r: &Resolver) -> Option<ValueId> {
        match op {
            Bang::Add | Bang::Mul | Bang::And | Bang::Or | Bang::Xor => {
                let ints = self.ints(args)?;
                let value = ints.into_iter().reduce(|a, b| match op {
                    Bang::Add => a.wrapping_add(b),
                    Bang::Mul => a.wrapping_mul(b),
                    Bang::And => a & b,
                    Bang::Or => a | b,
                    _ => a ^ b,
                })?;
                Some(self.w.values.int(value))
            }
            Bang::Sub | Bang::Div | Bang::Shl | Bang::Sra | Bang::Srl => {
                let ints = self.ints(args)?;
                self.fold_binary(op, ints[0], ints[1])
            }
            Bang::Not => {
                let value = self.w.as_int(args[0])?;
                Some(self.w.values.int(i64::from(value == 0)))
            }
            Bang::LogTwo => {
                let value = self.w.as_int(args[0])?;
                if value <= 0 {
                    self.fault("`!logtwo` of a number that is not positive", &format!("of {value}"));
                    return Some(ValueId::UNSET);
                }
                Some(self.w.values.int(i64::from(value.ilog2())))
            }
            Bang::Eq | Bang::Ne | Bang::Lt | Bang::Le | Bang::Gt | Bang::Ge => self.fold_compare(op, args[0], args[1]),
            Bang::If => {
                let test = self.w.as_int(args[0])?;
                Some(args[if test != 0 { 1 } else { 2 }])
            }
            Bang::Cond => self.fold_cond(args),
            Bang::Cast => self.fold_cast(args[0], ty, r),
            Bang::IsA => self.fold_isa(args),
            Bang::Exists => self.fold_exists(args, r),
            Bang::Instances => self.fold_instances(args, ty, r),
            Bang::Initialized => match self.w.values.node(args[0]) {
                Node::Unset => Some(self.w.values.int(0)),
                _ if !self.w.values.is_open(args[0]) => {
                    let set = !self.is_unset(args[0]);
                    Some(self.w.values.int(i64::from(set)))
                }
                _ => None,
            },
            Bang::Repr => {
                if self.w.values.has_var(args[0]) {
                    return None;
                }
                let text = match self.w.values.node(args[0]) {
                    Node::Def(id) => record_text(&self.w, id),
                    _ => self.w.value_text(args[0]),
                };
                Some(self.string(&text))
            }
            Bang::StrConcat => {
                let mut out = String::new();
                for arg in args {
                    let text = self.w.as_str(*arg)?;
                    out.push_str(self.w.text(text));
                }
                let code = args.iter().any(|arg| matches!(self.w.values.node(*arg), Node::Code(_)));
                let value = self.string(&out);
                match self.w.as_str(value) {
                    Some(text) if code => Some(self.w.values.code(text)),
                    _ => Some(value),
                }
            }
            Bang::Substr | Bang::Find => self.fold_substring(op, args),
            Bang::ToLower | Bang::ToUpper => {
                let text = self.w.as_str(args[0])?;
                let text = self.w.text(text);
                let text = if op == Bang::ToLower {
                    text.to_ascii_lowercase()
                } else {
                    text.to_ascii_uppercase()
                };
                Some(self.string(&text))
            }
            Bang::Match => {
                let (text, pattern) = (self.w.as_str(args[0])?, self.w.as_str(args[1])?);
                let pattern = self.regex(pattern)?;
                let found = pattern.is_match(self.w.text(text));
                Some(ValueId::bit(found))
            }
            Bang::Subst => self.fold_subst(args),
            Bang::Switch => None,
            _ => self.fold_list_op(op, args, ty, r),
        }
    }

    /// Returns whether a value is `?`, or bits that include a `?`.
    pub(crate) fn is_unset(&self, id: ValueId) -> bool {
        match self.w.values.node(id) {
            Node::Unset => true,
            Node::Bits(kids) => self.w.values.kids(kids).contains(&ValueId::UNSET),
            _ => false,
        }
    }

    /// Creates a string value, unless it is too long.
    pub(crate) fn string(&mut self, text: &str) -> ValueId {
        if !self.pays_for_string(text.len()) {
            return ValueId::UNSET;
        }
        let symbol = self.w.intern(text);
        if self.w.strings.is_full() {
            self.out_of_memory();
        }
        self.w.values.str(symbol)
    }

    /// Concatenates `a` and `b`, unless the string is too long.
    fn joined(&mut self, a: Symbol, b: Symbol) -> Option<Symbol> {
        let length = self.w.text(a).len() + self.w.text(b).len();
        let symbol = self.pays_for_string(length).then(|| self.w.strings.join(a, b));
        if self.w.strings.is_full() {
            self.out_of_memory();
        }
        symbol
    }

    /// Accounts for a new string; returns `false` if it is too long.
    fn pays_for_string(&mut self, length: usize) -> bool {
        self.spend(length as u64 / 32);
        if length > MAX_STRING {
            self.fault("the string is too long", "more than 16 MiB");
        }
        length <= MAX_STRING
    }

    fn fold_binary(&mut self, op: Bang, a: i64, b: i64) -> Option<ValueId> {
        let value = match op {
            Bang::Sub => Some(a.wrapping_sub(b)),
            Bang::Div if b == 0 => {
                self.fault("division by zero", "the divisor is 0");
                return Some(ValueId::UNSET);
            }
            Bang::Div => a.checked_div(b),
            _ => match u32::try_from(b).ok().filter(|amount| *amount < 64) {
                None => {
                    self.fault("shift out of range", &format!("by {b}; 0 to 63 is allowed"));
                    return Some(ValueId::UNSET);
                }
                Some(amount) => Some(match op {
                    Bang::Shl => a << amount,
                    Bang::Sra => a >> amount,
                    _ => (a as u64 >> amount) as i64,
                }),
            },
        };
        match value {
            Some(value) => Some(self.w.values.int(value)),
            None => {
                self.fault("division overflows", "the result does not fit into 64 bits");
                Some(ValueId::UNSET)
            }
        }
    }

    fn fold_compare(&mut self, op: Bang, a: ValueId, b: ValueId) -> Option<ValueId> {
        use std::cmp::Ordering;
        let order = if let (Some(a), Some(b)) = (self.w.as_int(a), self.w.as_int(b)) {
            a.cmp(&b)
        } else if let (Some(a), Some(b)) = (self.w.as_str(a), self.w.as_str(b)) {
            self.w.text(a).cmp(self.w.text(b))
        } else if matches!(
            (self.w.values.node(a), self.w.values.node(b)),
            (Node::Def(_), Node::Def(_))
        ) && matches!(op, Bang::Eq | Bang::Ne)
        {
            if a == b { Ordering::Equal } else { Ordering::Less }
        } else {
            return None;
        };
        Some(ValueId::bit(match op {
            Bang::Eq => order.is_eq(),
            Bang::Ne => order.is_ne(),
            Bang::Lt => order.is_lt(),
            Bang::Le => order.is_le(),
            Bang::Gt => order.is_gt(),
            _ => order.is_ge(),
        }))
    }

    fn fold_cond(&mut self, args: &[ValueId]) -> Option<ValueId> {
        for pair in args.chunks_exact(2) {
            match self.w.as_int(pair[0]) {
                Some(0) => {}
                Some(_) => return Some(pair[1]),
                None => return None,
            }
        }
        self.fault("no condition of `!cond` is true", "all conditions are false");
        Some(ValueId::UNSET)
    }

    /// Converts strings, numbers and records to text, as `!cast<string>` and paste do.
    pub(crate) fn text_of(&mut self, id: ValueId) -> Option<Symbol> {
        match self.w.values.node(id) {
            Node::Str(text) | Node::Code(text) => Some(text),
            Node::Def(record) => Some(self.w.record(record).name),
            _ => {
                let text = self.w.as_int(id)?.to_string();
                Some(self.w.intern(&text))
            }
        }
    }

    fn fold_cast(&mut self, arg: ValueId, ty: TypeId, r: &Resolver) -> Option<ValueId> {
        if arg == ValueId::UNSET {
            return Some(arg);
        }
        if ty == TypeId::STR {
            if let Some(text) = self.text_of(arg) {
                return Some(match self.w.values.node(arg) {
                    Node::Str(_) | Node::Code(_) => arg,
                    _ => self.w.values.str(text),
                });
            }
            return None;
        }
        if self.w.values.is_record(ty)
            && let Some(name) = self.w.as_str(arg)
        {
            return self.find_record(name, ty, r);
        }
        if let Some(value) = self.w.convert(arg, ty) {
            let waiting = matches!(self.w.values.node(value), Node::Op(Bang::Cast, kids)
                if self.w.values.kids(kids) == [arg]);
            return (!waiting).then_some(value);
        }
        // The value is a record of another class than the requested one, or a list of such records.
        if self.w.values.is_open(arg) {
            return None;
        }
        match (self.w.values.node(arg), self.w.values.element(ty)) {
            (Node::List(kids), Some(element)) => {
                let items = self.w.values.kids(kids).to_vec();
                let mut out = Vec::with_capacity(items.len());
                for item in items {
                    out.push(self.fold_cast(item, element, r)?);
                }
                Some(self.w.values.list(&out, element))
            }
            // Numbers and bits that do not fit stay unchanged. The field that receives them reports
            // the error.
            _ if !self.w.values.is_record(ty) => None,
            _ => {
                let text = self.w.brief(arg);
                let (have, want) = (self.w.type_text(self.w.values.type_of(arg)), self.w.type_text(ty));
                self.fault(
                    &format!("`{text}` of type `{have}` is not a `{want}`"),
                    &format!("expected a `{want}`"),
                );
                Some(ValueId::UNSET)
            }
        }
    }

    /// Finds the record that `!cast` names. Before the last resolution, an undefined record keeps
    /// the operator waiting.
    fn find_record(&mut self, name: Symbol, ty: TypeId, r: &Resolver) -> Option<ValueId> {
        let id = match self.w.record_names.get(&name) {
            Some(id) => *id,
            None => match r.self_name {
                Some((own, id)) if own == name => id,
                _ if !r.is_final => return None,
                _ => {
                    let text = self.w.text(name).to_owned();
                    let names = self.w.record_names.keys().map(|name| self.w.text(name));
                    let near = closest(&text, names).map(str::to_owned);
                    let note = near.map(|near| format!("did you mean `{near}`?"));
                    self.fault_with(&format!("no record is called `{text}`"), "looked up by name here", note);
                    return Some(ValueId::UNSET);
                }
            },
        };
        let have = self.w.record(id).ty;
        if !self.w.type_is(have, ty) {
            let text = self.w.text(name).to_owned();
            let (have, want) = (self.w.type_text(have), self.w.type_text(ty));
            self.fault(
                &format!("record `{text}` of type `{have}` is not a `{want}`"),
                &format!("expected a `{want}`"),
            );
            return Some(ValueId::UNSET);
        }
        Some(self.w.values.def(id, have))
    }

    /// Returns the type argument of an operator, which is stored as the element type of an empty
    /// list.
    fn asked_type(&self, carrier: ValueId) -> TypeId {
        let ty = self.w.values.type_of(carrier);
        self.w.values.element(ty).unwrap_or(TypeId::ANY)
    }

    fn fold_isa(&mut self, args: &[ValueId]) -> Option<ValueId> {
        let want = self.asked_type(args[0]);
        let have = self.w.values.type_of(args[1]);
        let known = |answer: bool, this: &mut Self| Some(this.w.values.int(i64::from(answer)));
        if args[1] == ValueId::UNSET {
            return known(false, self);
        }
        if self.w.type_converts(have, want) {
            return known(true, self);
        }
        if self.w.values.is_record(want)
            && self.w.type_is(want, have)
            && !matches!(self.w.values.node(args[1]), Node::Def(_))
        {
            return None;
        }
        known(false, self)
    }

    fn fold_exists(&mut self, args: &[ValueId], r: &Resolver) -> Option<ValueId> {
        let want = self.asked_type(args[0]);
        let name = self.w.as_str(args[1])?;
        let id = match self.w.record_names.get(&name) {
            Some(id) => Some(*id),
            None => match r.self_name {
                Some((own, id)) if own == name => Some(id),
                _ if !r.is_final => return None,
                _ => None,
            },
        };
        let found = id.is_some_and(|id| self.w.type_is(self.w.record(id).ty, want));
        Some(self.w.values.int(i64::from(found)))
    }

    fn fold_instances(&mut self, args: &[ValueId], ty: TypeId, r: &Resolver) -> Option<ValueId> {
        let pattern = match args.first() {
            Some(pattern) => Some(self.w.as_str(*pattern)?),
            None => None,
        };
        if !r.is_final {
            return None;
        }
        let pattern = match pattern {
            Some(pattern) => Some(self.regex(pattern)?),
            None => None,
        };
        let want = self.w.values.element(ty).unwrap_or(TypeId::RECORD);
        let mut found: Vec<_> = self
            .w
            .order
            .iter()
            .copied()
            .filter(|id| {
                let record = self.w.record(*id);
                self.w.type_is(record.ty, want)
                    && pattern
                        .as_ref()
                        .is_none_or(|pattern| pattern.is_match(self.w.text(record.name)))
            })
            .collect();
        found.sort_by(|a, b| {
            let text = |id| self.w.text(self.w.record(id).name);
            numeric_order(text(*a), text(*b))
        });
        self.spend(self.w.order.len() as u64);
        let items: Vec<ValueId> = found
            .into_iter()
            .map(|id| {
                let ty = self.w.record(id).ty;
                self.w.values.def(id, ty)
            })
            .collect();
        Some(self.w.values.list(&items, want))
    }

    /// Compiles a regular expression; reports an invalid one.
    fn regex(&mut self, pattern: Symbol) -> Option<regex_lite::Regex> {
        let text = self.w.text(pattern).to_owned();
        self.spend(1000);
        match regex_lite::Regex::new(&text) {
            Ok(pattern) => Some(pattern),
            Err(error) => {
                self.fault(&format!("bad regular expression `{text}`"), &error.to_string());
                None
            }
        }
    }

    fn fold_substring(&mut self, op: Bang, args: &[ValueId]) -> Option<ValueId> {
        let text = self.w.as_str(args[0])?;
        let text = self.w.text(text).to_owned();
        let size = text.len();
        let check = |this: &mut Self, start: i64| match usize::try_from(start) {
            Ok(start) if start <= size => Some(start),
            _ => {
                this.fault(
                    &format!("the start {start} is not within the string"),
                    &format!("the string has {size} characters"),
                );
                None
            }
        };
        if op == Bang::Find {
            let part = self.w.as_str(args[1])?;
            let start = match args.get(2) {
                Some(start) => self.w.as_int(*start)?,
                None => 0,
            };
            let Some(start) = check(self, start) else {
                return Some(ValueId::UNSET);
            };
            let part = self.w.text(part).as_bytes();
            let tail = &text.as_bytes()[start..];
            let at = if part.is_empty() {
                Some(0)
            } else {
                tail.windows(part.len()).position(|window| window == part)
            };
            let at = at.map_or(-1, |at| (start + at) as i64);
            return Some(self.w.values.int(at));
        }
        let start = self.w.as_int(args[1])?;
        let length = match args.get(2) {
            Some(length) => self.w.as_int(*length)?,
            None => i64::MAX,
        };
        let Some(start) = check(self, start) else {
            return Some(ValueId::UNSET);
        };
        let Ok(length) = usize::try_from(length) else {
            self.fault("the length is negative", &format!("{length} characters"));
            return Some(ValueId::UNSET);
        };
        let end = start.saturating_add(length).min(size);
        let part = String::from_utf8_lossy(&text.as_bytes()[start..end]).into_owned();
        Some(self.string(&part))
    }

    fn fold_subst(&mut self, args: &[ValueId]) -> Option<ValueId> {
        let (target, new, value) = (args[0], args[1], args[2]);
        match (self.w.values.node(target), self.w.values.node(value)) {
            (Node::Str(_) | Node::Code(_), Node::Str(_) | Node::Code(_)) => {
                let target = self.w.as_str(target)?;
                let (new, value) = (self.w.as_str(new)?, self.w.as_str(value)?);
                let (target, new, value) = (self.w.text(target), self.w.text(new), self.w.text(value));
                if target.is_empty() {
                    return Some(args[2]);
                }
                // The result may be much longer than its parts.
                let count = value.matches(target).count();
                if count.saturating_mul(new.len()) > MAX_STRING {
                    self.fault("the string is too long", "more than 16 MiB");
                    return Some(ValueId::UNSET);
                }
                let text = value.replace(target, new);
                Some(self.string(&text))
            }
            (Node::Def(_), Node::Def(_)) => match self.w.values.node(new) {
                Node::Def(_) => Some(if target == value { new } else { value }),
                _ => None,
            },
            (Node::Var(_), Node::Var(_)) if target == value => Some(new),
            _ => None,
        }
    }

    /// Folds a field access. Fields of an unfinished record cannot be folded yet.
    pub(crate) fn fold_field(&mut self, base: ValueId, field: Symbol, ty: TypeId, r: &Resolver) -> ValueId {
        if base == ValueId::UNSET {
            if r.is_final {
                let name = self.w.text(field).to_owned();
                self.fault(&format!("field `{name}` of an unset value"), "`?` has no fields");
            }
            return ValueId::UNSET;
        }
        if let Node::Def(id) = self.w.values.node(base) {
            let record = self.w.record(id);
            match record.layout.find(field) {
                Some(at) => {
                    let value = self.w.cells[record.start + at].value;
                    if !value.is_open() {
                        return value;
                    }
                }
                None if record.complete => {
                    let (name, record) = (self.w.text(field).to_owned(), self.w.text(record.name).to_owned());
                    self.fault(&format!("record `{record}` has no field `{name}`"), "no such field");
                    return ValueId::UNSET;
                }
                None => {}
            }
        }
        self.w.values.field(base, field, ty)
    }

    /// Folds `left # right`: concatenates strings or lists.
    pub(crate) fn fold_paste(&mut self, left: ValueId, right: ValueId, ty: TypeId) -> ValueId {
        if self.w.values.element(ty).is_some() {
            if let (Node::List(a), Node::List(b)) = (self.w.values.node(left), self.w.values.node(right)) {
                let mut items = self.w.values.kids(a).to_vec();
                items.extend_from_slice(self.w.values.kids(b));
                self.spend(items.len() as u64 / 8);
                let ty = self.concatenated_type(left, ty);
                let element = self.w.values.element(ty).unwrap_or(TypeId::ANY);
                return self.w.values.list(&items, element);
            }
        } else if let (Some(a), Some(b)) = (self.text_of(left), self.text_of(right)) {
            let code =
                matches!(self.w.values.node(left), Node::Code(_)) || matches!(self.w.values.node(right), Node::Code(_));
            let Some(text) = self.joined(a, b) else {
                return ValueId::UNSET;
            };
            return if code {
                self.w.values.code(text)
            } else {
                self.w.values.str(text)
            };
        }
        self.w.values.paste(left, right, ty)
    }

    /// Returns the width of a `bits` type.
    pub(crate) fn width(&self, ty: TypeId) -> Option<u32> {
        match self.w.values.get_type(ty) {
            Type::Bits(width) => Some(*width),
            _ => None,
        }
    }
}
