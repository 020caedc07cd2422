//! The implementation of Cranelift's `Module` for [`NpuObjectModule`].

use crate::builder::{Builder, Contents, DEFAULT_ALIGN, Purpose, Reference};
use crate::debug::{self, DebugFunction, DebugInfo};
use crate::exceptions::Exceptions;
use crate::frames::Frames;
use crate::front::{self, Front, Names, Target, function_name};
use crate::front_methods;
use cranelift_codegen::Context;
use cranelift_codegen::binemit::Reloc as AbsoluteReloc;
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::ir::{Function, Signature};
use cranelift_module::{
    DataDescription, DataId, FuncId, Init, Linkage, Module, ModuleError, ModuleReloc, ModuleResult,
};
use cranelift_naplespu::{CompileError, Isa};
use npu_link::elf::{ElfError, write_object};
use npu_mc::asm::{Binding, Object, SectionId, SymbolId, SymbolKind};
use npu_mc::reloc::elf::SCRATCHPAD_SECTION;
use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

/// A module that collects functions and data for an object file.
///
/// All functions are in `.text` by default. With [`NpuObjectModule::set_function_sections`] each
/// function has its own section, so that a linker can drop unused functions.
pub struct NpuObjectModule {
    front: Front,
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
        Ok(Self {
            front: Front::new(isa).map_err(ObjectError::NoStandIn)?,
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
        &self.front.isa
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
        self.compile(id, &mut ctx, &mut ControlPlane::default(), Names::Text, line)
    }

    /// Returns the symbol of a declaration.
    fn symbol_of_declaration(&mut self, (name, linkage): (String, Linkage)) -> SymbolId {
        let symbol = self.builder.symbol(&name);
        self.builder.bind(symbol, binding(linkage));
        symbol
    }

    /// Returns the symbol of a target; an undeclared one is a symbol with the text of its number.
    fn symbol_of(&mut self, target: &Target) -> SymbolId {
        let (declared, undeclared) = match target {
            Target::Func(id) => (self.front.function(*id), format!("u0:{}", id.as_u32())),
            Target::Data(id) => (self.front.data(*id), format!("u1:{}", id.as_u32())),
            Target::Name(name) | Target::Runtime(name) => return self.builder.symbol(name),
        };
        match declared {
            Ok(declared) => self.symbol_of_declaration(declared),
            Err(_) => self.builder.symbol(&undeclared),
        }
    }

    fn references(&mut self, references: Vec<npu_link::Reference<Target>>) -> Vec<Reference> {
        let convert = |reference: npu_link::Reference<Target>| Reference {
            offset: reference.offset,
            kind: reference.kind,
            symbol: self.symbol_of(&reference.target),
            addend: reference.addend,
        };
        references.into_iter().map(convert).collect()
    }

    /// Returns the references of a definition by the caller of the module.
    fn references_of(
        &mut self,
        name: &str,
        relocs: impl Iterator<Item = ModuleReloc>,
    ) -> Result<Vec<Reference>, ObjectError> {
        let references = front::references(relocs).map_err(|kind| ObjectError::Relocation {
            name: name.to_owned(),
            kind,
        })?;
        Ok(self.references(references))
    }

    fn compile(
        &mut self,
        func: FuncId,
        ctx: &mut Context,
        ctrl: &mut ControlPlane,
        names: Names,
        line: Option<u32>,
    ) -> Result<(), CompileOrModule> {
        let declared = self.front.function(func).map_err(CompileOrModule::module)?;
        let (name, linkage) = declared.clone();
        self.check(&name, linkage).map_err(CompileOrModule::module)?;
        if names == Names::Ids {
            self.front.name_intrinsics(&mut ctx.func);
        }
        // The labels of the original function: the compilation changes it, unless the code is from
        // a cache.
        let labels = self.debug.is_some().then(|| debug::labels(&ctx.func));
        let code = self.front.compiler.compile(&self.front.isa, ctx, ctrl);
        let code = code.map_err(CompileOrModule::Compile)?;
        let own = self.symbol_of_declaration(declared);
        let reference = |reloc: &cranelift_naplespu::code::Reloc| npu_link::Reference {
            offset: reloc.offset,
            kind: reloc.kind,
            target: Target::of_code(&reloc.target, &Target::Func(func), &ctx.func.params, names),
            addend: reloc.addend,
        };
        let references = self.references(code.relocs.iter().map(reference).collect());
        let place = self.define_code(own, &name, &code.bytes, DEFAULT_ALIGN, references);
        let (section, offset) = place.map_err(|error| CompileOrModule::module(error.into()))?;
        let text = self.text_section(&name);
        self.exceptions.add(&mut self.builder, (section, offset), &text, &code);
        if self.front.isa.flags().unwind_info() {
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
    #[expect(clippy::result_large_err, reason = "the error of Cranelift's trait `Module`")]
    fn check(&self, name: &str, linkage: Linkage) -> ModuleResult<()> {
        front::check_definable(name, linkage, self.defined.contains(name))
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
    front_methods!(front);

    fn declare_function(&mut self, name: &str, linkage: Linkage, signature: &Signature) -> ModuleResult<FuncId> {
        self.front.declare_function(Some(name), linkage, signature)
    }

    fn declare_anonymous_function(&mut self, signature: &Signature) -> ModuleResult<FuncId> {
        self.front.declare_function(None, Linkage::Local, signature)
    }

    fn declare_data(&mut self, name: &str, linkage: Linkage, writable: bool, tls: bool) -> ModuleResult<DataId> {
        self.front.declare_data(Some(name), linkage, writable, tls)
    }

    fn declare_anonymous_data(&mut self, writable: bool, tls: bool) -> ModuleResult<DataId> {
        self.front.declare_data(None, Linkage::Local, writable, tls)
    }

    fn define_function_with_control_plane(
        &mut self,
        func: FuncId,
        ctx: &mut Context,
        ctrl: &mut ControlPlane,
    ) -> ModuleResult<()> {
        Ok(self.compile(func, ctx, ctrl, Names::Ids, None)?)
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
        let (name, linkage) = self.front.function(func)?;
        self.check(&name, linkage)?;
        let align = alignment_of(&name, Some(alignment))?;
        let own = self.symbol_of_declaration((name.clone(), linkage));
        let references = self.references_of(&name, relocs.iter().cloned())?;
        self.define_code(own, &name, bytes, align, references)?;
        Ok(())
    }

    /// Adds a data object to `.data`, `.rodata`, `.bss` or `.tdata`, or to its `custom_section`.
    /// The start-up code copies the section `scratchpad` to the scratchpad.
    fn define_data(&mut self, data: DataId, description: &DataDescription) -> ModuleResult<()> {
        let (name, linkage) = self.front.data(data)?;
        let declaration = self.declarations().get_data_decl(data);
        let (writable, tls) = (declaration.writable, declaration.tls);
        self.check(&name, linkage)?;
        let (bytes, size) = match &description.init {
            Init::Uninitialized => return Err(ObjectError::NoContents(name).into()),
            Init::Zeros { size } => (&[][..], *size),
            Init::Bytes { contents } => (&contents[..], contents.len()),
        };
        let references = self.references_of(&name, description.all_relocs(AbsoluteReloc::Abs4))?;
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
        let own = self.symbol_of_declaration((name.clone(), linkage));
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
