//! Operands of instructions, and the choice of the opcode that accepts them.
//!
//! The syntax of an instruction comes from the td `AsmString`, which the printer uses too:
//! [`Table`] splits the text of each instruction into [`Slot`]s. The parser reads operands
//! independently of the instruction and then compares them with the slots of all opcodes of the
//! mnemonic. This order allows precise messages about wrong operands.

use super::cursor::Cursor;
use super::expr::{self, Expr, Here};
use super::fault::{Fault, Span, nearest};
use super::lexer::Kind;
use super::symbol::Symbols;
use crate::desc::AsmPiece;
use crate::inst::{Opcode, OperandKind};
use crate::reg::{Reg, RegFile, SReg};
use crate::reloc::Reloc;
use std::collections::HashMap;
use std::sync::LazyLock;

/// An operand position in the text of an instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Slot {
    /// The operand with this index.
    Plain(u8),
    /// Two operands, written `offset(base)`.
    Memory { offset: u8, base: u8 },
}

/// The instructions by mnemonic.
pub(super) struct Table {
    by_mnemonic: HashMap<&'static str, Vec<Opcode>>,
    /// The slots of each opcode.
    slots: Vec<Vec<Slot>>,
    /// Opcodes whose text cannot be parsed, which is a fault in td.
    unreadable: Vec<Opcode>,
}

/// The table, built at its first use.
pub(super) static TABLE: LazyLock<Table> = LazyLock::new(|| {
    let mut by_mnemonic: HashMap<&'static str, Vec<Opcode>> = HashMap::new();
    for &opcode in Opcode::ALL {
        by_mnemonic.entry(opcode.desc().mnemonic).or_default().push(opcode);
    }
    let mut unreadable = Vec::new();
    let slots = Opcode::ALL.iter().map(|&opcode| {
        slots(opcode).unwrap_or_else(|| {
            unreadable.push(opcode);
            Vec::new()
        })
    });
    let slots = slots.collect();
    Table {
        by_mnemonic,
        slots,
        unreadable,
    }
});

/// Returns the slots of an instruction's text: the mnemonic, then comma-separated operands.
fn slots(opcode: Opcode) -> Option<Vec<Slot>> {
    let desc = opcode.desc();
    let mut text = String::new();
    let mut order = Vec::new();
    for piece in desc.print {
        match *piece {
            AsmPiece::Text(part) => text.push_str(part),
            AsmPiece::Operand(index) | AsmPiece::OperandUnlessZero(index) => {
                text.push('$');
                order.push(index);
            }
        }
    }
    let mut order = order.into_iter();
    let rest = text.strip_prefix(desc.mnemonic)?.trim();
    if rest.is_empty() {
        return Some(Vec::new());
    }
    rest.split(',')
        .map(|slot| match slot.trim() {
            "$" => order.next().map(Slot::Plain),
            "$($)" => {
                let offset = order.next()?;
                let base = order.next()?;
                Some(Slot::Memory { offset, base })
            }
            _ => None,
        })
        .collect()
}

impl Table {
    /// Returns the opcodes of a mnemonic, in the order of td.
    pub(super) fn opcodes(&self, mnemonic: &str) -> Option<&[Opcode]> {
        self.by_mnemonic.get(mnemonic).map(Vec::as_slice)
    }

    fn slots(&self, opcode: Opcode) -> &[Slot] {
        &self.slots[opcode.index()]
    }

    /// Returns the known mnemonic that is closest to an unknown one.
    pub(super) fn nearest(&self, mnemonic: &str) -> Option<&'static str> {
        let mut all: Vec<&'static str> = self.by_mnemonic.keys().copied().collect();
        all.sort_unstable();
        nearest(mnemonic, all.into_iter())
    }
}

/// An operand in a source.
#[derive(Clone, Debug)]
pub(super) enum Arg {
    Reg(Reg),
    Expr(Expr),
    Memory {
        offset: Option<(Expr, Span)>,
        base: Reg,
        base_span: Span,
    },
}

