//! The state of a translation, and the instructions that all parts of it use.

use crate::emit::facts::Facts;
use crate::emit::pointer::{Memory, Pointer, Root};
use crate::error::{Error, Result, Unsupported};
use crate::layout::{Extent, Ty, Types};
use crate::lines::Lines;
use crate::pointers::Unchecked;
use cranelift_codegen::ir::{
    AbiParam, AliasRegion, Block, DataFlowGraph, ExtFuncData, ExternalName, FuncRef, InstBuilder, MemFlagsData,
    Signature, SourceLoc, StackSlot, StackSlotData, StackSlotKind, Type, Value, types,
};
use cranelift_codegen::isa::CallConv;
use cranelift_frontend::FunctionBuilder;
use naga::front::Typifier;
use naga::proc::TypeResolution;
use naga::valid::{FunctionInfo, ModuleInfo};
use naga::{Expression, GlobalVariable, Handle, LocalVariable, Span};
use smallvec::SmallVec;
use std::collections::HashMap;

/// The largest number of bytes of a private variable.
const MAX_PRIVATE_BYTES: u32 = 0x1_0000;

/// The largest number of values, because inlining may grow functions without bound.
const MAX_VALUES: usize = 1_000_000;

/// The scalars of a value.
pub(crate) type Values = SmallVec<[Value; 4]>;

/// A translated expression.
#[derive(Clone, Debug)]
pub(crate) enum Operand {
    Value(Values),
    Pointer(Pointer),
}

/// The types of the expressions of a function.
#[derive(Clone, Copy)]
pub(crate) enum Typing<'m> {
    Checked(&'m FunctionInfo),
    Inferred(&'m Typifier),
}

impl<'m> Typing<'m> {
    /// Returns the type of an expression.
    pub fn of(self, expression: Handle<Expression>) -> &'m TypeResolution {
        match self {
            Self::Checked(info) => &info[expression].ty,
            Self::Inferred(types) => &types[expression],
        }
    }

    /// Returns whether an expression is known to have no use.
    pub fn is_unused(self, expression: Handle<Expression>) -> bool {
        match self {
            Self::Checked(info) => info[expression].ref_count == 0,
            Self::Inferred(_) => false,
        }
    }
}

/// A function that is being inlined, or the entry point.
pub(crate) struct Frame<'m> {
    pub function: &'m naga::Function,
    pub typing: Typing<'m>,
    pub arguments: Vec<Operand>,
    pub locals: HashMap<Handle<LocalVariable>, Root>,
    pub values: HashMap<Handle<Expression>, Operand>,
    /// Targets of `break` and `continue`, innermost last.
    pub targets: Vec<Target>,
    /// The block after an inlined function, whose parameters are the result.
    pub exit: Option<Exit>,
}

/// A target of `break` and `continue`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target {
    pub exit: Block,
    /// The continuing block, if this is a loop.
    pub continuing: Option<Block>,
    pub breaks: bool,
    pub continues: bool,
}

impl Target {
    pub fn new(exit: Block, continuing: Option<Block>) -> Self {
        Self {
            exit,
            continuing,
            breaks: false,
            continues: false,
        }
    }
}

/// The block after an inlined function.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Exit {
    pub block: Block,
    pub is_reached: bool,
    pub depth: u32,
}

/// A function during its construction.
pub(crate) struct Emitter<'m, 'f> {
    pub builder: FunctionBuilder<'f>,
    pub module: &'m naga::Module,
    pub info: &'m ModuleInfo,
    pub unchecked: Option<&'m Unchecked>,
    pub types: Types<'m>,
    pub lines: &'m Lines,
    pub lanes: u32,
    pub workgroup_size: [u32; 3],
    pub globals: HashMap<Handle<GlobalVariable>, Root>,
    /// The lengths of arrays that are sized at run time, in elements.
    pub lengths: HashMap<Handle<GlobalVariable>, Value>,
    /// Constant arrays in memory.
    pub tables: HashMap<Handle<naga::Constant>, StackSlot>,
    pub frame: Frame<'m>,
    pub facts: Facts,
    pub imports: HashMap<String, FuncRef>,
    pub scratchpad: AliasRegion,
    pub span: Span,
    pub workgroup_bytes: u32,
}

impl Emitter<'_, '_> {
    pub fn dfg(&self) -> &DataFlowGraph {
        &self.builder.func.dfg
    }

