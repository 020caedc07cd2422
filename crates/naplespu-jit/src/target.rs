//! Targets of references.

use cranelift_codegen::ir::function::FunctionParameters;
use cranelift_codegen::ir::{ExternalName, LibCall};
use cranelift_module::{DataId, FuncId, ModuleRelocTarget};
use cranelift_naplespu::code::RelocTarget;

/// The target of a reference.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Target {
    Func(FuncId),
    Data(DataId),
    Name(String),
    /// A routine of the runtime that the compiler calls, independent of the program's names.
    Runtime(String),
}

/// The interpretation of the names in a function's code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Names {
    /// `u0:N` is the function with that number, `u1:N` the data object.
    Ids,
    /// `u0:N` is a name like any other.
    Text,
    /// The code is part of the runtime: all names are routines of the runtime.
    Runtime,
}

impl Target {
    /// Returns the target of a relocation of compiled code.
    pub(super) fn of_code(target: &RelocTarget, own: &Self, params: &FunctionParameters, names: Names) -> Self {
        match target {
            RelocTarget::Function => own.clone(),
            RelocTarget::Runtime(name) => Self::Runtime((*name).to_owned()),
            RelocTarget::Name(ExternalName::User(key)) => match (params.user_named_funcs().get(*key), names) {
                (Some(name), Names::Ids) => Self::of_ids(name.namespace, name.index),
                (Some(name), Names::Text | Names::Runtime) => Self::Name(name.to_string()),
                (None, _) => Self::Name(key.to_string()),
            },
            RelocTarget::Name(ExternalName::LibCall(call)) => Self::Name(libcall_name(*call)),
            RelocTarget::Name(name) => {
                let text = name.display(None).to_string();
                let text = text.strip_prefix('%').map_or(text.clone(), str::to_owned);
                match names {
                    Names::Runtime => Self::Runtime(text),
                    Names::Ids | Names::Text => Self::Name(text),
                }
            }
        }
    }

    /// Returns the target of a relocation of a module, and the offset from it.
    pub(super) fn of_module(target: &ModuleRelocTarget) -> (Self, u32) {
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
