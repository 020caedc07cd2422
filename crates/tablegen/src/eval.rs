//! Evaluates statements in source order: classes, records, multiclasses, loops, `let`.
//!
//! Inside of a loop or multiclass, records are stored as prototypes with variables. The outermost
//! loop or `defm` instantiates them.

use std::rc::Rc;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::args::{ArgValue, Args, Change};
use crate::ast::{
    Arg, AssertStmt, BodyItem, ClassRef, Expr, ExprKind, Ident, LetItem, LetMode, LoopSource, Param, Stmt, TypeExpr,
};
use crate::diagnostic::{Diagnostic, closest};
use crate::evaluator::{Entry, Evaluator, Loop, OpenSet, Scope};
use crate::resolver::Resolver;
use crate::source::Span;
use crate::step::StepKind;
use crate::strings::Symbol;
use crate::token::Bang;
use crate::value::{ClassId, Node, Type, TypeId, ValueId};
use crate::world::{Assertion, ClassData, FieldData, ParamData, Proto};

/// The widest `bits` type.
pub(crate) const MAX_BITS: i64 = 1 << 16;
impl Evaluator {
    /// Records a step in the history of the current record.
    fn trace_current(&mut self, field: Symbol, kind: StepKind, span: Span, value: ValueId) {
        self.with_current(|this, proto| this.trace(proto, field, kind, span, value));
    }

    /// Runs statements. Stops early only if the program exceeds a limit.
    pub(crate) fn run(&mut self, statements: &[Stmt]) {
        for statement in statements {
            if self.stopped {
                return;
            }
            self.statement(statement);
        }
    }

    /// Returns whether evaluation is outside of loops and multiclasses.
    pub(crate) fn at_top(&self) -> bool {
        self.loops.is_empty() && self.multiclass.is_none()
    }

    pub(crate) fn scoped(&mut self, scope: Scope, body: impl FnOnce(&mut Self)) {
        self.scopes.push(scope);
        body(self);
        self.scopes.pop();
    }

    pub(crate) fn block(&mut self, body: &[Stmt]) {
        self.scoped(Scope::Block(FxHashMap::default()), |this| this.run(body));
    }

    fn statement(&mut self, statement: &Stmt) {
        match statement {
            Stmt::Class {
                name,
                params,
                parents,
                body,
            } => self.class(*name, params, parents, body.as_deref()),
            Stmt::Def {
                name,
                keyword,
                parents,
                body,
            } => self.def(name.as_ref(), *keyword, parents, body),
            Stmt::Defm { name, parents } => self.defm(name.as_ref(), parents),
            Stmt::Multiclass {
                name,
                params,
                parents,
                body,
            } => self.define_multiclass(*name, params, parents, body),
            Stmt::Let { items, body } => {
                // The values are evaluated outside of any record.
                let changes = items.iter().filter_map(|item| self.change(item)).collect();
                self.lets.push(changes);
                self.block(body);
                self.lets.pop();
            }
            Stmt::Foreach { var, source, body } => self.foreach(*var, source, body),
            Stmt::If {
                condition,
                then,
                otherwise,
            } => self.if_statement(condition, then, otherwise),
            Stmt::Defvar { name, value } => self.defvar(*name, value),
            Stmt::Defset { ty, name, body } => self.defset(ty, *name, body),
            Stmt::Deftype { name, ty } => {
                let Some(target) = self.type_expr(ty) else {
                    return;
                };
                let taken = self.type_names.contains_key(&name.name) || self.w.class_names.contains_key(&name.name);
                if taken {
                    return self.already(*name, "type");
                }
                if !self.at_top() || !self.scopes.is_empty() {
                    return self.report(Diagnostic::error(
                        "`deftype` is allowed at the top level only",
                        name.span,
                        "inside another statement",
                    ));
                }
                if self.w.values.is_record(target) {
                    return self.report(Diagnostic::error(
                        "`deftype` cannot rename a class",
                        name.span,
                        "only primitive types can be renamed",
                    ));
                }
                self.type_names.insert(name.name, target);
            }
            Stmt::Assert(assert) => {
                if let Some(assertion) = self.assertion(assert) {
                    self.add_entry(Entry::Assert(assertion));
                }
            }
            Stmt::Dump(value) => {
                if let Some(text) = self.dump_value(value) {
                    self.add_entry(Entry::Dump(text, value.span));
                }
            }
        }
    }