/// Parses the operands up to the end of the statement.
pub(super) fn parse(cursor: &mut Cursor<'_, '_>, symbols: &mut Symbols, here: Here) -> Result<Vec<(Arg, Span)>, Fault> {
    let mut args = Vec::new();
    if cursor.at_end() {
        return Ok(args);
    }
    loop {
        args.push(arg(cursor, symbols, here)?);
        if cursor.at_end() {
            return Ok(args);
        }
        if !cursor.take(",") {
            return Err(cursor.unexpected("`,` or the end of the statement"));
        }
    }
}

fn register(kind: &Kind<'_>) -> Option<Reg> {
    match kind {
        Kind::Word(word) => Reg::from_name(word),
        _ => None,
    }
}

fn arg(cursor: &mut Cursor<'_, '_>, symbols: &mut Symbols, here: Here) -> Result<(Arg, Span), Fault> {
    let start = cursor.span().start;
    if let Some(reg) = register(cursor.kind()) {
        let span = cursor.span();
        cursor.advance();
        return Ok((Arg::Reg(reg), span));
    }
    if matches!(cursor.kind(), Kind::Mark("[" | "]")) {
        let fault = cursor.unexpected("an operand");
        return Err(fault.note("a memory operand is written `offset(base)`"));
    }
    // `(s1)` is a base without an offset. `(4+4)(s1)` starts with an expression.
    let bare = *cursor.kind() == Kind::Mark("(")
        && *cursor.kind_ahead(2) == Kind::Mark(")")
        && register(cursor.kind_ahead(1)).is_some();
    let mut offset = None;
    if !bare {
        let (expr, span) = expr::parse(cursor, symbols, here)?;
        if *cursor.kind() != Kind::Mark("(") {
            return Ok((Arg::Expr(expr), span));
        }
        offset = Some((expr, span));
    }
    cursor.expect("(")?;
    let base_span = cursor.span();
    let Some(base) = register(cursor.kind()) else {
        if let Kind::Word(word) = cursor.kind()
            && let Some(fault) = expr::register_fault(word, &base_span, "a register")
        {
            return Err(fault);
        }
        return Err(cursor.unexpected("a base register"));
    };
    cursor.advance();
    cursor.expect(")")?;
    let span = start..cursor.last_end();
    Ok((
        Arg::Memory {
            offset,
            base,
            base_span,
        },
        span,
    ))
}

/// An encoded operand, matched with an operand of the source.
#[derive(Debug)]
pub(super) enum Bound {
    /// A register.
    Reg(Reg),
    /// An integer, or an address if the operand may be one.
    Value(Expr, Span),
    /// A label in place of a memory operand. Its offset is the distance from `pc`.
    Label(Expr, Span),
}

