//! The implementation of Cranelift's `Module` for [`NpuObjectModule`].

use crate::builder::{Builder, Contents, DEFAULT_ALIGN, Purpose, Reference};
use crate::debug::{self, DebugFunction, DebugInfo};
use crate::exceptions::Exceptions;
use crate::frames::Frames;
use cranelift_codegen::Context;
use cranelift_codegen::binemit::Reloc as AbsoluteReloc;
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::ir::function::FunctionParameters;
use cranelift_codegen::ir::{ExternalName, Function, Signature, UserFuncName};
use cranelift_codegen::isa::{CallConv, OwnedTargetIsa, TargetFrontendConfig, TargetIsa};
use cranelift_module::{
    DataDescription, DataId, FuncId, Init, Linkage, Module, ModuleDeclarations, ModuleError, ModuleReloc,
    ModuleRelocTarget, ModuleResult,
};
use cranelift_naplespu::code::RelocTarget;
use cranelift_naplespu::{CompileError, Compiler, Isa, intrinsics};
use npu_link::elf::{ElfError, write_object};
use npu_mc::asm::{Binding, Object, SectionId, SymbolId, SymbolKind};
use npu_mc::reloc::Reloc;
use npu_mc::reloc::elf::SCRATCHPAD_SECTION;
use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;
use target_lexicon::{Architecture, Triple};

/// The calling convention of functions with the default convention.
const DEFAULT_CONVENTION: CallConv = CallConv::SystemV;

/// A module that collects functions and data for an object file.
///
/// All functions are in `.text` by default. With [`NpuObjectModule::set_function_sections`] each
/// function has its own section, so that a linker can drop unused functions.
pub struct NpuObjectModule {
    isa: Arc<Isa>,
    stand_in: OwnedTargetIsa,
    compiler: Compiler,
    declarations: ModuleDeclarations,
    builder: Builder,
    defined: HashSet<String>,
    function_sections: bool,
    frames: Frames,
    exceptions: Exceptions,
    debug: Option<DebugInfo>,
}

/// The reason why a definition does not fit into an object. Methods of Cranelift's trait wrap it in
/// `ModuleError::Backend`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ObjectError {
    /// `cranelift-codegen` lacks the target that the trait `Module` returns.
    NoStandIn(String),
    /// A data object without contents.
    NoContents(String),
    /// An alignment that is not a power of two, or too large.
    Alignment {
        /// The data object.
        name: String,
        /// The requested alignment, in bytes.
        align: u64,
    },
    /// A kind of relocation without an ELF relocation of this machine.
    Relocation {
        /// The function or data object.
        name: String,
        /// Cranelift's name of the kind.
        kind: String,
    },
    /// A section exceeds the size limit of the file format.
    TooLarge(String),
    /// The unwind tables cannot be written.
    Unwind(String),
    /// The debug information cannot be written.
    Debug(String),
    /// The file cannot be written.
    Elf(ElfError),
}

impl std::error::Error for ObjectError {}

impl fmt::Display for ObjectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoStandIn(why) => write!(f, "no `pulley32` to stand in for this target: {why}"),
            Self::NoContents(name) => write!(f, "%{name} has no contents"),
            Self::Alignment { name, align } => write!(f, "%{name}: {align} is not a valid alignment"),
            Self::Relocation { name, kind } => write!(f, "%{name}: relocation {kind} is not supported on naplespu"),
            Self::TooLarge(name) => write!(f, "%{name}: its section becomes too large"),
            Self::Unwind(why) => write!(f, "the unwind tables cannot be written: {why}"),
            Self::Debug(why) => write!(f, "the debug information cannot be written: {why}"),
            Self::Elf(error) => error.fmt(f),
        }
    }
}

impl From<ObjectError> for ModuleError {
    fn from(error: ObjectError) -> Self {
        Self::Backend(error.into())
    }
}

/// The largest alignment of data, in bytes.
const MAX_ALIGN: u64 = npu_link::MAX_ALIGN;

