//! The target as an object: triple, flags, settings, and the door to the compiler.

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

/// The target's name. `target-lexicon` does not know the architecture, so this is a type of our own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Triple(());

/// The triple in full.
const FULL: &str = "naplespu-unknown-none-elf";

impl fmt::Display for Triple {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(FULL)
    }
}

/// A target that is not this one.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LookupError {
    /// The name or triple is another target's.
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

    /// Accepts `naplespu` alone, or followed by a vendor, system and format.
    fn from_str(text: &str) -> Result<Self, LookupError> {
        let arch = text.split('-').next().unwrap_or_default();
        if arch == "naplespu" && text.split('-').count() <= 4 {
            Ok(Self(()))
        } else {
            Err(LookupError::Unsupported(text.to_owned()))
        }
    }
}

/// A builder for the target, as `cranelift_codegen::isa::lookup` gives one. It cannot fail: every [`Triple`] is this target's.
pub fn lookup(triple: Triple) -> Builder {
    Builder {
        triple,
        settings: TargetSettings::default(),
    }
}

/// A builder for the target with this name or triple, as `cranelift_codegen::isa::lookup_by_name` gives one.
///
/// # Errors
///
/// [`LookupError`] if it is another target's.
pub fn lookup_by_name(name: &str) -> Result<Builder, LookupError> {
    name.parse().map(lookup)
}

/// Collects settings of the target.
#[derive(Clone, Debug)]
pub struct Builder {
    triple: Triple,
    settings: TargetSettings,
}

impl Builder {
    /// The target.
    pub fn triple(&self) -> Triple {
        self.triple
    }

    /// Sets a setting of the target from text. Shared flags go to [`cranelift_codegen::settings::Configurable`].
    ///
    /// # Errors
    ///
    /// [`SetError`] for an unknown name or a value that does not fit.
    pub fn set(&mut self, name: &str, value: &str) -> Result<&mut Self, SetError> {
        let setting = Setting::from_name(name).ok_or_else(|| SetError::UnknownName(name.to_owned()))?;
        self.settings.set(setting, value)?;
        Ok(self)
    }

    /// Switches a setting on.
    ///
    /// # Errors
    ///
    /// [`SetError`] if there is no such setting or it is not a switch.
    pub fn enable(&mut self, name: &str) -> Result<&mut Self, SetError> {
        self.set(name, "true")
    }

    /// The target with these settings and the shared flags.
    ///
    /// # Errors
    ///
    /// None today. The result is Cranelift's, and leaves room for settings that contradict one another.
    pub fn finish(&self, flags: Flags) -> CodegenResult<Arc<Isa>> {
        Ok(Arc::new(Isa::new(
            self.triple,
            flags,
            self.settings.clone(),
            Mode::Program,
        )))
    }
}

/// What is compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// Functions of a program.
    Program,
    /// Routines of the runtime. They stay as they are written: they compute ahead of a branch what both ways or the likely way
    /// want, so that it is under way when the branch waits, and simplification would move it to where it is used. They are
    /// scheduled before registers are allocated, as they have few; other functions have more registers, but also values that
    /// live long, which this would make spill.
    Runtime,
}

impl Mode {
    /// The passes that this is worth.
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
            Pass::Versioning | Pass::Vectorize | Pass::Unroll => {
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
    /// The flags with the verifier off, for Cranelift's passes, which do not know what ours knows.
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

    /// Whether it compiles routines of the runtime.
    pub(crate) fn is_for_runtime(&self) -> bool {
        self.mode == Mode::Runtime
    }

    /// The target's name.
    pub fn name(&self) -> &'static str {
        "naplespu"
    }

    /// The target.
    pub fn triple(&self) -> Triple {
        self.triple
    }

    /// The shared flags.
    pub fn flags(&self) -> &Flags {
        &self.flags
    }

    /// The target's own settings.
    pub fn settings(&self) -> &TargetSettings {
        &self.settings
    }

    /// The target as the runtime is compiled for: its routines are worth optimizing whatever the program asks for.
    pub fn for_runtime(&self) -> Self {
        let flags = with_flag(&self.flags, "opt_level", "speed");
        // What the program's atomic operations become makes no difference to the runtime's, which are plain accesses.
        let settings = TargetSettings {
            atomics: TargetSettings::default().atomics,
            ..self.settings.clone()
        };
        Self {
            cache: self.cache.clone(),
            ..Self::new(self.triple, flags, settings, Mode::Runtime)
        }
    }

    /// The target with a cache: what is compiled for it, by whatever compiler or module, is looked for there first.
    #[must_use]
    pub fn with_cache(&self, cache: Arc<dyn CodeCache>) -> Self {
        Self {
            cache: Some(cache),
            ..self.clone()
        }
    }

    /// Its cache.
    pub(crate) fn cache(&self) -> Option<&dyn CodeCache> {
        self.cache.as_deref()
    }

    /// All that changes the code of a function, as text: shared flags, settings of the target, passes, and whether routines of the
    /// runtime are compiled. Two targets with equal texts give equal code.
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

    /// The target without a pass.
    #[must_use]
    pub fn without_pass(&self, pass: Pass) -> Self {
        let mut isa = self.clone();
        isa.passes = isa.passes.without(pass);
        isa
    }

    /// Whether the pass is part of the pipeline.
    pub fn runs(&self, pass: Pass) -> bool {
        self.passes.contains(pass)
    }

    /// The shared flags with the verifier off.
    pub(crate) fn quiet_flags(&self) -> &Flags {
        &self.quiet
    }

    /// Whether the machine is taken to have the erratum, so that code works around it.
    pub fn has_erratum(&self, erratum: Erratum) -> bool {
        self.settings.works_around(erratum)
    }

    /// What `cranelift-frontend` wants to know: 32-bit addresses, `system_v`, and no pages, for which a cache line stands.
    pub fn frontend_config(&self) -> TargetFrontendConfig {
        TargetFrontendConfig {
            default_call_conv: CallConv::SystemV,
            pointer_width: PointerWidth::U32,
            page_size_align_log2: const { CACHE_LINE.trailing_zeros() as u8 },
        }
    }
}
