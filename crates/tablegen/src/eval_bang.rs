//! Evaluates operators in the source: checks their arguments and determines the type of the result.

use crate::ast::{Expr, TypeExpr};
use crate::diagnostic::Diagnostic;
use crate::evaluator::{Evaluator, Scope};
use crate::resolver::Resolver;
use crate::source::Span;
use crate::token::Bang;
use crate::value::{TypeId, ValueId};

impl Evaluator {
    fn wrong<T>(&mut self, op: Bang, value: ValueId, span: Span, want: &str) -> Option<T> {
        let have = self.w.type_text(self.w.values.type_of(value));
        let text = self.w.brief(value);
        self.report(Diagnostic::error(
            format!("`!{}` expects {want}, found `{text}` of type `{have}`", op.text()),
            span,
            format!("expected {want}"),
        ));
        None
    }

    fn int_arg(&mut self, op: Bang, expr: &Expr) -> Option<ValueId> {
        let value = self.eval(expr, Some(TypeId::INT))?;
        let ty = self.w.values.type_of(value);
        if value == ValueId::UNSET || !self.w.type_converts(ty, TypeId::INT) {
            return self.wrong(op, value, expr.span, "a number");
        }
        Some(value)
    }

    fn str_arg(&mut self, op: Bang, expr: &Expr) -> Option<ValueId> {
        let value = self.eval(expr, Some(TypeId::STR))?;
        if self.w.values.type_of(value) != TypeId::STR {
            return self.wrong(op, value, expr.span, "a string");
        }
        Some(value)
    }

    fn dag_arg(&mut self, op: Bang, expr: &Expr) -> Option<ValueId> {
        let value = self.eval(expr, Some(TypeId::DAG))?;
        if self.w.values.type_of(value) != TypeId::DAG {
            return self.wrong(op, value, expr.span, "a dag");
        }
        Some(value)
    }

    /// Evaluates a list argument; returns it with its element type.
    fn list_arg(&mut self, op: Bang, expr: &Expr, expected: Option<TypeId>) -> Option<(ValueId, TypeId)> {
        let value = self.untyped(expr, expected)?;
        match self.w.values.element(self.w.values.type_of(value)) {
            Some(element) => Some((value, element)),
            None => self.wrong(op, value, expr.span, "a list"),
        }
    }

    /// Evaluates an expression without an expected type. An empty list gets the type `fallback`.
    fn untyped(&mut self, expr: &Expr, fallback: Option<TypeId>) -> Option<ValueId> {
        let value = self.eval(expr, None)?;
        let element = self.w.values.element(self.w.values.type_of(value));
        if element == Some(TypeId::ANY) && fallback.is_some() {
            return self.eval(expr, fallback);
        }
        Some(value)
    }

    /// Folds an operator with several arguments as binary operators, from the right.
    fn done_pairwise(&mut self, op: Bang, args: &[ValueId], ty: TypeId) -> Option<ValueId> {
        let (last, rest) = args.split_last()?;
        rest.iter()
            .rev()
            .try_fold(*last, |right, left| self.done(op, &[*left, right], ty))
    }

    fn done(&mut self, op: Bang, args: &[ValueId], ty: TypeId) -> Option<ValueId> {
        // Outside of records, loops and multiclasses the result of `!instances` is final.
        let r = Resolver::last(op == Bang::Instances && self.at_top() && self.current.is_none());
        Some(self.fold(op, args, ty, &r))
    }

    /// Returns the type between `<` and `>`. Depending on the operator, it is required, optional or
    /// forbidden.
    fn type_arg(&mut self, op: Bang, span: Span, ty: Option<&TypeExpr>) -> Option<Option<TypeId>> {
        let needed = matches!(
            op,
            Bang::Cast | Bang::IsA | Bang::Exists | Bang::Instances | Bang::GetDagArg
        );
        match ty {
            Some(ty) if op == Bang::GetDagOp => {
                let ty = self.type_expr(ty)?;
                if !self.w.values.is_record(ty) {
                    let have = self.w.type_text(ty);
                    self.report(Diagnostic::error(
                        "`!getdagop` gives a record",
                        span,
                        format!("`{have}` is no class"),
                    ));
                    return None;
                }
                Some(Some(ty))
            }
            Some(ty) if needed => Some(Some(self.type_expr(ty)?)),
            Some(_) => {
                self.report(Diagnostic::error(
                    format!("`!{}` takes no type", op.text()),
                    span,
                    "remove the `<...>`",
                ));
                None
            }
            None if needed => {
                self.report(Diagnostic::error(
                    format!("`!{}` needs a type", op.text()),
                    span,
                    format!("write `!{}<type>(...)`", op.text()),
                ));
                None
            }
            None => Some(None),
        }
    }

