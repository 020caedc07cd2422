//! Whole programs, as users write them.

use crate::program::{STORAGE, expect, npu, npu_with};
use wgpu::BufferUsages;

/// Doubles each number and adds one, in place.
const STEP: &str = "
    @group(0) @binding(0) var<storage, read_write> numbers: array<u32>;

    @compute @workgroup_size(64)
    fn step(@builtin(global_invocation_id) id: vec3u) {
        if id.x < arrayLength(&numbers) {
            numbers[id.x] = numbers[id.x] * 2u + 1u;
        }
    }";

#[test]
fn one_dispatch() -> Result<(), String> {
    let npu = npu()?;
    let numbers: Vec<u32> = (0..100).collect();
    let buffer = npu.filled(&numbers, STORAGE);
    npu.run(&npu.pipeline(STEP), &[&buffer], [2, 1, 1]);
    let expected: Vec<u32> = numbers.iter().map(|number| number * 2 + 1).collect();
    expect(npu.read(&buffer)?, expected)
}

/// The buffer stays on the device from dispatch to dispatch.
#[test]
fn repeated_dispatches() -> Result<(), String> {
    let npu = npu()?;
    let pipeline = npu.pipeline(STEP);
    let buffer = npu.empty(4 * 40, STORAGE);
    let group = npu.group(&pipeline, &[&buffer]);
    for round in 1..=5u32 {
        for _ in 0..2 {
            npu.pass(|pass| {
                pass.set_pipeline(&pipeline);
                pass.set_bind_group(0, &group, &[]);
                pass.dispatch_workgroups(1, 1, 1);
            });
        }
        expect(npu.read(&buffer)?, vec![(1 << (2 * round)) - 1; 40])?;
    }
    Ok(())
}

/// New contents of a buffer are seen by the next dispatch, and by those of one pass in order.
#[test]
fn writes_between_dispatches() -> Result<(), String> {
    let npu = npu()?;
    let pipeline = npu.pipeline(STEP);
    let buffer = npu.filled(&[7; 16], STORAGE);
    npu.run(&pipeline, &[&buffer], [1, 1, 1]);
    npu.queue.write_buffer(&buffer, 8, &[100, 0, 0, 0]);
    let group = npu.group(&pipeline, &[&buffer]);
    npu.pass(|pass| {
        pass.set_pipeline(&pipeline);
        pass.set_bind_group(0, &group, &[]);
        pass.dispatch_workgroups(1, 1, 1);
        pass.dispatch_workgroups(1, 1, 1);
    });
    let mut expected = vec![63; 16];
    expected[2] = 403;
    expect(npu.read(&buffer)?, expected)
}

/// Each work-group has one work-item and its own element of two arrays.
#[test]
fn work_groups() -> Result<(), String> {
    let npu = npu()?;
    let pipeline = npu.pipeline(
        "@group(0) @binding(0) var<storage, read_write> sums: array<u32>;
         @group(0) @binding(1) var<storage, read_write> places: array<vec4u>;

         @compute @workgroup_size(1)
         fn main(@builtin(workgroup_id) id: vec3u, @builtin(num_workgroups) count: vec3u) {
             let index = id.x + count.x * (id.y + count.y * id.z);
             sums[index] += id.x + 10u * id.y + 100u * id.z;
             places[index] = vec4u(id, index);
         }",
    );
    let sums = npu.filled(&[1000; 24], STORAGE);
    let places = npu.empty(16 * 24, STORAGE);
    npu.run(&pipeline, &[&sums, &places], [4, 3, 2]);
    let mut expected = (Vec::new(), Vec::new());
    for index in 0..24 {
        let (x, y, z) = (index % 4, index / 4 % 3, index / 12);
        expected.0.push(1000 + x + 10 * y + 100 * z);
        expected.1.extend([x, y, z, index]);
    }
    expect((npu.read(&sums)?, npu.read(&places)?), expected)
}

