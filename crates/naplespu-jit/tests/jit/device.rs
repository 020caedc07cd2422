//! Tests of the accelerator: memory, launches on threads and cores, limits, traps, host functions.

use super::*;
use naplespu_jit::Device;
use naplespu_jit::device::{self, Arg, DeviceError, Fault, LaunchConfig, Progress, ThreadId, ThreadSet};
use naplespu_jit::{HostCall, HostStop};
use npu_sim::{Config, LineSource, Schedule, TimingConfig};
use std::sync::{Arc, Mutex};

fn target(level: &str) -> Arc<cranelift_naplespu::Isa> {
    let mut flags = settings::builder();
    flags.set("opt_level", level).unwrap();
    isa::lookup_by_name("naplespu")
        .unwrap()
        .finish(settings::Flags::new(flags))
        .unwrap()
}

pub fn device(cores: usize, coherent: bool) -> Device {
    let config = Config {
        cores,
        coherent,
        ..Config::testing(1)
    };
    Device::with_config(target("speed"), config).unwrap()
}

/// A device for kernels that share lines between cores, which the hardware does not do right.
fn device_that_shares(cores: usize, coherent: bool) -> Device {
    let config = Config {
        cores,
        coherent,
        strict: false,
        ..Config::testing(1)
    };
    Device::with_config(target("speed"), config).unwrap()
}

fn add(device: &mut Device, clif: &str) -> FuncId {
    device.add_function(&parse(clif)).unwrap()
}

/// Multiplies words from `v0` by `v3` and stores them from `v1` on. Each of `v5` threads handles
/// every `v5`th of `v2` words, starting at `v4`. Returns the number of words that it handled.
const SCALE: &str = "
function %scale(i32, i32, i32, i32, i32, i32) -> i32 system_v {
    fn0 = %__builtin_npu_flush(i32) system_v
block0(v0: i32, v1: i32, v2: i32, v3: i32, v4: i32, v5: i32):
    v6 = iconst.i32 0
    jump block1(v4, v6)
block1(v7: i32, v8: i32):
    v9 = icmp ult v7, v2
    brif v9, block2, block3
block2:
    v10 = iconst.i32 2
    v11 = ishl v7, v10
    v12 = iadd v0, v11
    v13 = load.i32 v12
    v14 = imul v13, v3
    v15 = iadd v1, v11
    store v14, v15
    call fn0(v15)
    v16 = iadd v7, v5
    v17 = iconst.i32 1
    v18 = iadd v8, v17
    jump block1(v16, v18)
block3:
    return v8
}";

fn thread_sets() -> Vec<ThreadSet> {
    let mut odd = ThreadSet::from_mask(0, 0b1000_0001);
    odd.extend(ThreadSet::from_mask(1, 0b0010_1000).iter());
    odd.insert(ThreadId { core: 2, thread: 7 });
    vec![
        ThreadSet::first(1),
        ThreadSet::first(8),
        ThreadSet::first(11),
        ThreadSet::first(24),
        ThreadSet::on_cores(0..3, 2),
        ThreadSet::on_cores(2..3, 1),
        odd,
    ]
}

#[test]
fn a_kernel_runs_on_any_threads_of_any_cores() {
    const COUNT: u32 = 300;
    let input: Vec<u32> = (0..COUNT).map(|k| k * 77 + 5).collect();
    for coherent in [true, false] {
        let mut device = device(3, coherent);
        let scale = add(&mut device, SCALE);
        let from = device.allocate(4 * COUNT).unwrap();
        device.copy_words_in(from, 0, &input).unwrap();
        for (number, threads) in thread_sets().into_iter().enumerate() {
            for timed in [false, true] {
                let to = device.allocate(4 * COUNT).unwrap();
                let mut config = LaunchConfig::new(threads.clone());
                if timed {
                    config = config.timed(TimingConfig {
                        memory_delay: 20,
                        ..TimingConfig::default()
                    });
                }
                let factor = number as u32 + 2;
                let ranks = threads.len() as i32;
                let args = |rank: usize, _| {
                    let (factor, rank) = (factor as i32, rank as i32);
                    let count = Arg::from(COUNT as i32);
                    vec![from.into(), to.into(), count, factor.into(), rank.into(), ranks.into()]
                };
                let done = device.launch_each(scale, config, args).unwrap().wait().unwrap();
                let expected: Vec<u32> = input.iter().map(|word| word * factor).collect();
                assert_eq!(device.copy_words_out(to, 0, COUNT as usize).unwrap(), expected);
                // Exactly the threads of the set took part.
                let ran: Vec<ThreadId> = done.results.iter().map(|(thread, _)| *thread).collect();
                assert_eq!(ran, threads.iter().collect::<Vec<_>>());
                let done_by = |result: &[DataValue]| match result {
                    [DataValue::I32(count)] => *count,
                    other => panic!("{other:?}"),
                };
                let shares: Vec<i32> = done.results.iter().map(|(_, result)| done_by(result)).collect();
                assert_eq!(shares.iter().sum::<i32>(), COUNT as i32);
                assert!(shares.iter().max().unwrap() - shares.iter().min().unwrap() <= 1);
                let statistics = &done.statistics;
                let each: u64 = statistics.threads.iter().map(|thread| thread.instructions).sum();
                assert_eq!(statistics.instructions, each);
                assert!(statistics.threads.iter().all(|thread| thread.instructions > 100));
                assert_eq!(statistics.cycles().is_some(), timed);
                if let Some(cycles) = statistics.cycles() {
                    for thread in &statistics.threads {
                        let own = thread.cycles().unwrap();
                        assert!(thread.instructions <= own && own <= cycles + 1, "{own} of {cycles}");
                        assert_eq!(thread.counters.unwrap().instructions, thread.instructions);
                    }
                }
                device.free(to).unwrap();
            }
        }
    }
}

