//! Random kernels: structured control flow that diverges, accesses of every form, and atomics.
//! The results with sixteen and more lanes are those of one work-item at a time.

use crate::run::{Case, run};
use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::{
    AbiParam, AtomicRmwOp, Block, ExtFuncData, ExternalName, Function, InstBuilder, JumpTableData, MemFlagsData,
    Signature, StackSlot, StackSlotData, StackSlotKind, Type, UserFuncName, Value, types,
};
use cranelift_codegen::isa::{CallConv, TargetFrontendConfig};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext, Variable};
use fastrand::Rng;
use naplespu_spmd::Options;

/// Work-items of a dispatch: three groups of 24.
const ITEMS: i64 = 72;
const GROUP: u32 = 24;

/// Words that each work-item owns, side by side with those of the others.
const COLUMNS: i64 = 4;
/// Words that each work-item owns, one after another.
const ROW: i64 = 4;
/// Words that are only read.
const TABLE: i64 = 64;
/// Counters for atomic operations.
const COUNTERS: i64 = 8;

const ROWS_AT: i64 = ITEMS * COLUMNS * 4;
const TABLE_AT: i64 = ROWS_AT + ITEMS * ROW * 4;
const COUNTERS_AT: i64 = TABLE_AT + TABLE * 4;
const WORDS: i64 = (COUNTERS_AT + COUNTERS * 4) / 4;

struct Generator<'a> {
    rng: Rng,
    builder: FunctionBuilder<'a>,
    ints: Vec<Variable>,
    floats: Vec<Variable>,
    base: Value,
    index: Value,
    uniform: Value,
    slot: StackSlot,
    /// Targets of `break` and `continue`.
    loops: Vec<(Block, Block)>,
    end: Block,
    /// Statements that may still be generated.
    left: u32,
}

/// Returns a kernel `(base, uniform)`.
fn kernel(seed: u64) -> Function {
    let mut signature = Signature::new(CallConv::SystemV);
    signature.params = vec![AbiParam::new(types::I32); 2];
    let mut function = Function::with_name_signature(UserFuncName::testcase("kernel"), signature);
    let mut context = FunctionBuilderContext::new();
    let mut builder = FunctionBuilder::new(&mut function, &mut context);
    let entry = builder.create_block();
    builder.append_block_params_for_function_params(entry);
    builder.switch_to_block(entry);
    let (base, uniform) = (builder.block_params(entry)[0], builder.block_params(entry)[1]);
    let group = call(&mut builder, "workgroup_id_x");
    let local = call(&mut builder, "local_index");
    let first = builder.ins().imul_imm_s(group, i64::from(GROUP));
    let index = builder.ins().iadd(first, local);
    let slot = builder.create_sized_stack_slot(StackSlotData::new(StackSlotKind::ExplicitSlot, 32, 2));
    let end = builder.create_block();
    let mut generator = Generator {
        rng: Rng::with_seed(seed),
        ints: (0..4).map(|_| builder.declare_var(types::I32)).collect(),
        floats: (0..2).map(|_| builder.declare_var(types::F32)).collect(),
        builder,
        base,
        index,
        uniform,
        slot,
        loops: Vec::new(),
        end,
        left: 30,
    };
    generator.whole();
    let Generator { mut builder, .. } = generator;
    builder.seal_all_blocks();
    builder.finalize(TargetFrontendConfig {
        default_call_conv: CallConv::SystemV,
        pointer_width: target_lexicon::PointerWidth::U32,
        page_size_align_log2: 0,
    });
    function
}

fn call(builder: &mut FunctionBuilder<'_>, name: &str) -> Value {
    let mut signature = Signature::new(CallConv::SystemV);
    signature.returns.push(AbiParam::new(types::I32));
    let signature = builder.import_signature(signature);
    let callee = builder.import_function(ExtFuncData {
        name: ExternalName::testcase(format!("__builtin_npu_{name}")),
        signature,
        colocated: false,
        patchable: false,
    });
    let call = builder.ins().call(callee, &[]);
    builder.inst_results(call)[0]
}

const FLAGS: MemFlagsData = MemFlagsData::trusted();