/// Work-items of a work-group wait for each other, and work-groups share an atomic counter.
#[test]
fn synchronization() -> Result<(), String> {
    let npu = npu()?;
    let pipeline = npu.pipeline(
        "@group(0) @binding(0) var<storage, read_write> total: atomic<u32>;
         @group(0) @binding(1) var<storage, read_write> first: array<u32>;
         var<workgroup> shares: array<u32, 48>;
         var<workgroup> sum: atomic<u32>;

         @compute @workgroup_size(16, 3)
         fn main(@builtin(local_invocation_index) item: u32, @builtin(workgroup_id) group: vec3u) {
             shares[47u - item] = item + 1u;
             workgroupBarrier();
             atomicAdd(&sum, shares[item]);
             workgroupBarrier();
             if item == 0u {
                 first[group.x] = atomicLoad(&sum) + shares[0];
                 atomicAdd(&total, atomicLoad(&sum));
             }
         }",
    );
    let total = npu.empty(4, STORAGE);
    let first = npu.empty(4 * 5, STORAGE);
    npu.run(&pipeline, &[&total, &first], [5, 1, 1]);
    let sum = 48 * 49 / 2;
    expect(
        (npu.read(&total)?, npu.read(&first)?),
        (vec![5 * sum], vec![sum + 48; 5]),
    )
}

/// Work-groups of 1024 work-items need 128 lanes of all threads.
#[test]
fn the_largest_work_group() -> Result<(), String> {
    let npu = npu()?;
    let pipeline = npu.pipeline(
        "@group(0) @binding(0) var<storage, read_write> out: array<u32>;
         var<workgroup> shared_: array<u32, 1024>;

         @compute @workgroup_size(1024)
         fn main(@builtin(local_invocation_index) item: u32) {
             shared_[item] = item * 3u;
             workgroupBarrier();
             out[item] = shared_[1023u - item];
         }",
    );
    let out = npu.empty(4 * 1024, STORAGE);
    npu.run(&pipeline, &[&out], [1, 1, 1]);
    expect(npu.read(&out)?, (0..1024).map(|item| (1023 - item) * 3).collect())
}

/// Two command buffers of one submission run in order, and copies and clears between passes, too.
#[test]
fn two_command_buffers() -> Result<(), String> {
    let npu = npu()?;
    let pipeline = npu.pipeline(STEP);
    let (a, b) = (npu.filled(&[1, 2, 3, 4], STORAGE), npu.empty(16, STORAGE));
    let (of_a, of_b) = (npu.group(&pipeline, &[&a]), npu.group(&pipeline, &[&b]));
    let record = |group: &wgpu::BindGroup, encoder: &mut wgpu::CommandEncoder| {
        let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
        pass.set_pipeline(&pipeline);
        pass.set_bind_group(0, group, &[]);
        pass.dispatch_workgroups(1, 1, 1);
    };
    let mut first = npu.encoder();
    record(&of_a, &mut first);
    first.copy_buffer_to_buffer(&a, 4, &b, 0, 12);
    let mut second = npu.encoder();
    record(&of_b, &mut second);
    second.clear_buffer(&a, 8, None);
    let buffers = [first.finish(), second.finish()];
    npu.queue.submit(buffers);
    expect((npu.read(&a)?, npu.read(&b)?), (vec![3, 5, 0, 0], vec![11, 15, 19, 1]))
}

