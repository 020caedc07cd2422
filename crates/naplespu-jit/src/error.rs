//! Errors of modules and calls.

use cranelift_codegen::ir::{self, SourceLoc, TrapCode, Type};
use cranelift_module::ModuleError;
use cranelift_naplespu::CompileError;
use npu_link::MAX_ALIGN;
use npu_mc::Reg;
use std::fmt;

/// The reason why a function was not added to a module.
#[derive(Debug)]
pub enum DefineError {
    /// The function did not compile.
    Compile(CompileError),
    /// The module rejected the function: not declared, defined already, an import, or out of
    /// memory.
    Module(Box<ModuleError>),
}

impl DefineError {
    /// Returns whether a construct is unsupported, as opposed to invalid input or a failure.
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
    /// Converts to Cranelift's variant of the error, or to `ModuleError::Backend` if it has none.
    fn from(error: DefineError) -> Self {
        match error {
            DefineError::Module(error) => *error,
            DefineError::Compile(error @ CompileError::Verifier(_)) => Self::Compilation(error.into()),
            DefineError::Compile(error) if error.is_refusal() => Self::Compilation(error.into()),
            DefineError::Compile(error) => Self::Backend(error.into()),
        }
    }
}

/// The reason why a definition or one of its references does not fit into the module. Methods of
/// Cranelift's trait wrap it in `ModuleError::Backend`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkError {
    /// Undefined symbols, each with the name of one user.
    Undefined(Vec<(String, String)>),
    /// Thread-local data in the scratchpad.
    ThreadLocal(String),
    /// A data object without contents.
    NoContents(String),
    /// An alignment that is not a power of two, or larger than the module supports.
    Alignment {
        /// The function or data object.
        name: String,
        /// The requested alignment, in bytes.
        align: u64,
    },
    /// A relocation outside its object.
    OutOfBounds {
        /// The function or data object.
        name: String,
        /// The offset of the relocation.
        offset: u32,
    },
    /// A host function with a parameter or result type that the host has no value for.
    HostType(String, Type),
    /// An unsupported kind of relocation.
    Relocation {
        /// The function or data object.
        name: String,
        /// Cranelift's name of the kind.
        kind: String,
    },
    /// A call that reaches neither its callee nor a veneer.
    OutOfReach {
        /// The calling function.
        name: String,
        /// The relocation that overflows.
        reason: String,
    },
    /// Code, data or buffers exceed the device's memory.
    MemoryFull(String),
    /// An attempt to free an address without an allocation.
    NotAllocated(u32),
    /// An attempt to free a function or data object without a definition.
    NotDefined(String),
    /// `cranelift-codegen` lacks the target that the trait `Module` returns.
    NoStandIn(String),
    /// A bug in this crate or in the linker.
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

/// The reason why a call returned no results.
#[derive(Debug)]
pub enum RunError {
    /// No function has this name.
    NoSuchFunction(String),
    /// The function, or one it reaches, refers to an undefined symbol.
    Undefined {
        /// The undefined symbol.
        name: String,
        /// Its user; `None` if it is the called function.
        user: Option<String>,
    },
    /// The function, or one it reaches, uses an unsupported construct.
    Refused {
        /// The missing function.
        function: String,
        /// The reason.
        reason: String,
    },
    /// The function, or one it reaches, did not compile for another reason: a bug in the compiler,
    /// or invalid CLIF.
    NotCompiled {
        /// The function.
        function: String,
        /// The reason.
        reason: String,
    },
    /// The number or types of the arguments do not match the signature.
    Signature(String),
    /// A definition could not be linked.
    Link(LinkError),
    /// The thread stopped with a trap code.
    Trap(TrapReport),
    /// The thread executed a `debugtrap` without a debugger to resume it.
    DebugTrap(Location),
    /// The hardware faulted on a misaligned access.
    Misaligned(Location),
    /// A call of a freed function through a pointer.
    Freed {
        /// The function.
        function: String,
        /// The location of the call.
        at: Location,
    },
    /// The call executed too many instructions.
    Timeout {
        /// The limit.
        steps: u64,
        /// The location of the thread.
        at: Location,
    },
    /// The call took too many cycles.
    CycleLimit {
        /// The limit.
        cycles: u64,
        /// The location of the thread.
        at: Location,
    },
    /// The thread cannot continue, or the simulator gave up.
    Stopped {
        /// The reason.
        reason: String,
        /// The location of the thread.
        at: Location,
    },
    /// A call on no threads, or on more than the device has.
    Threads {
        /// The requested number.
        asked: usize,
        /// The available number.
        available: usize,
    },
    /// Threads wait at barriers that cannot open.
    Deadlock(Vec<StuckThread>),
    /// The error of one thread in a call on several threads. Traps contain the thread themselves.
    Thread {
        /// The number of the thread.
        thread: usize,
        /// The error.
        error: Box<RunError>,
    },
    /// A host function ended the program with this status.
    Exit(u32),
    /// A host function failed.
    Host {
        /// The function.
        function: String,
        /// Its message.
        reason: String,
    },
    /// The function returned without restoring a callee-saved register.
    Clobbered {
        /// The register.
        register: Reg,
    },
}

