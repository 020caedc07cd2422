//! What can go wrong between a module and the results of a call.

use cranelift_codegen::ir::{self, SourceLoc, TrapCode, Type};
use cranelift_module::ModuleError;
use cranelift_naplespu::CompileError;
use npu_link::MAX_ALIGN;
use npu_mc::Reg;
use std::fmt;

/// Why a function was not added to a module.
#[derive(Debug)]
pub enum DefineError {
    /// It did not compile.
    Compile(CompileError),
    /// The module cannot take it: not declared, defined before, an import, no room.
    Module(Box<ModuleError>),
}

impl DefineError {
    /// Whether this is a refusal of a construct, as opposed to invalid input or a failure.
    pub fn is_refusal(&self) -> bool {
        matches!(self, Self::Compile(error) if error.is_refusal())
    }
}

impl std::error::Error for DefineError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(match self {
            Self::Compile(error) => error,
            Self::Module(error) => &**error,
        })
    }
}

impl fmt::Display for DefineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Compile(error) => error.fmt(f),
            Self::Module(error) => error.fmt(f),
        }
    }
}

impl From<CompileError> for DefineError {
    fn from(error: CompileError) -> Self {
        Self::Compile(error)
    }
}

impl From<ModuleError> for DefineError {
    fn from(error: ModuleError) -> Self {
        Self::Module(Box::new(error))
    }
}

impl From<DefineError> for ModuleError {
    /// Errors that Cranelift has a variant for become that; the others are found in `ModuleError::Backend`.
    fn from(error: DefineError) -> Self {
        match error {
            DefineError::Module(error) => *error,
            DefineError::Compile(error @ CompileError::Verifier(_)) => Self::Compilation(error.into()),
            DefineError::Compile(error) if error.is_refusal() => Self::Compilation(error.into()),
            DefineError::Compile(error) => Self::Backend(error.into()),
        }
    }
}

/// Why a definition, or what it refers to, does not fit into the module. Errors of the trait have it in `ModuleError::Backend`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkError {
    /// Symbols that are referred to and not there, each with the name of one that refers to it.
    Undefined(Vec<(String, String)>),
    /// Thread-local data in the scratchpad.
    ThreadLocal(String),
    /// A data object without contents.
    NoContents(String),
    /// An alignment that is not a power of two, or larger than the module can give.
    Alignment {
        /// The function or data object.
        name: String,
        /// What was asked for.
        align: u64,
    },
    /// A relocation outside of the object it stands in.
    OutOfBounds {
        /// The function or data object.
        name: String,
        /// Where the relocation is.
        offset: u32,
    },
    /// A function of the host with an argument or result of a type that the host has no value for.
    HostType(String, Type),
    /// A kind of relocation that means nothing here.
    Relocation {
        /// The function or data object.
        name: String,
        /// The kind, as Cranelift names it.
        kind: String,
    },
    /// A call that reaches neither its function nor a veneer.
    OutOfReach {
        /// The function that calls.
        name: String,
        /// The relocation that does not fit.
        reason: String,
    },
    /// Code, data or buffers do not fit into the device's memory.
    MemoryFull(String),
    /// Something is to be freed at an address that nothing was allocated at.
    NotAllocated(u32),
    /// A function or data object is to be freed that is not defined.
    NotDefined(String),
    /// `cranelift-codegen` comes without the target that the trait `Module` shows.
    NoStandIn(String),
    /// A fault of this crate or of the linker.
    Internal(String),
}

impl std::error::Error for LinkError {}

impl fmt::Display for LinkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Undefined(list) => {
                for (i, (name, user)) in list.iter().enumerate() {
                    let separator = if i == 0 { "" } else { "; " };
                    write!(f, "{separator}%{user} refers to %{name}, but it is not defined")?;
                }
                Ok(())
            }
            Self::ThreadLocal(name) => {
                write!(
                    f,
                    "%{name}: thread-local data is in main memory; in the scratchpad, index an array by the thread's number"
                )
            }
            Self::NoContents(name) => write!(f, "%{name} has no contents; call `define` or `define_zeroinit`"),
            Self::Alignment { name, align } => {
                write!(
                    f,
                    "%{name}: an alignment of {align} is not a power of two up to {MAX_ALIGN}"
                )
            }
            Self::OutOfBounds { name, offset } => {
                write!(f, "%{name}: the relocation at {offset:#x} does not lie within it")
            }
            Self::HostType(name, ty) => write!(f, "%{name}: the host has no value of type {ty}"),
            Self::Relocation { name, kind } => {
                write!(f, "%{name}: relocation {kind} is not supported on naplespu; use Abs4")
            }
            Self::OutOfReach { name, reason } => write!(f, "%{name}: {reason}"),
            Self::MemoryFull(what) => f.write_str(what),
            Self::NotAllocated(address) => write!(f, "nothing is allocated at {address:#010x}"),
            Self::NotDefined(name) => write!(f, "%{name} is not defined, so it cannot be freed"),
            Self::Internal(what) => write!(f, "internal error: {what}"),
            Self::NoStandIn(why) => write!(f, "no `pulley32` to stand in for this target: {why}"),
        }
    }
}