impl NpuObjectModule {
    /// Creates an empty module for the target.
    ///
    /// # Errors
    ///
    /// [`ObjectError::NoStandIn`].
    pub fn new(isa: Arc<Isa>) -> Result<Self, ObjectError> {
        let triple = Triple {
            architecture: Architecture::Pulley32,
            ..Triple::unknown()
        };
        let no_stand_in = |why: String| ObjectError::NoStandIn(why);
        let builder = cranelift_codegen::isa::lookup(triple).map_err(|error| no_stand_in(error.to_string()))?;
        let stand_in = builder
            .finish(isa.flags().clone())
            .map_err(|error| no_stand_in(error.to_string()))?;
        Ok(Self {
            isa,
            stand_in,
            compiler: Compiler::new(),
            declarations: ModuleDeclarations::default(),
            builder: Builder::default(),
            defined: HashSet::new(),
            function_sections: false,
            frames: Frames::default(),
            exceptions: Exceptions::default(),
            debug: None,
        })
    }

    /// Sets whether every later function has its own section.
    pub fn set_function_sections(&mut self, separate: bool) {
        self.function_sections = separate;
    }

    /// Sets the source file of later functions, which adds DWARF sections to the object. Source
    /// locations of instructions ([`Function::set_srcloc`]) are lines of that file. Value labels
    /// (`dfg.collect_debug_info`) are variables, named `v` and the number of the label. File names
    /// are relative to the debugger's source directory. An object has one source file: setting
    /// another one discards the debug information of earlier functions.
    pub fn set_source_file(&mut self, name: &str) {
        self.debug = Some(DebugInfo::new(name));
    }

    /// Returns the target that compiles.
    pub fn npu_isa(&self) -> &Arc<Isa> {
        &self.isa
    }

    /// Returns the object with all definitions.
    ///
    /// # Errors
    ///
    /// [`ObjectError::Unwind`] and [`ObjectError::Debug`] if tables become too large.
    pub fn finish(mut self) -> Result<Object, ObjectError> {
        let unwind = |error: gimli::write::Error| ObjectError::Unwind(error.to_string());
        self.frames.write(&mut self.builder).map_err(unwind)?;
        self.exceptions.write(&mut self.builder);
        if let Some(debug) = self.debug {
            debug
                .write(&mut self.builder)
                .map_err(|error| ObjectError::Debug(error.to_string()))?;
        }
        Ok(self.builder.finish())
    }

    /// Returns the object as a relocatable ELF file.
    ///
    /// # Errors
    ///
    /// [`ObjectError::Elf`], and those of [`NpuObjectModule::finish`].
    pub fn emit(self) -> Result<Vec<u8>, ObjectError> {
        write_object(&self.finish()?).map_err(ObjectError::Elf)
    }

    /// Compiles a function of a CLIF file. It is exported under its name, and all names in it are
    /// symbols.
    ///
    /// # Errors
    ///
    /// The compilation failed, or a function with this name exists.
    pub fn define_clif(&mut self, func: &Function) -> Result<(), CompileOrModule> {
        self.define_clif_at(func, None)
    }

    /// Compiles a function like [`NpuObjectModule::define_clif`], with its line in the [source
    /// file](NpuObjectModule::set_source_file).
    ///
    /// # Errors
    ///
    /// See [`NpuObjectModule::define_clif`].
    pub fn define_clif_at(&mut self, func: &Function, line: Option<u32>) -> Result<(), CompileOrModule> {
        let name = function_name(&func.name);
        let id = self
            .declare_function(&name, Linkage::Export, &func.signature)
            .map_err(CompileOrModule::module)?;
        let mut ctx = Context::for_function(func.clone());
        self.compile(id, &mut ctx, &mut ControlPlane::default(), false, line)
    }

    fn symbol_of_function(&mut self, id: FuncId) -> SymbolId {
        let declaration = self.declarations.get_function_decl(id);
        let name = declaration.linkage_name(id).into_owned();
        let binding = binding(declaration.linkage);
        let symbol = self.builder.symbol(&name);
        self.builder.bind(symbol, binding);
        symbol
    }

    fn symbol_of_data(&mut self, id: DataId) -> SymbolId {
        let declaration = self.declarations.get_data_decl(id);
        let name = declaration.linkage_name(id).into_owned();
        let binding = binding(declaration.linkage);
        let symbol = self.builder.symbol(&name);
        self.builder.bind(symbol, binding);
        symbol
    }

