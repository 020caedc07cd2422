//! The body of one function: blocks, branches and the values in scope.
//!
//! The module `operations` generates instructions, and `loops` generates loops over memory.

use super::generate::{Block, Def, Func, Line, Ty, constant, constant_lines, ty, types};
use arbitrary::{Result, Unstructured};

const CONDITIONS: &[&str] = &["eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge"];
const FLOAT_CONDITIONS: &[&str] = &[
    "eq", "ne", "lt", "le", "gt", "ge", "ord", "uno", "one", "ueq", "ult", "ule", "ugt", "uge",
];

pub(super) struct Body<'a, 'u> {
    pub u: &'a mut Unstructured<'u>,
    pub funcs: &'a [Func],
    pub index: usize,
    pub blocks: Vec<Block>,
    /// The block that receives instructions.
    pub current: usize,
    /// The values that dominate the current position.
    pub scope: Vec<Def>,
    next: u32,
    /// The number of instructions that may still be added.
    budget: u32,
}

impl<'a, 'u> Body<'a, 'u> {
    pub fn new(u: &'a mut Unstructured<'u>, funcs: &'a [Func], index: usize) -> Self {
        Self {
            u,
            funcs,
            index,
            blocks: Vec::new(),
            current: 0,
            scope: Vec::new(),
            next: 0,
            budget: 60,
        }
    }

    pub fn function(mut self) -> Result<Vec<Block>> {
        let params: Vec<Def> = self.funcs[self.index].params.iter().map(|&w| self.fresh(w)).collect();
        self.scope.extend(&params);
        self.blocks.push(Block {
            params,
            ..Block::default()
        });
        for slot in 0..self.funcs[self.index].slots.len() {
            self.fill(slot)?;
        }
        self.region(0)?;
        let returns = self.funcs[self.index].returns.clone();
        let mut results = Vec::new();
        for ty in returns {
            results.push(self.value(ty)?);
        }
        self.end(format!("return {}", results.join(", ")));
        Ok(self.blocks)
    }

    pub fn fresh(&mut self, ty: Ty) -> Def {
        self.next += 1;
        (self.next - 1, ty)
    }

    pub fn push(&mut self, defs: &[Ty], text: String) -> Vec<Def> {
        self.push_with(defs, text, None)
    }

    pub fn push_with(&mut self, defs: &[Ty], text: String, interpreted: Option<String>) -> Vec<Def> {
        let defs: Vec<Def> = defs.iter().map(|&w| self.fresh(w)).collect();
        self.scope.extend(&defs);
        self.blocks[self.current].lines.push(Line {
            defs: defs.clone(),
            text,
            interpreted,
        });
        defs
    }

    pub fn end(&mut self, terminator: String) {
        self.blocks[self.current].terminator = terminator;
    }

    pub fn block(&mut self, params: &[Ty]) -> (usize, Vec<Def>) {
        let params: Vec<Def> = params.iter().map(|&w| self.fresh(w)).collect();
        self.blocks.push(Block {
            params: params.clone(),
            ..Block::default()
        });
        (self.blocks.len() - 1, params)
    }

    /// Returns a value of the type: usually one in scope, where recent values are more frequent.
    pub fn value(&mut self, ty: Ty) -> Result<String> {
        let fitting: Vec<u32> = self.scope.iter().filter(|d| d.1 == ty).map(|d| d.0).collect();
        if fitting.is_empty() || self.u.ratio(1, 8)? {
            let bits = constant(self.u, ty)?;
            return Ok(format!("v{}", self.constant(ty, bits)));
        }
        let recent = fitting.len().saturating_sub(6);
        let from = if self.u.ratio(2, 3)? {
            &fitting[recent..]
        } else {
            &fitting[..]
        };
        Ok(format!("v{}", self.u.choose(from)?))
    }

    /// Adds a constant and returns its value.
    pub fn constant(&mut self, ty: Ty, bits: u128) -> u32 {
        let def = self.fresh(ty);
        let lines = constant_lines(def, bits, |ty| self.fresh(ty));
        self.scope.push(def);
        self.blocks[self.current].lines.extend(lines);
        def.0
    }

    /// Chooses an integer type.
    pub fn int(&mut self) -> Result<Ty> {
        let ty = ty(self.u)?;
        Ok(if ty.is_float() { Ty::I32 } else { ty })
    }

    fn region(&mut self, depth: u32) -> Result<()> {
        for _ in 0..self.u.int_in_range(1..=3)? {
            for _ in 0..self.u.int_in_range(1..=8)? {
                if self.budget == 0 {
                    return Ok(());
                }
                self.budget -= 1;
                self.instruction()?;
            }
            if depth < 3 {
                match self.u.int_in_range(0..=5)? {
                    0 | 1 => self.branch(depth)?,
                    4 => self.array_loop()?,
                    2 => self.counted_loop(depth)?,
                    3 => self.table(depth)?,
                    _ => {}
                }
            }
        }
        Ok(())
    }

