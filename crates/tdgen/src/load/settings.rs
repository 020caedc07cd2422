//! Loads the settings of the compiler.

use super::{Loader, fault, field_span, identifier, int_in, pascal};
use crate::model::{Setting, SettingKind};
use std::collections::HashSet;
use tablegen::{Diagnostic, Record};

impl Loader<'_> {
    pub(super) fn settings(&mut self) {
        self.each("Setting", |loader, record| {
            loader.target.settings.push(setting(record)?);
            Ok(())
        });
        let mut seen = HashSet::new();
        let settings = self.target.settings.iter().map(|one| (pascal(&one.name), one.span));
        let errata = self.target.errata.iter().filter(|one| one.is_setting);
        let errata = errata.map(|one| (pascal(&format!("erratum_{}", one.name)), one.span));
        let faults: Vec<Diagnostic> = settings
            .chain(errata)
            .filter(|(name, _)| !seen.insert(name.clone()))
            .map(|(name, span)| fault(span, format!("two settings have the name `{name}`")))
            .collect();
        self.faults.extend(faults);
    }
}

fn setting(record: Record<'_>) -> Result<Setting, Diagnostic> {
    Ok(Setting {
        name: name(record)?,
        summary: sentence(record)?,
        kind: kind(record)?,
        span: record.span(),
    })
}

fn kind(record: Record<'_>) -> Result<SettingKind, Diagnostic> {
    if record.is_a("BoolSetting") {
        Ok(SettingKind::Bool {
            default: record.bit("Default")?,
        })
    } else if record.is_a("NumberSetting") {
        let min = int_in(record, "Min", 0..=0xFFFF_FFFF)?;
        let max = int_in(record, "Max", min..=0xFFFF_FFFF)?;
        Ok(SettingKind::Number {
            min: min as u32,
            max: max as u32,
            default: int_in(record, "Default", min..=max)? as u32,
        })
    } else if record.is_a("EnumSetting") {
        let mut values: Vec<(String, String)> = Vec::new();
        for value in record.list_of_defs("Values")? {
            let name = name(value)?;
            if values.iter().any(|(other, _)| pascal(other) == pascal(&name)) {
                return Err(fault(
                    field_span(record, "Values"),
                    format!("`{}` has the value `{name}` twice", record.name()),
                ));
            }
            values.push((name, sentence(value)?));
        }
        let mut values = values.into_iter();
        let Some(default) = values.next() else {
            return Err(fault(
                field_span(record, "Values"),
                format!("`{}` has no values", record.name()),
            ));
        };
        Ok(SettingKind::Enum {
            default,
            others: values.collect(),
        })
    } else {
        Err(fault(
            record.span(),
            format!(
                "`{}` is neither a `BoolSetting` nor a `NumberSetting` nor an `EnumSetting`",
                record.name()
            ),
        ))
    }
}

/// Reads a name that becomes a field and a variant.
fn name(record: Record<'_>) -> Result<String, Diagnostic> {
    let name = record.string("Name")?;
    identifier(name, field_span(record, "Name"))?;
    identifier(&pascal(name), field_span(record, "Name"))?;
    Ok(name.to_owned())
}

fn sentence(record: Record<'_>) -> Result<String, Diagnostic> {
    let text = record.string("Summary")?;
    if text.is_empty() || text.contains(['\n', '\r']) {
        return Err(fault(
            field_span(record, "Summary"),
            format!("`Summary` of `{}` has to be one line", record.name()),
        ));
    }
    Ok(text.to_owned())
}
