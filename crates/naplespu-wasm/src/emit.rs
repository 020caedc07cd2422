//! Emits the common parts of all functions: constants, cells, calls and checks.

use crate::config::PAGE;
use crate::env::{Env, Segment, get};
use crate::error::{Result, WasmError};
use crate::items::{Base, GlobalItem, MemoryItem, TableItem};
use crate::parse::ConstOp;
use crate::traps;
use crate::types::WHOLE;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{
    AliasRegion, AliasRegionData, BlockArg, FuncRef, GlobalValue, InstBuilder, MemFlagsData, SigRef, TrapCode, Type,
    Value, types,
};
use cranelift_frontend::FunctionBuilder;
use cranelift_module::DataId;
use std::collections::HashMap;

/// A region of memory. Stores to one region do not change other regions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Region {
    Heap(u32),
    Global(u32),
    Table(u32),
    TableSize(u32),
    MemorySize(u32),
    /// Records and segments.
    Other,
    /// Exceptions in flight and copies of exceptions.
    Exceptions,
}

impl Region {
    /// Returns a unique number that is not the number of an address space.
    fn number(self) -> u32 {
        let (kind, index) = match self {
            Self::Other => (1, 0),
            Self::Heap(index) => (2, index),
            Self::Global(index) => (3, index),
            Self::Table(index) => (4, index),
            Self::TableSize(index) => (5, index),
            Self::MemorySize(index) => (6, index),
            Self::Exceptions => (7, 0),
        };
        // Regions with larger indices share a number, which is correct but less precise.
        kind << 20 | index.min(0xf_ffff)
    }
}

/// A function during its construction.
pub(crate) struct Emitter<'e, 'a, 'm, 'b> {
    pub builder: FunctionBuilder<'b>,
    pub env: &'e mut Env<'a, 'm>,
    regions: HashMap<Region, AliasRegion>,
    functions: HashMap<u32, FuncRef>,
    signatures: HashMap<u32, SigRef>,
    symbols: HashMap<DataId, GlobalValue>,
    pub checks: crate::memory::Checks,
    pub uses: crate::kernel::Uses,
}

impl<'e, 'a, 'm, 'b> Emitter<'e, 'a, 'm, 'b> {
    pub fn new(builder: FunctionBuilder<'b>, env: &'e mut Env<'a, 'm>) -> Self {
        Self {
            builder,
            env,
            regions: HashMap::new(),
            functions: HashMap::new(),
            signatures: HashMap::new(),
            symbols: HashMap::new(),
            checks: crate::memory::Checks::default(),
            uses: crate::kernel::Uses::default(),
        }
    }

    pub fn word(&mut self, value: u32) -> Value {
        self.builder.ins().iconst(types::I32, i64::from(value))
    }

    pub fn add(&mut self, value: Value, constant: u32) -> Value {
        if constant == 0 {
            return value;
        }
        let constant = self.word(constant);
        self.builder.ins().iadd(value, constant)
    }

    /// Returns the flags of accesses to a region, which never leave the device's memory.
    pub fn flags(&mut self, region: Region) -> MemFlagsData {
        let func = &mut self.builder.func;
        let region = *self.regions.entry(region).or_insert_with(|| {
            func.dfg.alias_regions.insert(AliasRegionData {
                user_id: region.number(),
                description: format!("{region:?}").into(),
            })
        });
        MemFlagsData::new().with_notrap().with_alias_region(Some(region))
    }

    pub fn symbol(&mut self, data: DataId) -> Value {
        let symbol = match self.symbols.get(&data) {
            Some(&symbol) => symbol,
            None => {
                let symbol = self.env.module.declare_data_in_func(data, self.builder.func);
                self.symbols.insert(data, symbol);
                symbol
            }
        };
        self.builder.ins().symbol_value(types::I32, symbol)
    }

    /// Returns the address of a global's value.
    fn global_cell(&mut self, item: GlobalItem) -> Value {
        if item.thread_local {
            self.uses.stack = Some(item.data);
            self.thread_cell(item.data)
        } else {
            self.symbol(item.data)
        }
    }

    /// Returns the address of a thread-local object.
    pub fn thread_cell(&mut self, data: DataId) -> Value {
        // Uses the cached declaration; reading a thread-local address is an instruction of its own.
        let symbol = match self.symbols.get(&data) {
            Some(&symbol) => symbol,
            None => self.env.module.declare_data_in_func(data, self.builder.func),
        };
        self.symbols.insert(data, symbol);
        self.builder.ins().tls_value(types::I32, symbol)
    }

