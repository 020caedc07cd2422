//! WASI preview 1: console, arguments, environment, clock, random numbers, exit, and files in folders
//! of the host.
//!
//! Every function that a module imports from [`MODULE`] exists. Functions without an implementation
//! return `ENOSYS`; [`Wasi::missing`] names those that were called.

mod files;

pub use files::Folder;

use crate::error::{Result, WasmError};
use crate::items::Extern;
use crate::parse::{ImportKind, parse};
use crate::store::{CallError, Instance, Store};
use crate::types::{Types, ValueType};
use cranelift_codegen::data_value::DataValue;
use files::Files;
use naplespu_jit::{HostCall, HostStop};
use npu_sim::Machine;
use std::collections::BTreeSet;
use std::fmt;
use std::io::{Read, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The module that programs import these functions from.
pub const MODULE: &str = "wasi_snapshot_preview1";

/// Cycles of the device per microsecond, for an assumed clock of 100 MHz.
const CYCLES_PER_MICROSECOND: u64 = 100;

const SUCCESS: i32 = 0;
const EBADF: i32 = 8;
const EFAULT: i32 = 21;
const EILSEQ: i32 = 25;
const EIO: i32 = 29;
const ENOSYS: i32 = 52;
const ESPIPE: i32 = 70;

/// The file type of a console.
const CHARACTER_DEVICE: u8 = 2;
/// The rights to read and write.
const CONSOLE_RIGHTS: u64 = 1 << 1 | 1 << 6;

/// The environment of a program.
pub struct World {
    /// The arguments; the first is the name of the program.
    pub args: Vec<String>,
    /// The environment variables, as `NAME=value`.
    pub environment: Vec<String>,
    /// The source of descriptor 0.
    pub input: Box<dyn Read + Send>,
    /// The sink of descriptor 1.
    pub output: Box<dyn Write + Send>,
    /// The sink of descriptor 2.
    pub errors: Box<dyn Write + Send>,
    /// The seed of random numbers.
    pub seed: u64,
    /// The folders that the program may use.
    pub folders: Vec<Folder>,
}

impl fmt::Debug for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("World")
            .field("args", &self.args)
            .field("environment", &self.environment)
            .field("seed", &self.seed)
            .field("folders", &self.folders)
            .finish_non_exhaustive()
    }
}

struct State {
    world: World,
    /// Whether the program has requested random numbers.
    random: bool,
    /// The address of the memory on the device, and of the word with its size.
    memory: Option<(u32, u32)>,
    files: Files,
    /// The called functions without an implementation.
    missing: BTreeSet<String>,
}

/// The WASI functions of one program.
#[derive(Clone)]
pub struct Wasi(Arc<Mutex<State>>);

impl fmt::Debug for Wasi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Wasi")
    }
}

impl Wasi {
    /// Defines the functions that a binary module imports. Call [`Wasi::attach`] before the module
    /// runs.
    ///
    /// # Errors
    ///
    /// See [`WasmError`].
    pub fn define(store: &mut Store, bytes: &[u8], mut world: World) -> Result<Self> {
        let files = Files::new(std::mem::take(&mut world.folders));
        let wasi = Self(Arc::new(Mutex::new(State {
            world,
            random: false,
            memory: None,
            files,
            missing: BTreeSet::new(),
        })));
        let mut types = Types::default();
        let info = parse(bytes, &mut types)?;
        for import in info.imports.iter().filter(|import| import.module == MODULE) {
            let ImportKind::Func(ty) = import.kind else { continue };
            let ty = types.get(ty)?.clone();
            let returns = match ty.results[..] {
                [] => false,
                [ValueType::I32] => true,
                _ => continue,
            };
            let (state, name) = (wasi.clone(), import.name.to_owned());
            let function = move |call: HostCall<'_>, args: &[DataValue]| {
                let result = state.lock().call(&name, call, args)?;
                Ok(if returns {
                    vec![DataValue::I32(result)]
                } else {
                    Vec::new()
                })
            };
            let item = store.host_function(&format!("{MODULE}.{}", import.name), &ty, Box::new(function))?;
            store.define(MODULE, import.name, Extern::Func(item));
        }
        Ok(wasi)
    }

    /// Returns whether the program has requested random numbers, so that its behavior depends on
    /// the seed.
    pub fn used_random(&self) -> bool {
        self.lock().random
    }

    /// Returns the names of the called functions that have no implementation.
    pub fn missing(&self) -> Vec<String> {
        self.lock().missing.iter().cloned().collect()
    }

    /// Sets the instance that runs. Its memory is the export `memory`.
    ///
    /// # Errors
    ///
    /// [`WasmError::Internal`] if its memory has no address.
    pub fn attach(&self, store: &Store, instance: &Instance) -> Result<()> {
        if let Some(Extern::Memory(memory)) = instance.export("memory") {
            let base = store.base(memory.base);
            let size = store.module().data_address(memory.size);
            let place = base.zip(size);
            self.lock().memory = Some(place.ok_or_else(|| WasmError::internal("an address of the memory"))?);
        }
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The linear memory during a call.
struct Memory<'a> {
    machine: &'a mut Machine,
    base: u32,
    size: u32,
}

