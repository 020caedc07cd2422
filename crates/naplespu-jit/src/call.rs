//! Calls of functions of the device from the host.

use super::error::LinkError;
use super::error::{RunError, TrapReport};
use super::layout::{RETURN_TO, stack_top};
use super::link::{Resolved, words};
use super::npu_module::NpuModule;
use super::timed::run_thread;
use super::values::{ThreadPlaces, fit, host_types, is_value_type};
use cranelift_codegen::data_value::DataValue;
use cranelift_codegen::ir::{Signature, TrapCode};
use cranelift_module::FuncId;
use cranelift_naplespu::abi::sig::SigInfo;
use naplespu_object::front::Target;
use npu_mc::machine::{ControlRegister, INSTRUCTION_SIZE, STACK_ALIGN, TRAP_VECTOR, ThreadStatus};
use npu_mc::{Inst, Opcode, Operand, Reg, SReg};
use npu_sim::{Machine, Stop};
use std::num::NonZeroU8;

/// The hardware thread of single-threaded calls.
const THREAD: usize = 0;

/// The value of callee-saved registers before a call, combined with the number of the register. A
/// call must preserve it.
const SENTINEL: u32 = 0x5a5a_0000;

/// Returns the handler of misaligned accesses, which sets the status and stops. It preserves the
/// registers that a back trace needs.
fn spin() -> [Inst; 4] {
    let [a, b] = [Operand::S(SReg::TR), Operand::S(HANDLER_SCRATCH)];
    [
        Inst::new(Opcode::MOVEISI, [a, Operand::Imm(ThreadStatus::Trapped as i32)]),
        Inst::new(
            Opcode::MOVEISI,
            [b, Operand::Imm(i32::from(ControlRegister::ThreadStatus.number()))],
        ),
        Inst::new(Opcode::WRITECR, [a, b]),
        Inst::new(Opcode::JMP, [Operand::Imm(0)]),
    ]
}

/// The second scratch register of the handler, after the emitter's: an argument register, which
/// unwinding does not use.
const HANDLER_SCRATCH: SReg = SReg::S0;

/// Returns the size of the handler in bytes.
pub(super) fn handler_bytes() -> u32 {
    spin().len() as u32 * INSTRUCTION_SIZE
}

/// The stack size in bytes from which a memory-full error mentions the stack.
const DEEP: u32 = 64 << 20;

impl NpuModule {
    /// Writes the trap vector and other state that calls rely on.
    pub(super) fn prepare_machine(&mut self) -> Result<(), LinkError> {
        self.write_memory(TRAP_VECTOR, &words(&spin())?)?;
        self.machine.add_breakpoint(RETURN_TO);
        Ok(())
    }

    /// Calls a function with a fresh stack. Memory keeps the contents of earlier calls. Links new
    /// definitions first.
    ///
    /// # Errors
    ///
    /// See [`RunError`].
    pub fn call(&mut self, func: FuncId, args: &[DataValue]) -> Result<Vec<DataValue>, RunError> {
        let (name, address, signature) = self.linked(func)?;
        self.run(&name, address, &signature, args)
    }

    /// Links, and returns the name, address and signature of a callable function.
    pub(super) fn linked(&mut self, func: FuncId) -> Result<(String, u32, Signature), RunError> {
        if !self.functions.is_valid(func) {
            return Err(RunError::NoSuchFunction(func.to_string()));
        }
        let signature = self.front.declarations().get_function_decl(func).signature.clone();
        let target = Target::Func(func);
        if matches!(self.resolve(&target), Some(Resolved::Absent) | None) {
            self.add_runtime(&target);
        }
        self.link()?;
        self.check_reachable(&target)?;
        let name = self.target_name(&target);
        match self.address_of(&target) {
            Some(address) => Ok((name, address, signature)),
            None => Err(RunError::Undefined { name, user: None }),
        }
    }

    /// Calls the function with this name.
    ///
    /// # Errors
    ///
    /// See [`RunError`].
    pub fn call_by_name(&mut self, name: &str, args: &[DataValue]) -> Result<Vec<DataValue>, RunError> {
        match self.function_by_name(name) {
            Some(func) => self.call(func, args),
            None => Err(RunError::NoSuchFunction(name.to_owned())),
        }
    }

    /// Calls the code at an address of the device, for example through a function pointer from the
    /// device.
    ///
    /// # Errors
    ///
    /// See [`RunError`]. Undefined symbols are only detected if the code uses them.
    pub fn call_address(
        &mut self,
        address: u32,
        signature: &Signature,
        args: &[DataValue],
    ) -> Result<Vec<DataValue>, RunError> {
        if !address.is_multiple_of(INSTRUCTION_SIZE) {
            return Err(RunError::NoSuchFunction(format!(
                "at {address:#010x}, which is not an address of an instruction"
            )));
        }
        self.link()?;
        let name = self.linker.code_at(address).map(|(_, object)| object.name.clone());
        let name = name.unwrap_or_else(|| format!("{address:#010x}"));
        self.run(&name, address, signature, args)
    }

