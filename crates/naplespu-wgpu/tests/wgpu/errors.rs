//! Error scopes, the handler of other errors, and the loss of a device.

use crate::host::{open, wait};
use crate::program::{STORAGE, expect, npu};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use wgpu::{BufferUsages, ErrorFilter};

/// Makes a validation error.
fn bad_buffer(device: &wgpu::Device) -> wgpu::Buffer {
    device.create_buffer(&wgpu::BufferDescriptor {
        label: Some("bad"),
        size: 8,
        usage: BufferUsages::empty(),
        mapped_at_creation: false,
    })
}

/// The innermost scope of the class gets the first error; other scopes get none.
#[test]
fn scopes() -> Result<(), String> {
    let npu = npu()?;
    let outer = npu.device.push_error_scope(ErrorFilter::Validation);
    let middle = npu.device.push_error_scope(ErrorFilter::Validation);
    let inner = npu.device.push_error_scope(ErrorFilter::OutOfMemory);
    let bad = bad_buffer(&npu.device);
    npu.queue.write_buffer(&bad, 0, &[0; 4]);
    let texts = [inner, middle, outer].map(|scope| wait(scope.pop()).map(|error| error.to_string()));
    let first = "Device::create_buffer: a buffer cannot have the usage BufferUsages(0x0)";
    expect(texts, [None, Some(first.to_owned()), None])
}

/// The source of an error is the backend's error.
#[test]
fn sources() -> Result<(), String> {
    let npu = npu()?;
    let caught = npu.caught(ErrorFilter::Validation, || drop(bad_buffer(&npu.device)));
    let error = caught.ok_or("no error")?;
    let source = std::error::Error::source(&error);
    let source = source.and_then(|source| source.downcast_ref::<naplespu_wgpu::Error>());
    expect(matches!(source, Some(naplespu_wgpu::Error::BadUsage(_))), true)
}

/// Scopes of another thread catch nothing, and the handler gets what no scope catches.
#[test]
fn uncaptured() -> Result<(), String> {
    let npu = npu()?;
    let texts = Arc::new(Mutex::new(Vec::new()));
    let list = Arc::clone(&texts);
    npu.device.on_uncaptured_error(Arc::new(move |error: wgpu::Error| {
        if let Ok(mut list) = list.lock() {
            list.push(error.to_string());
        }
    }));
    let scope = npu.device.push_error_scope(ErrorFilter::Validation);
    let device = npu.device.clone();
    std::thread::spawn(move || drop(bad_buffer(&device)))
        .join()
        .map_err(|_| "the thread panicked")?;
    expect(wait(scope.pop()).is_none(), true)?;
    drop(bad_buffer(&npu.device));
    let texts = texts.lock().map_err(|error| error.to_string())?;
    expect(texts.len(), 2)?;
    expect(texts[1].contains("a buffer cannot have the usage"), true)
}

/// The memory of all buffers is limited; freed memory is used again.
#[test]
fn out_of_memory() -> Result<(), String> {
    let config = naplespu_wgpu::Config {
        memory: 1 << 20,
        ..naplespu_wgpu::Config::default()
    };
    let (device, queue) = open(&naplespu_wgpu::instance_with(config), wgpu::Features::empty())?;
    let npu = crate::program::Gpu { device, queue };
    expect(npu.device.limits().max_buffer_size, 1 << 18)?;
    for _ in 0..3 {
        let mut kept = Vec::new();
        let caught = npu.caught(ErrorFilter::OutOfMemory, || {
            for _ in 0..5 {
                kept.push(npu.empty(1 << 18, STORAGE));
            }
        });
        expect(matches!(caught, Some(wgpu::Error::OutOfMemory { .. })), true)?;
        // The first four exist.
        expect(
            npu.refusal(|| npu.queue.write_buffer(&kept[3], 0, &[0; 4])),
            String::new(),
        )?;
        let refused = npu.refusal(|| npu.queue.write_buffer(&kept[4], 0, &[0; 4]));
        expect(refused.contains("is invalid"), true)?;
    }
    let refused = npu.refusal(|| drop(npu.empty((1 << 18) + 4, STORAGE)));
    expect(refused.contains("and the limit is 262144"), true)
}