    /// Fills one arm of a branch and ends it by a jump to the join, with arguments.
    fn arm(&mut self, block: usize, join: usize, params: &[Ty], depth: u32) -> Result<()> {
        let outer = self.scope.len();
        self.current = block;
        self.region(depth + 1)?;
        if self.u.ratio(1, 30)? {
            let code = self.u.int_in_range(1..=9)?;
            self.end(format!("trap user{code}"));
        } else {
            let args = self.arguments(params)?;
            self.end(format!("jump block{join}{args}"));
        }
        self.scope.truncate(outer);
        Ok(())
    }

    fn arguments(&mut self, params: &[Ty]) -> Result<String> {
        let args: Result<Vec<String>> = params.iter().map(|&w| self.value(w)).collect();
        let args = args?;
        Ok(if args.is_empty() {
            String::new()
        } else {
            format!("({})", args.join(", "))
        })
    }

    fn branch(&mut self, depth: u32) -> Result<()> {
        let condition = self.condition()?.0;
        let params = types(self.u, 3)?;
        let direct = self.u.ratio(1, 4)?;
        let outside = if direct {
            self.arguments(&params)?
        } else {
            String::new()
        };
        let origin = self.current;
        let (then, _) = self.block(&[]);
        let (join, merged) = self.block(&params);
        if direct {
            self.blocks[origin].terminator = format!("brif {condition}, block{then}, block{join}{outside}");
        } else {
            let (other, _) = self.block(&[]);
            self.blocks[origin].terminator = format!("brif {condition}, block{then}, block{other}");
            self.arm(other, join, &params, depth)?;
        }
        self.arm(then, join, &params, depth)?;
        self.current = join;
        // Each arm removed its values from the scope, so the remaining ones dominate the join.
        self.scope.extend(merged);
        Ok(())
    }

    fn table(&mut self, depth: u32) -> Result<()> {
        let index = self.value(Ty::I32)?;
        let index = if self.u.ratio(2, 3)? {
            let mask = self.constant(Ty::I32, 3);
            format!("v{}", self.push(&[Ty::I32], format!("band {index}, v{mask}"))[0].0)
        } else {
            index
        };
        let params = types(self.u, 2)?;
        let origin = self.current;
        let (join, merged) = self.block(&params);
        let mut arms = Vec::new();
        for _ in 0..self.u.int_in_range(1..=4)? {
            arms.push(self.block(&[]).0);
        }
        let entries: Vec<String> = arms[1..].iter().map(|b| format!("block{b}")).collect();
        self.blocks[origin].terminator = format!("br_table {index}, block{}, [{}]", arms[0], entries.join(", "));
        for arm in arms {
            self.arm(arm, join, &params, depth)?;
        }
        self.current = join;
        // Each arm removed its values from the scope, so the remaining ones dominate the join.
        self.scope.extend(merged);
        Ok(())
    }

    fn counted_loop(&mut self, depth: u32) -> Result<()> {
        let mut params = vec![Ty::I32];
        params.extend(types(self.u, 4)?);
        let fuel = self.u.int_in_range(1..=4u128)?;
        let count = self.constant(Ty::I32, fuel);
        let rest = self.arguments(&params[1..])?;
        let rest = rest.trim_matches(['(', ')']).to_owned();
        let first = if rest.is_empty() {
            format!("v{count}")
        } else {
            format!("v{count}, {rest}")
        };
        let (header, carried) = self.block(&params);
        self.end(format!("jump block{header}({first})"));
        self.current = header;
        self.scope.extend(&carried);
        let outer = self.scope.len();
        self.region(depth + 1)?;
        let one = self.constant(Ty::I32, 1);
        let left = self.push(&[Ty::I32], format!("isub v{}, v{one}", carried[0].0))[0].0;
        let rest = self.arguments(&params[1..])?;
        let rest = rest.trim_matches(['(', ')']).to_owned();
        let again = if rest.is_empty() {
            format!("v{left}")
        } else {
            format!("v{left}, {rest}")
        };
        let (exit, _) = self.block(&[]);
        self.end(format!("brif v{left}, block{header}({again}), block{exit}"));
        // The exit is dominated by only some blocks of the body, so all values of the body leave
        // the scope.
        self.scope.truncate(outer);
        self.current = exit;
        Ok(())
    }

    /// Returns a condition and its type: usually the result of a comparison.
    pub fn condition(&mut self) -> Result<(String, Ty)> {
        let ty = ty(self.u)?;
        if !ty.is_float() && self.u.ratio(1, 4)? {
            return Ok((self.value(ty)?, ty));
        }
        let (a, b) = (self.value(ty)?, self.value(ty)?);
        let text = if ty.is_float() {
            format!("fcmp {} {a}, {b}", self.u.choose(FLOAT_CONDITIONS)?)
        } else {
            format!("icmp {} {a}, {b}", self.u.choose(CONDITIONS)?)
        };
        Ok((format!("v{}", self.push(&[Ty::I8], text)[0].0), Ty::I8))
    }
}
