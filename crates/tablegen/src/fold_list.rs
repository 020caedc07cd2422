//! Folds the operators on lists and dags, and those that evaluate an expression for every element.

use crate::evaluator::Evaluator;
use crate::resolver::Resolver;
use crate::strings::Symbol;
use crate::token::Bang;
use crate::value::{Ids, Node, Pairs, TypeId, ValueId};

/// The maximum length of a list.
pub(crate) const MAX_LIST: usize = 1 << 20;

impl Evaluator {
    fn list_items(&self, id: ValueId) -> Option<Ids> {
        match self.w.values.node(id) {
            Node::List(kids) => Some(self.w.values.kid_vec(kids)),
            _ => None,
        }
    }

    /// Returns operator and arguments of a dag, with their names.
    fn dag_parts(&self, id: ValueId) -> Option<Pairs> {
        match self.w.values.node(id) {
            Node::Dag(kids) => Some(self.w.values.pair_vec(kids)),
            _ => None,
        }
    }

    /// Creates a list of type `ty`, unless it is too long.
    fn make_list(&mut self, items: &[ValueId], ty: TypeId) -> ValueId {
        if items.len() > MAX_LIST {
            self.fault("the list is too long", "more than 1,048,576 elements");
            return ValueId::UNSET;
        }
        self.spend(items.len() as u64 / 8);
        let element = self.w.values.element(ty).unwrap_or(TypeId::ANY);
        self.w.values.list(items, element)
    }

    pub(crate) fn fold_list_op(&mut self, op: Bang, args: &[ValueId], ty: TypeId, r: &Resolver) -> Option<ValueId> {
        match op {
            Bang::Size | Bang::Empty => {
                let size = match self.w.values.node(args[0]) {
                    Node::List(kids) => self.w.values.kids(kids).len(),
                    Node::Dag(kids) => self.w.values.pairs(kids).len() - 1,
                    Node::Str(text) | Node::Code(text) => self.w.text(text).len(),
                    _ => return None,
                };
                let value = if op == Bang::Size {
                    size as i64
                } else {
                    i64::from(size == 0)
                };
                Some(self.w.values.int(value))
            }
            Bang::Head | Bang::Tail => {
                let items = self.list_items(args[0])?;
                let Some((first, rest)) = items.split_first() else {
                    self.fault(&format!("`!{}` of an empty list", op.text()), "the list is empty");
                    return Some(ValueId::UNSET);
                };
                if op == Bang::Head {
                    return Some(*first);
                }
                let ty = self.concatenated_type(args[0], ty);
                Some(self.make_list(rest, ty))
            }
            Bang::ListConcat => {
                let mut items = Ids::new();
                for arg in args {
                    match self.w.values.node(*arg) {
                        Node::List(kids) => items.extend_from_slice(self.w.values.kids(kids)),
                        _ => return None,
                    }
                }
                let ty = self.concatenated_type(args[0], ty);
                Some(self.make_list(&items, ty))
            }
            Bang::ListFlatten => {
                let mut out = Vec::new();
                for item in self.list_items(args[0])? {
                    match self.list_items(item) {
                        Some(inner) => out.extend(inner),
                        None if self.w.values.element(self.w.values.type_of(item)).is_some() => {
                            return None;
                        }
                        None => out.push(item),
                    }
                }
                Some(self.make_list(&out, ty))
            }
            Bang::ListSplat => {
                let count = self.w.as_int(args[1])?;
                let Some(count) = usize::try_from(count).ok().filter(|one| *one <= MAX_LIST) else {
                    self.fault(
                        &format!("`!listsplat` of {count} elements"),
                        "0 to 1,048,576 are allowed",
                    );
                    return Some(ValueId::UNSET);
                };
                Some(self.make_list(&vec![args[0]; count], ty))
            }
            Bang::ListRemove => {
                let (items, gone) = (self.list_items(args[0])?, self.list_items(args[1])?);
                let gone: rustc_hash::FxHashSet<ValueId> = gone.into_iter().collect();
                let kept: Vec<ValueId> = items.into_iter().filter(|item| !gone.contains(item)).collect();
                let ty = self.concatenated_type(args[0], ty);
                Some(self.make_list(&kept, ty))
            }
            Bang::Range => self.fold_range(args, ty),
            Bang::Interleave => {
                let items = self.list_items(args[0])?;
                let delimiter = self.w.as_str(args[1])?;
                let mut out = String::new();
                let is_code = |item: &ValueId| matches!(self.w.values.node(*item), Node::Code(_));
                let code = items.iter().any(is_code);
                for (at, item) in items.into_iter().enumerate() {
                    if at > 0 {
                        out.push_str(self.w.text(delimiter));
                    }
                    let text = match self.w.values.node(item) {
                        Node::Bits(_) if self.w.as_int(item).is_none() => return None,
                        _ => self.text_of(item)?,
                    };
                    out.push_str(self.w.text(text));
                }
                let value = self.string(&out);
                match self.w.as_str(value) {
                    Some(text) if code => Some(self.w.values.code(text)),
                    _ => Some(value),
                }
            }
            Bang::Foreach => {
                if self.w.values.type_of(args[1]) == TypeId::DAG {
                    self.dag_parts(args[1])?;
                    return self.map_dag(args[0], args[1], args[2], r);
                }
                let items = self.list_items(args[1])?;
                let mut out = items;
                for item in &mut out {
                    *item = self.apply_to(args[2], args[0], *item, r);
                }
                Some(self.make_list(&out, ty))
            }
            Bang::Filter => {
                let items = self.list_items(args[1])?;
                let mut out = Ids::new();
                for item in items {
                    let keep = self.apply_to(args[2], args[0], item, r);
                    if self.w.as_int(keep)? != 0 {
                        out.push(item);
                    }
                }
                let ty = self.concatenated_type(args[1], ty);
                Some(self.make_list(&out, ty))
            }
            Bang::Foldl => {
                let items = self.list_items(args[1])?;
                let mut value = args[0];
                for item in items {
                    value = self.apply(args[4], &[(args[2], value), (args[3], item)], r);
                }
                Some(value)
            }
            Bang::Sort => self.fold_sort(args, ty, r),
            _ => self.fold_dag_op(op, args, ty),
        }
    }

