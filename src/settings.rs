//! Settings of the target: the hardware configuration, how floats are computed, and which errata are worked around.
//!
//! The build script makes them from `td/NaplesPUSettings.td` and `td/NaplesPUErrata.td`: [`Setting`] names them, [`TargetSettings`]
//! has a field for each. Everything else (`opt_level`, `regalloc_algorithm`, ...) is a shared Cranelift flag.

use cranelift_codegen::settings::{Configurable, Flags};
use npu_mc::errata::Erratum;
use std::fmt;
use std::ops::RangeInclusive;

include!(concat!(env!("OUT_DIR"), "/settings.rs"));

/// Description of one setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SettingInfo {
    /// Its name.
    pub name: &'static str,
    /// What it does.
    pub description: &'static str,
    /// Its value unless set.
    pub default: &'static str,
    /// The values it takes.
    pub values: &'static str,
}

/// A setting that was not understood.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SetError {
    /// There is no setting of this name.
    UnknownName(String),
    /// The setting exists, but not with this value.
    BadValue {
        /// The setting.
        setting: Setting,
        /// What was given.
        value: String,
    },
}

impl SetError {
    fn bad_value(setting: Setting, value: &str) -> SetError {
        SetError::BadValue {
            setting,
            value: value.to_owned(),
        }
    }
}

impl std::error::Error for SetError {}

impl fmt::Display for SetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownName(name) => write!(f, "there is no setting `{name}`"),
            Self::BadValue { setting, value } => {
                let info = setting.info();
                write!(
                    f,
                    "`{value}` is not a valid value of `{}`, which takes {}",
                    info.name, info.values
                )
            }
        }
    }
}

fn parse_bool(setting: Setting, value: &str) -> Result<bool, SetError> {
    match value {
        "true" | "on" | "yes" | "1" => Ok(true),
        "false" | "off" | "no" | "0" => Ok(false),
        _ => Err(SetError::bad_value(setting, value)),
    }
}

fn parse_number(setting: Setting, value: &str, range: RangeInclusive<u32>) -> Result<u32, SetError> {
    let number: Option<u32> = value.parse().ok();
    number
        .filter(|n| range.contains(n))
        .ok_or_else(|| SetError::bad_value(setting, value))
}

/// A copy of the flags in which one has another value.
pub fn with_flag(flags: &Flags, name: &str, value: &str) -> Flags {
    let mut builder = cranelift_codegen::settings::builder();
    for old in flags.iter() {
        // Every value came out of such a builder, so it fits one.
        let _ = builder.set(old.name, &old.value_string());
    }
    let _ = builder.set(name, value);
    Flags::new(builder)
}
