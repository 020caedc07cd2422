//! What programs on any adapter need.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

/// Returns the result of a future. Those of `wgpu` on native targets are ready at once.
pub fn wait<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(result) => return result,
            Poll::Pending => std::thread::yield_now(),
        }
    }
}

/// Opens a device on the first adapter, with the adapter's limits.
pub fn open(instance: &wgpu::Instance, features: wgpu::Features) -> Result<(wgpu::Device, wgpu::Queue), String> {
    let adapter = wait(instance.request_adapter(&wgpu::RequestAdapterOptions::default()));
    let adapter = adapter.map_err(|error| error.to_string())?;
    let descriptor = wgpu::DeviceDescriptor {
        required_features: features,
        required_limits: adapter.limits(),
        ..wgpu::DeviceDescriptor::default()
    };
    wait(adapter.request_device(&descriptor)).map_err(|error| error.to_string())
}

/// Copies a buffer with the usage `COPY_SRC` to the host.
pub fn read(device: &wgpu::Device, queue: &wgpu::Queue, buffer: &wgpu::Buffer) -> Result<Vec<u32>, String> {
    let staging = device.create_buffer(&wgpu::BufferDescriptor {
        label: Some("staging"),
        size: buffer.size(),
        usage: wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST,
        mapped_at_creation: false,
    });
    let mut encoder = device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
    encoder.copy_buffer_to_buffer(buffer, 0, &staging, 0, buffer.size());
    queue.submit([encoder.finish()]);
    let (sender, receiver) = std::sync::mpsc::channel();
    staging.map_async(wgpu::MapMode::Read, .., move |result| {
        // The receiver exists until the result is there.
        drop(sender.send(result));
    });
    device
        .poll(wgpu::PollType::wait_indefinitely())
        .map_err(|error| error.to_string())?;
    let mapped = receiver.recv().map_err(|error| error.to_string())?;
    mapped.map_err(|error| error.to_string())?;
    let view = staging.get_mapped_range(..).map_err(|error| error.to_string())?;
    let words = view.as_chunks::<4>().0;
    Ok(words.iter().map(|word| u32::from_le_bytes(*word)).collect())
}
