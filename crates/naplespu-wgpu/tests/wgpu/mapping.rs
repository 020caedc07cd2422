//! Mapping of buffers, writes and copies.

use crate::program::{Gpu, bytes, expect, npu, npu_with};
use std::sync::mpsc::channel;
use wgpu::{BufferUsages, Features, MapMode};

fn buffer(npu: &Gpu, size: u64, usage: BufferUsages, mapped_at_creation: bool) -> wgpu::Buffer {
    npu.device.create_buffer(&wgpu::BufferDescriptor {
        label: Some("mine"),
        size,
        usage,
        mapped_at_creation,
    })
}

/// Maps a range, polls, and returns whether that worked.
fn map(npu: &Gpu, buffer: &wgpu::Buffer, mode: MapMode, range: std::ops::Range<u64>) -> Result<bool, String> {
    let (sender, receiver) = channel();
    buffer.map_async(mode, range, move |result| {
        let _ = sender.send(result.is_ok());
    });
    npu.device
        .poll(wgpu::PollType::Poll)
        .map_err(|error| error.to_string())?;
    receiver.try_recv().map_err(|error| error.to_string())
}

/// A buffer that is mapped at its creation needs no usage for that.
#[test]
fn at_creation() -> Result<(), String> {
    let npu = npu()?;
    let buffer = buffer(&npu, 16, BufferUsages::COPY_SRC, true);
    let text = |error: wgpu::MapRangeError| error.to_string();
    buffer
        .get_mapped_range_mut(8..16)
        .map_err(text)?
        .copy_from_slice(&bytes(&[7, 8]));
    expect(buffer.get_mapped_range(8..16).map_err(text)?.to_vec(), bytes(&[7, 8]))?;
    buffer.unmap();
    expect(npu.read(&buffer)?, vec![0, 0, 7, 8])
}

/// Two ranges are written, one after the other, and the copy to the device is at the unmap.
#[test]
fn writes() -> Result<(), String> {
    let npu = npu()?;
    let buffer = buffer(&npu, 32, BufferUsages::MAP_WRITE | BufferUsages::COPY_SRC, false);
    for (start, words) in [(8u64, [1, 2]), (24, [3, 4])] {
        expect(map(&npu, &buffer, MapMode::Write, 8..32)?, true)?;
        let range = start..start + 8;
        let mut view = buffer.get_mapped_range_mut(range).map_err(|error| error.to_string())?;
        view.copy_from_slice(&bytes(&words));
        drop(view);
        let refused = npu.refusal(|| {
            let mut encoder = npu.encoder();
            encoder.copy_buffer_to_buffer(&buffer, 0, &self::buffer(&npu, 8, BufferUsages::COPY_DST, false), 0, 8);
            npu.queue.submit([encoder.finish()]);
        });
        expect(refused, "Queue::submit: the buffer `mine` is mapped".to_owned())?;
        buffer.unmap();
    }
    expect(npu.read(&buffer)?, vec![0, 0, 1, 2, 0, 0, 3, 4])
}

/// Callbacks run in a poll and not before; `unmap` ends a pending request.
#[test]
fn callbacks() -> Result<(), String> {
    let npu = npu()?;
    let buffer = buffer(&npu, 8, BufferUsages::MAP_READ | BufferUsages::COPY_DST, false);
    let (sender, receiver) = channel();
    let note = |text: &'static str| {
        let sender = sender.clone();
        move |result: Result<(), wgpu::BufferAsyncError>| {
            let _ = sender.send((text, result.is_ok()));
        }
    };
    buffer.map_async(MapMode::Read, .., note("first"));
    expect(receiver.try_recv().is_err(), true)?;
    // The range is not mapped yet.
    expect(buffer.get_mapped_range(..).is_err(), true)?;
    buffer.unmap();
    expect(receiver.try_recv().ok(), Some(("first", false)))?;
    buffer.map_async(MapMode::Read, .., note("second"));
    buffer.map_async(MapMode::Read, .., note("third"));
    expect(receiver.try_recv().ok(), Some(("third", false)))?;
    let done = note("done");
    npu.queue.on_submitted_work_done(move || done(Ok(())));
    npu.device
        .poll(wgpu::PollType::wait_indefinitely())
        .map_err(|error| error.to_string())?;
    expect(receiver.try_iter().collect(), vec![("second", true), ("done", true)])?;
    expect(buffer.get_mapped_range(..).is_ok(), true)?;
    buffer.unmap();
    buffer.map_async(MapMode::Read, .., note("fourth"));
    drop(buffer);
    expect(receiver.try_recv().ok(), Some(("fourth", false)))
}

/// Requests that break a rule fail with an error and in the callback.
#[test]
fn refused_requests() -> Result<(), String> {
    let npu = npu()?;
    let buffer = buffer(&npu, 32, BufferUsages::MAP_READ | BufferUsages::COPY_DST, false);
    for (mode, range, text) in [
        (MapMode::Write, 0..32, "lacks the usage BufferUsages(MAP_WRITE)"),
        (MapMode::Read, 4..32, "the start of a mapping is 4, not a multiple of 8"),
        (MapMode::Read, 8..31, "the size of a mapping is 23, not a multiple of 4"),
    ] {
        let mut mapped = Ok(true);
        let refused = npu.refusal(|| mapped = map(&npu, &buffer, mode, range));
        expect(mapped, Ok(false))?;
        if !refused.contains(text) {
            return Err(format!("expected {text:?}, found {refused:?}"));
        }
        // `wgpu` requires an unmap after a request that failed.
        expect(buffer.get_mapped_range(..).is_err(), true)?;
        buffer.unmap();
    }
    expect(map(&npu, &buffer, MapMode::Read, 8..32)?, true)?;
    expect(buffer.get_mapped_range(0..8).is_err(), true)?;
    expect(buffer.get_mapped_range(12..20).is_err(), true)?;
    expect(buffer.get_mapped_range(16..20).is_ok(), true)
}