#[test]
fn threads_tell_themselves_apart_and_meet_across_cores() {
    let clif = "
function %meet(i32, i32) -> i32, i32 system_v {
    fn0 = %__builtin_npu_thread_id() -> i32 system_v
    fn1 = %__builtin_npu_tile_id() -> i32 system_v
    fn2 = %__builtin_npu_barrier(i32, i32) system_v
block0(v0: i32, v1: i32):
    v2 = call fn0()
    v3 = call fn1()
    v4 = iconst.i32 3
    v5 = ishl v3, v4
    v6 = iadd v5, v2
    v7 = iconst.i32 2
    v8 = ishl v6, v7
    v9 = iadd v0, v8
    v10 = iconst.i32 100
    v11 = iadd v6, v10
    store v11, v9
    v12 = iconst.i32 -1
    v13 = iadd v1, v12
    call fn2(v4, v13)
    ; The value stored by the neighboring thread, possibly on another core.
    v14 = iconst.i32 9
    v15 = iadd v6, v14
    v16 = urem v15, v1
    v17 = ishl v16, v7
    v18 = iadd v0, v17
    v19 = load.i32 v18
    return v6, v19
}";
    for coherent in [true, false] {
        let mut device = device_that_shares(4, coherent);
        let meet = add(&mut device, clif);
        let places = device.allocate(4 * 32).unwrap();
        for schedule in [Schedule::default(), Schedule::random(5, 10)] {
            let config = LaunchConfig::new(device.threads()).schedule(schedule);
            let launch = device.launch(meet, config, &[places.into(), 32.into()]).unwrap();
            for (thread, results) in launch.wait().unwrap().results {
                let number = thread.number() as i32;
                assert_eq!(results, [word(number), word((number + 9) % 32 + 100)], "{thread}");
            }
        }
    }
}

#[test]
fn buffers_have_a_home() {
    let mut device = device(4, false);
    let home = |buffer: &device::Buffer| buffer.address() >> 28;
    let near: Vec<_> = [0, 3, 5, 3].map(|tile| device.allocate_at(tile, 100).unwrap()).into();
    assert_eq!(near.iter().map(home).collect::<Vec<_>>(), [0, 3, 5, 3]);
    // The memory of the host tile and of the memory tile is full; there are sixteen tiles.
    for tile in [14, 15, 16, u32::MAX] {
        let error = device.allocate_at(tile, 4).unwrap_err();
        assert!(matches!(error, DeviceError::OutOfMemory { asked: 4, .. }), "{error}");
    }
    // All parts are at one offset, although some tiles have other buffers.
    let parts = device.allocate_parts(1..5, 4096).unwrap();
    let offset = parts[0].address() & 0x0fff_ffff;
    for (tile, part) in (1..).zip(&parts) {
        assert_eq!((home(part), part.address() & 0x0fff_ffff), (tile, offset));
        device.fill(*part, 0, 4096, tile as u8).unwrap();
    }
    assert_eq!(device.copy_words_out(parts[2], 4092, 1).unwrap(), [0x0303_0303]);
    let allocated = device.allocated();
    device.allocate_parts(12..15, 64).unwrap_err();
    assert_eq!(device.allocated(), allocated);
    assert!(device.allocate_parts(3..3, 64).unwrap().is_empty());
    for buffer in near.into_iter().chain(parts) {
        device.free(buffer).unwrap();
    }
    assert_eq!(device.allocated(), 0);
}