impl From<npu_link::LinkError> for LinkError {
    fn from(error: npu_link::LinkError) -> Self {
        match error {
            npu_link::LinkError::Alignment { name, align } => Self::Alignment { name, align },
            npu_link::LinkError::OutOfBounds { name, offset } => Self::OutOfBounds { name, offset },
            npu_link::LinkError::OutOfReach { name, reason } => Self::OutOfReach { name, reason },
            npu_link::LinkError::MemoryFull(what) => Self::MemoryFull(what),
            npu_link::LinkError::Internal(what) => Self::Internal(what),
        }
    }
}

impl From<LinkError> for ModuleError {
    fn from(error: LinkError) -> Self {
        match error {
            LinkError::MemoryFull(what) => Self::Allocation {
                err: std::io::Error::new(std::io::ErrorKind::OutOfMemory, what),
            },
            error => Self::Backend(error.into()),
        }
    }
}

impl From<LinkError> for DefineError {
    fn from(error: LinkError) -> Self {
        ModuleError::from(error).into()
    }
}

/// Why a call did not give results.
#[derive(Debug)]
pub enum RunError {
    /// There is no function of this name.
    NoSuchFunction(String),
    /// The function, or one it reaches, refers to something that is not there.
    Undefined {
        /// What is missing.
        name: String,
        /// What refers to it; nothing if it is the function that was called.
        user: Option<String>,
    },
    /// The function, or one it reaches, was refused.
    Refused {
        /// The function that is missing.
        function: String,
        /// Why.
        reason: String,
    },
    /// The function, or one it reaches, did not compile for another reason: a fault of the compiler or of the CLIF.
    NotCompiled {
        /// The function.
        function: String,
        /// Why.
        reason: String,
    },
    /// Number or types of the arguments are not those of the signature.
    Signature(String),
    /// What was defined could not be linked.
    Link(LinkError),
    /// The thread stopped with a trap code.
    Trap(TrapReport),
    /// The thread came to a `debugtrap`, and no debugger is there to let it go on.
    DebugTrap(Location),
    /// The hardware took a misaligned access as a fault.
    Misaligned(Location),
    /// A call of a function that was freed, by a pointer to it.
    Freed {
        /// The function.
        function: String,
        /// The place of the call.
        at: Location,
    },
    /// More instructions than allowed.
    Timeout {
        /// The limit.
        steps: u64,
        /// Where the thread was.
        at: Location,
    },
    /// More cycles than allowed.
    CycleLimit {
        /// The limit.
        cycles: u64,
        /// Where the thread was.
        at: Location,
    },
    /// The thread would never go on, or the simulator gave up.
    Stopped {
        /// Why.
        reason: String,
        /// Where the thread was.
        at: Location,
    },
    /// A call by that many threads, on a device that has fewer, or by none.
    Threads {
        /// How many were asked for.
        asked: usize,
        /// How many there are.
        available: usize,
    },
    /// Threads wait at barriers that nobody else can open.
    Deadlock(Vec<StuckThread>),
    /// In a call by several threads, what went wrong in one of them. Traps say so by themselves.
    Thread {
        /// Number of the thread.
        thread: usize,
        /// What went wrong.
        error: Box<RunError>,
    },
    /// A function of the host ended the program, with this status.
    Exit(u32),
    /// A function of the host failed.
    Host {
        /// The function.
        function: String,
        /// What it says.
        reason: String,
    },
    /// The function came back with a register changed that it has to preserve.
    Clobbered {
        /// The register.
        register: Reg,
    },
}

impl RunError {
    /// The same text, with places as somebody names them who knows what their source locations mean. `place` gives each with a space before it,
    /// or nothing.
    pub fn with_places<'a>(&'a self, place: &'a dyn Fn(&Location) -> String) -> impl fmt::Display + 'a {
        Placed { error: self, place }
    }

    /// The numbers of the threads that it is about, if that is known.
    pub fn threads(&self) -> Vec<usize> {
        match self {
            Self::Trap(report) => vec![report.thread],
            Self::Thread { thread, .. } => vec![*thread],
            Self::Deadlock(stuck) => stuck.iter().map(|stuck| stuck.thread).collect(),
            _ => Vec::new(),
        }
    }

    /// The same, with the thread it came from.
    pub(super) fn of_thread(self, thread: usize) -> RunError {
        match self {
            RunError::Trap(_) | RunError::Exit(_) => self,
            error => RunError::Thread {
                thread,
                error: Box::new(error),
            },
        }
    }
}

/// A thread at a barrier that does not open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StuckThread {
    /// Number of the thread.
    pub thread: usize,
    /// Id of the barrier.
    pub barrier: u32,
    /// Threads that have come to it.
    pub arrived: u32,
    /// Threads that have to come; 0 if it opened and left this thread behind, for another id with the same counter.
    pub expected: u32,
    /// Where the thread waits.
    pub at: Location,
}

impl fmt::Display for StuckThread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(f, &Location::to_string)
    }
}

