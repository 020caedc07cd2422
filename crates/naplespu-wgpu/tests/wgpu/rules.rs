//! Rules of passes and dispatches, and calls that are no compute.

use crate::program::{Gpu, STORAGE, expect, npu};
use wgpu::BufferUsages;

const COPY: &str = "
    @group(0) @binding(0) var<storage, read> source: array<u32>;
    @group(0) @binding(1) var<storage, read_write> target_: array<u32, 4>;
    @compute @workgroup_size(4)
    fn main(@builtin(local_invocation_index) item: u32) { target_[item] = source[item]; }";

/// Returns the text of the validation error of a pass, and whether it is that of `finish`.
fn refusal(npu: &Gpu, record: impl FnOnce(&mut wgpu::ComputePass<'_>)) -> String {
    let mut encoder = npu.encoder();
    let recorded = npu.refusal(|| record(&mut encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default())));
    let finished = npu.refusal(|| drop(encoder.finish()));
    match recorded.is_empty() {
        true => finished,
        false => format!("too early: {recorded}"),
    }
}

/// The text of a refusal, and what is recorded.
type Case<'a> = (&'a str, &'a dyn Fn(&mut wgpu::ComputePass<'_>));

#[test]
fn dispatches() -> Result<(), String> {
    let npu = npu()?;
    let pipeline = npu.pipeline(COPY);
    let (a, b) = (npu.empty(16, STORAGE), npu.empty(16, STORAGE));
    let group = npu.group(&pipeline, &[&a, &b]);
    let alias = npu.group(&pipeline, &[&a, &a]);
    let cases: [Case<'_>; 6] = [
        ("", &|pass| {
            pass.set_pipeline(&pipeline);
            pass.set_bind_group(0, &group, &[]);
            pass.dispatch_workgroups(65535, 0, 1);
        }),
        ("no pipeline is set", &|pass| pass.dispatch_workgroups(1, 1, 1)),
        ("needs bind group 0, and none is set", &|pass| {
            pass.set_pipeline(&pipeline);
            pass.dispatch_workgroups(1, 1, 1);
        }),
        ("work-groups in a dimension is 65536", &|pass| {
            pass.set_pipeline(&pipeline);
            pass.set_bind_group(0, &group, &[]);
            pass.dispatch_workgroups(1, 65536, 1);
        }),
        ("is written by the dispatch and has another use", &|pass| {
            pass.set_pipeline(&pipeline);
            pass.set_bind_group(0, &alias, &[]);
            pass.dispatch_workgroups(1, 1, 1);
        }),
        ("immediate data (push constants) is not supported", &|pass| {
            pass.set_immediates(0, &[0; 4]);
        }),
    ];
    for (text, record) in cases {
        let refused = refusal(&npu, record);
        if !refused.contains(text) || text.is_empty() != refused.is_empty() {
            return Err(format!("expected {text:?}, found {refused:?}"));
        }
    }
    Ok(())
}

#[test]
fn bind_groups() -> Result<(), String> {
    let npu = npu()?;
    let pipeline = npu.pipeline(COPY);
    let layout = pipeline.get_bind_group_layout(0);
    let buffer = |size, usage| npu.empty(size, usage);
    let good = buffer(16, STORAGE);
    for (buffers, text) in [
        (vec![&good], "the layout has binding 1"),
        (vec![&good, &good, &good], "the bind group has binding 2"),
        (
            vec![&good, &buffer(16, BufferUsages::UNIFORM)],
            "lacks the usage BufferUsages(STORAGE)",
        ),
        (
            vec![&good, &buffer(12, STORAGE)],
            "has 12 bytes, and at least 16 are needed",
        ),
        (vec![&good, &buffer(18, STORAGE)], "is 18, not a multiple of 4"),
    ] {
        let refused = npu.refusal(|| drop(npu.group_of(&layout, &buffers)));
        if !refused.contains(text) {
            return Err(format!("expected {text:?}, found {refused:?}"));
        }
    }
    Ok(())
}

/// Objects of another device are refused by the device that gets them.
#[test]
fn other_devices() -> Result<(), String> {
    let (npu, other) = (npu()?, npu()?);
    let pipeline = npu.pipeline(COPY);
    let buffer = other.empty(16, STORAGE);
    let refused = npu.refusal(|| drop(npu.group(&pipeline, &[&buffer, &buffer])));
    expect(refused.contains("the buffer belongs to another device"), true)?;
    let refused = npu.refusal(|| {
        npu.queue.submit([other.encoder().finish()]);
    });
    expect(refused.contains("the command buffer belongs to another device"), true)
}

