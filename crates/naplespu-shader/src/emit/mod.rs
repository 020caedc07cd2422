//! Emits the work-item function of an entry point.
//!
//! # Structure
//!
//! - This file has the function, its parameters, variables and built-in values.
//! - `statements` has control flow and calls, which are inlined.
//! - `expressions` evaluates expressions; `operators`, `functions`, `bits` and `geometry` have the
//!   operations on values, `subgroups` those across lanes.
//! - `emitter` has the state and common instructions, `pointer` addresses.
//! - `access` has loads and stores with their checks of indices, `scalars` those of single scalars,
//!   and `atomics` atomic operations.
//! - `places` decides where variables live. `facts` has upper bounds of values.
//!
//! # Invariants
//!
//! - An expression that a statement `Emit` covers is evaluated there, and its value is used in the
//!   blocks that this place dominates. All other expressions are evaluated at each use.
//! - No access leaves its variable or buffer: a dynamic index is clamped (private arrays), checked
//!   (buffers and workgroup memory), or has a bound in `facts`.

mod access;
mod atomics;
mod bits;
mod emitter;
mod expressions;
mod facts;
mod functions;
mod geometry;
mod operators;
mod places;
mod pointer;
mod scalars;
mod statements;
mod subgroups;

use crate::error::{Error, Result};
use crate::kernel::{Kernel, Parameter};
use crate::layout::{Layout, Ty, Types, register};
use crate::lines::Lines;
use crate::module::{Binding, place};
use crate::pointers::{Unchecked, is_used};
use cranelift_codegen::ir::{
    AbiParam, AliasRegionData, Function, InstBuilder, Signature, StackSlot, UserFuncName, Value, types,
};
use cranelift_codegen::isa::{CallConv, TargetFrontendConfig};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use emitter::{Emitter, Frame, Operand, Typing, Values};
use facts::Facts;
use naga::valid::ModuleInfo;
use naga::{AddressSpace, BuiltIn, GlobalVariable, Handle, Span, StorageAccess, TypeInner};
use places::{Indexed, is_private, needs_memory};
use pointer::Root;
use std::collections::HashMap;
use target_lexicon::PointerWidth;

/// The number of the scratchpad's alias region.
const SCRATCHPAD: u32 = 68;

/// The bytes of the scratchpad.
const SCRATCHPAD_BYTES: u32 = 0x1_0000;

/// The entry point and the options of its translation.
pub(crate) struct Input<'m> {
    pub module: &'m naga::Module,
    pub info: &'m ModuleInfo,
    pub unchecked: Option<&'m Unchecked>,
    pub index: usize,
    pub lines: &'m Lines,
    pub lanes: u32,
    pub bindings: Vec<Binding>,
}

/// Translates an entry point.
pub(crate) fn entry_point(input: &Input<'_>) -> Result<Kernel> {
    let entry = &input.module.entry_points[input.index];
    let types = Types { module: input.module };
    let parameters = parameters(input, types)?;
    let mut signature = Signature::new(CallConv::SystemV);
    signature.params = vec![AbiParam::new(types::I32); parameters.len()];
    let mut function = Function::with_name_signature(function_name(&entry.name), signature);
    let scratchpad = function.dfg.alias_regions.insert(AliasRegionData {
        user_id: SCRATCHPAD,
        description: "scratchpad".into(),
    });
    let mut context = FunctionBuilderContext::new();
    let mut builder = FunctionBuilder::new(&mut function, &mut context);
    let block = builder.create_block();
    builder.append_block_params_for_function_params(block);
    builder.switch_to_block(block);
    builder.seal_block(block);
    let mut emitter = Emitter {
        builder,
        module: input.module,
        info: input.info,
        unchecked: input.unchecked,
        types,
        lines: input.lines,
        lanes: input.lanes,
        workgroup_size: entry.workgroup_size,
        globals: HashMap::new(),
        lengths: HashMap::new(),
        tables: HashMap::new(),
        frame: Frame {
            function: &entry.function,
            typing: Typing::Checked(input.info.get_entry_point(input.index)),
            arguments: Vec::new(),
            locals: HashMap::new(),
            values: HashMap::new(),
            targets: Vec::new(),
            exit: None,
        },
        facts: Facts::default(),
        imports: HashMap::new(),
        scratchpad,
        span: Span::UNDEFINED,
        workgroup_bytes: 0,
    };
    let values = emitter.builder.block_params(block).to_vec();
    emitter.add_buffers(input, &parameters, &values)?;
    emitter.add_globals(input)?;
    emitter.add_arguments()?;
    emitter.add_locals(&Indexed::of(input.module, &entry.function))?;
    if !emitter.block(&entry.function.body)? {
        emitter.builder.ins().return_(&[]);
    }
    emitter.builder.seal_all_blocks();
    let workgroup_bytes = emitter.workgroup_bytes;
    emitter.builder.finalize(TargetFrontendConfig {
        default_call_conv: CallConv::SystemV,
        pointer_width: PointerWidth::U32,
        page_size_align_log2: 6,
    });
    verify(&function)?;
    Ok(Kernel {
        function,
        parameters,
        bindings: input.bindings.clone(),
        workgroup_size: entry.workgroup_size,
        workgroup_bytes,
        lanes: input.lanes,
    })
}

