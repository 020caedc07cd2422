//! Compiled functions loaded into the simulator, ready to be called.
//!
//! A [`Program`] takes CLIF functions one by one, compiles each, adds the routines of the runtime, links everything
//! into a memory image and calls functions by name with typed arguments. A function that is refused does not stop the
//! others: calling it, or one that reaches it, says why.

use crate::abi::sig::{Place, SigInfo};
use crate::code::{CompiledCode, RelocTarget};
use crate::error::CompileError;
use crate::isa::Isa;
use cranelift_codegen::Context;
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::data_value::DataValue;
use cranelift_codegen::ir::{self, ExternalName, Function, Signature, SourceLoc, TrapCode, UserFuncName};
use npu_mc::machine::{ControlRegister, INSTRUCTION_SIZE, STACK_ALIGN, TRAP_VECTOR, ThreadStatus};
use npu_mc::reloc::Reloc as RelocKind;
use npu_mc::{Inst, Opcode, Operand, Reg, SReg};
use npu_sim::{Machine, Stop};
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

/// Where functions are placed, behind the trap vector and the boot address.
const CODE_BASE: u32 = 0x1000;

/// Alignment of functions: a cache line.
const FUNCTION_ALIGN: u32 = npu_mc::machine::CACHE_LINE;

/// Where calls return to.
const RETURN_TO: u32 = npu_mc::machine::BOOT_PC;

/// Top of the stack of a call. Memory is sparse, so the stack has room to grow down to the code.
const STACK_TOP: u32 = 0xf000_0000;

/// Instructions a call may execute unless set otherwise.
const STEP_LIMIT: u64 = 1_000_000_000;

/// What stands in a callee-saved register before a call, by its number: it has to stand there afterwards.
const SENTINEL: u32 = 0x5a5a_0000;

/// Functions on their way into the simulator.
pub struct Program {
    isa: Arc<Isa>,
    functions: Vec<Entry>,
    by_name: HashMap<String, usize>,
    runtime_added: bool,
    linked: Option<Machine>,
    step_limit: u64,
    steps: u64,
}

struct Entry {
    name: String,
    signature: Signature,
    symbols: HashMap<ir::UserExternalNameRef, ir::UserExternalName>,
    compiled: Result<CompiledCode, CompileError>,
    address: u32,
}

/// Why a call did not give results.
#[derive(Debug)]
pub enum RunError {
    /// There is no function of this name.
    NoSuchFunction(String),
    /// The function, or one it reaches, was refused or is not there.
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
    /// The thread stopped with a trap code.
    Trap(TrapReport),
    /// The hardware took a misaligned access as a fault.
    Misaligned {
        /// The function the thread was in, as far as known.
        function: Option<String>,
    },
    /// More instructions than allowed.
    Timeout {
        /// The limit.
        steps: u64,
    },
    /// The thread would never go on, or the simulator gave up.
    Stopped(String),
    /// The function came back with a register changed that it has to preserve.
    Clobbered {
        /// The register.
        register: Reg,
    },
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
}

impl std::error::Error for RunError {}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSuchFunction(name) => write!(f, "there is no function %{name}"),
            Self::Refused { function, reason } => write!(f, "%{function} is refused: {reason}"),
            Self::NotCompiled { function, reason } => write!(f, "%{function} did not compile: {reason}"),
            Self::Signature(what) => f.write_str(what),
            Self::Trap(report) => {
                match report.code {
                    Some(code) => write!(f, "trap: {code}")?,
                    None => write!(f, "trap with an unknown code")?,
                }
                if let Some(function) = &report.function {
                    write!(f, " in %{function}")?;
                }
                if let Some(inst) = report.inst {
                    write!(f, " at {inst}")?;
                }
                if let Some(loc) = report.srcloc {
                    write!(f, " @{loc}")?;
                }
                write!(f, " (thread {})", report.thread)
            }
            Self::Misaligned { function: Some(name) } => write!(f, "misaligned access in %{name}"),
            Self::Misaligned { function: None } => write!(f, "misaligned access"),
            Self::Timeout { steps } => write!(f, "no result after {steps} instructions"),
            Self::Stopped(why) => f.write_str(why),
            Self::Clobbered { register } => write!(f, "callee-saved register {register} was changed"),
        }
    }
}

