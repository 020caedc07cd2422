//===- NaplesPUSemantics.td - the language of instruction semantics ---------===//
//
// `Does` and `DoesInScratchpad` of a hardware operation are lists of statements (do_*) over values
// (bv_*, fp_*). `Inputs` of an instruction defines the values that the operation calls $a, $b,
// $address and so on; `Output` is the register of the result. docs/td.md documents the language.
// tdgen checks names, numbers of operands and widths.
//
// A value is a vector of bits. A value that uses a vector register has a separate value in each
// lane. A number takes the width of the other operand.
//
//===----------------------------------------------------------------------===//

// An operation that returns a value.
class BvOp;

//===----------------------------------------------------------------------===//
// Bit vectors
//===----------------------------------------------------------------------===//

// One operand; the result has its width.
class BvUnary<string name, string notation, string summary> : BvOp {
  string Summary = summary;
  string Name = name;
  string Notation = notation;
}

// Two operands of one width; the result has that width.
class BvBinary<string name, string notation, string summary> : BvOp {
  string Summary = summary;
  string Name = name;
  string Notation = notation;
}

// Two operands of one width; the result has one bit.
class BvCompare<string name, string notation, string summary> : BvBinary<name, notation, summary>;

def bv_not : BvUnary<"Not", "~", "Every bit inverted.">;
def bv_neg : BvUnary<"Neg", "-", "The negative number.">;
def bv_clz : BvUnary<"Clz", "clz", "Zeros above the highest 1; the width if there is none.">;
def bv_ctz : BvUnary<"Ctz", "ctz", "Zeros below the lowest 1; the width if there is none.">;

def bv_and  : BvBinary<"And", "&", "Bits set in both.">;
def bv_or   : BvBinary<"Or", "|", "Bits set in at least one.">;
def bv_xor  : BvBinary<"Xor", "^", "Bits set in exactly one.">;
def bv_add  : BvBinary<"Add", "+", "The sum.">;
def bv_sub  : BvBinary<"Sub", "-", "The difference.">;
def bv_mul  : BvBinary<"Mul", "*", "The product.">;
def bv_shl  : BvBinary<"Shl", "<<", "Shift to the left; 0 if the amount is the width or more.">;
def bv_lshr : BvBinary<"Lshr", ">>u", "Logical shift to the right; 0 if the amount is the width or more.">;
def bv_ashr : BvBinary<"Ashr", ">>s", "Arithmetic shift to the right; copies of the sign if the amount is the width or more.">;

def bv_eq  : BvCompare<"Eq", "==", "Equal.">;
def bv_ne  : BvCompare<"Ne", "!=", "Not equal.">;
def bv_ult : BvCompare<"Ult", "<u", "Unsigned less.">;
def bv_ule : BvCompare<"Ule", "<=u", "Unsigned less or equal.">;
def bv_slt : BvCompare<"Slt", "<s", "Signed less.">;
def bv_sle : BvCompare<"Sle", "<=s", "Signed less or equal.">;

def bv_const : BvOp;
def bv_copy : BvOp;
def bv_select : BvOp;
def bv_extract : BvOp;
def bv_concat : BvOp;
def bv_zext : BvOp;
def bv_sext : BvOp;
def bv_undefined : BvOp;
def bv_erratum : BvOp;

//===----------------------------------------------------------------------===//
// The float unit, one lane: 32-bit patterns
//===----------------------------------------------------------------------===//

class FloatFunction<string name, int operands, string notation, string summary> : BvOp {
  string Summary = summary;
  string Name = name;
  int Operands = operands;
  string Notation = notation;
}

def fp_add      : FloatFunction<"Add", 2, "fadd", "Sum, as the hardware rounds it.">;
def fp_sub      : FloatFunction<"Sub", 2, "fsub", "Difference, as the hardware rounds it.">;
def fp_mul      : FloatFunction<"Mul", 2, "fmul", "Product, as the hardware rounds it.">;
def fp_div      : FloatFunction<"Div", 2, "fdiv", "Quotient, as the hardware rounds it.">;
def fp_from_int : FloatFunction<"FromInt", 1, "itof", "The float nearest to a signed integer, with the hardware's fault.">;
def fp_to_int   : FloatFunction<"ToInt", 1, "ftoi", "The signed integer of a float, with the hardware's faults.">;

//===----------------------------------------------------------------------===//
// State
//===----------------------------------------------------------------------===//

def bv_reg : BvOp;
def bv_scalar : BvOp;
def bv_register : BvOp;
def bv_imm : BvOp;
def bv_pc : BvOp;
def bv_lane : BvOp;
def bv_mask : BvOp;
def bv_lane_enabled : BvOp;
def bv_lane_of : BvOp;
def bv_lanes : BvOp;
def bv_load : BvOp;
def bv_read_control : BvOp;

class MemorySpace<string name, string notation> {
  string Name = name;
  string Notation = notation;
}
def MainMemory : MemorySpace<"Main", "memory">;
def Scratchpad : MemorySpace<"Scratchpad", "scratchpad">;

//===----------------------------------------------------------------------===//
// Statements
//===----------------------------------------------------------------------===//

class DoOp;

def do_nothing : DoOp;
def do_set : DoOp;
def do_set_of_lanes : DoOp;
def do_store : DoOp;
def do_each_lane : DoOp;
def do_trap_if : DoOp;
def do_never_if : DoOp;
def do_jump : DoOp;
def do_branch : DoOp;
def do_barrier : DoOp;
def do_write_control : DoOp;
def do_flush : DoOp;
def do_invalidate : DoOp;
def do_erratum : DoOp;

// The operator of Inputs.
def inputs;
