//! Formats values and types as llvm-tblgen does.

use std::cmp::Ordering;

use crate::strings::Symbol;
use crate::token::Bang;
use crate::value::{Node, Type, TypeId, ValueId};
use crate::world::World;

impl World {
    /// Returns a type in TableGen syntax.
    pub(crate) fn type_text(&self, ty: TypeId) -> String {
        let mut out = String::new();
        self.write_type(ty, &mut out);
        out
    }

    /// Appends a type to a text. This avoids an allocation, because every field of every record
    /// shows its type.
    pub(crate) fn write_type(&self, ty: TypeId, out: &mut String) {
        match self.values.get_type(ty) {
            Type::Bit => out.push_str("bit"),
            Type::Bits(width) => {
                out.push_str("bits<");
                write_number(u64::from(*width), out);
                out.push('>');
            }
            Type::Int => out.push_str("int"),
            Type::Str => out.push_str("string"),
            Type::Dag => out.push_str("dag"),
            Type::Any => out.push('?'),
            Type::List(element) => {
                out.push_str("list<");
                self.write_type(*element, out);
                out.push('>');
            }
            Type::Record(classes) => match classes.as_slice() {
                [class] => out.push_str(self.text(self.class(*class).name)),
                classes => {
                    out.push('{');
                    for (at, class) in classes.iter().enumerate() {
                        if at > 0 {
                            out.push_str(", ");
                        }
                        out.push_str(self.text(self.class(*class).name));
                    }
                    out.push('}');
                }
            },
        }
    }

    /// Formats a value.
    pub(crate) fn value_text(&self, id: ValueId) -> String {
        let mut out = String::new();
        self.write_value(id, &mut out);
        out
    }

    /// Formats a value for a message; a long one is truncated.
    pub(crate) fn brief(&self, id: ValueId) -> String {
        let mut out = String::new();
        self.write_value_limited(id, &mut out, 120);
        if out.len() > 120 {
            let mut end = 117;
            while !out.is_char_boundary(end) {
                end -= 1;
            }
            out.truncate(end);
            out.push_str("...");
        }
        out
    }

    fn separated(&self, items: &[ValueId], out: &mut String, limit: usize) {
        for (at, item) in items.iter().enumerate() {
            if at > 0 {
                out.push_str(", ");
            }
            self.write_value_limited(*item, out, limit);
        }
    }

    pub(crate) fn write_value(&self, id: ValueId, out: &mut String) {
        self.write_value_limited(id, out, usize::MAX);
    }

    fn write_value_limited(&self, id: ValueId, out: &mut String, limit: usize) {
        if out.len() > limit {
            return;
        }
        let values = &self.values;
        match values.node(id) {
            Node::Unset => out.push('?'),
            Node::Bit(value) => out.push(if value { '1' } else { '0' }),
            Node::Bits(kids) => {
                out.push_str("{ ");
                for (at, bit) in values.kids(kids).iter().rev().enumerate() {
                    if at > 0 {
                        out.push_str(", ");
                    }
                    self.write_value_limited(*bit, out, limit);
                }
                out.push_str(" }");
            }
            Node::Int(value) => {
                if value < 0 {
                    out.push('-');
                }
                write_number(value.unsigned_abs(), out);
            }
            Node::Str(text) => {
                out.push('"');
                out.push_str(self.text(text));
                out.push('"');
            }
            Node::Code(text) => {
                out.push_str("[{");
                out.push_str(self.text(text));
                out.push_str("}]");
            }
            Node::List(kids) => {
                out.push('[');
                self.separated(values.kids(kids), out, limit);
                out.push(']');
            }
            Node::Dag(kids) => {
                out.push('(');
                for (at, (value, name)) in values.pairs(kids).enumerate() {
                    out.push_str(match at {
                        0 => "",
                        1 => " ",
                        _ => ", ",
                    });
                    self.write_value_limited(value, out, limit);
                    if let Some(name) = name.some() {
                        out.push_str(":$");
                        out.push_str(self.text(name));
                    }
                }
                out.push(')');
            }
            Node::Def(record) => out.push_str(self.text(self.record(record).name)),
            Node::Call(class, kids) => {
                out.push_str(self.text(self.class(class).name));
                out.push('<');
                for (at, (value, name)) in values.pairs(kids).enumerate() {
                    if at > 0 {
                        out.push_str(", ");
                    }
                    match name.some() {
                        Some(name) => out.push_str(self.text(name)),
                        None => write_number(at as u64, out),
                    }
                    out.push_str(": ");
                    self.write_value_limited(value, out, limit);
                }
                out.push('>');
            }
            Node::Var(name) => out.push_str(self.text(name)),
            Node::VarBit(base, index) => {
                self.write_value_limited(base, out, limit);
                out.push('{');
                write_number(u64::from(index), out);
                out.push('}');
            }
            Node::Field(base, field) => {
                self.write_value_limited(base, out, limit);
                out.push('.');
                out.push_str(self.text(field));
            }
            Node::Index(base, index) => {
                self.write_value_limited(base, out, limit);
                out.push('[');
                self.write_value_limited(index, out, limit);
                out.push(']');
            }
            Node::Paste(left, right) => {
                let op = if values.type_of(id) == TypeId::STR {
                    "!strconcat("
                } else {
                    "!listconcat("
                };
                out.push_str(op);
                self.write_value_limited(left, out, limit);
                out.push_str(", ");
                self.write_value_limited(right, out, limit);
                out.push(')');
            }
            Node::Op(op, kids) => self.write_op(id, op, values.kids(kids), out, limit),
        }
    }