/// Returns the first opcode of a mnemonic that accepts the operands, and the encoded operands.
pub(super) fn choose(
    mnemonic: &str,
    mnemonic_span: &Span,
    opcodes: &[Opcode],
    args: Vec<(Arg, Span)>,
) -> Result<(Opcode, Vec<Bound>), Fault> {
    let table = &*TABLE;
    if let Some(opcode) = table.unreadable.iter().find(|opcode| opcodes.contains(opcode)) {
        let message = format!("internal error: the text of {} in td cannot be read", opcode.name());
        return Err(Fault::new(mnemonic_span.clone(), message, "this mnemonic"));
    }
    // The number of leading operands that each opcode accepts. The fault is about the next operand.
    let mut best = 0;
    let mut nearest: Vec<Opcode> = Vec::new();
    for &opcode in opcodes {
        let slots = table.slots(opcode);
        let fitting = slots
            .iter()
            .zip(&args)
            .take_while(|(s, (arg, _))| takes(opcode, **s, arg))
            .count();
        if fitting == args.len() && slots.len() == args.len() {
            return Ok((opcode, bind(opcode, slots, args)));
        }
        if fitting > best || nearest.is_empty() {
            best = fitting;
            nearest.clear();
        }
        if fitting == best {
            nearest.push(opcode);
        }
    }
    let forms = forms(opcodes);
    let with_count = |n: usize| opcodes.iter().any(|&o| table.slots(o).len() == n);
    if !with_count(args.len()) {
        let mut counts: Vec<usize> = opcodes.iter().map(|&o| table.slots(o).len()).collect();
        counts.sort_unstable();
        counts.dedup();
        let counts: Vec<String> = counts.iter().map(ToString::to_string).collect();
        let plural = if counts == ["1"] { "" } else { "s" };
        let span = args.first().map_or(mnemonic_span.clone(), |(_, first)| {
            first.start..args.last().map_or(first.end, |(_, last)| last.end)
        });
        let message = format!(
            "`{mnemonic}` takes {} operand{plural}, not {}",
            counts.join(" or "),
            args.len()
        );
        return Err(Fault::new(
            span,
            message,
            format!("{} operands", args.len()).replace("1 operands", "1 operand"),
        )
        .note(forms));
    }
    let Some((arg, span)) = args.get(best) else {
        // All operands fit, but an opcode with this number of operands does not accept them.
        let message = format!("`{mnemonic}` takes other operands");
        return Err(Fault::new(mnemonic_span.clone(), message, "this mnemonic").note(forms));
    };
    let mut expected: Vec<&str> = Vec::new();
    let mut base_fault = None;
    for &opcode in &nearest {
        let Some(&slot) = table.slots(opcode).get(best) else {
            continue;
        };
        let what = slot_name(opcode, slot);
        if !expected.contains(&what) {
            expected.push(what);
        }
        if let (Slot::Memory { .. }, Arg::Memory { base, base_span, .. }) = (slot, arg) {
            base_fault = Some((*base, base_span.clone()));
        }
    }
    let expected = expected.join(" or ");
    let (found, span) = match (arg, base_fault) {
        (_, Some((base, base_span))) => (format!("{} as base", reg_name(base)), base_span),
        (Arg::Reg(reg), None) => (reg_name(*reg), span.clone()),
        (Arg::Expr(Expr::Number(n)), None) => (format!("the number {n}"), span.clone()),
        (Arg::Expr(Expr::Symbol(_)), None) => ("a symbol".to_owned(), span.clone()),
        (Arg::Expr(_), None) => ("an expression".to_owned(), span.clone()),
        (Arg::Memory { .. }, None) => ("a memory operand".to_owned(), span.clone()),
    };
    let message = format!("operand {} of `{mnemonic}` is {expected}, not {found}", best + 1);
    Err(Fault::new(span, message, format!("expected {expected}")).note(forms))
}

fn reg_name(reg: Reg) -> String {
    match reg.file() {
        RegFile::Scalar => format!("the scalar register {reg}"),
        RegFile::Vector => format!("the vector register {reg}"),
    }
}

fn kind(opcode: Opcode, index: u8) -> Option<OperandKind> {
    opcode.desc().operands.get(usize::from(index)).map(|o| o.kind)
}

fn file(opcode: Opcode, index: u8) -> Option<RegFile> {
    kind(opcode, index)?.register_file()
}

fn takes(opcode: Opcode, slot: Slot, arg: &Arg) -> bool {
    match (slot, arg) {
        (Slot::Plain(index), Arg::Reg(reg)) => file(opcode, index) == Some(reg.file()),
        (Slot::Plain(index), Arg::Expr(_)) => kind(opcode, index).is_some() && file(opcode, index).is_none(),
        (Slot::Memory { base: index, .. }, Arg::Memory { base, .. }) => file(opcode, index) == Some(base.file()),
        // A label stands for a distance from `pc`, which is a scalar register.
        (Slot::Memory { base: index, .. }, Arg::Expr(expr)) => {
            !matches!(expr, Expr::Number(_)) && file(opcode, index) == Some(RegFile::Scalar)
        }
        _ => false,
    }
}

fn slot_name(opcode: Opcode, slot: Slot) -> &'static str {
    match slot {
        Slot::Memory { base, .. } => match file(opcode, base) {
            Some(RegFile::Vector) => "`offset(vector register)`",
            _ => "`offset(scalar register)` or a label",
        },
        Slot::Plain(index) => match (file(opcode, index), address(opcode, usize::from(index))) {
            (Some(RegFile::Scalar), _) => "a scalar register",
            (Some(RegFile::Vector), _) => "a vector register",
            (None, Some(Reloc::Branch)) => "a label or a distance",
            (None, Some(_)) => "a symbol",
            (None, None) => "a number",
        },
    }
}