    /// Returns the error for an unsupported feature at the current place.
    pub fn unsupported(&self, what: impl Into<String>) -> Error {
        Error::feature(what, self.span)
    }

    /// Sets the current place in the source.
    pub fn at(&mut self, span: Span) {
        if let Some(range) = span.to_range() {
            self.span = span;
            let line = self.lines.line(range.start as u32);
            self.builder.set_srcloc(SourceLoc::new(line));
        }
    }

    /// Fails if the function has become too large.
    pub fn check_size(&self) -> Result<()> {
        let size = self.dfg().num_values();
        if size > MAX_VALUES {
            return Err(self.too_large(
                "the function with all inlined calls",
                size as u64,
                MAX_VALUES as u64,
                "values",
            ));
        }
        Ok(())
    }

    pub fn too_large(&self, what: &str, size: u64, limit: u64, unit: &'static str) -> Error {
        let what = what.to_owned();
        Error::refused(
            Unsupported::TooLarge {
                what,
                size,
                limit,
                unit,
            },
            self.span,
        )
    }

    pub fn word(&mut self, value: u32) -> Value {
        self.builder.ins().iconst(types::I32, i64::from(value))
    }

    pub fn float(&mut self, value: f32) -> Value {
        self.builder.ins().f32const(value)
    }

    pub fn flag(&mut self, value: bool) -> Value {
        self.builder.ins().iconst(types::I8, i64::from(value))
    }

    /// Returns an integer of 32 or 64 bits. The upper bits of an `i32` are ignored.
    pub fn integer(&mut self, ty: Type, value: i64) -> Value {
        match ty {
            types::I64 => self.builder.ins().iconst(ty, value),
            _ => self.word(value as u32),
        }
    }

    /// Returns a float of 32 or 64 bits.
    pub fn float_of(&mut self, ty: Type, value: f32) -> Value {
        match ty {
            types::F64 => self.builder.ins().f64const(f64::from(value)),
            _ => self.float(value),
        }
    }

    /// Returns the zero of a type.
    pub fn zero(&mut self, ty: Type) -> Value {
        match ty {
            types::F32 | types::F64 => self.float_of(ty, 0.0),
            _ => self.builder.ins().iconst(ty, 0),
        }
    }

    /// Calls an external function with one result, or none.
    pub fn call(&mut self, name: &str, arguments: &[Value], result: Option<Type>) -> Result<Option<Value>> {
        let function = match self.imports.get(name) {
            Some(&function) => function,
            None => {
                let mut signature = Signature::new(CallConv::SystemV);
                let params = arguments.iter().map(|&value| self.dfg().value_type(value));
                signature.params = params.map(AbiParam::new).collect();
                signature.returns = result.into_iter().map(AbiParam::new).collect();
                let signature = self.builder.import_signature(signature);
                let function = self.builder.import_function(ExtFuncData {
                    name: ExternalName::testcase(name.as_bytes()),
                    signature,
                    colocated: true,
                    patchable: false,
                });
                self.imports.insert(name.to_owned(), function);
                function
            }
        };
        let call = self.builder.ins().call(function, arguments);
        Ok(self.builder.inst_results(call).first().copied())
    }

    /// Calls an external function with a result.
    pub fn call_for(&mut self, name: &str, arguments: &[Value], result: Type) -> Result<Value> {
        let found = self.call(name, arguments, Some(result))?;
        found.ok_or_else(|| Error::Internal(format!("{name} has no result")))
    }

    /// Returns a new stack slot for a type.
    pub fn slot(&mut self, ty: Ty) -> Result<StackSlot> {
        let Extent { bytes, align } = self.types.extent(ty, self.span)?;
        if bytes > MAX_PRIVATE_BYTES {
            return Err(self.too_large("a private variable", bytes.into(), MAX_PRIVATE_BYTES.into(), "bytes"));
        }
        let align = align.trailing_zeros() as u8;
        let data = StackSlotData::new(StackSlotKind::ExplicitSlot, bytes, align);
        Ok(self.builder.create_sized_stack_slot(data))
    }

    /// Returns the flags of accesses to a memory.
    pub fn flags(&self, memory: Memory) -> MemFlagsData {
        let flags = MemFlagsData::new().with_notrap().with_aligned();
        match memory {
            Memory::Workgroup => flags.with_alias_region(Some(self.scratchpad)),
            Memory::Buffer { is_read_only: true, .. } => flags.with_readonly(),
            Memory::Buffer { .. } | Memory::Stack => flags,
        }
    }
}
