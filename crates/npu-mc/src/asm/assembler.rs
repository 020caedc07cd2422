//! The state of an assembly, and the parsing of statements: labels, assignments, instructions.

use super::cursor::Cursor;
use super::expr::{self, Expr, Here};
use super::fault::{Fault, Span};
use super::lexer::{Kind, lex};
use super::object::{Line, Object, Piece, Section};
use super::operand::{self, Bound, TABLE};
use super::symbol::{Definition, SectionId, SymbolId, Symbols};
use super::value::{Evaluator, Value};
use super::{Options, directive, resolve};
use crate::encode::encode;
use crate::inst::{Inst, Opcode, Operand, OperandRange, Operands};
use crate::machine::INSTRUCTION_SIZE;
use crate::reloc::Reloc;
use std::collections::HashMap;

/// The number of faults after which the assembler stops.
const MOST_FAULTS: usize = 1000;

/// A value that can be computed only when all symbols are known.
pub(super) struct Fixup {
    pub(super) section: SectionId,
    pub(super) offset: u32,
    pub(super) expr: Expr,
    pub(super) span: Span,
    pub(super) place: Place,
    /// The index of the statement in the list of lines.
    pub(super) line: usize,
}

/// The target of a [`Fixup`].
pub(super) enum Place {
    /// An operand of an instruction. It may be an address if a relocation exists for it.
    Operand {
        inst: Inst,
        index: usize,
        address: Option<Reloc>,
        number: bool,
    },
    /// This many bytes of data.
    Data(u8),
}

/// The state of an assembly.
pub(super) struct Assembler<'s> {
    pub(super) source: &'s str,
    pub(super) symbols: Symbols,
    pub(super) sections: Vec<Section>,
    pub(super) section_names: HashMap<String, SectionId>,
    pub(super) section: SectionId,
    pub(super) fixups: Vec<Fixup>,
    pub(super) lines: Vec<Line>,
    pub(super) faults: Vec<Fault>,
    stored: usize,
    most_stored: usize,
}

/// Assembles a source. The object is valid only if there are no faults.
pub(super) fn run(source: &str, options: &Options) -> (Object, Vec<Fault>) {
    let mut faults = Vec::new();
    if u32::try_from(source.len()).is_err() {
        faults.push(Fault::new(0..0, "the source is too long", "at most 4 GiB"));
        return (Object::default(), faults);
    }
    let tokens = lex(source, &mut faults);
    let mut assembler = Assembler {
        source,
        symbols: Symbols::default(),
        sections: Vec::new(),
        section_names: HashMap::new(),
        section: SectionId(0),
        fixups: Vec::new(),
        lines: Vec::new(),
        faults,
        stored: 0,
        most_stored: options.most_bytes,
    };
    assembler.section = directive::default_section(&mut assembler, ".text");
    let mut cursor = Cursor::new(&tokens);
    while !cursor.is_done() {
        if assembler.faults.len() >= MOST_FAULTS {
            let rest = cursor.span();
            let end = source.len();
            let why = format!("there are {MOST_FAULTS} faults already");
            assembler.faults.push(Fault::new(
                rest.start..end.min(rest.end.max(rest.start)),
                why,
                "the rest of the source is ignored",
            ));
            break;
        }
        assembler.statement(&mut cursor);
        cursor.skip_statement();
        cursor.advance();
    }
    resolve::finish(assembler)
}

/// Returns the fault for a program with too many stored bytes.
fn too_many(span: &Span, most: usize) -> Fault {
    Fault::new(
        span.clone(),
        "the program is too large",
        format!("at most {most} bytes are stored"),
    )
}

impl<'s> Assembler<'s> {
    pub(super) fn here(&self) -> Here {
        Here {
            section: self.section,
            // The offset saturates: a section of 4 GiB accepts no more bytes, so its end has no
            // uses.
            offset: u32::try_from(self.sections[self.section.index()].size).unwrap_or(u32::MAX),
        }
    }

    pub(super) fn current(&mut self) -> &mut Section {
        &mut self.sections[self.section.index()]
    }

    /// Returns the line number of a source position, for notes.
    pub(super) fn line_number(&self, at: usize) -> usize {
        let before = self.source.as_bytes().get(..at).unwrap_or_default();
        1 + before.iter().filter(|&&b| b == b'\n').count()
    }

