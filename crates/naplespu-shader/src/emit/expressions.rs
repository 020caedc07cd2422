//! Expressions: constants, composition, access to parts, variables and loads.

use crate::emit::emitter::{Emitter, Operand, Values};
use crate::emit::facts::constant as constant_of;
use crate::emit::pointer::Pointer;
use crate::error::{Error, Result};
use crate::layout::{Layout, Ty, register};
use cranelift_codegen::ir::{InstBuilder, Value, types};
use naga::{Expression, Handle, Literal};

impl Emitter<'_, '_> {
    /// Returns an operand: the value from its `Emit`, or a new evaluation.
    pub(super) fn operand(&mut self, handle: Handle<Expression>) -> Result<Operand> {
        match self.frame.values.get(&handle) {
            Some(operand) => Ok(operand.clone()),
            None => self.evaluate(handle),
        }
    }

    /// Returns the scalars of a value.
    pub(super) fn value(&mut self, handle: Handle<Expression>) -> Result<Values> {
        match self.operand(handle)? {
            Operand::Value(values) => Ok(values),
            Operand::Pointer(_) => Err(Error::Internal("a pointer instead of a value".to_owned())),
        }
    }

    /// Returns a scalar.
    pub(super) fn single(&mut self, handle: Handle<Expression>) -> Result<Value> {
        match self.value(handle)?[..] {
            [value] => Ok(value),
            _ => Err(Error::Internal("a composite instead of a scalar".to_owned())),
        }
    }

    /// Returns a pointer.
    pub(super) fn pointer(&mut self, handle: Handle<Expression>) -> Result<Pointer> {
        match self.operand(handle)? {
            Operand::Pointer(pointer) => Ok(pointer),
            Operand::Value(_) => Err(Error::Internal("a value instead of a pointer".to_owned())),
        }
    }

    /// Returns the type of a value.
    pub(super) fn ty(&self, handle: Handle<Expression>) -> Result<Ty> {
        self.types.resolved(self.frame.typing.of(handle), self.span)
    }

