//! Steps of the Collatz sequence of several numbers, by a program for `wgpu` on the NPU.
//!
//! ```text
//! cargo run --release -p naplespu-wgpu --example collatz -- 27 97 871
//! ```

use std::error::Error;
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use wgpu::util::DeviceExt;

const SHADER: &str = "
    @group(0) @binding(0) var<storage, read_write> numbers: array<u32>;

    @compute @workgroup_size(64)
    fn steps(@builtin(global_invocation_id) id: vec3u) {
        if id.x >= arrayLength(&numbers) { return; }
        var number = numbers[id.x];
        var count = 0u;
        while number > 1u {
            if number % 2u == 0u { number /= 2u; } else { number = 3u * number + 1u; }
            count++;
        }
        numbers[id.x] = count;
    }";

/// Returns the result of a future. Those of this backend are ready at once.
fn wait<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(result) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            return result;
        }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments = std::env::args().skip(1).map(|argument| argument.parse());
    let mut numbers = arguments.collect::<Result<Vec<u32>, _>>()?;
    if numbers.is_empty() {
        numbers = vec![1, 2, 3, 7, 27];
    }

    // The only line that differs from a program for another device.
    let instance = naplespu_wgpu::instance();

    let adapter = wait(instance.request_adapter(&wgpu::RequestAdapterOptions::default()))?;
    let (device, queue) = wait(adapter.request_device(&wgpu::DeviceDescriptor::default()))?;
    let contents: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
    let buffer = device.create_buffer_init(&wgpu::util::BufferInitDescriptor {
        label: Some("numbers"),
        contents: &contents,
        usage: wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC,
    });
    let results = device.create_buffer(&wgpu::BufferDescriptor {
        label: Some("results"),
        size: buffer.size(),
        usage: wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST,
        mapped_at_creation: false,
    });
    let module = device.create_shader_module(wgpu::ShaderModuleDescriptor {
        label: Some("collatz"),
        source: wgpu::ShaderSource::Wgsl(SHADER.into()),
    });
    let pipeline = device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
        label: Some("collatz"),
        layout: None,
        module: &module,
        entry_point: Some("steps"),
        compilation_options: wgpu::PipelineCompilationOptions::default(),
        cache: None,
    });
    let group = device.create_bind_group(&wgpu::BindGroupDescriptor {
        label: None,
        layout: &pipeline.get_bind_group_layout(0),
        entries: &[wgpu::BindGroupEntry {
            binding: 0,
            resource: buffer.as_entire_binding(),
        }],
    });
    let mut encoder = device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
    let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
    pass.set_pipeline(&pipeline);
    pass.set_bind_group(0, &group, &[]);
    pass.dispatch_workgroups(u32::try_from(numbers.len())?.div_ceil(64), 1, 1);
    drop(pass);
    encoder.copy_buffer_to_buffer(&buffer, 0, &results, 0, None);
    queue.submit([encoder.finish()]);

    results.map_async(wgpu::MapMode::Read, .., |_| ());
    device.poll(wgpu::PollType::wait_indefinitely())?;
    let view = results.get_mapped_range(..)?;
    for (number, count) in numbers.iter().zip(view.as_chunks::<4>().0) {
        println!("{number}: {} steps", u32::from_le_bytes(*count));
    }
    Ok(())
}