/// A destroyed device calls back once; later calls do nothing and report nothing.
#[test]
fn destroyed_device() -> Result<(), String> {
    let npu = npu()?;
    let buffer = npu.empty(8, BufferUsages::MAP_READ | BufferUsages::COPY_DST);
    let (sender, receiver) = channel();
    npu.device
        .set_device_lost_callback(move |reason, text| drop(sender.send((reason, text))));
    npu.device.destroy();
    npu.device.destroy();
    let calls: Vec<_> = receiver.try_iter().collect();
    let text = "the device was destroyed".to_owned();
    expect(calls, vec![(wgpu::DeviceLostReason::Destroyed, text)])?;
    let (sender, receiver) = channel();
    let refused = npu.refusal(|| {
        drop(npu.empty(8, STORAGE));
        npu.queue.submit([npu.encoder().finish()]);
        npu.queue.write_buffer(&buffer, 0, &[0; 8]);
        buffer.map_async(wgpu::MapMode::Read, .., move |result| {
            let _ = sender.send(result.is_err());
        });
    });
    expect((refused, receiver.try_recv()), (String::new(), Ok(true)))
}

/// A kernel that does not end loses the device.
#[test]
fn endless_kernel() -> Result<(), String> {
    let config = naplespu_wgpu::Config {
        instruction_limit: 100_000,
        ..naplespu_wgpu::Config::default()
    };
    let (device, queue) = open(&naplespu_wgpu::instance_with(config), wgpu::Features::empty())?;
    let npu = crate::program::Gpu { device, queue };
    let (sender, receiver) = channel();
    npu.device
        .set_device_lost_callback(move |reason, text| drop(sender.send((reason, text))));
    let pipeline = npu.pipeline(
        "@group(0) @binding(0) var<storage, read_write> out: atomic<u32>;
         @compute @workgroup_size(1)
         fn main() { while atomicLoad(&out) == 0u { atomicMax(&out, 0u); } }",
    );
    npu.run(&pipeline, &[&npu.empty(4, STORAGE)], [1, 1, 1]);
    let (reason, text) = receiver.try_recv().map_err(|error| error.to_string())?;
    expect(reason, wgpu::DeviceLostReason::Unknown)?;
    expect(text.contains("no result after"), true)
}

/// A request for a feature or limit above the adapter's fails; limits of graphics do not count.
#[test]
fn requests() -> Result<(), String> {
    let instance = naplespu_wgpu::instance();
    let adapter = wait(instance.request_adapter(&wgpu::RequestAdapterOptions::default()));
    let adapter = adapter.map_err(|error| error.to_string())?;
    let request = |required_features, required_limits| {
        let descriptor = wgpu::DeviceDescriptor {
            required_features,
            required_limits,
            ..wgpu::DeviceDescriptor::default()
        };
        wait(adapter.request_device(&descriptor)).map_err(|error| error.to_string())
    };
    let (device, _) = request(wgpu::Features::empty(), wgpu::Limits::default())?;
    expect(device.limits().max_texture_dimension_2d, 0)?;
    expect(device.limits().max_compute_invocations_per_workgroup, 256)?;
    let limits = wgpu::Limits {
        max_compute_workgroup_size_x: 2048,
        ..wgpu::Limits::default()
    };
    let refused = request(wgpu::Features::empty(), limits).err().unwrap_or_default();
    expect(
        refused,
        "the limit max_compute_workgroup_size_x is 1024, and 2048 is required".to_owned(),
    )?;
    let refused = request(wgpu::Features::IMMEDIATES, wgpu::Limits::default());
    expect(refused.err().unwrap_or_default().contains("IMMEDIATES"), true)?;
    expect(wait(instance.enumerate_adapters(wgpu::Backends::all())).len(), 1)
}