    /// Evaluates an expression at the current place.
    pub(super) fn evaluate(&mut self, handle: Handle<Expression>) -> Result<Operand> {
        let function = self.frame.function;
        self.at(function.expressions.get_span(handle));
        let values = match &function.expressions[handle] {
            Expression::Literal(literal) => self.literal(*literal)?,
            Expression::Constant(constant) => self.global_value(self.module.constants[*constant].init)?,
            Expression::Override(_) => return Err(Error::Internal("an override without a value".to_owned())),
            Expression::ZeroValue(ty) => {
                let ty = self.types.of(*ty, self.span)?;
                self.zero_value(ty)?
            }
            Expression::Compose { components, .. } => {
                let mut values = Values::new();
                for component in components {
                    values.extend(self.value(*component)?);
                }
                values
            }
            Expression::Access { base, index } => return self.access(*base, *index),
            Expression::AccessIndex { base, index } => match self.operand(*base)? {
                Operand::Pointer(pointer) => return Ok(Operand::Pointer(self.member(&pointer, *index)?)),
                Operand::Value(values) => self.part(self.ty(*base)?, &values, *index)?,
            },
            Expression::Splat { size, value } => {
                let value = self.single(*value)?;
                Values::from_elem(value, *size as usize)
            }
            Expression::Swizzle { size, vector, pattern } => {
                let values = self.value(*vector)?;
                let chosen = pattern.iter().take(*size as usize);
                chosen
                    .map(|component| values.get(*component as usize).copied())
                    .collect::<Option<Values>>()
                    .ok_or_else(|| Error::Internal("a swizzle out of range".to_owned()))?
            }
            Expression::FunctionArgument(index) => {
                let argument = self.frame.arguments.get(*index as usize).cloned();
                return argument.ok_or_else(|| Error::Internal("an argument without a value".to_owned()));
            }
            Expression::GlobalVariable(variable) => {
                let Some(root) = self.globals.get(variable).cloned() else {
                    return Err(Error::Internal("a variable that is not declared".to_owned()));
                };
                let ty = self.types.of(self.module.global_variables[*variable].ty, self.span)?;
                return Ok(Operand::Pointer(self.pointer_to(&root, ty, Some(*variable))));
            }
            Expression::LocalVariable(variable) => {
                let Some(root) = self.frame.locals.get(variable).cloned() else {
                    return Err(Error::Internal("a variable that is not declared".to_owned()));
                };
                let ty = self.types.of(function.local_variables[*variable].ty, self.span)?;
                return Ok(Operand::Pointer(self.pointer_to(&root, ty, None)));
            }
            Expression::Load { pointer } => {
                let pointer = self.pointer(*pointer)?;
                self.load(&pointer)?
            }
            Expression::Unary { op, expr } => {
                let (ty, values) = (self.ty(*expr)?, self.value(*expr)?);
                self.unary(*op, ty, &values)?
            }
            Expression::Binary { op, left, right } => {
                let (left, right) = (
                    (self.ty(*left)?, self.value(*left)?),
                    (self.ty(*right)?, self.value(*right)?),
                );
                self.binary(*op, left, right)?
            }
            Expression::Select {
                condition,
                accept,
                reject,
            } => {
                let (conditions, accept, reject) =
                    (self.value(*condition)?, self.value(*accept)?, self.value(*reject)?);
                self.select(&conditions, &accept, &reject)?
            }
            Expression::Relational { fun, argument } => {
                let values = self.value(*argument)?;
                self.relational(*fun, &values)?
            }
            Expression::Math {
                fun,
                arg,
                arg1,
                arg2,
                arg3,
            } => {
                let mut arguments = Vec::with_capacity(4);
                for argument in [Some(*arg), *arg1, *arg2, *arg3].into_iter().flatten() {
                    arguments.push((self.ty(argument)?, self.value(argument)?));
                }
                self.math(*fun, &arguments)?
            }
            Expression::As { expr, kind, convert } => {
                let (ty, values) = (self.ty(*expr)?, self.value(*expr)?);
                self.convert(ty, &values, *kind, *convert)?
            }
            Expression::ArrayLength(array) => {
                let pointer = self.pointer(*array)?;
                Values::from_elem(self.array_length(&pointer)?, 1)
            }
            Expression::CallResult(_)
            | Expression::AtomicResult { .. }
            | Expression::WorkGroupUniformLoadResult { .. }
            | Expression::SubgroupBallotResult
            | Expression::SubgroupOperationResult { .. } => {
                return Err(Error::Internal("a result before its statement".to_owned()));
            }
            Expression::ImageSample { .. } | Expression::ImageLoad { .. } | Expression::ImageQuery { .. } => {
                return Err(self.unsupported("an access to a texture"));
            }
            Expression::Derivative { .. } => return Err(self.unsupported("a derivative")),
            Expression::RayQueryVertexPositions { .. }
            | Expression::RayQueryProceedResult
            | Expression::RayQueryGetIntersection { .. } => return Err(self.unsupported("a ray query")),
            Expression::CooperativeLoad { .. } | Expression::CooperativeMultiplyAdd { .. } => {
                return Err(self.unsupported("a cooperative matrix"));
            }
        };
        Ok(Operand::Value(values))
    }

    /// Returns an index of 64 bits as one of 32 bits, which is out of range if the other is.
    fn narrowed(&mut self, index: Value) -> Value {
        if self.dfg().value_type(index) != types::I64 {
            return index;
        }
        let last = self.integer(types::I64, u32::MAX.into());
        let index = self.builder.ins().umin(index, last);
        self.builder.ins().ireduce(types::I32, index)
    }

