//! Error scopes, which are separate for each thread, and the handler of uncaptured errors.

use crate::error::Error;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};
use wgpu::{ErrorFilter, UncapturedErrorHandler};

/// Locks a mutex. The data stays usable after a panic of a user's callback.
pub(crate) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A scope with its first error.
struct Scope {
    filter: ErrorFilter,
    error: Option<wgpu::Error>,
}

#[derive(Default)]
struct Scopes {
    of_threads: HashMap<ThreadId, Vec<Scope>>,
    handler: Option<Arc<dyn UncapturedErrorHandler>>,
}

/// The receiver of a device's errors.
#[derive(Default)]
pub(crate) struct Sink(Mutex<Scopes>);

impl fmt::Debug for Sink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sink").finish_non_exhaustive()
    }
}

impl Sink {
    pub(crate) fn set_handler(&self, handler: Arc<dyn UncapturedErrorHandler>) {
        lock(&self.0).handler = Some(handler);
    }

    /// Opens a scope of this thread and returns its index.
    pub(crate) fn push(&self, filter: ErrorFilter) -> u32 {
        let mut scopes = lock(&self.0);
        let own = scopes.of_threads.entry(thread::current().id()).or_default();
        own.push(Scope { filter, error: None });
        u32::try_from(own.len() - 1).unwrap_or(u32::MAX)
    }

    /// Closes a scope of this thread, and those that are in it. Returns its error.
    pub(crate) fn pop(&self, index: u32) -> Option<wgpu::Error> {
        let mut scopes = lock(&self.0);
        let own = scopes.of_threads.get_mut(&thread::current().id())?;
        let index = index as usize;
        if index >= own.len() {
            return None;
        }
        let closed = own.drain(index..).next();
        if own.is_empty() {
            scopes.of_threads.remove(&thread::current().id());
        }
        closed?.error
    }

    /// Delivers the error of a call: to the innermost scope of this thread for its class, else to
    /// the handler, else to standard error.
    pub(crate) fn report(&self, call: &str, error: Error) {
        let Some(filter) = error.filter() else { return };
        let description = format!("{call}: {error}");
        let source = Box::new(error);
        let error = match filter {
            ErrorFilter::OutOfMemory => wgpu::Error::OutOfMemory { source },
            ErrorFilter::Validation => wgpu::Error::Validation { source, description },
            ErrorFilter::Internal => wgpu::Error::Internal { source, description },
        };
        let handler = {
            let mut scopes = lock(&self.0);
            let own = scopes.of_threads.get_mut(&thread::current().id());
            let scope = own.and_then(|own| own.iter_mut().rev().find(|scope| scope.filter == filter));
            if let Some(scope) = scope {
                scope.error.get_or_insert(error);
                return;
            }
            scopes.handler.clone()
        };
        // The handler may call `wgpu`, so the lock is released before.
        match handler {
            Some(handler) => handler(error),
            None => eprintln!("uncaptured error of wgpu: {error}"),
        }
    }
}