/// Returns the name of the work-item function: that of the entry point, in characters that the CLIF
/// text allows.
fn function_name(entry: &str) -> UserFuncName {
    let allowed = |letter: char| match letter {
        'a'..='z' | 'A'..='Z' | '0'..='9' | '_' => letter,
        _ => '_',
    };
    let mut name: String = entry.chars().map(allowed).collect();
    if name.starts_with("__") || name.is_empty() {
        name.insert_str(0, "kernel");
    }
    UserFuncName::testcase(name.as_bytes())
}

/// Verifies the function. Its errors are bugs of this crate, or of the parser.
fn verify(function: &Function) -> Result<()> {
    let flags = cranelift_codegen::settings::Flags::new(cranelift_codegen::settings::builder());
    cranelift_codegen::verify_function(function, &flags).map_err(|errors| Error::Internal(errors.to_string()))
}

/// Returns the parameters: the address of each buffer, and the size of those whose arrays are sized
/// at run time.
fn parameters(input: &Input<'_>, types: Types<'_>) -> Result<Vec<Parameter>> {
    let mut list = Vec::new();
    for (index, binding) in input.bindings.iter().enumerate() {
        list.push(Parameter::Address(index));
        let (_, variable) = variable_of(input, binding)?;
        if runtime_array(types, variable.ty)?.is_some() {
            list.push(Parameter::Size(index));
        }
    }
    Ok(list)
}

/// Returns the variable of a binding that the entry point uses.
fn variable_of<'m>(input: &Input<'m>, binding: &Binding) -> Result<(Handle<GlobalVariable>, &'m GlobalVariable)> {
    let found = input.module.global_variables.iter().find(|(handle, variable)| {
        is_used(input.info, input.unchecked, input.index, *handle)
            && place(variable) == Some((binding.group, binding.binding))
    });
    found.ok_or_else(|| Error::Internal("a binding without a variable".to_owned()))
}

/// Returns the offset and the stride of an array that is sized at run time: the type itself, or the
/// last member of the struct.
fn runtime_array(types: Types<'_>, handle: Handle<naga::Type>) -> Result<Option<(u32, u32)>> {
    let module = types.module;
    match &module.types[handle].inner {
        TypeInner::Array {
            size: naga::ArraySize::Dynamic,
            stride,
            ..
        } => Ok(Some((0, *stride))),
        TypeInner::Struct { members, .. } => {
            let Some(last) = members.last() else { return Ok(None) };
            Ok(runtime_array(types, last.ty)?.map(|(offset, stride)| (last.offset + offset, stride)))
        }
        _ => Ok(None),
    }
}

