//! Tests the data that accompanies the machine code: relocations, traps, source locations, value
//! labels, and the frame layout. Also tests that compilation is deterministic.

use cranelift_codegen::Context;
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::data_value::DataValue;
use cranelift_codegen::ir::{Function, SourceLoc, TrapCode, ValueLabel, ValueLabelAssignments, ValueLabelStart};
use cranelift_codegen::settings::{self, Configurable, Flags};
use cranelift_naplespu::code::{LabelLoc, RelocTarget};
use cranelift_naplespu::{CompileError, CompiledCode, Isa, isa};
use naplespu_jit::{Program, RunError};
use npu_mc::reloc::Reloc;
use npu_mc::{Opcode, Reg, SReg};
use std::sync::Arc;

fn isa(set: &[(&str, &str)]) -> Arc<Isa> {
    let mut flags = settings::builder();
    for (name, value) in set {
        flags.set(name, value).expect("a flag");
    }
    isa::lookup_by_name("naplespu")
        .expect("the target")
        .finish(Flags::new(flags))
        .expect("the target")
}

fn parse(text: &str) -> Function {
    cranelift_reader::parse_functions(text).expect("CLIF").remove(0)
}

fn compile(isa: &Isa, function: Function) -> CompiledCode {
    isa.compile(&mut Context::for_function(function), &mut ControlPlane::default())
        .expect("code")
}

fn opcode_at(code: &CompiledCode, offset: u32) -> Opcode {
    let at = offset as usize;
    let word = u32::from_le_bytes(code.bytes[at..at + 4].try_into().expect("a word"));
    npu_mc::decode(word).expect("an instruction").opcode
}

const CALLS: &str = "
    function %calls(i32) -> i32 {
        sig0 = (i32) -> i32
        fn0 = colocated %near(i32) -> i32
        fn1 = %far(i32) -> i32
        gv0 = symbol colocated %data+8
    block0(v0: i32):
        v1 = call fn0(v0)
        v2 = call fn1(v1)
        v3 = func_addr.i32 fn0
        v4 = call_indirect sig0, v3(v2)
        v5 = symbol_value.i32 gv0
        v6 = iadd v4, v5
        return v6
    }";

#[test]
fn relocations_name_symbol_kind_and_addend() {
    let code = compile(&isa(&[]), parse(CALLS));
    let found: Vec<(Opcode, Reloc, String, i64)> = code
        .relocs
        .iter()
        .map(|r| (opcode_at(&code, r.offset), r.kind, r.target.to_string(), r.addend))
        .collect();
    let has = |op, kind, name: &str, addend| found.contains(&(op, kind, name.to_owned(), addend));
    assert!(has(Opcode::JMPSR_OFF, Reloc::Branch, "%near", 0), "{found:?}");
    // `leah` and `leal` decode as moves of immediates.
    for (op, kind) in [
        (Opcode::MOVEIHSI, Reloc::AbsHighLea),
        (Opcode::MOVEILSI, Reloc::AbsLowLea),
    ] {
        assert!(has(op, kind, "%far", 0), "{found:?}");
        assert!(has(op, kind, "%near", 0), "{found:?}");
        assert!(has(op, kind, "%data", 8), "{found:?}");
    }
    assert_eq!(found.len(), 7);
    assert!(code.relocs.is_sorted_by_key(|r| r.offset));
}

#[test]
fn division_refers_to_the_runtime() {
    let code = compile(
        &isa(&[]),
        parse("function %d(i32, i32) -> i32 { block0(v0: i32, v1: i32): v2 = udiv v0, v1 return v2 }"),
    );
    assert!(
        code.relocs
            .iter()
            .any(|r| r.target == RelocTarget::Runtime("__npu_udiv32"))
    );
    let divided_by_zero = code
        .traps
        .iter()
        .find(|t| t.code == TrapCode::INTEGER_DIVISION_BY_ZERO)
        .expect("a trap");
    assert_eq!(opcode_at(&code, divided_by_zero.offset), Opcode::BEQZ);
}

const LOCATED: &str = "
    function %located(i32, i32) -> i32 {
    block0(v0: i32, v1: i32):
    @0010 v2 = imul v0, v1
    @0020 trapz v2, user7
    @0030 v3 = bxor v2, v0
    @0040 trapz v3, user7
        return v3
    }";

#[test]
fn source_locations_cover_the_code_they_made() {
    let code = compile(&isa(&[]), parse(LOCATED));
    let locs: Vec<u32> = code.srclocs.iter().map(|s| s.loc.bits()).collect();
    assert_eq!(locs, [0x10, 0x20, 0x30, 0x40]);
    assert!(code.srclocs.windows(2).all(|w| w[0].end <= w[1].start));
    assert_eq!(opcode_at(&code, code.srclocs[0].start), Opcode::MULLSSS_32);
    assert_eq!(opcode_at(&code, code.srclocs[2].start), Opcode::XORSSS_32);
    let traps: Vec<(TrapCode, SourceLoc)> = code.traps.iter().map(|t| (t.code, t.srcloc)).collect();
    let code7 = TrapCode::unwrap_user(7);
    assert_eq!(traps, [(code7, SourceLoc::new(0x20)), (code7, SourceLoc::new(0x40))]);
}

