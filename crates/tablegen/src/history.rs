//! The history of field values: the steps, each with its span. It is recorded only with
//! [`Options::trace`](crate::Options::trace).

use crate::evaluator::Evaluator;
use crate::records::Record;
use crate::source::Span;
use crate::step::{StepData, StepKind};
use crate::strings::Symbol;
use crate::value::{ClassId, RecordId, ValueId};
use crate::world::{Cell, FieldData, Proto};

/// A step in the history of a field's value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Step {
    /// The kind of the step.
    pub kind: StepKind,
    /// Its span in the source.
    pub span: Span,
    /// The value of the field after the step, as text.
    pub value: String,
}

impl Record<'_> {
    /// Returns the steps that led to the value of the field, the first one first; empty without
    /// [`Options::trace`](crate::Options::trace).
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

    /// Records the steps of an inherited class: first the class's own steps, then the values with
    /// substituted arguments.
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
            // If the value is an argument, the step is at the argument.
            let place = if now.span == field.span {
                span
            } else {
                self.w.span(now.span)
            };
            self.trace(proto, field.name, kind, place, now.value);
        }
    }

    /// Records the fields that changed when arguments of a multiclass were substituted.
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