    /// Writes a global.
    pub fn global_set(&mut self, index: u32, value: Value) -> Result<()> {
        let item = self.global(index)?;
        let address = self.global_cell(item);
        let flags = self.flags(Region::Global(index)).with_aligned();
        self.builder.ins().store(flags, value, address, 0);
        Ok(())
    }

    /// Loads a cell of the module.
    pub fn load_cell(&mut self, data: DataId, region: Region, ty: Type) -> Value {
        let address = self.symbol(data);
        let flags = self.flags(region).with_aligned();
        self.builder.ins().load(ty, flags, address, 0)
    }

    pub fn store_cell(&mut self, data: DataId, region: Region, value: Value) {
        let address = self.symbol(data);
        let flags = self.flags(region).with_aligned();
        self.builder.ins().store(flags, value, address, 0);
    }

    pub fn global(&self, index: u32) -> Result<GlobalItem> {
        get(&self.env.globals, index, "a global").copied()
    }

    pub fn memory(&self, index: u32) -> Result<MemoryItem> {
        get(&self.env.memories, index, "a memory").copied()
    }

    pub fn table(&self, index: u32) -> Result<TableItem> {
        get(&self.env.tables, index, "a table").copied()
    }

    pub fn elements(&self, index: u32) -> Result<Segment> {
        get(&self.env.elements, index, "an element segment").copied()
    }

    pub fn data(&self, index: u32) -> Result<Segment> {
        get(&self.env.data, index, "a data segment").copied()
    }

    /// Returns the value of a global.
    pub fn global_get(&mut self, index: u32) -> Result<Value> {
        let item = self.global(index)?;
        Ok(match item.known {
            Some(op) => self.constant(op)?,
            None => {
                let address = self.global_cell(item);
                let flags = self.flags(Region::Global(index)).with_aligned();
                self.builder.ins().load(item.ty.clif(), flags, address, 0)
            }
        })
    }

    /// Returns a constant, for expressions that do not read a global.
    fn constant(&mut self, op: ConstOp) -> Result<Value> {
        let ins = self.builder.ins();
        Ok(match op {
            ConstOp::I32(value) => ins.iconst(types::I32, i64::from(value as u32)),
            ConstOp::I64(value) => ins.iconst(types::I64, value),
            ConstOp::F32(bits) => ins.f32const(cranelift_codegen::ir::immediates::Ieee32::with_bits(bits)),
            ConstOp::F64(bits) => ins.f64const(cranelift_codegen::ir::immediates::Ieee64::with_bits(bits)),
            ConstOp::V128(bytes) => self.vector(WHOLE, bytes),
            ConstOp::Null => ins.iconst(types::I32, 0),
            other => return Err(WasmError::internal(format!("a constant, not {other:?}"))),
        })
    }

    /// Returns the address of the record of a function.
    pub fn func_ref(&mut self, index: u32) -> Result<Value> {
        let record = self.env.record(index)?;
        Ok(self.symbol(record))
    }

    /// Evaluates a constant expression.
    pub fn const_expr(&mut self, ops: &[ConstOp]) -> Result<Value> {
        let mut stack = Vec::new();
        for &op in ops {
            let value = match op {
                ConstOp::Global(index) => self.global_get(index)?,
                ConstOp::Func(index) => self.func_ref(index)?,
                ConstOp::Add32 | ConstOp::Add64 | ConstOp::Sub32 | ConstOp::Sub64 | ConstOp::Mul32 | ConstOp::Mul64 => {
                    let (Some(b), Some(a)) = (stack.pop(), stack.pop()) else {
                        return Err(WasmError::internal("two operands of a constant expression"));
                    };
                    let ins = self.builder.ins();
                    match op {
                        ConstOp::Add32 | ConstOp::Add64 => ins.iadd(a, b),
                        ConstOp::Sub32 | ConstOp::Sub64 => ins.isub(a, b),
                        _ => ins.imul(a, b),
                    }
                }
                other => self.constant(other)?,
            };
            stack.push(value);
        }
        stack
            .pop()
            .ok_or_else(|| WasmError::internal("a value of a constant expression"))
    }

    pub fn function(&mut self, index: u32) -> Result<FuncRef> {
        if let Some(&func) = self.functions.get(&index) {
            return Ok(func);
        }
        let item = *get(&self.env.functions, index, "a function")?;
        let func = self.env.module.declare_func_in_func(item.id, self.builder.func);
        self.functions.insert(index, func);
        Ok(func)
    }

    /// Returns the signature of a type of the module.
    pub fn signature(&mut self, type_index: u32) -> Result<SigRef> {
        if let Some(&signature) = self.signatures.get(&type_index) {
            return Ok(signature);
        }
        let ty = self.env.info.type_at(type_index)?;
        let signature = self.env.types.get(ty)?.signature(self.env.config.convention);
        let signature = self.builder.import_signature(signature);
        self.signatures.insert(type_index, signature);
        Ok(signature)
    }