#[test]
fn each_core_reads_its_copy() {
    let mut device = device(2, false);
    let load = add(
        &mut device,
        "function %load(i32, i32) -> i32 system_v {
        block0(v0: i32, v1: i32):
            v2 = iconst.i32 28
            v3 = ishl v1, v2
            v4 = iadd v0, v3
            v5 = load.i32 aligned v4
            return v5
        }",
    );
    let bytes: Vec<u8> = (0..200).collect();
    let table = device.replicate(0..2, &bytes).unwrap();
    let parts = device.distribute(0..4, &bytes).unwrap();
    let mut back = [0; 64];
    for (part, expected) in parts.iter().zip(bytes.chunks(64)) {
        device.copy_out(*part, 0, &mut back[..expected.len()]).unwrap();
        assert_eq!(back[..expected.len()], *expected);
    }
    assert!(device.distribute(0..0, &[1]).unwrap().is_empty() && device.replicate(3..4, &[]).unwrap().len() == 1);
    table.iter().for_each(|&copy| device.set_name(copy, "table").unwrap());
    let launch = LaunchConfig::new(ThreadSet::on_cores(0..2, 1)).timed(TimingConfig::default());
    let args = |_: usize, thread: ThreadId| vec![Arg::from(table[0]), Arg::from(thread.core as i32)];
    let done = device
        .launch_each(load, launch.with_misses(), args)
        .unwrap()
        .wait()
        .unwrap();
    assert!(done.results.iter().all(|(_, results)| *results == [word(0x0302_0100)]));
    let misses = done.statistics.misses.unwrap();
    let variables = misses.by_variable(&device.variables());
    let found = variables
        .iter()
        .find(|variable| variable.name.as_deref() == Some("table"))
        .unwrap();
    // A fetch past the end of the code may also read the line of a copy.
    assert_eq!((found.homes & 3, found.readers, found.writers), (3, 3, 0));
    assert_eq!(found.counters.from(LineSource::Memory), 2);
    assert_eq!(
        device.variable(parts[1].address()).unwrap(),
        format!("buffer of 64 bytes at {:#010x}", parts[1].address())
    );
    assert_eq!(
        device.variable(naplespu_jit::stack_top(3) - 4).unwrap(),
        "stack of thread 3"
    );
    device.free(table[0]).unwrap();
    let error = device.set_name(table[0], "again").unwrap_err();
    assert!(matches!(error, DeviceError::NoBuffer(_)), "{error}");
}

#[test]
fn buffers_come_and_go() {
    let mut device = device(1, true);
    assert_eq!((device.allocated(), device.capacity()), (0, 1 << 30));
    let buffers: Vec<_> = (0..10).map(|k| device.allocate(100 * k).unwrap()).collect();
    for pair in buffers.windows(2) {
        assert!(pair[1].address() - pair[0].address() >= pair[0].size());
        assert!(pair[1].address().is_multiple_of(64));
    }
    for &buffer in &buffers {
        let bytes: Vec<u8> = (0..buffer.size()).map(|k| (k as u8).wrapping_add(1)).collect();
        device.copy_in(buffer, 0, &bytes).unwrap();
    }
    let mut back = vec![0; 900];
    device.copy_out(buffers[9], 0, &mut back).unwrap();
    assert!(
        back.iter()
            .zip(0u32..)
            .all(|(&byte, k)| byte == (k as u8).wrapping_add(1))
    );
    let before = device.allocated();
    device.free(buffers[5]).unwrap();
    assert_eq!(device.allocated(), before - 512);
    // The next buffer that fits reuses the memory, zeroed.
    let next = device.allocate_aligned(64, 256).unwrap();
    assert!(next.address() >= buffers[5].address() && next.address() < buffers[6].address());
    assert!(next.address().is_multiple_of(256));
    assert_eq!(device.copy_words_out(next, 0, 16).unwrap(), [0; 16]);
    device.fill(next, 8, 4, 0xab).unwrap();
    device.copy((next, 4), (buffers[9], 896), 4).unwrap();
    device.copy((next, 8), (next, 60), 4).unwrap();
    let words = device.copy_words_out(next, 0, 16).unwrap();
    assert_eq!((words[1], words[2], words[15]), (0, 0xabab_abab, 0xabab_abab));
    assert_eq!(device.copy_words_out(buffers[9], 896, 1).unwrap(), [0]);
    for buffer in [0, 1, 2, 3, 4, 6, 7, 8, 9]
        .map(|k| buffers[k])
        .into_iter()
        .chain([next])
    {
        device.free(buffer).unwrap();
    }
    assert_eq!(device.allocated(), 0);
    assert_eq!(device.allocate(1 << 20).unwrap().address(), buffers[0].address());
    let copy = device.allocate_from(b"some text").unwrap();
    let mut text = [0; 4];
    device.copy_out(copy, 5, &mut text).unwrap();
    assert_eq!(&text, b"text");
}

