//! Types: those of WebAssembly by structure, so that they compare across modules, and what they are in CLIF.

use crate::error::{Result, WasmError};
use cranelift_codegen::ir::{AbiParam, Signature, Type, types};
use cranelift_codegen::isa::CallConv;
use wasmparser::{AbstractHeapType, HeapType, RefType, ValType};

/// The shape of vectors outside of the stack: that of the machine's lanes, which casts cost least from.
pub(crate) const WHOLE: Type = types::I32X4;

/// A function type: its number in [`Types`], which equal types of all modules share. Indirect calls compare it.
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
    /// What it refers to.
    pub target: Target,
}

/// What a reference refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Target {
    /// A function of any type.
    Func,
    /// A function of this type.
    Typed(TypeId),
    /// No function.
    NoFunc,
    /// Something of the host.
    Extern,
    /// Nothing of the host.
    NoExtern,
    /// An exception.
    Exn,
    /// No exception.
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

    /// Whether a value of this type is one of the other as well.
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
    /// Whether a value of this type is one of the other as well.
    pub fn is_subtype_of(self, other: Self) -> bool {
        match (self, other) {
            (Self::Ref(a), Self::Ref(b)) => a.is_subtype_of(b),
            (a, b) => a == b,
        }
    }

    /// The type in CLIF. References are addresses of function records, of exceptions, or numbers of the host plus one; null is 0. Vectors are four words,
    /// whatever they are for the module.
    pub fn clif(self) -> Type {
        match self {
            Self::I32 | Self::Ref(_) => types::I32,
            Self::I64 => types::I64,
            Self::F32 => types::F32,
            Self::F64 => types::F64,
            Self::V128 => WHOLE,
        }
    }

    /// Bytes of a value in memory.
    pub fn bytes(self) -> u32 {
        self.clif().bytes()
    }
}

/// A function type.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FuncType {
    /// Types of the arguments.
    pub params: Vec<ValueType>,
    /// Types of the results.
    pub results: Vec<ValueType>,
}

impl FuncType {
    /// The signature in CLIF.
    pub fn signature(&self, convention: CallConv) -> Signature {
        let list = |types: &[ValueType]| types.iter().map(|ty| AbiParam::new(ty.clif())).collect();
        Signature {
            params: list(&self.params),
            returns: list(&self.results),
            call_conv: convention,
        }
    }
}

/// All function types that occurred, each once, and the number of tags of exceptions.
#[derive(Clone, Debug, Default)]
pub struct Types {
    list: Vec<FuncType>,
    tags: u32,
}

impl Types {
    /// The number of a type.
    pub fn intern(&mut self, ty: FuncType) -> TypeId {
        let index = self.list.iter().position(|known| *known == ty).unwrap_or_else(|| {
            self.list.push(ty);
            self.list.len() - 1
        });
        TypeId(index as u32)
    }

    /// The number of a tag of exceptions that no other has.
    pub(crate) fn new_tag(&mut self) -> u32 {
        self.tags += 1;
        self.tags
    }

    /// The type with this number.
    ///
    /// # Errors
    ///
    /// [`WasmError::Internal`] for a number that [`Types::intern`] did not give.
    pub fn get(&self, id: TypeId) -> Result<&FuncType> {
        let ty = self.list.get(id.0 as usize);
        ty.ok_or_else(|| WasmError::internal("a number of a type"))
    }
}

/// The type of a value, where `indices` has the function types of the module so far.
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

/// The type of a reference.
pub(crate) fn reference(ty: RefType, indices: &[TypeId], offset: u64) -> Result<Reference> {
    Ok(Reference {
        nullable: ty.is_nullable(),
        target: heap_type(ty.heap_type(), indices, offset)?,
    })
}

/// What a reference of this heap type refers to.
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
