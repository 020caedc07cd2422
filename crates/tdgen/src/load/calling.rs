//! Loads value types, calling conventions and callee-saved lists.

use super::{Loader, fault, field_span, identifier, int_in, pascal};
use crate::model::{Action, CalleeSaved, Convention, ValueType};
use std::collections::HashMap;
use tablegen::{Diagnostic, Record, Span, ValueKind};

/// The records that the actions of a convention refer to.
struct Names {
    types: HashMap<String, usize>,
    conventions: HashMap<String, usize>,
}

/// The largest nesting depth of actions.
const MAX_DEPTH: u32 = 16;

impl<'a> Loader<'a> {
    pub(super) fn calling(&mut self) {
        let mut names = Names {
            types: HashMap::new(),
            conventions: HashMap::new(),
        };
        self.each("ValueType", |loader, record| {
            let ty = value_type(record)?;
            names.types.insert(ty.record.clone(), loader.target.value_types.len());
            loader.target.value_types.push(ty);
            Ok(())
        });
        for (i, record) in self.records.defs_derived_from("CallingConv").into_iter().enumerate() {
            names.conventions.insert(record.name().to_owned(), i);
        }
        self.each("CallingConv", |loader, record| {
            identifier(record.name(), record.span())?;
            let actions = loader.actions(&record.list("Actions")?, record.span(), &names, 0)?;
            loader.target.conventions.push(Convention {
                record: record.name().to_owned(),
                actions,
                span: record.span(),
            });
            Ok(())
        });
        self.check_delegation();
        self.each("CalleeSavedRegs", |loader, record| {
            let registers = loader.register_list(&record.list_of_defs("SaveList")?, field_span(record, "SaveList"))?;
            loader.target.callee_saved.push(CalleeSaved {
                record: record.name().to_owned(),
                registers,
                span: record.span(),
            });
            Ok(())
        });
    }

    fn actions(
        &self,
        list: &[tablegen::Value<'a>],
        span: Span,
        names: &Names,
        depth: u32,
    ) -> Result<Vec<Action>, Diagnostic> {
        list.iter()
            .map(|value| match value.kind() {
                ValueKind::Def(record) => self.action(record, span, names, depth),
                _ => Err(fault(span, "an action of a calling convention is unset")),
            })
            .collect()
    }

    fn action(&self, record: Record<'a>, used_at: Span, names: &Names, depth: u32) -> Result<Action, Diagnostic> {
        if depth > MAX_DEPTH {
            return Err(fault(used_at, "the actions of the calling convention nest too deeply"));
        }
        let ty = |record: Record<'a>| -> Result<usize, Diagnostic> {
            Self::index(&names.types, "value type", record, used_at)
        };
        let is = |class: &str| record.is_a(class);
        Ok(if is("CCIfType") {
            let types = record.list_of_defs("VTs")?.into_iter().map(ty);
            let inner = record.def_field("SubAction")?;
            Action::IfType(
                types.collect::<Result<_, _>>()?,
                Box::new(self.action(inner, used_at, names, depth + 1)?),
            )
        } else if is("CCPromoteToType") {
            Action::Promote(ty(record.def_field("DestTy")?)?)
        } else if is("CCSplitToType") {
            Action::Split {
                part: ty(record.def_field("PartTy")?)?,
                count: int_in(record, "Count", 1..=16)? as u32,
            }
        } else if is("CCAssignToReg") {
            let registers = record.list_of_defs("RegList")?;
            Action::ToReg(self.register_list(&registers, used_at)?)
        } else if is("CCAssignToStack") {
            let size = int_in(record, "Size", 1..=4096)? as u32;
            let align = int_in(record, "Align", 1..=4096)? as u32;
            if !align.is_power_of_two() {
                return Err(fault(used_at, format!("stack alignment {align} is not a power of two")));
            }
            Action::ToStack(size, align)
        } else if is("CCDelegateTo") {
            let to = record.def_field("CC")?;
            Action::Delegate(Self::index(&names.conventions, "calling convention", to, used_at)?)
        } else {
            return Err(fault(
                used_at,
                format!(
                    "`{}` is an action of a calling convention that is not known",
                    record.name()
                ),
            ));
        })
    }

    /// Refuses a convention that reaches itself by delegation or promotion: it would not terminate.
    fn check_delegation(&mut self) {
        let conventions = &self.target.conventions;
        let mut faults = Vec::new();
        for (start, convention) in conventions.iter().enumerate() {
            let mut seen = vec![start];
            let mut next = 0;
            while next < seen.len() {
                let Some(current) = conventions.get(seen[next]) else {
                    break;
                };
                next += 1;
                for to in delegates(&current.actions) {
                    if to == start {
                        faults.push(fault(
                            convention.span,
                            format!("calling convention `{}` delegates to itself", convention.record),
                        ));
                    } else if !seen.contains(&to) {
                        seen.push(to);
                    }
                }
            }
        }
        self.faults.extend(faults);
    }
}

fn delegates(actions: &[Action]) -> Vec<usize> {
    actions
        .iter()
        .flat_map(|action| match action {
            Action::Delegate(to) => vec![*to],
            Action::IfType(_, inner) => delegates(std::slice::from_ref(inner)),
            _ => Vec::new(),
        })
        .collect()
}

/// Returns the Rust name of a value type.
pub(crate) fn value_variant(name: &str) -> String {
    pascal(&name.replace('i', "I").replace('f', "F"))
}

fn value_type(record: Record<'_>) -> Result<ValueType, Diagnostic> {
    let bits = int_in(record, "Size", 1..=1 << 16)? as u32;
    let name = record.name();
    let lanes = name
        .strip_prefix('v')
        .and_then(|rest| rest.split(|c: char| !c.is_ascii_digit()).next())
        .and_then(|digits| digits.parse().ok())
        .unwrap_or(1);
    identifier(name, record.span())?;
    Ok(ValueType {
        record: name.to_owned(),
        variant: value_variant(name),
        bits,
        lanes,
        clif: record.string("Clif")?.to_owned(),
        span: record.span(),
    })
}
