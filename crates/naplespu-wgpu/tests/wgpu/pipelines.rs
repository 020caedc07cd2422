//! Shader modules, pipelines, layouts and bind groups.

use crate::host::wait;
use crate::program::{Gpu, STORAGE, expect, npu};
use wgpu::{BufferBindingType, BufferUsages};

/// Returns the entry of a buffer in a layout.
fn entry(binding: u32, ty: BufferBindingType, is_dynamic: bool) -> wgpu::BindGroupLayoutEntry {
    wgpu::BindGroupLayoutEntry {
        binding,
        visibility: wgpu::ShaderStages::COMPUTE,
        ty: wgpu::BindingType::Buffer {
            ty,
            has_dynamic_offset: is_dynamic,
            min_binding_size: None,
        },
        count: None,
    }
}

fn layout(npu: &Gpu, entries: &[wgpu::BindGroupLayoutEntry]) -> (wgpu::BindGroupLayout, wgpu::PipelineLayout) {
    let group = npu
        .device
        .create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor { label: None, entries });
    let pipeline = npu.device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
        label: None,
        bind_group_layouts: &[Some(&group)],
        immediate_size: 0,
    });
    (group, pipeline)
}

/// Overrides have names or numbers, and change the size of work-groups.
#[test]
fn overrides() -> Result<(), String> {
    let npu = npu()?;
    let module = npu.shader(
        "override size: u32 = 4;
         override factor: u32;
         @id(7) override summand: i32 = 1;
         @group(0) @binding(0) var<storage, read_write> out: array<u32>;

         @compute @workgroup_size(size)
         fn main(@builtin(global_invocation_id) id: vec3u) {
             out[id.x] = id.x * factor + u32(summand);
         }",
    );
    for (constants, expected) in [
        (&[("factor", 3.0)][..], [1, 4, 7, 10, 13, 16, 19, 22]),
        (&[("factor", 2.0), ("7", 5.0), ("size", 2.0)], [5, 7, 9, 11, 0, 0, 0, 0]),
    ] {
        let out = npu.empty(32, STORAGE);
        npu.run(&npu.pipeline_with(&module, None, constants), &[&out], [2, 1, 1]);
        expect(npu.read(&out)?, expected.to_vec())?;
    }
    let refused = npu.refusal(|| drop(npu.pipeline_with(&module, None, &[])));
    expect(refused.contains("factor"), true)
}

/// Dynamic offsets select parts of two buffers.
#[test]
fn dynamic_offsets() -> Result<(), String> {
    let npu = npu()?;
    let module = npu.shader(
        "@group(0) @binding(2) var<uniform> factor: u32;
         @group(0) @binding(5) var<storage, read_write> out: array<u32>;

         @compute @workgroup_size(16)
         fn main(@builtin(local_invocation_index) item: u32) {
             if item < arrayLength(&out) { out[item] += factor * (item + 1u); }
         }",
    );
    let storage = BufferBindingType::Storage { read_only: false };
    // The order of offsets is that of the numbers.
    let entries = [entry(5, storage, true), entry(2, BufferBindingType::Uniform, true)];
    let (group_layout, layout) = layout(&npu, &entries);
    let pipeline = npu.pipeline_with(&module, Some(&layout), &[]);
    let mut words = vec![0; 64];
    (words[0], words[16], words[48]) = (1, 10, 1000);
    let factors = npu.filled(&words, BufferUsages::UNIFORM);
    let out = npu.empty(4 * 64, STORAGE);
    let part = |buffer, size| {
        wgpu::BindingResource::Buffer(wgpu::BufferBinding {
            buffer,
            offset: 0,
            size: wgpu::BufferSize::new(size),
        })
    };
    let group = npu.device.create_bind_group(&wgpu::BindGroupDescriptor {
        label: Some("parts"),
        layout: &group_layout,
        entries: &[
            wgpu::BindGroupEntry {
                binding: 2,
                resource: part(&factors, 4),
            },
            wgpu::BindGroupEntry {
                binding: 5,
                resource: part(&out, 12),
            },
        ],
    });
    npu.pass(|pass| {
        pass.set_pipeline(&pipeline);
        for offsets in [[0, 0], [64, 128], [192, 128], [64, 192]] {
            pass.set_bind_group(0, &group, &offsets);
            pass.dispatch_workgroups(1, 1, 1);
        }
    });
    let mut expected = vec![0; 64];
    for (start, factor) in [(0, 1), (32, 1010), (48, 10)] {
        for item in 0..3 {
            expected[start + item] = factor * (item as u32 + 1);
        }
    }
    expect(npu.read(&out)?, expected)?;
    for (offsets, text) in [
        (
            &[0][..],
            "1 dynamic offsets are given, and the bind group `parts` has 2",
        ),
        (&[0, 32], "a dynamic offset is 32, not a multiple of 64"),
        (&[0, 256], "outside of the buffer"),
    ] {
        let refused = npu.refusal(|| npu.pass(|pass| pass.set_bind_group(0, &group, offsets)));
        if !refused.contains(text) {
            return Err(format!("{offsets:?}: {refused}"));
        }
    }
    Ok(())
}