    /// Returns the type of a concatenation that starts with `first`: as in llvm-tblgen, it has the
    /// element type of the first list.
    pub(crate) fn concatenated_type(&self, first: ValueId, ty: TypeId) -> TypeId {
        let own = self.w.values.type_of(first);
        match self.w.values.element(own) {
            Some(element) if element != TypeId::ANY => own,
            _ => ty,
        }
    }

    fn fold_range(&mut self, args: &[ValueId], ty: TypeId) -> Option<ValueId> {
        let (start, end, step) = match args {
            [only] if self.w.values.element(self.w.values.type_of(*only)).is_some() => {
                (0, self.list_items(*only)?.len() as i64, 1)
            }
            [end] => (0, self.w.as_int(*end)?, 1),
            [start, end] => (self.w.as_int(*start)?, self.w.as_int(*end)?, 1),
            [start, end, step] => (self.w.as_int(*start)?, self.w.as_int(*end)?, self.w.as_int(*step)?),
            _ => return None,
        };
        if step == 0 {
            self.fault("`!range` with a step of 0", "the step is 0");
            return Some(ValueId::UNSET);
        }
        let mut items = Vec::new();
        let mut at = start;
        while if step > 0 { at < end } else { at > end } {
            if items.len() > MAX_LIST {
                break;
            }
            items.push(self.w.values.int(at));
            match at.checked_add(step) {
                Some(next) => at = next,
                None => break,
            }
        }
        Some(self.make_list(&items, ty))
    }

    fn map_dag(&mut self, variable: ValueId, dag: ValueId, body: ValueId, r: &Resolver) -> Option<ValueId> {
        let mut parts = self.dag_parts(dag)?;
        for part in &mut parts {
            part.0 = match self.map_dag(variable, part.0, body, r) {
                Some(inner) => inner,
                None => self.apply(body, &[(variable, part.0)], r),
            };
        }
        Some(self.w.values.dag(&parts))
    }