/// Two instructions with the same location, and one without a location between them. The code of
/// the latter has no location.
#[test]
fn code_between_two_places_of_one_location_has_none() {
    let text = "
    function %between(i32, i32) -> i32 {
    block0(v0: i32, v1: i32):
    @0010 v2 = imul v0, v1
        v3 = bxor v2, v0
    @0010 v4 = imul v3, v1
        return v4
    }";
    let code = compile(&isa(&[]), parse(text));
    let without = (0..code.pool_start)
        .step_by(4)
        .filter(|&offset| code.srcloc_at(offset).is_none());
    let opcodes: Vec<Opcode> = without.map(|offset| opcode_at(&code, offset)).collect();
    assert!(opcodes.contains(&Opcode::XORSSS_32), "{opcodes:?}");
    assert!(!opcodes.contains(&Opcode::MULLSSS_32), "{opcodes:?}");
}

#[test]
fn call_sites_rise() {
    let text = "
    function %two(i32) -> i32 {
        sig0 = (i32) -> i32 system_v
        fn0 = %callee sig0
    block0(v0: i32):
        try_call fn0(v0), sig0, block1(ret0), [ tag1: block3(exn0) ]
    block1(v1: i32):
        try_call fn0(v1), sig0, block2(ret0), [ tag2: block3(exn0), default: block2(v1) ]
    block2(v2: i32):
        try_call fn0(v2), sig0, block3(ret0), [ tag3: block2(v2) ]
    block3(v3: i32):
        return v3
    }";
    for level in ["none", "speed"] {
        let code = compile(&isa(&[("opt_level", level)]), parse(text));
        assert_eq!(code.call_sites.len(), 3);
        let rises = code.call_sites.is_sorted_by(|a, b| a.return_offset < b.return_offset);
        assert!(rises, "{level}: {:?}", code.call_sites);
    }
}