impl RunError {
    /// Returns the same message, with locations formatted by `place` for callers that know the
    /// meaning of their source locations. `place` returns a text with a leading space, or an empty
    /// string.
    pub fn with_places<'a>(&'a self, place: &'a dyn Fn(&Location) -> String) -> impl fmt::Display + 'a {
        Placed { error: self, place }
    }

    /// Returns the numbers of the threads that the error is about, if known.
    pub fn threads(&self) -> Vec<usize> {
        match self {
            Self::Trap(report) => vec![report.thread],
            Self::Thread { thread, .. } => vec![*thread],
            Self::Deadlock(stuck) => stuck.iter().map(|stuck| stuck.thread).collect(),
            _ => Vec::new(),
        }
    }

    /// Adds the number of the thread.
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

/// A thread at a barrier that cannot open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StuckThread {
    /// The number of the thread.
    pub thread: usize,
    /// The id of the barrier.
    pub barrier: u32,
    /// The number of threads that have arrived.
    pub arrived: u32,
    /// The number of threads that have to arrive. It is 0 if the barrier opened without this
    /// thread, for another id with the same counter.
    pub expected: u32,
    /// The location where the thread waits.
    pub at: Location,
}

impl fmt::Display for StuckThread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(f, &[self.thread], &Location::to_string)
    }
}

impl StuckThread {
    /// Writes the wait of this thread, for all threads with these numbers.
    fn write(&self, f: &mut fmt::Formatter<'_>, numbers: &[usize], place: &dyn Fn(&Location) -> String) -> fmt::Result {
        let Self {
            barrier,
            arrived,
            expected,
            at,
            ..
        } = self;
        let verb = if numbers.len() == 1 { "waits" } else { "wait" };
        let threads = npu_sim::thread_list(numbers);
        write!(f, "{threads} {verb}{} at barrier {barrier}", place(at))?;
        match expected {
            0 => f.write_str(", which opened for another id with the same counter"),
            _ => write!(f, ", {arrived} of {expected} arrived"),
        }
    }
}

/// A source line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceLine {
    /// The file name from [`NpuModule::set_source_file`](super::NpuModule::set_source_file).
    pub file: String,
    /// The line, from 1.
    pub line: u32,
}

impl fmt::Display for SourceLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// A location in compiled code, as far as it is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Location {
    /// The function, without `%`.
    pub function: Option<String>,
    /// The CLIF instruction.
    pub inst: Option<ir::Inst>,
    /// Its source location.
    pub srcloc: Option<SourceLoc>,
    /// Its source line, if the function has a source file.
    pub line: Option<SourceLine>,
}

impl fmt::Display for Location {
    /// Starts with a space if anything is known.
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

/// A trap and its location.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrapReport {
    /// The trap code.
    pub code: Option<TrapCode>,
    /// The number of the hardware thread.
    pub thread: usize,
    /// The function.
    pub function: Option<String>,
    /// The CLIF instruction.
    pub inst: Option<ir::Inst>,
    /// Its source location.
    pub srcloc: Option<SourceLoc>,
    /// Its source line, if the function has a source file.
    pub line: Option<SourceLine>,
}

impl TrapReport {
    /// Returns the location without the trap.
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

/// An error with locations formatted by the caller.
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
                write!(f, "the call needs {asked} threads; the device has {available}")
            }
            RunError::Deadlock(threads) => {
                f.write_str("the threads wait for each other")?;
                for (first, numbers) in npu_sim::by_thread(threads, |stuck| &mut stuck.thread) {
                    f.write_str("; ")?;
                    first.write(f, &numbers, place)?;
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

/// Replaces the numeric names of functions in refusals by the names of their declarations.
pub(super) fn name_refusals(error: &mut CompileError, name: &str) {
    if let CompileError::Unsupported(refusals) = error {
        for refusal in refusals {
            refusal.function = format!("%{name}");
        }
    }
}
