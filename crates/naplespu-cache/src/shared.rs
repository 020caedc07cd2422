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

/// How long one request may take before it counts as failed.
const PATIENCE: Duration = Duration::from_secs(10);

/// After so many requests in a row that failed nothing is asked any more: each would cost [`PATIENCE`].
const FAILURES: u32 = 3;

/// The schemes of addresses that are built in.
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

/// The folder beside the entries of an `fs` store in which they are written before they get their names.
const PARTIAL: &str = ".partial";

/// Why a shared store cannot be used.
#[derive(Debug)]
#[non_exhaustive]
pub enum SharedError {
    /// No such scheme is built in.
    Scheme {
        /// What stands before `://`.
        scheme: String,
    },
    /// The address is not one, or has options that the service does not know or lacks some that it needs.
    Address {
        /// The address, without user, password and options.
        address: String,
        /// What the service says.
        reason: String,
    },
    /// The store does not answer, or not to us.
    Unreachable {
        /// The address, without user, password and options.
        address: String,
        /// What the service says.
        reason: String,
    },
    /// The host gives no thread for the requests.
    Thread(io::Error),
}

impl fmt::Display for SharedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Scheme { scheme } => {
                let known = SCHEMES.join("`, `");
                write!(
                    f,
                    "there is no store for `{scheme}://` in this build, which has `{known}`"
                )
            }
            Self::Address { address, reason } => write!(f, "`{address}` is no address of a store: {reason}"),
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

/// What the thread of a store is asked for, and where its answer goes.
enum Request {
    Get(String, mpsc::Sender<Result<Option<Vec<u8>>, String>>),
    Insert(String, Vec<u8>, mpsc::Sender<Result<(), String>>),
}

/// Keeps each entry as an object of a service that [`opendal`] knows, which several hosts may use at once.
///
/// The object of a key is named as the file of a [`DiskStore`](crate::DiskStore) is. Requests go out from a thread of the store's own, one at a time, so that
/// whoever compiles may be in the middle of a future. One that takes more than ten seconds has failed; after three failures in a row the store is not asked
/// any more, and everything is compiled.
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

/// The address without what may be a secret.
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

/// The operator of an address.
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
            // An entry gets its name when all of it is written, as in a `DiskStore`.
            let partial = format!("{}/{PARTIAL}", root.trim_end_matches('/'));
            uri = OperatorUri::new(address, [("atomic_write_dir".to_owned(), partial)]).map_err(wrong)?;
        }
    }
    Operator::from_uri(uri).map_err(wrong)
}

impl SharedStore {
    /// The store at an address, which is a URI: `fs:///folder`, `memory://`, and with the features `shared-s3` and `shared-redis` of this crate
    /// `s3://bucket/prefix?region=…` and `redis://host:port/`. Options of a service stand behind the `?`; `opendal` documents them.
    ///
    /// # Errors
    ///
    /// All of [`SharedError`]. The store is asked for an entry, so that one that does not answer is found here.
    pub fn open(address: &str) -> Result<Self, SharedError> {
        Self::over(operator_of(address)?, &without_secrets(address))
    }

    /// A store over any operator, which may have layers and services of which this crate does not know.
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
        // It ends when the store, and with it the sender, goes.
        let spawned = thread.spawn(move || received.iter().for_each(|request| answer(&runtime, &operator, request)));
        spawned.map_err(SharedError::Thread)?;
        let store = Self {
            requests,
            failures: 0.into(),
        };
        // A name that no key has: whether there is such an entry does not matter, only whether somebody says so.
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

    /// The same as long as the store answers at all.
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

/// Does what is asked. Nobody may be there any more to hear of it.
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

/// Why a request came to nothing.
enum Failure {
    NotFound,
    Other(String),
}

/// The result of a request that does not take too long.
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
        // A store that is full or does not answer is no reason not to compile.
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
