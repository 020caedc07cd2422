//! Generates Rust source of the settings: a generated module of the compiler.

use super::line;
use crate::load::pascal;
use crate::model::{Erratum, Setting, SettingKind, Target};

/// Generates the settings of the compiler: an enum of their names, the enums of their values, and
/// the struct of all values.
///
/// The source refers to `npu_mc::errata::Erratum`, and to `SettingInfo`, `SetError`, `parse_bool`
/// and `parse_number` of the module that includes it.
pub fn emit_settings(target: &Target) -> String {
    let mut out = String::new();
    line!(out, "// Made from the settings and errata of td/ by tdgen.");
    for setting in &target.settings {
        if let SettingKind::Enum { default, others } = &setting.kind {
            value_enum(setting, default, others, &mut out);
        }
    }
    let all: Vec<One> = target
        .settings
        .iter()
        .map(One::of_setting)
        .chain(target.errata.iter().filter(|e| e.is_setting).map(One::of_erratum))
        .collect();
    names(&all, &mut out);
    values(&all, target, &mut out);
    out
}

/// A setting, with Rust source for the parts that differ between kinds.
struct One {
    name: String,
    summary: String,
    rust_type: String,
    /// The default, as an expression and as setting text.
    default: String,
    default_text: String,
    /// A readable description of the values.
    values: String,
    /// An expression of type `Result` that parses the text `value`.
    parse: String,
}

impl One {
    fn variant(&self) -> String {
        pascal(&self.name)
    }

    fn of_setting(setting: &Setting) -> One {
        match &setting.kind {
            SettingKind::Bool { default } => One::of_bool(&setting.name, &setting.summary, *default),
            SettingKind::Number { min, max, default } => One {
                name: setting.name.clone(),
                summary: setting.summary.clone(),
                rust_type: "u32".to_owned(),
                default: default.to_string(),
                default_text: default.to_string(),
                values: format!("{min} to {max}"),
                parse: format!("parse_number(setting, value, {min}..={max})"),
            },
            SettingKind::Enum { default, others } => {
                let name = pascal(&setting.name);
                let texts: Vec<&str> = std::iter::once(default)
                    .chain(others)
                    .map(|(text, _)| text.as_str())
                    .collect();
                One {
                    name: setting.name.clone(),
                    summary: setting.summary.clone(),
                    default: format!("{name}::{}", pascal(&default.0)),
                    default_text: default.0.clone(),
                    values: texts.join(", "),
                    parse: format!("{name}::from_name(value).ok_or_else(|| SetError::bad_value(setting, value))"),
                    rust_type: name,
                }
            }
        }
    }

    fn of_bool(name: &str, summary: &str, default: bool) -> One {
        One {
            name: name.to_owned(),
            summary: summary.to_owned(),
            rust_type: "bool".to_owned(),
            default: default.to_string(),
            default_text: default.to_string(),
            values: "true, false".to_owned(),
            parse: "parse_bool(setting, value)".to_owned(),
        }
    }

    fn of_erratum(erratum: &Erratum) -> One {
        let name = format!("erratum_{}", erratum.name);
        One::of_bool(&name, &format!("work around: {}", erratum.summary), true)
    }
}

fn value_enum(setting: &Setting, default: &(String, String), others: &[(String, String)], out: &mut String) {
    let name = pascal(&setting.name);
    let values = || std::iter::once(default).chain(others);
    line!(out, "\n/// The values of the setting `{}`.", setting.name);
    line!(out, "#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]");
    line!(out, "pub enum {name} {{");
    for (text, summary) in values() {
        line!(out, "    /// `{text}`: {summary}");
        line!(out, "    {},", pascal(text));
    }
    line!(out, "}}\nimpl {name} {{");
    line!(out, "    /// The value of this name.");
    line!(out, "    fn from_name(name: &str) -> Option<{name}> {{");
    line!(out, "        Some(match name {{");
    for (text, _) in values() {
        line!(out, "            {text:?} => {name}::{},", pascal(text));
    }
    line!(out, "            _ => return None,\n        }})\n    }}\n}}");
}

/// Generates the enum of the settings.
fn names(all: &[One], out: &mut String) {
    line!(out, "\n/// The settings of the target.");
    line!(
        out,
        "#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]"
    );
    line!(out, "pub enum Setting {{");
    for one in all {
        line!(out, "    /// `{}`: {}", one.name, one.summary);
        line!(out, "    {},", one.variant());
    }
    line!(out, "}}\nimpl Setting {{");
    let list: Vec<String> = all.iter().map(|one| format!("Setting::{}", one.variant())).collect();
    line!(out, "    /// All settings in td's order, those of errata last.");
    line!(out, "    pub const ALL: &'static [Setting] = &[{}];", list.join(", "));
    line!(out, "    /// Name, description, default and values of the setting.");
    line!(out, "    pub const fn info(self) -> &'static SettingInfo {{");
    line!(out, "        match self {{");
    for one in all {
        line!(
            out,
            "            Setting::{} => &SettingInfo {{ name: {:?}, description: {:?}, default: {:?}, values: {:?} }},",
            one.variant(),
            one.name,
            one.summary,
            one.default_text,
            one.values
        );
    }
    line!(out, "        }}\n    }}");
    line!(out, "    /// The setting of this name.");
    line!(out, "    pub fn from_name(name: &str) -> Option<Setting> {{");
    line!(out, "        Some(match name {{");
    for one in all {
        line!(out, "            {:?} => Setting::{},", one.name, one.variant());
    }
    line!(out, "            _ => return None,\n        }})\n    }}\n}}");
}

/// Generates the struct with all values.
fn values(all: &[One], target: &Target, out: &mut String) {
    line!(out, "\n/// Values of all settings of the target.");
    line!(out, "#[derive(Clone, Debug, PartialEq, Eq, Hash)]");
    line!(out, "#[non_exhaustive]");
    line!(out, "pub struct TargetSettings {{");
    for one in all {
        line!(out, "    /// {}", one.summary);
        line!(out, "    pub {}: {},", one.name, one.rust_type);
    }
    line!(out, "}}\nimpl Default for TargetSettings {{");
    line!(out, "    fn default() -> Self {{\n        Self {{");
    for one in all {
        line!(out, "            {}: {},", one.name, one.default);
    }
    line!(out, "        }}\n    }}\n}}\nimpl TargetSettings {{");
    line!(out, "    /// Sets one setting from text.");
    line!(out, "    ///\n    /// # Errors\n    ///");
    line!(out, "    /// [`SetError`] for a value that does not fit.");
    line!(
        out,
        "    pub fn set(&mut self, setting: Setting, value: &str) -> Result<(), SetError> {{"
    );
    line!(out, "        match setting {{");
    for one in all {
        line!(
            out,
            "            Setting::{} => self.{} = {}?,",
            one.variant(),
            one.name,
            one.parse
        );
    }
    line!(out, "        }}\n        Ok(())\n    }}");
    line!(
        out,
        "    /// Whether code works around the erratum. Errata without a setting always are: registers and instructions that meet them"
    );
    line!(out, "    /// are not used.");
    line!(out, "    pub const fn works_around(&self, erratum: Erratum) -> bool {{");
    line!(out, "        match erratum {{");
    for erratum in &target.errata {
        let value = if erratum.is_setting {
            format!("self.erratum_{}", erratum.name)
        } else {
            "true".to_owned()
        };
        line!(out, "            Erratum::{} => {value},", pascal(&erratum.name));
    }
    line!(out, "        }}\n    }}\n}}");
}
