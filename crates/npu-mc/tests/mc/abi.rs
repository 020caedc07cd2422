//! Registers, calling convention, allocation classes, relocations, hardware tables.

use npu_mc::cc::{self, Loc, Place, State, ValueType};
use npu_mc::errata::Erratum;
use npu_mc::raw::{AluOp, Ctr, CtrOp, HwStatus, Jba, JbaOp, Jra, JraOp, MemOp, Mvi, MviOp, Ri, Rr};
use npu_mc::reloc::{self, Reloc, RelocError};
use npu_mc::{Opcode, RawInst, Reg, SReg, Unit, VReg, decode, env, split};

#[test]
fn registers_have_their_names_and_numbers() {
    assert_eq!((SReg::COUNT, VReg::COUNT), (64, 64));
    assert_eq!(SReg::SP.number(), 61);
    assert_eq!(SReg::RM.name(), "rm");
    assert_eq!(SReg::from_name("s57"), SReg::new(57));
    assert_eq!(SReg::from_name("s58"), None);
    assert_eq!(SReg::from_name("S0"), None);
    assert_eq!(SReg::new(64), None);
    assert_eq!(VReg::V63.dwarf(), 127);
    for r in SReg::all() {
        assert_eq!(Reg::from_name(r.name()), Some(Reg::S(r)));
        assert_eq!(r.dwarf(), u16::from(r.number()));
    }
}

fn place(types: &[ValueType]) -> (Vec<Place>, State) {
    let mut state = State::new();
    let mut places = Vec::new();
    for ty in types {
        state.assign(&cc::ARGUMENTS, *ty, &mut places).unwrap();
    }
    (places, state)
}

fn s(number: u8) -> Loc {
    Loc::Reg(Reg::S(SReg::new(number).unwrap()))
}

fn v(number: u8) -> Loc {
    Loc::Reg(Reg::V(VReg::new(number).unwrap()))
}

#[test]
fn arguments_go_to_registers_then_to_the_stack() {
    use ValueType::*;
    let (places, state) = place(&[I8, V16I32, F32, I64, V16I8, I128]);
    let locs: Vec<Loc> = places.iter().map(|p| p.loc).collect();
    assert_eq!(locs, [s(0), v(0), s(1), s(2), s(3), v(1), s(4), s(5), s(6), s(7)]);
    assert_eq!(places[0].ty, I32);
    assert_eq!(places[1].ty, V16I32);
    assert_eq!(places[3].ty, I32);
    assert_eq!(places[5].ty, V16I32);
    assert_eq!(state.stack_size(), 0);

    // A pair may be split between the last register and the stack.
    let (places, state) = place(&[I32, I32, I32, I32, I32, I32, I32, I64, I16]);
    let stack = |offset, size| Loc::Stack {
        offset,
        size,
        align: size,
    };
    let locs: Vec<Loc> = places[7..].iter().map(|p| p.loc).collect();
    assert_eq!(locs, [s(7), stack(0, 4), stack(4, 4)]);
    assert_eq!((state.stack_size(), state.stack_align()), (8, 4));

    let (places, state) = place(&[[V16I32; 8].as_slice(), &[V16F32, I32], &[I32; 8], &[V16I16]].concat());
    assert_eq!(places[8].loc, stack(0, 64));
    assert_eq!(places[17].loc, stack(64, 4));
    assert_eq!(places[18].loc, stack(128, 64));
    assert_eq!((state.stack_size(), state.stack_align()), (192, 64));
}

#[test]
fn results_that_do_not_fit_are_refused_without_a_trace() {
    let mut state = State::new();
    let mut places = Vec::new();
    for _ in 0..5 {
        state.assign(&cc::RETURNS, ValueType::I32, &mut places).unwrap();
    }
    let before = state;
    let error = state.assign(&cc::RETURNS, ValueType::I64, &mut places).unwrap_err();
    assert_eq!(error.ty, ValueType::I64);
    assert_eq!((state, places.len()), (before, 5));
    state.assign(&cc::RETURNS, ValueType::F32, &mut places).unwrap();
    assert_eq!(places[5].loc, s(5));
    assert!(state.assign(&cc::RETURNS, ValueType::I1, &mut places).is_err());
}