/// The name under which a function can be called: without the `%`.
pub fn function_name(name: &UserFuncName) -> String {
    let text = name.to_string();
    text.strip_prefix('%').map_or(text.clone(), str::to_owned)
}

impl Program {
    /// An empty program for the target.
    pub fn new(isa: Arc<Isa>) -> Self {
        Self {
            isa,
            functions: Vec::new(),
            by_name: HashMap::new(),
            runtime_added: false,
            linked: None,
            step_limit: STEP_LIMIT,
            steps: 0,
        }
    }

    /// Compiles a function and adds it. A later function of the same name replaces an earlier one.
    ///
    /// # Errors
    ///
    /// Why it was not compiled, as text; the program remembers it for those who call the function.
    pub fn define(&mut self, func: &Function) -> Result<(), &CompileError> {
        let index = self.add(func, &self.isa.clone());
        match &self.functions[index].compiled {
            Ok(_) => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn add(&mut self, func: &Function, isa: &Isa) -> usize {
        let mut ctx = Context::for_function(func.clone());
        let compiled = isa.compile(&mut ctx, &mut ControlPlane::default());
        let name = function_name(&func.name);
        let entry = Entry {
            name: name.clone(),
            signature: func.signature.clone(),
            symbols: ctx
                .func
                .params
                .user_named_funcs()
                .iter()
                .map(|(key, name)| (key, name.clone()))
                .collect(),
            compiled,
            address: 0,
        };
        self.linked = None;
        match self.by_name.get(&name) {
            Some(&index) => {
                self.functions[index] = entry;
                index
            }
            None => {
                self.functions.push(entry);
                self.by_name.insert(name, self.functions.len() - 1);
                self.functions.len() - 1
            }
        }
    }

    /// Code of a compiled function.
    pub fn code(&self, name: &str) -> Option<&CompiledCode> {
        self.functions[*self.by_name.get(name)?].compiled.as_ref().ok()
    }

    /// Address of a function in the simulated memory, once linked.
    pub fn address(&self, name: &str) -> Option<u32> {
        self.linked.as_ref()?;
        self.by_name.get(name).map(|&index| self.functions[index].address)
    }

    /// Writes memory of the device, which keeps it until the next function is defined.
    ///
    /// # Errors
    ///
    /// [`RunError::Stopped`] if the simulated memory is full, and what [`Program::call`] gives for a program that cannot be
    /// linked.
    pub fn write_memory(&mut self, address: u32, bytes: &[u8]) -> Result<(), RunError> {
        if self.linked.is_none() {
            self.link()?;
        }
        let written = self
            .linked
            .as_mut()
            .map(|machine| machine.memory_mut().write(address, bytes));
        match written {
            Some(Err(full)) => Err(RunError::Stopped(format!(
                "simulated memory is full at {:#x}",
                full.address
            ))),
            _ => Ok(()),
        }
    }

    /// Reads a word of the device's memory: 0 where nothing was written.
    pub fn read_word(&self, address: u32) -> u32 {
        self.linked
            .as_ref()
            .map_or(0, |machine| machine.memory().read_u32(address))
    }

    /// Limits the instructions of each call.
    pub fn set_step_limit(&mut self, steps: u64) {
        self.step_limit = steps;
    }

    /// Instructions executed by the last call.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// The function that a relocation names, if the program has it.
    fn resolve(&self, from: &Entry, target: &RelocTarget) -> Result<usize, String> {
        let name = match target {
            RelocTarget::Function => from.name.clone(),
            RelocTarget::Runtime(name) => (*name).to_owned(),
            RelocTarget::Name(ExternalName::TestCase(name)) => {
                let text = name.to_string();
                text.strip_prefix('%').map_or(text.clone(), str::to_owned)
            }
            RelocTarget::Name(ExternalName::User(key)) => match from.symbols.get(key) {
                Some(name) => function_name(&UserFuncName::User(name.clone())),
                None => key.to_string(),
            },
            RelocTarget::Name(other) => other.display(None).to_string(),
        };
        self.by_name.get(&name).copied().ok_or(name)
    }

    /// Lays the functions out, fixes their references and loads them. Done by the first call.
    fn link(&mut self) -> Result<(), RunError> {
        if !self.runtime_added {
            let needed = self.functions.iter().filter_map(|f| f.compiled.as_ref().ok());
            let needs_runtime = needed
                .flat_map(|c| &c.relocs)
                .any(|r| matches!(r.target, RelocTarget::Runtime(_)));
            let user_calls_runtime = self.functions.iter().filter_map(|f| f.compiled.as_ref().ok()).any(|c| {
                c.relocs.iter().any(|r| {
                    r.target
                        .describe(None)
                        .strip_prefix('%')
                        .is_some_and(crate::runtime::is_reserved)
                })
            });
            if needs_runtime || user_calls_runtime {
                let isa = self.isa.for_runtime();
                for function in crate::runtime::functions().map_err(RunError::Stopped)? {
                    if !self.by_name.contains_key(&function_name(&function.name)) {
                        self.add(&function, &isa);
                    }
                }
                self.runtime_added = true;
            }
        }
        let mut machine = Machine::new(npu_sim::Config::default());
        self.place();
        let stored = |result: Result<(), npu_sim::MemoryFull>| {
            result.map_err(|full| RunError::Stopped(format!("simulated memory is full at {:#x}", full.address)))
        };
        for entry in &self.functions {
            let Ok(code) = &entry.compiled else { continue };
            let mut bytes = code.bytes.clone();
            let mut veneers: Vec<(u32, u32)> = Vec::new();
            for reloc in &code.relocs {
                // What is not there is found out by the call that reaches it.
                let Ok(target) = self.resolve(entry, &reloc.target) else {
                    continue;
                };
                let target = self.functions[target].address;
                let place = entry.address + reloc.offset;
                let at = reloc.offset as usize;
                // Addresses have 32 bits, so an addend counts modulo 2^32.
                let addend = (reloc.addend & i64::from(u32::MAX)) as u32 as i32;
                let Some(word) = bytes.get_mut(at..at + INSTRUCTION_SIZE as usize) else {
                    continue;
                };
                let mut apply =
                    |symbol: u32, addend: i32| npu_mc::reloc::apply(reloc.kind, word, symbol, addend, place);
                if apply(target, addend).is_ok() {
                    continue;
                }
                let size = u32::try_from(code.bytes.len()).unwrap_or(u32::MAX);
                let veneer = match veneers.iter().find(|(to, _)| *to == target) {
                    Some(&(_, at)) => at,
                    None => {
                        let at = entry.address + size + VENEER_SIZE * veneers.len() as u32;
                        veneers.push((target, at));
                        at
                    }
                };
                apply(veneer, addend).map_err(|error| RunError::Stopped(format!("%{}: {error}", entry.name)))?;
            }
            stored(machine.memory_mut().write(entry.address, &bytes))?;
            for (target, at) in veneers {
                stored(machine.memory_mut().write(at, &veneer(target)))?;
            }
        }
        stored(machine.memory_mut().write(TRAP_VECTOR, &spin()))?;
        machine.add_breakpoint(RETURN_TO);
        self.linked = Some(machine);
        Ok(())
    }

    /// Gives every function an address, with room behind it for a detour to each function it calls.
    fn place(&mut self) {
        let mut at = CODE_BASE;
        for entry in &mut self.functions {
            let Ok(code) = &entry.compiled else { continue };
            at = at.next_multiple_of(FUNCTION_ALIGN);
            entry.address = at;
            let near = code.relocs.iter().filter(|r| r.kind == RelocKind::Branch);
            let targets: HashSet<&RelocTarget> = near.map(|r| &r.target).collect();
            at += u32::try_from(code.bytes.len()).unwrap_or(u32::MAX / 2) + VENEER_SIZE * targets.len() as u32;
        }
    }

    /// Whether everything that the function reaches is there.
    fn check_reachable(&self, start: usize) -> Result<(), RunError> {
        let mut seen = HashSet::from([start]);
        let mut todo = vec![start];
        while let Some(index) = todo.pop() {
            let entry = &self.functions[index];
            let code = match &entry.compiled {
                Ok(code) => code,
                Err(error) => {
                    let (function, reason) = (entry.name.clone(), error.to_string());
                    return Err(if error.is_refusal() {
                        RunError::Refused { function, reason }
                    } else {
                        RunError::NotCompiled { function, reason }
                    });
                }
            };
            for reloc in &code.relocs {
                match self.resolve(entry, &reloc.target) {
                    Ok(target) => {
                        if seen.insert(target) {
                            todo.push(target);
                        }
                    }
                    Err(name) => {
                        let reason = format!("%{} refers to it, but it is not defined", entry.name);
                        return Err(RunError::Refused { function: name, reason });
                    }
                }
            }
        }
        Ok(())
    }

    /// Calls a function with a fresh stack. Memory that earlier calls wrote stays as it is.
    ///
    /// # Errors
    ///
    /// See [`RunError`].
    pub fn call(&mut self, name: &str, args: &[DataValue]) -> Result<Vec<DataValue>, RunError> {
        let index = *self
            .by_name
            .get(name)
            .ok_or_else(|| RunError::NoSuchFunction(name.to_owned()))?;
        if self.linked.is_none() {
            self.link()?;
        }
        self.check_reachable(index)?;
        let entry = &self.functions[index];
        let info = SigInfo::new(&entry.signature, name).map_err(|refusals| RunError::Refused {
            function: name.to_owned(),
            reason: CompileError::Unsupported(refusals).to_string(),
        })?;
        let types: Vec<ir::Type> = entry.signature.params.iter().map(|p| p.value_type).collect();
        if types.len() != args.len() || types.iter().zip(args).any(|(ty, arg)| *ty != arg.ty()) {
            return Err(RunError::Signature(format!(
                "%{name} takes ({}), called with ({})",
                types.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
                args.iter().map(|a| a.ty().to_string()).collect::<Vec<_>>().join(", "),
            )));
        }
        let Some(machine) = &mut self.linked else {
            return Err(RunError::Stopped("not linked".to_owned()));
        };
        let mut call = Call {
            machine,
            sp: STACK_TOP - info.stack_args.next_multiple_of(STACK_ALIGN),
        };
        call.set_up(&info, args, entry.address)?;
        let before = call.machine.thread(0).instructions();
        let stop = call.machine.run(0, self.step_limit);
        self.steps = call.machine.thread(0).instructions() - before;
        match stop {
            Stop::Breakpoint { pc } if pc == RETURN_TO => {
                call.check_preserved(info.popped, crate::regalloc::pinned(self.isa.flags()))?;
                Ok(call.results(&info, &entry.signature))
            }
            Stop::StepLimit => Err(RunError::Timeout { steps: self.step_limit }),
            Stop::Ended { .. } => Err(self.trap()),
            other => Err(RunError::Stopped(format!("the simulator stopped: {other}"))),
        }
    }

    /// What the simulator knows about the thread that stopped.
    fn trap(&self) -> RunError {
        let Some(machine) = &self.linked else {
            return RunError::Stopped("not linked".to_owned());
        };
        let thread = machine.thread(0);
        let function = |pc: u32| {
            self.functions.iter().find(|f| {
                let size = f.compiled.as_ref().map_or(0, |c| c.bytes.len() as u64);
                let start = u64::from(f.address);
                (start..start + size).contains(&u64::from(pc))
            })
        };
        let site = thread.last_branch();
        if thread.pc().wrapping_sub(TRAP_VECTOR) < 0x80 {
            return RunError::Misaligned {
                function: site.and_then(function).map(|f| f.name.clone()),
            };
        }
        let tr = thread.scalar(SReg::TR);
        let code = u8::try_from(tr)
            .ok()
            .and_then(std::num::NonZeroU8::new)
            .map(TrapCode::from_raw);
        let here = function(thread.pc());
        let record = here.and_then(|f| {
            let offset = site?.checked_sub(f.address)?;
            f.compiled.as_ref().ok()?.traps.iter().find(|t| t.offset == offset)
        });
        RunError::Trap(TrapReport {
            code,
            thread: 0,
            function: here.map(|f| f.name.clone()),
            inst: record.and_then(|r| r.inst),
            srcloc: record.map(|r| r.srcloc).filter(|loc| !loc.is_default()),
        })
    }
}

/// Bytes of a detour.
const VENEER_SIZE: u32 = 3 * INSTRUCTION_SIZE;

fn words(insts: &[Inst]) -> Vec<u8> {
    insts
        .iter()
        .filter_map(|inst| npu_mc::encode(inst).ok())
        .flat_map(u32::to_le_bytes)
        .collect()
}

/// A jump to any address.
fn veneer(target: u32) -> Vec<u8> {
    let half = |n: u32| Operand::Imm((n & 0xffff).cast_signed());
    let scratch = Operand::S(SReg::TR);
    words(&[
        Inst::new(Opcode::MOVEIHSI, [scratch, half(target >> 16)]),
        Inst::new(Opcode::MOVEILSI, [scratch, half(target)]),
        Inst::new(Opcode::JUMPREG, [scratch]),
    ])
}

/// The handler of misaligned accesses: sets the status and stops.
fn spin() -> Vec<u8> {
    let [a, b] = [Operand::S(SReg::TR), Operand::S(SReg::RA)];
    words(&[
        Inst::new(Opcode::MOVEISI, [a, Operand::Imm(ThreadStatus::Trapped as i32)]),
        Inst::new(
            Opcode::MOVEISI,
            [b, Operand::Imm(i32::from(ControlRegister::ThreadStatus.number()))],
        ),
        Inst::new(Opcode::WRITECR, [a, b]),
        Inst::new(Opcode::JMP, [Operand::Imm(0)]),
    ])
}

/// A call in progress.
struct Call<'a> {
    machine: &'a mut Machine,
    sp: u32,
}

impl Call<'_> {
    fn set_up(&mut self, info: &SigInfo, args: &[DataValue], entry: u32) -> Result<(), RunError> {
        let thread = self.machine.thread_mut(0);
        thread.set_mask(u16::MAX);
        thread.set_status(npu_sim::Status::new(ThreadStatus::Running as u32));
        for reg in npu_mc::cc::CALLEE_SAVED {
            if let Reg::S(reg) = reg {
                thread.set_scalar(*reg, SENTINEL | u32::from(reg.number()));
            }
        }
        thread.set_scalar(SReg::SP, self.sp);
        thread.set_scalar(SReg::RA, RETURN_TO);
        thread.set_pc(entry);
        for (arg, places) in args.iter().zip(&info.args) {
            let mut bytes = [0xa5u8; 16];
            arg.write_to_slice_le(&mut bytes);
            for (place, word) in places.iter().zip(bytes.chunks_exact(4)) {
                let word = u32::from_le_bytes([word[0], word[1], word[2], word[3]]);
                self.pass(*place, word)?;
            }
        }
        if let Some(place) = info.ret_area {
            self.pass(place, STACK_TOP)?;
        }
        Ok(())
    }

