//! A backend of [`wgpu`] that computes on NaplesPU.
//!
//! # Contract
//!
//! [`instance`] returns a [`wgpu::Instance`] with one adapter, the simulated machine. Compute
//! programs for `wgpu` run on it unchanged; only the call that creates their instance differs:
//!
//! ```
//! let instance = naplespu_wgpu::instance();
//! ```
//!
//! - Errors are those of WebGPU, by class ([`wgpu::Error`]), and their source is an [`Error`].
//!   Calls with errors have no effect. They go to the error scopes of their thread, else to the
//!   handler of uncaptured errors, else to standard error. Errors of encoders are reported by
//!   `finish`.
//! - Everything that is no compute (textures, samplers, surfaces, render pipelines, ray tracing) is
//!   a validation error with its name. The adapter's limits for it are 0. A device that is
//!   requested with other limits for it has 0 as well.
//! - A submission runs in [`wgpu::Queue::submit`]. Callbacks of mappings and of finished work run
//!   in the next `poll` or `submit`.
//! - Devices with the feature `TIMESTAMP_QUERY` run with the timing model, which takes about ten
//!   times as long. Timestamps are cycles of all dispatches so far, of 10 ns each.
//! - A dispatch that executes too many instructions ([`Config::instruction_limit`]) loses the
//!   device.
//! - No call panics, except where `wgpu` itself does before it calls the backend.
//!
//! # Structure
//!
//! | file | contents |
//! |---|---|
//! | `instance`, `info`, [`Config`] | instance and adapter, features and limits, settings |
//! | `device`, `queue`, `execute` | device, queue, execution of commands |
//! | `shared`, `sink`, `error` | state of a device, error scopes, errors |
//! | `buffer`, `layout`, `group`, `shader`, `pipeline`, `query` | objects of programs |
//! | `encoder`, `pass`, `command` | recording of commands, with their validation |
//! | `refused` | objects that are no compute |

#![deny(missing_docs)]

mod buffer;
mod command;
mod config;
mod device;
mod encoder;
mod error;
mod execute;
mod group;
mod info;
mod instance;
mod layout;
mod pass;
mod pipeline;
mod query;
mod queue;
mod refused;
mod shader;
mod shared;
mod sink;

pub use config::Config;
pub use error::Error;

/// Returns an instance whose adapter is NaplesPU, with the default [`Config`].
pub fn instance() -> wgpu::Instance {
    instance_with(Config::default())
}

/// Returns an instance whose adapter is NaplesPU.
pub fn instance_with(config: Config) -> wgpu::Instance {
    wgpu::Instance::from_custom(instance::Instance::with(config))
}
