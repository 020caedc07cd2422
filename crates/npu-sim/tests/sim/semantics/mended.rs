//! Instructions without the errata that td has as variants.

use super::bits::Bits;
use super::number::Evaluator;
use super::{DATA, machine};
use crate::common::Random;
use npu_mc::semantics::{ControlEffect, Erratum, Space, execute_mended};
use npu_mc::{Inst, Opcode, Operand, SReg, VReg};
use npu_sim::{Lanes, Machine};

const PC: u32 = 0x400;

/// Lanes 0, 2, 4 and so on.
const MASK: u16 = 0x5555;

/// Creates a machine with numbers in s1, s2, v1 and v2, `DATA` in s3 and a lane mask.
fn prepared() -> Machine {
    let mut sim = machine(&mut Random(2));
    let thread = sim.thread_mut(0);
    thread.set_scalar(SReg::S1, 0x8000_0001);
    thread.set_scalar(SReg::S2, 33);
    thread.set_scalar(SReg::S3, DATA);
    thread.set_vector(VReg::V1, Lanes(std::array::from_fn(|lane| lane as u32)));
    thread.set_vector(VReg::V2, Lanes([7; 16]));
    thread.set_scalar(SReg::RM, u32::from(MASK));
    sim
}

fn run<T>(name: &str, operands: &[Operand], mended: &[Erratum], look: impl FnOnce(&Evaluator<'_>) -> T) -> T {
    let sim = prepared();
    let opcode = Opcode::from_name(name).unwrap();
    let operands = npu_mc::Operands::from_slice(operands).unwrap();
    let mut evaluator = Evaluator::new(&sim, true);
    execute_mended(&Inst { opcode, operands }, PC, &mut evaluator, mended).unwrap();
    look(&evaluator)
}

fn scalar(name: &str, operands: &[Operand], mended: &[Erratum]) -> Option<u64> {
    run(name, operands, mended, |e| e.scalar(0))
}

#[test]
fn variants_of_results() {
    let sss = [SReg::S0.into(), SReg::S1.into(), SReg::S2.into()];
    let mend = [Erratum::ShiftAmountNotModulo];
    for (name, is, ought) in [
        ("SLLSSS_32", 0, 2),
        ("SRLSSS_32", 0, 0x4000_0000),
        (
            "SRASSS_32",
            0x7fff_ffff & (0xffff_ffff_8000_0001_u64 >> 33),
            0xc000_0000,
        ),
    ] {
        assert_eq!(scalar(name, &sss, &[]), Some(is), "{name}");
        assert_eq!(scalar(name, &sss, &mend), Some(ought), "{name}");
        // An unrelated erratum has no effect.
        assert_eq!(scalar(name, &sss, &[Erratum::HalfWriteToMask]), Some(is), "{name}");
    }
    let svv = [SReg::S0.into(), VReg::V1.into(), VReg::V2.into()];
    assert_eq!(scalar("SEQSISVV_U_32", &svv, &[]), None);
    assert_eq!(
        scalar("SEQSISVV_U_32", &svv, &[Erratum::VectorCompareUpperHalf]),
        Some(1 << 7)
    );
    assert_eq!(
        scalar("SEQFOSSS_32", &[SReg::S0.into(), SReg::S1.into(), SReg::S1.into()], &[]),
        Some(0xffff)
    );
    let same = [SReg::S0.into(), SReg::S1.into(), SReg::S1.into()];
    assert_eq!(scalar("SEQFOSSS_32", &same, &[Erratum::FloatCompareValue]), Some(1));
}

#[test]
fn variants_of_registers_with_numbers_of_their_own() {
    let high = [SReg::RM.into(), 0x1234.into()];
    let mask = |mended: &[Erratum]| run("MOVEIHSI", &high, mended, |e| e.mask.as_ref().and_then(Bits::number));
    assert_eq!(mask(&[]), Some(0));
    assert_eq!(mask(&[Erratum::HalfWriteToMask]), Some(u64::from(MASK)));
    let v59 = [VReg::new(59).unwrap().into(), VReg::V1.into(), VReg::V2.into()];
    let mask = |mended: &[Erratum]| run("ADDVVV_U_32", &v59, mended, |e| e.mask.is_some());
    assert!(mask(&[]));
    assert!(!mask(&[Erratum::VectorWriteTo59]));
    let v63 = [VReg::new(63).unwrap().into(), VReg::V1.into(), VReg::V2.into()];
    let written = |mended: &[Erratum]| {
        run("ADDVVV_U_32", &v63, mended, |e| {
            (e.lanes.len(), matches!(e.effect, Some(ControlEffect::Jump { .. })))
        })
    };
    assert_eq!(written(&[]), (0, true));
    assert_eq!(written(&[Erratum::VectorResultIn63]), (8, false));
    let link = |mended: &[Erratum]| run("JMPSR_REG", &[SReg::S2.into()], mended, |e| e.scalar(SReg::RA.number()));
    assert_eq!(link(&[]), Some(37));
    assert_eq!(link(&[Erratum::IndirectCallLink]), Some(u64::from(PC) + 4));
}

#[test]
fn variants_of_accesses() {
    let sim = prepared();
    let load = [VReg::V1.into(), SReg::S3.into(), 0.into()];
    for lane in 0..16 {
        let loaded = |mended: &[Erratum]| run("LV32SUMainmem_U", &load, mended, |e| e.lane(1, lane));
        let at = |address: u32| u64::from(sim.memory().read_u16(address));
        let on = u32::from(MASK) >> lane & 1 == 1;
        assert_eq!(loaded(&[]), on.then(|| at(DATA + 4 * lane)), "lane {lane}");
        let ought = loaded(&[Erratum::PackedVectorLoads]);
        assert_eq!(ought, on.then(|| at(DATA + 2 * lane)), "lane {lane}");
    }
    let stored = |mended: &[Erratum]| {
        run("SV32WMainmem_M", &load, mended, |e| {
            let mut words: Vec<u32> = e
                .bytes
                .iter()
                .map(|(space, address, _)| {
                    assert_eq!(*space, Space::Main);
                    (address - DATA) / 4
                })
                .collect();
            words.sort_unstable();
            words.dedup();
            words
        })
    };
    assert_eq!(stored(&[]), Vec::from_iter(0..16));
    assert_eq!(
        stored(&[Erratum::MainMemoryVectorStoreUnmasked]),
        Vec::from_iter((0..16).step_by(2))
    );
}