    fn run(
        &mut self,
        name: &str,
        address: u32,
        signature: &Signature,
        args: &[DataValue],
    ) -> Result<Vec<DataValue>, RunError> {
        let info = call_info(name, signature, args)?;
        let pinned = cranelift_naplespu::abi::registers::pinned(self.front.isa.flags());
        self.start_over()?;
        if let Some(mut timed) = self.timed.take() {
            self.start_timing(&mut timed);
            self.timed = Some(timed);
        }
        Call::new(&mut self.machine, THREAD, &info).set_up(&info, signature, args, address)?;
        let before = self.machine.thread(THREAD).instructions();
        self.steps = 0;
        let stop = loop {
            let left = self.step_limit.saturating_sub(self.steps);
            let stop = run_thread(
                &mut self.machine,
                self.timed.as_mut(),
                &mut self.observers,
                THREAD,
                left,
            );
            self.steps = self.machine.thread(THREAD).instructions() - before;
            if !self.answer(THREAD, &stop)? {
                break stop;
            }
        };
        match stop {
            Stop::Breakpoint { pc } if pc == RETURN_TO => {
                let mut call = Call::new(&mut self.machine, THREAD, &info);
                call.check_preserved(info.popped, pinned)?;
                Ok(call.results(&info, signature))
            }
            other => Err(self.stopped(THREAD, &other)),
        }
    }

    /// Resets the machine for a call: barriers, locks and caches.
    pub(super) fn start_over(&mut self) -> Result<(), RunError> {
        self.machine.reset_barriers();
        let written = self.machine.write_back_caches();
        written.map_err(|full| LinkError::MemoryFull(full.to_string()))?;
        Ok(self.free_locks()?)
    }

    /// Returns the error of a call that exceeded its limit of instructions or cycles.
    pub(super) fn over_limit(&self, number: usize, limit: u64, stop: &Stop) -> RunError {
        let at = self.location(self.stands_at(number));
        match stop {
            Stop::CycleLimit => RunError::CycleLimit { cycles: limit, at },
            _ => RunError::Timeout { steps: limit, at },
        }
    }

    /// Returns the error of a thread that did not return.
    pub(super) fn stopped(&self, number: usize, stop: &Stop) -> RunError {
        let here = self.machine.thread(number).pc();
        match stop {
            Stop::StepLimit => self.over_limit(number, self.step_limit, stop),
            Stop::CycleLimit => {
                let limit = self.timed.as_ref().and_then(|timed| timed.limit());
                self.over_limit(number, limit.unwrap_or_default(), stop)
            }
            Stop::Ended { .. } => self.trap(number),
            Stop::Breakpoint { pc } if self.freed.get(*pc).is_some() => RunError::Freed {
                function: self.freed.get(*pc).unwrap_or_default().to_owned(),
                at: self
                    .machine
                    .thread(number)
                    .last_branch()
                    .map_or_else(Default::default, |pc| self.location(pc)),
            },
            other => {
                let pc = match other {
                    Stop::Hang { pc, .. } | Stop::MemoryFull { pc, .. } | Stop::ReadOnly { pc, .. } => *pc,
                    _ => here,
                };
                let mut reason = other.to_string();
                if matches!(other, Stop::MemoryFull { .. })
                    && self.machine.thread(number).scalar(SReg::SP) < stack_top(number).saturating_sub(DEEP)
                {
                    reason += "; the stack has grown past 64 MiB, as it does in a recursion without end";
                }
                RunError::Stopped {
                    reason,
                    at: self.location(pc),
                }
            }
        }
    }

    /// Returns the error of a thread that stopped itself.
    fn trap(&self, number: usize) -> RunError {
        let thread = self.machine.thread(number);
        if thread.pc().wrapping_sub(TRAP_VECTOR) < handler_bytes() {
            let at = thread.trap_pc().map(|pc| self.location(pc));
            return RunError::Misaligned(at.unwrap_or_default());
        }
        if thread.scalar(SReg::TR) == 0 {
            return RunError::DebugTrap(self.location(thread.pc()));
        }
        let code = u8::try_from(thread.scalar(SReg::TR)).ok().and_then(NonZeroU8::new);
        let object = self.linker.code_at(thread.pc());
        // All traps of a function with the same code share the trapping code; the last branch
        // identifies the instruction.
        let record = object.and_then(|(index, object)| {
            let offset = thread.last_branch()?.checked_sub(object.address)?;
            self.code.get(&index)?.traps.iter().find(|trap| trap.offset == offset)
        });
        let srcloc = record.map(|record| record.srcloc).filter(|loc| !loc.is_default());
        RunError::Trap(TrapReport {
            code: code.map(TrapCode::from_raw),
            thread: number,
            function: object.map(|(_, object)| object.name.clone()),
            inst: record.and_then(|record| record.inst),
            srcloc,
            line: object.and_then(|(index, _)| self.source_line(index, srcloc)),
        })
    }
}