#[test]
fn reserved_registers_are_never_handed_out() {
    for class in [&env::GPR32, &env::VR512W] {
        let mut all: Vec<u8> = [class.preferred, class.non_preferred, class.reserved].concat();
        all.sort_unstable();
        assert_eq!(all, (0..64).collect::<Vec<u8>>(), "{}", class.name);
    }
    assert_eq!(env::GPR32.reserved, [58, 59, 60, 61, 62, 63]);
    assert_eq!(env::VR512W.reserved, [59, 63]);
    assert_eq!(env::GPR32.non_preferred, (50..58).collect::<Vec<u8>>());
    assert_eq!(env::VR512W.non_preferred, [56, 57, 58, 60, 61, 62]);
    assert!(cc::is_callee_saved(Reg::S(SReg::RA)));
    assert!(!cc::is_callee_saved(Reg::S(SReg::S49)));
}

#[test]
fn relocations_change_their_field_alone_and_check_it() {
    let apply = |reloc, word: u32, s, a, p| {
        let mut bytes = word.to_le_bytes();
        reloc::apply(reloc, &mut bytes, s, a, p).map(|()| u32::from_le_bytes(bytes))
    };
    assert_eq!(apply(Reloc::Abs32, 0xDEAD_BEEF, 0x1000, -4, 0), Ok(0xFFC));
    assert_eq!(apply(Reloc::Branch, 0x7800_0000, 0x400, 0, 0x404), Ok(0x7803_FFFC));
    assert_eq!(apply(Reloc::Branch, 0x7504_0000, 0x20400, -4, 0x400), Ok(0x7505_FFFC));
    assert_eq!(
        apply(Reloc::Branch, 0x7800_0000, 0x20400, 0, 0x400),
        Err(RelocError::Range {
            reloc: Reloc::Branch,
            value: 0x20000,
            min: -0x20000,
            max: 0x1FFFF
        })
    );
    assert_eq!(
        apply(Reloc::AbsHighLea, 0x6104_0000, 0x1234_5678, 0, 0),
        Ok(0x6104_0000 | 0x1234 << 2)
    );
    assert_eq!(
        apply(Reloc::AbsLowLea, 0x6007_FFFC, 0x1234_5678, 8, 0),
        Ok(0x6004_0000 | 0x5680 << 2)
    );
    assert_eq!(
        apply(Reloc::PcrelMem, 0x8200_0000, 0x100, 0, 0x104),
        Ok(0x8200_0000 | 0x1FC << 3)
    );
    assert_eq!(apply(Reloc::None, 7, 1, 2, 3), Ok(7));
    let short = reloc::apply(Reloc::Abs32, &mut [0; 3], 0, 0, 0);
    assert_eq!(
        short,
        Err(RelocError::Short {
            reloc: Reloc::Abs32,
            len: 3
        })
    );
    for r in Reloc::ALL {
        assert_eq!(Reloc::from_number(u32::from(r.number())), Some(*r));
        assert_eq!(Reloc::from_name(r.name()), Some(*r));
    }
    assert_eq!(reloc::elf::MACHINE, 9876);
}