    pub(crate) fn already(&mut self, name: Ident, what: &str) {
        let text = self.w.text(name.name).to_owned();
        self.report(Diagnostic::error(
            format!("{what} `{text}` is defined already"),
            name.span,
            "defined again",
        ));
    }

    /// Evaluates a type; reports an unknown one.
    pub(crate) fn type_expr(&mut self, ty: &TypeExpr) -> Option<TypeId> {
        Some(match ty {
            TypeExpr::Bit => TypeId::BIT,
            TypeExpr::Int => TypeId::INT,
            TypeExpr::Str => TypeId::STR,
            TypeExpr::Dag => TypeId::DAG,
            TypeExpr::Bits(width, span) => {
                if !(0..=MAX_BITS).contains(width) {
                    self.report(Diagnostic::error(
                        format!("`bits<{width}>` is not possible"),
                        *span,
                        format!("0 to {MAX_BITS} bits are possible"),
                    ));
                    return None;
                }
                self.w.values.ty(Type::Bits(*width as u32))
            }
            TypeExpr::List(element) => {
                let element = self.type_expr(element)?;
                self.w.values.list_of(element)
            }
            TypeExpr::Named(name) => {
                if let Some(ty) = self.type_names.get(&name.name) {
                    return Some(*ty);
                }
                let class = self.find_class(*name)?;
                self.w.class(class).ty
            }
        })
    }

    pub(crate) fn find_class(&mut self, name: Ident) -> Option<ClassId> {
        if let Some(class) = self.w.class_names.get(&name.name) {
            return Some(*class);
        }
        let text = self.w.text(name.name).to_owned();
        let names = self.w.class_names.keys().map(|name| self.w.text(*name));
        let near = closest(&text, names).map(str::to_owned);
        let mut diagnostic = Diagnostic::error(
            format!("unknown class `{text}`"),
            name.span,
            "no class of this name so far",
        );
        if self.multiclass_names.contains_key(&name.name) {
            diagnostic = diagnostic.note(format!("`{text}` is a multiclass; `defm` uses those"));
        }
        if let Some(near) = near {
            diagnostic = diagnostic.note(format!("did you mean `{near}`?"));
        }
        self.report(diagnostic);
        None
    }

    /// Evaluates template parameters. Each may refer to earlier ones.
    pub(crate) fn params(
        &mut self,
        owner: Symbol,
        separator: &str,
        params: &[Param],
        mut add: impl FnMut(&mut Self, ParamData),
    ) {
        let mut seen = FxHashSet::default();
        for param in params {
            let Some(ty) = self.type_expr(&param.ty) else {
                continue;
            };
            if !seen.insert(param.name.name) {
                self.already(param.name, "template argument");
                continue;
            }
            let qualified = format!("{}{separator}{}", self.w.text(owner), self.w.text(param.name.name));
            let qualified = self.w.intern(&qualified);
            let mut span = param.name.span;
            let default = match &param.default {
                None => ValueId::UNSET,
                Some(default) => {
                    span = span.to(default.span);
                    self.typed(default, ty).unwrap_or(ValueId::UNSET)
                }
            };
            let default = self.w.spread_bits(default, ty);
            let data = ParamData {
                name: param.name.name,
                qualified,
                ty,
                default,
                span,
            };
            add(self, data);
        }
    }

