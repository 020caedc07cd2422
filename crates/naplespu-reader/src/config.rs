//! Determines the compiler configurations of a file from its `set` and `target` lines and the
//! command line.

use super::diagnostic::Diagnostic;
use super::header::{ConfigLine, Header, Word};
use super::parse::nearest;
use cranelift_codegen::settings::{self, Configurable, Flags, SetError};
use cranelift_naplespu::settings::Setting;
use cranelift_naplespu::{Builder, Isa, Triple, isa};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// The name of the target.
pub const TARGET: &str = "naplespu";

/// The reason why a setting was rejected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SettingError {
    /// Neither Cranelift nor the target has this setting.
    Unknown {
        /// The name.
        name: String,
        /// A setting with a similar name.
        near: Option<String>,
    },
    /// The setting does not accept this value.
    Value(String),
}

impl fmt::Display for SettingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown { name, near: None } => write!(f, "unknown setting `{name}`"),
            Self::Unknown { name, near: Some(near) } => {
                write!(f, "unknown setting `{name}`; a similar one is `{near}`")
            }
            Self::Value(what) => f.write_str(what),
        }
    }
}

impl std::error::Error for SettingError {}

/// A configuration of the compiler: Cranelift's shared settings and those of the target.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Config {
    /// Names and values, ordered by name; a flag without a value has the value `true`.
    shared: Vec<(String, String)>,
    target: Vec<(String, String)>,
}

impl Config {
    /// Returns the defaults of Cranelift and the target.
    pub fn new() -> Config {
        Config::default()
    }

    /// Applies `name=value` or `name`. Later settings override earlier ones.
    ///
    /// # Errors
    ///
    /// The setting does not exist or does not accept the value.
    pub fn set(&mut self, setting: &str) -> Result<(), SettingError> {
        let (name, value) = match setting.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (setting, None),
        };
        if Setting::from_name(name).is_some() {
            let mut trial = builder()?;
            match value {
                Some(value) => trial.set(name, value),
                None => trial.enable(name),
            }
            .map_err(|e| SettingError::Value(format!("`{setting}`: {e}")))?;
            put(&mut self.target, name, value.unwrap_or("true"));
            return Ok(());
        }
        let mut trial = settings::builder();
        match value {
            Some(value) => trial.set(name, value),
            None => trial.enable(name),
        }
        .map_err(|e| match e {
            SetError::BadName(name) => {
                let shared: Vec<&str> = settings::builder().iter().map(|setting| setting.name).collect();
                let own = Setting::ALL.iter().map(|setting| setting.info().name);
                let near = nearest(&name, own.chain(shared)).map(str::to_owned);
                SettingError::Unknown { name, near }
            }
            SetError::BadType => SettingError::Value(match value {
                Some(_) => format!("`{name}` needs a value of another type"),
                None => format!("`{name}` needs a value: `{name}=VALUE`"),
            }),
            SetError::BadValue(expected) => SettingError::Value(format!("`{setting}`: expected {expected}")),
        })?;
        put(&mut self.shared, name, value.unwrap_or("true"));
        Ok(())
    }

    /// Returns whether a setting was applied, with any value.
    pub fn mentions(&self, name: &str) -> bool {
        let mut all = self.shared.iter().chain(&self.target);
        all.any(|(n, _)| n == name)
    }

    /// Returns the shared flags.
    ///
    /// # Errors
    ///
    /// None in practice: every setting was validated when it was applied.
    pub fn flags(&self) -> Result<Flags, SettingError> {
        let mut builder = settings::builder();
        for (name, value) in &self.shared {
            builder
                .set(name, value)
                .map_err(|e| SettingError::Value(format!("{name}={value}: {e}")))?;
        }
        Ok(Flags::new(builder))
    }

    /// Returns a compiler with this configuration.
    ///
    /// # Errors
    ///
    /// The target's builder rejects the combination of settings.
    pub fn isa(&self) -> Result<Arc<Isa>, SettingError> {
        let mut builder = builder()?;
        for (name, value) in &self.target {
            builder
                .set(name, value)
                .map_err(|e| SettingError::Value(format!("{name}={value}: {e}")))?;
        }
        builder
            .finish(self.flags()?)
            .map_err(|e| SettingError::Value(e.to_string()))
    }
}

impl fmt::Display for Config {
    /// Prints the applied settings as `a=b c=d`, or `default settings` if none were applied.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all: Vec<String> = self
            .shared
            .iter()
            .chain(&self.target)
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        if all.is_empty() {
            return f.write_str("default settings");
        }
        f.write_str(&all.join(" "))
    }
}

fn builder() -> Result<Builder, SettingError> {
    isa::lookup_by_name(TARGET).map_err(|e| SettingError::Value(e.to_string()))
}

fn put(list: &mut Vec<(String, String)>, name: &str, value: &str) {
    match list.binary_search_by(|(n, _)| n.as_str().cmp(name)) {
        Ok(at) => value.clone_into(&mut list[at].1),
        Err(at) => list.insert(at, (name.to_owned(), value.to_owned())),
    }
}

/// The value of `--force-target`, which replaces the `target` lines of files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ForcedTarget {
    /// Settings of all files, `name=value` or `name`.
    pub settings: Vec<String>,
}

impl ForcedTarget {
    /// Parses `naplespu [name=value ...]`.
    ///
    /// # Errors
    ///
    /// A message, if the target is another one or a setting is invalid.
    pub fn parse(text: &str) -> Result<ForcedTarget, String> {
        let mut words = text.split_whitespace();
        let triple = words
            .next()
            .ok_or_else(|| format!("expected a target, as in `{TARGET} opt_level=speed`"))?;
        Triple::from_str(triple).map_err(|e| e.to_string())?;
        let mut trial = Config::new();
        let mut settings = Vec::new();
        for word in words {
            trial.set(word).map_err(|e| e.to_string())?;
            settings.push(word.to_owned());
        }
        Ok(ForcedTarget { settings })
    }
}