impl<'m> Emitter<'m, '_> {
    /// Declares the buffers, and computes the lengths of their arrays.
    fn add_buffers(&mut self, input: &Input<'_>, parameters: &[Parameter], values: &[Value]) -> Result<()> {
        for (parameter, &value) in parameters.iter().zip(values) {
            let (Parameter::Address(index) | Parameter::Size(index)) = *parameter;
            let (handle, variable) = variable_of(input, &input.bindings[index])?;
            match parameter {
                Parameter::Address(_) => {
                    let is_read_only = match variable.space {
                        AddressSpace::Storage { access } => !access.contains(StorageAccess::STORE),
                        _ => true,
                    };
                    let root = Root::Buffer {
                        address: value,
                        is_read_only,
                    };
                    self.globals.insert(handle, root);
                }
                Parameter::Size(_) => {
                    let Some((offset, stride)) = runtime_array(self.types, variable.ty)? else {
                        continue;
                    };
                    let bytes = match offset {
                        0 => value,
                        offset => {
                            let offset = self.word(offset);
                            self.builder.ins().isub(value, offset)
                        }
                    };
                    let length = match stride.max(1) {
                        stride if stride.is_power_of_two() => {
                            let shift = self.word(stride.trailing_zeros());
                            self.builder.ins().ushr(bytes, shift)
                        }
                        stride => {
                            let stride = self.word(stride);
                            self.builder.ins().udiv(bytes, stride)
                        }
                    };
                    self.lengths.insert(handle, length);
                }
            }
        }
        Ok(())
    }

    /// Declares workgroup and private variables.
    fn add_globals(&mut self, input: &Input<'m>) -> Result<()> {
        let indexed = Indexed::reachable(self.module, self.frame.function);
        for (handle, variable) in self.module.global_variables.iter() {
            if !is_used(input.info, input.unchecked, input.index, handle) {
                continue;
            }
            self.at(self.module.global_variables.get_span(handle));
            match variable.space {
                AddressSpace::WorkGroup => {
                    let ty = self.types.of(variable.ty, self.span)?;
                    let bytes = self.types.extent(ty, self.span)?.bytes;
                    let address = self.workgroup_bytes;
                    let end = u64::from(address) + u64::from(bytes).next_multiple_of(64);
                    if end > u64::from(SCRATCHPAD_BYTES) {
                        return Err(self.too_large("the workgroup memory", end, SCRATCHPAD_BYTES.into(), "bytes"));
                    }
                    self.workgroup_bytes = end as u32;
                    self.globals.insert(handle, Root::Workgroup(address));
                }
                space if is_private(space) => {
                    let is_indexed = indexed.globals.contains(&handle);
                    let root = self.declare(variable.ty, is_indexed)?;
                    let init = match variable.init {
                        Some(init) => Some(self.global_value(init)?),
                        None => None,
                    };
                    self.initialize(&root, variable.ty, init)?;
                    self.globals.insert(handle, root);
                }
                AddressSpace::Uniform | AddressSpace::Immediate | AddressSpace::Storage { .. } => {
                    let ty = self.types.of(variable.ty, self.span)?;
                    // Every scalar of the buffer has a supported type.
                    self.check_scalars(ty)?;
                }
                AddressSpace::Handle => {
                    // The error names the type.
                    self.types.of(variable.ty, self.span)?;
                    return Err(self.unsupported("a resource that is not a buffer"));
                }
                _ => return Err(self.unsupported("a variable of another stage")),
            }
        }
        let mut tables: Vec<_> = indexed.tables.into_iter().collect();
        tables.sort_unstable();
        for constant in tables {
            self.add_table(constant)?;
        }
        Ok(())
    }

    /// Fails if a type contains a scalar without a register type.
    fn check_scalars(&self, ty: Ty) -> Result<()> {
        match ty {
            Ty::Composite(_) if self.types.is_array(ty) => self.check_scalars(self.types.element(ty, 0, self.span)?),
            Ty::Composite(_) => {
                for index in 0..self.types.elements(ty).unwrap_or(0) {
                    self.check_scalars(self.types.element(ty, index, self.span)?)?;
                }
                Ok(())
            }
            _ => self.types.count(ty, self.span).map(|_| ()),
        }
    }

    /// Stores a constant array to memory, if selects are not cheaper.
    fn add_table(&mut self, constant: Handle<naga::Constant>) -> Result<()> {
        let handle = self.module.constants[constant].ty;
        let ty = self.types.of(handle, self.span)?;
        if !self.types.is_array(ty) || self.types.elements(ty).unwrap_or(0) <= places::MAX_SELECTS {
            return Ok(());
        }
        let values = self.global_value(self.module.constants[constant].init)?;
        let slot = self.spill(ty, &values)?;
        self.tables.insert(constant, slot);
        Ok(())
    }

    /// Stores a value to a new stack slot.
    fn spill(&mut self, ty: Ty, values: &Values) -> Result<StackSlot> {
        let slot = self.slot(ty)?;
        let root = self.pointer_to(&Root::Stack(slot), ty, None);
        self.store(&root, values)?;
        Ok(slot)
    }

    /// Declares a private variable.
    fn declare(&mut self, handle: Handle<naga::Type>, is_indexed: bool) -> Result<Root> {
        let ty = self.types.of(handle, self.span)?;
        let count = self.types.count(ty, self.span)?;
        if needs_memory(self.types, ty, count, is_indexed) {
            return Ok(Root::Stack(self.slot(ty)?));
        }
        let scalars = self.types.scalars(ty, Layout::Words, self.span)?;
        let mut variables = Vec::with_capacity(scalars.len());
        for (scalar, _) in scalars {
            let ty = register(scalar, self.span)?;
            variables.push(self.builder.declare_var(ty));
        }
        Ok(Root::Registers(variables.into()))
    }

    /// Sets a variable to its initial value, or to zero.
    fn initialize(&mut self, root: &Root, handle: Handle<naga::Type>, value: Option<Values>) -> Result<()> {
        let ty = self.types.of(handle, self.span)?;
        if let (Root::Stack(slot), None) = (root, &value) {
            let bytes = self.types.extent(ty, self.span)?.bytes;
            self.clear(*slot, bytes / 4);
            return Ok(());
        }
        let value = match value {
            Some(value) => value,
            None => self.zero_value(ty)?,
        };
        let pointer = self.pointer_to(root, ty, None);
        self.store(&pointer, &value)
    }

    /// Declares the local variables of the current function and initializes them.
    fn add_locals(&mut self, indexed: &Indexed) -> Result<()> {
        let function = self.frame.function;
        for (handle, variable) in function.local_variables.iter() {
            self.at(function.local_variables.get_span(handle));
            let root = self.declare(variable.ty, indexed.locals.contains(&handle))?;
            let init = match variable.init {
                Some(init) => Some(self.value(init)?),
                None => None,
            };
            self.initialize(&root, variable.ty, init)?;
            self.frame.locals.insert(handle, root);
        }
        Ok(())
    }

    /// Computes the arguments of the entry point, which are built-in values.
    fn add_arguments(&mut self) -> Result<()> {
        for argument in &self.frame.function.arguments {
            let mut values = Values::new();
            match (&argument.binding, &self.module.types[argument.ty].inner) {
                (Some(binding), _) => self.add_built_in(binding, &mut values)?,
                (None, TypeInner::Struct { members, .. }) => {
                    for member in members {
                        match &member.binding {
                            Some(binding) => self.add_built_in(binding, &mut values)?,
                            None => return Err(self.unsupported("an argument without a built-in value")),
                        }
                    }
                }
                _ => return Err(self.unsupported("an argument without a built-in value")),
            }
            self.frame.arguments.push(Operand::Value(values));
        }
        Ok(())
    }

    fn add_built_in(&mut self, binding: &naga::Binding, values: &mut Values) -> Result<()> {
        let Some(built_in) = binding.to_built_in() else {
            return Err(self.unsupported("an argument with a location"));
        };
        let size = self.workgroup_size;
        match built_in {
            BuiltIn::GlobalInvocationId => {
                for (axis, size) in size.into_iter().enumerate() {
                    let name = if size == 1 { "workgroup_id" } else { "global_id" };
                    values.push(self.axis(name, axis)?);
                }
            }
            BuiltIn::LocalInvocationId => {
                for axis in 0..3 {
                    values.push(self.local_id(axis)?);
                }
            }
            BuiltIn::LocalInvocationIndex => {
                let value = self.call_for("__builtin_npu_local_index", &[], types::I32)?;
                let items: u32 = size.iter().fold(1, |all, one| all.saturating_mul(*one));
                self.facts.know(value, items.saturating_sub(1));
                values.push(value);
            }
            BuiltIn::WorkGroupId => {
                for axis in 0..3 {
                    values.push(self.axis("workgroup_id", axis)?);
                }
            }
            BuiltIn::NumWorkGroups => {
                for axis in 0..3 {
                    values.push(self.axis("workgroup_count", axis)?);
                }
            }
            BuiltIn::WorkGroupSize => {
                for axis in size {
                    values.push(self.word(axis));
                }
            }
            BuiltIn::SubgroupSize => values.push(self.word(self.lanes)),
            BuiltIn::SubgroupInvocationId => values.push(self.lane()?),
            BuiltIn::SubgroupId => values.push(self.call_for("__builtin_npu_subgroup_id", &[], types::I32)?),
            BuiltIn::NumSubgroups => {
                values.push(self.call_for("__builtin_npu_subgroup_count", &[], types::I32)?);
            }
            other => return Err(self.unsupported(format!("the built-in value {other:?}"))),
        }
        Ok(())
    }

    fn axis(&mut self, name: &str, axis: usize) -> Result<Value> {
        let letter = ["x", "y", "z"][axis];
        self.call_for(&format!("__builtin_npu_{name}_{letter}"), &[], types::I32)
    }

    fn local_id(&mut self, axis: usize) -> Result<Value> {
        match self.workgroup_size[axis] {
            1 => Ok(self.word(0)),
            size => {
                let value = self.axis("local_id", axis)?;
                self.facts.know(value, size.saturating_sub(1));
                Ok(value)
            }
        }
    }
}
