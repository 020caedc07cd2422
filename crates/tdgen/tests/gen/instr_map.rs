// The relations of the InstrMapping records.

/// The instructions, in the order of their names.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[expect(non_camel_case_types, reason = "named as their records")]
pub enum Opcode {
    /// `Add`.
    Add,
    /// `Add_pf`.
    Add_pf,
    /// `Add_pt`.
    Add_pt,
    /// `Nop`.
    Nop,
    /// `Sub`.
    Sub,
    /// `Sub_pf`.
    Sub_pf,
    /// `Sub_pt`.
    Sub_pt,
}

/// The values of the column field `PredSense`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum PredSense {
    /// `true`.
    True,
    /// `false`.
    False,
    /// ``.
    Empty,
}

static GET_PRED_OPCODE: [(Opcode, [Option<Opcode>; 2]); 2] = [
    (Opcode::Add, [Some(Opcode::Add_pt), Some(Opcode::Add_pf)]),
    (Opcode::Sub, [Some(Opcode::Sub_pt), Some(Opcode::Sub_pf)]),
];

/// The relation `getPredOpcode`: what stands for `opcode` in a column.
pub fn get_pred_opcode(opcode: Opcode, pred_sense: PredSense) -> Option<Opcode> {
    let row = GET_PRED_OPCODE.binary_search_by_key(&opcode, |row| row.0).ok()?;
    let column = match pred_sense {
        PredSense::True => 0,
        PredSense::False => 1,
        _ => return None,
    };
    GET_PRED_OPCODE[row].1[column]
}

static GET_REG_OPCODE: [(Opcode, [Option<Opcode>; 1]); 2] = [
    (Opcode::Add_pt, [Some(Opcode::Add)]),
    (Opcode::Sub_pt, [Some(Opcode::Sub)]),
];

/// The relation `getRegOpcode`: what stands for `opcode`.
pub fn get_reg_opcode(opcode: Opcode) -> Option<Opcode> {
    let row = GET_REG_OPCODE.binary_search_by_key(&opcode, |row| row.0).ok()?;
    GET_REG_OPCODE[row].1[0]
}