    pub(crate) fn bang(
        &mut self,
        op: Bang,
        op_span: Span,
        ty: Option<&TypeExpr>,
        args: &[Expr],
        expected: Option<TypeId>,
    ) -> Option<ValueId> {
        let asked = self.type_arg(op, op_span, ty)?;
        match op {
            Bang::Add
            | Bang::Mul
            | Bang::Sub
            | Bang::Div
            | Bang::And
            | Bang::Or
            | Bang::Xor
            | Bang::Shl
            | Bang::Sra
            | Bang::Srl
            | Bang::Not
            | Bang::LogTwo => {
                let mut values = Vec::with_capacity(args.len());
                for arg in args {
                    values.push(self.int_arg(op, arg)?);
                }
                if op.arity().1 == usize::MAX {
                    return self.done_pairwise(op, &values, TypeId::INT);
                }
                self.done(op, &values, TypeId::INT)
            }
            Bang::Eq | Bang::Ne | Bang::Lt | Bang::Le | Bang::Gt | Bang::Ge => self.comparison(op, args),
            Bang::If => {
                let test = self.int_arg(op, &args[0])?;
                // The arm that is not taken may have other errors, but its names must exist.
                self.choice(&[(test, &args[1])], Some(&args[2]), expected)
            }
            Bang::Cast => {
                let want = asked?;
                let value = self.eval(&args[0], Some(want))?;
                self.done(op, &[value], want)
            }
            Bang::IsA => {
                let carrier = self.w.values.list(&[], asked?);
                let value = self.eval(&args[0], None)?;
                self.done(op, &[carrier, value], TypeId::INT)
            }
            Bang::Exists => {
                let carrier = self.w.values.list(&[], asked?);
                let name = self.str_arg(op, &args[0])?;
                self.done(op, &[carrier, name], TypeId::INT)
            }
            Bang::Instances => {
                let pattern = match args.first() {
                    Some(pattern) => vec![self.str_arg(op, pattern)?],
                    None => Vec::new(),
                };
                let ty = self.w.values.list_of(asked?);
                self.done(op, &pattern, ty)
            }
            Bang::Initialized => {
                let value = self.eval(&args[0], None)?;
                self.done(op, &[value], TypeId::INT)
            }
            Bang::Repr => {
                let value = self.eval(&args[0], None)?;
                self.done(op, &[value], TypeId::STR)
            }
            Bang::StrConcat | Bang::ToLower | Bang::ToUpper | Bang::Match => {
                let mut values = Vec::with_capacity(args.len());
                for arg in args {
                    values.push(self.str_arg(op, arg)?);
                }
                match op {
                    Bang::Match => self.done(op, &values, TypeId::BIT),
                    Bang::StrConcat => self.done_pairwise(op, &values, TypeId::STR),
                    _ => self.done(op, &values, TypeId::STR),
                }
            }
            Bang::Substr => {
                let mut values = vec![self.str_arg(op, &args[0])?];
                for arg in &args[1..] {
                    values.push(self.int_arg(op, arg)?);
                }
                if values.len() == 2 {
                    values.push(self.w.values.int(i64::MAX));
                }
                self.done(op, &values, TypeId::STR)
            }
            Bang::Find => {
                let mut values = vec![self.str_arg(op, &args[0])?, self.str_arg(op, &args[1])?];
                if let Some(start) = args.get(2) {
                    values.push(self.int_arg(op, start)?);
                } else {
                    values.push(self.w.values.int(0));
                }
                self.done(op, &values, TypeId::INT)
            }
            Bang::Interleave => {
                let (list, element) = self.list_arg(op, &args[0], None)?;
                let fits = element == TypeId::STR || self.w.type_converts(element, TypeId::INT);
                if !fits {
                    return self.wrong(op, list, args[0].span, "a list of strings or numbers");
                }
                let delimiter = self.str_arg(op, &args[1])?;
                self.done(op, &[list, delimiter], TypeId::STR)
            }
            Bang::Subst => {
                let value = self.eval(&args[2], expected)?;
                let ty = self.w.values.type_of(value);
                let target = self.eval(&args[0], Some(ty))?;
                let new = self.eval(&args[1], Some(ty))?;
                self.done(op, &[target, new, value], ty)
            }
            Bang::Size | Bang::Empty => {
                let value = self.eval(&args[0], None)?;
                let ty = self.w.values.type_of(value);
                let fits = ty == TypeId::STR || ty == TypeId::DAG || self.w.values.element(ty).is_some();
                if !fits {
                    return self.wrong(op, value, args[0].span, "a list, dag or string");
                }
                self.done(op, &[value], TypeId::INT)
            }
            Bang::Con | Bang::Dag => self.dag_operator(op, args),
            Bang::GetDagOp
            | Bang::SetDagOp
            | Bang::GetDagOpName
            | Bang::SetDagOpName
            | Bang::GetDagArg
            | Bang::GetDagName
            | Bang::SetDagArg
            | Bang::SetDagName => self.dag_access(op, args, asked),
            Bang::Foreach | Bang::Filter | Bang::Sort | Bang::Foldl => self.binding_operator(op, args, expected),
            _ => self.list_operator(op, args, expected),
        }
    }

