//! Moves casts after operations that ignore lane boundaries, where casts meet other casts and
//! cancel.
//!
//! Code for machines with one kind of 128-bit register casts to `i8x16` and back around every
//! operation. On this machine, a cast between different lane counts moves bytes. So a cast of a
//! cast uses the first source. Bitwise operations, `vany_true` and shuffles of whole lanes also
//! operate on that source.

use crate::shape::register_type;
use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::{
    Block, Endianness, Function, Immediate, Inst, InstBuilder, InstructionData, MemFlags, MemFlagsData, Opcode, Type,
    Value, ValueDef,
};
use rustc_hash::FxHashMap;

/// Rewrites the function. `order` is its blocks in reverse postorder.
pub(super) fn run(func: &mut Function, order: &[Block]) {
    let mut casts = Casts {
        cursor: FuncCursor::new(func),
        sources: FxHashMap::default(),
    };
    for &block in order {
        let insts: Vec<Inst> = casts.cursor.func.layout.block_insts(block).collect();
        for inst in insts {
            casts.cursor.goto_inst(inst);
            casts.cursor.use_srcloc(inst);
            casts.visit(inst);
        }
    }
}

/// Returns the source lanes of a byte shuffle that moves whole lanes of the type. Lanes of the
/// second vector are numbered after the lanes of the first. Returns `None` if the shuffle splits a
/// lane.
pub(crate) fn moved_lanes(func: &Function, ty: Type, imm: Immediate) -> Option<Vec<u32>> {
    let size = (ty.lane_bits() / 8) as u8;
    let bytes = func.dfg.immediates.get(imm)?.as_slice();
    if ty.bytes() as usize != bytes.len() {
        return None;
    }
    let lanes = bytes.chunks_exact(size.into()).map(|lane| {
        let (&first, rest) = lane.split_first()?;
        let whole = first.is_multiple_of(size) && rest.iter().zip(1..).all(|(&byte, more)| byte == first + more);
        whole.then_some(u32::from(first / size))
    });
    lanes.collect()
}

struct Casts<'a> {
    cursor: FuncCursor<'a>,
    /// For the result of a cast: the value of another type with the same bits.
    sources: FxHashMap<Value, Value>,
}

