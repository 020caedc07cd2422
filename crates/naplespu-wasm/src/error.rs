//! Errors of the translation.

use cranelift_module::ModuleError;

/// The reason why a module was not translated. Offsets are in bytes from the start of the binary
/// module.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WasmError {
    /// The module is not valid.
    #[error("at offset {offset:#x}: invalid: {message}")]
    Invalid {
        /// The offset of the fault.
        offset: u64,
        /// The message of the validator.
        message: String,
    },
    /// The module is valid, but uses an unsupported feature.
    #[error("at offset {offset:#x}: {what} is not supported on naplespu")]
    Unsupported {
        /// The offset of the use.
        offset: u64,
        /// The name of the feature in the specification.
        what: String,
    },
    /// The import does not exist.
    #[error("at offset {offset:#x}: unknown import: {module}.{name}")]
    UnknownImport {
        /// The offset of the import.
        offset: u64,
        /// The module name of the import.
        module: String,
        /// The name of the import in that module.
        name: String,
    },
    /// The imported item has another kind or type.
    #[error("at offset {offset:#x}: incompatible import type: {module}.{name}: {why}")]
    IncompatibleImport {
        /// The offset of the import.
        offset: u64,
        /// The module name of the import.
        module: String,
        /// The name of the import in that module.
        name: String,
        /// The reason.
        why: String,
    },
    /// A memory, table or segment does not fit on the device.
    #[error("at offset {offset:#x}: too large: {what}")]
    TooLarge {
        /// The offset of the declaration.
        offset: u64,
        /// The item and its size.
        what: String,
    },
    /// The Cranelift module rejected a definition.
    #[error("{name}: {error}")]
    Define {
        /// The name of the function or data object.
        name: String,
        /// The reason.
        error: Box<ModuleError>,
    },
    /// A bug in this crate.
    #[error("internal error at offset {offset:#x}: {what}")]
    Internal {
        /// The offset of the current instruction.
        offset: u64,
        /// The expectation that did not hold.
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
    /// Returns the error for a bug in this crate, without an offset.
    pub(crate) fn internal(what: impl Into<String>) -> Self {
        Self::Internal {
            offset: 0,
            what: what.into(),
        }
    }
}

/// The result of a fallible function of this crate.
pub type Result<T> = std::result::Result<T, WasmError>;