#[test]
fn the_hardware_splits_words_by_format() {
    let (pc, v63) = (Reg::S(SReg::PC), Reg::V(VReg::of_field(63)));
    assert_eq!(
        split(0x04FF_FFDF),
        RawInst::Rr(Rr {
            op: AluOp::Add,
            dst: v63,
            src0: v63,
            src1: v63,
            long: true,
            m: true
        })
    );
    assert_eq!(
        split(0x33FF_FFC0),
        RawInst::RrUnassigned(Rr {
            op: 51,
            dst: pc,
            src0: pc,
            src1: pc,
            long: false,
            m: false
        })
    );
    assert_eq!(
        split(0x441F_F820),
        RawInst::Ri(Ri {
            op: AluOp::Add,
            dst: Reg::S(SReg::S7),
            src0: pc,
            imm: -252,
            m: false
        })
    );
    assert_eq!(
        split(0x60FE_AF34),
        RawInst::Mvi(Mvi {
            op: MviOp::Moveil,
            dst: pc,
            imm: 43981,
            m: false
        })
    );
    let jump = |offset| RawInst::Jra(Jra { op: JraOp::Jmp, offset });
    assert_eq!(split(0x78FF_FFFC), jump(-4));
    assert_eq!(split(0x78FD_911B), jump(102683));
    assert_eq!(
        split(0x75D6_69D2),
        RawInst::Jba(Jba {
            op: JbaOp::Beqz,
            reg: SReg::of_field(53),
            offset: -103982
        })
    );
    assert_eq!(
        split(0x6B05_2000),
        RawInst::Ctr(Ctr {
            op: CtrOp::ReadCr,
            reg0: SReg::of_field(1),
            reg1: SReg::of_field(18)
        })
    );
    assert_eq!(split(u32::MAX), RawInst::Undefined);
    assert_eq!(split(0xC000_0000), RawInst::Undefined);
    let RawInst::Mem(inst) = split(0xA21C_7802) else {
        panic!("not a memory operation");
    };
    assert_eq!((inst.op, inst.offset, inst.shared), (MemOp::Store32, -256, true));
}

#[test]
fn hardware_operations_know_their_unit_and_latency() {
    assert_eq!(AluOp::from_code(36), Some(AluOp::Fdiv));
    assert_eq!((AluOp::Fdiv.latency(), AluOp::Fdiv.unit()), (24, Unit::Fp));
    assert_eq!(AluOp::Fdiv.info().fp_slot, Some(16));
    assert_eq!(AluOp::from_code(51), None);
    assert_eq!(AluOp::Crp.info().status, HwStatus::Hang);
    let inst = decode(0x2400_0000).unwrap();
    assert_eq!(inst.opcode, Opcode::DIVFSSS_32);
    assert_eq!(inst.desc().latency, 24);
    assert_eq!(inst.desc().fp_slot, Some(16));
    assert_eq!(Opcode::ADDSSS_32.desc().fp_slot, None);
    assert_eq!(Opcode::L32W_Scratchpad.desc().latency, 11);
    assert_eq!(Opcode::L32W_Scratchpad.desc().unit, Unit::Spm);
}

#[test]
fn errata_have_names_and_texts() {
    assert!(Erratum::ALL.len() > 10);
    assert_eq!(
        Erratum::LostResultBeforeTakenBranch.name(),
        "lost_result_before_taken_branch"
    );
    let info = Erratum::VectorWriteTo59.info();
    assert!(!info.is_setting && info.workaround.contains("never allocated"));
    let settings = Erratum::ALL.iter().filter(|e| e.info().is_setting).count();
    assert!((1..Erratum::ALL.len()).contains(&settings));
}

#[test]
fn implicit_and_tied_registers_are_seen() {
    let masked = decode(0x0100_000D).unwrap();
    assert_eq!(masked.opcode, Opcode::ORVVS_M_32);
    let uses: Vec<Reg> = masked.uses().collect();
    let (v0, s0) = (Reg::V(VReg::V0), Reg::S(SReg::S0));
    assert_eq!(uses, [v0, s0, v0, Reg::S(SReg::RM)]);
    assert_eq!(masked.defs().collect::<Vec<_>>(), [v0]);
    let call = decode(0x7900_0000).unwrap();
    assert_eq!(call.defs().collect::<Vec<_>>(), [Reg::S(SReg::RA)]);
    let store = decode(0xA204_7000).unwrap();
    assert_eq!(store.to_string(), "store32 s1, (s7)");
    assert_eq!(store.defs().count(), 0);
}