/// The arguments of a call.
struct Args<'a>(&'a [DataValue]);

impl Args<'_> {
    fn word(&self, k: usize) -> u32 {
        self.long(k) as u32
    }

    fn long(&self, k: usize) -> u64 {
        match self.0.get(k) {
            Some(DataValue::I32(value)) => u64::from(*value as u32),
            Some(DataValue::I64(value)) => *value as u64,
            _ => 0,
        }
    }
}

/// A result with an error number.
type Errno<T> = std::result::Result<T, i32>;

impl Memory<'_> {
    fn address(&self, at: u32, count: u32) -> Errno<u32> {
        match at.checked_add(count) {
            Some(end) if end <= self.size => Ok(self.base.wrapping_add(at)),
            _ => Err(EFAULT),
        }
    }

    fn read(&self, at: u32, count: u32) -> Errno<Vec<u8>> {
        let address = self.address(at, count)?;
        let mut bytes = vec![0; count as usize];
        self.machine.memory().read(address, &mut bytes);
        Ok(bytes)
    }

    fn text(&self, at: u32, count: u32) -> Errno<String> {
        String::from_utf8(self.read(at, count)?).map_err(|_| EILSEQ)
    }

    fn word(&self, at: u32) -> Errno<u32> {
        let address = self.address(at, 4)?;
        let mut bytes = [0; 4];
        self.machine.memory().read(address, &mut bytes);
        Ok(u32::from_le_bytes(bytes))
    }

    fn write(&mut self, at: u32, bytes: &[u8]) -> Errno<()> {
        let address = self.address(at, u32::try_from(bytes.len()).map_err(|_| EFAULT)?)?;
        self.machine.memory_mut().write(address, bytes).map_err(|_| EFAULT)
    }

    fn write_word(&mut self, at: u32, word: u32) -> Errno<()> {
        self.write(at, &word.to_le_bytes())
    }

    /// Returns the addresses and sizes of an array of buffers.
    fn pieces(&self, at: u32, count: u32) -> Errno<Vec<(u32, u32)>> {
        // Each buffer takes two words, so this fails if the count is too large.
        self.address(at, count.checked_mul(8).ok_or(EFAULT)?)?;
        (0..count)
            .map(|k| Ok((self.word(at + k * 8)?, self.word(at + k * 8 + 4)?)))
            .collect()
    }

    /// Writes zero-terminated strings and an array of their addresses.
    fn strings(&mut self, list: &[String], pointers: u32, bytes: u32) -> Errno<()> {
        let mut at = bytes;
        for (k, text) in (0..).zip(list) {
            self.write_word(pointers.wrapping_add(k * 4), at)?;
            self.write(at, text.as_bytes())?;
            let end = at.wrapping_add(text.len() as u32);
            self.write(end, &[0])?;
            at = end.wrapping_add(1);
        }
        Ok(())
    }

    fn string_sizes(&mut self, list: &[String], count: u32, bytes: u32) -> Errno<()> {
        self.write_word(count, list.len() as u32)?;
        self.write_word(bytes, list.iter().map(|text| text.len() as u32 + 1).sum())
    }
}

