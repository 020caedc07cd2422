//! `clif-util sim --gdb`: GDB's remote protocol for the simulator.
//!
//! # Structure
//!
//! `registers` describes the machine to GDB, `control` runs the threads and decides when to stop,
//! and `monitor` has the additional commands. This module implements the traits of `gdbstub` with
//! them.

mod control;
#[cfg(test)]
mod hostile;
mod monitor;
mod registers;

use crate::{Outcome, Stop, output};
use control::{Action, Control, Reason, Watch, thread_of, tid};
use gdbstub::common::{Endianness, Pid, Signal, Tid};
use gdbstub::conn::ConnectionExt;
use gdbstub::stub::run_blocking::{BlockingEventLoop, Event, WaitForStopReasonError};
use gdbstub::stub::{DisconnectReason, GdbStubBuilder, MultiThreadStopReason};
use gdbstub::target::ext::base::BaseOps;
use gdbstub::target::ext::base::multithread::{
    MultiThreadBase, MultiThreadResume, MultiThreadResumeOps, MultiThreadSchedulerLocking,
    MultiThreadSchedulerLockingOps, MultiThreadSingleStep, MultiThreadSingleStepOps,
};
use gdbstub::target::ext::base::single_register_access::{SingleRegisterAccess, SingleRegisterAccessOps};
use gdbstub::target::ext::breakpoints::{
    Breakpoints, BreakpointsOps, HwBreakpoint, HwBreakpointOps, HwWatchpoint, HwWatchpointOps, SwBreakpoint,
    SwBreakpointOps, WatchKind,
};
use gdbstub::target::ext::host_info::{HostInfo, HostInfoOps, HostInfoResponse};
use gdbstub::target::ext::monitor_cmd::{ConsoleOutput, MonitorCmd, MonitorCmdOps};
use gdbstub::target::ext::process_info::{ProcessInfo, ProcessInfoOps, ProcessInfoResponse};
use gdbstub::target::ext::thread_extra_info::{ThreadExtraInfo, ThreadExtraInfoOps};
use gdbstub::target::{Target, TargetError, TargetResult};
use npu_link::debug::ProgramInfo;
use npu_mc::Reg;
use npu_sim::{Lanes, Machine, THREADS};
use registers::{Npu, RegId, Registers};
use std::fmt::Write as _;
use std::marker::PhantomData;
use std::net::{Ipv4Addr, TcpListener};

/// Bytes of a packet, large enough for all registers in hexadecimal.
const PACKET: usize = 1 << 15;

/// The maximum number of bytes of one read of memory, whose answer must fit into a packet. A
/// debugger that has received the packet size requests no more.
const MOST_BYTES: usize = PACKET / 2 - 4;

/// Instructions between two checks of the connection.
const SLICE: u32 = 10_000;

/// Waits for a debugger on the loopback interface and serves it until it detaches. Port 0 is any
/// free port, which is reported on standard error. `info` is the debug information of the program.
pub fn serve(machine: Machine, info: Option<ProgramInfo>, port: u16) -> Outcome {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))
        .map_err(|e| Stop::Fault(format!("port {port} cannot be listened on: {e}")))?;
    output::report(&format!("waiting for gdb on {}\n", listener.local_addr()?));
    let (stream, _) = listener.accept()?;
    let mut control = Control::new(machine, info);
    let left = session(&mut control, stream);
    output::print(control.new_output())?;
    output::report(&format!("{}\n", left.map_err(Stop::Fault)?));
    Ok(())
}

/// Serves a connection until it ends. Returns a message with the reason of the end.
///
/// # Errors
///
/// The peer sent data outside of the protocol, or a packet above the announced size.
fn session<C: ConnectionExt<Error = std::io::Error>>(control: &mut Control, connection: C) -> Result<String, String> {
    let stub = GdbStubBuilder::new(connection).packet_buffer_size(PACKET).build();
    let stub = stub.map_err(|e| e.to_string())?;
    Ok(match stub.run_blocking::<Loop<C>>(control) {
        Ok(DisconnectReason::TargetExited(status)) => format!("the program ended with status {status}"),
        Ok(DisconnectReason::TargetTerminated(signal)) => format!("the program was stopped by {signal}"),
        Ok(DisconnectReason::Disconnect) => "the debugger left".to_owned(),
        Ok(DisconnectReason::Kill) => "the debugger ended the program".to_owned(),
        // Some debuggers close the connection without a message.
        Err(error) if error.is_connection_error() => "the debugger disconnected".to_owned(),
        Err(error) => return Err(format!("gdb: {error}")),
    })
}

/// Runs the threads and polls the connection.
struct Loop<C>(PhantomData<C>);

impl<C: ConnectionExt<Error = std::io::Error>> BlockingEventLoop for Loop<C> {
    type Target = Control;
    type Connection = C;
    type StopReason = MultiThreadStopReason<u32>;