impl StuckThread {
    fn write(&self, f: &mut fmt::Formatter<'_>, place: &dyn Fn(&Location) -> String) -> fmt::Result {
        let Self {
            thread,
            barrier,
            arrived,
            expected,
            at,
        } = self;
        write!(f, "thread {thread} waits{} at barrier {barrier}", place(at))?;
        match expected {
            0 => f.write_str(", which opened for another id with the same counter"),
            _ => write!(f, ", {arrived} of {expected} arrived"),
        }
    }
}

/// A line of a source file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceLine {
    /// The file, as it was given to [`NpuModule::set_source_file`](super::NpuModule::set_source_file).
    pub file: String,
    /// The line, from 1.
    pub line: u32,
}

impl fmt::Display for SourceLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// A place in compiled code, as far as it is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Location {
    /// The function, without `%`.
    pub function: Option<String>,
    /// The CLIF instruction.
    pub inst: Option<ir::Inst>,
    /// Its source location.
    pub srcloc: Option<SourceLoc>,
    /// What that means, if the function has a source file.
    pub line: Option<SourceLine>,
}

impl fmt::Display for Location {
    /// With a space before it, if anything is known.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(function) = &self.function {
            write!(f, " in %{function}")?;
        }
        if let Some(line) = &self.line {
            return write!(f, " at {line}");
        }
        if let Some(inst) = self.inst {
            write!(f, " at {inst}")?;
        }
        if let Some(loc) = self.srcloc {
            write!(f, " {loc}")?;
        }
        Ok(())
    }
}

/// A trap, with the place it came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrapReport {
    /// The trap code.
    pub code: Option<TrapCode>,
    /// Number of the hardware thread.
    pub thread: usize,
    /// The function.
    pub function: Option<String>,
    /// The CLIF instruction.
    pub inst: Option<ir::Inst>,
    /// Its source location.
    pub srcloc: Option<SourceLoc>,
    /// What that means, if the function has a source file.
    pub line: Option<SourceLine>,
}

impl TrapReport {
    /// The place alone.
    pub fn location(&self) -> Location {
        Location {
            function: self.function.clone(),
            inst: self.inst,
            srcloc: self.srcloc,
            line: self.line.clone(),
        }
    }
}

impl std::error::Error for RunError {}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.with_places(&Location::to_string).fmt(f)
    }
}

/// An error with places as somebody else names them.
struct Placed<'a> {
    error: &'a RunError,
    place: &'a dyn Fn(&Location) -> String,
}

impl fmt::Display for Placed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = self.place;
        match self.error {
            RunError::NoSuchFunction(name) => write!(f, "there is no function %{name}"),
            RunError::Undefined { name, user: Some(user) } => {
                write!(f, "%{name} is not defined, and %{user} refers to it")
            }
            RunError::Undefined { name, user: None } => write!(f, "%{name} is not defined"),
            RunError::Refused { function, reason } => write!(f, "%{function} is refused: {reason}"),
            RunError::NotCompiled { function, reason } => write!(f, "%{function} did not compile: {reason}"),
            RunError::Signature(what) => f.write_str(what),
            RunError::Link(error) => error.fmt(f),
            RunError::Trap(report) => {
                match report.code {
                    Some(code) => write!(f, "trap: {code}")?,
                    None => write!(f, "trap with an unknown code")?,
                }
                write!(f, "{} (thread {})", place(&report.location()), report.thread)
            }
            RunError::DebugTrap(at) => write!(f, "debugtrap without a debugger{}", place(at)),
            RunError::Misaligned(at) => write!(f, "misaligned access{}", place(at)),
            RunError::Freed { function, at } => write!(f, "a call of %{function}, which was freed{}", place(at)),
            RunError::Timeout { steps, at } => write!(f, "no result after {steps} instructions{}", place(at)),
            RunError::CycleLimit { cycles, at } => write!(f, "no result after {cycles} cycles{}", place(at)),
            RunError::Stopped { reason, at } => write!(f, "the simulator stopped{}: {reason}", place(at)),
            RunError::Threads { asked, available } => {
                write!(f, "{asked} threads were to make the call; the device has {available}")
            }
            RunError::Deadlock(threads) => {
                f.write_str("the threads wait for each other")?;
                for thread in threads {
                    f.write_str("; ")?;
                    thread.write(f, place)?;
                }
                Ok(())
            }
            RunError::Thread { thread, error } => write!(f, "thread {thread}: {}", error.with_places(place)),
            RunError::Exit(status) => write!(f, "the program ended with status {status}"),
            RunError::Host { function, reason } => write!(f, "%{function}: {reason}"),
            RunError::Clobbered { register } => write!(f, "callee-saved register {register} was changed"),
        }
    }
}

impl From<LinkError> for RunError {
    fn from(error: LinkError) -> Self {
        Self::Link(error)
    }
}

/// Functions of a module have numbers for names; people want those of the declarations.
pub(super) fn name_refusals(error: &mut CompileError, name: &str) {
    if let CompileError::Unsupported(refusals) = error {
        for refusal in refusals {
            refusal.function = format!("%{name}");
        }
    }
}
