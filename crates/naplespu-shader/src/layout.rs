//! Types as lists of scalars, and their layouts in memory.
//!
//! A value of any type is the list of its scalars in order: the components of vectors, the columns
//! of matrices, the elements of arrays and the members of structs. A [`Layout`] gives the byte
//! offset of each scalar in memory.

use crate::error::{Error, Result, Unsupported};
use cranelift_codegen::ir::{Type, types};
use naga::proc::TypeResolution;
use naga::{ArraySize, Handle, Module, Scalar, ScalarKind, Span, TypeInner, VectorSize};

/// The largest number of scalars in a value.
pub(crate) const MAX_SCALARS: u32 = 4096;

/// A type of a value in memory or in registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ty {
    Scalar(Scalar),
    Atomic(Scalar),
    Vector(VectorSize, Scalar),
    Matrix {
        columns: VectorSize,
        rows: VectorSize,
        scalar: Scalar,
    },
    /// An array or a struct.
    Composite(Handle<naga::Type>),
}

/// The arrangement of scalars in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layout {
    /// The layout of the shader language, for buffers.
    Host,
    /// Scalars without padding, for memory that the host does not see. A scalar has one word, or two
    /// aligned words if it has 64 bits.
    Words,
}

/// The types of a module.
#[derive(Clone, Copy)]
pub(crate) struct Types<'m> {
    pub module: &'m Module,
}

/// Returns the CLIF type of a scalar in a register. An `f16` is an `f32` whose value an `f16` can
/// have, because the machine has no half-precision arithmetic.
pub(crate) fn register(scalar: Scalar, span: Span) -> Result<Type> {
    match (scalar.kind, scalar.width) {
        (ScalarKind::Bool, _) => Ok(types::I8),
        (ScalarKind::Sint | ScalarKind::Uint, 4) => Ok(types::I32),
        (ScalarKind::Sint | ScalarKind::Uint, 8) => Ok(types::I64),
        (ScalarKind::Float, 2 | 4) => Ok(types::F32),
        (ScalarKind::Float, 8) => Ok(types::F64),
        (kind, width) => {
            let letter = match kind {
                ScalarKind::Sint => "i",
                ScalarKind::Uint => "u",
                ScalarKind::Float => "f",
                _ => return Err(Error::feature("an abstract number at run time", span)),
            };
            Err(Error::feature(
                format!("the type {letter}{}", u32::from(width) * 8),
                span,
            ))
        }
    }
}

/// Returns whether a scalar is an `f16`.
pub(crate) fn is_half(scalar: Scalar) -> bool {
    scalar.kind == ScalarKind::Float && scalar.width == 2
}

/// Bytes and their alignment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extent {
    pub bytes: u32,
    pub align: u32,
}

impl Extent {
    fn of(scalar: Scalar) -> Self {
        let bytes = u32::from(scalar.width).max(4);
        Self { bytes, align: bytes }
    }

    fn times(self, count: u32) -> Self {
        Self {
            bytes: self.bytes.saturating_mul(count),
            ..self
        }
    }

    /// Returns the bytes up to a multiple of an alignment.
    fn padded(self, align: u32) -> u32 {
        self.bytes.checked_next_multiple_of(align).unwrap_or(u32::MAX)
    }
}

impl<'m> Types<'m> {
    /// Returns a type by handle.
    pub fn of(self, handle: Handle<naga::Type>, span: Span) -> Result<Ty> {
        match &self.module.types[handle].inner {
            TypeInner::Array { .. } | TypeInner::Struct { .. } => Ok(Ty::Composite(handle)),
            inner => self.of_inner(inner, span),
        }
    }

    /// Returns the type of an expression.
    pub fn resolved(self, resolution: &TypeResolution, span: Span) -> Result<Ty> {
        match resolution.handle() {
            Some(handle) => self.of(handle, span),
            None => self.of_inner(resolution.inner_with(&self.module.types), span),
        }
    }

    fn of_inner(self, inner: &TypeInner, span: Span) -> Result<Ty> {
        let name = match *inner {
            TypeInner::Scalar(scalar) => return Ok(Ty::Scalar(scalar)),
            TypeInner::Atomic(scalar) => return Ok(Ty::Atomic(scalar)),
            TypeInner::Vector { size, scalar } => return Ok(Ty::Vector(size, scalar)),
            TypeInner::Matrix { columns, rows, scalar } => return Ok(Ty::Matrix { columns, rows, scalar }),
            TypeInner::CooperativeMatrix { .. } => "a cooperative matrix",
            TypeInner::Image { .. } => "a texture",
            TypeInner::Sampler { .. } => "a sampler",
            TypeInner::AccelerationStructure { .. } => "an acceleration structure",
            TypeInner::RayQuery { .. } => "a ray query",
            TypeInner::BindingArray { .. } => "an array of bindings",
            TypeInner::Pointer { .. } | TypeInner::ValuePointer { .. } => "a pointer in a value",
            TypeInner::Array { .. } | TypeInner::Struct { .. } => "a type without a declaration",
        };
        Err(Error::feature(name, span))
    }