/// The configurations of a file.
#[derive(Clone, Debug, Default)]
pub struct FileConfigs {
    /// The distinct configurations, in order. Empty if the file is only for other targets and no
    /// target is forced.
    pub list: Vec<Config>,
    /// Whether the file has `target` lines, but none for this target. Its exact expectations apply
    /// to other machines.
    pub foreign: bool,
}

impl FileConfigs {
    /// Reads the configuration lines of a header. `pins` are settings of the command line, which
    /// override those of the file.
    pub fn read(
        header: &Header,
        forced: Option<&ForcedTarget>,
        pins: &[String],
        faults: &mut Vec<Diagnostic>,
    ) -> FileConfigs {
        let mut sets = Config::new();
        let mut list: Vec<Config> = Vec::new();
        let mut native = false;
        let mut any_target = false;
        let mut dangling: Option<&Word> = None;
        for line in &header.config {
            match line {
                ConfigLine::Set(words) => {
                    for word in words {
                        apply(&mut sets, word, forced.is_some(), faults);
                    }
                    dangling = words.first();
                }
                ConfigLine::Target { triple, options } => {
                    any_target = true;
                    dangling = None;
                    let ours = Triple::from_str(&triple.text).is_ok();
                    native |= ours;
                    if ours {
                        let mut config = sets.clone();
                        for word in options {
                            apply(&mut config, word, forced.is_some(), faults);
                        }
                        list.push(config);
                    } else if forced.is_some() {
                        // Options after the name of another target are features of that machine.
                        list.push(sets.clone());
                    } else if !is_of_cranelift(&triple.text) {
                        faults.push(
                            Diagnostic::new(
                                format!("unknown target `{}`", triple.text),
                                triple.span.clone(),
                                "neither this target nor one of Cranelift's",
                            )
                            .note(format!("this compiler makes code for `{TARGET}`")),
                        );
                    }
                }
            }
        }
        if let (Some(word), true, None) = (dangling, any_target, forced) {
            faults.push(Diagnostic::new(
                "this `set` has no effect",
                word.span.clone(),
                "no `target` line follows",
            ));
        }
        if !any_target {
            list.push(sets);
        }
        let mut all: Vec<Config> = Vec::new();
        for mut config in list {
            let settings = forced.iter().flat_map(|f| &f.settings).chain(pins);
            for setting in settings {
                if let Err(error) = config.set(setting) {
                    faults.push(Diagnostic::whole_file(error.to_string()));
                }
            }
            if !all.contains(&config) {
                all.push(config);
            }
        }
        FileConfigs {
            list: all,
            foreign: any_target && !native,
        }
    }
}

/// Returns whether a triple is a Cranelift target that occurs in filetests.
fn is_of_cranelift(triple: &str) -> bool {
    const OTHERS: [&str; 10] = [
        "aarch64",
        "arm64",
        "i686",
        "pulley32",
        "pulley32be",
        "pulley64",
        "pulley64be",
        "s390x",
        "x86_64",
        "x86_64h",
    ];
    let architecture = triple.split('-').next().unwrap_or_default();
    OTHERS.contains(&architecture) || architecture.starts_with("riscv64")
}

/// Applies a word of a `set` or `target` line.
fn apply(config: &mut Config, word: &Word, lenient: bool, faults: &mut Vec<Diagnostic>) {
    match config.set(&word.text) {
        Ok(()) => {}
        Err(SettingError::Unknown { .. }) if lenient => {}
        Err(error) => {
            faults.push(
                Diagnostic::new(error.to_string(), word.span.clone(), "").note("`clif-util isa` lists all settings"),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, forced: Option<&str>) -> (FileConfigs, Vec<Diagnostic>) {
        let mut faults = Vec::new();
        let header = Header::read(text, &mut faults);
        let forced = forced.map(|f| ForcedTarget::parse(f).unwrap());
        let configs = FileConfigs::read(&header, forced.as_ref(), &[], &mut faults);
        (configs, faults)
    }

    #[test]
    fn sets_are_cumulative_over_targets() {
        let (configs, faults) = read(
            "set opt_level=none\ntarget naplespu\nset opt_level=speed\ntarget naplespu strict_float=true\n",
            None,
        );
        assert!(faults.is_empty(), "{faults:?}");
        let all: Vec<String> = configs.list.iter().map(Config::to_string).collect();
        assert_eq!(all, ["opt_level=none", "opt_level=speed strict_float=true"]);
        assert!(!configs.foreign);
    }

    #[test]
    fn other_targets_count_only_when_forced() {
        let text = "set foo=1 opt_level=speed\ntarget x86_64 has_avx\ntarget aarch64\n";
        let (configs, faults) = read(text, None);
        assert_eq!((configs.list.len(), faults.len()), (0, 1));
        let (configs, faults) = read(text, Some("naplespu regalloc_checker=true"));
        assert!(faults.is_empty(), "{faults:?}");
        assert!(configs.foreign);
        let all: Vec<String> = configs.list.iter().map(Config::to_string).collect();
        assert_eq!(all, ["opt_level=speed regalloc_checker=true"]);
    }

    #[test]
    fn faults_are_found() {
        assert_eq!(read("target nonsense\n", None).1.len(), 1);
        assert_eq!(read("set opt_level=fast\n", None).1.len(), 1);
        assert_eq!(read("target naplespu\nset opt_level=none\n", None).1.len(), 1);
        assert!(ForcedTarget::parse("x86_64").is_err());
        assert!(ForcedTarget::parse("naplespu nonsense").is_err());
        assert!(ForcedTarget::parse("").is_err());
    }
}
