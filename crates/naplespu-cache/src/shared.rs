//! Entries in a store that several hosts share, through `opendal`.

use crate::CacheKvStore;
use crate::store::names_of;
use opendal::{ErrorKind, Operator, OperatorUri};
use std::borrow::Cow;
use std::fmt;
use std::future::Future;
use std::io;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// The timeout of a request.
const PATIENCE: Duration = Duration::from_secs(10);

/// The number of consecutive failures after which requests stop, because each may cost
/// [`PATIENCE`].
const FAILURES: u32 = 3;

/// The address schemes that are built in.
const SCHEMES: &[&str] = &[
    "fs",
    "memory",
    #[cfg(feature = "shared-redis")]
    "redis",
    #[cfg(feature = "shared-redis")]
    "rediss",
    #[cfg(feature = "shared-s3")]
    "s3",
];

/// The directory next to the entries of an `fs` store. Entries are written there before they are
/// renamed.
const PARTIAL: &str = ".partial";

/// The reason why a shared store cannot be used.
#[derive(Debug)]
#[non_exhaustive]
pub enum SharedError {
    /// The scheme is not built in.
    Scheme {
        /// The scheme, before `://`.
        scheme: String,
    },
    /// The address is malformed, or its options are unknown to the service or incomplete.
    Address {
        /// The address, without user, password and options.
        address: String,
        /// The message of the service.
        reason: String,
    },
    /// The store does not answer, or denies access.
    Unreachable {
        /// The address, without user, password and options.
        address: String,
        /// The message of the service.
        reason: String,
    },
    /// The thread for the requests cannot be started.
    Thread(io::Error),
}

impl fmt::Display for SharedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Scheme { scheme } => {
                let known = SCHEMES.join("`, `");
                write!(f, "this build has no store for `{scheme}://`, only for `{known}`")
            }
            Self::Address { address, reason } => write!(f, "`{address}` is not the address of a store: {reason}"),
            Self::Unreachable { address, reason } => write!(f, "the store `{address}` cannot be used: {reason}"),
            Self::Thread(error) => write!(f, "no thread for the requests to a store: {error}"),
        }
    }
}

impl std::error::Error for SharedError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Thread(error) => Some(error),
            _ => None,
        }
    }
}

/// A request to the thread of a store, with the channel of its answer.
enum Request {
    Get(String, mpsc::Sender<Result<Option<Vec<u8>>, String>>),
    Insert(String, Vec<u8>, mpsc::Sender<Result<(), String>>),
}

/// Keeps each entry as an object of a service that [`opendal`] supports, which several hosts may
/// use at once.
///
/// Objects are named like the files of a [`DiskStore`](crate::DiskStore). The store has its own
/// thread, which sends requests one at a time, so that compilation also works inside a future. A
/// request fails after ten seconds. After three consecutive failures, the store is no longer used
/// and everything is compiled.
pub struct SharedStore {
    requests: mpsc::Sender<Request>,
    failures: std::cell::Cell<u32>,
}

impl fmt::Debug for SharedStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedStore")
            .field("failures", &self.failures.get())
            .finish_non_exhaustive()
    }
}

/// Returns the address without parts that may be secret.
fn without_secrets(address: &str) -> String {
    let shown = address.split(['?', '#']).next().unwrap_or_default();
    match shown.split_once("://") {
        Some((scheme, rest)) => {
            let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
            format!("{scheme}://{host}{path}")
        }
        None => shown.to_owned(),
    }
}

/// Returns the operator of an address.
fn operator_of(address: &str) -> Result<Operator, SharedError> {
    let scheme = address.split_once("://").map_or(address, |(scheme, _)| scheme);
    let scheme = scheme.to_ascii_lowercase();
    if !SCHEMES.contains(&scheme.as_str()) {
        return Err(SharedError::Scheme { scheme });
    }
    let wrong = |error: opendal::Error| SharedError::Address {
        address: without_secrets(address),
        reason: error.to_string(),
    };
    opendal::install_default();
    let mut uri = OperatorUri::new(address, []).map_err(wrong)?;
    if scheme == "fs" && !uri.options().contains_key("atomic_write_dir") {
        let named = uri.options().get("root").cloned();
        if let Some(root) = named.or_else(|| uri.root().map(|root| format!("/{root}"))) {
            // An entry is renamed when it is complete, as in a `DiskStore`.
            let partial = format!("{}/{PARTIAL}", root.trim_end_matches('/'));
            uri = OperatorUri::new(address, [("atomic_write_dir".to_owned(), partial)]).map_err(wrong)?;
        }
    }
    Operator::from_uri(uri).map_err(wrong)
}

