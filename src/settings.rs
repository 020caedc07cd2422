//! The settings of the target: the hardware configuration, how floats are computed, and which
//! errata the code works around.
//!
//! The build script generates them from `td/NaplesPUSettings.td` and `td/NaplesPUErrata.td`:
//! [`Setting`] enumerates them, and [`TargetSettings`] has a field for each. All other options
//! (`opt_level`, `regalloc_algorithm`, ...) are shared Cranelift flags.

use cranelift_codegen::settings::{Configurable, Flags};
use npu_mc::errata::Erratum;
use std::fmt;
use std::ops::RangeInclusive;

include!(concat!(env!("OUT_DIR"), "/settings.rs"));

/// The description of one setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SettingInfo {
    /// The name.
    pub name: &'static str,
    /// The effect of the setting.
    pub description: &'static str,
    /// The default value.
    pub default: &'static str,
    /// The allowed values.
    pub values: &'static str,
}

/// The error for an invalid setting.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SetError {
    /// No setting has this name.
    UnknownName(String),
    /// The setting does not have this value.
    BadValue {
        /// The setting.
        setting: Setting,
        /// The invalid value.
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

/// Returns a copy of the flags with another value for one of them.
pub fn with_flag(flags: &Flags, name: &str, value: &str) -> Flags {
    let mut builder = cranelift_codegen::settings::builder();
    for old in flags.iter() {
        // This cannot fail: the value comes from the same kind of builder.
        let _ = builder.set(old.name, &old.value_string());
    }
    let _ = builder.set(name, value);
    Flags::new(builder)
}
