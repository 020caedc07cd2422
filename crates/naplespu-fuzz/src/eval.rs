//! Evaluates CLIF functions on scalars and vectors of any shape, with memory and with the machine's
//! intrinsics.
//!
//! An access is undefined if it leaves the memory, breaks a promise of its flags (`aligned`, alias
//! regions), or reads a stack slot that was not written. The behavior of the whole call is then
//! undefined, and any compiled code is correct. The tests compare each instruction with
//! `cranelift-interpreter`, if the interpreter supports it.

use crate::lane::{Arithmetic, operate, overflowing, signed, truncate};
use crate::random::bytes;
use cranelift_codegen::data_value::DataValue;
use cranelift_codegen::entity::SecondaryMap;
use cranelift_codegen::ir::{
    AbiParam, AliasRegion, Block, BlockArg, BlockCall, FuncRef, Function, Inst, InstructionData, MemFlagsData, Opcode,
    TrapCode, Type, Value, types,
};
use npu_sim::fp;

/// A value: one lane, or the lanes of a vector, in the low bits of each element.
pub type Lanes = Vec<u128>;

/// Size in bytes of the memory that a function accesses.
pub const BYTES: u32 = 16 << 10;

/// The float operations of a case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Floats {
    /// None; the settings of floats do not matter, and compilers without `strict_float` are used.
    #[default]
    None,
    /// Operations that need `strict_float`.
    Strict,
    /// Operations that all compilers support, each in its own arithmetic.
    Any,
}

/// A call of the first function.
#[derive(Clone, Debug)]
pub struct Call {
    /// The arguments.
    pub args: Vec<Lanes>,
    /// The address of the memory, and the seed of its contents; `None` without memory.
    pub memory: Option<(u32, u64)>,
}

impl Call {
    /// Returns the contents of memory before the call. For a quarter of the seeds, bytes are small.
    pub fn memory(&self) -> Vec<u8> {
        let Some((_, seed)) = self.memory else {
            return Vec::new();
        };
        let mask = if seed.is_multiple_of(4) { 0x0f } else { 0xff };
        let bytes = bytes(seed).into_iter().take(BYTES as usize);
        bytes.map(|byte| byte & mask).collect()
    }
}

/// Functions, and calls of the first. Without calls, the functions need only be compiled or refused.
#[derive(Clone, Debug)]
pub struct Case {
    /// The functions.
    pub functions: Vec<Function>,
    /// The calls.
    pub calls: Vec<Call>,
    /// The float operations.
    pub floats: Floats,
}

impl Case {
    /// Returns the functions as CLIF.
    pub fn text(&self) -> String {
        let texts = self.functions.iter().map(|func| func.display().to_string());
        texts.collect::<Vec<_>>().join("\n")
    }
}

/// Returns the values by which the host passes values: a vector of more than 16 bytes lane by lane.
pub fn host_list(params: &[AbiParam], values: &[Lanes]) -> Vec<DataValue> {
    let mut all = Vec::new();
    for (ty, lanes) in params.iter().map(|param| param.value_type).zip(values) {
        let part = if ty.bytes() > 16 { ty.lane_type() } else { ty };
        let bytes = to_bytes(ty, lanes);
        let parts = bytes.chunks(part.bytes() as usize);
        all.extend(parts.map(|bytes| DataValue::read_from_slice_le(bytes, part)));
    }
    all
}

/// The address of the first stack slot, and the distance between slots. The target uses other
/// addresses, so a function's results must not depend on them. The distance separates an access
/// beyond the end of a slot from an access to the next one.
const SLOTS: u32 = 0x1000_0000;
const SLOT_STEP: u32 = 0x1_0000;

/// The address of the first function, and the distance between functions.
const FUNCTIONS: u32 = 0x2000_0000;
const FUNCTION_STEP: u32 = 16;

/// Limit of instructions for one call.
const FUEL: u64 = 30_000;