#[test]
fn memory_ends() {
    let config = Config {
        memory_limit: 1 << 20,
        ..Config::default()
    };
    let mut device = Device::with_config(target("none"), config).unwrap();
    let half = device.allocate(1 << 19).unwrap();
    match device.allocate((1 << 19) + 1) {
        Err(DeviceError::OutOfMemory { asked, free }) => assert_eq!((asked, free), ((1 << 19) + 1, 1 << 19)),
        other => panic!("{other:?}"),
    }
    let other = device.allocate(1 << 19).unwrap();
    let error = device.allocate(1).unwrap_err();
    assert_eq!(error.to_string(), "no room for 1 bytes on the device; 0 bytes are free");
    assert!(device.allocate(u32::MAX).is_err());
    device.free(half).unwrap();
    let again = device.allocate(1 << 19).unwrap();
    assert_eq!(again.address(), half.address());
    // The simulation has a little less, because code and stacks need memory too.
    let bytes = vec![1; 1 << 19];
    device.copy_in(again, 0, &bytes).unwrap();
    let error = device.copy_in(other, 0, &bytes).unwrap_err();
    assert!(matches!(error, DeviceError::Link(LinkError::MemoryFull(_))), "{error}");
    let error = device.allocate_aligned(0, 96).unwrap_err();
    assert!(matches!(error, DeviceError::OutOfMemory { .. }), "{error}");
    device.free(other).unwrap();
    let error = device.allocate_aligned(0, 96).unwrap_err();
    assert!(
        matches!(error, DeviceError::Link(LinkError::Alignment { align: 96, .. })),
        "{error}"
    );
    // A failed allocation takes no memory.
    let free = device.capacity() - device.allocated();
    assert_eq!(free, 1 << 19);
}

#[test]
fn what_is_no_buffer_is_refused() {
    let mut one = device(1, true);
    let mut other = device(1, true);
    let [mine, theirs] = [&mut one, &mut other].map(|device| device.allocate(64).unwrap());
    assert_eq!(mine.address(), theirs.address());
    let mut bytes = [0; 8];
    assert!(matches!(
        one.copy_out(theirs, 0, &mut bytes),
        Err(DeviceError::NoBuffer(_))
    ));
    assert!(matches!(one.free(theirs), Err(DeviceError::NoBuffer(_))));
    one.free(mine).unwrap();
    let error = one.free(mine).unwrap_err();
    let text = "the buffer of 64 bytes at 0x40000000 was freed, or is another device's";
    assert_eq!(error.to_string(), text);
    // Its address is reused.
    let next = one.allocate(64).unwrap();
    assert_eq!(next.address(), mine.address());
    assert!(matches!(one.copy_in(mine, 0, &bytes), Err(DeviceError::NoBuffer(_))));
    assert!(matches!(
        one.copy((next, 0), (mine, 0), 4),
        Err(DeviceError::NoBuffer(_))
    ));
    let scale = add(
        &mut one,
        "function %f(i32) -> i32 system_v { block0(v0: i32): return v0 }",
    );
    let error = one.launch(scale, ThreadSet::first(1), &[mine.into()]).unwrap_err();
    assert!(matches!(error, DeviceError::NoBuffer(_)), "{error}");
    let error = one.launch(scale, ThreadSet::first(1), &[next.at(65)]).unwrap_err();
    assert!(matches!(error, DeviceError::OutOfRange { .. }), "{error}");
    let done = one
        .launch(scale, ThreadSet::first(1), &[next.at(60)])
        .unwrap()
        .wait()
        .unwrap();
    assert_eq!(done.results[0].1, [word(next.address() as i32 + 60)]);
}

#[test]
fn copies_stay_within_what_is_there() {
    let mut device = device(1, true);
    let buffer = device.allocate(100).unwrap();
    device.copy_in(buffer, 96, &[1; 4]).unwrap();
    device.copy_in(buffer, 100, &[]).unwrap();
    for (offset, length) in [(96, 5), (100, 1), (101, 0), (u32::MAX, 8), (0, 101)] {
        match device.copy_in(buffer, offset, &vec![9; length]) {
            Err(error @ DeviceError::OutOfRange { .. }) => {
                let text =
                    format!("{length} bytes from {offset:#x} on do not lie in the buffer of 100 bytes at 0x40000000");
                assert_eq!(error.to_string(), text);
            }
            other => panic!("{other:?}"),
        }
        let out = device.copy_out(buffer, offset, &mut vec![0; length]);
        assert!(matches!(out, Err(DeviceError::OutOfRange { .. })));
        let filled = device.fill(buffer, offset, length as u32, 1);
        assert!(matches!(filled, Err(DeviceError::OutOfRange { .. })));
    }
    assert!(device.copy_words_out(buffer, 0, usize::MAX).is_err());
    assert_eq!(device.copy_words_out(buffer, 92, 2).unwrap(), [0, 0x0101_0101]);
    // Addresses that a kernel returned.
    let table = data(device.module_mut(), "table", &[7; 8]);
    let table = device.module().data_address(table).unwrap();
    let mut bytes = [0; 4];
    device.read(table + 4, &mut bytes).unwrap();
    assert_eq!(bytes, [7; 4]);
    device.write(buffer.address() + 50, &[5; 50]).unwrap();
    for (address, length) in [
        (table + 5, 4),
        (buffer.address() + 99, 2),
        (buffer.address() - 1, 1),
        (0, 1),
        (0x1000, 4),
        (u32::MAX, 1),
    ] {
        let error = device.read(address, &mut vec![0; length]).unwrap_err();
        let text = format!("{length} bytes at {address:#010x} are in no buffer and no data object");
        assert_eq!(error.to_string(), text);
        assert!(matches!(
            device.write(address, &vec![0; length]),
            Err(DeviceError::BadAddress { .. })
        ));
    }
    device.free(buffer).unwrap();
    assert!(device.read(buffer.address(), &mut bytes).is_err());
}