    fn fold_sort(&mut self, args: &[ValueId], ty: TypeId, r: &Resolver) -> Option<ValueId> {
        let items = self.list_items(args[1])?;
        let mut keyed = Vec::with_capacity(items.len());
        for item in items {
            let key = self.apply_to(args[2], args[0], item, r);
            if self.w.as_int(key).is_none() && self.w.as_str(key).is_none() {
                return None;
            }
            keyed.push((key, item));
        }
        self.spend(keyed.len() as u64);
        keyed.sort_by(|(a, _), (b, _)| match (self.w.as_str(*a), self.w.as_str(*b)) {
            (Some(a), Some(b)) => self.w.text(a).cmp(self.w.text(b)),
            _ => self.w.as_int(*a).cmp(&self.w.as_int(*b)),
        });
        let sorted: Vec<ValueId> = keyed.into_iter().map(|(_, item)| item).collect();
        Some(self.make_list(&sorted, ty))
    }

    fn fold_dag_op(&mut self, op: Bang, args: &[ValueId], ty: TypeId) -> Option<ValueId> {
        match op {
            Bang::Con => {
                let mut parts = self.dag_parts(args[0])?;
                for arg in &args[1..] {
                    let more = self.dag_parts(*arg)?;
                    let (first, second) = (parts[0], more[0]);
                    let known = |id| matches!(self.w.values.node(id), Node::Def(_) | Node::Unset);
                    if !known(first.0) || !known(second.0) {
                        return None;
                    }
                    if first.0 == ValueId::UNSET {
                        parts[0].0 = second.0;
                    } else if second.0 != ValueId::UNSET && first.0 != second.0 {
                        let (a, b) = (self.w.brief(*arg), self.w.brief(args[0]));
                        self.fault("`!con` of dags with different operators", &format!("`{b}` and `{a}`"));
                        return Some(ValueId::UNSET);
                    }
                    if first.1 == Symbol::NONE {
                        parts[0].1 = second.1;
                    }
                    parts.extend_from_slice(&more[1..]);
                    self.spend(parts.len() as u64 / 8);
                }
                if parts.len() > MAX_LIST {
                    self.fault("the dag is too long", "more than 1,048,576 arguments");
                    return Some(ValueId::UNSET);
                }
                Some(self.w.values.dag(&parts))
            }
            Bang::Dag => self.fold_make_dag(args),
            Bang::GetDagOp => {
                let operator = self.dag_parts(args[0])?[0].0;
                if let Node::Def(_) = self.w.values.node(operator)
                    && !self.w.type_is(self.w.values.type_of(operator), ty)
                {
                    let (text, want) = (self.w.brief(operator), self.w.type_text(ty));
                    self.fault(
                        &format!("the operator `{text}` is not a `{want}`"),
                        &format!("expected a `{want}`"),
                    );
                    return Some(ValueId::UNSET);
                }
                Some(operator)
            }
            Bang::SetDagOp => {
                let mut parts = self.dag_parts(args[0])?;
                parts[0].0 = args[1];
                Some(self.w.values.dag(&parts))
            }
            Bang::GetDagOpName => {
                let name = self.dag_parts(args[0])?[0].1;
                Some(self.dag_name_value(name))
            }
            Bang::SetDagOpName => {
                let mut parts = self.dag_parts(args[0])?;
                parts[0].1 = self.name_of(args[1])?;
                Some(self.w.values.dag(&parts))
            }
            Bang::GetDagArg | Bang::GetDagName | Bang::SetDagArg | Bang::SetDagName => {
                let mut parts = self.dag_parts(args[0])?;
                let at = match self.dag_index(&parts, args[1])? {
                    Ok(at) => at,
                    Err(message) => {
                        let text = self.w.brief(args[0]);
                        self.fault(&format!("{message} in the dag `{text}`"), "no such argument");
                        return Some(ValueId::UNSET);
                    }
                };
                match op {
                    Bang::GetDagArg => {
                        let value = parts[at].0;
                        let have = self.w.values.type_of(value);
                        // A value that does not convert counts as absent. A value that converts
                        // stays unconverted.
                        let fits = self.w.type_converts(have, ty);
                        Some(if fits { value } else { ValueId::UNSET })
                    }
                    Bang::GetDagName => Some(self.dag_name_value(parts[at].1)),
                    Bang::SetDagArg => {
                        parts[at].0 = args[2];
                        Some(self.w.values.dag(&parts))
                    }
                    _ => {
                        parts[at].1 = self.name_of(args[2])?;
                        Some(self.w.values.dag(&parts))
                    }
                }
            }
            _ => None,
        }
    }