    /// Returns the symbol of a user name in a module: its function or data object, or the name
    /// itself.
    fn symbol_of_ids(&mut self, namespace: u32, index: u32) -> SymbolId {
        let functions = self.declarations.get_functions().count();
        let data = self.declarations.get_data_objects().count();
        match namespace {
            0 if (index as usize) < functions => self.symbol_of_function(FuncId::from_u32(index)),
            1 if (index as usize) < data => self.symbol_of_data(DataId::from_u32(index)),
            _ => self.builder.symbol(&format!("u{namespace}:{index}")),
        }
    }

    fn symbol_of_code(
        &mut self,
        own: SymbolId,
        target: &RelocTarget,
        params: &FunctionParameters,
        ids: bool,
    ) -> SymbolId {
        match target {
            RelocTarget::Function => own,
            RelocTarget::Runtime(name) => self.builder.symbol(name),
            RelocTarget::Name(ExternalName::User(key)) => match params.user_named_funcs().get(*key) {
                Some(name) if ids => self.symbol_of_ids(name.namespace, name.index),
                Some(name) => self.builder.symbol(&name.to_string()),
                None => self.builder.symbol(&key.to_string()),
            },
            RelocTarget::Name(ExternalName::LibCall(call)) => {
                self.builder.symbol(&cranelift_module::default_libcall_names()(*call))
            }
            RelocTarget::Name(name) => {
                let text = name.display(None).to_string();
                self.builder.symbol(text.strip_prefix('%').unwrap_or(&text))
            }
        }
    }

    fn compile(
        &mut self,
        func: FuncId,
        ctx: &mut Context,
        ctrl: &mut ControlPlane,
        ids: bool,
        line: Option<u32>,
    ) -> Result<(), CompileOrModule> {
        let (name, linkage) = {
            let declaration = self.declarations.get_function_decl(func);
            (declaration.linkage_name(func).into_owned(), declaration.linkage)
        };
        self.check(&name, linkage).map_err(CompileOrModule::Module)?;
        if ids {
            let declarations = &self.declarations;
            let count = declarations.get_functions().count();
            intrinsics::name_calls(&mut ctx.func, |namespace, index| {
                let is_function = namespace == 0 && (index as usize) < count;
                let id = is_function.then(|| FuncId::from_u32(index))?;
                declarations.get_function_decl(id).name.clone()
            });
        }
        // The labels of the original function: the compilation changes it, unless the code is from
        // a cache.
        let labels = self.debug.is_some().then(|| debug::labels(&ctx.func));
        let code = self
            .compiler
            .compile(&self.isa, ctx, ctrl)
            .map_err(CompileOrModule::Compile)?;
        let own = self.symbol_of_function(func);
        let references = code
            .relocs
            .iter()
            .map(|reloc| Reference {
                offset: reloc.offset,
                kind: reloc.kind,
                symbol: self.symbol_of_code(own, &reloc.target, &ctx.func.params, ids),
                addend: reloc.addend,
            })
            .collect();
        let place = self.define_code(own, &name, &code.bytes, DEFAULT_ALIGN, references);
        let (section, offset) = place.map_err(|error| CompileOrModule::module(error.into()))?;
        let text = self.text_section(&name);
        self.exceptions.add(&mut self.builder, (section, offset), &text, &code);
        if self.isa.flags().unwind_info() {
            let rows = code.unwind_rows().map_err(CompileOrModule::Compile)?;
            self.frames.add(section, offset, code.pool_start, &rows);
        }
        if let (Some(debug), Some(labels)) = (&mut self.debug, &labels) {
            debug.add(&DebugFunction {
                name: &name,
                external: linkage != Linkage::Local,
                line,
                place: (section, offset),
                code: &code,
                labels,
            });
        }
        Ok(())
    }

    /// Returns the name of a function's section.
    fn text_section(&self, name: &str) -> String {
        match self.function_sections {
            true => format!(".text.{name}"),
            false => ".text".to_owned(),
        }
    }

    /// Adds code; returns its section and its offset there.
    fn define_code(
        &mut self,
        own: SymbolId,
        name: &str,
        bytes: &[u8],
        align: u32,
        references: Vec<Reference>,
    ) -> Result<(SectionId, u32), ObjectError> {
        let section = self.builder.section(&self.text_section(name), Purpose::Code);
        let contents = Contents {
            bytes,
            size: u32::try_from(bytes.len()).map_err(|_| ObjectError::TooLarge(name.to_owned()))?,
            align,
            references,
        };
        let defined = self.builder.define(own, SymbolKind::Function, section, contents);
        let offset = defined.ok_or_else(|| ObjectError::TooLarge(name.to_owned()))?;
        self.defined.insert(name.to_owned());
        Ok((section, offset))
    }

