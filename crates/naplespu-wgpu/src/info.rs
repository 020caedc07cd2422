//! The features and limits of the hardware.

use crate::config::Config;
use crate::pipeline::THREADS;
use naplespu_shader::LANE_COUNTS;
use wgpu::{AdapterInfo, Backend, DeviceType, DownlevelCapabilities, DownlevelFlags, Features, Limits, ShaderModel};

/// The features that a device can have.
pub(crate) const FEATURES: Features = Features::TIMESTAMP_QUERY
    .union(Features::TIMESTAMP_QUERY_INSIDE_ENCODERS)
    .union(Features::TIMESTAMP_QUERY_INSIDE_PASSES)
    .union(Features::MAPPABLE_PRIMARY_BUFFERS)
    .union(Features::SUBGROUP)
    .union(Features::SHADER_F16)
    .union(Features::SHADER_F64)
    .union(Features::SHADER_INT64)
    .union(Features::SHADER_INT64_ATOMIC_ALL_OPS)
    .union(Features::SHADER_FLOAT32_ATOMIC);

/// The most lanes of a thread.
const MAX_LANES: u32 = LANE_COUNTS[LANE_COUNTS.len() - 1];

/// The limit of workgroup memory in bytes. The scratchpad is twice as large, because variables in
/// it take multiples of 64 bytes.
const WORKGROUP_BYTES: u32 = 0x8000;

/// Returns the limits of a device.
pub(crate) fn limits(config: &Config) -> Limits {
    let largest = (config.memory / 4).min(1 << 30);
    let items = MAX_LANES * THREADS;
    let mut limits = Limits {
        max_uniform_buffers_per_shader_stage: 12,
        max_storage_buffers_per_shader_stage: 16,
        max_dynamic_storage_buffers_per_pipeline_layout: 8,
        max_uniform_buffer_binding_size: largest,
        max_storage_buffer_binding_size: largest & !3,
        max_buffer_size: largest,
        min_uniform_buffer_offset_alignment: 64,
        min_storage_buffer_offset_alignment: 64,
        max_compute_workgroup_storage_size: WORKGROUP_BYTES,
        max_compute_invocations_per_workgroup: items,
        max_compute_workgroup_size_x: items,
        max_compute_workgroup_size_y: items,
        max_compute_workgroup_size_z: items,
        max_compute_workgroups_per_dimension: 65535,
        ..Limits::defaults()
    };
    without_graphics(&mut limits);
    limits
}

/// Sets the limits of graphics to 0.
pub(crate) fn without_graphics(limits: &mut Limits) {
    for limit in [
        &mut limits.max_texture_dimension_1d,
        &mut limits.max_texture_dimension_2d,
        &mut limits.max_texture_dimension_3d,
        &mut limits.max_texture_array_layers,
        &mut limits.max_bind_groups_plus_vertex_buffers,
        &mut limits.max_sampled_textures_per_shader_stage,
        &mut limits.max_samplers_per_shader_stage,
        &mut limits.max_storage_textures_per_shader_stage,
        &mut limits.max_vertex_buffers,
        &mut limits.max_vertex_attributes,
        &mut limits.max_vertex_buffer_array_stride,
        &mut limits.max_inter_stage_shader_variables,
        &mut limits.max_color_attachments,
        &mut limits.max_color_attachment_bytes_per_sample,
        &mut limits.max_buffers_and_acceleration_structures_per_shader_stage,
    ] {
        *limit = 0;
    }
}

/// Returns the description of the adapter.
pub(crate) fn info() -> AdapterInfo {
    AdapterInfo {
        name: "NaplesPU".to_owned(),
        driver: "cranelift-naplespu".to_owned(),
        driver_info: env!("CARGO_PKG_VERSION").to_owned(),
        subgroup_min_size: 16,
        subgroup_max_size: MAX_LANES,
        // `wgpu` has no name for custom backends.
        ..AdapterInfo::new(DeviceType::Other, Backend::Noop)
    }
}

/// Returns what WebGPU requires and the adapter offers.
pub(crate) fn downlevel() -> DownlevelCapabilities {
    DownlevelCapabilities {
        flags: DownlevelFlags::COMPUTE_SHADERS
            | DownlevelFlags::INDIRECT_EXECUTION
            | DownlevelFlags::BUFFER_BINDINGS_NOT_16_BYTE_ALIGNED
            | DownlevelFlags::UNRESTRICTED_INDEX_BUFFER
            | DownlevelFlags::NONBLOCKING_QUERY_RESOLVE,
        shader_model: ShaderModel::Sm5,
        ..DownlevelCapabilities::default()
    }
}
