//! Emits the function that initializes a module: globals, tables, segments and the start function,
//! in the order of the specification.

use crate::emit::{Emitter, Region};
use crate::env::known;
use crate::error::Result;
use cranelift_codegen::ir::InstBuilder;

impl Emitter<'_, '_, '_, '_> {
    pub fn init(&mut self) -> Result<()> {
        let entry = self.builder.create_block();
        self.builder.append_block_params_for_function_params(entry);
        self.builder.switch_to_block(entry);
        self.builder.seal_block(entry);
        let info = self.env.info;
        for (global, number) in info.globals.iter().zip(self.env.imported_globals as u32..) {
            if known(&global.init, &self.env.globals).is_none() {
                let value = self.const_expr(&global.init)?;
                self.global_set(number, value)?;
            }
        }
        for (table, number) in info.tables.iter().zip(self.env.imported_tables as u32..) {
            if let Some(init) = &table.init {
                let value = self.const_expr(init)?;
                let zero = self.word(0);
                let first = self.element_address(number, zero)?;
                let count = self.word(table.limits.min);
                self.fill_words(first, count, value, Region::Table(number));
            }
        }
        // Elements that are not constant come first, because later steps copy from the segments.
        for (segment, number) in info.elements.iter().zip(0..) {
            for (item, at) in segment.items.iter().zip((0..).step_by(4)) {
                if !matches!(item[..], [crate::parse::ConstOp::Func(_) | crate::parse::ConstOp::Null]) {
                    let value = self.const_expr(item)?;
                    let contents = self.elements(number)?.contents;
                    let address = self.symbol(contents);
                    let flags = self.flags(Region::Other).with_aligned();
                    self.builder.ins().store(flags, value, address, at);
                }
            }
        }
        for (segment, number) in info.elements.iter().zip(0..) {
            if let Some((table, offset)) = &segment.active {
                let to = self.const_expr(offset)?;
                let from = self.word(0);
                let count = self.elements(number)?.count;
                let count = self.word(count);
                self.table_init(number, *table, to, from, count)?;
                self.elem_drop(number)?;
            }
        }
        for (segment, number) in info.data.iter().zip(0..) {
            if let Some((memory, offset)) = &segment.active {
                let to = self.const_expr(offset)?;
                let from = self.word(0);
                let count = self.data(number)?.count;
                let count = self.word(count);
                self.memory_init(number, *memory, to, from, count)?;
                self.data_drop(number)?;
            }
        }
        if let Some(start) = info.start {
            let start = self.function(start)?;
            self.builder.ins().call(start, &[]);
        }
        self.builder.ins().return_(&[]);
        Ok(())
    }

    /// Emits the stack limit of the function, if one is configured.
    pub fn limit_stack(&mut self) {
        let Some(name) = &self.env.config.stack_limit else {
            return;
        };
        let name = cranelift_codegen::ir::ExternalName::testcase(name);
        let limit = self
            .builder
            .create_global_value(cranelift_codegen::ir::GlobalValueData::Symbol {
                name,
                offset: cranelift_codegen::ir::immediates::Imm64::new(0),
                colocated: false,
                tls: false,
            });
        self.builder.func.stack_limit = Some(limit);
    }
}