impl SharedStore {
    /// Opens the store at an address, which is a URI: `fs:///folder`, `memory://`, and with the
    /// features `shared-s3` and `shared-redis` of this crate `s3://bucket/prefix?region=…` and
    /// `redis://host:port/`. Options of a service follow the `?`; `opendal` documents them.
    ///
    /// # Errors
    ///
    /// See [`SharedError`]. The store is tested with a request, so that an unreachable store is an
    /// error.
    pub fn open(address: &str) -> Result<Self, SharedError> {
        Self::over(operator_of(address)?, &without_secrets(address))
    }

    /// Creates a store with any operator, including layers and services that this crate does not
    /// build in.
    ///
    /// # Errors
    ///
    /// [`SharedError::Unreachable`] and [`SharedError::Thread`].
    pub fn with_operator(operator: Operator) -> Result<Self, SharedError> {
        let name = format!("{}://{}", operator.info().scheme(), operator.info().name());
        Self::over(operator, &name)
    }

    fn over(operator: Operator, address: &str) -> Result<Self, SharedError> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(SharedError::Thread)?;
        let (requests, received) = mpsc::channel();
        let thread = thread::Builder::new().name("shared-cache".to_owned());
        // The thread ends when the store, and with it the sender, is dropped.
        let spawned = thread.spawn(move || received.iter().for_each(|request| answer(&runtime, &operator, request)));
        spawned.map_err(SharedError::Thread)?;
        let store = Self {
            requests,
            failures: 0.into(),
        };
        // No key has this name. Any answer shows that the store is reachable.
        match store.ask(|to| Request::Get("probe".to_owned(), to)) {
            Ok(_) => Ok(store),
            Err(reason) => Err(SharedError::Unreachable {
                address: address.to_owned(),
                reason,
            }),
        }
    }

    /// Sends a request and waits for the answer.
    fn ask<T>(&self, request: impl FnOnce(mpsc::Sender<Result<T, String>>) -> Request) -> Result<T, String> {
        let ended = "the thread for its requests has ended";
        let (to, answer) = mpsc::channel();
        self.requests.send(request(to)).map_err(|_| ended)?;
        answer.recv().map_err(|_| ended)?
    }

    /// Sends a request and waits for the answer, unless requests have been stopped.
    fn try_ask<T>(&self, request: impl FnOnce(mpsc::Sender<Result<T, String>>) -> Request) -> Option<T> {
        if self.failures.get() >= FAILURES {
            return None;
        }
        let answer = self.ask(request);
        self.failures.set(match answer {
            Ok(_) => 0,
            Err(_) => self.failures.get() + 1,
        });
        answer.ok()
    }
}

/// Processes a request. The receiver of the answer may be gone.
fn answer(runtime: &tokio::runtime::Runtime, operator: &Operator, request: Request) {
    match request {
        Request::Get(name, to) => {
            let found = runtime.block_on(in_time(operator.read(&name)));
            let _ = to.send(match found {
                Ok(bytes) => Ok(Some(bytes.to_vec())),
                Err(Failure::NotFound) => Ok(None),
                Err(Failure::Other(reason)) => Err(reason),
            });
        }
        Request::Insert(name, bytes, to) => {
            let _ = to.send(match runtime.block_on(in_time(operator.write(&name, bytes))) {
                Ok(_) => Ok(()),
                Err(Failure::NotFound) => Err("there is no such place".to_owned()),
                Err(Failure::Other(reason)) => Err(reason),
            });
        }
    }
}

/// The reason why a request failed.
enum Failure {
    NotFound,
    Other(String),
}

/// Returns the result of a request, or an error after the timeout.
async fn in_time<T>(request: impl Future<Output = opendal::Result<T>>) -> Result<T, Failure> {
    match tokio::time::timeout(PATIENCE, request).await {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) if error.kind() == ErrorKind::NotFound => Err(Failure::NotFound),
        Ok(Err(error)) => Err(Failure::Other(error.to_string())),
        Err(_) => Err(Failure::Other(format!("no answer in {} seconds", PATIENCE.as_secs()))),
    }
}

impl CacheKvStore for SharedStore {
    fn get(&self, key: &[u8]) -> Option<Cow<'_, [u8]>> {
        let (folder, name) = names_of(key);
        let found = self.try_ask(|to| Request::Get(format!("{folder}/{name}"), to));
        found.flatten().map(Cow::Owned)
    }

    fn insert(&mut self, key: &[u8], val: Vec<u8>) {
        let (folder, name) = names_of(key);
        // Compilation does not fail if the store is full or unreachable.
        self.try_ask(|to| Request::Insert(format!("{folder}/{name}"), val, to));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_have_no_secrets() {
        for (address, shown) in [
            ("redis://me:secret@host:6379/0?x=secret", "redis://host:6379/0"),
            ("s3://bucket/a@b?secret_access_key=k", "s3://bucket/a@b"),
            ("fs:///cache#x", "fs:///cache"),
            ("s3", "s3"),
        ] {
            assert_eq!(without_secrets(address), shown);
        }
    }
}