impl Generator<'_> {
    fn whole(&mut self) {
        let start = [self.index, self.uniform, self.base, self.index];
        for (var, value) in self.ints.clone().into_iter().zip(start) {
            let value = if value == self.base {
                self.builder.ins().iconst(types::I32, 5)
            } else {
                value
            };
            self.builder.def_var(var, value);
        }
        for var in self.floats.clone() {
            let value = self.builder.ins().fcvt_from_uint(types::F32, self.index);
            self.builder.def_var(var, value);
        }
        for offset in 0..8 {
            let address = self.builder.ins().stack_addr(types::I32, self.slot, 4 * offset);
            self.builder.ins().store(FLAGS, self.index, address, 0);
        }
        self.statements(0);
        let end = self.end;
        self.builder.ins().jump(end, &[]);
        self.builder.switch_to_block(end);
        for column in 0..self.ints.len() {
            let value = self.builder.use_var(self.ints[column]);
            let address = self.column(column as i64);
            self.builder.ins().store(FLAGS, value, address, 0);
        }
        self.builder.ins().return_(&[]);
    }

    fn statements(&mut self, depth: u32) {
        for _ in 0..self.rng.u32(1..5) {
            if self.left == 0 {
                return;
            }
            self.left -= 1;
            self.statement(depth);
        }
    }

    fn statement(&mut self, depth: u32) {
        match self.rng.u32(0..if depth < 4 { 16 } else { 9 }) {
            0..=2 => {
                let var = self.ints[self.rng.usize(..self.ints.len())];
                let value = self.int(3);
                self.builder.def_var(var, value);
            }
            3 => {
                let var = self.floats[self.rng.usize(..self.floats.len())];
                let value = self.float(2);
                self.builder.def_var(var, value);
            }
            4 => {
                let (value, column) = (self.int(2), self.rng.i64(0..COLUMNS));
                let address = self.column(column);
                self.builder.ins().store(FLAGS, value, address, 0);
            }
            5 => {
                let value = self.int(2);
                let address = self.row();
                self.builder.ins().store(FLAGS, value, address, 0);
            }
            6 => {
                let value = self.int(2);
                let address = self.private();
                self.builder.ins().store(FLAGS, value, address, 0);
            }
            7 => {
                let (number, value) = (self.int(2), self.int(2));
                let number = self.builder.ins().band_imm_s(number, COUNTERS - 1);
                let address = self.address(number, COUNTERS_AT);
                self.builder
                    .ins()
                    .atomic_rmw(types::I32, FLAGS, AtomicRmwOp::Add, address, value);
            }
            8 => self.leave(),
            9..=11 => self.branch(depth),
            12 => self.switch(depth),
            _ => self.repeat(depth),
        }
    }

    /// A conditional `break`, `continue` or `return`.
    fn leave(&mut self) {
        let condition = self.condition();
        let target = match (self.loops.last(), self.rng.u32(..5)) {
            (Some(&(exit, _)), 0..=2) => exit,
            (Some(&(_, again)), 3) => again,
            _ => self.end,
        };
        let next = self.builder.create_block();
        self.builder.ins().brif(condition, target, &[], next, &[]);
        self.builder.switch_to_block(next);
    }

    fn branch(&mut self, depth: u32) {
        let condition = self.condition();
        let [then, other, after] = std::array::from_fn(|_| self.builder.create_block());
        self.builder.ins().brif(condition, then, &[], other, &[]);
        self.builder.switch_to_block(then);
        self.statements(depth + 1);
        self.builder.ins().jump(after, &[]);
        self.builder.switch_to_block(other);
        if self.rng.bool() {
            self.statements(depth + 1);
        }
        self.builder.ins().jump(after, &[]);
        self.builder.switch_to_block(after);
    }

    fn switch(&mut self, depth: u32) {
        let index = self.int(2);
        let index = self.builder.ins().band_imm_s(index, 3);
        let blocks: [Block; 4] = std::array::from_fn(|_| self.builder.create_block());
        let after = self.builder.create_block();
        let calls: Vec<_> = blocks
            .iter()
            .map(|&block| self.builder.func.dfg.block_call(block, &[]))
            .collect();
        let table = self
            .builder
            .create_jump_table(JumpTableData::new(calls[0], &calls[1..]));
        self.builder.ins().br_table(index, table);
        for (number, &block) in blocks.iter().enumerate() {
            self.builder.switch_to_block(block);
            self.statements(depth + 1);
            // Some entries continue in the next one.
            let next = blocks.get(number + 1).copied().filter(|_| self.rng.bool());
            self.builder.ins().jump(next.unwrap_or(after), &[]);
        }
        self.builder.switch_to_block(after);
    }

    /// A loop of at most seven iterations.
    fn repeat(&mut self, depth: u32) {
        let limit = if self.rng.bool() { self.int(2) } else { self.uniform };
        let limit = self.builder.ins().band_imm_s(limit, 7);
        let counter = self.builder.declare_var(types::I32);
        let zero = self.builder.ins().iconst(types::I32, 0);
        self.builder.def_var(counter, zero);
        let [header, body, again, exit] = std::array::from_fn(|_| self.builder.create_block());
        self.builder.ins().jump(header, &[]);
        self.builder.switch_to_block(header);
        let count = self.builder.use_var(counter);
        let more = self.builder.ins().icmp(IntCC::UnsignedLessThan, count, limit);
        self.builder.ins().brif(more, body, &[], exit, &[]);
        self.builder.switch_to_block(body);
        self.loops.push((exit, again));
        self.statements(depth + 1);
        let value = self.builder.use_var(counter);
        let var = self.ints[self.rng.usize(..self.ints.len())];
        let old = self.builder.use_var(var);
        let sum = self.builder.ins().iadd(old, value);
        self.builder.def_var(var, sum);
        self.builder.ins().jump(again, &[]);
        self.builder.switch_to_block(again);
        let value = self.builder.use_var(counter);
        let next = self.builder.ins().iadd_imm_s(value, 1);
        self.builder.def_var(counter, next);
        self.builder.ins().jump(header, &[]);
        self.loops.pop();
        self.builder.switch_to_block(exit);
        if self.rng.bool() {
            // The trip count is used after the loop.
            let count = self.builder.use_var(counter);
            let var = self.ints[self.rng.usize(..self.ints.len())];
            let old = self.builder.use_var(var);
            let sum = self.builder.ins().bxor(old, count);
            self.builder.def_var(var, sum);
        }
    }

    fn condition(&mut self) -> Value {
        let compare = |this: &mut Self| {
            if this.rng.u32(..4) == 0 {
                let (x, y) = (this.float(1), this.float(1));
                this.builder.ins().fcmp(FloatCC::LessThan, x, y)
            } else {
                let (x, y) = (this.int(2), this.int(1));
                let condition = *this
                    .rng
                    .choice(&[IntCC::Equal, IntCC::SignedLessThan, IntCC::UnsignedGreaterThan])
                    .unwrap_or(&IntCC::Equal);
                this.builder.ins().icmp(condition, x, y)
            }
        };
        let first = compare(self);
        match self.rng.u32(..4) {
            0 => {
                let second = compare(self);
                self.builder.ins().band(first, second)
            }
            1 => {
                let second = compare(self);
                self.builder.ins().bor(first, second)
            }
            _ => first,
        }
    }

    fn int(&mut self, depth: u32) -> Value {
        let choice = self.rng.u32(0..if depth == 0 { 4 } else { 17 });
        match choice {
            0 | 1 => {
                let var = self.ints[self.rng.usize(..self.ints.len())];
                self.builder.use_var(var)
            }
            2 => self.builder.ins().iconst(types::I32, self.rng.i64(0..40)),
            3 => *self.rng.choice(&[self.index, self.uniform]).unwrap_or(&self.index),
            4..=9 => {
                let (x, y) = (self.int(depth - 1), self.int(depth - 1));
                let ins = self.builder.ins();
                match choice {
                    4 => ins.iadd(x, y),
                    5 => ins.isub(x, y),
                    6 => ins.imul(x, y),
                    7 => ins.bxor(x, y),
                    8 => ins.umin(x, y),
                    _ => ins.smax(x, y),
                }
            }
            10 => {
                let x = self.int(depth - 1);
                let amount = match self.rng.bool() {
                    true => self.int(depth - 1),
                    false => self.builder.ins().iconst(types::I32, self.rng.i64(0..32)),
                };
                match self.rng.u32(..3) {
                    0 => self.builder.ins().ishl(x, amount),
                    1 => self.builder.ins().ushr(x, amount),
                    _ => self.builder.ins().sshr(x, amount),
                }
            }
            11 => {
                let (x, y) = (self.int(depth - 1), self.int(depth - 1));
                let one = self.builder.ins().iconst(types::I32, 1);
                let y = self.builder.ins().bor(y, one);
                self.builder.ins().urem(x, y)
            }
            12 => {
                let (condition, x, y) = (self.condition(), self.int(depth - 1), self.int(depth - 1));
                self.builder.ins().select(condition, x, y)
            }
            13 => {
                let address = match self.rng.u32(..3) {
                    0 => {
                        let column = self.rng.i64(0..COLUMNS);
                        self.column(column)
                    }
                    1 => self.row(),
                    _ => self.private(),
                };
                self.builder.ins().load(types::I32, FLAGS, address, 0)
            }
            14 => {
                let number = self.int(depth - 1);
                let number = self.builder.ins().band_imm_s(number, TABLE - 1);
                let address = self.address(number, TABLE_AT);
                self.builder.ins().load(types::I32, FLAGS, address, 0)
            }
            15 => {
                let x = self.int(depth - 1);
                let narrow: Type = *self.rng.choice(&[types::I8, types::I16]).unwrap_or(&types::I8);
                let x = self.builder.ins().ireduce(narrow, x);
                let y = self.builder.ins().iconst(narrow, 77);
                let sum = self.builder.ins().iadd(x, y);
                if self.rng.bool() {
                    self.builder.ins().sextend(types::I32, sum)
                } else {
                    self.builder.ins().uextend(types::I32, sum)
                }
            }
            _ => {
                let x = self.float(1);
                let bits = self.builder.ins().bitcast(types::I32, MemFlagsData::new(), x);
                self.builder.ins().ushr_imm_s(bits, 20)
            }
        }
    }

    fn float(&mut self, depth: u32) -> Value {
        match self.rng.u32(0..if depth == 0 { 2 } else { 6 }) {
            0 => {
                let var = self.floats[self.rng.usize(..self.floats.len())];
                self.builder.use_var(var)
            }
            1 => self.builder.ins().f32const(self.rng.u8(..) as f32 / 8.0),
            2 => {
                let x = self.int(1);
                let x = self.builder.ins().band_imm_s(x, 0xff);
                self.builder.ins().fcvt_from_sint(types::F32, x)
            }
            3 => {
                let (x, y) = (self.float(depth - 1), self.float(depth - 1));
                self.builder.ins().fadd(x, y)
            }
            4 => {
                let (x, y) = (self.float(depth - 1), self.float(depth - 1));
                self.builder.ins().fsub(x, y)
            }
            _ => {
                let (condition, x, y) = (self.condition(), self.float(depth - 1), self.float(depth - 1));
                self.builder.ins().select(condition, x, y)
            }
        }
    }

    fn address(&mut self, number: Value, start: i64) -> Value {
        let offset = self.builder.ins().ishl_imm_s(number, 2);
        let address = self.builder.ins().iadd(self.base, offset);
        self.builder.ins().iadd_imm_s(address, start)
    }

    fn column(&mut self, column: i64) -> Value {
        self.address(self.index, column * ITEMS * 4)
    }

    fn row(&mut self) -> Value {
        let within = self.int(1);
        let within = self.builder.ins().band_imm_s(within, ROW - 1);
        let first = self.builder.ins().imul_imm_s(self.index, ROW);
        let number = self.builder.ins().iadd(first, within);
        self.address(number, ROWS_AT)
    }

    fn private(&mut self) -> Value {
        let number = self.int(1);
        let number = self.builder.ins().band_imm_s(number, 7);
        let offset = self.builder.ins().ishl_imm_s(number, 2);
        let slot = self.builder.ins().stack_addr(types::I32, self.slot, 0);
        self.builder.ins().iadd(slot, offset)
    }
}

