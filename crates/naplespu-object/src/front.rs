//! The part of a module that does not depend on where its code is stored: target, declarations, and
//! the targets of references. [`NpuObjectModule`](crate::NpuObjectModule) and `NpuModule` of
//! `naplespu-jit` share it.

#![expect(clippy::result_large_err, reason = "the error of Cranelift's trait `Module`")]

use cranelift_codegen::binemit::Reloc as ModuleRelocKind;
use cranelift_codegen::ir::function::FunctionParameters;
use cranelift_codegen::ir::{ExternalName, Function, LibCall, Signature, UserFuncName};
use cranelift_codegen::isa::{CallConv, OwnedTargetIsa, TargetIsa};
use cranelift_module::{
    DataId, FuncId, Linkage, ModuleDeclarations, ModuleError, ModuleReloc, ModuleRelocTarget, ModuleResult,
};
use cranelift_naplespu::code::RelocTarget;
use cranelift_naplespu::{Compiler, Isa, intrinsics};
use npu_link::Reference;
use npu_mc::reloc::Reloc;
use std::sync::Arc;
use target_lexicon::{Architecture, Triple};

/// The calling convention of functions with the default convention.
pub const DEFAULT_CONVENTION: CallConv = CallConv::SystemV;

/// The target of a module and its declarations.
pub struct Front {
    /// The target that compiles.
    pub isa: Arc<Isa>,
    /// The compiler, kept to reuse its memory.
    pub compiler: Compiler,
    declarations: ModuleDeclarations,
    stand_in: OwnedTargetIsa,
    functions: u32,
    data: u32,
}

impl Front {
    /// Creates the front of an empty module.
    ///
    /// # Errors
    ///
    /// `cranelift-codegen` lacks its target `pulley32`.
    pub fn new(isa: Arc<Isa>) -> Result<Self, String> {
        let triple = Triple {
            architecture: Architecture::Pulley32,
            ..Triple::unknown()
        };
        let builder = cranelift_codegen::isa::lookup(triple).map_err(|error| error.to_string())?;
        let stand_in = builder.finish(isa.flags().clone());
        Ok(Self {
            stand_in: stand_in.map_err(|error| error.to_string())?,
            isa,
            compiler: Compiler::new(),
            declarations: ModuleDeclarations::default(),
            functions: 0,
            data: 0,
        })
    }

    /// Returns Cranelift's `pulley32`, **not** the target that compiles. No type outside
    /// Cranelift's tree can be a [`TargetIsa`], and this published target has the same pointer
    /// width and byte order. It has the shared flags of the real target.
    pub fn stand_in(&self) -> &dyn TargetIsa {
        &*self.stand_in
    }

    /// Returns the declarations.
    pub fn declarations(&self) -> &ModuleDeclarations {
        &self.declarations
    }

    /// Declares a function; `None` is an anonymous one.
    ///
    /// # Errors
    ///
    /// See [`ModuleDeclarations::declare_function`].
    pub fn declare_function(
        &mut self,
        name: Option<&str>,
        linkage: Linkage,
        signature: &Signature,
    ) -> ModuleResult<FuncId> {
        let id = match name {
            Some(name) => self.declarations.declare_function(name, linkage, signature)?.0,
            None => self.declarations.declare_anonymous_function(signature)?,
        };
        self.functions = self.functions.max(id.as_u32() + 1);
        Ok(id)
    }

    /// Declares a data object; `None` is an anonymous one.
    ///
    /// # Errors
    ///
    /// See [`ModuleDeclarations::declare_data`].
    pub fn declare_data(
        &mut self,
        name: Option<&str>,
        linkage: Linkage,
        writable: bool,
        tls: bool,
    ) -> ModuleResult<DataId> {
        let id = match name {
            Some(name) => self.declarations.declare_data(name, linkage, writable, tls)?.0,
            None => self.declarations.declare_anonymous_data(writable, tls)?,
        };
        self.data = self.data.max(id.as_u32() + 1);
        Ok(id)
    }

    /// Returns the name and linkage of a function.
    ///
    /// # Errors
    ///
    /// The function is not declared.
    pub fn function(&self, id: FuncId) -> ModuleResult<(String, Linkage)> {
        if id.as_u32() >= self.functions {
            return Err(ModuleError::Undeclared(id.to_string()));
        }
        let declaration = self.declarations.get_function_decl(id);
        Ok((declaration.linkage_name(id).into_owned(), declaration.linkage))
    }

    /// Returns the name and linkage of a data object.
    ///
    /// # Errors
    ///
    /// The data object is not declared.
    pub fn data(&self, id: DataId) -> ModuleResult<(String, Linkage)> {
        if id.as_u32() >= self.data {
            return Err(ModuleError::Undeclared(id.to_string()));
        }
        let declaration = self.declarations.get_data_decl(id);
        Ok((declaration.linkage_name(id).into_owned(), declaration.linkage))
    }

    /// Renames references to intrinsics, which the compiler recognizes by name: calls of declared
    /// functions have only numbers.
    pub fn name_intrinsics(&self, func: &mut Function) {
        intrinsics::name_calls(func, |namespace, index| {
            let is_function = namespace == 0 && index < self.functions;
            let id = is_function.then(|| FuncId::from_u32(index))?;
            self.declarations.get_function_decl(id).name.clone()
        });
    }
}

