//! What can keep a module from becoming code.

use cranelift_module::ModuleError;

/// Why a WebAssembly module was not translated. Offsets count bytes from the start of the binary module.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WasmError {
    /// The bytes are no valid module.
    #[error("at offset {offset:#x}: invalid: {message}")]
    Invalid {
        /// Where the fault is.
        offset: u64,
        /// What the validator says.
        message: String,
    },
    /// The module is valid, but uses what is not translated.
    #[error("at offset {offset:#x}: {what} is not supported on naplespu")]
    Unsupported {
        /// Where it is used.
        offset: u64,
        /// Its name in the specification.
        what: String,
    },
    /// Nothing of this name can be imported.
    #[error("at offset {offset:#x}: unknown import: {module}.{name}")]
    UnknownImport {
        /// Where the import stands.
        offset: u64,
        /// The module that it names.
        module: String,
        /// Its name in there.
        name: String,
    },
    /// What is imported is of another kind or type.
    #[error("at offset {offset:#x}: incompatible import type: {module}.{name}: {why}")]
    IncompatibleImport {
        /// Where the import stands.
        offset: u64,
        /// The module that it names.
        module: String,
        /// Its name in there.
        name: String,
        /// What does not fit.
        why: String,
    },
    /// A memory, table or segment that the device has no room for.
    #[error("at offset {offset:#x}: too large: {what}")]
    TooLarge {
        /// Where it is declared.
        offset: u64,
        /// What it is, with its size.
        what: String,
    },
    /// The module of Cranelift did not take a definition.
    #[error("{name}: {error}")]
    Define {
        /// The function or data object.
        name: String,
        /// Why not.
        error: Box<ModuleError>,
    },
    /// A fault of this crate.
    #[error("internal error at offset {offset:#x}: {what}")]
    Internal {
        /// The instruction that was translated.
        offset: u64,
        /// What was expected.
        what: String,
    },
}

impl From<wasmparser::Error> for WasmError {
    fn from(error: wasmparser::Error) -> Self {
        Self::Invalid {
            offset: error.offset(),
            message: error.message().to_owned(),
        }
    }
}

impl WasmError {
    /// A fault of this crate, without a place.
    pub(crate) fn internal(what: impl Into<String>) -> Self {
        Self::Internal {
            offset: 0,
            what: what.into(),
        }
    }
}

/// The result of everything here that can fail.
pub type Result<T> = std::result::Result<T, WasmError>;