/// Three levels of calls. The argument selects the action of the innermost one: a trap, an infinite
/// loop, or a barrier for too many threads.
const LEVELS: &str = "
function %kernel(i32) -> i32 system_v {
    fn0 = %middle(i32) -> i32 system_v
block0(v0: i32):
@0002    v1 = call fn0(v0)
@0003    return v1
}
function %middle(i32) -> i32 system_v {
    fn0 = %inner(i32) -> i32 system_v
block0(v0: i32):
@0007    v1 = call fn0(v0)
@0008    v2 = iadd v1, v0
@0009    return v2
}
function %inner(i32) -> i32 system_v {
    fn0 = %__builtin_npu_barrier(i32, i32) system_v
block0(v0: i32):
@0012    br_table v0, block4, [block1, block2, block3]
block1:
@0013    trap user5
block2:
@0014    jump block5(v0)
block5(v2: i32):
@0014    v3 = iconst.i32 2
@0014    v4 = iadd v2, v3
@0014    brif v4, block5(v4), block4
block3:
@0015    v1 = iconst.i32 99
@0016    call fn0(v0, v1)
@0017    return v0
block4:
@0018    return v0
}";

/// Returns a device with these three functions and their source file.
fn levels(cores: usize, coherent: bool) -> (Device, FuncId) {
    with_levels(device(cores, coherent))
}

fn with_levels(mut device: Device) -> (Device, FuncId) {
    let functions = cranelift_reader::parse_functions(LEVELS).unwrap();
    // One by one, so that nothing is inlined and every level has a frame.
    let ids: Vec<FuncId> = functions
        .iter()
        .map(|func| device.add_function(func).unwrap())
        .collect();
    for &id in &ids {
        device.module_mut().set_source_file(id, "levels.clif");
    }
    (device, ids[0])
}

fn fault(result: Result<impl std::fmt::Debug, DeviceError>) -> Fault {
    match result {
        Err(DeviceError::Fault(fault)) => *fault,
        other => panic!("{other:?}"),
    }
}

fn lines(fault: &Fault) -> Vec<(ThreadId, Vec<u32>)> {
    let line = |frame: &naplespu_jit::Frame| frame.line.as_ref().unwrap().line;
    let traces = fault.traces.iter();
    traces
        .map(|trace| (trace.thread, trace.frames.iter().map(line).collect()))
        .collect()
}

#[test]
fn a_trap_has_a_place_and_a_back_trace() {
    for coherent in [true, false] {
        let (mut device, kernel) = levels(2, coherent);
        // Only the sixth thread of the second core traps.
        let place = ThreadId { core: 1, thread: 5 };
        let which = |_, thread| vec![if thread == place { 0.into() } else { 7.into() }];
        let launch = device.launch_each(kernel, device.threads(), which).unwrap();
        let fault = fault(launch.wait());
        assert!(
            matches!(&fault.error, RunError::Trap(trap) if trap.thread == 13),
            "{fault}"
        );
        assert_eq!(lines(&fault), [(place, vec![0x13, 7, 2])]);
        let text = fault.to_string();
        let mut rows = text.lines();
        let first = rows.next().unwrap();
        assert_eq!(first, "trap: user5 in %inner at levels.clif:19 (thread 13)");
        assert_eq!(rows.next(), Some("thread 5 of core 1:"));
        for (depth, function, line) in [(0, "inner", 19), (1, "middle", 7), (2, "kernel", 2)] {
            let row = rows.next().unwrap();
            assert!(row.starts_with(&format!("  #{depth}   0x0000")), "{text}");
            assert!(row.contains(&format!(" in %{function}+0x")), "{text}");
            assert!(row.ends_with(&format!(" at levels.clif:{line}")), "{text}");
        }
        assert_eq!(rows.next(), None);
        // The other threads finished, and the next launch is not affected.
        assert!(fault.statistics.threads.iter().all(|thread| thread.instructions > 0));
        let launch = device.launch(kernel, ThreadSet::first(16), &[4.into()]).unwrap();
        let done = launch.wait().unwrap();
        assert!(done.results.iter().all(|(_, results)| *results == [word(8)]));
    }
}