impl State {
    fn call(&mut self, name: &str, call: HostCall<'_>, args: &[DataValue]) -> std::result::Result<i32, HostStop> {
        let args = Args(args);
        let word = |k: usize| args.word(k);
        if name == "proc_exit" {
            self.flush()?;
            return Err(HostStop::Exit(word(0)));
        }
        let (base, size) = self.memory.unwrap_or_default();
        let size = if base == 0 {
            0
        } else {
            let mut bytes = [0; 4];
            call.machine.memory().read(size, &mut bytes);
            u32::from_le_bytes(bytes)
        };
        let cycles = {
            let read = |register| u64::from(call.machine.control_register(call.thread, register));
            read(npu_mc::machine::ControlRegister::CyclesHigh) << 32 | read(npu_mc::machine::ControlRegister::CyclesLow)
        };
        let mut memory = Memory {
            machine: call.machine,
            base,
            size,
        };
        let done = match name {
            "args_get" => memory.strings(&self.world.args, word(0), word(1)),
            "args_sizes_get" => memory.string_sizes(&self.world.args, word(0), word(1)),
            "environ_get" => memory.strings(&self.world.environment, word(0), word(1)),
            "environ_sizes_get" => memory.string_sizes(&self.world.environment, word(0), word(1)),
            "clock_time_get" => {
                let nanoseconds = cycles.saturating_mul(1000) / CYCLES_PER_MICROSECOND;
                memory.write(word(2), &nanoseconds.to_le_bytes())
            }
            "clock_res_get" => memory.write(word(1), &(1000 / CYCLES_PER_MICROSECOND).to_le_bytes()),
            "random_get" => self.random(&mut memory, word(0), word(1)),
            "fd_write" if word(0) <= 2 => self.fd_write(&mut memory, word(0), word(1), word(2), word(3)),
            "fd_read" if word(0) <= 2 => self.fd_read(&mut memory, word(0), word(1), word(2), word(3)),
            "fd_fdstat_get" if word(0) <= 2 => {
                let mut stat = [0; 24];
                stat[0] = CHARACTER_DEVICE;
                stat[8..16].copy_from_slice(&CONSOLE_RIGHTS.to_le_bytes());
                memory.write(word(1), &stat)
            }
            "fd_filestat_get" if word(0) <= 2 => {
                let mut stat = [0; 64];
                stat[16] = CHARACTER_DEVICE;
                memory.write(word(1), &stat)
            }
            "fd_seek" | "fd_tell" if word(0) <= 2 => Err(ESPIPE),
            "fd_close" | "fd_fdstat_set_flags" if word(0) <= 2 => Ok(()),
            "sched_yield" => Ok(()),
            _ => self.files.call(name, &mut memory, &args),
        };
        if done == Err(ENOSYS) {
            self.missing.insert(name.to_owned());
        }
        Ok(done.err().unwrap_or(SUCCESS))
    }

    fn flush(&mut self) -> std::result::Result<(), HostStop> {
        let flushed = self.world.output.flush().and_then(|()| self.world.errors.flush());
        flushed.map_err(|error| HostStop::Fault(error.to_string()))
    }

    /// Writes random bytes, generated by xorshift from the seed.
    fn random(&mut self, memory: &mut Memory<'_>, at: u32, count: u32) -> Errno<()> {
        memory.address(at, count)?;
        let mut bytes = Vec::with_capacity(count as usize);
        self.random = true;
        let mut state = self.world.seed | 1;
        for _ in 0..count {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            bytes.push((state >> 32) as u8);
        }
        self.world.seed = state;
        memory.write(at, &bytes)
    }

    fn fd_write(&mut self, memory: &mut Memory<'_>, fd: u32, at: u32, count: u32, written: u32) -> Errno<()> {
        let out = match fd {
            1 => &mut self.world.output,
            2 => &mut self.world.errors,
            _ => return Err(EBADF),
        };
        let mut sum = 0u32;
        for (at, count) in memory.pieces(at, count)? {
            out.write_all(&memory.read(at, count)?).map_err(|_| EIO)?;
            sum = sum.wrapping_add(count);
        }
        out.flush().map_err(|_| EIO)?;
        memory.write_word(written, sum)
    }

    fn fd_read(&mut self, memory: &mut Memory<'_>, fd: u32, at: u32, count: u32, taken: u32) -> Errno<()> {
        if fd != 0 {
            return Err(EBADF);
        }
        let mut sum = 0u32;
        for (at, count) in memory.pieces(at, count)? {
            memory.address(at, count)?;
            let mut bytes = vec![0; count as usize];
            let got = self.world.input.read(&mut bytes).map_err(|_| EIO)?;
            memory.write(at, bytes.get(..got).ok_or(EIO)?)?;
            sum = sum.wrapping_add(got as u32);
            // A short read returns at once: the input may be interactive.
            if got < count as usize {
                break;
            }
        }
        memory.write_word(taken, sum)
    }
}

/// Runs the function `_start` of a program.
///
/// # Errors
///
/// See [`CallError`]; most programs end with [`CallError::Exit`].
pub fn run(store: &mut Store, instance: &Instance) -> std::result::Result<(), CallError> {
    store.invoke(instance, "_start", &[]).map(drop)
}