    pub fn compare(&mut self, cc: IntCC, a: Value, b: Value) -> Value {
        self.builder.ins().icmp(cc, a, b)
    }

    /// Traps unless the range of `count` units from `start` lies within `size` units.
    pub fn check_range(&mut self, start: Value, count: Value, size: Value, code: TrapCode) {
        let too_many = self.compare(IntCC::UnsignedGreaterThan, count, size);
        self.trap_if(too_many, code);
        let last = self.builder.ins().isub(size, count);
        let outside = self.compare(IntCC::UnsignedGreaterThan, start, last);
        self.trap_if(outside, code);
    }

    pub fn trap_if(&mut self, condition: Value, code: TrapCode) {
        self.checks.effect();
        self.builder.ins().trapnz(condition, code);
    }

    pub fn memory_bytes(&mut self, index: u32) -> Result<Value> {
        let memory = self.memory(index)?;
        Ok(if memory.fixed {
            self.word(memory.limits.min.saturating_mul(PAGE))
        } else {
            self.load_cell(memory.size, Region::MemorySize(index), types::I32)
        })
    }

    pub fn table_size(&mut self, index: u32) -> Result<Value> {
        let table = self.table(index)?;
        Ok(if table.fixed {
            self.word(table.limits.min)
        } else {
            self.load_cell(table.size, Region::TableSize(index), types::I32)
        })
    }

    /// Returns the address of a memory's first byte.
    pub fn base(&mut self, base: Base) -> Value {
        match base {
            Base::At(address) => self.word(address),
            Base::Data(data) => self.symbol(data),
        }
    }

    /// Emits a loop that stores `value` to `count` words from `address` on.
    pub fn fill_words(&mut self, address: Value, count: Value, value: Value, region: Region) {
        let [head, body, end] = [(); 3].map(|()| self.builder.create_block());
        let at = self.builder.append_block_param(head, types::I32);
        let left = self.builder.append_block_param(head, types::I32);
        self.builder
            .ins()
            .jump(head, &[BlockArg::Value(address), BlockArg::Value(count)]);
        self.builder.switch_to_block(head);
        self.builder.ins().brif(left, body, &[], end, &[]);
        self.builder.switch_to_block(body);
        let flags = self.flags(region).with_aligned();
        self.builder.ins().store(flags, value, at, 0);
        let next = self.add(at, 4);
        let fewer = self.add(left, u32::MAX);
        self.builder
            .ins()
            .jump(head, &[BlockArg::Value(next), BlockArg::Value(fewer)]);
        self.builder.seal_block(head);
        self.builder.seal_block(body);
        self.builder.switch_to_block(end);
        self.builder.seal_block(end);
        self.checks.effect();
    }

    /// Returns the address of a table element, after a bounds check.
    pub fn element(&mut self, table: u32, index: Value, code: TrapCode) -> Result<Value> {
        let size = self.table_size(table)?;
        let outside = self.compare(IntCC::UnsignedGreaterThanOrEqual, index, size);
        self.trap_if(outside, code);
        self.element_address(table, index)
    }

    /// Returns the address of a table element without a check.
    pub fn element_address(&mut self, table: u32, index: Value) -> Result<Value> {
        let elements = self.table(table)?.elements;
        let elements = self.symbol(elements);
        let two = self.word(2);
        let distance = self.builder.ins().ishl(index, two);
        Ok(self.builder.ins().iadd(elements, distance))
    }

    /// Returns the record of the callee of an indirect call, after all checks.
    pub fn callee(&mut self, table: u32, index: Value, type_index: u32) -> Result<Value> {
        let address = self.element(table, index, traps::UNDEFINED_ELEMENT)?;
        let flags = self.flags(Region::Table(table)).with_aligned();
        let record = self.builder.ins().load(types::I32, flags, address, 0);
        self.builder.ins().trapz(record, traps::UNINITIALIZED_ELEMENT);
        let flags = self.flags(Region::Other).with_aligned().with_readonly();
        let found = self
            .builder
            .ins()
            .load(types::I32, flags, record, crate::env::RECORD_TYPE);
        let ty = self.env.info.type_at(type_index)?;
        let expected = self.word(ty.0);
        let other = self.compare(IntCC::NotEqual, found, expected);
        self.trap_if(other, traps::INDIRECT_CALL_TYPE);
        Ok(record)
    }

    /// Loads the address of the code from a record.
    pub fn code_of(&mut self, record: Value) -> Value {
        let flags = self.flags(Region::Other).with_aligned().with_readonly();
        self.builder.ins().load(types::I32, flags, record, 0)
    }
}
