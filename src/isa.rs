//! The target: triple, flags, settings, and the entry point to the compiler.

use crate::cache::CodeCache;
use crate::passes::{Pass, Passes};
use crate::settings::{SetError, Setting, TargetSettings, with_flag};
use cranelift_codegen::CodegenResult;
use cranelift_codegen::isa::{CallConv, TargetFrontendConfig};
use cranelift_codegen::settings::{Flags, OptLevel};
use npu_mc::errata::Erratum;
use npu_mc::machine::CACHE_LINE;
use std::fmt;
use std::sync::Arc;
use target_lexicon::PointerWidth;

/// The target triple. `target-lexicon` does not contain the architecture, so this is a separate
/// type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Triple(());

/// The full triple.
const FULL: &str = "naplespu-unknown-none-elf";

impl fmt::Display for Triple {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(FULL)
    }
}

/// The error for a name or triple of another target.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LookupError {
    /// The name or triple of another target.
    Unsupported(String),
}

impl std::error::Error for LookupError {}

impl fmt::Display for LookupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::Unsupported(name) = self;
        write!(f, "unknown target `{name}`: this compiler is for `naplespu`")
    }
}

impl std::str::FromStr for Triple {
    type Err = LookupError;

    /// Accepts `naplespu` alone, or followed by vendor, system and format.
    fn from_str(text: &str) -> Result<Self, LookupError> {
        let arch = text.split('-').next().unwrap_or_default();
        if arch == "naplespu" && text.split('-').count() <= 4 {
            Ok(Self(()))
        } else {
            Err(LookupError::Unsupported(text.to_owned()))
        }
    }
}

/// Returns a builder for the target, like `cranelift_codegen::isa::lookup`. This cannot fail: every
/// [`Triple`] belongs to this target.
pub fn lookup(triple: Triple) -> Builder {
    Builder {
        triple,
        settings: TargetSettings::default(),
    }
}

/// Returns a builder for the target with this name or triple, like
/// `cranelift_codegen::isa::lookup_by_name`.
///
/// # Errors
///
/// Returns [`LookupError`] if it is the name of another target.
pub fn lookup_by_name(name: &str) -> Result<Builder, LookupError> {
    name.parse().map(lookup)
}

/// A builder that collects the settings of the target.
#[derive(Clone, Debug)]
pub struct Builder {
    triple: Triple,
    settings: TargetSettings,
}

impl Builder {
    /// Returns the target triple.
    pub fn triple(&self) -> Triple {
        self.triple
    }

    /// Sets a setting of the target from text. Shared flags are set with
    /// [`cranelift_codegen::settings::Configurable`].
    ///
    /// # Errors
    ///
    /// Returns [`SetError`] for an unknown name or an invalid value.
    pub fn set(&mut self, name: &str, value: &str) -> Result<&mut Self, SetError> {
        let setting = Setting::from_name(name).ok_or_else(|| SetError::UnknownName(name.to_owned()))?;
        self.settings.set(setting, value)?;
        Ok(self)
    }

    /// Switches a setting on.
    ///
    /// # Errors
    ///
    /// Returns [`SetError`] if the setting does not exist or is not a boolean.
    pub fn enable(&mut self, name: &str) -> Result<&mut Self, SetError> {
        self.set(name, "true")
    }

    /// Builds the target from these settings and the shared flags.
    ///
    /// # Errors
    ///
    /// Currently none. The result type is Cranelift's, and would allow an error for contradictory
    /// settings.
    pub fn finish(&self, flags: Flags) -> CodegenResult<Arc<Isa>> {
        Ok(Arc::new(Isa::new(
            self.triple,
            flags,
            self.settings.clone(),
            Mode::Program,
        )))
    }
}

/// The kind of functions that are compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// Functions of a program.
    Program,
    /// Runtime routines. They are compiled as written: they compute the operands of both sides or
    /// of the likely side before a branch, so that the latency overlaps with the branch.
    /// Simplification would sink these computations to their uses. Routines are scheduled before
    /// register allocation, because they may use few registers. Other functions have more
    /// registers, but also long live ranges, which this scheduling would spill.
    Runtime,
}

impl Mode {
    /// Returns the passes that run in this mode.
    fn passes(self, flags: &Flags) -> Passes {
        let optimized = flags.opt_level() != OptLevel::None;
        let worth = |pass: &Pass| match pass {
            Pass::Dce => true,
            Pass::Egraph
            | Pass::Compares
            | Pass::Bits
            | Pass::Reassociation
            | Pass::Selects
            | Pass::Simplify
            | Pass::Licm
            | Pass::StrengthReduction
            | Pass::IvIncrements
            | Pass::LoopExits => optimized && self == Self::Program,
            Pass::Inline | Pass::Versioning | Pass::Vectorize | Pass::Unroll => {
                flags.opt_level() == OptLevel::Speed && self == Self::Program
            }
            Pass::Presched => optimized && self == Self::Runtime,
            _ => optimized,
        };
        Pass::ALL.iter().copied().filter(worth).collect()
    }
}