/// Returns the locations of a signature's values, if the arguments match the signature.
pub(super) fn call_info(name: &str, signature: &Signature, args: &[DataValue]) -> Result<SigInfo, RunError> {
    let info = SigInfo::new(signature, name).map_err(|error| RunError::Refused {
        function: name.to_owned(),
        reason: error.to_string(),
    })?;
    check_types(name, signature, args)?;
    Ok(info)
}

/// Checks that the arguments match the signature, and that the host has values of its types.
fn check_types(name: &str, signature: &Signature, args: &[DataValue]) -> Result<(), RunError> {
    let types = || signature.params.iter().map(|param| param.value_type);
    if !fit(types(), args) {
        return Err(RunError::Signature(format!(
            "%{name} takes ({}), called with ({})",
            types()
                .flat_map(host_types)
                .map(|ty| ty.to_string())
                .collect::<Vec<_>>()
                .join(", "),
            args.iter()
                .map(|arg| arg.ty().to_string())
                .collect::<Vec<_>>()
                .join(", "),
        )));
    }
    match signature.returns.iter().find(|param| !is_value_type(param.value_type)) {
        Some(param) => Err(RunError::Signature(format!(
            "%{name} has a result of type {}, which the host cannot take; return it through memory",
            param.value_type
        ))),
        None => Ok(()),
    }
}

/// The call of one thread.
pub(super) struct Call<'a> {
    machine: &'a mut Machine,
    thread: usize,
    /// The top of the stack; results in memory are above it.
    top: u32,
    sp: u32,
}

impl<'a> Call<'a> {
    pub(super) fn new(machine: &'a mut Machine, thread: usize, info: &SigInfo) -> Self {
        let top = stack_top(thread);
        Self {
            machine,
            thread,
            top,
            sp: top - info.stack_args.next_multiple_of(STACK_ALIGN),
        }
    }

    /// Sets up the thread as a caller does: arguments, stack, return address, and callee-saved
    /// registers.
    pub(super) fn set_up(
        &mut self,
        info: &SigInfo,
        signature: &Signature,
        args: &[DataValue],
        entry: u32,
    ) -> Result<(), RunError> {
        self.machine.refill_registers(self.thread);
        let thread = self.machine.thread_mut(self.thread);
        // This also sets the lane mask.
        thread.set_scalar(SReg::RM, u16::MAX.into());
        thread.set_status(npu_sim::Status::new(ThreadStatus::Running as u32));
        for reg in npu_mc::cc::CALLEE_SAVED {
            match *reg {
                Reg::S(reg) => thread.set_scalar(reg, SENTINEL | u32::from(reg.number())),
                Reg::V(reg) => thread.set_vector(reg, npu_sim::Lanes::splat(SENTINEL | u32::from(reg.number()))),
            }
        }
        thread.set_scalar(SReg::SP, self.sp);
        thread.set_scalar(SReg::RA, RETURN_TO);
        thread.set_pc(entry);
        let (thread, top) = (self.thread, self.top);
        let types = signature.params.iter().map(|param| param.value_type);
        let mut places = ThreadPlaces {
            machine: self.machine,
            thread,
            base: self.sp,
        };
        let passed = places.set_all(types, &info.args, args);
        let passed = passed.and_then(|()| match info.ret_area {
            Some(place) => places.set_word(place, top),
            None => Ok(()),
        });
        Ok(passed.map_err(|full| LinkError::MemoryFull(full.to_string()))?)
    }

    /// Checks that the callee preserved callee-saved registers and popped its stack arguments.
    pub(super) fn check_preserved(&self, popped: u32, pinned: Option<SReg>) -> Result<(), RunError> {
        let thread = self.machine.thread(self.thread);
        let changed = |reg: SReg, expected: u32| thread.scalar(reg) != expected;
        if changed(SReg::SP, self.sp + popped) {
            return Err(RunError::Clobbered {
                register: Reg::S(SReg::SP),
            });
        }
        for &register in npu_mc::cc::CALLEE_SAVED {
            let reg = match register {
                Reg::S(reg) => reg,
                Reg::V(reg) => {
                    let expected = npu_sim::Lanes::splat(SENTINEL | u32::from(reg.number()));
                    if *thread.vector(reg) != expected {
                        return Err(RunError::Clobbered { register });
                    }
                    continue;
                }
            };
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

    pub(super) fn results(&mut self, info: &SigInfo, signature: &Signature) -> Vec<DataValue> {
        let places = ThreadPlaces {
            machine: self.machine,
            thread: self.thread,
            base: self.top,
        };
        let types = signature.returns.iter().map(|param| param.value_type);
        places.get_all(types, &info.rets)
    }
}
