//! Functions on vectors and matrices.

use crate::emit::emitter::{Emitter, Values};
use crate::error::{Error, Result};
use crate::layout::Ty;
use cranelift_codegen::ir::condcodes::FloatCC;
use cranelift_codegen::ir::{InstBuilder, Value};
use naga::{MathFunction, ScalarKind};

impl Emitter<'_, '_> {
    /// Evaluates a function on whole vectors or matrices. Returns `None` for other functions.
    pub(super) fn geometry(&mut self, function: MathFunction, arguments: &[(Ty, Values)]) -> Result<Option<Values>> {
        use MathFunction as Mf;
        let missing = || Error::Internal(format!("{function:?} with too few arguments"));
        let values = |index: usize| arguments.get(index).map(|(_, values)| values).ok_or_else(missing);
        let (ty, a) = arguments.first().ok_or_else(missing)?;
        let results = match function {
            Mf::Dot => {
                let is_float = self.types.scalar(*ty)?.kind == ScalarKind::Float;
                let dot = match is_float {
                    true => self.dot_floats(a, values(1)?),
                    false => self.dot_integers(a, values(1)?),
                };
                Values::from_elem(dot, 1)
            }
            Mf::Outer => {
                let mut product = Values::new();
                for &factor in values(1)? {
                    for &element in a {
                        product.push(self.builder.ins().fmul(element, factor));
                    }
                }
                product
            }
            Mf::Cross => {
                let b = values(1)?;
                let (&[ax, ay, az], &[bx, by, bz]) = (&a[..], &b[..]) else {
                    return Err(missing());
                };
                [(ay, bz, az, by), (az, bx, ax, bz), (ax, by, ay, bx)]
                    .into_iter()
                    .map(|(a, b, c, d)| self.difference_of_products(a, b, c, d))
                    .collect()
            }
            Mf::Length => Values::from_elem(self.length(a)?, 1),
            Mf::Distance => {
                let b = values(1)?;
                let difference = self.subtract(a, b);
                Values::from_elem(self.length(&difference)?, 1)
            }
            Mf::Normalize => {
                let square = self.dot_floats(a, a);
                let factor = self.library("inverse_sqrt", &[square])?;
                a.iter().map(|&one| self.builder.ins().fmul(one, factor)).collect()
            }
            Mf::FaceForward => {
                let dot = self.dot_floats(values(1)?, values(2)?);
                let zero = self.like(dot, 0.0);
                let is_behind = self.builder.ins().fcmp(FloatCC::LessThan, dot, zero);
                let mut results = Values::new();
                for &one in a {
                    let negated = self.builder.ins().fneg(one);
                    results.push(self.builder.ins().select(is_behind, one, negated));
                }
                results
            }
            Mf::Reflect => {
                let b = values(1)?;
                let dot = self.dot_floats(b, a);
                let double = self.times(dot, 2.0);
                let scaled: Values = b.iter().map(|&one| self.builder.ins().fmul(one, double)).collect();
                self.subtract(a, &scaled)
            }
            Mf::Refract => {
                let ratio = values(2)?.first().copied().ok_or_else(missing)?;
                self.refract(a, values(1)?, ratio)?
            }
            Mf::Transpose => {
                let (columns, rows) = shape(*ty).ok_or_else(missing)?;
                let mut results = Values::new();
                for row in 0..rows {
                    results.extend((0..columns).map(|column| a[column * rows + row]));
                }
                results
            }
            Mf::Determinant => {
                let (size, _) = shape(*ty).ok_or_else(missing)?;
                Values::from_elem(self.determinant(a, size), 1)
            }
            Mf::Inverse => {
                let (size, _) = shape(*ty).ok_or_else(missing)?;
                self.inverse(a, size)
            }
            _ => return Ok(None),
        };
        Ok(Some(results))
    }

    /// Returns the sum of the products of floats.
    pub(super) fn dot_floats(&mut self, a: &[Value], b: &[Value]) -> Value {
        let mut sum = None;
        for (&a, &b) in a.iter().zip(b) {
            let product = self.builder.ins().fmul(a, b);
            sum = Some(match sum {
                Some(sum) => self.builder.ins().fadd(sum, product),
                None => product,
            });
        }
        match sum {
            Some(sum) => sum,
            None => self.float(0.0),
        }
    }

    fn dot_integers(&mut self, a: &[Value], b: &[Value]) -> Value {
        let mut sum = None;
        for (&a, &b) in a.iter().zip(b) {
            let product = self.builder.ins().imul(a, b);
            sum = Some(match sum {
                Some(sum) => self.builder.ins().iadd(sum, product),
                None => product,
            });
        }
        match sum {
            Some(sum) => sum,
            None => self.word(0),
        }
    }