#[test]
fn limits_are_errors() {
    let (mut device, kernel) = levels(2, false);
    let threads = ThreadSet::on_cores(0..2, 2);
    let config = LaunchConfig::new(threads.clone()).instruction_limit(5000);
    let launch = device.launch(kernel, config, &[1.into()]).unwrap();
    let stopped = fault(launch.wait());
    let text = stopped.error.to_string();
    assert!(
        text.starts_with("thread 0: no result after 5000 instructions in %inner"),
        "{text}"
    );
    assert_eq!(lines(&stopped), [(ThreadId::from_number(0), vec![0x14, 7, 2])]);
    assert_eq!(stopped.statistics.instructions, 5000);
    assert_eq!(stopped.statistics.cycles(), None);

    let config = LaunchConfig::new(threads.clone()).timed_up_to(TimingConfig::default(), 3000);
    let stopped = fault(device.launch(kernel, config, &[1.into()]).unwrap().wait());
    let text = stopped.error.to_string();
    assert!(
        text.starts_with("thread 0: no result after 3000 cycles in %inner"),
        "{text}"
    );
    assert_eq!(stopped.traces[0].frames.len(), 3);
    let cycles = stopped.statistics.cycles().unwrap();
    assert!((3000..3050).contains(&cycles), "{cycles}");

    // A launch within the limits is not affected by them.
    let config = LaunchConfig::new(threads.clone())
        .instruction_limit(1000)
        .timed_up_to(TimingConfig::default(), 3000);
    let done = device.launch(kernel, config, &[5.into()]).unwrap().wait().unwrap();
    assert!(done.statistics.cycles().unwrap() < 3000 && done.results[3].1 == [word(10)]);
    // The last instruction is the return.
    let exact = done.statistics.instructions;
    let config = LaunchConfig::new(threads.clone()).instruction_limit(exact - 1);
    let error = device.launch(kernel, config, &[5.into()]).unwrap().wait().unwrap_err();
    assert!(error.to_string().contains("no result after"), "{error}");
}

#[test]
fn limits_of_a_module() {
    let mut module = lenient_module();
    let id = define(
        &mut module,
        "function %f(i32) system_v {
        block0(v0: i32):
            v1 = iconst.i32 2
            jump block1(v0)
        block1(v2: i32):
            v3 = iadd v2, v1
            brif v3, block1(v3), block2
        block2:
            return
        }",
    );
    assert!(!module.set_cycle_limit(Some(100)));
    module.set_timing(Some(TimingConfig::default()));
    assert!(module.set_cycle_limit(Some(100)));
    for threads in [1, 2] {
        let error = module.call_threads(id, &[word(1)], threads).unwrap_err().to_string();
        assert!(error.contains("no result after 100 cycles in %f"), "{error}");
        assert!(module.timing_report().unwrap().cycles >= 100);
    }
}

#[test]
fn threads_that_wait_for_ever_have_a_back_trace_each() {
    let (mut device, kernel) = levels(2, true);
    let threads = ThreadSet::from_mask(1, 0b101);
    let launch = device.launch(kernel, threads.clone(), &[2.into()]).unwrap();
    let stopped = fault(launch.wait());
    let RunError::Deadlock(stuck) = &stopped.error else {
        panic!("{stopped}")
    };
    assert_eq!((stuck[0].thread, stuck[1].thread, stuck[1].expected), (8, 10, 100));
    let expected: Vec<_> = threads.iter().map(|thread| (thread, vec![0x16, 7, 2])).collect();
    assert_eq!(lines(&stopped), expected);
}

#[test]
fn what_cannot_be_launched_is_refused_at_once() {
    let (mut device, kernel) = levels(2, true);
    let launch = |device: &mut Device, kernel, threads: ThreadSet, args: &[Arg]| {
        device.launch(kernel, threads, args).map(|_| ()).unwrap_err()
    };
    let one = ThreadSet::first(1);
    assert!(matches!(
        launch(&mut device, kernel, ThreadSet::new(), &[0.into()]),
        DeviceError::NoThreads
    ));
    for thread in [ThreadId { core: 2, thread: 0 }, ThreadId { core: 0, thread: 8 }] {
        let mut set = one.clone();
        set.insert(thread);
        let error = launch(&mut device, kernel, set, &[0.into()]);
        let text = format!("{thread} does not exist: the device has 2 cores of 8 threads");
        assert_eq!(error.to_string(), text);
    }
    for args in [vec![], vec![Arg::from(1i64)], vec![1.into(), 2.into()]] {
        let error = launch(&mut device, kernel, one.clone(), &args);
        assert!(matches!(&error, DeviceError::Launch(RunError::Signature(_))), "{error}");
    }
    let lonely = add(
        &mut device,
        "function %lonely() system_v { fn0 = %nobody() system_v block0: call fn0() return }",
    );
    let error = launch(&mut device, lonely, one.clone(), &[]);
    assert_eq!(error.to_string(), "%nobody is not defined, and %lonely refers to it");
    let error = launch(&mut device, FuncId::from_u32(999), one, &[]);
    assert!(
        matches!(error, DeviceError::Launch(RunError::NoSuchFunction(_))),
        "{error}"
    );
}

