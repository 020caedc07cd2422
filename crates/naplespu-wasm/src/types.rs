//! Types of WebAssembly, compared by structure across modules, and their CLIF types.

use crate::error::{Result, WasmError};
use cranelift_codegen::ir::{AbiParam, Signature, Type, types};
use cranelift_codegen::isa::CallConv;
use wasmparser::{AbstractHeapType, HeapType, RefType, ValType};

/// The type of vectors outside the value stack. It matches the lanes of the machine, so casts from
/// it cost least.
pub(crate) const WHOLE: Type = types::I32X4;

/// The number of a function type in [`Types`]. Equal types of all modules share it. Indirect calls
/// compare it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TypeId(pub u32);

/// The type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ValueType {
    /// `i32`.
    I32,
    /// `i64`.
    I64,
    /// `f32`.
    F32,
    /// `f64`.
    F64,
    /// `v128`.
    V128,
    /// A reference.
    Ref(Reference),
}

/// The type of a reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Reference {
    /// Whether it may be null.
    pub nullable: bool,
    /// The kind of its referent.
    pub target: Target,
}

/// The kind of referent of a reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Target {
    /// A function of any type.
    Func,
    /// A function of this type.
    Typed(TypeId),
    /// No function (the bottom type of functions).
    NoFunc,
    /// A host reference.
    Extern,
    /// No host reference (the bottom type of host references).
    NoExtern,
    /// An exception.
    Exn,
    /// No exception (the bottom type of exceptions).
    NoExn,
}

impl Reference {
    /// `funcref`.
    pub const FUNC: Self = Self {
        nullable: true,
        target: Target::Func,
    };
    /// `externref`.
    pub const EXTERN: Self = Self {
        nullable: true,
        target: Target::Extern,
    };

    /// Returns whether this type is a subtype of `other`.
    pub fn is_subtype_of(self, other: Self) -> bool {
        let targets = match (self.target, other.target) {
            (a, b) if a == b => true,
            (Target::Typed(_) | Target::NoFunc, Target::Func)
            | (Target::NoFunc, Target::Typed(_))
            | (Target::NoExtern, Target::Extern)
            | (Target::NoExn, Target::Exn) => true,
            _ => false,
        };
        targets && (other.nullable || !self.nullable)
    }
}

impl ValueType {
    /// Returns whether this type is a subtype of `other`.
    pub fn is_subtype_of(self, other: Self) -> bool {
        match (self, other) {
            (Self::Ref(a), Self::Ref(b)) => a.is_subtype_of(b),
            (a, b) => a == b,
        }
    }

    /// Returns the CLIF type. A reference is the address of a function record or exception, or a
    /// host number plus one; null is 0. All vectors are `i32x4`.
    pub fn clif(self) -> Type {
        match self {
            Self::I32 | Self::Ref(_) => types::I32,
            Self::I64 => types::I64,
            Self::F32 => types::F32,
            Self::F64 => types::F64,
            Self::V128 => WHOLE,
        }
    }

    /// Returns the size of a value in memory, in bytes.
    pub fn bytes(self) -> u32 {
        self.clif().bytes()
    }
}

/// A function type.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FuncType {
    /// The types of the parameters.
    pub params: Vec<ValueType>,
    /// The types of the results.
    pub results: Vec<ValueType>,
}

impl FuncType {
    /// Returns the CLIF signature.
    pub fn signature(&self, convention: CallConv) -> Signature {
        let list = |types: &[ValueType]| types.iter().map(|ty| AbiParam::new(ty.clif())).collect();
        Signature {
            params: list(&self.params),
            returns: list(&self.results),
            call_conv: convention,
        }
    }
}

/// The function types of all modules, without duplicates, and the number of exception tags.
#[derive(Clone, Debug, Default)]
pub struct Types {
    list: Vec<FuncType>,
    tags: u32,
}

impl Types {
    /// Returns the number of a type; equal types have the same number.
    pub fn intern(&mut self, ty: FuncType) -> TypeId {
        let index = self.list.iter().position(|known| *known == ty).unwrap_or_else(|| {
            self.list.push(ty);
            self.list.len() - 1
        });
        TypeId(index as u32)
    }

    /// Returns a new number for an exception tag.
    pub(crate) fn new_tag(&mut self) -> u32 {
        self.tags += 1;
        self.tags
    }

    /// Returns the type with this number.
    ///
    /// # Errors
    ///
    /// [`WasmError::Internal`] if the number is not from [`Types::intern`].
    pub fn get(&self, id: TypeId) -> Result<&FuncType> {
        let ty = self.list.get(id.0 as usize);
        ty.ok_or_else(|| WasmError::internal("a number of a type"))
    }
}

/// Converts the type of a value. `indices` maps the type indices of the module, so far, to numbers.
pub(crate) fn value_type(ty: ValType, indices: &[TypeId], offset: u64) -> Result<ValueType> {
    Ok(match ty {
        ValType::I32 => ValueType::I32,
        ValType::I64 => ValueType::I64,
        ValType::F32 => ValueType::F32,
        ValType::F64 => ValueType::F64,
        ValType::V128 => ValueType::V128,
        ValType::Ref(ty) => ValueType::Ref(reference(ty, indices, offset)?),
    })
}

/// Converts the type of a reference.
pub(crate) fn reference(ty: RefType, indices: &[TypeId], offset: u64) -> Result<Reference> {
    Ok(Reference {
        nullable: ty.is_nullable(),
        target: heap_type(ty.heap_type(), indices, offset)?,
    })
}

/// Converts a heap type.
pub(crate) fn heap_type(ty: HeapType, indices: &[TypeId], offset: u64) -> Result<Target> {
    let index = match ty {
        HeapType::Abstract { shared: false, ty } => match ty {
            AbstractHeapType::Func => return Ok(Target::Func),
            AbstractHeapType::NoFunc => return Ok(Target::NoFunc),
            AbstractHeapType::Extern => return Ok(Target::Extern),
            AbstractHeapType::NoExtern => return Ok(Target::NoExtern),
            AbstractHeapType::Exn => return Ok(Target::Exn),
            AbstractHeapType::NoExn => return Ok(Target::NoExn),
            other => return Err(unsupported(&format!("a reference to {other:?}"), offset)),
        },
        HeapType::Abstract { shared: true, .. } => return Err(unsupported("a shared reference", offset)),
        HeapType::Concrete(index) | HeapType::Exact(index) => index,
    };
    match index.as_module_index().and_then(|index| indices.get(index as usize)) {
        Some(&id) => Ok(Target::Typed(id)),
        None => Err(unsupported("a recursive type", offset)),
    }
}

pub(crate) fn unsupported(what: &str, offset: u64) -> WasmError {
    WasmError::Unsupported {
        offset,
        what: what.to_owned(),
    }
}