/// Number of random kernels; `NAPLESPU_SPMD_CASES` runs more.
const CASES: u64 = 25;

#[test]
fn random_kernels_give_the_results_of_one_work_item_at_a_time() {
    let cases = std::env::var("NAPLESPU_SPMD_CASES")
        .ok()
        .and_then(|cases| cases.parse().ok());
    let first = std::env::var("NAPLESPU_SPMD_FIRST")
        .ok()
        .and_then(|first| first.parse().ok());
    for seed in first.unwrap_or(0)..first.unwrap_or(0) + cases.unwrap_or(CASES) {
        let functions = [kernel(seed)];
        let memory: Vec<u32> = (0..WORDS as u32)
            .map(|index| index.wrapping_mul(0x9e37_79b9) >> 20)
            .collect();
        let mut right = None;
        let wide = [32, 64][seed as usize % 2];
        for (lanes, threads, opt_level) in [(1, 1, "speed"), (16, 2, "speed"), (wide, 1, "none")] {
            let case = Case {
                functions: &functions,
                options: Options {
                    workgroup_size: [GROUP, 1, 1],
                    workgroup_bytes: 0,
                    lanes,
                    alignment: vec![64],
                },
                counts: [3, 1, 1],
                threads,
                memory: memory.clone(),
                numbers: &[seed as i32 % 11],
                opt_level,
                timed: threads > 1,
            };
            let done = run(case).unwrap_or_else(|error| panic!("seed {seed}, {lanes} lanes: {error}"));
            let right = right.get_or_insert_with(|| done.memory.clone());
            assert!(
                *right == done.memory,
                "seed {seed}, {lanes} lanes\n{}",
                functions[0].display()
            );
        }
    }
}