/// Returns the operand forms of a mnemonic, for a note.
fn forms(opcodes: &[Opcode]) -> String {
    let mut forms: Vec<String> = Vec::new();
    for &opcode in opcodes {
        let slots = TABLE.slots(opcode).iter().map(|slot| match *slot {
            Slot::Memory { base, .. } => match file(opcode, base) {
                Some(RegFile::Vector) => "offset(V)",
                _ => "offset(S)",
            },
            Slot::Plain(index) => match (file(opcode, index), address(opcode, usize::from(index))) {
                (Some(RegFile::Scalar), _) => "S",
                (Some(RegFile::Vector), _) => "V",
                (None, Some(Reloc::Branch)) => "label",
                (None, Some(_)) => "symbol",
                (None, None) => "number",
            },
        });
        let slots: Vec<&str> = slots.collect();
        let form = format!(
            "`{}`",
            format!("{} {}", opcode.desc().mnemonic, slots.join(", ")).trim()
        );
        if !forms.contains(&form) {
            forms.push(form);
        }
    }
    format!("S and V are a scalar and a vector register: {}", forms.join(", "))
}

fn bind(opcode: Opcode, slots: &[Slot], args: Vec<(Arg, Span)>) -> Vec<Bound> {
    let mut bound: Vec<Option<Bound>> = opcode.desc().operands.iter().map(|_| None).collect();
    let mut put = |index: u8, value: Bound| {
        if let Some(place) = bound.get_mut(usize::from(index)) {
            *place = Some(value);
        }
    };
    for (slot, (arg, span)) in slots.iter().zip(args) {
        match (*slot, arg) {
            (Slot::Plain(index), Arg::Reg(reg)) => put(index, Bound::Reg(reg)),
            (Slot::Plain(index), Arg::Expr(expr)) => put(index, Bound::Value(expr, span)),
            (Slot::Memory { offset, base }, Arg::Expr(expr)) => {
                put(base, Bound::Reg(Reg::S(SReg::PC)));
                put(offset, Bound::Label(expr, span));
            }
            (
                Slot::Memory { offset, base },
                Arg::Memory {
                    offset: given,
                    base: reg,
                    ..
                },
            ) => {
                put(base, Bound::Reg(reg));
                let (expr, span) = given.unwrap_or((Expr::Number(0), span));
                put(offset, Bound::Value(expr, span));
            }
            // `takes` rejects all other pairs.
            (Slot::Plain(_), Arg::Memory { .. }) | (Slot::Memory { .. }, Arg::Reg(_)) => {}
        }
    }
    bound.into_iter().flatten().collect()
}

/// Returns the relocation of an operand that may be an address.
pub(super) fn address(opcode: Opcode, index: usize) -> Option<Reloc> {
    match opcode.desc().operands.get(index)?.kind {
        OperandKind::Brtarget18 | OperandKind::Jmptarget18 | OperandKind::Calltarget18 => Some(Reloc::Branch),
        OperandKind::AbsHigh => Some(Reloc::AbsHighLea),
        OperandKind::AbsLow => Some(Reloc::AbsLowLea),
        _ => None,
    }
}

/// Returns the relocation of a label in place of a memory operand.
pub(super) fn label(opcode: Opcode) -> Reloc {
    let flags = opcode.desc().flags;
    if flags.may_load() || flags.may_store() {
        Reloc::PcrelMem
    } else {
        Reloc::PcrelLea
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_of_every_instruction_can_be_read() {
        assert_eq!(TABLE.unreadable, []);
        for &opcode in Opcode::ALL {
            let operands: usize = TABLE
                .slots(opcode)
                .iter()
                .map(|s| match s {
                    Slot::Plain(_) => 1,
                    Slot::Memory { .. } => 2,
                })
                .sum();
            assert_eq!(operands, opcode.desc().operands.len(), "{opcode}");
        }
    }
}