/// The loads that zero-extend and sign-extend an integer, and the store that narrows to it.
pub const NARROW_ACCESSES: [(Type, [Opcode; 3]); 3] = [
    (types::I8, [Opcode::Uload8, Opcode::Sload8, Opcode::Istore8]),
    (types::I16, [Opcode::Uload16, Opcode::Sload16, Opcode::Istore16]),
    (types::I32, [Opcode::Uload32, Opcode::Sload32, Opcode::Istore32]),
];

/// Number of lanes of vectors that intrinsics and the lane mask apply to.
const MASKED_LANES: usize = 16;

/// Why a call does not return.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The call trapped.
    Trapped(TrapCode),
    /// The behavior is undefined; the text describes why.
    Undefined(String),
    /// The call exceeded the limit of instructions.
    OutOfFuel,
    /// This module does not have the instruction on its types.
    Unsupported(Opcode),
}

/// The state of all calls.
struct Evaluator<'a> {
    functions: &'a [Function],
    arithmetic: Arithmetic,
    /// The memory, then the stack slots of all calls.
    spans: Vec<Span>,
    fuel: u64,
}

/// The memory or a stack slot.
struct Span {
    base: u32,
    bytes: Vec<u8>,
    /// The alias region of each byte's accesses, and whether one of them stored to the byte.
    accesses: Vec<(Option<AliasRegion>, bool)>,
    is_slot: bool,
}

/// The state of one call.
struct Frame<'a> {
    func: &'a Function,
    values: SecondaryMap<Value, Lanes>,
    /// The address of the first stack slot.
    slots: u32,
    /// The lane mask. All lanes are enabled at the entry of a function.
    mask: u16,
}

/// The results of a call or why it does not return, and the memory after it.
pub type Outcome = (Result<Vec<Lanes>, Stop>, Vec<u8>);

/// Evaluates a call of the first function.
pub fn call(case: &Case, call: &Call, arithmetic: Arithmetic) -> Outcome {
    let mut evaluator = Evaluator::new(&case.functions, arithmetic);
    evaluator.span(call.memory.map_or(0, |(base, _)| base), call.memory(), false);
    let ended = evaluator.call(0, Opcode::Call, call.args.clone());
    (ended, evaluator.spans.swap_remove(0).bytes)
}

/// Returns whether this module can evaluate the instruction, which has no effects besides results
/// and traps.
pub fn supports(func: &Function, inst: Inst) -> bool {
    let mut frame = Frame::new(func, SLOTS);
    for &arg in func.dfg.inst_args(inst) {
        frame.values[arg] = vec![1; func.dfg.value_type(arg).lane_count() as usize];
    }
    let mut evaluator = Evaluator::new(&[], Arithmetic::Ieee);
    !matches!(evaluator.compute(&mut frame, inst), Err(Stop::Unsupported(_)))
}

/// Returns the bytes of a value in memory.
pub fn to_bytes(ty: Type, lanes: &[u128]) -> Vec<u8> {
    let size = ty.lane_type().bytes() as usize;
    let lanes = lanes.iter().map(|lane| lane.to_le_bytes());
    lanes.flat_map(|bytes| bytes.into_iter().take(size)).collect()
}

/// Returns the value that has these bytes in memory.
pub fn from_bytes(ty: Type, bytes: &[u8]) -> Lanes {
    let lane = |bytes: &[u8]| bytes.iter().rev().fold(0, |bits, &byte| bits << 8 | u128::from(byte));
    bytes.chunks(ty.lane_type().bytes() as usize).map(lane).collect()
}

impl<'a> Frame<'a> {
    fn new(func: &'a Function, slots: u32) -> Self {
        Self {
            func,
            values: SecondaryMap::new(),
            slots,
            mask: u16::MAX,
        }
    }

    fn get(&self, value: Value) -> &Lanes {
        &self.values[self.func.dfg.resolve_aliases(value)]
    }

    /// Returns a scalar.
    fn one(&self, value: Value) -> u128 {
        self.get(value).first().copied().unwrap_or(0)
    }

    fn all(&self, values: &[Value]) -> Vec<Lanes> {
        values.iter().map(|&value| self.get(value).clone()).collect()
    }

    fn set(&mut self, values: &[Value], lanes: Vec<Lanes>) {
        for (&value, lanes) in values.iter().zip(lanes) {
            self.values[value] = lanes;
        }
    }