    fn pass(&mut self, place: Place, word: u32) -> Result<(), RunError> {
        match place {
            Place::Reg(Reg::S(reg)) => self.machine.thread_mut(0).set_scalar(reg, word),
            // No type that is covered is passed in a vector register.
            Place::Reg(Reg::V(_)) => {}
            Place::Memory(offset) => {
                let written = self.machine.memory_mut().write(self.sp + offset, &word.to_le_bytes());
                written.map_err(|_| RunError::Stopped("simulated memory is full".to_owned()))?;
            }
        }
        Ok(())
    }

    /// The registers that every convention preserves hold what they held; the callee removed what it had to.
    fn check_preserved(&self, popped: u32, pinned: Option<SReg>) -> Result<(), RunError> {
        let thread = self.machine.thread(0);
        let changed = |reg: SReg, expected: u32| thread.scalar(reg) != expected;
        if changed(SReg::SP, self.sp + popped) {
            return Err(RunError::Clobbered {
                register: Reg::S(SReg::SP),
            });
        }
        for &register in npu_mc::cc::CALLEE_SAVED {
            let Reg::S(reg) = register else { continue };
            if pinned == Some(reg) {
                continue;
            }
            let expected = if reg == SReg::RA {
                RETURN_TO
            } else {
                SENTINEL | u32::from(reg.number())
            };
            if changed(reg, expected) {
                return Err(RunError::Clobbered { register });
            }
        }
        Ok(())
    }

    fn results(&self, info: &SigInfo, signature: &Signature) -> Vec<DataValue> {
        let thread = self.machine.thread(0);
        let mut results = Vec::with_capacity(info.rets.len());
        for (places, param) in info.rets.iter().zip(&signature.returns) {
            let mut bytes = [0u8; 16];
            for (place, chunk) in places.iter().zip(bytes.chunks_exact_mut(4)) {
                let word = match place {
                    Place::Reg(Reg::S(reg)) => thread.scalar(*reg),
                    // No type that is covered is passed in a vector register.
                    Place::Reg(Reg::V(_)) => 0,
                    Place::Memory(offset) => self.machine.memory().read_u32(STACK_TOP + offset),
                };
                chunk.copy_from_slice(&word.to_le_bytes());
            }
            results.push(DataValue::read_from_slice_le(&bytes, param.value_type));
        }
        results
    }
}
