//! Calls of intrinsics: each one, under the mask of the entry and under a mask that is a parameter;
//! shifts also by constants.

use super::instance::Instance;
use super::operation::Small;
use cranelift_codegen::ir::{ExtFuncData, ExternalName, InstBuilder as _, MemFlagsData, Type, Value, types};
use cranelift_naplespu::intrinsics;
use npu_mc::tables::{IntrinsicInfo, IntrinsicKind, intrinsic_by_name};

/// Appends a call of an intrinsic. Returns its result, if it has one.
fn call(small: &mut Small, info: &IntrinsicInfo, args: &[Value]) -> Option<Value> {
    let signature = small.func.import_signature(intrinsics::signature(info));
    let callee = small.func.import_function(ExtFuncData {
        name: ExternalName::testcase(info.name),
        signature,
        colocated: false,
        patchable: false,
    });
    let call = small.cursor().ins().call(callee, args);
    small.func.dfg.inst_results(call).first().copied()
}

/// Appends a call of the intrinsic with this name after the common prefix.
fn call_named(small: &mut Small, name: &str, args: &[Value]) -> Option<Value> {
    let info = intrinsic_by_name(&format!("{}{name}", intrinsics::PREFIX))?;
    call(small, info, args)
}

/// The mask under which an intrinsic executes.
#[derive(Clone, Copy)]
enum Mask {
    Entry,
    Param,
    Lanes,
    Constant(i64),
}

/// Returns the function that calls an intrinsic under a mask.
fn under(info: &IntrinsicInfo, mask: Mask) -> Option<Instance> {
    let mut small = Small::default();
    let params: Vec<Type> = intrinsics::signature(info)
        .params
        .iter()
        .map(|param| param.value_type)
        .collect();
    let mut args: Vec<Value> = params.iter().map(|&ty| small.param(ty)).collect();
    // Lane numbers of a shuffle that are too large give undefined lanes.
    if info.instruction.starts_with("SHUFFLEI") {
        let most = small.constant(types::I32X16, 15)?;
        args[1] = small.cursor().ins().band(args[1], most);
    }
    match mask {
        Mask::Entry => {}
        Mask::Param => {
            let value = small.param(types::I32);
            call_named(&mut small, "write_mask_reg", &[value]);
        }
        Mask::Lanes => {
            let value = small.param(types::I32X16);
            call_named(&mut small, "write_mask_regv16i32", &[value]);
        }
        Mask::Constant(value) => {
            let value = small.constant(types::I32, value)?;
            call_named(&mut small, "write_mask_reg", &[value]);
        }
    }
    let result = call(&mut small, info, &args);
    let ty = params.first().copied().unwrap_or(types::I32);
    let mut results = Vec::new();
    if let Some(mut result) = result {
        // Other lanes of a masked load are undefined.
        if info.masked && info.kind != IntrinsicKind::Mix {
            let other = small.param(types::I32X16);
            if small.func.dfg.value_type(result) != types::I32X16 {
                result = small.cursor().ins().bitcast(types::I32X16, MemFlagsData::new(), result);
            }
            result = call_named(&mut small, "vector_mixi32", &[result, other])?;
        }
        results.push(result);
    }
    if matches!(info.kind, IntrinsicKind::WriteMask | IntrinsicKind::WriteMaskLanes) {
        results.push(call_named(&mut small, "read_mask_reg", &[])?);
    }
    small.ret(&results);
    Some(Instance::new(small, ty))
}

/// Returns the function that calls an intrinsic of two words with a constant second operand.
fn with_constant(info: &IntrinsicInfo, amount: i64) -> Option<Instance> {
    let mut small = Small::default();
    let first = small.param(types::I32);
    let second = small.constant(types::I32, amount)?;
    let result = call(&mut small, info, &[first, second])?;
    small.ret(&[result]);
    Some(Instance::new(small, types::I32))
}

/// Returns the instances of intrinsics.
pub fn instances() -> Vec<Instance> {
    let mut out = Vec::new();
    for info in intrinsics::all()
        .iter()
        .filter(|info| info.kind != IntrinsicKind::Missing)
    {
        let depends_on_mask = info.masked || matches!(info.kind, IntrinsicKind::ReadMask);
        let is_access = !matches!(info.kind, IntrinsicKind::ReadMask | IntrinsicKind::Mix);
        let masks: &[Mask] = match depends_on_mask {
            true if is_access => &[Mask::Entry, Mask::Param, Mask::Constant(0), Mask::Constant(0x1_0005)],
            true => &[
                Mask::Entry,
                Mask::Param,
                Mask::Lanes,
                Mask::Constant(0),
                Mask::Constant(0x1_0005),
                Mask::Constant(0xffff),
            ],
            false => &[Mask::Entry],
        };
        out.extend(masks.iter().filter_map(|&mask| under(info, mask)));
        if matches!(info.kind, IntrinsicKind::ShiftLeft | IntrinsicKind::ShiftRight) {
            out.extend(
                [0, 1, 31, 32, 63]
                    .map(|amount| with_constant(info, amount))
                    .into_iter()
                    .flatten(),
            );
        }
    }
    out
}
