//! The implementation of Cranelift's `Module` for [`NpuModule`].

use super::error::{DefineError, LinkError, name_refusals};
use super::npu_module::{Definition, NpuModule};
use super::parallel;
use cranelift_codegen::Context;
use cranelift_codegen::binemit::Reloc;
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::ir::{Function, Signature};
use cranelift_module::{
    DataDescription, DataId, FuncId, Init, Linkage, Module, ModuleError, ModuleReloc, ModuleResult,
};
use cranelift_naplespu::{CompileError, CompiledCode};
use naplespu_object::front::{self, Names, Target};
use naplespu_object::front_methods;
use npu_link::{Contents, Purpose, Reference};
use npu_mc::reloc::elf::SCRATCHPAD_SECTION;

impl Module for NpuModule {
    front_methods!(front);

    fn declare_function(&mut self, name: &str, linkage: Linkage, signature: &Signature) -> ModuleResult<FuncId> {
        let id = self.front.declare_function(Some(name), linkage, signature)?;
        self.note_function(id);
        Ok(id)
    }

    fn declare_anonymous_function(&mut self, signature: &Signature) -> ModuleResult<FuncId> {
        let id = self.front.declare_function(None, Linkage::Local, signature)?;
        self.note_function(id);
        Ok(id)
    }

    fn declare_data(&mut self, name: &str, linkage: Linkage, writable: bool, tls: bool) -> ModuleResult<DataId> {
        let id = self.front.declare_data(Some(name), linkage, writable, tls)?;
        self.note_data(id);
        Ok(id)
    }

    fn declare_anonymous_data(&mut self, writable: bool, tls: bool) -> ModuleResult<DataId> {
        let id = self.front.declare_data(None, Linkage::Local, writable, tls)?;
        self.note_data(id);
        Ok(id)
    }

    fn define_function_with_control_plane(
        &mut self,
        func: FuncId,
        ctx: &mut Context,
        ctrl: &mut ControlPlane,
    ) -> ModuleResult<()> {
        Ok(self.compile(func, ctx, ctrl, Names::Ids)?)
    }

    /// Defines machine code without changes. `relocs` may contain [`Reloc::Abs4`], the whole
    /// address in a word.
    fn define_function_bytes(
        &mut self,
        func: FuncId,
        alignment: u64,
        bytes: &[u8],
        relocs: &[ModuleReloc],
    ) -> ModuleResult<()> {
        let name = self.check_function(func)?;
        let references = references(&name, relocs.iter().cloned())?;
        let index = self.place(Contents {
            name,
            purpose: Purpose::Code,
            align: Some(alignment),
            bytes,
            size: bytes.len() as u64,
            references,
        })?;
        self.set_function(func, Definition::Object(index));
        Ok(())
    }

    /// Defines a data object. The device has no memory protection, so read-only objects can be
    /// written; `used` has no effect without a file to link. An object with the `custom_section`
    /// `scratchpad` is in the scratchpad, and its address is a scratchpad address; other sections
    /// have no effect. A thread-local object is in the block of every thread of the device.
    fn define_data(&mut self, data: DataId, description: &DataDescription) -> ModuleResult<()> {
        let name = self.check_data(data)?;
        let (bytes, size) = match &description.init {
            Init::Uninitialized => return Err(LinkError::NoContents(name).into()),
            Init::Zeros { size } => (&[][..], *size as u64),
            Init::Bytes { contents } => (&contents[..], contents.len() as u64),
        };
        let in_scratchpad = description.custom_section.as_deref() == Some(SCRATCHPAD_SECTION);
        let purpose = match (self.front.declarations().get_data_decl(data).tls, in_scratchpad) {
            (true, true) => return Err(LinkError::ThreadLocal(name).into()),
            (true, false) => Purpose::ThreadLocal,
            (false, true) => Purpose::Scratchpad,
            (false, false) => Purpose::Data,
        };
        let relocs = description.all_relocs(Reloc::Abs4);
        let references = references(&name, relocs)?;
        let index = self.place(Contents {
            name,
            purpose,
            align: description.align,
            bytes,
            size,
            references,
        })?;
        if let Some(definition) = self.data.get_mut(data) {
            *definition = Definition::Object(index);
        }
        Ok(())
    }
}

/// Converts the relocations of a module to references.
fn references(name: &str, relocs: impl Iterator<Item = ModuleReloc>) -> Result<Vec<Reference<Target>>, LinkError> {
    front::references(relocs).map_err(|kind| LinkError::Relocation {
        name: name.to_owned(),
        kind,
    })
}

impl NpuModule {
    fn note_function(&mut self, id: FuncId) {
        if !self.functions.is_valid(id) {
            self.functions.push(Definition::None);
        }
        // A new declaration may add a linkage to a symbol that was only a name.
        self.changed();
    }

    fn note_data(&mut self, id: DataId) {
        if !self.data.is_valid(id) {
            self.data.push(Definition::None);
        }
        self.changed();
    }

    /// Returns the name of a function that can be defined.
    fn check_function(&self, func: FuncId) -> Result<String, DefineError> {
        let (name, linkage) = self.front.function(func)?;
        front::check_definable(&name, linkage, Self::object(self.functions.get(func)).is_some())?;
        Ok(name)
    }