    /// Passes the arguments of a jump and returns the target.
    fn jump(&mut self, call: BlockCall) -> Block {
        let (func, pool) = (self.func, &self.func.dfg.value_lists);
        let block = call.block(pool);
        let args = call.args(pool).filter_map(|arg: BlockArg| arg.as_value());
        let lanes: Vec<Lanes> = args.map(|arg| self.get(arg).clone()).collect();
        self.set(func.dfg.block_params(block), lanes);
        block
    }
}

impl<'a> Evaluator<'a> {
    fn new(functions: &'a [Function], arithmetic: Arithmetic) -> Self {
        Self {
            functions,
            arithmetic,
            spans: Vec::new(),
            fuel: FUEL,
        }
    }

    fn span(&mut self, base: u32, bytes: Vec<u8>, is_slot: bool) {
        let accesses = vec![(None, false); bytes.len()];
        self.spans.push(Span {
            base,
            bytes,
            accesses,
            is_slot,
        });
    }

    /// Returns the number of a function; one that does not exist has the number after the last one.
    fn number(&self, caller: &Function, callee: FuncRef) -> u32 {
        let name = caller.dfg.ext_funcs[callee].name.display(None).to_string();
        let others = self.functions.iter().take_while(|other| other.name.to_string() != name);
        others.count() as u32
    }

