//! Bulk instructions on bytes or elements, and the growth of memories and tables.

use crate::config::PAGE;
use crate::emit::{Emitter, Region};
use crate::error::Result;
use crate::items::MemoryItem;
use crate::traps;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{BlockArg, InstBuilder, TrapCode, Value, types};

/// The size of a page, as a shift.
const PAGE_SHIFT: u32 = PAGE.trailing_zeros();

impl Emitter<'_, '_, '_, '_> {
    /// Returns the size of a memory in pages.
    pub fn memory_size(&mut self, memory: u32) -> Result<Value> {
        let bytes = self.memory_bytes(memory)?;
        let shift = self.word(PAGE_SHIFT);
        Ok(self.builder.ins().ushr(bytes, shift))
    }

    /// Adds pages. Returns the previous number of pages, or -1 if the memory cannot grow.
    pub fn memory_grow(&mut self, memory: u32, pages: Value) -> Result<Value> {
        self.checks.effect();
        let item = self.memory(memory)?;
        if item.is_shared() {
            return Ok(self.grow_shared(item, memory, pages));
        }
        let before = self.memory_size(memory)?;
        let most = self.word(item.reserved / PAGE);
        let room = self.builder.ins().isub(most, before);
        let fits = self.compare(IntCC::UnsignedLessThanOrEqual, pages, room);
        let after = self.builder.ins().iadd(before, pages);
        let shift = self.word(PAGE_SHIFT);
        let bytes = self.builder.ins().ishl(after, shift);
        Ok(self.grow(fits, before, |this| {
            this.store_cell(item.size, Region::MemorySize(memory), bytes);
        }))
    }

    /// Adds pages to a memory that other threads may grow at the same time.
    fn grow_shared(&mut self, item: MemoryItem, memory: u32, pages: Value) -> Value {
        let [head, attempt, done] = [(); 3].map(|()| self.builder.create_block());
        let result = self.builder.append_block_param(done, types::I32);
        let cell = self.symbol(item.size);
        let flags = self.flags(Region::MemorySize(memory));
        let most = self.word(item.reserved / PAGE);
        let shift = self.word(PAGE_SHIFT);
        let failed = self.word(u32::MAX);
        self.builder.ins().jump(head, &[]);
        self.builder.switch_to_block(head);
        let bytes = self.builder.ins().atomic_load(types::I32, flags, cell);
        let before = self.builder.ins().ushr(bytes, shift);
        let room = self.builder.ins().isub(most, before);
        let fits = self.compare(IntCC::UnsignedLessThanOrEqual, pages, room);
        self.builder
            .ins()
            .brif(fits, attempt, &[], done, &[BlockArg::Value(failed)]);
        self.builder.switch_to_block(attempt);
        let after = self.builder.ins().iadd(before, pages);
        let after = self.builder.ins().ishl(after, shift);
        let found = self.builder.ins().atomic_cas(flags, cell, bytes, after);
        let same = self.compare(IntCC::Equal, found, bytes);
        self.builder
            .ins()
            .brif(same, done, &[BlockArg::Value(before)], head, &[]);
        for block in [head, attempt, done] {
            self.builder.seal_block(block);
        }
        self.builder.switch_to_block(done);
        result
    }

    /// Emits `work` if `fits` holds. Returns the size before, or -1.
    fn grow(&mut self, fits: Value, before: Value, work: impl FnOnce(&mut Self)) -> Value {
        let [grown, done] = [(); 2].map(|()| self.builder.create_block());
        let result = self.builder.append_block_param(done, types::I32);
        let failed = self.word(u32::MAX);
        self.builder
            .ins()
            .brif(fits, grown, &[], done, &[BlockArg::Value(failed)]);
        self.builder.switch_to_block(grown);
        self.builder.seal_block(grown);
        work(self);
        self.builder.ins().jump(done, &[BlockArg::Value(before)]);
        self.builder.switch_to_block(done);
        self.builder.seal_block(done);
        result
    }

    /// Returns the device address of a checked address in a memory.
    fn place(&mut self, memory: u32, at: Value) -> Result<Value> {
        let base = self.memory(memory)?.base;
        let base = self.base(base);
        Ok(self.builder.ins().iadd(base, at))
    }

    pub fn memory_fill(&mut self, memory: u32, to: Value, byte: Value, count: Value) -> Result<()> {
        let size = self.memory_bytes(memory)?;
        self.check_range(to, count, size, TrapCode::HEAP_OUT_OF_BOUNDS);
        let to = self.place(memory, to)?;
        let byte = self.builder.ins().ireduce(types::I8, byte);
        let config = self.env.module.target_config();
        self.builder.call_memset(config, to, byte, count);
        Ok(())
    }