    fn class(&mut self, name: Ident, params: &[Param], parents: &[ClassRef], body: Option<&[BodyItem]>) {
        if !self.at_top() {
            return self.report(Diagnostic::error(
                "a class cannot be defined inside a loop, `if` or multiclass",
                name.span,
                "move it out",
            ));
        }
        if self.type_names.contains_key(&name.name) {
            return self.already(name, "type");
        }
        let id = match self.w.class_names.get(&name.name) {
            Some(id) => {
                let class = self.w.class(*id);
                if body.is_some() && class.defined {
                    let earlier = class.proto.span;
                    let text = self.w.text(name.name).to_owned();
                    return self.report(
                        Diagnostic::error(
                            format!("class `{text}` is defined twice"),
                            name.span,
                            "defined again here",
                        )
                        .secondary(earlier, "first defined here"),
                    );
                }
                *id
            }
            None => {
                let id = ClassId(self.w.classes.len() as u32);
                let ty = self.w.values.ty(Type::Record(vec![id]));
                let name_value = self.w.values.str(name.name);
                let name_var = format!("{}:NAME", self.w.text(name.name));
                let name_var = self.w.intern(&name_var);
                self.w.classes.push(ClassData {
                    name: name.name,
                    ty,
                    name_var,
                    params: Arc::default(),
                    proto: self.w.new_proto(name_value, name.span),
                    defined: false,
                });
                self.w.class_names.insert(name.name, id);
                id
            }
        };
        let Some(body) = body else {
            return;
        };
        let at = id.0 as usize;
        // A class without parameters, parents and body is a forward declaration, which may be
        // repeated.
        self.w.classes[at].defined = !(params.is_empty() && parents.is_empty() && body.is_empty());
        self.w.classes[at].proto.span = name.span;
        let name_value = self.w.values.str(name.name);
        self.current = Some(Box::new(self.w.new_proto(name_value, name.span)));
        self.current_class = Some(id);
        self.scoped(Scope::Record, |this| {
            this.params(name.name, ":", params, |this, param| {
                Arc::make_mut(&mut this.w.classes[at].params).push(param);
            });
            let own_name = this.w.class(id).name_var;
            let own_name = this.w.values.var(own_name, TypeId::STR);
            this.object_body(parents, body, own_name);
        });
        self.current_class = None;
        if let Some(proto) = self.current.take() {
            self.w.classes[at].proto = *proto;
        }
    }

    /// Evaluates parents, enclosing `let`s and body of the current record or class.
    fn object_body(&mut self, parents: &[ClassRef], body: &[BodyItem], own_name: ValueId) {
        for parent in parents {
            let Some(class) = self.find_class(parent.name) else {
                self.with_current(|_, proto| {
                    proto.faulty = true;
                    proto.lacks_parent = true;
                });
                continue;
            };
            let args = self.args(&parent.args, Some(class));
            self.with_current(|this, proto| {
                this.inherit(proto, class, args.as_deref(), parent.span, own_name);
            });
            self.publish_parents();
        }
        self.with_current(|this, proto| this.apply_lets(proto));
        self.scopes.push(Scope::Block(FxHashMap::default()));
        for item in body {
            if self.stopped {
                break;
            }
            let errors = self.diagnostics.len();
            self.body_item(item);
            if self.diagnostics.len() > errors {
                self.with_current(|_, proto| proto.faulty = true);
            }
        }
        self.scopes.pop();
    }

    /// Returns the type of a field of records of type `ty`. In its own body, a class already has
    /// the fields declared so far.
    pub(crate) fn field_type(&self, ty: TypeId, name: Symbol) -> Option<TypeId> {
        self.w.field_type(ty, name).or_else(|| {
            let (class, proto) = (self.current_class?, self.current.as_ref()?);
            match self.w.values.get_type(ty) {
                Type::Record(classes) if classes.contains(&class) => proto.field(name).map(|field| field.ty),
                _ => None,
            }
        })
    }

    /// Makes the current parents of a class visible, because the class may be used as a type in its
    /// own body.
    fn publish_parents(&mut self) {
        if let (Some(id), Some(proto)) = (self.current_class, &self.current) {
            let class = &mut self.w.classes[id.0 as usize];
            class.proto.supers = proto.supers;
        }
    }

    fn with_current(&mut self, body: impl FnOnce(&mut Self, &mut Proto)) {
        if let Some(mut proto) = self.current.take() {
            body(self, &mut proto);
            self.current = Some(proto);
        }
    }

    pub(crate) fn apply_lets(&mut self, proto: &mut Proto) {
        for at in 0..self.lets.len() {
            let changes = Rc::clone(&self.lets[at]);
            for change in changes.iter() {
                self.set_field(proto, change, false);
            }
        }
    }