    fn comparison(&mut self, op: Bang, args: &[Expr]) -> Option<ValueId> {
        let left = self.eval(&args[0], None)?;
        let right = self.eval(&args[1], None)?;
        let (a, b) = (self.w.values.type_of(left), self.w.values.type_of(right));
        let numbers = self.w.type_converts(a, TypeId::INT) && self.w.type_converts(b, TypeId::INT);
        let strings = a == TypeId::STR && b == TypeId::STR;
        let records = self.w.values.is_record(a) && self.w.values.is_record(b);
        let equality = matches!(op, Bang::Eq | Bang::Ne);
        if left == ValueId::UNSET || !(numbers || strings || records && equality) {
            let (a, b) = (self.w.type_text(a), self.w.type_text(b));
            let span = args[0].span.to(args[1].span);
            self.report(Diagnostic::error(
                format!("`!{}` cannot compare a `{a}` with a `{b}`", op.text()),
                span,
                "numbers, strings and, for equality, records can be compared",
            ));
            return None;
        }
        self.done(op, &[left, right], TypeId::BIT)
    }

    pub(crate) fn cond(
        &mut self,
        cases: &[(Expr, Expr)],
        default: Option<&Expr>,
        expected: Option<TypeId>,
    ) -> Option<ValueId> {
        let mut tests = Vec::with_capacity(cases.len());
        for (test, value) in cases {
            tests.push((self.int_arg(Bang::Cond, test)?, value));
        }
        self.choice(&tests, default, expected)
    }

    /// Returns the first value whose condition is true. Its type is the common type of all values.
    pub(crate) fn choice(
        &mut self,
        cases: &[(ValueId, &Expr)],
        default: Option<&Expr>,
        expected: Option<TypeId>,
    ) -> Option<ValueId> {
        let exprs: Vec<&Expr> = cases.iter().map(|case| case.1).chain(default).collect();
        let mut values = Vec::with_capacity(exprs.len());
        let mut common = TypeId::ANY;
        let mut common_span = exprs.first()?.span;
        for expr in exprs {
            let value = self.eval(expr, expected)?;
            let ty = self.w.values.type_of(value);
            let Some(joined) = self.w.common_type(common, ty) else {
                let (a, b) = (self.w.type_text(common), self.w.type_text(ty));
                self.report(
                    Diagnostic::error(
                        format!("a choice between a `{a}` and a `{b}`, which have no common type"),
                        expr.span,
                        format!("this is a `{b}`"),
                    )
                    .secondary(common_span, format!("this is a `{a}`")),
                );
                return None;
            };
            if joined != common {
                common_span = expr.span;
            }
            common = joined;
            values.push(value);
        }
        if let ([(test, _)], Some(_)) = (cases, default) {
            return self.done(Bang::If, &[*test, values[0], values[1]], common);
        }
        let mut args = Vec::with_capacity(values.len() * 2);
        for (case, value) in cases.iter().zip(&values) {
            args.extend([case.0, *value]);
        }
        if default.is_some() {
            let one = self.w.values.int(1);
            args.push(one);
            args.extend(values.last());
        }
        self.done(Bang::Cond, &args, common)
    }