    /// Evaluates an access with an index that may be dynamic.
    fn access(&mut self, base: Handle<Expression>, index: Handle<Expression>) -> Result<Operand> {
        let index = self.single(index)?;
        let index = self.narrowed(index);
        if let Expression::Constant(constant) = self.frame.function.expressions[base]
            && let Some(&slot) = self.tables.get(&constant)
            && constant_of(self.dfg(), index).is_none()
        {
            let ty = self.ty(base)?;
            return Ok(Operand::Value(self.element_of_slot(ty, slot, index)?));
        }
        match self.operand(base)? {
            Operand::Pointer(pointer) => Ok(Operand::Pointer(self.indexed(&pointer, index)?)),
            Operand::Value(values) => {
                let ty = self.ty(base)?;
                Ok(Operand::Value(self.element(ty, &values, index)?))
            }
        }
    }

    /// Returns an element or member of a value.
    pub(super) fn part(&self, ty: Ty, values: &Values, index: u32) -> Result<Values> {
        let first = self.types.first_scalar(ty, index, self.span)? as usize;
        let element = self.types.element(ty, index, self.span)?;
        let count = self.types.count(element, self.span)? as usize;
        match values.get(first..first + count) {
            Some(part) => Ok(part.into()),
            None => Err(Error::Internal(format!("the constant index {index} is out of range"))),
        }
    }

    /// Evaluates an expression outside of functions.
    pub(super) fn global_value(&mut self, handle: Handle<Expression>) -> Result<Values> {
        let module = self.module;
        match &module.global_expressions[handle] {
            Expression::Literal(literal) => self.literal(*literal),
            Expression::Constant(constant) => self.global_value(module.constants[*constant].init),
            Expression::ZeroValue(ty) => {
                let ty = self.types.of(*ty, self.span)?;
                self.zero_value(ty)
            }
            Expression::Compose { components, .. } => {
                let mut values = Values::new();
                for component in components {
                    values.extend(self.global_value(*component)?);
                }
                Ok(values)
            }
            Expression::Splat { size, value } => {
                let values = self.global_value(*value)?;
                match values[..] {
                    [value] => Ok(Values::from_elem(value, *size as usize)),
                    _ => Err(Error::Internal("a splat of a composite".to_owned())),
                }
            }
            Expression::AccessIndex { base, index } => {
                let ty = self.types.resolved(&self.info[*base], self.span)?;
                let values = self.global_value(*base)?;
                self.part(ty, &values, *index)
            }
            _ => Err(self.unsupported("a constant expression that is not evaluated")),
        }
    }

    fn literal(&mut self, literal: Literal) -> Result<Values> {
        let value = match literal {
            Literal::F16(value) => self.float(value.to_f32()),
            Literal::F32(value) => self.float(value),
            Literal::F64(value) => self.builder.ins().f64const(value),
            Literal::I64(value) => self.integer(types::I64, value),
            Literal::U64(value) => self.integer(types::I64, value as i64),
            Literal::I32(value) => self.word(value as u32),
            Literal::U32(value) => self.word(value),
            Literal::Bool(value) => self.flag(value),
            other => {
                // The error names the type.
                register(other.scalar(), self.span)?;
                return Err(self.unsupported("a literal of this type"));
            }
        };
        Ok(Values::from_elem(value, 1))
    }

    /// Returns the zero value of a type.
    pub(super) fn zero_value(&mut self, ty: Ty) -> Result<Values> {
        let mut values = Values::new();
        for (scalar, _) in self.types.scalars(ty, Layout::Words, self.span)? {
            let register = register(scalar, self.span)?;
            values.push(self.zero(register));
        }
        Ok(values)
    }

    /// Selects each component by its condition, or all by one condition.
    pub(super) fn select(&mut self, conditions: &Values, accept: &Values, reject: &Values) -> Result<Values> {
        let mut values = Values::new();
        for (index, (&accept, &reject)) in accept.iter().zip(reject).enumerate() {
            let condition = match conditions[..] {
                [one] => one,
                _ => match conditions.get(index) {
                    Some(&condition) => condition,
                    None => return Err(Error::Internal("a select with too few conditions".to_owned())),
                },
            };
            values.push(self.builder.ins().select(condition, accept, reject));
        }
        Ok(values)
    }
}
