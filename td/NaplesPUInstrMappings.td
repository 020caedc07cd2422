//===- NaplesPUInstrMappings.td - relations between instructions --------------===//

class OneWay<string relation, string filter, string row, string col, string from, string to>
    : InstrMapping {
  let Relation = relation;
  let FilterClass = filter;
  let RowFields = [row];
  let ColFields = [col];
  let KeyCol = [from];
  let ValueCols = [[to]];
}

def getImmediateForm : OneWay<"to_immediate", "RegImmRel", "RegImmRow", "OperandForm", "reg", "imm">;
def getRegisterForm  : OneWay<"to_register", "RegImmRel", "RegImmRow", "OperandForm", "imm", "reg">;

def getScratchpadOp  : OneWay<"to_scratchpad", "SpaceRel", "SpaceRow", "Space", "mainmem", "scratchpad">;
def getMainMemoryOp  : OneWay<"to_main_memory", "SpaceRel", "SpaceRow", "Space", "scratchpad", "mainmem">;

def getMaskedOp      : OneWay<"to_masked", "MaskRel", "MaskRow", "MaskForm", "unmasked", "masked">;
def getUnmaskedOp    : OneWay<"to_unmasked", "MaskRel", "MaskRow", "MaskForm", "masked", "unmasked">;

def getInverseCompareA : OneWay<"inverse_compare", "InverseRel", "InverseRow", "InverseSide", "a", "b">;
def getInverseCompareB : OneWay<"inverse_compare", "InverseRel", "InverseRow", "InverseSide", "b", "a">;

def getSwappedCompareA    : OneWay<"swapped_compare", "SwapRel", "SwapRow", "SwapSide", "a", "b">;
def getSwappedCompareB    : OneWay<"swapped_compare", "SwapRel", "SwapRow", "SwapSide", "b", "a">;
def getSwappedCompareSelf : OneWay<"swapped_compare", "SwapRel", "SwapRow", "SwapSide", "self", "self">;