    fn dag_name_value(&mut self, name: Symbol) -> ValueId {
        match name.some() {
            Some(name) => self.w.values.str(name),
            None => ValueId::UNSET,
        }
    }

    /// Converts a string to a name in a dag; `?` stands for none.
    fn name_of(&self, id: ValueId) -> Option<Symbol> {
        if id == ValueId::UNSET {
            return Some(Symbol::NONE);
        }
        self.w.as_str(id)
    }

    /// Returns the position in `parts` of the argument with the given index or name.
    fn dag_index(&self, parts: &[(ValueId, Symbol)], key: ValueId) -> Option<Result<usize, String>> {
        if let Some(name) = self.w.as_str(key) {
            let found = parts[1..].iter().position(|part| part.1 == name);
            return Some(
                found
                    .map(|at| at + 1)
                    .ok_or_else(|| format!("no argument `${}`", self.w.text(name))),
            );
        }
        let index = self.w.as_int(key)?;
        let found = usize::try_from(index).ok().filter(|at| *at < parts.len() - 1);
        Some(found.map(|at| at + 1).ok_or_else(|| format!("no argument {index}")))
    }

    /// Folds `!dag(operator, values, names)`.
    fn fold_make_dag(&mut self, args: &[ValueId]) -> Option<ValueId> {
        let unset = |id: ValueId| id == ValueId::UNSET;
        let values = if unset(args[1]) {
            None
        } else {
            Some(self.list_items(args[1])?)
        };
        let names = if unset(args[2]) {
            None
        } else {
            Some(self.list_items(args[2])?)
        };
        let count = match (&values, &names) {
            (Some(values), Some(names)) if values.len() != names.len() => {
                let (a, b) = (values.len(), names.len());
                self.fault(
                    "`!dag` with lists of different lengths",
                    &format!("{a} values and {b} names"),
                );
                return Some(ValueId::UNSET);
            }
            (Some(list), _) | (None, Some(list)) => list.len(),
            (None, None) => 0,
        };
        let mut parts = vec![(args[0], Symbol::NONE)];
        for at in 0..count {
            let value = values.as_ref().map_or(ValueId::UNSET, |list| list[at]);
            let name = match &names {
                Some(list) => self.name_of(list[at])?,
                None => Symbol::NONE,
            };
            parts.push((value, name));
        }
        Some(self.w.values.dag(&parts))
    }

    /// Folds `list[index]` or `list[slice]`. An index out of range is not folded and becomes an
    /// error in the last resolution.
    pub(crate) fn fold_index(&mut self, base: ValueId, index: ValueId, ty: TypeId) -> ValueId {
        let waiting = |this: &mut Self| this.w.values.index(base, index, ty);
        let Node::List(items) = self.w.values.node(base) else {
            return waiting(self);
        };
        if let Some(at) = self.w.as_int(index) {
            let items = self.w.values.kids(items);
            return match usize::try_from(at).ok().and_then(|at| items.get(at)) {
                Some(item) => *item,
                None => waiting(self),
            };
        }
        let items = self.w.values.kid_vec(items);
        let Some(wanted) = self.list_items(index) else {
            return waiting(self);
        };
        let mut out = Vec::with_capacity(wanted.len());
        for one in wanted {
            let at = self.w.as_int(one).and_then(|at| usize::try_from(at).ok());
            match at.and_then(|at| items.get(at)) {
                Some(item) => out.push(*item),
                None => return waiting(self),
            }
        }
        let ty = self.concatenated_type(base, ty);
        self.make_list(&out, ty)
    }
}
