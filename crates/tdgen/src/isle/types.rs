//! Types of pattern nodes: classes of nodes with the same type, and the known facts of each class.

use std::collections::BTreeSet;

use tablegen::{Diagnostic, Record, Span};

use super::constructors::access;
use super::fault;

/// The type of a pattern node.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct TypeVar(usize);

/// How a rule checks a type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Check {
    /// No check: every possible type is valid.
    None,
    /// This type, an ISLE constant.
    Constant(String),
    /// Any type with the same register representation: an ISLE extractor that yields this type, and
    /// its constant.
    Held(String, String),
    /// An ISLE extractor that yields the type.
    Extractor(String),
}

impl Check {
    /// Returns the ISLE pattern on the type, which binds it to the name; `None` if no check is
    /// needed.
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

/// The known facts of a class of nodes.
#[derive(Clone)]
struct Known<'a> {
    /// The possible types; `None` for any type.
    types: Option<Vec<Record<'a>>>,
    /// The type sets that annotations name.
    sets: Vec<Record<'a>>,
}

/// The types of one pattern.
#[derive(Clone, Default)]
pub(super) struct Types<'a> {
    parents: Vec<usize>,
    known: Vec<Known<'a>>,
}

impl<'a> Types<'a> {
    /// Creates an unconstrained type.
    pub fn fresh(&mut self) -> TypeVar {
        self.parents.push(self.parents.len());
        self.known.push(Known {
            types: None,
            sets: Vec::new(),
        });
        TypeVar(self.parents.len() - 1)
    }

    /// Returns the number that all nodes of the same type share.
    pub fn class(&self, var: TypeVar) -> usize {
        let mut index = var.0;
        while let Some(parent) = self.parents.get(index)
            && *parent != index
        {
            index = *parent;
        }
        index
    }

    /// Makes both types the same.
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

    /// Restricts the type to a list.
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

    /// Applies an explicit type: a `ValueType` or a `TypeSet`.
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

    /// Restricts the type to integers and vectors of integers.
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

    /// Returns how to check the type; fails if td does not determine the type.
    pub fn check(&self, var: TypeVar, span: Span) -> Result<Check, Box<Diagnostic>> {
        let known = &self.known[self.class(var)];
        let Some(types) = &known.types else {
            return Err(fault(span, "the type of this is not determined")
                .note("write the type as an operator: `(i32 ...)`")
                .into());
        };
        // A single type is itself the check; type sets do not matter then.
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

    /// Returns whether a value of this type can be in a register of a class with these types.
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

    /// Returns the possible types as text.
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