    /// Appends bytes to the section.
    pub(super) fn emit(&mut self, bytes: &[u8], span: &Span) -> Result<(), Fault> {
        let here = self.here();
        self.reserve(bytes.len() as u64, span)?;
        let section = self.current();
        if section.nobits {
            if bytes.iter().any(|&b| b != 0) {
                section.size -= bytes.len() as u64;
                let name = section.name.clone();
                return Err(Fault::new(
                    span.clone(),
                    format!("the section `{name}` can only contain zeros"),
                    "contents",
                ));
            }
            return Ok(());
        }
        match section.pieces.last_mut() {
            Some(piece) if u64::from(piece.offset) + piece.bytes.len() as u64 == u64::from(here.offset) => {
                piece.bytes.extend_from_slice(bytes);
            }
            _ => {
                let bytes = bytes.to_vec();
                section.pieces.push(Piece {
                    offset: here.offset,
                    bytes,
                });
            }
        }
        self.stored += bytes.len();
        Ok(())
    }

    /// Appends the same bytes to the section several times.
    pub(super) fn emit_repeated(&mut self, bytes: &[u8], count: u64, span: &Span) -> Result<(), Fault> {
        if self.current().nobits && bytes.iter().all(|&b| b == 0) {
            return self.reserve(count.saturating_mul(bytes.len() as u64), span);
        }
        let left = (self.most_stored - self.stored) as u64;
        match count.checked_mul(bytes.len() as u64) {
            Some(total) if total <= left => self.emit(&bytes.repeat(count as usize), span),
            _ => Err(too_many(span, self.most_stored)),
        }
    }

    /// Extends the section by zeros, which are not stored.
    pub(super) fn reserve(&mut self, count: u64, span: &Span) -> Result<(), Fault> {
        let section = self.current();
        let nobits = section.nobits;
        let size = section.size.saturating_add(count);
        if size > u64::from(u32::MAX) {
            return Err(Fault::new(span.clone(), "the section is larger than 4 GiB", "here"));
        }
        if !nobits && count > (self.most_stored - self.stored) as u64 {
            return Err(too_many(span, self.most_stored));
        }
        self.current().size = size;
        Ok(())
    }

    /// Moves to the same offset or a later one; the bytes in between are not stored.
    pub(super) fn skip_to(&mut self, offset: u32) {
        self.current().size = u64::from(offset);
    }

    /// Parses a number whose value must already be known.
    pub(super) fn number(&mut self, cursor: &mut Cursor<'_, 's>, what: &str) -> Result<(i128, Span), Fault> {
        let here = self.here();
        let (expr, span) = expr::parse(cursor, &mut self.symbols, here)?;
        let number = self.known(&expr, &span, what)?;
        Ok((number, span))
    }

    pub(super) fn known(&self, expr: &Expr, span: &Span, what: &str) -> Result<i128, Fault> {
        if let Expr::Number(value) = expr {
            return Ok(*value);
        }
        match Evaluator::new(&self.symbols).value(expr, span)? {
            Value::Number(value) => Ok(value),
            Value::Address { .. } => {
                let message = format!("{what} has to be known here");
                let fault = Fault::new(span.clone(), message, "depends on an address or on a later definition");
                Err(fault.note("only numbers and distances between earlier labels are known here"))
            }
        }
    }

    fn statement(&mut self, cursor: &mut Cursor<'_, 's>) {
        loop {
            let span = cursor.span();
            let is_label = *cursor.kind_ahead(1) == Kind::Mark(":");
            let defined = match cursor.kind() {
                Kind::Number(number) if is_label => {
                    let label = u32::try_from(*number).map_err(|_| {
                        Fault::new(
                            span.clone(),
                            "the number of this label is too large",
                            "at most 4294967295",
                        )
                    });
                    label.and_then(|n| {
                        let id = self.symbols.define_local(n, &span);
                        self.define(id, &span)
                    })
                }
                Kind::Word(word) if is_label => self.label(word, &span),
                Kind::String(bytes) if is_label => expr::symbol_name(bytes, &span).and_then(|name| {
                    let id = self.symbols.named(&name, &span);
                    self.define(id, &span)
                }),
                _ => break,
            };
            if let Err(fault) = defined {
                self.faults.push(fault);
            }
            cursor.advance();
            cursor.advance();
        }
        if cursor.at_end() {
            return;
        }
        let start = cursor.span().start;
        let here = self.here();
        let is_instruction = matches!(cursor.kind(), Kind::Word(word) if !word.starts_with('.'))
            && *cursor.kind_ahead(1) != Kind::Mark("=");
        let unreadable = cursor.bad_ahead();
        let result = if unreadable {
            Ok(None)
        } else {
            self.one(cursor).and_then(|inst| {
                if cursor.at_end() {
                    Ok(inst)
                } else {
                    Err(cursor.unexpected("the end of the statement"))
                }
            })
        };
        if is_instruction && self.here().offset == here.offset && (unreadable || result.is_err()) {
            // Keep the size of the section right, so that distances in later faults are right. A
            // fault has been reported already.
            let _ = self.reserve(u64::from(INSTRUCTION_SIZE), &(start..start));
        }
        match result {
            Ok(inst) => {
                let after = self.here();
                let len = if after.section == here.section {
                    after.offset - here.offset
                } else {
                    0
                };
                self.lines.push(Line {
                    span: start..cursor.last_end().max(start),
                    section: here.section,
                    offset: here.offset,
                    len,
                    inst,
                });
            }
            Err(fault) => self.faults.push(fault),
        }
    }