    fn body_item(&mut self, item: &BodyItem) {
        match item {
            BodyItem::Field {
                nonconcrete,
                ty,
                name,
                value,
            } => {
                let Some(ty) = self.type_expr(ty) else {
                    return;
                };
                let place = self.w.places.add(name.span);
                let field = FieldData {
                    name: name.name,
                    ty,
                    value: ValueId::UNSET,
                    span: place,
                    decl: place,
                    nonconcrete: *nonconcrete,
                };
                if matches!(self.scopes.last(), Some(Scope::Block(names)) if names.contains_key(&name.name)) {
                    return self.already(*name, "variable");
                }
                // Declare the field before evaluating its value, so that an error in the value does
                // not hide the field.
                let known = self
                    .current
                    .as_ref()
                    .is_some_and(|proto| proto.field(name.name).is_some());
                if !known || value.is_none() {
                    self.with_current(|this, proto| this.add_field(proto, field));
                    if value.is_none() {
                        let kind = if known {
                            StepKind::Redeclared
                        } else {
                            StepKind::Declared
                        };
                        self.trace_current(name.name, kind, name.span, ValueId::UNSET);
                    }
                }
                if let Some(value) = value
                    && let Some(result) = self.eval(value, Some(ty))
                {
                    if known {
                        self.trace_current(name.name, StepKind::Redeclared, value.span, result);
                        let mut set = field;
                        set.value = result;
                        set.span = self.w.places.add_value(value.span, name.span);
                        if self.w.convert(result, ty).is_none() {
                            return self.type_mismatch(&set, result, value.span);
                        }
                        self.with_current(|this, proto| this.add_field(proto, set));
                    } else {
                        let change = Change {
                            name: name.name,
                            name_span: name.span,
                            bits: None,
                            value: result,
                            span: value.span,
                            place: self.w.places.add_value(value.span, name.span),
                            declares: true,
                            mode: LetMode::Replace,
                        };
                        self.with_current(|this, proto| this.set_field(proto, &change, true));
                    }
                }
            }
            BodyItem::Let(item) => {
                if let Some(change) = self.change(item) {
                    self.with_current(|this, proto| this.set_field(proto, &change, true));
                }
            }
            BodyItem::Defvar { name, value } => self.defvar(*name, value),
            BodyItem::Assert(assert) => {
                if let Some(assertion) = self.assertion(assert) {
                    self.with_current(|_, proto| proto.asserts.push(assertion));
                }
            }
            BodyItem::Dump(value) => {
                if let Some(text) = self.dump_value(value) {
                    let span = value.span;
                    self.with_current(|_, proto| proto.dumps.push((text, span)));
                }
            }
        }
    }

    fn assertion(&mut self, assert: &AssertStmt) -> Option<Assertion> {
        Some(Assertion {
            condition: self.typed(&assert.condition, TypeId::INT)?,
            message: self.typed(&assert.message, TypeId::STR)?,
            span: assert.condition.span,
        })
    }

    fn dump_value(&mut self, value: &Expr) -> Option<ValueId> {
        let result = self.eval(value, None)?;
        if self.w.values.type_of(result) == TypeId::STR {
            return Some(result);
        }
        Some(self.fold(Bang::Repr, &[result], TypeId::STR, &Resolver::new()))
    }

    /// Evaluates a `let`. The type of the field, if it is known, is the expected type of the value.
    fn change(&mut self, item: &LetItem) -> Option<Change> {
        let bits = match &item.bits {
            None => None,
            Some(ranges) => Some(self.bit_list(ranges)?),
        };
        let expected = match (&bits, &self.current) {
            (Some(bits), _) => Some(self.w.values.ty(Type::Bits(bits.len() as u32))),
            (None, Some(proto)) => proto.field(item.name.name).map(|field| field.ty),
            _ => None,
        };
        let value = self.eval(&item.value, expected)?;
        Some(Change {
            name: item.name.name,
            name_span: item.name.span,
            bits,
            value,
            span: item.value.span,
            place: self.w.places.add_value(item.value.span, item.name.span),
            declares: false,
            mode: item.mode,
        })
    }

