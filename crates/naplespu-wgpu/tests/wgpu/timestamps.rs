//! Query sets of timestamps.

use crate::program::{STORAGE, expect, npu, npu_with};
use wgpu::{BufferUsages, Features};

const SUM: &str = "
    override count: u32 = 16u;
    @group(0) @binding(0) var<storage, read_write> out: array<u32>;
    @compute @workgroup_size(16)
    fn main(@builtin(global_invocation_id) id: vec3u) {
        var sum = out[id.x];
        for (var i = 0u; i < count; i++) { sum = sum * 5u + i; }
        out[id.x] = sum;
    }";

/// Timestamps are cycles that grow with the work of passes.
#[test]
fn cycles_of_passes() -> Result<(), String> {
    let npu = npu_with(Features::TIMESTAMP_QUERY | Features::TIMESTAMP_QUERY_INSIDE_ENCODERS)?;
    let queries = npu.device.create_query_set(&wgpu::QuerySetDescriptor {
        label: None,
        ty: wgpu::QueryType::Timestamp,
        count: 6,
    });
    let module = npu.shader(SUM);
    let out = npu.empty(4 * 16, STORAGE);
    let mut encoder = npu.encoder();
    for (first, count) in [(1, 16.0), (3, 160.0)] {
        let pipeline = npu.pipeline_with(&module, None, &[("count", count)]);
        let group = npu.group(&pipeline, &[&out]);
        let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor {
            label: None,
            timestamp_writes: Some(wgpu::ComputePassTimestampWrites {
                query_set: &queries,
                beginning_of_pass_write_index: Some(first),
                end_of_pass_write_index: Some(first + 1),
            }),
        });
        pass.set_pipeline(&pipeline);
        pass.set_bind_group(0, &group, &[]);
        pass.dispatch_workgroups(1, 1, 1);
    }
    encoder.write_timestamp(&queries, 5);
    let resolved = npu.empty(256 + 48, BufferUsages::QUERY_RESOLVE | BufferUsages::COPY_SRC);
    encoder.resolve_query_set(&queries, 0..6, &resolved, 256);
    npu.queue.submit([encoder.finish()]);
    let words = npu.read(&resolved)?;
    let stamp = |index: usize| u64::from(words[64 + 2 * index]) | u64::from(words[65 + 2 * index]) << 32;
    let stamps: Vec<u64> = (0..6).map(stamp).collect();
    expect(
        (stamps[0], stamps[1], stamps[3], stamps[5]),
        (0, 0, stamps[2], stamps[4]),
    )?;
    let (short, long) = (stamps[2] - stamps[1], stamps[4] - stamps[3]);
    if short == 0 || long < 3 * short {
        return Err(format!("{short} and {long} cycles"));
    }
    expect(npu.queue.get_timestamp_period(), 10.0)
}

/// The rules of queries.
#[test]
fn refused_queries() -> Result<(), String> {
    let plain = npu()?;
    let create = |gpu: &crate::program::Gpu, count| {
        gpu.device.create_query_set(&wgpu::QuerySetDescriptor {
            label: None,
            ty: wgpu::QueryType::Timestamp,
            count,
        })
    };
    let refused = plain.refusal(|| drop(create(&plain, 1)));
    expect(refused.contains("without the feature TIMESTAMP_QUERY"), true)?;
    let npu = npu_with(Features::TIMESTAMP_QUERY)?;
    let refused = npu.refusal(|| drop(create(&npu, 5000)));
    expect(
        refused.contains("the number of queries is 5000, and the limit is 4096"),
        true,
    )?;
    let queries = create(&npu, 2);
    let target = npu.empty(512, BufferUsages::QUERY_RESOLVE);
    for (range, offset, text) in [
        (0..3, 0, "0..3 is outside of the query set, which has 2 queries"),
        (0..2, 8, "is 8, not a multiple of 256"),
        (0..2, 512, "512..528 is outside of the buffer"),
    ] {
        let refused = npu.refusal(|| {
            let mut encoder = npu.encoder();
            encoder.resolve_query_set(&queries, range, &target, offset);
            drop(encoder.finish());
        });
        if !refused.contains(text) {
            return Err(format!("expected {text:?}, found {refused:?}"));
        }
    }
    let refused = npu.refusal(|| {
        let mut encoder = npu.encoder();
        encoder.write_timestamp(&queries, 0);
        drop(encoder.finish());
    });
    expect(refused.contains("TIMESTAMP_QUERY_INSIDE_ENCODERS"), true)?;
    let mut encoder = npu.encoder();
    encoder.resolve_query_set(&queries, 0..2, &target, 0);
    queries.destroy();
    let refused = npu.refusal(|| {
        npu.queue.submit([encoder.finish()]);
    });
    expect(refused.contains("the query set is destroyed"), true)
}