    fn list_operator(&mut self, op: Bang, args: &[Expr], expected: Option<TypeId>) -> Option<ValueId> {
        match op {
            Bang::Head => {
                let (list, element) = self.list_arg(op, &args[0], None)?;
                self.done(op, &[list], element)
            }
            Bang::Tail => {
                let (list, element) = self.list_arg(op, &args[0], expected)?;
                let ty = self.w.values.list_of(element);
                self.done(op, &[list], ty)
            }
            Bang::ListConcat | Bang::ListRemove => {
                let mut values = Vec::with_capacity(args.len());
                let mut common = TypeId::ANY;
                for (at, arg) in args.iter().enumerate() {
                    // Without an expected type, the first list determines the type of the others.
                    let first = (at > 0).then(|| self.w.values.list_of(common));
                    let list = self.eval(arg, expected.or(first))?;
                    let Some(element) = self.w.values.element(self.w.values.type_of(list)) else {
                        return self.wrong(op, list, arg.span, "a list");
                    };
                    let Some(joined) = self.w.common_type(common, element) else {
                        let want = format!("a list of `{}`", self.w.type_text(common));
                        return self.wrong(op, list, arg.span, &want);
                    };
                    common = joined;
                    values.push(list);
                }
                let ty = self.w.values.list_of(common);
                self.done_pairwise(op, &values, ty)
            }
            Bang::ListFlatten => {
                let (list, element) = self.list_arg(op, &args[0], None)?;
                let ty = match self.w.values.element(element) {
                    Some(_) => element,
                    None => self.w.values.type_of(list),
                };
                self.done(op, &[list], ty)
            }
            Bang::ListSplat => {
                let element = expected.and_then(|ty| self.w.values.element(ty));
                let value = self.untyped(&args[0], element)?;
                let count = self.int_arg(op, &args[1])?;
                let ty = self.w.values.type_of(value);
                let ty = self.w.values.list_of(ty);
                self.done(op, &[value, count], ty)
            }
            _ => {
                // `!range` takes one list, or one to three numbers.
                let ints = self.w.values.list_of(TypeId::INT);
                let mut values = Vec::with_capacity(args.len());
                for arg in args {
                    let value = self.eval(arg, None)?;
                    let ty = self.w.values.type_of(value);
                    let list = args.len() == 1 && self.w.values.element(ty).is_some();
                    if value == ValueId::UNSET || !list && !self.w.type_converts(ty, TypeId::INT) {
                        return self.wrong(op, value, arg.span, "a number");
                    }
                    values.push(value);
                }
                // Numbers are normalized to start, end and step.
                let lists = values
                    .first()
                    .map(|only| self.w.values.type_of(*only))
                    .is_some_and(|ty| self.w.values.element(ty).is_some());
                if lists {
                    values[0] = self.done(Bang::Size, &values, TypeId::INT)?;
                }
                if values.len() == 1 {
                    values.insert(0, self.w.values.int(0));
                }
                if values.len() == 2 {
                    values.push(self.w.values.int(1));
                }
                self.done(op, &values, ints)
            }
        }
    }

    /// Returns the name of the variable that an operator binds.
    fn variable(&mut self, op: Bang, expr: &Expr) -> Option<crate::strings::Symbol> {
        let name = Evaluator::plain_name(expr);
        if name.is_none() {
            self.report(Diagnostic::error(
                format!("`!{}` needs the name of a variable here", op.text()),
                expr.span,
                "expected an identifier",
            ));
        }
        name
    }

    fn binding_operator(&mut self, op: Bang, args: &[Expr], expected: Option<TypeId>) -> Option<ValueId> {
        if op == Bang::Foldl {
            let init = self.untyped(&args[0], expected)?;
            let ty = self.w.values.type_of(init);
            let (list, element) = self.list_arg(op, &args[1], None)?;
            let (first, second) = (self.variable(op, &args[2])?, self.variable(op, &args[3])?);
            let sum = self.w.values.var(first, ty);
            let item = self.w.values.var(second, element);
            self.scopes.push(Scope::Variable(first, sum));
            self.scopes.push(Scope::Variable(second, item));
            let body = self.typed(&args[4], ty);
            self.scopes.truncate(self.scopes.len() - 2);
            return self.done(op, &[init, list, sum, item, body?], ty);
        }
        let name = self.variable(op, &args[0])?;
        let list = self.untyped(&args[1], if op == Bang::Foreach { None } else { expected })?;
        let list_ty = self.w.values.type_of(list);
        let is_dag = op == Bang::Foreach && list_ty == TypeId::DAG;
        let element = match self.w.values.element(list_ty) {
            Some(element) => element,
            // A dag may contain any value; in practice its parts are records.
            None if is_dag => TypeId::DAG,
            None => return self.wrong(op, list, args[1].span, "a list"),
        };
        let element = if is_dag { TypeId::ANY } else { element };
        let variable = self.w.values.var(name, element);
        self.scopes.push(Scope::Variable(name, variable));
        let inner = match op {
            Bang::Foreach if !is_dag => expected.and_then(|ty| self.w.values.element(ty)),
            Bang::Filter => Some(TypeId::BIT),
            _ => None,
        };
        let body = self.eval(&args[2], inner);
        self.scopes.pop();
        let body = body?;
        let body_ty = self.w.values.type_of(body);
        let ty = match op {
            Bang::Foreach if is_dag => TypeId::DAG,
            Bang::Foreach => self.w.values.list_of(body_ty),
            Bang::Filter if !self.w.type_converts(body_ty, TypeId::INT) => {
                return self.wrong(op, body, args[2].span, "a condition");
            }
            Bang::Sort if body_ty != TypeId::STR && !self.w.type_converts(body_ty, TypeId::INT) => {
                return self.wrong(op, body, args[2].span, "a number or string as key");
            }
            _ => list_ty,
        };
        self.done(op, &[variable, list, body], ty)
    }