    /// Returns the number of elements that an index can select, or `None` for an array that is
    /// sized at run time.
    pub fn elements(self, ty: Ty) -> Option<u32> {
        match ty {
            Ty::Scalar(_) | Ty::Atomic(_) => Some(1),
            Ty::Vector(size, _) => Some(u32::from(size)),
            Ty::Matrix { columns, .. } => Some(u32::from(columns)),
            Ty::Composite(handle) => match &self.module.types[handle].inner {
                TypeInner::Array { size, .. } => match *size {
                    ArraySize::Constant(size) => Some(size.get()),
                    ArraySize::Pending(_) => match size.resolve(self.module.to_ctx()) {
                        Ok(naga::proc::IndexableLength::Known(count)) => Some(count),
                        _ => None,
                    },
                    ArraySize::Dynamic => None,
                },
                TypeInner::Struct { members, .. } => Some(members.len() as u32),
                _ => Some(0),
            },
        }
    }

    /// Returns the type of an element, or of a member of a struct.
    pub fn element(self, ty: Ty, index: u32, span: Span) -> Result<Ty> {
        match ty {
            Ty::Scalar(_) | Ty::Atomic(_) => Err(Error::Internal("an element of a scalar".to_owned())),
            Ty::Vector(_, scalar) => Ok(Ty::Scalar(scalar)),
            Ty::Matrix { rows, scalar, .. } => Ok(Ty::Vector(rows, scalar)),
            Ty::Composite(handle) => match &self.module.types[handle].inner {
                TypeInner::Array { base, .. } => self.of(*base, span),
                TypeInner::Struct { members, .. } => match members.get(index as usize) {
                    Some(member) => self.of(member.ty, span),
                    None => Err(Error::Internal(format!("a struct without member {index}"))),
                },
                _ => Err(Error::Internal("an element of a scalar".to_owned())),
            },
        }
    }

    /// Returns whether the type is a struct.
    pub fn is_struct(self, ty: Ty) -> bool {
        matches!(ty, Ty::Composite(handle) if matches!(self.module.types[handle].inner, TypeInner::Struct { .. }))
    }

    /// Returns whether the type is an array.
    pub fn is_array(self, ty: Ty) -> bool {
        matches!(ty, Ty::Composite(handle) if matches!(self.module.types[handle].inner, TypeInner::Array { .. }))
    }

    /// Returns whether the type is or contains an array.
    pub fn has_array(self, ty: Ty) -> bool {
        match ty {
            Ty::Composite(handle) => match &self.module.types[handle].inner {
                TypeInner::Struct { members, .. } => members
                    .iter()
                    .any(|member| self.of(member.ty, Span::UNDEFINED).is_ok_and(|ty| self.has_array(ty))),
                _ => true,
            },
            _ => false,
        }
    }

    /// Returns the number of scalars in a type of constant size.
    pub fn count(self, ty: Ty, span: Span) -> Result<u32> {
        match ty {
            Ty::Scalar(scalar) | Ty::Atomic(scalar) => register(scalar, span).map(|_| 1),
            Ty::Vector(size, scalar) => register(scalar, span).map(|_| u32::from(size)),
            Ty::Matrix { columns, rows, scalar } => {
                register(scalar, span).map(|_| u32::from(columns) * u32::from(rows))
            }
            Ty::Composite(_) if self.is_struct(ty) => {
                let mut sum = 0u32;
                for index in 0..self.elements(ty).unwrap_or(0) {
                    sum = sum.saturating_add(self.count(self.element(ty, index, span)?, span)?);
                }
                Ok(sum)
            }
            Ty::Composite(_) => {
                let element = self.count(self.element(ty, 0, span)?, span)?;
                match self.elements(ty) {
                    Some(count) => Ok(element.saturating_mul(count)),
                    None => Err(Error::feature("a value of an array that is sized at run time", span)),
                }
            }
        }
    }

    /// Returns the position of an element in the list of scalars.
    pub fn first_scalar(self, ty: Ty, index: u32, span: Span) -> Result<u32> {
        if self.is_struct(ty) {
            let mut sum = 0;
            for before in 0..index {
                sum += self.count(self.element(ty, before, span)?, span)?;
            }
            return Ok(sum);
        }
        Ok(self.count(self.element(ty, index, span)?, span)?.saturating_mul(index))
    }

    /// Returns the bytes that a type of constant size has in [`Layout::Words`].
    pub fn extent(self, ty: Ty, span: Span) -> Result<Extent> {
        let extent = match ty {
            Ty::Scalar(scalar) | Ty::Atomic(scalar) => {
                register(scalar, span)?;
                Extent::of(scalar)
            }
            Ty::Vector(size, scalar) => {
                register(scalar, span)?;
                Extent::of(scalar).times(size.into())
            }
            Ty::Matrix { columns, rows, scalar } => {
                register(scalar, span)?;
                Extent::of(scalar).times(u32::from(columns) * u32::from(rows))
            }
            Ty::Composite(_) if self.is_struct(ty) => self.extent_before(ty, self.elements(ty).unwrap_or(0), span)?,
            Ty::Composite(_) => {
                let element = self.extent(self.element(ty, 0, span)?, span)?;
                match self.elements(ty) {
                    Some(count) => element.times(count),
                    None => return Err(Error::feature("a value of an array that is sized at run time", span)),
                }
            }
        };
        Ok(Extent {
            bytes: extent.padded(extent.align),
            ..extent
        })
    }

