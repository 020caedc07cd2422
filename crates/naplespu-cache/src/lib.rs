//! A cache of compiled functions for `cranelift-naplespu`: in memory, in a directory, or in a store
//! that hosts share.
//!
//! ```
//! use cranelift_codegen::cursor::{Cursor, FuncCursor};
//! use cranelift_codegen::ir::{Function, InstBuilder, UserFuncName};
//! use cranelift_codegen::{Context, control::ControlPlane, settings};
//! use naplespu_cache::{Cache, MemoryStore};
//! use std::sync::Arc;
//!
//! let cache = Arc::new(Cache::new(MemoryStore::default()));
//! let isa = cranelift_naplespu::isa::lookup_by_name("naplespu")?.finish(settings::Flags::new(settings::builder()))?;
//! let isa = isa.with_cache(cache.clone());
//! let mut codes = Vec::new();
//! for name in ["add", "sum"] {
//!     let mut func = Function::new();
//!     func.name = UserFuncName::testcase(name);
//!     let block = func.dfg.make_block();
//!     func.layout.append_block(block);
//!     FuncCursor::new(&mut func).at_bottom(block).ins().return_(&[]);
//!     codes.push(isa.compile(&mut Context::for_function(func), &mut ControlPlane::default())?.bytes);
//! }
//! assert_eq!(codes[0], codes[1]);
//! assert_eq!((cache.counts().hits, cache.counts().misses), (1, 1));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Contract
//!
//! * A hit equals the result of compilation in every field of [`CompiledCode`]. The key is a
//!   SHA-256 of all inputs: the function without its name, the target's
//!   [settings](Isa::code_settings), the version of Cranelift, and the compiler. For the compiler
//!   it hashes the files of all packages of the workspace that it is built from (by their
//!   manifests), the lock file, and [`COMPILER`](cranelift_naplespu::cache::COMPILER). In a
//!   published package, versions replace files.
//! * An entry contains its key and a checksum. A truncated, damaged or foreign entry is not used:
//!   the function is compiled and the entry replaced.
//! * The cache never makes a compilation fail. Failed reads and writes are counted ([`Counts`]).
//! * Threads may share a [`Cache`], and processes a directory or a shared store: an entry becomes
//!   visible when it is complete.
//!
//! A store is trusted like the program itself: anyone who can write to it can make entries with
//! correct checksums.
//!
//! # Stores
//!
//! [`CacheKvStore`] has the shape of Cranelift's trait with that name, which only exists if
//! `cranelift-codegen` is built with its own cache. [`MemoryStore`] and [`DiskStore`] implement it;
//! they never remove entries. With the feature `shared` (off by default), `SharedStore` keeps
//! entries in any service that the crate `opendal` supports. The features `shared-s3` and
//! `shared-redis` build in those two services; other services are passed as an operator.
//! [`Cache::open`] accepts the name of a directory or the address of a shared store.

#![deny(missing_docs)]

mod entry;
#[doc(hidden)]
pub mod fuzz;
mod key;
#[cfg(feature = "shared")]
mod shared;
mod store;

#[cfg(feature = "shared")]
pub use shared::{SharedError, SharedStore};
pub use store::{CacheKvStore, DiskStore, MemoryStore};

use cranelift_codegen::ir::Function;
use cranelift_naplespu::{CacheKey, CodeCache, CompiledCode, Isa};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The results of lookups.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// Functions with a cached entry.
    pub hits: u64,
    /// Functions without a usable entry.
    pub misses: u64,
    /// Misses with an unusable entry.
    pub damaged: u64,
}

/// The reason why a cache cannot be opened.
#[derive(Debug)]
#[non_exhaustive]
pub enum OpenError {
    /// The directory cannot be created.
    Folder {
        /// The directory.
        folder: PathBuf,
        /// The reason.
        error: std::io::Error,
    },
    /// The address of a shared store, but this build lacks the feature `shared`.
    NotBuiltIn {
        /// The scheme of the address, before `://`.
        scheme: String,
    },
    /// The shared store cannot be used.
    #[cfg(feature = "shared")]
    Shared(SharedError),
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder { folder, error } => write!(f, "{}: {error}", folder.display()),
            Self::NotBuiltIn { scheme } => write!(
                f,
                "`{scheme}://` is the address of a shared store, which only a build with the feature `shared-cache` of naplespu-tools, or `shared` of \
                 naplespu-cache, can use"
            ),
            #[cfg(feature = "shared")]
            Self::Shared(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for OpenError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Folder { error, .. } => Some(error),
            Self::NotBuiltIn { .. } => None,
            #[cfg(feature = "shared")]
            Self::Shared(error) => error.source(),
        }
    }
}

/// A cache of compiled functions in a key-value store.
pub struct Cache {
    inner: Mutex<Inner>,
}

struct Inner {
    store: Box<dyn CacheKvStore + Send>,
    counts: Counts,
}

impl fmt::Debug for Cache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cache")
            .field("counts", &self.counts())
            .finish_non_exhaustive()
    }
}

impl Cache {
    /// Creates a cache that keeps its entries in this store.
    pub fn new(store: impl CacheKvStore + Send + 'static) -> Self {
        Self {
            inner: Mutex::new(Inner {
                store: Box::new(store),
                counts: Counts::default(),
            }),
        }
    }

    /// Opens a cache in a directory, which is created if it does not exist.
    ///
    /// # Errors
    ///
    /// The directory cannot be created.
    pub fn on_disk(folder: &Path) -> std::io::Result<Self> {
        Ok(Self::new(DiskStore::open(folder)?))
    }

    /// Opens a cache in a directory, or at the address of a shared store if `place` contains `://`.
    ///
    /// # Errors
    ///
    /// The directory cannot be created, or the store cannot be used.
    pub fn open(place: &Path) -> Result<Self, OpenError> {
        if let Some((scheme, _)) = place.to_str().and_then(|place| place.split_once("://")) {
            return Self::at_address(place, scheme);
        }
        Self::on_disk(place).map_err(|error| OpenError::Folder {
            folder: place.to_owned(),
            error,
        })
    }

    #[cfg(feature = "shared")]
    fn at_address(place: &Path, _: &str) -> Result<Self, OpenError> {
        let store = SharedStore::open(&place.to_string_lossy()).map_err(OpenError::Shared)?;
        Ok(Self::new(store))
    }

    #[cfg(not(feature = "shared"))]
    fn at_address(_: &Path, scheme: &str) -> Result<Self, OpenError> {
        Err(OpenError::NotBuiltIn {
            scheme: scheme.to_owned(),
        })
    }

    /// Returns the results of all lookups so far.
    pub fn counts(&self) -> Counts {
        self.lock().counts
    }

    /// Locks the state. A panic of another thread with the lock leaves the state valid.
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CodeCache for Cache {
    fn key(&self, isa: &Isa, func: &Function) -> CacheKey {
        key::of(isa, func)
    }

    fn get(&self, key: &CacheKey) -> Option<CompiledCode> {
        let mut inner = self.lock();
        let (found, damaged) = match inner.store.get(&key.0) {
            Some(bytes) => {
                let code = entry::read(key, &bytes);
                let damaged = code.is_none();
                (code, damaged)
            }
            None => (None, false),
        };
        let counts = &mut inner.counts;
        *if found.is_some() {
            &mut counts.hits
        } else {
            &mut counts.misses
        } += 1;
        counts.damaged += u64::from(damaged);
        found
    }

    fn insert(&self, key: &CacheKey, code: &CompiledCode) {
        let entry = entry::write(key, code);
        self.lock().store.insert(&key.0, entry);
    }
}