    fn dag_operator(&mut self, op: Bang, args: &[Expr]) -> Option<ValueId> {
        if op == Bang::Con {
            let mut values = Vec::with_capacity(args.len());
            for arg in args {
                values.push(self.dag_arg(op, arg)?);
            }
            return self.done_pairwise(op, &values, TypeId::DAG);
        }
        // The operator may have any type, as in a dag literal.
        let operator = self.eval(&args[0], Some(TypeId::RECORD))?;
        let unset = ValueId::UNSET;
        let values = self.eval(&args[1], None)?;
        if values != unset && self.w.values.element(self.w.values.type_of(values)).is_none() {
            return self.wrong(op, values, args[1].span, "a list of values or `?`");
        }
        let strings = self.w.values.list_of(TypeId::STR);
        let names = self.eval(&args[2], Some(strings))?;
        if names != unset && !self.w.type_is(self.w.values.type_of(names), strings) {
            return self.wrong(op, names, args[2].span, "a list of strings or `?`");
        }
        if values == unset && names == unset {
            self.report(Diagnostic::error(
                "`!dag` needs values or names",
                args[1].span.to(args[2].span),
                "only one of them may be `?`",
            ));
            return None;
        }
        self.done(op, &[operator, values, names], TypeId::DAG)
    }

    fn record_arg(&mut self, op: Bang, expr: &Expr) -> Option<ValueId> {
        let value = self.eval(expr, Some(TypeId::RECORD))?;
        let ty = self.w.values.type_of(value);
        if value == ValueId::UNSET || ty != TypeId::ANY && !self.w.values.is_record(ty) {
            return self.wrong(op, value, expr.span, "a record");
        }
        Some(value)
    }

    fn dag_access(&mut self, op: Bang, args: &[Expr], asked: Option<TypeId>) -> Option<ValueId> {
        let mut values = vec![self.dag_arg(op, &args[0])?];
        match op {
            Bang::SetDagOp => values.push(self.record_arg(op, &args[1])?),
            Bang::SetDagOpName => values.push(self.str_arg(op, &args[1])?),
            Bang::GetDagArg | Bang::GetDagName | Bang::SetDagArg | Bang::SetDagName => {
                let key = self.eval(&args[1], None)?;
                let ty = self.w.values.type_of(key);
                let fits = ty == TypeId::STR || self.w.type_converts(ty, TypeId::INT) && key != ValueId::UNSET;
                if !fits {
                    return self.wrong(op, key, args[1].span, "an index or a name");
                }
                values.push(key);
                match op {
                    Bang::SetDagArg => values.push(self.eval(&args[2], None)?),
                    Bang::SetDagName => {
                        let name = self.eval(&args[2], Some(TypeId::STR))?;
                        let ty = self.w.values.type_of(name);
                        if name != ValueId::UNSET && ty != TypeId::STR {
                            return self.wrong(op, name, args[2].span, "a string or `?`");
                        }
                        values.push(name);
                    }
                    _ => {}
                }
            }
            _ => {}
        }
        let ty = match op {
            Bang::GetDagOp => asked.unwrap_or(TypeId::RECORD),
            Bang::GetDagArg => asked?,
            Bang::GetDagName | Bang::GetDagOpName => TypeId::STR,
            _ => TypeId::DAG,
        };
        self.done(op, &values, ty)
    }
}