    /// Returns the name of a data object that can be defined.
    fn check_data(&self, data: DataId) -> Result<String, DefineError> {
        let (name, linkage) = self.front.data(data)?;
        front::check_definable(&name, linkage, Self::object(self.data.get(data)).is_some())?;
        Ok(name)
    }

    pub(super) fn set_function(&mut self, func: FuncId, new: Definition) {
        if let Some(definition) = self.functions.get_mut(func) {
            *definition = new;
        }
    }

    /// Compiles the function in the context like [`Module::define_function_with_control_plane`],
    /// with the errors of this crate. The module records a failure and reports it to calls of the
    /// function; the function can still be defined later.
    ///
    /// # Errors
    ///
    /// See [`DefineError`].
    pub fn compile_function(
        &mut self,
        func: FuncId,
        ctx: &mut Context,
        ctrl: &mut ControlPlane,
    ) -> Result<(), DefineError> {
        self.compile(func, ctx, ctrl, Names::Ids)
    }

    pub(crate) fn compile(
        &mut self,
        func: FuncId,
        ctx: &mut Context,
        ctrl: &mut ControlPlane,
        names: Names,
    ) -> Result<(), DefineError> {
        let name = self.prepare(func, ctx, names)?;
        let code = self.front.compiler.compile(&self.front.isa, ctx, ctrl);
        self.define_code(func, name, &ctx.func, code, names)
    }

    /// Compiles functions on several threads and defines them one after the other. The module is
    /// the same as after [`NpuModule::compile_function`] for each of them. The calling thread
    /// compiles them if they are too small to share. The results are in the order of the functions.
    pub fn compile_functions(&mut self, functions: &mut [(FuncId, Context)]) -> Vec<Result<(), DefineError>> {
        let prepared: Vec<Result<_, DefineError>> = functions
            .iter_mut()
            .map(|(func, ctx)| Ok((*func, self.prepare(*func, ctx, Names::Ids)?, ctx)))
            .collect();
        let isa = &*self.front.isa;
        let compiled = parallel::map(
            prepared,
            |prepared| prepared.as_ref().map_or(0, |(_, _, ctx)| ctx.func.dfg.num_insts()),
            |worker, prepared| {
                prepared.map(|(func, name, ctx)| {
                    let code = worker.compiler.compile(isa, ctx, &mut ControlPlane::default());
                    (func, name, ctx, code)
                })
            },
        );
        let define = |compiled: Result<(FuncId, String, &mut Context, _), DefineError>| {
            let (func, name, ctx, code) = compiled?;
            // A function may occur twice in the list.
            self.check_function(func)?;
            self.define_code(func, name, &ctx.func, code, Names::Ids)
        };
        compiled.into_iter().map(define).collect()
    }

    /// Defines a function of a CLIF text that was compiled elsewhere for this module's target.
    pub(crate) fn define_compiled(
        &mut self,
        func: FuncId,
        text: &Function,
        code: Result<CompiledCode, CompileError>,
    ) -> Result<(), DefineError> {
        let name = self.check_function(func)?;
        self.define_code(func, name, text, code, Names::Text)
    }

    /// Prepares a function for compilation, checking that it can be defined; returns its name.
    fn prepare(&self, func: FuncId, ctx: &mut Context, names: Names) -> Result<String, DefineError> {
        self.check_function(func)?;
        self.prepare_anew(func, ctx, names)
    }

    /// Prepares a function for compilation, without checking that it can be defined.
    pub(super) fn prepare_anew(&self, func: FuncId, ctx: &mut Context, names: Names) -> Result<String, DefineError> {
        let (name, linkage) = self.front.function(func)?;
        front::check_definable(&name, linkage, false)?;
        let declared = &self.front.declarations().get_function_decl(func).signature;
        if *declared != ctx.func.signature {
            let body = ctx.func.signature.clone();
            return Err(ModuleError::IncompatibleSignature(name, declared.clone(), body).into());
        }
        if names == Names::Ids {
            self.front.name_intrinsics(&mut ctx.func);
        }
        Ok(name)
    }

    /// Defines a function with compiled code.
    pub(super) fn define_code(
        &mut self,
        func: FuncId,
        name: String,
        text: &Function,
        code: Result<CompiledCode, CompileError>,
        names: Names,
    ) -> Result<(), DefineError> {
        let code = match code {
            Ok(code) => code,
            Err(mut error) => {
                if names == Names::Ids {
                    name_refusals(&mut error, &name);
                }
                self.set_function(func, Definition::failed(&error));
                self.changed();
                return Err(error.into());
            }
        };
        let own = Target::Func(func);
        let reference = |reloc: &cranelift_naplespu::code::Reloc| Reference {
            offset: reloc.offset,
            kind: reloc.kind,
            target: Target::of_code(&reloc.target, &own, &text.params, names),
            addend: reloc.addend,
        };
        let references = code.relocs.iter().map(reference).collect();
        let index = self.place_code(name, code, references)?;
        self.set_function(func, Definition::Object(index));
        Ok(())
    }
}