/// A buffer with a use on the device can be mapped with a feature only.
#[test]
fn mappable_primary_buffers() -> Result<(), String> {
    let usage = BufferUsages::MAP_READ | BufferUsages::STORAGE;
    let plain = npu()?;
    let refused = plain.refusal(|| drop(buffer(&plain, 8, usage, false)));
    expect(refused.contains("cannot have the usage"), true)?;
    let npu = npu_with(Features::MAPPABLE_PRIMARY_BUFFERS)?;
    let out = buffer(&npu, 8, usage, false);
    let pipeline = npu.pipeline(
        "@group(0) @binding(0) var<storage, read_write> out: array<u32>;
         @compute @workgroup_size(1) fn main() { out[1] = 5u; }",
    );
    npu.run(&pipeline, &[&out], [1, 1, 1]);
    expect(map(&npu, &out, MapMode::Read, 0..8)?, true)?;
    let view = out.get_mapped_range(..).map_err(|error| error.to_string())?;
    expect(view.to_vec(), bytes(&[0, 5]))
}

/// Writes of the queue, with and without a staging buffer, and their rules.
#[test]
fn queue_writes() -> Result<(), String> {
    let npu = npu()?;
    let buffer = buffer(&npu, 16, BufferUsages::COPY_SRC | BufferUsages::COPY_DST, false);
    npu.queue.write_buffer(&buffer, 4, &bytes(&[1, 2]));
    let size = wgpu::BufferSize::new(4).ok_or("no size")?;
    let view = npu.queue.write_buffer_with(&buffer, 12, size);
    view.ok_or("no view")?.copy_from_slice(&bytes(&[9]));
    for (offset, size, text) in [
        (2, 4, "the offset of a write is 2"),
        (0, 3, "the size of a write is 3"),
        (12, 8, "12..20 is outside of the buffer `mine`, which has 16 bytes"),
    ] {
        let refused = npu.refusal(|| npu.queue.write_buffer(&buffer, offset, &vec![1; size]));
        if !refused.contains(text) {
            return Err(format!("expected {text:?}, found {refused:?}"));
        }
    }
    expect(npu.read(&buffer)?, vec![0, 1, 2, 9])?;
    buffer.destroy();
    let refused = npu.refusal(|| npu.queue.write_buffer(&buffer, 0, &[0; 4]));
    expect(refused.contains("the buffer `mine` is destroyed"), true)
}

/// Rules of copies and clears, which `finish` reports.
#[test]
fn copies() -> Result<(), String> {
    let npu = npu()?;
    let source = buffer(&npu, 16, BufferUsages::COPY_SRC | BufferUsages::COPY_DST, false);
    let target = buffer(&npu, 16, BufferUsages::COPY_DST, false);
    type Record = fn(&mut wgpu::CommandEncoder, &wgpu::Buffer, &wgpu::Buffer);
    let cases: [(Record, &str); 7] = [
        (|encoder, a, b| encoder.copy_buffer_to_buffer(a, 0, b, 0, 16), ""),
        (
            |encoder, a, b| encoder.copy_buffer_to_buffer(b, 0, a, 0, 16),
            "lacks the usage BufferUsages(COPY_SRC)",
        ),
        (
            |encoder, a, b| encoder.copy_buffer_to_buffer(a, 2, b, 0, 4),
            "the source offset of a copy is 2",
        ),
        (
            |encoder, a, b| encoder.copy_buffer_to_buffer(a, 0, b, 8, 12),
            "8..20 is outside",
        ),
        (
            |encoder, a, _| encoder.copy_buffer_to_buffer(a, 0, a, 8, 8),
            "is the source and the destination",
        ),
        (
            |encoder, a, _| encoder.clear_buffer(a, 0, Some(6)),
            "the size of a clear is 6",
        ),
        (|encoder, _, b| encoder.clear_buffer(b, 20, None), "20..20 is outside"),
    ];
    for (record, text) in cases {
        let refused = npu.refusal(|| {
            let mut encoder = npu.encoder();
            record(&mut encoder, &source, &target);
            drop(encoder.finish());
        });
        if !refused.contains(text) || text.is_empty() != refused.is_empty() {
            return Err(format!("expected {text:?}, found {refused:?}"));
        }
    }
    Ok(())
}

/// A buffer is mapped when its command buffer was submitted.
#[test]
fn map_on_submit() -> Result<(), String> {
    let npu = npu()?;
    let source = npu.filled(&[1, 2], BufferUsages::COPY_SRC);
    let target = buffer(&npu, 8, BufferUsages::COPY_DST | BufferUsages::MAP_READ, false);
    let mut encoder = npu.encoder();
    encoder.copy_buffer_to_buffer(&source, 0, &target, 0, None);
    let (sender, receiver) = channel();
    encoder.map_buffer_on_submit(&target, MapMode::Read, .., move |result| drop(sender.send(result)));
    let index = npu.queue.submit([encoder.finish()]);
    let wait = wgpu::PollType::Wait {
        submission_index: Some(index),
        timeout: None,
    };
    npu.device.poll(wait).map_err(|error| error.to_string())?;
    expect(receiver.try_recv().map_err(|error| error.to_string())?, Ok(()))?;
    let view = target.get_mapped_range(..).map_err(|error| error.to_string())?;
    expect(view.to_vec(), bytes(&[1, 2]))
}