/// Steps of the Collatz sequence, with loops that diverge.
#[test]
fn collatz() -> Result<(), String> {
    let npu = npu()?;
    let pipeline = npu.pipeline(
        "@group(0) @binding(0) var<storage, read> starts: array<u32>;
         @group(0) @binding(1) var<storage, read_write> lengths: array<u32>;

         @compute @workgroup_size(32)
         fn main(@builtin(global_invocation_id) id: vec3u) {
             if id.x >= arrayLength(&starts) { return; }
             var number = starts[id.x];
             var length = 0u;
             while number > 1u {
                 number = select(number / 2u, 3u * number + 1u, (number & 1u) == 1u);
                 length++;
             }
             lengths[id.x] = length;
         }",
    );
    let numbers: Vec<u32> = (1..=70).collect();
    let starts = npu.filled(&numbers, BufferUsages::STORAGE);
    let lengths = npu.empty(4 * 70, STORAGE);
    npu.run(&pipeline, &[&starts, &lengths], [3, 1, 1]);
    let length = |start: &u32| {
        let (mut number, mut length) = (*start, 0);
        while number > 1 {
            number = if number % 2 == 1 { 3 * number + 1 } else { number / 2 };
            length += 1;
        }
        length
    };
    expect(npu.read(&lengths)?, numbers.iter().map(length).collect())
}

/// A sum over the lanes of each subgroup.
#[test]
fn subgroups() -> Result<(), String> {
    let npu = npu_with(wgpu::Features::SUBGROUP)?;
    let pipeline = npu.pipeline(
        "@group(0) @binding(0) var<storage, read_write> out: array<vec4u>;

         @compute @workgroup_size(200)
         fn main(
             @builtin(local_invocation_index) item: u32,
             @builtin(subgroup_size) size: u32,
             @builtin(subgroup_invocation_id) lane: u32,
         ) {
             workgroupBarrier();
             out[item] = vec4u(size, lane, subgroupAdd(item), subgroupBallot((item & 1u) == 1u).x);
         }",
    );
    let out = npu.empty(16 * 200, STORAGE);
    npu.run(&pipeline, &[&out], [1, 1, 1]);
    let mut expected = Vec::new();
    for item in 0..200u32 {
        let first = item / 32 * 32;
        let lanes = first..(first + 32).min(200);
        let odd = lanes.clone().filter(|lane| lane & 1 == 1);
        let ballot = odd.fold(0, |bits, lane| bits | 1 << (lane - first));
        expected.extend([32, item - first, lanes.sum(), ballot]);
    }
    expect(npu.read(&out)?, expected)
}

/// Numbers of 16 and 64 bits, and their atomic operations, on a device with these features.
#[test]
fn other_types() -> Result<(), String> {
    let types = wgpu::Features::SHADER_F16 | wgpu::Features::SHADER_F64 | wgpu::Features::SHADER_INT64;
    let atomics = wgpu::Features::SHADER_INT64_ATOMIC_ALL_OPS | wgpu::Features::SHADER_FLOAT32_ATOMIC;
    let npu = npu_with(types | atomics)?;
    let pipeline = npu.pipeline(
        "enable f16;
         struct Sums { whole: atomic<u64>, float: atomic<f32> }
         @group(0) @binding(0) var<storage, read_write> out: array<u32>;
         @group(0) @binding(1) var<storage, read_write> sums: Sums;

         @compute @workgroup_size(32)
         fn main(@builtin(local_invocation_index) item: u32) {
             // A half has 11 significant bits.
             out[item] = u32(f16(item) + 2048h) + u32(f64(item) / 0.5lf);
             atomicAdd(&sums.whole, u64(item) << 40u);
             atomicAdd(&sums.float, 0.5);
         }",
    );
    let (out, sums) = (npu.empty(4 * 32, STORAGE), npu.empty(16, STORAGE));
    npu.run(&pipeline, &[&out, &sums], [1, 1, 1]);
    // Sums above 2048 are rounded to even numbers, ties to a multiple of 4.
    let rounded = |item: u32| match item % 4 {
        1 => item - 1,
        3 => item + 1,
        _ => item,
    };
    let expected: Vec<u32> = (0..32).map(|item| 2048 + rounded(item) + 2 * item).collect();
    expect(npu.read(&out)?, expected)?;
    expect(npu.read(&sums)?, vec![0, (31 * 32 / 2) << 8, 16f32.to_bits(), 0])
}
