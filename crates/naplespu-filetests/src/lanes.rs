//! Supports run lines with vectors of more than 128 bits, which `cranelift-reader` cannot read and
//! Cranelift cannot represent as values.
//!
//! The host passes and receives such a vector as its lanes ([`naplespu_jit::host_types`]). A line
//! like `run: %f([1 2 ...], 5) == [3 4 ...]` is therefore read as a line with more arguments and
//! results.

use cranelift_codegen::data_value::DataValue;
use cranelift_codegen::ir::{AbiParam, Signature, Type};
use naplespu_jit::host_types;

/// Returns whether the type is a vector that Cranelift cannot represent as a value.
pub(crate) fn is_wide(ty: Type) -> bool {
    host_types(ty).count() > 1
}

/// Returns whether the reader cannot read some values of the signature.
pub fn has_wide(signature: &Signature) -> bool {
    let mut all = signature.params.iter().chain(&signature.returns);
    all.any(|param| is_wide(param.value_type))
}

/// Replaces each wide vector of a signature by its lanes.
pub fn signature(signature: &Signature) -> Signature {
    let flat = |list: &[AbiParam]| -> Vec<AbiParam> {
        let types = list.iter().flat_map(|param| host_types(param.value_type));
        types.map(AbiParam::new).collect()
    };
    let mut result = Signature::new(signature.call_conv);
    result.params = flat(&signature.params);
    result.returns = flat(&signature.returns);
    result
}

/// Replaces each wide vector of a line by its lanes.
///
/// # Errors
///
/// Returns the reason why the line is malformed.
pub fn text(line: &str, signature: &Signature) -> Result<String, String> {
    let malformed = || "the line has no call".to_owned();
    let (name, rest) = line.split_once('(').ok_or_else(malformed)?;
    let (args, rest) = rest.split_once(')').ok_or_else(malformed)?;
    let args = flatten(args, &signature.params)?;
    let mut result = format!("{name}({})", args.join(", "));
    let Some(at) = rest.rfind('=') else {
        return Ok(result + rest);
    };
    let (comparison, expected) = rest.split_at(at + 1);
    let expected = expected.trim();
    let list = match signature.returns.as_slice() {
        [_] => expected,
        _ => expected
            .strip_prefix('[')
            .and_then(|list| list.strip_suffix(']'))
            .ok_or("several results must be in brackets")?,
    };
    let values = flatten(list, &signature.returns)?.join(", ");
    let one = matches!(signature.returns.as_slice(), [only] if !is_wide(only.value_type));
    result += comparison;
    result += &if one {
        format!(" {values}")
    } else {
        format!(" [{values}]")
    };
    Ok(result)
}

/// Formats values for run lines; a vector is a list of its lanes in brackets. A wide vector may be
/// given as one value for each lane.
pub fn display(values: &[DataValue], params: &[AbiParam]) -> Vec<String> {
    let mut rest = values;
    let mut texts = Vec::new();
    for param in params {
        let ty = param.value_type;
        let count = if is_wide(ty) { host_types(ty).count() } else { 1 };
        let Some((own, after)) = rest.split_at_checked(count) else {
            break;
        };
        rest = after;
        texts.push(match own {
            [value] if ty.is_vector() => lanes_of(value, ty),
            [value] => value.to_string(),
            lanes => in_brackets(lanes),
        });
    }
    // Values beyond the signature have their usual format.
    texts.extend(rest.iter().map(DataValue::to_string));
    texts
}

fn in_brackets(lanes: &[DataValue]) -> String {
    let lanes: Vec<String> = lanes.iter().map(DataValue::to_string).collect();
    format!("[{}]", lanes.join(" "))
}

/// Formats a vector that is one value.
fn lanes_of(value: &DataValue, ty: Type) -> String {
    let size = value.ty().bytes() as usize;
    let lane = ty.lane_type();
    // The type differs from the signature's, so the value is not split into lanes.
    if size != ty.bytes() as usize || !value.ty().is_vector() {
        return value.to_string();
    }
    let mut bytes = vec![0; size];
    value.write_to_slice_le(&mut bytes);
    let lanes = bytes.chunks_exact(lane.bytes() as usize);
    let lanes: Vec<DataValue> = lanes.map(|bytes| DataValue::read_from_slice_le(bytes, lane)).collect();
    in_brackets(&lanes)
}

fn flatten(list: &str, params: &[AbiParam]) -> Result<Vec<String>, String> {
    let items: Vec<&str> = if list.trim().is_empty() {
        Vec::new()
    } else {
        list.split(',').map(str::trim).collect()
    };
    if items.len() != params.len() {
        return Err(format!("{} values are given for {}", items.len(), params.len()));
    }
    let mut flat = Vec::new();
    for (item, param) in items.into_iter().zip(params) {
        let ty = param.value_type;
        if !is_wide(ty) {
            flat.push(item.to_owned());
            continue;
        }
        let lanes = item.strip_prefix('[').and_then(|lanes| lanes.strip_suffix(']'));
        let lanes: Vec<&str> = lanes.unwrap_or_default().split_whitespace().collect();
        if lanes.len() != host_types(ty).count() {
            return Err(format!(
                "`{item}` is not a list of {} lanes in brackets",
                host_types(ty).count()
            ));
        }
        flat.extend(lanes.into_iter().map(str::to_owned));
    }
    Ok(flat)
}

#[cfg(test)]
mod tests {
    use super::*;
    use cranelift_codegen::ir::types::{I8X16, I32, I32X16};
    use cranelift_codegen::isa::CallConv;

    fn sig(params: &[Type], returns: &[Type]) -> Signature {
        let mut sig = Signature::new(CallConv::Fast);
        sig.params.extend(params.iter().copied().map(AbiParam::new));
        sig.returns.extend(returns.iter().copied().map(AbiParam::new));
        sig
    }

    const LANES: &str = "[1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16]";
    const FLAT: &str = "1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16";

    #[test]
    fn vectors_become_their_lanes() {
        let one = sig(&[I32X16, I8X16, I32], &[I32X16]);
        let line = format!("run: %f({LANES}, {LANES}, 7) == {LANES}");
        assert_eq!(
            text(&line, &one),
            Ok(format!("run: %f({FLAT}, {LANES}, 7) == [{FLAT}]"))
        );
        let several = sig(&[], &[I32, I32X16]);
        let line = format!("run: %f() != [5, {LANES}]");
        assert_eq!(text(&line, &several), Ok(format!("run: %f() != [5, {FLAT}]")));
        let print = sig(&[I32X16], &[I32]);
        assert_eq!(
            text(&format!("print: %f({LANES})"), &print),
            Ok(format!("print: %f({FLAT})"))
        );
        let scalar = format!("run: %f({LANES}) == 5");
        assert_eq!(text(&scalar, &print), Ok(format!("run: %f({FLAT}) == 5")));
        assert!(text("run: %f([1 2 3]) == 5", &print).is_err());
        assert!(text("run: %f(1, 2) == 5", &print).is_err());
    }
}