    fn defvar(&mut self, name: Ident, value: &Expr) {
        let Some(value) = self.eval(value, None) else {
            // Define the name anyway, so that its uses cause no follow-up errors.
            self.bind(name.name, ValueId::UNSET);
            return;
        };
        let taken = match self.scopes.last() {
            Some(Scope::Block(names)) => names.contains_key(&name.name),
            None => self.w.globals.contains_key(&name.name) || self.w.record_names.contains_key(&name.name),
            _ => false,
        };
        if taken {
            return self.already(name, "variable");
        }
        if let [.., Scope::Record, Scope::Block(_)] = self.scopes.as_slice()
            && self
                .current
                .as_ref()
                .is_some_and(|proto| proto.field(name.name).is_some())
        {
            return self.already(name, "field");
        }
        self.bind(name.name, value);
    }

    fn bind(&mut self, name: Symbol, value: ValueId) {
        match self.scopes.last_mut() {
            Some(Scope::Block(names)) => {
                names.insert(name, value);
            }
            _ => {
                self.w.globals.insert(name, value);
            }
        }
    }

    fn def(&mut self, name: Option<&Expr>, keyword: Span, parents: &[ClassRef], body: &[BodyItem]) {
        let span = name.map_or(keyword, |name| name.span);
        let mut proto = Box::new(self.w.new_proto(ValueId::UNSET, span));
        match self.object_name(name) {
            Some(value) if value != ValueId::UNSET => proto.name = value,
            None if name.is_some() => return,
            // `?` is no name either.
            _ => {
                let symbol = self.anonymous_name();
                proto.name = self.w.values.str(symbol);
                proto.anonymous = true;
            }
        }
        let own_name = self.own_name(&proto);
        let outer = self.current.replace(proto);
        self.scoped(Scope::Record, |this| {
            this.object_body(parents, body, own_name);
        });
        if let Some(proto) = std::mem::replace(&mut self.current, outer) {
            self.add_entry(Entry::Record(proto));
        }
    }

    /// Returns the value of `NAME` in the parents of a record. An anonymous record in a loop or
    /// multiclass gets its name when it is instantiated.
    pub(crate) fn own_name(&mut self, proto: &Proto) -> ValueId {
        if proto.anonymous && !self.at_top() {
            return self.w.values.var(self.name_symbol, TypeId::STR);
        }
        proto.name
    }

    /// Returns the name of a `def` or `defm`. In a multiclass, a name that does not mention `NAME`
    /// is prefixed with it.
    pub(crate) fn object_name(&mut self, name: Option<&Expr>) -> Option<ValueId> {
        let value = self.name_value(name?)?;
        let Some(multiclass) = self.multiclass else {
            return Some(value);
        };
        let name_var = self.multiclasses[multiclass].name_var;
        if self.mentions(value, name_var) {
            return Some(value);
        }
        let prefix = self.w.values.var(name_var, TypeId::STR);
        Some(self.fold_paste(prefix, value, TypeId::STR))
    }

    /// Returns whether the variable occurs in a name.
    fn mentions(&self, id: ValueId, variable: Symbol) -> bool {
        match self.w.values.node(id) {
            Node::Var(name) => name == variable,
            Node::Paste(a, b) => self.mentions(a, variable) || self.mentions(b, variable),
            Node::Op(_, kids) => self.w.values.kids(kids).iter().any(|kid| self.mentions(*kid, variable)),
            Node::Field(base, _) | Node::VarBit(base, _) => self.mentions(base, variable),
            _ => false,
        }
    }