    /// Checks that the name can be defined.
    fn check(&self, name: &str, linkage: Linkage) -> Result<(), Box<ModuleError>> {
        if !linkage.is_definable() {
            return Err(ModuleError::InvalidImportDefinition(name.to_owned()).into());
        }
        if self.defined.contains(name) {
            return Err(ModuleError::DuplicateDefinition(name.to_owned()).into());
        }
        Ok(())
    }

    fn references(
        &mut self,
        name: &str,
        relocs: impl Iterator<Item = ModuleReloc>,
    ) -> Result<Vec<Reference>, ObjectError> {
        relocs
            .map(|reloc| {
                if reloc.kind != AbsoluteReloc::Abs4 {
                    return Err(ObjectError::Relocation {
                        name: name.to_owned(),
                        kind: format!("{:?}", reloc.kind),
                    });
                }
                let (symbol, offset) = match reloc.name {
                    ModuleRelocTarget::User { namespace, index } => (self.symbol_of_ids(namespace, index), 0),
                    ModuleRelocTarget::FunctionOffset(func, offset) => (self.symbol_of_function(func), offset),
                    ModuleRelocTarget::LibCall(call) => {
                        (self.builder.symbol(&cranelift_module::default_libcall_names()(call)), 0)
                    }
                    ModuleRelocTarget::KnownSymbol(symbol) => (self.builder.symbol(&symbol.to_string()), 0),
                };
                Ok(Reference {
                    offset: reloc.offset,
                    kind: Reloc::Abs32,
                    symbol,
                    addend: reloc.addend.wrapping_add(offset.into()),
                })
            })
            .collect()
    }
}

/// The reason why a function of a CLIF file is not in the object.
#[derive(Debug)]
pub enum CompileOrModule {
    /// The function did not compile.
    Compile(CompileError),
    /// The module rejected the function.
    Module(Box<ModuleError>),
}

impl CompileOrModule {
    fn module(error: ModuleError) -> Self {
        Self::Module(Box::new(error))
    }
}

impl From<CompileOrModule> for ModuleError {
    fn from(error: CompileOrModule) -> Self {
        match error {
            CompileOrModule::Module(error) => *error,
            CompileOrModule::Compile(error @ CompileError::Verifier(_)) => Self::Compilation(error.into()),
            CompileOrModule::Compile(error) if error.is_refusal() => Self::Compilation(error.into()),
            CompileOrModule::Compile(error) => Self::Backend(error.into()),
        }
    }
}

/// Returns the name of the function's symbol: without the `%`.
fn function_name(name: &UserFuncName) -> String {
    let text = name.to_string();
    text.strip_prefix('%').map_or(text.clone(), str::to_owned)
}

/// Returns the binding of a symbol. Hidden symbols are global: all objects are linked into one
/// program.
fn binding(linkage: Linkage) -> Binding {
    match linkage {
        Linkage::Local => Binding::Local,
        Linkage::Preemptible => Binding::Weak,
        Linkage::Import | Linkage::Hidden | Linkage::Export => Binding::Global,
    }
}

impl Module for NpuObjectModule {
    /// Returns Cranelift's `pulley32`, **not** the target that compiles; see `NpuModule` of
    /// `naplespu-jit`. [`NpuObjectModule::npu_isa`] returns the real target.
    fn isa(&self) -> &dyn TargetIsa {
        &*self.stand_in
    }

    fn declarations(&self) -> &ModuleDeclarations {
        &self.declarations
    }

    fn target_config(&self) -> TargetFrontendConfig {
        self.isa.frontend_config()
    }

    fn make_context(&self) -> Context {
        let mut ctx = Context::new();
        ctx.func.signature.call_conv = DEFAULT_CONVENTION;
        ctx
    }

    fn clear_context(&self, ctx: &mut Context) {
        ctx.clear();
        ctx.func.signature.call_conv = DEFAULT_CONVENTION;
    }

    fn make_signature(&self) -> Signature {
        Signature::new(DEFAULT_CONVENTION)
    }

    fn clear_signature(&self, sig: &mut Signature) {
        sig.clear(DEFAULT_CONVENTION);
    }