/// An encoder is locked while a pass is open.
#[test]
fn open_passes() -> Result<(), String> {
    let npu = npu()?;
    let buffer = npu.empty(16, STORAGE);
    let mut encoder = npu.encoder();
    let pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
    let pass = pass.forget_lifetime();
    encoder.clear_buffer(&buffer, 0, None);
    drop(pass);
    let refused = npu.refusal(|| drop(encoder.finish()));
    expect(
        refused.contains("CommandEncoder::clear_buffer: a compute pass of the encoder is open"),
        true,
    )?;
    let mut encoder = npu.encoder();
    let pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
    let mut pass = pass.forget_lifetime();
    let refused = npu.refusal(|| {
        npu.queue.submit([encoder.finish()]);
    });
    expect(refused.contains("a compute pass of the encoder is open"), true)?;
    pass.dispatch_workgroups(1, 1, 1);
    let mut encoder = npu.encoder();
    encoder.push_debug_group("open");
    let refused = npu.refusal(|| drop(encoder.finish()));
    expect(refused.contains("the debug groups are not balanced"), true)
}

/// Every part of graphics is refused by name.
#[test]
fn graphics() -> Result<(), String> {
    let npu = npu()?;
    let device = &npu.device;
    let size = wgpu::Extent3d {
        width: 4,
        height: 4,
        depth_or_array_layers: 1,
    };
    let texture = || {
        device.create_texture(&wgpu::TextureDescriptor {
            label: None,
            size,
            mip_level_count: 1,
            sample_count: 1,
            dimension: wgpu::TextureDimension::D2,
            format: wgpu::TextureFormat::Rgba8Unorm,
            usage: wgpu::TextureUsages::COPY_DST,
            view_formats: &[],
        })
    };
    let module = npu.shader("@vertex fn v() -> @builtin(position) vec4f { return vec4f(); }");
    let render = || {
        let pipeline = device.create_render_pipeline(&wgpu::RenderPipelineDescriptor {
            label: None,
            layout: None,
            vertex: wgpu::VertexState {
                module: &module,
                entry_point: None,
                compilation_options: wgpu::PipelineCompilationOptions::default(),
                buffers: &[],
            },
            primitive: wgpu::PrimitiveState::default(),
            depth_stencil: None,
            multisample: wgpu::MultisampleState::default(),
            fragment: None,
            multiview_mask: None,
            cache: None,
        });
        drop(pipeline.get_bind_group_layout(0));
    };
    let write = || {
        let texture = texture();
        let view = texture.create_view(&wgpu::TextureViewDescriptor::default());
        npu.queue.write_texture(
            texture.as_image_copy(),
            &[0; 64],
            wgpu::TexelCopyBufferLayout::default(),
            size,
        );
        let mut encoder = npu.encoder();
        let attachment = wgpu::RenderPassColorAttachment {
            view: &view,
            depth_slice: None,
            resolve_target: None,
            ops: wgpu::Operations::default(),
        };
        let mut pass = encoder.begin_render_pass(&wgpu::RenderPassDescriptor {
            color_attachments: &[Some(attachment)],
            ..wgpu::RenderPassDescriptor::default()
        });
        pass.draw(0..3, 0..1);
        drop(pass);
        let buffers = encoder.finish();
        npu.queue.submit([buffers]);
        texture.destroy();
    };
    let queries = || {
        drop(device.create_query_set(&wgpu::QuerySetDescriptor {
            label: None,
            ty: wgpu::QueryType::Occlusion,
            count: 1,
        }));
    };
    let bundle = || {
        let encoder = device.create_render_bundle_encoder(&wgpu::RenderBundleEncoderDescriptor::default());
        drop(encoder.finish(&wgpu::RenderBundleDescriptor::default()));
    };
    let cases: [(&str, &dyn Fn()); 7] = [
        ("Device::create_texture: a texture", &|| drop(texture())),
        ("Device::create_texture: a texture", &write),
        ("Device::create_sampler: a sampler", &|| {
            drop(device.create_sampler(&wgpu::SamplerDescriptor::default()));
        }),
        ("Device::create_render_pipeline: a render pipeline", &render),
        ("Device::create_query_set: a query set of the type Occlusion", &queries),
        ("Device::create_render_bundle_encoder: a render bundle", &bundle),
        ("Device::create_tlas: an acceleration structure", &|| {
            drop(device.create_tlas(&wgpu::CreateTlasDescriptor {
                label: None,
                max_instances: 1,
                flags: wgpu::wgt::AccelerationStructureFlags::empty(),
                update_mode: wgpu::wgt::AccelerationStructureUpdateMode::Build,
            }));
        }),
    ];
    for (text, work) in cases {
        let refused = npu.refusal(work);
        if refused != format!("{text} is not supported: the device only computes") {
            return Err(format!("expected {text:?}, found {refused:?}"));
        }
    }
    Ok(())
}