    fn subtract(&mut self, a: &[Value], b: &[Value]) -> Values {
        let pairs = a.iter().zip(b);
        pairs.map(|(&a, &b)| self.builder.ins().fsub(a, b)).collect()
    }

    fn length(&mut self, values: &Values) -> Result<Value> {
        if let [one] = values[..] {
            return Ok(self.builder.ins().fabs(one));
        }
        let square = self.dot_floats(values, values);
        self.library("sqrt", &[square])
    }

    /// Returns `a * b - c * d`.
    fn difference_of_products(&mut self, a: Value, b: Value, c: Value, d: Value) -> Value {
        let first = self.builder.ins().fmul(a, b);
        let second = self.builder.ins().fmul(c, d);
        self.builder.ins().fsub(first, second)
    }

    /// With `k = 1 - ratio^2 * (1 - dot(b, a)^2)`, returns `ratio * a - (ratio * dot(b, a) + sqrt(k)) *
    /// b`, or zero if `k` is negative.
    fn refract(&mut self, a: &Values, b: &Values, ratio: Value) -> Result<Values> {
        let (zero, one) = (self.like(ratio, 0.0), self.like(ratio, 1.0));
        let dot = self.dot_floats(b, a);
        let square = self.builder.ins().fmul(dot, dot);
        let rest = self.builder.ins().fsub(one, square);
        let ratio_square = self.builder.ins().fmul(ratio, ratio);
        let scaled = self.builder.ins().fmul(ratio_square, rest);
        let k = self.builder.ins().fsub(one, scaled);
        let is_negative = self.builder.ins().fcmp(FloatCC::LessThan, k, zero);
        let k = self.builder.ins().select(is_negative, zero, k);
        let root = self.library("sqrt", &[k])?;
        let along = self.builder.ins().fmul(ratio, dot);
        let factor = self.builder.ins().fadd(along, root);
        let mut results = Values::new();
        for (&a, &b) in a.iter().zip(b) {
            let result = self.difference_of_products(ratio, a, factor, b);
            results.push(self.builder.ins().select(is_negative, zero, result));
        }
        Ok(results)
    }

    /// Returns the determinant of a square matrix by the expansion along its first column.
    fn determinant(&mut self, matrix: &[Value], size: usize) -> Value {
        if let &[a, b, c, d] = matrix
            && size == 2
        {
            return self.difference_of_products(a, d, b, c);
        }
        if let &[one] = matrix {
            return one;
        }
        let mut sum = None;
        for row in 0..size {
            let minor = minor(matrix, size, 0, row);
            let cofactor = self.determinant(&minor, size - 1);
            let product = self.builder.ins().fmul(matrix[row], cofactor);
            sum = Some(match sum {
                None => product,
                Some(sum) if row % 2 == 0 => self.builder.ins().fadd(sum, product),
                Some(sum) => self.builder.ins().fsub(sum, product),
            });
        }
        match sum {
            Some(sum) => sum,
            None => self.float(1.0),
        }
    }

    /// Returns the inverse of a square matrix: the transposed cofactors divided by the determinant.
    fn inverse(&mut self, matrix: &[Value], size: usize) -> Values {
        let determinant = self.determinant(matrix, size);
        let one = self.like(determinant, 1.0);
        let reciprocal = self.builder.ins().fdiv(one, determinant);
        let mut results = Values::new();
        for column in 0..size {
            for row in 0..size {
                let minor = minor(matrix, size, row, column);
                let cofactor = self.determinant(&minor, size - 1);
                let element = self.builder.ins().fmul(cofactor, reciprocal);
                results.push(match (column + row) % 2 {
                    0 => element,
                    _ => self.builder.ins().fneg(element),
                });
            }
        }
        results
    }
}

/// Returns the columns and rows of a matrix.
fn shape(ty: Ty) -> Option<(usize, usize)> {
    match ty {
        Ty::Matrix { columns, rows, .. } => Some((columns as usize, rows as usize)),
        _ => None,
    }
}

/// Returns a square matrix without a column and a row.
fn minor(matrix: &[Value], size: usize, column: usize, row: usize) -> Vec<Value> {
    let kept = (0..size).filter(|one| *one != column);
    kept.flat_map(|column| {
        let rows = (0..size).filter(|one| *one != row);
        rows.map(move |row| matrix[column * size + row])
    })
    .collect()
}
