//! How fields got their values: the steps, each with its place. Kept only if [`Options::trace`](crate::Options::trace) asks for it.

use crate::evaluator::Evaluator;
use crate::records::Record;
use crate::source::Span;
use crate::step::{StepData, StepKind};
use crate::strings::Symbol;
use crate::value::{ClassId, RecordId, ValueId};
use crate::world::{Cell, FieldData, Proto};

/// One step on the way of a field to its value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Step {
    /// What it was.
    pub kind: StepKind,
    /// Where it is written.
    pub span: Span,
    /// The value the field had then, as text.
    pub value: String,
}

impl Record<'_> {
    /// The steps that gave the field its value, the first one first; empty without [`Options::trace`](crate::Options::trace).
    pub fn history(&self, field: &str) -> Vec<Step> {
        let world = self.world();
        let Some(field) = world.strings.lookup(field) else {
            return Vec::new();
        };
        let steps = self.steps().iter().filter(|step| step.field == field);
        let public = |step: &StepData| Step {
            kind: step.kind,
            span: step.span,
            value: world.value_text(step.value),
        };
        steps.map(public).collect()
    }
}

impl Evaluator {
    pub(crate) fn trace(&self, proto: &mut Proto, field: Symbol, kind: StepKind, span: Span, value: ValueId) {
        if self.tracing {
            proto.history.push(StepData {
                field,
                kind,
                span,
                value,
            });
        }
    }

    /// What a class brings with it: its own steps, then the values with the arguments put in.
    pub(crate) fn trace_inherited(&self, proto: &mut Proto, class: ClassId, span: Span) {
        if !self.tracing {
            return;
        }
        let parent = &self.w.class(class).proto;
        let known: Vec<Symbol> = proto.history.iter().map(|step| step.field).collect();
        proto.history.extend_from_slice(&parent.history);
        for field in parent.fields().iter() {
            let Some(now) = proto.field(field.name) else {
                continue;
            };
            let kind = if now.value != field.value {
                StepKind::Arguments
            } else if known.contains(&field.name) {
                StepKind::Inherited
            } else {
                continue;
            };
            // An argument that is passed on is what gave the value.
            let place = if now.span == field.span {
                span
            } else {
                self.w.span(now.span)
            };
            self.trace(proto, field.name, kind, place, now.value);
        }
    }

    /// The fields that putting in arguments of a multiclass changed.
    pub(crate) fn trace_changes(&self, proto: &mut Proto, old: &[Cell], place: Option<Span>) {
        for (at, old) in old.iter().enumerate() {
            let field = proto.field_at(at);
            if field.value != old.value {
                let span = place.unwrap_or(proto.span);
                self.trace(proto, field.name, StepKind::Multiplied, span, field.value);
            }
        }
    }

    pub(crate) fn trace_final(&mut self, id: RecordId, field: &FieldData, value: ValueId) {
        if self.tracing && value != field.value {
            let span = self.w.span(field.span);
            self.w.histories.entry(id).or_default().push(StepData {
                field: field.name,
                kind: StepKind::Resolved,
                span,
                value,
            });
        }
    }
}