#[test]
fn a_trap_tells_which_of_two_places_with_one_code_it_came_from() {
    for (args, loc) in [([0, 5], 0x20), ([1, 1], 0x40)] {
        let mut program = Program::with_config(isa(&[]), npu_sim::Config::testing(1));
        program.define(&parse(LOCATED)).expect("code");
        let args = args.map(DataValue::I32);
        match program.call("located", &args) {
            Err(RunError::Trap(report)) => {
                assert_eq!(report.code, Some(TrapCode::unwrap_user(7)));
                assert_eq!(report.srcloc, Some(SourceLoc::new(loc)));
                assert_eq!(report.function.as_deref(), Some("located"));
                assert!(report.inst.is_some());
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn labelled_values_are_where_the_table_says() {
    let mut function = parse(
        "
        function %labelled(i32, i32) -> i32 {
            fn0 = %f(i32) -> i32
        block0(v0: i32, v1: i32):
            v2 = iadd v0, v1
            v3 = call fn0(v2)
            v4 = iadd v2, v3
            return v4
        }",
    );
    function.dfg.collect_debug_info();
    let label = |function: &mut Function, value: u32, label: u32| {
        let start = ValueLabelStart {
            from: Default::default(),
            label: ValueLabel::from_u32(label),
        };
        let labels = function.dfg.values_labels.as_mut().expect("enabled");
        labels.insert(
            cranelift_codegen::ir::Value::from_u32(value),
            ValueLabelAssignments::Starts(vec![start]),
        );
    };
    label(&mut function, 2, 77);
    let code = compile(&isa(&[]), function);
    let ranges = &code.value_labels_ranges[&ValueLabel::from_u32(77)];
    assert!(!ranges.is_empty());
    for range in ranges {
        assert!(range.start < range.end && range.end as usize <= code.bytes.len());
        match range.loc {
            LabelLoc::Reg(Reg::S(reg)) => assert!(reg.number() < 58),
            LabelLoc::Stack(offset) => assert!(offset >= 0 && offset.unsigned_abs() < code.frame.size),
            other => panic!("{other:?}"),
        }
    }
    // The value is live across the call, so one range contains the call instruction.
    let call = code.relocs.last().expect("the call").offset + 8;
    assert!(
        ranges.iter().any(|r| r.start <= call && call < r.end),
        "{ranges:?}, call at {call}"
    );
}

#[test]
fn frames_hold_what_is_used_and_nothing_else() {
    let leaf = compile(
        &isa(&[]),
        parse("function %leaf(i32) -> i32 { block0(v0: i32): return v0 }"),
    );
    assert_eq!(leaf.frame.size, 0);
    assert!(leaf.frame.saved.is_empty());

    let calls = compile(&isa(&[]), parse(CALLS));
    assert_eq!(calls.frame.size % 64, 0);
    assert_eq!(
        calls.frame.saved.iter().map(|(r, _)| *r).collect::<Vec<_>>(),
        [Reg::S(SReg::RA)]
    );

    let framed = compile(&isa(&[("preserve_frame_pointers", "true")]), parse(CALLS));
    assert!(framed.frame.frame_pointer);
    assert!(framed.frame.saved.iter().any(|(r, _)| *r == Reg::S(SReg::FP)));

    let slots = compile(
        &isa(&[]),
        parse(
            "
        function %slots() -> i32 {
            ss0 = explicit_slot 1
            ss1 = explicit_slot 1000
            ss2 = explicit_slot 64, align = 64
        block0:
            v0 = stack_addr.i32 ss0
            v1 = stack_addr.i32 ss1
            v2 = stack_addr.i32 ss2
            v3 = bxor v0, v1
            v4 = bxor v3, v2
            return v4
        }",
        ),
    );
    let offsets = &slots.frame.stack_slots;
    assert_eq!(offsets[2] % 64, 0);
    assert!(offsets.iter().all(|o| o % 4 == 0));
    assert!(offsets[0] < offsets[1], "small slots come first");
    assert!(offsets[1] + 1000 <= slots.frame.size);
}

#[test]
fn the_same_input_gives_the_same_bytes() {
    let isa = isa(&[("opt_level", "speed")]);
    let first = compile(&isa, parse(CALLS));
    for _ in 0..5 {
        assert_eq!(first.bytes, compile(&isa, parse(CALLS)).bytes);
    }
}

#[test]
fn refusals_name_function_instruction_type_and_help() {
    let function = parse(
        "function %wide(i32, i64) -> i32 { block0(v0: i32, v1: i64): atomic_store.i64 v1, v0 v2 = atomic_rmw.i32 add v0, v0 return v2 }",
    );
    let mut target = isa::lookup_by_name("naplespu").expect("the target");
    target.set("atomics", "refuse").expect("a setting");
    let error = target
        .finish(Flags::new(settings::builder()))
        .expect("the target")
        .compile(&mut Context::for_function(function), &mut ControlPlane::default())
        .expect_err("refused");
    let CompileError::Unsupported(refusals) = &error else {
        panic!("{error}")
    };
    assert_eq!(refusals.len(), 2, "every refused instruction is listed");
    let text = error.to_string();
    for part in ["%wide", "atomic_store", "i64", "inst0", "i32"] {
        assert!(text.contains(part), "{text}");
    }
}

/// `cranelift-frontend` spills a value that needs a stack map. The value is in memory during each
/// call, at the location in the map.
#[test]
fn stack_maps_of_the_frontend_name_the_places_of_live_values() {
    use cranelift_codegen::ir::{AbiParam, ExtFuncData, ExternalName, InstBuilder, Signature, UserFuncName, types};
    use cranelift_codegen::isa::CallConv;
    use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};

    let isa = isa(&[("opt_level", "speed")]);
    let mut signature = Signature::new(CallConv::SystemV);
    signature.params.resize(2, AbiParam::new(types::I32));
    signature.returns.push(AbiParam::new(types::I32));
    let mut function = Function::with_name_signature(UserFuncName::testcase("f"), signature.clone());
    let mut context = FunctionBuilderContext::new();
    let mut builder = FunctionBuilder::new(&mut function, &mut context);
    let block = builder.create_block();
    builder.append_block_params_for_function_params(block);
    builder.switch_to_block(block);
    builder.seal_all_blocks();
    let (object, number) = (builder.block_params(block)[0], builder.block_params(block)[1]);
    builder.declare_value_needs_stack_map(object);
    let signature = builder.import_signature(signature);
    let collect = builder.import_function(ExtFuncData {
        name: ExternalName::testcase("collect"),
        signature,
        colocated: true,
        patchable: false,
    });
    let first = builder.ins().call(collect, &[number, number]);
    let first = builder.inst_results(first)[0];
    let second = builder.ins().call(collect, &[object, first]);
    let second = builder.inst_results(second)[0];
    let sum = builder.ins().iadd(second, first);
    builder.ins().return_(&[sum]);
    builder.finalize(isa.frontend_config());

    let code = compile(&isa, function);
    let calls: Vec<u32> = code.relocs.iter().map(|r| r.offset + 4).collect();
    assert_eq!(calls.len(), 2);
    // The object is live during the first call only.
    let [map] = &code.stack_maps[..] else {
        panic!("{:?}", code.stack_maps)
    };
    assert_eq!(map.return_offset, calls[0]);
    let [entry] = map.entries[..] else { panic!("{map:?}") };
    assert_eq!(entry.ty, types::I32);
    assert_eq!(entry.offset, code.frame.stack_slots[0]);
    // Its register is stored to this location before the call and loaded from it after the call.
    let text = code.asm(None);
    assert!(text.contains(&format!("stack_map: i32 at {}", entry.offset)), "{text}");
}
