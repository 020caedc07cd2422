//! Settings of the target: the hardware configuration, how floats are computed, and which errata are worked around.
//!
//! Everything else (`opt_level`, `regalloc_algorithm`, ...) is a shared Cranelift flag.

use cranelift_codegen::settings::{Configurable, Flags};
use npu_mc::errata;
use npu_mc::machine;
use std::fmt;

/// Prefix of the settings that stand for errata.
const ERRATUM: &str = "erratum_";

/// What becomes of atomic operations that the hardware has no instruction for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Atomics {
    /// They are refused.
    #[default]
    Refuse,
    /// They are plain sequences, as if no other thread touched the memory.
    SingleThread,
}

impl Atomics {
    const ALL: [(Self, &str); 2] = [(Self::Refuse, "refuse"), (Self::SingleThread, "single_thread")];

    fn name(self) -> &'static str {
        Self::ALL
            .iter()
            .find(|(value, _)| *value == self)
            .map_or("", |(_, name)| name)
    }

    fn parse(name: &str, value: &str) -> Result<Self, SetError> {
        let found = Self::ALL.iter().find(|(_, text)| *text == value);
        found.map(|(value, _)| *value).ok_or_else(|| SetError::BadValue {
            name: name.to_owned(),
            value: value.to_owned(),
            expected: "`refuse` or `single_thread`".to_owned(),
        })
    }
}

/// Values of all settings of the target.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TargetSettings {
    /// Floats of CLIF to the bit, through the runtime, instead of the float unit's own arithmetic.
    pub strict_float: bool,
    /// Hardware threads a core.
    pub threads: u32,
    /// Bytes of scratchpad memory a core.
    pub scratchpad_bytes: u32,
    /// Whether the core has a float unit.
    pub has_fpu: bool,
    /// What becomes of `atomic_rmw` and `atomic_cas`.
    pub atomics: Atomics,
    /// For each erratum of `td/NaplesPUErrata.td`, in its order, whether it is worked around.
    errata: Vec<bool>,
}

impl Default for TargetSettings {
    fn default() -> Self {
        Self {
            strict_float: false,
            threads: machine::THREADS_PER_CORE,
            scratchpad_bytes: machine::SCRATCHPAD_SIZE,
            has_fpu: true,
            atomics: Atomics::default(),
            errata: errata::ALL.iter().map(|e| e.default).collect(),
        }
    }
}

/// A setting that was not understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SetError {
    /// There is no setting of this name.
    UnknownName(String),
    /// The setting exists, but not with this value.
    BadValue {
        /// The setting.
        name: String,
        /// What was given.
        value: String,
        /// What is expected.
        expected: String,
    },
}

impl std::error::Error for SetError {}

impl fmt::Display for SetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownName(name) => write!(f, "there is no setting `{name}`"),
            Self::BadValue { name, value, expected } => {
                write!(f, "`{value}` is no value of `{name}`: {expected} expected")
            }
        }
    }
}

/// Description of one setting.
#[derive(Clone, Debug)]
pub struct SettingInfo {
    /// Its name.
    pub name: String,
    /// What it does.
    pub description: String,
    /// Its value unless set.
    pub default: String,
    /// The values it takes.
    pub values: String,
}

/// All settings of the target.
pub fn list() -> Vec<SettingInfo> {
    let default = TargetSettings::default();
    let info = |name: &str, description: &str, default: String, values: &str| SettingInfo {
        name: name.to_owned(),
        description: description.to_owned(),
        default,
        values: values.to_owned(),
    };
    let mut all = vec![
        info(
            "strict_float",
            "IEEE 754 floats through the runtime instead of the float unit's arithmetic",
            default.strict_float.to_string(),
            "true, false",
        ),
        info(
            "threads",
            "hardware threads a core",
            default.threads.to_string(),
            &range(machine::THREADS_PER_CORE),
        ),
        info(
            "scratchpad_bytes",
            "bytes of scratchpad memory a core",
            default.scratchpad_bytes.to_string(),
            &range(machine::SCRATCHPAD_SIZE),
        ),
        info(
            "has_fpu",
            "the core has a float unit",
            default.has_fpu.to_string(),
            "true, false",
        ),
        info(
            "atomics",
            "atomic_rmw and atomic_cas: refused, or plain sequences for memory that one thread uses",
            default.atomics.name().to_owned(),
            "refuse, single_thread",
        ),
    ];
    all.extend(errata::ALL.iter().map(|erratum| {
        let description = format!("work around: {}", erratum.summary);
        info(
            &format!("{ERRATUM}{}", erratum.name),
            &description,
            erratum.default.to_string(),
            "true, false",
        )
    }));
    all
}

/// The numbers that a setting takes.
fn range(max: u32) -> String {
    format!("1 to {max}")
}

fn parse_bool(name: &str, value: &str) -> Result<bool, SetError> {
    match value {
        "true" | "on" | "yes" | "1" => Ok(true),
        "false" | "off" | "no" | "0" => Ok(false),
        _ => Err(SetError::BadValue {
            name: name.to_owned(),
            value: value.to_owned(),
            expected: "`true` or `false`".to_owned(),
        }),
    }
}

fn parse_number(name: &str, value: &str, max: u32) -> Result<u32, SetError> {
    value
        .parse()
        .ok()
        .filter(|n| (1..=max).contains(n))
        .ok_or_else(|| SetError::BadValue {
            name: name.to_owned(),
            value: value.to_owned(),
            expected: format!("a number, {},", range(max)),
        })
}

impl TargetSettings {
    /// Sets one setting from text.
    ///
    /// # Errors
    ///
    /// [`SetError`] for an unknown name or a value that does not fit.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), SetError> {
        match name {
            "strict_float" => self.strict_float = parse_bool(name, value)?,
            "has_fpu" => self.has_fpu = parse_bool(name, value)?,
            "atomics" => self.atomics = Atomics::parse(name, value)?,
            "threads" => self.threads = parse_number(name, value, machine::THREADS_PER_CORE)?,
            "scratchpad_bytes" => self.scratchpad_bytes = parse_number(name, value, machine::SCRATCHPAD_SIZE)?,
            _ => {
                let index = name
                    .strip_prefix(ERRATUM)
                    .and_then(|erratum| errata::ALL.iter().position(|e| e.name == erratum))
                    .ok_or_else(|| SetError::UnknownName(name.to_owned()))?;
                self.errata[index] = parse_bool(name, value)?;
            }
        }
        Ok(())
    }

    /// Whether the erratum is worked around. An unknown name counts as worked around.
    pub fn works_around(&self, erratum: &str) -> bool {
        errata::ALL
            .iter()
            .position(|e| e.name == erratum)
            .is_none_or(|index| self.errata[index])
    }
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