    fn call(&mut self, number: u32, opcode: Opcode, args: Vec<Lanes>) -> Result<Vec<Lanes>, Stop> {
        let functions = self.functions;
        let func = functions.get(number as usize).ok_or(Stop::Unsupported(opcode))?;
        let outer = self.spans.len();
        let address = |number: usize| SLOTS + number as u32 * SLOT_STEP;
        for slot in func.sized_stack_slots.values() {
            self.span(address(self.spans.len()), vec![0; slot.size as usize], true);
        }
        let mut frame = Frame::new(func, address(outer));
        let mut block = func.layout.entry_block().ok_or(Stop::Unsupported(opcode))?;
        frame.set(func.dfg.block_params(block), args);
        let results = 'blocks: loop {
            for inst in func.layout.block_insts(block) {
                self.fuel = self.fuel.checked_sub(1).ok_or(Stop::OutOfFuel)?;
                let args = func.dfg.inst_args(inst);
                match func.dfg.insts[inst] {
                    InstructionData::Jump { destination, .. } => block = frame.jump(destination),
                    InstructionData::Brif { arg, blocks, .. } => {
                        block = frame.jump(blocks[usize::from(frame.one(arg) == 0)]);
                    }
                    InstructionData::BranchTable { arg, table, .. } => {
                        let table = &func.dfg.jump_tables[table];
                        let entry = table.as_slice().get(frame.one(arg) as u32 as usize).copied();
                        block = frame.jump(entry.unwrap_or(table.default_block()));
                    }
                    InstructionData::Trap { code, .. } => return Err(Stop::Trapped(code)),
                    InstructionData::CondTrap { opcode, arg, code } => {
                        if (frame.one(arg) != 0) == (opcode == Opcode::Trapnz) {
                            return Err(Stop::Trapped(code));
                        }
                        continue;
                    }
                    InstructionData::MultiAry { .. } => break 'blocks frame.all(args),
                    _ => {
                        let results = self.compute(&mut frame, inst)?;
                        frame.set(func.dfg.inst_results(inst), results);
                        continue;
                    }
                }
                continue 'blocks;
            }
            return Err(Stop::Unsupported(Opcode::Nop));
        };
        self.spans.truncate(outer);
        Ok(results)
    }

    /// Returns the results of an instruction that does not end a block.
    fn compute(&mut self, frame: &mut Frame<'a>, inst: Inst) -> Result<Vec<Lanes>, Stop> {
        let func = frame.func;
        let data = &func.dfg.insts[inst];
        let (opcode, args) = (data.opcode(), func.dfg.inst_args(inst));
        let to = func.dfg.inst_results(inst).first();
        let to = to.map(|&result| func.dfg.value_type(result));
        let one = match *data {
            InstructionData::Call { func_ref, .. } => {
                let name = func.dfg.ext_funcs[func_ref].name.display(None).to_string();
                return match name.strip_prefix("%__builtin_npu_") {
                    Some(name) => self.intrinsic(frame, name, args),
                    None => self.call(self.number(func, func_ref), opcode, frame.all(args)),
                };
            }
            InstructionData::CallIndirect { .. } => {
                let number = (frame.one(args[0]) as u32).wrapping_sub(FUNCTIONS) / FUNCTION_STEP;
                return self.call(number, opcode, frame.all(&args[1..]));
            }
            InstructionData::FuncAddr { func_ref, .. } => {
                vec![u128::from(FUNCTIONS + self.number(func, func_ref) * FUNCTION_STEP)]
            }
            InstructionData::StackAddr { stack_slot, offset, .. } => {
                let slot = frame.slots.wrapping_add(stack_slot.as_u32() * SLOT_STEP);
                vec![slot.wrapping_add(i32::from(offset).cast_unsigned()).into()]
            }
            InstructionData::Load { arg, flags, offset, .. } if opcode != Opcode::Bitcast => {
                let to = to.ok_or(Stop::Unsupported(opcode))?;
                let at = (frame.one(arg) as u32).wrapping_add(i32::from(offset).cast_unsigned());
                let size = access_size(opcode, to);
                let mut lanes = from_bytes(to, self.place(at, size, func.dfg.mem_flags[flags], false)?);
                if NARROW_ACCESSES.iter().any(|(_, [_, signed, _])| *signed == opcode) {
                    lanes[0] = truncate(to.bits(), signed(8 * size as u32, lanes[0]).cast_unsigned());
                }
                lanes
            }
            InstructionData::Store { flags, offset, .. } => {
                let ty = func.dfg.value_type(args[0]);
                let mut bytes = to_bytes(ty, frame.get(args[0]));
                bytes.truncate(access_size(opcode, ty));
                let at = (frame.one(args[1]) as u32).wrapping_add(i32::from(offset).cast_unsigned());
                let place = self.place(at, bytes.len(), func.dfg.mem_flags[flags], true)?;
                place.copy_from_slice(&bytes);
                return Ok(Vec::new());
            }
            _ => return self.pure(frame, inst),
        };
        Ok(vec![one])
    }

    /// Returns the results of an instruction without effects.
    fn pure(&self, frame: &Frame<'a>, inst: Inst) -> Result<Vec<Lanes>, Stop> {
        let func = frame.func;
        let data = &func.dfg.insts[inst];
        let (opcode, args) = (data.opcode(), func.dfg.inst_args(inst));
        let results = func.dfg.inst_results(inst);
        let unsupported = || Stop::Unsupported(opcode);
        let to = func.dfg.value_type(*results.first().ok_or_else(unsupported)?);
        let from = args.first().map_or(to, |&arg| func.dfg.value_type(arg));
        let (width, count) = (from.lane_bits(), to.lane_count() as usize);
        let lanes: Vec<&Lanes> = args.iter().map(|&arg| frame.get(arg)).collect();
        let first = || lanes.first().copied().ok_or_else(unsupported);
        let each = |operands: &[&Lanes], from_lane: usize| -> Result<Lanes, Stop> {
            let of_lane = |lane: usize| {
                // The amount of a shift, the condition of a `select` and a splat lane are scalars.
                let pick = |lanes: &&Lanes| lanes.get(lane + from_lane).or(lanes.first()).copied().unwrap_or(0);
                let picked: Vec<u128> = operands.iter().map(pick).collect();
                operate(data, self.arithmetic, from.lane_type(), to.lane_type(), &picked)
            };
            (0..count).map(of_lane).collect()
        };
        let joined: Lanes = lanes.iter().flat_map(|lanes| lanes.iter().copied()).collect();
        // An index out of range selects 0.
        let select = |from: &Lanes, lane: u128| from.get(lane as usize).copied().unwrap_or(0);
        let one = match *data {
            InstructionData::UnaryImm { imm, .. } => vec![truncate(width, i128::from(i64::from(imm)).cast_unsigned())],
            InstructionData::UnaryIeee32 { imm, .. } => vec![imm.bits().into()],
            InstructionData::UnaryIeee64 { imm, .. } => vec![imm.bits().into()],
            InstructionData::UnaryConst { constant_handle, .. } => {
                from_bytes(to, func.dfg.constants.get(constant_handle).as_slice())
            }
            InstructionData::IntCompare { .. } | InstructionData::FloatCompare { .. } if to.is_vector() => {
                let ones = truncate(to.lane_bits(), u128::MAX);
                each(&lanes, 0)?.into_iter().map(|holds| holds * ones).collect()
            }
            InstructionData::Shuffle { imm, .. } => {
                let mask = func.dfg.immediates.get(imm).ok_or_else(unsupported)?.as_slice();
                mask.iter().map(|&lane| select(&joined, lane.into())).collect()
            }
            InstructionData::BinaryImm8 { imm, .. } => vec![select(first()?, imm.into())],
            InstructionData::TernaryImm8 { imm, .. } => {
                let mut result = first()?.clone();
                *result.get_mut(usize::from(imm)).ok_or_else(unsupported)? = lanes[1][0];
                result
            }
            InstructionData::IntAddTrap { code, .. } => match overflowing(opcode, width, &joined)? {
                (_, true) => return Err(Stop::Trapped(code)),
                (sum, false) => vec![sum],
            },
            _ => match opcode {
                Opcode::Bitcast if from.bits() == to.bits() => from_bytes(to, &to_bytes(from, first()?)),
                Opcode::Iconcat => vec![first()?[0] | lanes[1][0] << width],
                Opcode::Isplit => {
                    let halves = [first()?[0], first()?[0] >> (width / 2)];
                    return Ok(halves.map(|half| vec![truncate(width / 2, half)]).to_vec());
                }
                Opcode::ScalarToVector => {
                    let mut result = first()?.clone();
                    result.resize(count, 0);
                    result
                }
                Opcode::Swizzle => lanes[1].iter().map(|&lane| select(lanes[0], lane)).collect(),
                Opcode::VanyTrue => vec![first()?.iter().any(|&lane| lane != 0).into()],
                Opcode::VallTrue => vec![first()?.iter().all(|&lane| lane != 0).into()],
                Opcode::VhighBits => vec![truncate(to.bits(), bits_of(first()?, |lane| lane >> (width - 1) != 0))],
                Opcode::SwidenHigh | Opcode::UwidenHigh => each(&lanes, count)?,
                Opcode::Snarrow | Opcode::Unarrow | Opcode::Uunarrow => each(&[&joined], 0)?,
                Opcode::IaddPairwise => {
                    let sum = |pair: &[u128]| truncate(width, pair[0].wrapping_add(pair[1]));
                    joined.chunks(2).map(sum).collect()
                }
                Opcode::Fvdemote => {
                    let mut result = each(&lanes, 0)?;
                    result[from.lane_count() as usize..].fill(0);
                    result
                }
                _ if results.len() == 2 => {
                    let (value, flag) = overflowing(opcode, width, &joined)?;
                    return Ok(vec![vec![value], vec![flag.into()]]);
                }
                _ => each(&lanes, 0)?,
            },
        };
        Ok(vec![one])
    }

    /// Returns the bytes of an access, or an error if its flags forbid the access.
    fn place(&mut self, at: u32, size: usize, flags: MemFlagsData, store: bool) -> Result<&mut [u8], Stop> {
        let undefined = |what: &str| Err(Stop::Undefined(format!("{what} at {at:#x}, {size} bytes")));
        if flags.aligned() && !at.is_multiple_of(size as u32) {
            return undefined("misaligned access");
        }
        let contains = |span: &&mut Span| (at.wrapping_sub(span.base) as usize) < span.bytes.len();
        let Some(span) = self.spans.iter_mut().find(contains) else {
            return undefined("access outside of the memory");
        };
        let place = at.wrapping_sub(span.base) as usize;
        let Some(bytes) = span.bytes.get_mut(place..place + size) else {
            return undefined("access beyond the end");
        };
        let own = flags.alias_region();
        for (region, is_stored) in &mut span.accesses[place..place + size] {
            let is_other = own.is_some() && region.is_some() && *region != own;
            *is_stored |= store;
            if is_other && *is_stored {
                return undefined("access from two alias regions");
            } else if span.is_slot && !*is_stored {
                return undefined("unwritten bytes of a slot");
            }
            *region = own.or(*region);
        }
        Ok(bytes)
    }

    /// Returns the results of the intrinsic `__builtin_npu_` + `name`.
    fn intrinsic(&mut self, frame: &mut Frame<'a>, name: &str, args: &[Value]) -> Result<Vec<Lanes>, Stop> {
        let all = frame.all(args);
        let word = |n: usize| all[n][0] as u32;
        let by_lane = |f: &dyn Fn(usize) -> u128| -> Lanes { (0..MASKED_LANES).map(f).collect() };
        let mask = frame.mask;
        let under_mask = |a: &Lanes, b: &Lanes| by_lane(&|k| if mask >> k & 1 != 0 { a[k] } else { b[k] });
        let compare = |holds: fn(u32, u32) -> bool| {
            let holds = |k: usize| u128::from(holds(all[0][k] as u32, all[1][k] as u32)) << k;
            vec![(0..MASKED_LANES).map(holds).sum()]
        };
        let each = |f: fn(u32) -> u32| -> Lanes { all[0].iter().map(|&lane| f(lane as u32).into()).collect() };
        let low_bits = || bits_of(&all[0], |lane| lane & 1 != 0);
        let result = match name {
            "shufflei32" | "shufflef32" => by_lane(&|k| all[0][all[1][k] as usize % MASKED_LANES]),
            "vector_mixi32" | "vector_mixf32" => under_mask(&all[0], &all[1]),
            "read_mask_reg" => vec![mask.into()],
            "createmaskv16i32" => vec![low_bits()],
            "clzv16i32" | "clzi32" => each(u32::leading_zeros),
            "ctzv16i32" | "ctzi32" => each(u32::trailing_zeros),
            "raw_itof" => each(fp::from_int),
            "raw_ftoi" => each(fp::to_int),
            "mask_cmpi32_eq" => compare(|a, b| a == b),
            "mask_cmpi32_sgt" => compare(|a, b| a.cast_signed() > b.cast_signed()),
            "mask_cmpi32_ule" => compare(|a, b| a <= b),
            "mask_cmpf32_lt" => compare(|a, b| f32::from_bits(a) < f32::from_bits(b)),
            "mask_cmpf32_ne" => compare(|a, b| f32::from_bits(a) != f32::from_bits(b)),
            "raw_fadd" => vec![fp::add(word(0), word(1)).into()],
            "raw_fmul" => vec![fp::mul(word(0), word(1)).into()],
            "raw_fdiv" => vec![fp::div(word(0), word(1)).into()],
            "write_mask_reg" => {
                frame.mask = word(0) as u16;
                return Ok(Vec::new());
            }
            "write_mask_regv16i32" => {
                frame.mask = low_bits() as u16;
                return Ok(Vec::new());
            }
            "block_storev16i32_masked" => {
                let place = self.place(word(0), 4 * MASKED_LANES, MemFlagsData::new(), true)?;
                let stored = under_mask(&all[1], &from_bytes(types::I32X16, place));
                place.copy_from_slice(&to_bytes(types::I32X16, &stored));
                return Ok(Vec::new());
            }
            _ => return Err(Stop::Unsupported(Opcode::Call)),
        };
        Ok(vec![result])
    }
}

/// Returns the number of bytes that an access reads or writes.
fn access_size(opcode: Opcode, ty: Type) -> usize {
    let narrow = NARROW_ACCESSES.iter().find(|(_, opcodes)| opcodes.contains(&opcode));
    narrow.map_or(ty, |(narrow, _)| *narrow).bytes() as usize
}

/// Returns one bit per lane.
fn bits_of(lanes: &[u128], holds: impl Fn(u128) -> bool) -> u128 {
    let bits = lanes.iter().enumerate().map(|(k, &lane)| u128::from(holds(lane)) << k);
    bits.sum()
}
