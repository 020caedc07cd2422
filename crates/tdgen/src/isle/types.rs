//! Types of pattern nodes: classes of nodes that have the same type, and what is known of each.

use std::collections::BTreeSet;

use tablegen::{Diagnostic, Record, Span};

use super::constructors::access;
use super::fault;

/// The type of a pattern node.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct TypeVar(usize);

/// How a rule makes sure of a type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Check {
    /// Nothing to do: every type that can come is good.
    None,
    /// This type, an ISLE constant.
    Constant(String),
    /// A type that is held like this one: an ISLE extractor that yields it, and its constant.
    Held(String, String),
    /// An ISLE extractor that yields the type.
    Extractor(String),
}

impl Check {
    /// The ISLE pattern on the type, which binds it to the name; `None` if there is nothing to do.
    pub fn pattern(&self, name: Option<&str>) -> Option<String> {
        match (self, name) {
            (Self::None, name) => name.map(str::to_owned),
            (Self::Constant(constant), None) => Some(constant.clone()),
            (Self::Constant(constant), Some(name)) => Some(format!("{name} @ {constant}")),
            (Self::Held(holder, constant), None) => Some(format!("({holder} {constant})")),
            (Self::Held(holder, constant), Some(name)) => Some(format!("({holder} {name} @ {constant})")),
            (Self::Extractor(extractor), name) => Some(format!("({extractor} {})", name.unwrap_or("_"))),
        }
    }
}

/// What is known of a class of nodes.
#[derive(Clone)]
struct Known<'a> {
    /// Records of the types it may have; `None`: any.
    types: Option<Vec<Record<'a>>>,
    /// Type sets that were asked for.
    sets: Vec<Record<'a>>,
}

/// The types of one pattern.
#[derive(Clone, Default)]
pub(super) struct Types<'a> {
    parents: Vec<usize>,
    known: Vec<Known<'a>>,
}

impl<'a> Types<'a> {
    /// A type nothing is known of.
    pub fn fresh(&mut self) -> TypeVar {
        self.parents.push(self.parents.len());
        self.known.push(Known {
            types: None,
            sets: Vec::new(),
        });
        TypeVar(self.parents.len() - 1)
    }

    /// The number that all nodes of the same type share.
    pub fn class(&self, var: TypeVar) -> usize {
        let mut index = var.0;
        while let Some(parent) = self.parents.get(index)
            && *parent != index
        {
            index = *parent;
        }
        index
    }

    /// Both are the same type.
    pub fn unify(&mut self, a: TypeVar, b: TypeVar, span: Span) -> Result<(), Box<Diagnostic>> {
        let (a, b) = (self.class(a), self.class(b));
        if a == b {
            return Ok(());
        }
        let other = self.known[b].clone();
        self.parents[b] = a;
        if let Some(types) = other.types {
            self.restrict(TypeVar(a), &types, span)?;
        }
        self.known[a].sets.extend(other.sets);
        Ok(())
    }

    /// The type is one of these.
    pub fn restrict(&mut self, var: TypeVar, allowed: &[Record<'a>], span: Span) -> Result<(), Box<Diagnostic>> {
        let class = self.class(var);
        let before = self.known[class].types.take();
        let after: Vec<_> = match &before {
            None => allowed.to_vec(),
            Some(types) => types
                .iter()
                .filter(|t| allowed.iter().any(|a| a.name() == t.name()))
                .copied()
                .collect(),
        };
        if after.is_empty() {
            let wanted = names(allowed);
            let had = before.as_deref().map(names).unwrap_or_default();
            return Err(fault(
                span,
                format!("types do not fit: the pattern needs {had}, this is {wanted}"),
            ));
        }
        self.known[class].types = Some(after);
        Ok(())
    }

    /// An explicit type: a `ValueType` or a `TypeSet`.
    pub fn annotate(&mut self, var: TypeVar, annotation: Record<'a>, span: Span) -> Result<(), Box<Diagnostic>> {
        if annotation.is_a("TypeSet") {
            let types = annotation.list_of_defs("Types").map_err(access)?;
            self.restrict(var, &types, span)?;
            let class = self.class(var);
            self.known[class].sets.push(annotation);
            Ok(())
        } else {
            self.restrict(var, &[annotation], span)
        }
    }

    /// The type is an integer (or a vector of integers).
    pub fn restrict_to_integers(
        &mut self,
        var: TypeVar,
        all: &[Record<'a>],
        span: Span,
    ) -> Result<(), Box<Diagnostic>> {
        let mut integers = Vec::new();
        for ty in all {
            if ty.bit("isInteger").map_err(access)? {
                integers.push(*ty);
            }
        }
        self.restrict(var, &integers, span)
    }

    /// How to check the type; an error if td does not say which type it is.
    pub fn check(&self, var: TypeVar, span: Span) -> Result<Check, Box<Diagnostic>> {
        let known = &self.known[self.class(var)];
        let Some(types) = &known.types else {
            return Err(fault(span, "nothing says what type this has")
                .note("write the type as an operator: `(i32 ...)`")
                .into());
        };
        // One type is itself the check, whatever sets it was one of.
        let sets = if types.len() == 1 { &[][..] } else { &known.sets };
        for set in sets {
            let wanted = set.list_of_defs("Types").map_err(access)?;
            if same(&wanted, types) {
                let extractor = set.string("Extractor").map_err(access)?;
                return Ok(match extractor {
                    "" => Check::None,
                    _ => Check::Extractor(extractor.to_owned()),
                });
            }
        }
        match types.as_slice() {
            [ty] => {
                let name = ty.string("IsleName").map_err(access)?;
                if name.is_empty() {
                    return Err(fault(span, format!("CLIF has no type `{}`", ty.name())));
                }
                let constant = format!("${name}");
                Ok(match ty.string("Holder").map_err(access)? {
                    "" => Check::Constant(constant),
                    holder => Check::Held(holder.to_owned(), constant),
                })
            }
            several => Err(
                fault(span, format!("the type is ambiguous: {} are possible", names(several)))
                    .note("write the type as an operator: `(i32 ...)`, or a TypeSet")
                    .into(),
            ),
        }
    }

    /// Whether a value of this type can be in a register of a class with these types.
    pub fn fits(&self, var: TypeVar, class_types: &[Record<'a>]) -> Result<bool, Box<Diagnostic>> {
        let known = &self.known[self.class(var)];
        for set in &known.sets {
            if set.bit("LowWordOnly").map_err(access)? {
                return Ok(true);
            }
        }
        Ok(known
            .types
            .as_ref()
            .is_some_and(|types| types.iter().all(|ty| class_types.iter().any(|c| c.name() == ty.name()))))
    }

    /// The possible types as text.
    pub fn describe(&self, var: TypeVar) -> String {
        match &self.known[self.class(var)].types {
            Some(types) => names(types),
            None => "of any type".to_owned(),
        }
    }
}

fn same(a: &[Record<'_>], b: &[Record<'_>]) -> bool {
    let set = |list: &[Record<'_>]| -> BTreeSet<String> { list.iter().map(|ty| ty.name().to_owned()).collect() };
    set(a) == set(b)
}

fn names(types: &[Record<'_>]) -> String {
    let names: Vec<_> = types.iter().map(|ty| format!("`{}`", ty.name())).collect();
    names.join(", ")
}
