//! The target as typed tables: the result of [`load`](crate::load()), and the input of the back
//! ends.
//!
//! Each table entry keeps the span of its record, so a later check can still point into td.

use crate::semantics::graph::{Operations, Semantics};
use tablegen::Span;

/// The whole target, checked.
#[derive(Debug, Default)]
pub struct Target {
    /// Registers, scalar file first, each file in encoding order.
    pub registers: Vec<Register>,
    /// Register classes in definition order.
    pub classes: Vec<RegisterClass>,
    /// Instruction formats in definition order.
    pub formats: Vec<Named>,
    /// Execution units in definition order.
    pub units: Vec<Named>,
    /// How well the hardware implements an operation, in definition order.
    pub statuses: Vec<Named>,
    /// Kinds of encoded operands: the register classes and immediate operand classes that
    /// instructions use.
    pub operand_kinds: Vec<OperandKind>,
    /// Encodable instructions in definition order.
    pub instructions: Vec<Instruction>,
    /// The operations of semantics.
    pub operations: Operations,
    /// Instruction relations in definition order.
    pub mappings: Vec<Mapping>,
    /// The hardware's opcode tables.
    pub hw_ops: Vec<HwOpTable>,
    /// The hardware's layouts of the formats.
    pub hw_formats: Vec<HwFormat>,
    /// Value types of the calling conventions in definition order.
    pub value_types: Vec<ValueType>,
    /// Calling conventions in definition order.
    pub conventions: Vec<Convention>,
    /// Callee-saved lists in definition order.
    pub callee_saved: Vec<CalleeSaved>,
    /// Relocations in definition order.
    pub relocations: Vec<Relocation>,
    /// Hardware errata in definition order.
    pub errata: Vec<Erratum>,
    /// Settings of the compiler in definition order, without those of the errata.
    pub settings: Vec<Setting>,
    /// Memory map, hardware configuration and frame constants.
    pub constants: Vec<Constant>,
    /// Constants of ELF files.
    pub elf: Vec<Constant>,
    /// Texts of the target: triple, data layout, section names.
    pub texts: Vec<TextConstant>,
    /// Trap reasons by value.
    pub trap_reasons: Vec<Constant>,
    /// Thread states by value.
    pub thread_statuses: Vec<Constant>,
}

/// A record that supplies only its name and documentation.
#[derive(Debug, Clone)]
pub struct Named {
    /// The displayed name.
    pub name: String,
    /// The record's name.
    pub record: String,
    /// One sentence, empty if td has none.
    pub doc: String,
    /// The source location of the record.
    pub span: Span,
}

/// A register file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RegFile {
    /// Scalar registers.
    Scalar,
    /// Vector registers.
    Vector,
}

/// A register.
#[derive(Debug)]
pub struct Register {
    /// Record name.
    pub record: String,
    /// The assembler's name.
    pub asm_name: String,
    /// The file.
    pub file: RegFile,
    /// Encoding.
    pub number: u8,
    /// DWARF number.
    pub dwarf: u16,
    /// The source location of the record.
    pub span: Span,
}

/// A register class.
#[derive(Debug)]
pub struct RegisterClass {
    /// Record name.
    pub record: String,
    /// The file of its members.
    pub file: RegFile,
    /// Members (indices into [`Target::registers`]) in allocation order.
    pub members: Vec<usize>,
    /// Members that are never allocated.
    pub reserved: Vec<usize>,
    /// Spill slot size in bytes.
    pub spill_size: u32,
    /// Spill slot alignment in bytes.
    pub spill_align: u32,
    /// The source location of the record.
    pub span: Span,
}

/// The values that an encoded operand accepts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OperandRange {
    /// A register of a class.
    Register(RegFile),
    /// An integer.
    Immediate {
        /// The smallest value.
        min: i32,
        /// The largest value.
        max: i32,
        /// The number of significant bits.
        bits: u32,
        /// Whether the decoder sign-extends.
        signed: bool,
        /// Width of the field in the word; bits above the significant ones repeat the sign.
        field_bits: u32,
    },
}

/// A kind of encoded operand.
#[derive(Debug)]
pub struct OperandKind {
    /// Name of the Rust variant.
    pub name: String,
    /// Record name.
    pub record: String,
    /// The accepted values.
    pub range: OperandRange,
    /// The source location of the record.
    pub span: Span,
}

/// A run of consecutive bits of an operand in the instruction word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BitRun {
    /// Lowest bit in the word.
    pub inst_lsb: u8,
    /// Lowest bit in the operand's value.
    pub value_lsb: u8,
    /// Number of bits.
    pub width: u8,
}

/// An encoded operand.
#[derive(Debug)]
pub struct Operand {
    /// Name in td, without `$`.
    pub name: String,
    /// Index into [`Target::operand_kinds`].
    pub kind: usize,
    /// Whether it is an output.
    pub is_def: bool,
    /// The positions of its bits.
    pub runs: Vec<BitRun>,
}