impl Casts<'_> {
    fn type_of(&self, value: Value) -> Type {
        self.cursor.func.dfg.value_type(value)
    }

    fn source(&self, value: Value) -> Option<Value> {
        let value = self.cursor.func.dfg.resolve_aliases(value);
        self.sources.get(&value).copied()
    }

    /// Returns the type of the source of the first operand that is a cast, if a vector register
    /// holds it.
    fn source_type(&self, args: &[Value]) -> Option<Type> {
        let source = args.iter().find_map(|&arg| self.source(arg))?;
        let ty = self.type_of(source);
        register_type(ty).map(|_| ty)
    }

    fn is_big(&self, flags: MemFlags) -> bool {
        self.cursor.func.dfg.mem_flags[flags].explicit_endianness() == Some(Endianness::Big)
    }

    fn cast(&mut self, ty: Type, value: Value) -> Value {
        match self.type_of(value) == ty {
            true => value,
            false => self
                .cursor
                .ins()
                .bitcast(ty, MemFlagsData::new().with_endianness(Endianness::Little), value),
        }
    }

    fn replace(&mut self, inst: Inst, result: Value, value: Value) {
        let dfg = &mut self.cursor.func.dfg;
        dfg.clear_results(inst);
        dfg.change_to_alias(result, value);
        self.cursor.func.layout.remove_inst(inst);
    }

    fn visit(&mut self, inst: Inst) {
        let data = self.cursor.func.dfg.insts[inst];
        let Some(&result) = self.cursor.func.dfg.inst_results(inst).first() else {
            return;
        };
        match data {
            InstructionData::LoadNoOffset {
                opcode: Opcode::Bitcast,
                arg,
                flags,
            } if !self.is_big(flags) => {
                let arg = self.cursor.func.dfg.resolve_aliases(arg);
                let source = self.source(arg).unwrap_or(arg);
                if self.type_of(source) == self.type_of(result) {
                    return self.replace(inst, result, source);
                }
                self.cursor.func.dfg.overwrite_inst_values(inst, [source].into_iter());
                self.sources.insert(result, source);
            }
            _ if self.sources.is_empty() => {}
            InstructionData::Unary {
                opcode: Opcode::VanyTrue,
                arg,
            } if self.source_type(&[arg]).is_some() => {
                if let Some(source) = self.source(arg) {
                    self.cursor.func.dfg.overwrite_inst_values(inst, [source].into_iter());
                }
            }
            InstructionData::Shuffle { args, imm, .. } => {
                self.shuffle(inst, result, args, imm);
            }
            _ => {
                let opcode = data.opcode();
                if matches!(
                    opcode,
                    Opcode::Band | Opcode::Bor | Opcode::Bxor | Opcode::Bnot | Opcode::Bitselect
                ) {
                    self.bitwise(inst, opcode, result);
                }
            }
        }
    }

    /// Records a shuffle of whole lanes as a cast from a vector of such lanes. The operands of the
    /// shuffle stay casts, which lowering looks through.
    fn shuffle(&mut self, inst: Inst, result: Value, args: [Value; 2], imm: Immediate) -> Option<()> {
        let ty = self.source_type(&args)?;
        let [x, y] = [self.source(args[0])?, self.source(args[1])?];
        let alike = |value: Value| {
            let other = self.type_of(value);
            register_type(other).is_some() && other.lane_count() == ty.lane_count()
        };
        if ty.lane_bits() == 8 || !alike(x) || !alike(y) || moved_lanes(self.cursor.func, ty, imm).is_none() {
            return None;
        }
        self.cursor.goto_after_inst(inst);
        let lanes = self.cast(ty, result);
        self.sources.insert(result, lanes);
        Some(())
    }

    /// Performs a bitwise operation on the sources of casts with the same lane count.
    fn bitwise(&mut self, inst: Inst, opcode: Opcode, result: Value) -> Option<()> {
        let args = self.cursor.func.dfg.inst_args(inst).to_vec();
        let ty = self.source_type(&args)?;
        let own = self.type_of(result);
        if own.bits() != ty.bits() {
            return None;
        }
        let mut sources = Vec::with_capacity(args.len());
        for arg in args {
            sources.push(self.source_as(arg, ty)?);
        }
        let ins = self.cursor.ins();
        let (new, dfg) = match *sources.as_slice() {
            [x] => ins.Unary(opcode, ty, x),
            [x, y] => ins.Binary(opcode, ty, x, y),
            [a, x, y] => ins.Ternary(opcode, ty, a, x, y),
            _ => return None,
        };
        let computed = dfg.first_result(new);
        let cast = self.cast(own, computed);
        self.sources.insert(cast, computed);
        self.replace(inst, result, cast);
        Some(())
    }

    /// Returns an operand as a vector of the type, if it is a constant or a cast from the same lane
    /// count.
    fn source_as(&mut self, value: Value, ty: Type) -> Option<Value> {
        if let Some(source) = self.source(value) {
            let from = self.type_of(source);
            let alike = (from.lane_count(), from.lane_bits()) == (ty.lane_count(), ty.lane_bits());
            return alike.then(|| self.cast(ty, source));
        }
        let dfg = &self.cursor.func.dfg;
        let ValueDef::Result(inst, 0) = dfg.value_def(dfg.resolve_aliases(value)) else {
            return None;
        };
        let InstructionData::UnaryConst {
            opcode: Opcode::Vconst,
            constant_handle,
        } = dfg.insts[inst]
        else {
            return None;
        };
        Some(self.cursor.ins().vconst(ty, constant_handle))
    }
}