    fn declare_function(&mut self, name: &str, linkage: Linkage, signature: &Signature) -> ModuleResult<FuncId> {
        Ok(self.declarations.declare_function(name, linkage, signature)?.0)
    }

    fn declare_anonymous_function(&mut self, signature: &Signature) -> ModuleResult<FuncId> {
        self.declarations.declare_anonymous_function(signature)
    }

    fn declare_data(&mut self, name: &str, linkage: Linkage, writable: bool, tls: bool) -> ModuleResult<DataId> {
        Ok(self.declarations.declare_data(name, linkage, writable, tls)?.0)
    }

    fn declare_anonymous_data(&mut self, writable: bool, tls: bool) -> ModuleResult<DataId> {
        self.declarations.declare_anonymous_data(writable, tls)
    }

    fn define_function_with_control_plane(
        &mut self,
        func: FuncId,
        ctx: &mut Context,
        ctrl: &mut ControlPlane,
    ) -> ModuleResult<()> {
        Ok(self.compile(func, ctx, ctrl, true, None)?)
    }

    /// Defines machine code without changes. `relocs` may contain [`AbsoluteReloc::Abs4`], the
    /// whole address in a word.
    fn define_function_bytes(
        &mut self,
        func: FuncId,
        alignment: u64,
        bytes: &[u8],
        relocs: &[ModuleReloc],
    ) -> ModuleResult<()> {
        let declaration = self.declarations.get_function_decl(func);
        let (name, linkage) = (declaration.linkage_name(func).into_owned(), declaration.linkage);
        self.check(&name, linkage).map_err(|error| *error)?;
        let align = alignment_of(&name, Some(alignment))?;
        let own = self.symbol_of_function(func);
        let references = self.references(&name, relocs.iter().cloned())?;
        self.define_code(own, &name, bytes, align, references)?;
        Ok(())
    }

    /// Adds a data object to `.data`, `.rodata`, `.bss` or `.tdata`, or to its `custom_section`.
    /// The start-up code copies the section `scratchpad` to the scratchpad.
    fn define_data(&mut self, data: DataId, description: &DataDescription) -> ModuleResult<()> {
        let declaration = self.declarations.get_data_decl(data);
        let (name, linkage) = (declaration.linkage_name(data).into_owned(), declaration.linkage);
        let (writable, tls) = (declaration.writable, declaration.tls);
        self.check(&name, linkage).map_err(|error| *error)?;
        let (bytes, size) = match &description.init {
            Init::Uninitialized => return Err(ObjectError::NoContents(name).into()),
            Init::Zeros { size } => (&[][..], *size),
            Init::Bytes { contents } => (&contents[..], contents.len()),
        };
        let references = self.references(&name, description.all_relocs(AbsoluteReloc::Abs4))?;
        let zeros = bytes.is_empty() && references.is_empty();
        let section = match description.custom_section.as_deref() {
            Some(SCRATCHPAD_SECTION) => self.builder.section(SCRATCHPAD_SECTION, Purpose::Data),
            Some(own) if writable => self.builder.section(own, Purpose::Data),
            Some(own) => self.builder.section(own, Purpose::ReadOnly),
            None if tls => self.builder.section(".tdata", Purpose::ThreadLocal),
            None if zeros && writable => self.builder.section(".bss", Purpose::Zeros),
            None if writable => self.builder.section(".data", Purpose::Data),
            None => self.builder.section(".rodata", Purpose::ReadOnly),
        };
        let own = self.symbol_of_data(data);
        let contents = Contents {
            bytes,
            size: u32::try_from(size).map_err(|_| ObjectError::TooLarge(name.clone()))?,
            align: alignment_of(&name, description.align)?,
            references,
        };
        let defined = self.builder.define(own, SymbolKind::Object, section, contents);
        defined.ok_or_else(|| ObjectError::TooLarge(name.clone()))?;
        self.defined.insert(name);
        Ok(())
    }
}

/// Returns a valid alignment of a section.
fn alignment_of(name: &str, align: Option<u64>) -> Result<u32, ObjectError> {
    let align = align.unwrap_or(DEFAULT_ALIGN.into());
    let wrong = || ObjectError::Alignment {
        name: name.to_owned(),
        align,
    };
    if !align.is_power_of_two() || align > MAX_ALIGN {
        return Err(wrong());
    }
    u32::try_from(align).map_err(|_| wrong())
}