/// A piece of assembly text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AsmPiece {
    /// Literal text.
    Text(String),
    /// An operand, by index.
    Operand(usize),
    /// An immediate that is not printed if it is 0.
    OperandUnlessZero(usize),
}

/// The properties of an instruction that are one bit in td.
#[derive(Debug, Clone, Copy, Default)]
pub struct Flags {
    /// `isBranch`
    pub branch: bool,
    /// `isTerminator`
    pub terminator: bool,
    /// `isBarrier`
    pub barrier: bool,
    /// `isCall`
    pub call: bool,
    /// `isReturn`
    pub ret: bool,
    /// `isIndirectBranch`
    pub indirect: bool,
    /// `mayLoad`
    pub load: bool,
    /// `mayStore`
    pub store: bool,
    /// `hasSideEffects`
    pub side_effects: bool,
    /// `isCommutable`
    pub commutable: bool,
    /// `isCompare`
    pub compare: bool,
    /// `isMoveReg`
    pub move_reg: bool,
}

/// An encodable instruction.
#[derive(Debug)]
pub struct Instruction {
    /// Record name.
    pub record: String,
    /// `td/FILE:LINE` of the record and of each `defm` that made it.
    pub place: String,
    /// First word of the text.
    pub mnemonic: String,
    /// `AsmString`.
    pub asm: String,
    /// Index into [`Target::formats`].
    pub format: usize,
    /// Encoded operands in assembly order.
    pub operands: Vec<Operand>,
    /// The text, in pieces.
    pub pieces: Vec<AsmPiece>,
    /// Whether an output is tied to an input.
    pub reads_dst: bool,
    /// Registers read (indices into [`Target::registers`]).
    pub uses: Vec<usize>,
    /// Registers written.
    pub defs: Vec<usize>,
    /// Whether it is the `.m` form.
    pub masked: bool,
    /// Whether it accesses the scratchpad.
    pub scratchpad: bool,
    /// Index into [`Target::units`].
    pub unit: usize,
    /// Cycles to the issue of a dependent instruction.
    pub latency: u8,
    /// Write-port slot of the float unit, if it uses one.
    pub fp_slot: Option<u8>,
    /// The one-bit properties.
    pub flags: Flags,
    /// Constant bits.
    pub base: u32,
    /// The mask of bits that are constant and that the decoder checks.
    pub fixed: u32,
    /// The mask of bits that the decoder ignores.
    pub ignored: u32,
    /// Whether the decoder returns it.
    pub decodable: bool,
    /// The source location of the record.
    pub span: Span,
    /// The span of the value of `Inst`.
    pub inst_span: Span,
    /// Its semantics.
    pub semantics: Semantics,
}

/// An instruction relation (`InstrMapping`).
#[derive(Debug)]
pub struct Mapping {
    /// Record name.
    pub record: String,
    /// Rust function name.
    pub function: String,
    /// The values of the columns, one text per column field.
    pub columns: Vec<Vec<String>>,
    /// The key instructions that have a target in some column, each with its targets in all columns
    /// (indices into [`Target::instructions`]); sorted by key.
    pub rows: Vec<(usize, Vec<Option<usize>>)>,
    /// The source location of the record.
    pub span: Span,
}

/// The hardware's opcodes of one format. Several formats may share them.
#[derive(Debug)]
pub struct HwOpTable {
    /// Name of the Rust enum.
    pub name: String,
    /// The opcodes.
    pub ops: Vec<HwOp>,
}

/// One opcode of the hardware.
#[derive(Debug)]
pub struct HwOp {
    /// Record name.
    pub record: String,
    /// Name of the Rust variant.
    pub variant: String,
    /// The displayed name.
    pub name: String,
    /// The number in the format's opcode field.
    pub code: u8,
    /// Index into [`Target::units`].
    pub unit: usize,
    /// Cycles to the issue of a dependent instruction.
    pub latency: u8,
    /// Write-port slot of the float unit, if it uses one.
    pub fp_slot: Option<u8>,
    /// How well the hardware implements it (an index into [`Target::statuses`]).
    pub status: usize,
    /// How well the hardware implements it on the scratchpad.
    pub scratchpad_status: usize,
    /// Cycles to the issue of a dependent instruction, on the scratchpad.
    pub scratchpad_latency: u8,
    /// Bytes accessed; per lane for a vector.
    pub access_bytes: u8,
    /// The alignment that the hardware checks, in bytes.
    pub alignment: u8,
    /// The source location of the record.
    pub span: Span,
}

/// The hardware's layout of a format.
#[derive(Debug)]
pub struct HwFormat {
    /// Record name.
    pub record: String,
    /// Name of the Rust variant.
    pub variant: String,
    /// One sentence.
    pub doc: String,
    /// Index into [`Target::hw_ops`].
    pub ops: usize,
    /// Fixed bits.
    pub base: u32,
    /// The mask of fixed bits.
    pub fixed: u32,
    /// Fields, most significant first.
    pub fields: Vec<HwField>,
    /// The source location of the record.
    pub span: Span,
}