/// The NaplesPU target.
#[derive(Clone)]
pub struct Isa {
    triple: Triple,
    flags: Flags,
    /// The flags with the verifier off, for Cranelift's passes: Cranelift's verifier rejects
    /// instructions that `opt::verify` accepts.
    quiet: Flags,
    settings: TargetSettings,
    mode: Mode,
    passes: Passes,
    cache: Option<Arc<dyn CodeCache>>,
}

impl fmt::Debug for Isa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let flags = self.flags.to_string();
        f.debug_struct("Isa")
            .field("triple", &self.triple)
            .field("flags", &flags)
            .field("settings", &self.settings)
            .finish()
    }
}

impl Isa {
    fn new(triple: Triple, flags: Flags, settings: TargetSettings, mode: Mode) -> Self {
        Self {
            triple,
            quiet: with_flag(&flags, "enable_verifier", "false"),
            passes: mode.passes(&flags),
            flags,
            settings,
            mode,
            cache: None,
        }
    }

    /// Returns whether the target compiles runtime routines.
    pub(crate) fn is_for_runtime(&self) -> bool {
        self.mode == Mode::Runtime
    }

    /// Returns the target's name.
    pub fn name(&self) -> &'static str {
        "naplespu"
    }

    /// Returns the target triple.
    pub fn triple(&self) -> Triple {
        self.triple
    }

    /// Returns the shared flags.
    pub fn flags(&self) -> &Flags {
        &self.flags
    }

    /// Returns the settings of this target.
    pub fn settings(&self) -> &TargetSettings {
        &self.settings
    }

    /// Returns the target for the compilation of the runtime. Routines are always optimized,
    /// whatever flags the program uses.
    pub fn for_runtime(&self) -> Self {
        let flags = with_flag(&self.flags, "opt_level", "speed");
        // The setting for the program's atomic operations does not affect the runtime, which uses
        // plain accesses.
        let settings = TargetSettings {
            atomics: TargetSettings::default().atomics,
            ..self.settings.clone()
        };
        Self {
            cache: self.cache.clone(),
            ..Self::new(self.triple, flags, settings, Mode::Runtime)
        }
    }

    /// Returns the target with a cache. Every compiler and module for this target searches the
    /// cache before it compiles.
    #[must_use]
    pub fn with_cache(&self, cache: Arc<dyn CodeCache>) -> Self {
        Self {
            cache: Some(cache),
            ..self.clone()
        }
    }

    /// Returns the cache, if the target has one.
    pub(crate) fn cache(&self) -> Option<&dyn CodeCache> {
        self.cache.as_deref()
    }

    /// Returns a text of everything that affects the code of a function: shared flags, settings of
    /// the target, passes, and whether it is a runtime routine. Two targets with equal texts
    /// produce equal code.
    pub fn code_settings(&self) -> String {
        let passes: Vec<&str> = Pass::ALL
            .iter()
            .filter(|pass| self.runs(**pass))
            .map(|pass| pass.name())
            .collect();
        format!(
            "{}\n{}\n{:?}\n{:?}\n{}\n",
            self.triple,
            self.flags,
            self.settings,
            self.mode,
            passes.join(" ")
        )
    }

    /// Returns the target without a pass.
    #[must_use]
    pub fn without_pass(&self, pass: Pass) -> Self {
        let mut isa = self.clone();
        isa.passes = isa.passes.without(pass);
        isa
    }

    /// Returns whether the pass is part of the pipeline.
    pub fn runs(&self, pass: Pass) -> bool {
        self.passes.contains(pass)
    }

    /// Returns the shared flags with the verifier off.
    pub(crate) fn quiet_flags(&self) -> &Flags {
        &self.quiet
    }

    /// Returns whether the code must work around the erratum.
    pub fn has_erratum(&self, erratum: Erratum) -> bool {
        self.settings.works_around(erratum)
    }

    /// Returns the configuration for `cranelift-frontend`: 32-bit addresses and `system_v`. The
    /// machine has no pages; the page size is that of a cache line.
    pub fn frontend_config(&self) -> TargetFrontendConfig {
        TargetFrontendConfig {
            default_call_conv: CallConv::SystemV,
            pointer_width: PointerWidth::U32,
            page_size_align_log2: const { CACHE_LINE.trailing_zeros() as u8 },
        }
    }
}