/// A dispatch reads its numbers of work-groups from a buffer that another dispatch wrote.
#[test]
fn indirect_dispatches() -> Result<(), String> {
    let npu = npu()?;
    let count = npu.pipeline(
        "@group(0) @binding(0) var<storage, read_write> groups: array<u32>;

         @compute @workgroup_size(1)
         fn main() { groups[1] = 3u; groups[2] = 2u; groups[3] = 1u; }",
    );
    let mark = npu.pipeline(
        "@group(0) @binding(0) var<storage, read_write> marks: array<atomic<u32>>;

         @compute @workgroup_size(1)
         fn main(@builtin(workgroup_id) id: vec3u) { atomicAdd(&marks[id.x + 4u * id.y], 1u); }",
    );
    let groups = npu.filled(&[9, 0, 0, 0, 65536, 1, 1], STORAGE | BufferUsages::INDIRECT);
    let marks = npu.empty(4 * 8, STORAGE);
    npu.run(&count, &[&groups], [1, 1, 1]);
    let group = npu.group(&mark, &[&marks]);
    npu.pass(|pass| {
        pass.set_pipeline(&mark);
        pass.set_bind_group(0, &group, &[]);
        pass.dispatch_workgroups_indirect(&groups, 4);
        // Above the limit, so it does nothing.
        pass.dispatch_workgroups_indirect(&groups, 16);
    });
    expect(npu.read(&marks)?, vec![1, 1, 1, 0, 1, 1, 1, 0])?;
    let refused = npu.refusal(|| {
        npu.pass(|pass| {
            pass.set_pipeline(&mark);
            pass.set_bind_group(0, &group, &[]);
            pass.dispatch_workgroups_indirect(&groups, 20);
        });
    });
    expect(refused.contains("20..32 is outside of the buffer"), true)
}

/// Bind groups fit to equal layouts. Those of a pipeline's own layout fit to no other pipeline.
#[test]
fn layouts() -> Result<(), String> {
    let npu = npu()?;
    let text = "@group(0) @binding(0) var<storage, read_write> out: array<u32>;
                @compute @workgroup_size(1) fn main() { out[0] += 1u; }";
    let module = npu.shader(text);
    let storage = entry(0, BufferBindingType::Storage { read_only: false }, false);
    let (_, first) = layout(&npu, &[storage]);
    let (equal, _) = layout(&npu, &[storage]);
    let pipeline = npu.pipeline_with(&module, Some(&first), &[]);
    let out = npu.empty(4, STORAGE);
    let run = |pipeline: &wgpu::ComputePipeline, group: &wgpu::BindGroup| {
        npu.pass(|pass| {
            pass.set_pipeline(pipeline);
            pass.set_bind_group(0, group, &[]);
            pass.dispatch_workgroups(1, 1, 1);
        });
    };
    run(&pipeline, &npu.group_of(&equal, &[&out]));
    expect(npu.read(&out)?, vec![1])?;
    let (own, other) = (npu.pipeline(text), npu.pipeline(text));
    let group = npu.group(&own, &[&out]);
    run(&own, &group);
    expect(npu.read(&out)?, vec![2])?;
    for pipeline in [&pipeline, &other] {
        let refused = npu.refusal(|| run(pipeline, &group));
        expect(refused.contains("which has a layout of its own"), true)?;
    }
    let uniform = entry(0, BufferBindingType::Uniform, false);
    let (_, wrong) = layout(&npu, &[uniform]);
    let refused = npu.refusal(|| drop(npu.pipeline_with(&module, Some(&wrong), &[])));
    expect(refused.contains("binding 0 of group 0 has another type"), true)?;
    let refused = npu.refusal(|| drop(own.get_bind_group_layout(1)));
    expect(refused.contains("1..2 is outside of the compute pipeline"), true)
}

/// Two groups, of which one has only bindings that the shader does not use.
#[test]
fn several_groups() -> Result<(), String> {
    let npu = npu()?;
    let pipeline = npu.pipeline(
        "@group(0) @binding(3) var<storage, read> a: array<u32>;
         @group(2) @binding(1) var<storage, read_write> b: array<u32>;

         @compute @workgroup_size(8)
         fn main(@builtin(local_invocation_index) item: u32) { b[item] = a[item] + 1u; }",
    );
    let (a, b) = (npu.filled(&[5; 8], STORAGE), npu.empty(32, STORAGE));
    let group = |index, binding, buffer: &wgpu::Buffer| {
        npu.device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: None,
            layout: &pipeline.get_bind_group_layout(index),
            entries: &[wgpu::BindGroupEntry {
                binding,
                resource: buffer.as_entire_binding(),
            }],
        })
    };
    let groups = [group(0, 3, &a), group(2, 1, &b)];
    npu.pass(|pass| {
        pass.set_pipeline(&pipeline);
        pass.set_bind_group(0, &groups[0], &[]);
        pass.set_bind_group(2, &groups[1], &[]);
        pass.dispatch_workgroups(1, 1, 1);
    });
    expect(npu.read(&b)?, vec![6; 8])
}