/// Implements the methods of Cranelift's `Module` that a [`Front`] in this field provides.
#[macro_export]
macro_rules! front_methods {
    ($front:ident) => {
        /// Returns Cranelift's `pulley32`, **not** the target that compiles: no type outside
        /// Cranelift's tree can be a `TargetIsa`, and this published target has the same pointer
        /// width and byte order. The overridable methods of the trait (frontend configuration,
        /// signatures, contexts) use the real target's values.
        fn isa(&self) -> &dyn ::cranelift_codegen::isa::TargetIsa {
            self.$front.stand_in()
        }

        fn declarations(&self) -> &::cranelift_module::ModuleDeclarations {
            self.$front.declarations()
        }

        fn target_config(&self) -> ::cranelift_codegen::isa::TargetFrontendConfig {
            self.$front.isa.frontend_config()
        }

        fn make_context(&self) -> ::cranelift_codegen::Context {
            let mut ctx = ::cranelift_codegen::Context::new();
            ctx.func.signature.call_conv = $crate::front::DEFAULT_CONVENTION;
            ctx
        }

        fn clear_context(&self, ctx: &mut ::cranelift_codegen::Context) {
            ctx.clear();
            ctx.func.signature.call_conv = $crate::front::DEFAULT_CONVENTION;
        }

        fn make_signature(&self) -> ::cranelift_codegen::ir::Signature {
            ::cranelift_codegen::ir::Signature::new($crate::front::DEFAULT_CONVENTION)
        }

        fn clear_signature(&self, sig: &mut ::cranelift_codegen::ir::Signature) {
            sig.clear($crate::front::DEFAULT_CONVENTION);
        }
    };
}

/// Checks that a symbol can be defined.
///
/// # Errors
///
/// It is an import, or it is already defined.
pub fn check_definable(name: &str, linkage: Linkage, is_defined: bool) -> ModuleResult<()> {
    match (linkage.is_definable(), is_defined) {
        (false, _) => Err(ModuleError::InvalidImportDefinition(name.to_owned())),
        (true, true) => Err(ModuleError::DuplicateDefinition(name.to_owned())),
        (true, false) => Ok(()),
    }
}

/// Returns the name by which a function of a CLIF file is called: without the `%`.
pub fn function_name(name: &UserFuncName) -> String {
    bare(name.to_string())
}

fn bare(name: String) -> String {
    name.strip_prefix('%').map_or(name.clone(), str::to_owned)
}

/// The target of a reference.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Target {
    /// A function of the module.
    Func(FuncId),
    /// A data object of the module.
    Data(DataId),
    /// A symbol.
    Name(String),
    /// A routine of the runtime that the compiler calls, independent of the program's names.
    Runtime(String),
}

/// The interpretation of the names in a function's code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Names {
    /// `u0:N` is the function with that number, `u1:N` the data object.
    Ids,
    /// `u0:N` is a name like any other.
    Text,
    /// The code is part of the runtime: all names are routines of the runtime.
    Runtime,
}

impl Target {
    /// Returns the target of a relocation of compiled code.
    pub fn of_code(target: &RelocTarget, own: &Self, params: &FunctionParameters, names: Names) -> Self {
        match target {
            RelocTarget::Function => own.clone(),
            RelocTarget::Runtime(name) => Self::Runtime((*name).to_owned()),
            RelocTarget::Name(ExternalName::User(key)) => match (params.user_named_funcs().get(*key), names) {
                (Some(name), Names::Ids) => Self::of_ids(name.namespace, name.index),
                (Some(name), Names::Text | Names::Runtime) => Self::Name(name.to_string()),
                (None, _) => Self::Name(key.to_string()),
            },
            RelocTarget::Name(ExternalName::LibCall(call)) => Self::Name(libcall_name(*call)),
            RelocTarget::Name(name) => match (bare(name.display(None).to_string()), names) {
                (text, Names::Runtime) => Self::Runtime(text),
                (text, Names::Ids | Names::Text) => Self::Name(text),
            },
        }
    }

    /// Returns the target of a relocation of a module, and the offset from it.
    fn of_module(target: &ModuleRelocTarget) -> (Self, u32) {
        match target {
            ModuleRelocTarget::User { namespace, index } => (Self::of_ids(*namespace, *index), 0),
            ModuleRelocTarget::FunctionOffset(func, offset) => (Self::Func(*func), *offset),
            ModuleRelocTarget::LibCall(call) => (Self::Name(libcall_name(*call)), 0),
            ModuleRelocTarget::KnownSymbol(symbol) => (Self::Name(symbol.to_string()), 0),
        }
    }

    fn of_ids(namespace: u32, index: u32) -> Self {
        match namespace {
            // The largest index is not a valid id.
            0 if index < u32::MAX => Self::Func(FuncId::from_u32(index)),
            1 if index < u32::MAX => Self::Data(DataId::from_u32(index)),
            _ => Self::Name(format!("u{namespace}:{index}")),
        }
    }
}

fn libcall_name(call: LibCall) -> String {
    cranelift_module::default_libcall_names()(call)
}

/// Converts the relocations of a module. Only [`ModuleRelocKind::Abs4`] exists on this machine, the
/// whole address in a word.
///
/// # Errors
///
/// Cranelift's name of another kind.
pub fn references(relocs: impl Iterator<Item = ModuleReloc>) -> Result<Vec<Reference<Target>>, String> {
    let convert = |reloc: ModuleReloc| {
        if reloc.kind != ModuleRelocKind::Abs4 {
            return Err(format!("{:?}", reloc.kind));
        }
        let (target, offset) = Target::of_module(&reloc.name);
        Ok(Reference {
            offset: reloc.offset,
            kind: Reloc::Abs32,
            target,
            addend: reloc.addend.wrapping_add(offset.into()),
        })
    };
    relocs.map(convert).collect()
}
