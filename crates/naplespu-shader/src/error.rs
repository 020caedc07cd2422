//! Errors of parsing and translation, as data. [`Error::render`] makes text of them.

use naga::back::pipeline_constants::PipelineConstantError;
use naga::front::{glsl, spv, wgsl};
use naga::valid::ValidationError;
use naga::{Span, WithSpan};

/// The reason why a shader was not translated.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The WGSL text is malformed.
    #[error("{0}")]
    Wgsl(wgsl::ParseError),
    /// The GLSL text is malformed.
    #[error("{0}")]
    Glsl(glsl::ParseErrors),
    /// The SPIR-V module is malformed.
    #[error("{0}")]
    Spirv(spv::Error),
    /// The module is not valid.
    #[error("{0}")]
    Invalid(Box<WithSpan<ValidationError>>),
    /// An override is unknown, has no value, or its value does not fit.
    #[error("{0}")]
    Override(Box<PipelineConstantError>),
    /// The module is valid, but uses a feature without a translation.
    #[error("{0}")]
    Unsupported(WithSpan<Unsupported>),
    /// The module has no compute entry point with this name.
    #[error("no compute entry point `{name}`; the module has {}", list(.found))]
    NoEntryPoint {
        /// The requested name.
        name: String,
        /// The names of the compute entry points.
        found: Vec<String>,
    },
    /// The module has several compute entry points, and none was named.
    #[error("name one of the entry points {}", list(.found))]
    AmbiguousEntryPoint {
        /// The names of the compute entry points.
        found: Vec<String>,
    },
    /// The lanes of a subgroup are not 1, 16, 32, 64 or 128.
    #[error("{0} lanes: a subgroup has 1, 16, 32, 64 or 128 lanes")]
    Lanes(u32),
    /// A function with pointers to buffers or workgroup memory as arguments is not valid. The validator
    /// did not see it.
    #[error("a function with pointers to buffers as arguments is not valid: {0}")]
    Pointers(String),
    /// The parser or the validator of naga panicked. The message is that of the panic.
    #[error("the shader front end failed: {0}")]
    FrontEnd(String),
    /// The translation is not valid CLIF, which is a bug in this crate.
    #[error("internal error: {0}")]
    Internal(String),
}

/// A feature or size without a translation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unsupported {
    /// A feature of the shader language.
    #[error("{0} is not supported on naplespu")]
    Feature(String),
    /// A size above a limit.
    #[error("too large: {what} has {size} {unit}, at most {limit} are possible")]
    TooLarge {
        /// The object.
        what: String,
        /// Its size.
        size: u64,
        /// The limit.
        limit: u64,
        /// The unit of both.
        unit: &'static str,
    },
}

fn list(names: &[String]) -> String {
    match names {
        [] => "none".to_owned(),
        _ => names.join(", "),
    }
}

impl Error {
    /// Returns the error for a feature without a translation.
    pub(crate) fn feature(what: impl Into<String>, span: Span) -> Self {
        Self::refused(Unsupported::Feature(what.into()), span)
    }

    /// Returns the error for an object above a limit.
    pub(crate) fn refused(refused: Unsupported, span: Span) -> Self {
        Self::Unsupported(WithSpan::new(refused).with_span(span, "here"))
    }

    /// Returns the byte ranges in the source that the error is about. Those of SPIR-V are offsets
    /// in the binary.
    pub fn spans(&self) -> Vec<std::ops::Range<usize>> {
        let spans: Vec<Span> = match self {
            Self::Wgsl(error) => error.labels().map(|(span, _)| span).collect(),
            Self::Glsl(errors) => errors.errors.iter().map(|error| error.meta).collect(),
            Self::Invalid(error) => error.spans().map(|(span, _)| *span).collect(),
            Self::Unsupported(error) => error.spans().map(|(span, _)| *span).collect(),
            Self::Override(error) => match &**error {
                PipelineConstantError::ValidationError(error) => error.spans().map(|(span, _)| *span).collect(),
                _ => Vec::new(),
            },
            _ => Vec::new(),
        };
        spans.into_iter().filter_map(Span::to_range).collect()
    }

    /// Renders the error with the lines of its source. `source` is the text of the shader, or
    /// `None` for SPIR-V.
    pub fn render(&self, path: &str, source: Option<&str>) -> String {
        let Some(source) = source else {
            let place = self
                .spans()
                .first()
                .map(|span| format!("at offset {:#x}: ", span.start));
            return format!("error: {path}: {}{self}{}\n", place.unwrap_or_default(), self.causes());
        };
        // Places in definitions that follow the text.
        if self.spans().iter().any(|span| span.end > source.len()) {
            return format!("error: {path}: {self}{}\n", self.causes());
        }
        match self {
            Self::Wgsl(error) => error.emit_to_string_with_path(source, path),
            Self::Glsl(errors) => errors.emit_to_string_with_path(source, path),
            Self::Invalid(error) => error.emit_to_string_with_path(source, path),
            Self::Unsupported(error) => error.emit_to_string_with_path(source, path),
            Self::Override(error) => match &**error {
                PipelineConstantError::ValidationError(error) => error.emit_to_string_with_path(source, path),
                error => format!("error: {path}: {error}\n"),
            },
            _ => format!("error: {path}: {self}\n"),
        }
    }

    /// Returns the causes of a validation error, one line each.
    fn causes(&self) -> String {
        let Self::Invalid(error) = self else {
            return String::new();
        };
        let mut text = String::new();
        let mut cause = std::error::Error::source(&**error);
        while let Some(error) = cause {
            text.push_str("\n  ");
            text.push_str(&error.to_string());
            cause = error.source();
        }
        text
    }
}

/// The result of a fallible function of this crate.
pub type Result<T> = std::result::Result<T, Error>;