#[test]
fn threads_of_all_cores_call_the_host() {
    let clif = "
function %ask(i32, i32) -> i32 system_v {
    fn0 = %host(i32, i32) -> i32 system_v
    ss0 = explicit_slot 4, align = 4
block0(v0: i32, v1: i32):
    v2 = stack_addr.i32 ss0
    store v1, v2
    v3 = call fn0(v2, v0)
    v4 = load.i32 v2
    v5 = iadd v3, v4
    return v5
}";
    let mut signature = words(2, 1);
    signature.call_conv = CallConv::SystemV;
    for (coherent, timed) in [(true, false), (false, false), (true, true), (false, true)] {
        let mut device = device(2, coherent);
        let config = |threads| match timed {
            true => LaunchConfig::new(threads).timed_up_to(TimingConfig::default(), 1_000_000),
            false => LaunchConfig::new(threads),
        };
        let seen = Arc::new(Mutex::new(Vec::new()));
        let record = seen.clone();
        // Reads the argument from the thread's stack in the cache, doubles it there, and fails for
        // 13.
        let host = move |mut call: HostCall<'_>, args: &[DataValue]| {
            let [DataValue::I32(place), DataValue::I32(what)] = *args else {
                return Err(HostStop::Fault("two words".to_owned()));
            };
            if what == 13 {
                return Err(HostStop::Fault("unlucky".to_owned()));
            }
            let mut bytes = [0; 4];
            call.read(place as u32, &mut bytes);
            let number = i32::from_le_bytes(bytes);
            call.write(place as u32, &(2 * number).to_le_bytes())?;
            record.lock().unwrap().push((call.core(), call.thread));
            Ok(vec![DataValue::I32(1000 * number)])
        };
        device.add_host_function("host", &signature, Box::new(host)).unwrap();
        let ask = add(&mut device, clif);
        let args = |rank: usize, _| vec![0.into(), (rank as i32 + 1).into()];
        let launch = device.launch_each(ask, config(ThreadSet::first(16)), args).unwrap();
        for (thread, results) in launch.wait().unwrap().results {
            assert_eq!(results, [word(1002 * (thread.number() as i32 + 1))], "{thread}");
        }
        let mut seen = std::mem::take(&mut *seen.lock().unwrap());
        seen.sort_unstable();
        assert_eq!(seen, (0..16).map(|number| (number / 8, number)).collect::<Vec<_>>());
        // One of the threads fails.
        let args = |rank: usize, _| vec![if rank == 6 { 13.into() } else { 0.into() }, 1.into()];
        let stopped = fault(
            device
                .launch_each(ask, config(ThreadSet::on_cores(0..2, 4)), args)
                .unwrap()
                .wait(),
        );
        assert_eq!(stopped.error.to_string(), "thread 10: %host: unlucky");
        let functions: Vec<_> = stopped.traces[0].frames.iter().map(|f| f.function.as_deref()).collect();
        assert_eq!(functions, [Some("host"), Some("ask")]);
        assert_eq!(stopped.traces[0].thread, ThreadId { core: 1, thread: 2 });
    }
}