    fn wait_for_stop_reason(
        target: &mut Control,
        conn: &mut C,
    ) -> Result<Event<Reason>, WaitForStopReasonError<String, std::io::Error>> {
        loop {
            let stopped = (0..SLICE).find_map(|_| target.advance());
            // The reader of the program's output may have ended.
            let _ = output::print(target.new_output());
            if let Some(reason) = stopped {
                return Ok(Event::TargetStopped(reason));
            }
            if ConnectionExt::peek(conn)
                .map_err(WaitForStopReasonError::Connection)?
                .is_some()
            {
                let byte = ConnectionExt::read(conn).map_err(WaitForStopReasonError::Connection)?;
                return Ok(Event::IncomingData(byte));
            }
        }
    }

    fn on_interrupt(_: &mut Control) -> Result<Option<Reason>, String> {
        Ok(Some(Reason::Signal(Signal::SIGINT)))
    }
}

impl Target for Control {
    type Arch = Npu;
    type Error = String;

    fn base_ops(&mut self) -> BaseOps<'_, Npu, String> {
        BaseOps::MultiThread(self)
    }

    fn support_breakpoints(&mut self) -> Option<BreakpointsOps<'_, Self>> {
        Some(self)
    }

    fn support_host_info(&mut self) -> Option<HostInfoOps<'_, Self>> {
        Some(self)
    }

    fn support_process_info(&mut self) -> Option<ProcessInfoOps<'_, Self>> {
        Some(self)
    }

    fn support_monitor_cmd(&mut self) -> Option<MonitorCmdOps<'_, Self>> {
        Some(self)
    }
}

/// LLDB requests host and process information before registers, and fails without an answer.
impl HostInfo for Control {
    fn host_info(&self, write_item: &mut dyn FnMut(&HostInfoResponse<'_>)) -> Result<(), String> {
        write_item(&HostInfoResponse::Triple(registers::TRIPLE));
        write_item(&HostInfoResponse::Endianness(Endianness::Little));
        write_item(&HostInfoResponse::PointerSize(size_of::<u32>()));
        Ok(())
    }
}

impl ProcessInfo for Control {
    fn process_info(&self, write_item: &mut dyn FnMut(&ProcessInfoResponse<'_>)) -> Result<(), String> {
        write_item(&ProcessInfoResponse::Pid(Pid::MIN));
        write_item(&ProcessInfoResponse::Triple(registers::TRIPLE));
        write_item(&ProcessInfoResponse::Endianness(Endianness::Little));
        write_item(&ProcessInfoResponse::PointerSize(size_of::<u32>()));
        Ok(())
    }
}

impl Control {
    /// Returns the thread with this number. The number comes from the debugger and may be invalid.
    fn known(&self, tid: Tid) -> TargetResult<usize, Self> {
        let thread = thread_of(tid);
        let known = self.threads().contains(&thread);
        known.then_some(thread).ok_or(TargetError::NonFatal)
    }
}

impl MultiThreadBase for Control {
    fn read_registers(&mut self, regs: &mut Registers, tid: Tid) -> TargetResult<(), Self> {
        regs.read(self.machine.thread(self.known(tid)?));
        Ok(())
    }

    fn write_registers(&mut self, regs: &Registers, tid: Tid) -> TargetResult<(), Self> {
        let thread = self.known(tid)?;
        regs.write(self.machine.thread_mut(thread));
        Ok(())
    }

    fn support_single_register_access(&mut self) -> Option<SingleRegisterAccessOps<'_, Tid, Self>> {
        Some(self)
    }

    fn read_addrs(&mut self, start: u32, data: &mut [u8], tid: Tid) -> TargetResult<usize, Self> {
        if data.len() > MOST_BYTES {
            return Err(TargetError::NonFatal);
        }
        self.machine.read_as_core(self.known(tid)? / THREADS, start, data);
        Ok(data.len())
    }

    fn write_addrs(&mut self, start: u32, data: &[u8], _: Tid) -> TargetResult<(), Self> {
        // Dirty cache lines would hide the write.
        self.machine.write_back_caches().map_err(|_| TargetError::NonFatal)?;
        self.machine
            .memory_mut()
            .write(start, data)
            .map_err(|_| TargetError::NonFatal)
    }

    fn list_active_threads(&mut self, each: &mut dyn FnMut(Tid)) -> Result<(), String> {
        self.threads().iter().for_each(|&thread| each(tid(thread)));
        Ok(())
    }

    fn support_resume(&mut self) -> Option<MultiThreadResumeOps<'_, Self>> {
        Some(self)
    }

    fn support_thread_extra_info(&mut self) -> Option<ThreadExtraInfoOps<'_, Self>> {
        Some(self)
    }
}

impl SingleRegisterAccess<Tid> for Control {
    fn read_register(&mut self, tid: Tid, id: RegId, buf: &mut [u8]) -> TargetResult<usize, Self> {
        let thread = self.machine.thread(self.known(tid)?);
        let bytes: Vec<u8> = match id {
            RegId::Zero => vec![0; 4],
            RegId::Own(Reg::S(reg)) => registers::scalar(thread, reg).to_le_bytes().to_vec(),
            RegId::Own(Reg::V(reg)) => thread
                .vector(reg)
                .0
                .iter()
                .flat_map(|lane| lane.to_le_bytes())
                .collect(),
        };
        let place = buf.get_mut(..bytes.len()).ok_or(TargetError::NonFatal)?;
        place.copy_from_slice(&bytes);
        Ok(bytes.len())
    }