    /// Parses a statement after its labels. Returns the instruction if the statement is one.
    fn one(&mut self, cursor: &mut Cursor<'_, 's>) -> Result<Option<Inst>, Fault> {
        let span = cursor.span();
        match cursor.kind() {
            Kind::Word(_) | Kind::String(_) if *cursor.kind_ahead(1) == Kind::Mark("=") => {
                let id = directive::symbol(self, cursor)?;
                cursor.expect("=")?;
                self.assign(cursor, id, &span)?;
                Ok(None)
            }
            Kind::Word(word) if word.starts_with('.') => {
                cursor.advance();
                directive::run(self, cursor, word, &span)?;
                Ok(None)
            }
            Kind::Word(word) => {
                cursor.advance();
                self.instruction(cursor, word, &span)
            }
            _ => Err(cursor.unexpected("a label, a directive or an instruction")),
        }
    }

    fn label(&mut self, word: &str, span: &Span) -> Result<(), Fault> {
        if word == "." {
            return Err(Fault::new(
                span.clone(),
                "`.` is the current address, not a label",
                "here",
            ));
        }
        if let Some(fault) = expr::register_fault(word, span, "a label") {
            return Err(fault);
        }
        let id = self.symbols.named(word, span);
        self.define(id, span)
    }

    /// Defines a symbol as the current address.
    pub(super) fn define(&mut self, id: SymbolId, span: &Span) -> Result<(), Fault> {
        let Here { section, offset } = self.here();
        let entry = self.symbols.get_mut(id);
        if !matches!(entry.definition, Definition::None) {
            let (first, name) = (entry.span.start, entry.name.clone());
            let line = self.line_number(first);
            let fault = Fault::new(span.clone(), format!("`{name}` is defined twice"), "defined again");
            return Err(fault.note(format!("the first definition is in line {line}")));
        }
        entry.definition = Definition::Label { section, offset };
        entry.span = span.clone();
        Ok(())
    }

    /// Parses the value of an assignment and assigns it to a symbol.
    pub(super) fn assign(&mut self, cursor: &mut Cursor<'_, 's>, id: SymbolId, span: &Span) -> Result<(), Fault> {
        let here = self.here();
        let (expr, expr_span) = expr::parse(cursor, &mut self.symbols, here)?;
        // A value that is already a number is stored as one, so that later uses need no fixup.
        let expr = match Evaluator::new(&self.symbols).value(&expr, &expr_span) {
            Ok(Value::Number(value)) => Expr::Number(value),
            _ => expr,
        };
        let entry = self.symbols.get_mut(id);
        let again = match entry.definition {
            Definition::None => None,
            Definition::Label { .. } => Some("is a label"),
            Definition::Assigned(Expr::Number(_)) if !entry.awaited => None,
            Definition::Assigned(Expr::Number(_)) => Some("was used before its first definition"),
            Definition::Assigned(_) => Some("stands for an address"),
        };
        if let Some(why) = again {
            let (first, name) = (entry.span.start, entry.name.clone());
            let line = self.line_number(first);
            let fault = Fault::new(span.clone(), format!("`{name}` cannot be redefined: it {why}"), "here");
            return Err(fault.note(format!("the first definition is in line {line}")));
        }
        entry.definition = Definition::Assigned(expr);
        entry.span = span.clone();
        Ok(())
    }

    fn instruction(&mut self, cursor: &mut Cursor<'_, 's>, word: &str, span: &Span) -> Result<Option<Inst>, Fault> {
        let mnemonic = word.to_ascii_lowercase();
        let here = self.here();
        if mnemonic == "lea" {
            let args = operand::parse(cursor, &mut self.symbols, here)?;
            return self.load_address(args, span).map(|()| None);
        }
        let Some(opcodes) = TABLE.opcodes(&mnemonic) else {
            let fault = Fault::new(span.clone(), format!("there is no instruction `{word}`"), "unknown");
            return Err(match TABLE.nearest(&mnemonic) {
                Some(near) => fault.note(format!("did you mean `{near}`?")),
                None => fault.note("`clif-util isa instructions` lists them"),
            });
        };
        let args = operand::parse(cursor, &mut self.symbols, here)?;
        let (opcode, bound) = operand::choose(&mnemonic, span, opcodes, args)?;
        self.encode(opcode, bound, span).map(Some)
    }