/// A field of a hardware format: one run of bits.
#[derive(Debug)]
pub struct HwField {
    /// Name.
    pub name: String,
    /// Lowest bit in the word.
    pub lsb: u8,
    /// Number of bits.
    pub width: u8,
    /// Its contents.
    pub kind: HwFieldKind,
}

/// The contents of a field of a hardware format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HwFieldKind {
    /// The opcode number.
    Operation,
    /// A number.
    Number {
        /// Whether it is signed.
        signed: bool,
    },
    /// A scalar register.
    Scalar,
    /// A register of either file.
    Register {
        /// The bit of the word that is set for a vector register.
        vector: u8,
    },
    /// The bit that selects the file of a register field.
    File,
}

/// A value type of the calling conventions.
#[derive(Debug)]
pub struct ValueType {
    /// Record name.
    pub record: String,
    /// Name of the Rust variant.
    pub variant: String,
    /// Size in bits.
    pub bits: u32,
    /// Number of lanes; 1 for a scalar.
    pub lanes: u32,
    /// Name in CLIF; empty if CLIF has no such type.
    pub clif: String,
    /// The source location of the record.
    pub span: Span,
}

/// An action of a calling convention.
#[derive(Debug)]
pub enum Action {
    /// Applies the inner action to some value types only.
    IfType(Vec<usize>, Box<Action>),
    /// Continues with another value type.
    Promote(usize),
    /// Assigns several values of a smaller type instead, the low one first.
    Split {
        /// The type of a part.
        part: usize,
        /// The number of parts.
        count: u32,
    },
    /// Assigns the first free register of the list.
    ToReg(Vec<usize>),
    /// Assigns the next stack slot: size and alignment in bytes.
    ToStack(u32, u32),
    /// Continues with another convention.
    Delegate(usize),
}

/// A calling convention.
#[derive(Debug)]
pub struct Convention {
    /// Record name.
    pub record: String,
    /// The actions in order.
    pub actions: Vec<Action>,
    /// The source location of the record.
    pub span: Span,
}

/// A list of callee-saved registers.
#[derive(Debug)]
pub struct CalleeSaved {
    /// Record name.
    pub record: String,
    /// Registers in save order (indices into [`Target::registers`]).
    pub registers: Vec<usize>,
    /// The source location of the record.
    pub span: Span,
}

/// How the value of a relocation is computed: S is the symbol, A the addend, P the address of the
/// field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RelocFormula {
    /// Nothing is written.
    None,
    /// S + A
    Abs,
    /// S + A - P
    Pc,
    /// Bits 31-16 of S + A
    AbsHigh,
    /// Bits 15-0 of S + A
    AbsLow,
}

/// A relocation type.
#[derive(Debug)]
pub struct Relocation {
    /// The ELF name.
    pub name: String,
    /// The ELF number.
    pub number: u8,
    /// How the value is computed.
    pub formula: RelocFormula,
    /// Lowest bit of the field.
    pub lsb: u8,
    /// Width of the field in bits; 0 for no field.
    pub width: u8,
    /// Whether the value has to fit the field as a signed number.
    pub signed: bool,
    /// The source location of the record.
    pub span: Span,
}

/// A hardware erratum.
#[derive(Debug)]
pub struct Erratum {
    /// Record name.
    pub record: String,
    /// Short name, used in settings.
    pub name: String,
    /// The fault, in one sentence.
    pub summary: String,
    /// Effect on programs.
    pub effect: String,
    /// The work-around of the compiler.
    pub workaround: String,
    /// Whether a setting can turn the work-around off.
    pub is_setting: bool,
    /// The document with the details.
    pub reference: String,
    /// The instructions that the erratum concerns, as indices.
    pub instructions: Vec<usize>,
    /// The source location of the record.
    pub span: Span,
}

/// A setting of the compiler.
#[derive(Debug)]
pub struct Setting {
    /// Its name.
    pub name: String,
    /// Its effect.
    pub summary: String,
    /// Its values.
    pub kind: SettingKind,
    /// The source location of the record.
    pub span: Span,
}

/// The values of a setting.
#[derive(Debug)]
pub enum SettingKind {
    /// On or off.
    Bool {
        /// The default.
        default: bool,
    },
    /// A number.
    Number {
        /// The smallest value.
        min: u32,
        /// The largest value.
        max: u32,
        /// The default.
        default: u32,
    },
    /// One of several names.
    Enum {
        /// Name and meaning of the default.
        default: (String, String),
        /// Name and meaning of the others.
        others: Vec<(String, String)>,
    },
}

/// A named number.
#[derive(Debug)]
pub struct Constant {
    /// The displayed name.
    pub name: String,
    /// The number.
    pub value: i64,
    /// One sentence, empty if td has none.
    pub doc: String,
    /// The source location of the record.
    pub span: Span,
}

/// A named text.
#[derive(Debug)]
pub struct TextConstant {
    /// The displayed name.
    pub name: String,
    /// The text.
    pub text: String,
    /// One sentence.
    pub doc: String,
}