    fn write_register(&mut self, tid: Tid, id: RegId, value: &[u8]) -> TargetResult<(), Self> {
        let thread = self.known(tid)?;
        let thread = self.machine.thread_mut(thread);
        let mut words = value
            .chunks(4)
            .map(|b| b.iter().rev().fold(0, |word, &b| word << 8 | u32::from(b)));
        match id {
            RegId::Zero if value == [0; 4] => {}
            RegId::Own(Reg::S(reg)) if value.len() == 4 => {
                registers::set_scalar(thread, reg, words.next().unwrap_or(0));
            }
            RegId::Own(Reg::V(reg)) => {
                let mut lanes = Lanes::splat(0);
                if value.len() != 4 * lanes.0.len() {
                    return Err(TargetError::NonFatal);
                }
                lanes.0.iter_mut().zip(words).for_each(|(lane, word)| *lane = word);
                registers::set_vector(thread, reg, lanes);
            }
            RegId::Zero | RegId::Own(Reg::S(_)) => return Err(TargetError::NonFatal),
        }
        Ok(())
    }
}

impl MultiThreadResume for Control {
    fn resume(&mut self) -> Result<(), String> {
        Control::resume(self);
        Ok(())
    }

    fn clear_resume_actions(&mut self) -> Result<(), String> {
        self.set_all(Action::Continue);
        Ok(())
    }

    fn set_resume_action_continue(&mut self, tid: Tid, _: Option<Signal>) -> Result<(), String> {
        self.set_action(thread_of(tid), Action::Continue);
        Ok(())
    }

    fn support_single_step(&mut self) -> Option<MultiThreadSingleStepOps<'_, Self>> {
        Some(self)
    }

    fn support_scheduler_locking(&mut self) -> Option<MultiThreadSchedulerLockingOps<'_, Self>> {
        Some(self)
    }
}

impl MultiThreadSingleStep for Control {
    fn set_resume_action_step(&mut self, tid: Tid, _: Option<Signal>) -> Result<(), String> {
        self.set_action(thread_of(tid), Action::Step);
        Ok(())
    }
}

impl MultiThreadSchedulerLocking for Control {
    fn set_resume_action_scheduler_lock(&mut self) -> Result<(), String> {
        // Called after the actions of the threads that will run.
        self.lock_others();
        Ok(())
    }
}

impl Breakpoints for Control {
    fn support_sw_breakpoint(&mut self) -> Option<SwBreakpointOps<'_, Self>> {
        Some(self)
    }

    fn support_hw_breakpoint(&mut self) -> Option<HwBreakpointOps<'_, Self>> {
        Some(self)
    }

    fn support_hw_watchpoint(&mut self) -> Option<HwWatchpointOps<'_, Self>> {
        Some(self)
    }
}

impl SwBreakpoint for Control {
    fn add_sw_breakpoint(&mut self, address: u32, _: usize) -> TargetResult<bool, Self> {
        self.breakpoint(address, true);
        Ok(true)
    }

    fn remove_sw_breakpoint(&mut self, address: u32, _: usize) -> TargetResult<bool, Self> {
        Ok(self.breakpoint(address, false))
    }
}

impl HwBreakpoint for Control {
    fn add_hw_breakpoint(&mut self, address: u32, kind: usize) -> TargetResult<bool, Self> {
        self.add_sw_breakpoint(address, kind)
    }

    fn remove_hw_breakpoint(&mut self, address: u32, kind: usize) -> TargetResult<bool, Self> {
        self.remove_sw_breakpoint(address, kind)
    }
}

impl HwWatchpoint for Control {
    fn add_hw_watchpoint(&mut self, address: u32, len: u32, kind: WatchKind) -> TargetResult<bool, Self> {
        self.watch(Watch { address, len, kind });
        Ok(true)
    }

    fn remove_hw_watchpoint(&mut self, address: u32, len: u32, kind: WatchKind) -> TargetResult<bool, Self> {
        Ok(self.unwatch(Watch { address, len, kind }))
    }
}

impl ThreadExtraInfo for Control {
    fn thread_extra_info(&self, tid: Tid, buf: &mut [u8]) -> Result<usize, String> {
        let text = match self.known(tid) {
            Ok(thread) => monitor::thread_state(self, thread),
            Err(_) => "no such thread".to_owned(),
        };
        let len = text.len().min(buf.len());
        buf[..len].copy_from_slice(&text.as_bytes()[..len]);
        Ok(len)
    }
}

impl MonitorCmd for Control {
    fn handle_monitor_cmd(&mut self, command: &[u8], mut out: ConsoleOutput<'_>) -> Result<(), String> {
        let text = monitor::run(self, &String::from_utf8_lossy(command));
        // Output that the console does not accept is lost.
        let _ = out.write_str(&text);
        Ok(())
    }
}