    /// Assembles `lea rd, symbol`, which loads both halves of an address.
    fn load_address(&mut self, args: Vec<(operand::Arg, Span)>, span: &Span) -> Result<(), Fault> {
        for mnemonic in ["leah", "leal"] {
            let missing = || {
                Fault::new(
                    span.clone(),
                    format!("internal error: there is no `{mnemonic}`"),
                    "needed here",
                )
            };
            let opcodes = TABLE.opcodes(mnemonic).ok_or_else(missing)?;
            let args = args.clone();
            let (opcode, bound) = operand::choose(mnemonic, span, opcodes, args).map_err(|mut fault| {
                fault.message = fault.message.replace(mnemonic, "lea");
                fault.notes = vec!["`lea S, symbol` stands for `leah` and `leal` with the same operands".to_owned()];
                fault
            })?;
            if let Some(Bound::Value(Expr::Number(_), at)) = bound.last() {
                let fault = Fault::new(at.clone(), "`lea` takes a symbol, not a number", "a number");
                return Err(fault.note("`moveih` and `moveil` load the halves of a number"));
            }
            self.encode(opcode, bound, span)?;
        }
        Ok(())
    }

    /// Encodes an instruction at the current address.
    fn encode(&mut self, opcode: Opcode, bound: Vec<Bound>, span: &Span) -> Result<Inst, Fault> {
        let here = self.here();
        if !here.offset.is_multiple_of(INSTRUCTION_SIZE) {
            let message = format!("the address of an instruction is not a multiple of {INSTRUCTION_SIZE}");
            let fault = Fault::new(
                span.clone(),
                message,
                format!("offset {:#x} in its section", here.offset),
            );
            return Err(fault.note(format!("`.balign {INSTRUCTION_SIZE}` advances to the next multiple")));
        }
        let mut operands = Operands::new();
        let mut waiting = None;
        for (index, bound) in bound.into_iter().enumerate() {
            operands.push(match bound {
                Bound::Reg(reg) => Operand::from(reg),
                Bound::Value(Expr::Number(value), at) => Operand::Imm(immediate(opcode, index, value, &at)?),
                Bound::Value(expr, at) => {
                    waiting = Some((index, expr, at, operand::address(opcode, index), true));
                    Operand::Imm(0)
                }
                Bound::Label(expr, at) => {
                    waiting = Some((index, expr, at, Some(operand::label(opcode)), false));
                    Operand::Imm(0)
                }
            });
        }
        let inst = Inst { opcode, operands };
        let word = encode(&inst).map_err(|e| Fault::new(span.clone(), e.to_string(), "here"))?;
        self.emit(&word.to_le_bytes(), span)?;
        // An instruction has at most one operand that is not a register.
        if let Some((index, expr, at, address, number)) = waiting {
            let place = Place::Operand {
                inst,
                index,
                address,
                number,
            };
            self.fix(expr, at, here, place);
        }
        Ok(inst)
    }

    pub(super) fn fix(&mut self, expr: Expr, span: Span, here: Here, place: Place) {
        let section = self.current();
        if section.nobits {
            let message = format!("the section `{}` can only contain zeros", section.name);
            self.faults.push(Fault::new(span, message, "contents"));
            return;
        }
        self.fixups.push(Fixup {
            section: here.section,
            offset: here.offset,
            expr,
            span,
            place,
            line: self.lines.len(),
        });
    }
}

/// Returns the number for an operand, or a fault if it is out of range.
pub(super) fn immediate(opcode: Opcode, index: usize, value: i128, span: &Span) -> Result<i32, Fault> {
    let desc = opcode.desc();
    let range = desc.operands.get(index).map(|o| o.kind.range());
    if let Some(OperandRange::Immediate { min, max, .. }) = range {
        if let Ok(small) = i32::try_from(value)
            && (min..=max).contains(&small)
        {
            return Ok(small);
        }
        let message = format!("{value} is out of range for `{}`", desc.mnemonic);
        let fault = Fault::new(span.clone(), message, format!("{min} to {max} fit"));
        return Err(match operand::address(opcode, index) {
            Some(Reloc::Branch) => fault.note("a distance in bytes; `jmp` with a register reaches any address"),
            _ if desc.flags.may_load() || desc.flags.may_store() => {
                fault.note("an offset in bytes; add the rest to the base register")
            }
            _ => fault.note("`moveih` and `moveil` load the halves of any number into a register"),
        });
    }
    Err(Fault::new(
        span.clone(),
        format!("`{}` takes a register here", desc.mnemonic),
        "a number",
    ))
}