/// GLSL has macros, and SPIR-V is words.
#[test]
fn languages() -> Result<(), String> {
    let npu = npu()?;
    let glsl = npu.device.create_shader_module(wgpu::ShaderModuleDescriptor {
        label: None,
        source: wgpu::ShaderSource::Glsl {
            shader: "#version 450
                layout(local_size_x = 4) in;
                layout(set = 0, binding = 0) buffer Out { uint data[]; };
                void main() { data[gl_GlobalInvocationID.x] = FACTOR * gl_GlobalInvocationID.x; }"
                .into(),
            stage: wgpu::naga::ShaderStage::Compute,
            defines: &[("FACTOR", "11u")],
        },
    });
    let out = npu.empty(16, STORAGE);
    npu.run(&npu.pipeline_with(&glsl, None, &[]), &[&out], [1, 1, 1]);
    expect(npu.read(&out)?, vec![0, 11, 22, 33])?;
    let words = spirv(
        "@group(0) @binding(0) var<storage, read_write> out: array<u32>;
         @compute @workgroup_size(4)
         fn main(@builtin(local_invocation_index) item: u32) { out[item] += item; }",
    )?;
    let module = npu.device.create_shader_module(wgpu::ShaderModuleDescriptor {
        label: None,
        source: wgpu::ShaderSource::SpirV(words.into()),
    });
    npu.run(&npu.pipeline_with(&module, None, &[]), &[&out], [1, 1, 1]);
    expect(npu.read(&out)?, vec![0, 12, 24, 36])
}

/// Translates WGSL to SPIR-V.
fn spirv(text: &str) -> Result<Vec<u32>, String> {
    use wgpu::naga::{back::spv, front::wgsl, valid};
    let module = wgsl::parse_str(text).map_err(|error| error.to_string())?;
    let mut validator = valid::Validator::new(valid::ValidationFlags::all(), valid::Capabilities::empty());
    let info = validator.validate(&module).map_err(|error| error.to_string())?;
    spv::write_vec(&module, &info, &spv::Options::default(), None).map_err(|error| error.to_string())
}

/// The messages of a module have the lines of its errors.
#[test]
fn compilation_info() -> Result<(), String> {
    let npu = npu()?;
    expect(
        wait(npu.shader("const a = 1;").get_compilation_info()).messages.len(),
        0,
    )?;
    let mut info = None;
    let refused = npu.refusal(|| {
        let module = npu.shader("const a = 1;\nfn f() -> u32 {\n    return bogus;\n}\n");
        info = Some(wait(module.get_compilation_info()));
        drop(npu.pipeline_with(&module, None, &[]));
    });
    let Some(message) = info.and_then(|info| info.messages.into_iter().next()) else {
        return Err("no message".to_owned());
    };
    let location = message.location.ok_or("no location")?;
    expect((location.line_number, location.line_position), (3, 12))?;
    expect((location.offset, location.length), (40, 5))?;
    expect(message.message.contains("bogus") && refused.contains("bogus"), true)
}

/// Features without a translation are refused by name, and sizes above a limit with their limit.
#[test]
fn refused_pipelines() -> Result<(), String> {
    let npu = npu()?;
    for (text, expected) in [
        (
            "@group(0) @binding(0) var image: texture_2d<f32>;
             @group(0) @binding(1) var<storage, read_write> out: vec4f;
             @compute @workgroup_size(1) fn main() { out = textureLoad(image, vec2u(), 0); }",
            "texture",
        ),
        (
            "@compute @workgroup_size(1025) fn main() {}",
            "the size of a work-group in x is 1025, and the limit is 1024",
        ),
        (
            "@compute @workgroup_size(64, 32) fn main() {}",
            "work-items of a work-group is 2048",
        ),
        (
            "@compute @workgroup_size(1) fn a() {} @compute @workgroup_size(1) fn b() {}",
            "name one of the entry points a, b",
        ),
        ("fn helper() {}", "no compute entry point"),
    ] {
        let refused = npu.refusal(|| drop(npu.pipeline(text)));
        if !refused.contains(expected) {
            return Err(format!("expected {expected:?}, found {refused:?}"));
        }
    }
    Ok(())
}