    /// Returns the bytes of the members of a struct before a member, without padding at the end.
    fn extent_before(self, ty: Ty, member: u32, span: Span) -> Result<Extent> {
        let mut sum = Extent { bytes: 0, align: 4 };
        for index in 0..member {
            let one = self.extent(self.element(ty, index, span)?, span)?;
            sum = Extent {
                bytes: sum.padded(one.align).saturating_add(one.bytes),
                align: sum.align.max(one.align),
            };
        }
        Ok(sum)
    }

    /// Returns an alignment that each value of a type has in a buffer.
    pub fn host_alignment(self, ty: Ty, span: Span) -> Result<u32> {
        Ok(match ty {
            Ty::Scalar(scalar) | Ty::Atomic(scalar) => scalar.width.into(),
            Ty::Vector(size, scalar) => naga::proc::Alignment::from(size) * u32::from(scalar.width),
            Ty::Matrix { rows, scalar, .. } => naga::proc::Alignment::from(rows) * u32::from(scalar.width),
            Ty::Composite(_) => {
                let mut most = 1;
                let members = if self.is_struct(ty) {
                    self.elements(ty).unwrap_or(0)
                } else {
                    1
                };
                for index in 0..members {
                    most = most.max(self.host_alignment(self.element(ty, index, span)?, span)?);
                }
                most
            }
        })
    }

    /// Returns the distance between elements in memory.
    pub fn stride(self, ty: Ty, layout: Layout, span: Span) -> Result<u32> {
        if layout == Layout::Words {
            return Ok(self.extent(self.element(ty, 0, span)?, span)?.bytes);
        }
        Ok(match ty {
            Ty::Scalar(scalar) | Ty::Atomic(scalar) | Ty::Vector(_, scalar) => u32::from(scalar.width),
            Ty::Matrix { rows, scalar, .. } => naga::proc::Alignment::from(rows) * u32::from(scalar.width),
            Ty::Composite(handle) => match &self.module.types[handle].inner {
                TypeInner::Array { stride, .. } => *stride,
                _ => 0,
            },
        })
    }

    /// Returns the byte offset of an element or member in memory.
    pub fn offset(self, ty: Ty, index: u32, layout: Layout, span: Span) -> Result<u32> {
        if let Ty::Composite(handle) = ty
            && let TypeInner::Struct { members, .. } = &self.module.types[handle].inner
        {
            if layout == Layout::Words {
                let align = self.extent(self.element(ty, index, span)?, span)?.align;
                return Ok(self.extent_before(ty, index, span)?.padded(align));
            }
            return match members.get(index as usize) {
                Some(member) => Ok(member.offset),
                None => Err(Error::Internal(format!("a struct without member {index}"))),
            };
        }
        Ok(self.stride(ty, layout, span)?.saturating_mul(index))
    }

    /// Returns the scalars of a type with their byte offsets.
    ///
    /// # Errors
    ///
    /// [`Unsupported::TooLarge`] for more than [`MAX_SCALARS`].
    pub fn scalars(self, ty: Ty, layout: Layout, span: Span) -> Result<Vec<(Scalar, u32)>> {
        let count = self.count(ty, span)?;
        if count > MAX_SCALARS {
            return Err(Error::refused(
                Unsupported::TooLarge {
                    what: "a value".to_owned(),
                    size: count.into(),
                    limit: MAX_SCALARS.into(),
                    unit: "scalars",
                },
                span,
            ));
        }
        let mut list = Vec::with_capacity(count as usize);
        self.add_scalars(ty, layout, 0, &mut list, span)?;
        Ok(list)
    }

    fn add_scalars(self, ty: Ty, layout: Layout, at: u32, list: &mut Vec<(Scalar, u32)>, span: Span) -> Result<()> {
        match ty {
            Ty::Scalar(scalar) | Ty::Atomic(scalar) => list.push((scalar, at)),
            _ => {
                for index in 0..self.elements(ty).unwrap_or(0) {
                    let element = self.element(ty, index, span)?;
                    let offset = at + self.offset(ty, index, layout, span)?;
                    self.add_scalars(element, layout, offset, list, span)?;
                }
            }
        }
        Ok(())
    }

    /// Returns the scalar of a scalar, vector or matrix.
    pub fn scalar(self, ty: Ty) -> Result<Scalar> {
        match ty {
            Ty::Scalar(scalar) | Ty::Atomic(scalar) | Ty::Vector(_, scalar) | Ty::Matrix { scalar, .. } => Ok(scalar),
            Ty::Composite(_) => Err(Error::Internal("an operation on a struct or array".to_owned())),
        }
    }
}