#[test]
fn kernels_are_replaced_and_freed() {
    let mut device = device(1, true);
    let kernel = add(
        &mut device,
        "function %kernel(i32) -> i32 system_v {
            fn0 = %part(i32) -> i32 system_v
        block0(v0: i32):
            v1 = call fn0(v0)
            return v1
        }",
    );
    let part = |factor: i32| {
        parse(&format!(
            "function %part(i32) -> i32 system_v {{
            block0(v0: i32):
                v1 = iconst.i32 {factor}
                v2 = imul v0, v1
                return v2
            }}"
        ))
    };
    let run = |device: &mut Device| -> Result<DataValue, DeviceError> {
        let launch = device.launch(kernel, ThreadSet::first(2), &[10.into()])?;
        Ok(launch.wait()?.results.remove(1).1.remove(0))
    };
    assert!(matches!(
        run(&mut device),
        Err(DeviceError::Launch(RunError::Undefined { .. }))
    ));
    let id = device.replace_function(&part(3)).unwrap();
    assert_eq!(run(&mut device).unwrap(), word(30));
    assert!(device.add_function(&part(4)).is_err());
    assert_eq!(device.replace_function(&part(4)).unwrap(), id);
    assert_eq!(run(&mut device).unwrap(), word(40));
    let refused = parse("function %part(i32) -> i32 system_v { block0(v0: i32): v1 = get_pinned_reg.i32 return v1 }");
    assert!(device.replace_function(&refused).unwrap_err().is_refusal());
    assert_eq!(run(&mut device).unwrap(), word(40));
    assert_eq!(device.function("part"), Some(id));
    device.free_function(id).unwrap();
    assert!(matches!(
        run(&mut device),
        Err(DeviceError::Launch(RunError::Undefined { .. }))
    ));
    assert!(device.free_function(id).is_err());
    device.add_function(&part(5)).unwrap();
    assert_eq!(run(&mut device).unwrap(), word(50));
}

#[test]
fn a_launch_in_steps_is_the_launch_at_once() {
    let (mut device, kernel) = with_levels(device_that_shares(2, false));
    let scale = add(&mut device, SCALE);
    let buffer = device.allocate(4 * 200).unwrap();
    for timed in [false, true] {
        let mut config = LaunchConfig::new(ThreadSet::on_cores(0..2, 3));
        if timed {
            config = config.timed(TimingConfig::default());
        }
        let args = |rank: usize, _| {
            let (count, rank) = (Arg::from(200), Arg::from(rank as i32));
            vec![buffer.into(), buffer.into(), count, 3.into(), rank, 6.into()]
        };
        let whole = device.launch_each(scale, config.clone(), args).unwrap().wait().unwrap();
        for step in [1, 7, 1000] {
            let mut launch = device.launch_each(scale, config.clone(), args).unwrap();
            let mut steps = 0;
            let done = loop {
                match launch.advance(step).unwrap() {
                    Progress::Running(rest) => launch = rest,
                    Progress::Finished(done) => break done,
                }
                steps += 1;
                let so_far = launch.statistics().instructions;
                assert!(so_far >= steps * step && so_far <= whole.statistics.instructions);
            };
            assert!(steps > 1);
            assert_eq!(done.results, whole.results);
            assert_eq!(done.statistics, whole.statistics);
        }
    }
    // A dropped launch does not affect the next one.
    let launch = device.launch(kernel, ThreadSet::first(16), &[1.into()]).unwrap();
    let Ok(Progress::Running(launch)) = launch.advance(1000) else {
        panic!("it never ends")
    };
    assert!(format!("{launch:?}").starts_with("Launch"));
    drop(launch);
    let done = device.launch(kernel, ThreadSet::first(16), &[4.into()]).unwrap();
    assert_eq!(done.wait().unwrap().results.len(), 16);
}

#[test]
fn devices_run_on_threads_of_the_host() {
    let mut devices: Vec<_> = (0..3).map(|_| levels(1, true)).collect();
    let results: Vec<_> = std::thread::scope(|scope| {
        let launches = devices.iter_mut().enumerate().map(|(number, (device, kernel))| {
            let launch = device.launch(*kernel, ThreadSet::first(8), &[(number as i32 + 10).into()]);
            let launch = launch.unwrap();
            scope.spawn(move || launch.wait().unwrap().results[7].1.clone())
        });
        let running: Vec<_> = launches.collect();
        running.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(results, [[word(20)], [word(22)], [word(24)]]);
}

#[test]
fn the_host_sees_what_was_flushed() {
    let mut device = device(1, false);
    let store = add(
        &mut device,
        "function %store(i32, i32) -> i32 system_v {
            fn0 = %__builtin_npu_flush(i32) system_v
        block0(v0: i32, v1: i32):
            v2 = load.i32 v0
            store v1, v0
            store v1, v0+64
            call fn0(v0)
            return v2
        }",
    );
    let buffer = device.allocate(128).unwrap();
    let run = |device: &mut Device, value: i32| {
        let launch = device.launch(store, ThreadSet::first(1), &[buffer.into(), value.into()]);
        launch.unwrap().wait().unwrap().results.remove(0).1.remove(0)
    };
    assert_eq!(run(&mut device, 5), word(0));
    assert_eq!(device.copy_words_out(buffer, 0, 1).unwrap(), [5]);
    assert_eq!(device.copy_words_out(buffer, 64, 1).unwrap(), [0]);
    // Later writes of the host prevail.
    device.copy_words_in(buffer, 0, &[6]).unwrap();
    assert_eq!(run(&mut device, 7), word(6));
    device.copy_words_in(buffer, 64, &[8]).unwrap();
    assert_eq!(device.copy_words_out(buffer, 64, 1).unwrap(), [8]);
}
