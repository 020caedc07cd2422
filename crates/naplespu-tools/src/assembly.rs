//! Compiled functions as assembly that assembles to the same code.
//!
//! [`add_function`] adds a function with its name and its references to the input of the
//! disassembler, [`npu_mc::disasm`].

use cranelift_codegen::ir::Function;
use cranelift_naplespu::code::{CompiledCode, RelocTarget};
use naplespu_jit::function_name;
use npu_mc::disasm::{Input, Reference, Symbol};

/// Adds a compiled function at an address. References between functions use their names.
pub fn add_function(input: &mut Input, func: &Function, code: &CompiledCode, address: u32) {
    let name = function_name(&func.name);
    for reloc in &code.relocs {
        let symbol = match &reloc.target {
            RelocTarget::Function => name.clone(),
            RelocTarget::Runtime(name) => (*name).to_owned(),
            RelocTarget::Name(_) => {
                let text = reloc.target.describe(Some(&func.params));
                text.strip_prefix('%').map_or(text.clone(), str::to_owned)
            }
        };
        input.references.push(Reference {
            address: address.wrapping_add(reloc.offset),
            kind: reloc.kind,
            symbol,
            addend: reloc.addend,
        });
    }
    input.symbols.push(Symbol {
        name,
        address,
        data: false,
    });
    input.segments.push((address, code.bytes.clone()));
}