    fn write_op(&self, id: ValueId, op: Bang, kids: &[ValueId], out: &mut String, limit: usize) {
        out.push('!');
        out.push_str(op.text());
        match op {
            Bang::Cast | Bang::GetDagArg => {
                out.push('<');
                self.write_type(self.values.type_of(id), out);
                out.push('>');
            }
            Bang::IsA | Bang::Exists => {
                // The type argument is stored as the element type of an empty list.
                if let [ty, rest @ ..] = kids {
                    let ty = self.values.element(self.values.type_of(*ty));
                    out.push('<');
                    self.write_type(ty.unwrap_or(TypeId::ANY), out);
                    out.push_str(">(");
                    self.separated(rest, out, limit);
                    out.push(')');
                }
                return;
            }
            Bang::Instances => {
                let element = self.values.element(self.values.type_of(id));
                out.push('<');
                if let Some(element) = element {
                    self.write_type(element, out);
                }
                out.push('>');
            }
            _ => {}
        }
        out.push('(');
        if op == Bang::Cond {
            for (at, pair) in kids.chunks(2).enumerate() {
                if at > 0 {
                    out.push_str(", ");
                }
                self.write_value_limited(pair[0], out, limit);
                out.push_str(": ");
                if let Some(value) = pair.get(1) {
                    self.write_value_limited(*value, out, limit);
                }
            }
        } else {
            self.separated(kids, out, limit);
        }
        out.push(')');
    }

    /// Formats a value for pasting and comparing: strings without quotes.
    pub(crate) fn unquoted(&self, id: ValueId) -> String {
        match self.values.node(id) {
            Node::Str(text) | Node::Code(text) => self.text(text).to_owned(),
            _ => self.value_text(id),
        }
    }

    pub(crate) fn intern(&mut self, text: &str) -> Symbol {
        self.strings.intern(text)
    }
}

/// Appends a decimal number. `std::fmt` takes several times as long, and the output has millions of
/// numbers.
fn write_number(mut number: u64, out: &mut String) {
    if number < 10 {
        return out.push(char::from(b'0' + number as u8));
    }
    let mut digits = [0; 20];
    let mut start = digits.len();
    while number > 0 {
        start -= 1;
        digits[start] = b'0' + (number % 10) as u8;
        number /= 10;
    }
    out.extend(digits[start..].iter().map(|&digit| char::from(digit)));
}

/// Compares names so that `S2` precedes `S10`: if both have digits at a position, the shorter
/// number is less.
pub fn numeric_order(a: &str, b: &str) -> Ordering {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let digits = |text: &[u8], at: usize| text[at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let mut at = 0;
    while at < a.len() && at < b.len() {
        let (left, right) = (digits(a, at), digits(b, at));
        let order = if left > 0 && right > 0 {
            left.cmp(&right).then_with(|| a[at..at + left].cmp(&b[at..at + right]))
        } else {
            a[at].cmp(&b[at])
        };
        if order.is_ne() {
            return order;
        }
        at += left.max(1);
    }
    a.len().cmp(&b.len())
}