    fn foreach(&mut self, var: Ident, source: &LoopSource, body: &[Stmt]) {
        let list = match source {
            LoopSource::Ranges(ranges) => match self.number_list(ranges) {
                Some(numbers) => {
                    let items: Vec<ValueId> = numbers.into_iter().map(|number| self.w.values.int(number)).collect();
                    Some(self.w.values.list(&items, TypeId::INT))
                }
                None => None,
            },
            LoopSource::List(list) => self.eval(list, None).and_then(|value| {
                let ty = self.w.values.type_of(value);
                if self.w.values.element(ty).is_some() {
                    return Some(value);
                }
                let have = self.w.type_text(ty);
                self.report(Diagnostic::error(
                    format!("`foreach` runs over a list, not over a value of type `{have}`"),
                    list.span,
                    "not a list",
                ));
                None
            }),
        };
        let Some(list) = list else {
            return;
        };
        let element = self.w.values.element(self.w.values.type_of(list));
        let value = self.w.values.var(var.name, element.unwrap_or(TypeId::ANY));
        self.loops.push(Loop {
            var: Some(var.name),
            list,
            span: var.span,
            entries: Vec::new(),
        });
        self.scoped(Scope::Variable(var.name, value), |this| this.block(body));
        if let Some(done) = self.loops.pop() {
            self.add_entry(Entry::Loop(Box::new(done)));
        }
    }

    fn if_statement(&mut self, condition: &Expr, then: &[Stmt], otherwise: &[Stmt]) {
        let Some(test) = self.typed(condition, TypeId::INT) else {
            return;
        };
        let one = self.w.values.int(1);
        let some = self.w.values.list(&[one], TypeId::INT);
        let none = self.w.values.list(&[], TypeId::INT);
        let ty = self.w.values.type_of(some);
        for (body, args) in [(then, [test, some, none]), (otherwise, [test, none, some])] {
            if body.is_empty() {
                continue;
            }
            let list = self.fold(Bang::If, &args, ty, &Resolver::new());
            self.loops.push(Loop {
                var: None,
                list,
                span: condition.span,
                entries: Vec::new(),
            });
            self.block(body);
            if let Some(done) = self.loops.pop() {
                self.add_entry(Entry::Loop(Box::new(done)));
            }
        }
    }

    fn defset(&mut self, ty: &TypeExpr, name: Ident, body: &[Stmt]) {
        let Some(ty) = self.type_expr(ty) else {
            return;
        };
        let Some(element) = self
            .w
            .values
            .element(ty)
            .filter(|element| self.w.values.is_record(*element))
        else {
            return self.report(Diagnostic::error(
                "the type of a `defset` must be a list of records",
                name.span,
                "of another type",
            ));
        };
        if self.multiclass.is_some() {
            return self.report(Diagnostic::error(
                "`defset` is not allowed in a multiclass",
                name.span,
                "inside a multiclass",
            ));
        }
        if self.w.globals.contains_key(&name.name) || self.w.record_names.contains_key(&name.name) {
            return self.already(name, "set");
        }
        self.sets.push(OpenSet {
            name: name.name,
            element,
            items: Vec::new(),
            span: name.span,
        });
        self.block(body);
        if let Some(set) = self.sets.pop() {
            let list = self.w.values.list(&set.items, set.element);
            self.w.globals.insert(set.name, list);
        }
    }

    /// Evaluates the arguments of a class.
    pub(crate) fn args(&mut self, args: &[Arg], class: Option<ClassId>) -> Option<Args> {
        let params = class.map_or_else(Arc::default, |class| Arc::clone(&self.w.class(class).params));
        self.arg_values(args, &params)
    }

    pub(crate) fn arg_values(&mut self, args: &[Arg], params: &[ParamData]) -> Option<Args> {
        let mut out = Args::new();
        let mut good = true;
        for (at, arg) in args.iter().enumerate() {
            let param = match arg.name {
                None => params.get(at),
                Some(name) => params.iter().find(|param| param.name == name.name),
            };
            let Some(value) = self.eval(&arg.value, param.map(|param| param.ty)) else {
                good = false;
                continue;
            };
            out.push(ArgValue {
                name: arg.name.map_or(Symbol::NONE, |name| name.name),
                value,
                span: arg.name.map_or(arg.value.span, |name| name.span),
            });
        }
        good.then_some(out)
    }

    pub(crate) fn multiclass_data(&self, at: usize) -> (&[ParamData], Symbol) {
        let data = &self.multiclasses[at];
        (&data.params, data.name_var)
    }

    /// Returns the identifier, if the expression is a plain name.
    pub(crate) fn plain_name(expr: &Expr) -> Option<Symbol> {
        match expr.kind {
            ExprKind::Ident(name) if expr.suffixes.is_empty() => Some(name),
            _ => None,
        }
    }
}