    pub fn memory_copy(
        &mut self,
        to_memory: u32,
        from_memory: u32,
        to: Value,
        from: Value,
        count: Value,
    ) -> Result<()> {
        let size = self.memory_bytes(from_memory)?;
        self.check_range(from, count, size, TrapCode::HEAP_OUT_OF_BOUNDS);
        let size = self.memory_bytes(to_memory)?;
        self.check_range(to, count, size, TrapCode::HEAP_OUT_OF_BOUNDS);
        let from = self.place(from_memory, from)?;
        let to = self.place(to_memory, to)?;
        let config = self.env.module.target_config();
        self.builder.call_memmove(config, to, from, count);
        Ok(())
    }

    pub fn memory_init(&mut self, segment: u32, memory: u32, to: Value, from: Value, count: Value) -> Result<()> {
        let segment = self.data(segment)?;
        let left = self.load_cell(segment.left, Region::Other, types::I32);
        self.check_range(from, count, left, TrapCode::HEAP_OUT_OF_BOUNDS);
        let size = self.memory_bytes(memory)?;
        self.check_range(to, count, size, TrapCode::HEAP_OUT_OF_BOUNDS);
        let contents = self.symbol(segment.contents);
        let from = self.builder.ins().iadd(contents, from);
        let to = self.place(memory, to)?;
        let config = self.env.module.target_config();
        self.builder.call_memcpy(config, to, from, count);
        Ok(())
    }

    pub fn data_drop(&mut self, segment: u32) -> Result<()> {
        self.checks.effect();
        let segment = self.data(segment)?;
        let none = self.word(0);
        self.store_cell(segment.left, Region::Other, none);
        Ok(())
    }

    pub fn elem_drop(&mut self, segment: u32) -> Result<()> {
        self.checks.effect();
        let segment = self.elements(segment)?;
        let none = self.word(0);
        self.store_cell(segment.left, Region::Other, none);
        Ok(())
    }

    pub fn table_get(&mut self, table: u32, index: Value) -> Result<Value> {
        let address = self.element(table, index, traps::TABLE_OUT_OF_BOUNDS)?;
        let flags = self.flags(Region::Table(table)).with_aligned();
        Ok(self.builder.ins().load(types::I32, flags, address, 0))
    }

    pub fn table_set(&mut self, table: u32, index: Value, value: Value) -> Result<()> {
        let address = self.element(table, index, traps::TABLE_OUT_OF_BOUNDS)?;
        let flags = self.flags(Region::Table(table)).with_aligned();
        self.builder.ins().store(flags, value, address, 0);
        Ok(())
    }

    /// Adds elements. Returns their previous number, or -1 if the table cannot grow.
    pub fn table_grow(&mut self, table: u32, value: Value, count: Value) -> Result<Value> {
        self.checks.effect();
        let item = self.table(table)?;
        let before = self.table_size(table)?;
        let most = self.word(item.reserved);
        let room = self.builder.ins().isub(most, before);
        let fits = self.compare(IntCC::UnsignedLessThanOrEqual, count, room);
        let after = self.builder.ins().iadd(before, count);
        let address = self.element_address(table, before)?;
        Ok(self.grow(fits, before, |this| {
            this.store_cell(item.size, Region::TableSize(table), after);
            this.fill_words(address, count, value, Region::Table(table));
        }))
    }

    pub fn table_fill(&mut self, table: u32, start: Value, value: Value, count: Value) -> Result<()> {
        let size = self.table_size(table)?;
        self.check_range(start, count, size, traps::TABLE_OUT_OF_BOUNDS);
        let address = self.element_address(table, start)?;
        self.fill_words(address, count, value, Region::Table(table));
        Ok(())
    }

    pub fn table_copy(&mut self, to_table: u32, from_table: u32, to: Value, from: Value, count: Value) -> Result<()> {
        let size = self.table_size(from_table)?;
        self.check_range(from, count, size, traps::TABLE_OUT_OF_BOUNDS);
        let size = self.table_size(to_table)?;
        self.check_range(to, count, size, traps::TABLE_OUT_OF_BOUNDS);
        let from = self.element_address(from_table, from)?;
        let to = self.element_address(to_table, to)?;
        self.copy_words(to, from, count);
        Ok(())
    }

    fn copy_words(&mut self, to: Value, from: Value, count: Value) {
        let two = self.word(2);
        let bytes = self.builder.ins().ishl(count, two);
        let config = self.env.module.target_config();
        self.builder.call_memmove(config, to, from, bytes);
    }

    pub fn table_init(&mut self, segment: u32, table: u32, to: Value, from: Value, count: Value) -> Result<()> {
        let segment = self.elements(segment)?;
        let left = self.load_cell(segment.left, Region::Other, types::I32);
        self.check_range(from, count, left, traps::TABLE_OUT_OF_BOUNDS);
        let size = self.table_size(table)?;
        self.check_range(to, count, size, traps::TABLE_OUT_OF_BOUNDS);
        let contents = self.symbol(segment.contents);
        let two = self.word(2);
        let distance = self.builder.ins().ishl(from, two);
        let from = self.builder.ins().iadd(contents, distance);
        let to = self.element_address(table, to)?;
        self.copy_words(to, from, count);
        Ok(())
    }
}
