//! Spot checks of the relations, and properties of all relations.

use npu_mc::{Opcode, Opcode::*, OperandKind, relation};

#[test]
fn spot_values() {
    assert_eq!(relation::to_immediate(ADDSSS_32), Some(ADDSSI));
    assert_eq!(relation::to_immediate(SEQSISVS_U_32), Some(SEQSISVI));
    assert_eq!(relation::to_immediate(ADDVVS_M_32), Some(ADDVVI_M));
    assert_eq!(relation::to_immediate(ADDVVV_U_32), None);
    assert_eq!(relation::to_immediate(ADDFSSS_32), None);
    assert_eq!(relation::to_immediate(ADDSSI), None);
    assert_eq!(relation::to_register(ADDSSI), Some(ADDSSS_32));
    assert_eq!(relation::to_register(GET_LANEIimm), Some(GET_LANEI_32));
    assert_eq!(relation::inverse_compare(SGTSISSS_32), Some(SLESISSS_32));
    assert_eq!(relation::inverse_compare(SLTUISSI), Some(SGEUISSI));
    assert_eq!(relation::inverse_compare(ADDSSS_32), None);
    assert_eq!(relation::swapped_compare(SGTSISSS_32), Some(SLTSISSS_32));
    assert_eq!(relation::swapped_compare(SEQSISSS_32), Some(SEQSISSS_32));
    assert_eq!(relation::to_scratchpad(L32W_Mainmem), Some(L32W_Scratchpad));
    assert_eq!(relation::to_main_memory(SV32WScratchpad_M), Some(SV32WMainmem_M));
    assert_eq!(relation::to_main_memory(GLV32WScratchpad_U), None);
    assert_eq!(relation::to_masked(ADDVVV_U_32), Some(ADDVVV_M_32));
    assert_eq!(relation::to_masked(MOVE_VS_32), Some(MOVE_VS_M_32));
    assert_eq!(relation::to_masked(ADDSSS_32), None);
    assert_eq!(relation::to_unmasked(LV32WMainmem_M), Some(LV32WMainmem_U));
}

fn kinds(opcode: Opcode) -> Vec<OperandKind> {
    opcode.desc().operands.iter().map(|o| o.kind).collect()
}

type Relation = fn(Opcode) -> Option<Opcode>;

#[test]
fn pairs_are_each_others_inverse() {
    let pairs: [(Relation, Relation); 5] = [
        (relation::to_immediate, relation::to_register),
        (relation::to_scratchpad, relation::to_main_memory),
        (relation::to_masked, relation::to_unmasked),
        (relation::inverse_compare, relation::inverse_compare),
        (relation::swapped_compare, relation::swapped_compare),
    ];
    for (there, back) in pairs {
        let mut count = 0;
        for &op in Opcode::ALL {
            if let Some(to) = there(op) {
                count += 1;
                assert_eq!(back(to), Some(op), "{op} to {to}");
            }
        }
        assert!(count > 0);
    }
}

#[test]
fn related_instructions_take_the_same_operands() {
    for &op in Opcode::ALL {
        let same: [Relation; 5] = [
            relation::to_scratchpad,
            relation::to_masked,
            relation::inverse_compare,
            relation::swapped_compare,
            relation::to_main_memory,
        ];
        for to in same.iter().filter_map(|r| r(op)) {
            assert_eq!(kinds(op), kinds(to), "{op} to {to}");
        }
        if let Some(to) = relation::to_masked(op) {
            assert!(to.desc().masked && !op.desc().masked, "{op} to {to}");
        }
        if let Some(to) = relation::to_scratchpad(op) {
            assert!(to.desc().scratchpad && !op.desc().scratchpad, "{op} to {to}");
        }
        if let Some(to) = relation::to_immediate(op) {
            let (mut register, immediate) = (kinds(op), kinds(to));
            assert_eq!(register.pop(), Some(OperandKind::Gpr), "{op}");
            assert_eq!(register, immediate[..register.len()], "{op} to {to}");
            assert_eq!(immediate.last(), Some(&OperandKind::Simm9), "{to}");
        }
    }
}

#[test]
fn every_masked_vector_instruction_has_an_unmasked_one() {
    for &op in Opcode::ALL {
        if op.desc().masked {
            assert!(relation::to_unmasked(op).is_some(), "{op}");
        }
    }
}
