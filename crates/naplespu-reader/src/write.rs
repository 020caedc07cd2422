//! Functions as text.

use cranelift_codegen::entity::SecondaryMap;
use cranelift_codegen::ir::entities::AnyEntity;
use cranelift_codegen::ir::{Block, Function, Inst, Value};
use cranelift_codegen::write::{FuncWriter, PlainWriter, decorate_function};
use std::fmt::{self, Write};

/// Returns a function as text that the reader accepts.
///
/// Cranelift's writer omits the declarations of vectors of dynamic size, and prints their types in
/// a form that its reader does not accept. The reader accepts no block parameters of these types.
pub fn function_text(func: &Function) -> String {
    if func.dfg.dynamic_types.is_empty() {
        return func.display().to_string();
    }
    let mut text = String::new();
    // Writing to a string does not fail.
    let _ = decorate_function(&mut DynamicWriter::default(), &mut text, func);
    text
}

/// Writes vectors of dynamic size as their declared types.
#[derive(Default)]
struct DynamicWriter {
    /// The declarations of dynamic stack slots, which the default order puts before their types.
    slots: String,
}

impl FuncWriter for DynamicWriter {
    fn write_block_header(&mut self, w: &mut dyn Write, func: &Function, block: Block, indent: usize) -> fmt::Result {
        PlainWriter.write_block_header(w, func, block, indent)
    }

    fn write_instruction(
        &mut self,
        w: &mut dyn Write,
        func: &Function,
        aliases: &SecondaryMap<Value, Vec<Value>>,
        inst: Inst,
        indent: usize,
    ) -> fmt::Result {
        let mut text = String::new();
        PlainWriter.write_instruction(&mut text, func, aliases, inst, indent)?;
        w.write_str(&with_declared_types(text, func))
    }

    fn write_preamble(&mut self, w: &mut dyn Write, func: &Function) -> Result<bool, fmt::Error> {
        self.super_preamble(w, func)?;
        for (name, data) in &func.dfg.dynamic_types {
            writeln!(w, "    {name} = {}*{}", data.base_vector_ty, data.dynamic_scale)?;
        }
        w.write_str(&self.slots)?;
        Ok(true)
    }

    fn write_entity_definition(
        &mut self,
        w: &mut dyn Write,
        func: &Function,
        entity: AnyEntity,
        value: &dyn fmt::Display,
    ) -> fmt::Result {
        match entity {
            AnyEntity::DynamicStackSlot(_) => writeln!(self.slots, "    {entity} = {value}"),
            _ => self.super_entity_definition(w, func, entity, value),
        }
    }
}

/// Replaces the types of vectors of dynamic size by the names of their declarations.
fn with_declared_types(mut text: String, func: &Function) -> String {
    for (name, data) in &func.dfg.dynamic_types {
        if let Some(ty) = data.concrete() {
            text = text.replace(&ty.to_string(), &name.to_string());
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use cranelift_reader::parse_functions;

    #[test]
    fn vectors_of_dynamic_size_are_read_again() {
        let text = "function %f(i32) -> i32x4 {
            gv0 = dyn_scale_target_const.i32x4
            gv1 = dyn_scale_target_const.i8x16
            dt0 = i32x4*gv0
            dt1 = i8x16*gv1
            ss0 = explicit_slot 4
            dss0 = explicit_dynamic_slot dt0
        block0(v0: i32):
            v1 = splat.dt0 v0
            v2 = dynamic_stack_addr.i32 dss0
            store v1, v2
            v3 = ireduce.i8 v0
            v4 = splat.dt1 v3
            v5 = load.dt0 v2
            v6 = iadd v1, v5
            v7 = extract_vector v6, 3
            return v7
        }";
        let written = function_text(&parse_functions(text).unwrap()[0]);
        for line in [
            "    dt1 = i8x16*gv1\n",
            "    v5 = load.dt0 v2\n",
            "    v4 = splat.dt1 v3\n",
        ] {
            assert!(written.contains(line), "{written}");
        }
        let again = parse_functions(&written).unwrap_or_else(|error| panic!("{error}\n{written}"));
        assert_eq!(function_text(&again[0]), written);
    }

    #[test]
    fn other_functions_are_as_cranelift_writes_them() {
        let text = "function %f(i32) -> i32 {\nblock0(v0: i32):\n    return v0\n}\n";
        let func = &parse_functions(text).unwrap()[0];
        assert_eq!(function_text(func), func.display().to_string());
    }
}
