//! Shader modules.

use crate::error::{Error, Result, label, named};
use crate::shared::Shared;
use naplespu_shader::Module;
use std::future::ready;
use std::pin::Pin;
use std::sync::Arc;
use wgpu::custom::{ShaderCompilationInfoFuture, ShaderModuleInterface};
use wgpu::{
    CompilationInfo, CompilationMessage, CompilationMessageType, ShaderModuleDescriptor, ShaderSource, SourceLocation,
};

/// A shader module.
#[derive(Debug)]
pub(crate) struct ShaderModule {
    shared: Arc<Shared>,
    label: String,
    text: Option<String>,
    /// The module, or the messages about its errors.
    parsed: Result<Module, Vec<CompilationMessage>>,
}

/// A parsed source, and its text for messages.
type Parsed = (Option<String>, Result<Module, naplespu_shader::Error>);

/// Parses a source, or returns the name of its language.
fn parse(source: &ShaderSource<'_>) -> Result<Parsed, &'static str> {
    match source {
        ShaderSource::Wgsl(text) => Ok((Some(text.to_string()), Module::from_wgsl(text))),
        ShaderSource::Glsl { shader, stage, defines } => match stage {
            wgpu::naga::ShaderStage::Compute => Ok((Some(shader.to_string()), Module::from_glsl_with(shader, defines))),
            _ => Err("a shader for another stage than compute"),
        },
        ShaderSource::SpirV(words) => {
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            Ok((None, Module::from_spirv(&bytes)))
        }
        _ => Err("a shader in another form than WGSL, GLSL or SPIR-V"),
    }
}

impl ShaderModule {
    /// Creates a module. If that fails, the module is invalid, and the error is reported.
    pub(crate) fn create(shared: &Arc<Shared>, desc: &ShaderModuleDescriptor<'_>) -> Self {
        let (text, parsed) = match parse(&desc.source) {
            Ok((text, Ok(module))) => (text, Ok(module)),
            Ok((text, Err(error))) => {
                let messages = messages(&error, text.as_deref());
                let rendered = rendered(&error, desc.label, text.as_deref());
                shared.report("Device::create_shader_module", rendered);
                (text, Err(messages))
            }
            Err(what) => {
                let error = Error::Unsupported(what);
                let messages = vec![message(error.to_string(), None)];
                shared.report("Device::create_shader_module", error);
                (None, Err(messages))
            }
        };
        Self {
            shared: Arc::clone(shared),
            label: label(desc.label),
            text,
            parsed,
        }
    }

    /// Returns a module that no pipeline can have.
    pub(crate) fn invalid(shared: &Arc<Shared>) -> Self {
        Self {
            shared: Arc::clone(shared),
            label: String::new(),
            text: None,
            parsed: Err(Vec::new()),
        }
    }

    /// Returns the module of a handle.
    pub(crate) fn of<'m>(shared: &Arc<Shared>, module: &'m wgpu::ShaderModule) -> Result<(&'m Self, &'m Module)> {
        let module = module.as_custom::<Self>();
        let Some(module) = module.filter(|module| Arc::ptr_eq(&module.shared, shared)) else {
            return Err(Error::OtherDevice("the shader module".to_owned()));
        };
        match &module.parsed {
            Ok(parsed) => Ok((module, parsed)),
            Err(_) => Err(Error::Invalid(named("shader module", &module.label))),
        }
    }

    /// Returns an error of the translation with its lines.
    pub(crate) fn error(&self, error: &naplespu_shader::Error) -> Error {
        let label = Some(&*self.label).filter(|label| !label.is_empty());
        rendered(error, label, self.text.as_deref())
    }
}

fn rendered(error: &naplespu_shader::Error, label: Option<&str>, text: Option<&str>) -> Error {
    let rendered = error.render(label.unwrap_or("shader"), text);
    Error::Shader(rendered.trim_end().to_owned())
}

fn message(message: String, location: Option<SourceLocation>) -> CompilationMessage {
    CompilationMessage {
        message,
        message_type: CompilationMessageType::Error,
        location,
    }
}

/// Returns one message for each place of an error.
fn messages(error: &naplespu_shader::Error, text: Option<&str>) -> Vec<CompilationMessage> {
    let locations: Vec<SourceLocation> = match text {
        Some(text) => error.spans().iter().filter_map(|span| location(text, span)).collect(),
        None => Vec::new(),
    };
    match &locations[..] {
        [] => vec![message(error.to_string(), None)],
        _ => locations
            .into_iter()
            .map(|location| message(error.to_string(), Some(location)))
            .collect(),
    }
}

/// Returns the lines and columns of a range of bytes.
fn location(text: &str, span: &std::ops::Range<usize>) -> Option<SourceLocation> {
    let before = text.get(..span.start)?;
    let line_start = before.rfind('\n').map_or(0, |end| end + 1);
    let number = |value: usize| u32::try_from(value).unwrap_or(u32::MAX);
    Some(SourceLocation {
        line_number: number(before.matches('\n').count() + 1),
        line_position: number(span.start - line_start + 1),
        offset: number(span.start),
        length: number(span.len()),
    })
}

impl ShaderModuleInterface for ShaderModule {
    fn get_compilation_info(&self) -> Pin<Box<dyn ShaderCompilationInfoFuture>> {
        let messages = match &self.parsed {
            Ok(_) => Vec::new(),
            Err(messages) => messages.clone(),
        };
        Box::pin(ready(CompilationInfo { messages }))
    }
}
