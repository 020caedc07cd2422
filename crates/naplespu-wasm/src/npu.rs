//! The operations of the machine, which modules import from `npu`.
//!
//! An import is named like its intrinsic without the prefix, and its types are WebAssembly's.
//! Addresses are in the first memory. Two more functions load and store words of the scratchpad, by
//! scratchpad address. `kernel` has the functions that ask for a work-item.

use crate::config::NPU;
use crate::emit::Emitter;
use crate::env::Env;
use crate::error::Result;
use crate::items::{Extern, FuncItem};
use crate::kernel;
use crate::parse::{Import, ImportKind};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{AliasRegionData, InstBuilder, MemFlagsData, Value, types};
use cranelift_codegen::isa::CallConv;
use cranelift_module::Linkage;
use naplespu_spmd::builtins::{self, Builtin};
use npu_mc::machine::SCRATCHPAD_SPACE;

/// The prefix of the names of intrinsics.
pub(crate) const PREFIX: &str = "__builtin_npu_";

/// The names of the functions that load and store a word of the scratchpad.
const LOAD: &str = "scratchpad_load";
const STORE: &str = "scratchpad_store";

/// Intrinsics whose first argument is an address in memory.
const OF_ADDRESSES: [&str; 2] = ["flush", "dcache_inv"];

/// Declares an imported operation. Returns `None` if the import is not an operation of the machine.
/// The compiler later refuses unknown names and wrong types.
pub(crate) fn import(env: &mut Env<'_, '_>, import: &Import<'_>) -> Result<Option<Extern>> {
    let ImportKind::Func(ty) = import.kind else {
        return Ok(None);
    };
    if import.module != NPU {
        return Ok(None);
    }
    let given = env.types.get(ty)?;
    let signature = given.signature(CallConv::SystemV);
    let name = match kernel::builtin(import) {
        Some(builtin) => {
            kernel::check_type(import, builtin, given)?;
            format!("{NPU}.{}", import.name)
        }
        None => format!("{PREFIX}{}", import.name),
    };
    let id = env.function(&name, Linkage::Import, &signature)?;
    Ok(Some(Extern::Func(FuncItem { id, ty })))
}

impl Emitter<'_, '_, '_, '_> {
    /// Calls a built-in function, and returns its results.
    pub fn work_item(&mut self, name: &str, builtin: Builtin, args: &[Value], offset: u64) -> Vec<Value> {
        let first = || (format!("{NPU}.{name}"), offset);
        self.uses.first.get_or_insert_with(first);
        let (params, result) = builtin.signature();
        let mut converted = Vec::new();
        for (&arg, ty) in args.iter().zip(params) {
            converted.push(match ty {
                types::I8 => {
                    let zero = self.word(0);
                    self.compare(IntCC::NotEqual, arg, zero)
                }
                _ => arg,
            });
        }
        let callee = builtins::import(self.builder.func, name, builtin);
        let call = self.builder.ins().call(callee, &converted);
        let results = self.builder.inst_results(call).to_vec();
        let word = |value: Value| match result {
            Some(types::I8) => self.builder.ins().uextend(types::I32, value),
            _ => value,
        };
        results.into_iter().map(word).collect()
    }

    /// Translates a call of an operation to instructions, if it is not a plain call, and returns
    /// its results. Otherwise converts the addresses in `args` to device addresses and returns
    /// `None`.
    pub fn operation(&mut self, function: u32, args: &mut [Value], offset: u64) -> Result<Option<Vec<Value>>> {
        let info = self.env.info;
        let mut functions = info
            .imports
            .iter()
            .filter(|import| matches!(import.kind, ImportKind::Func(_)));
        let Some(import) = functions.nth(function as usize).filter(|import| import.module == NPU) else {
            return Ok(None);
        };
        if let Some(builtin) = kernel::builtin(import) {
            return Ok(Some(self.work_item(import.name, builtin, args, offset)));
        }
        match (import.name, args) {
            (LOAD, &mut [address]) => {
                let flags = self.scratchpad();
                Ok(Some(vec![self.builder.ins().load(types::I32, flags, address, 0)]))
            }
            (STORE, &mut [address, value]) => {
                let flags = self.scratchpad();
                self.builder.ins().store(flags, value, address, 0);
                Ok(Some(Vec::new()))
            }
            (name, [address, ..]) if OF_ADDRESSES.contains(&name) && !self.env.memories.is_empty() => {
                let base = self.memory(0)?.base;
                let base = self.base(base);
                let there = self.builder.ins().iadd(*address, base);
                // Any byte address selects its cache line, but the machine expects the address of a
                // word.
                let word = self.builder.ins().iconst(types::I32, -4);
                *address = self.builder.ins().band(there, word);
                Ok(None)
            }
            _ => Ok(None),
        }
    }

    fn scratchpad(&mut self) -> MemFlagsData {
        let region = self.builder.func.dfg.alias_regions.insert(AliasRegionData {
            user_id: SCRATCHPAD_SPACE,
            description: "scratchpad".into(),
        });
        MemFlagsData::new().with_aligned().with_alias_region(Some(region))
    }
}
