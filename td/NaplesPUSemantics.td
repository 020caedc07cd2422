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
class BvOp<string summary> {
  string Summary = summary;
}

//===----------------------------------------------------------------------===//
// Bit vectors
//===----------------------------------------------------------------------===//

// One operand; the result has its width.
class BvUnary<string name, string notation, string summary> : BvOp<summary> {
  string Name = name;
  string Notation = notation;
}

// Two operands of one width; the result has that width.
class BvBinary<string name, string notation, string summary> : BvOp<summary> {
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

def bv_const     : BvOp<"(bv_const WIDTH, NUMBER): a number.">;
def bv_copy      : BvOp<"(bv_copy VALUE): the value itself.">;
def bv_select    : BvOp<"(bv_select CONDITION, THEN, OTHER): one of two.">;
def bv_extract   : BvOp<"(bv_extract VALUE, HIGH, LOW): bits HIGH to LOW.">;
def bv_concat    : BvOp<"(bv_concat HIGH, LOW): the bits of both.">;
def bv_zext      : BvOp<"(bv_zext WIDTH, VALUE): zero extension.">;
def bv_sext      : BvOp<"(bv_sext WIDTH, VALUE): sign extension.">;
def bv_undefined : BvOp<"(bv_undefined WIDTH): bits that the hardware leaves undefined.">;
def bv_erratum   : BvOp<"(bv_erratum NAME, IS, OUGHT): the value on the hardware, and the value without the erratum.">;

//===----------------------------------------------------------------------===//
// The float unit, one lane: 32-bit patterns
//===----------------------------------------------------------------------===//

class FloatFunction<string name, int operands, string notation, string summary> : BvOp<summary> {
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

def bv_reg          : BvOp<"(bv_reg $operand): the register of an operand; for a vector register, its lane.">;
def bv_scalar       : BvOp<"(bv_scalar $operand): the scalar register with the number of an operand.">;
def bv_register     : BvOp<"(bv_register REGISTER): a scalar register.">;
def bv_imm          : BvOp<"(bv_imm $operand): an immediate in the instruction word, 32 bits.">;
def bv_pc           : BvOp<"(bv_pc): the address of the instruction.">;
def bv_lane         : BvOp<"(bv_lane FACTOR): the number of the lane times FACTOR, 32 bits.">;
def bv_mask         : BvOp<"(bv_mask): the lane mask, 16 bits.">;
def bv_lane_enabled : BvOp<"(bv_lane_enabled): the bit of the lane mask of this lane.">;
def bv_lane_of      : BvOp<"(bv_lane_of VALUE, INDEX): VALUE in the lane with the 4-bit number INDEX.">;
def bv_lanes        : BvOp<"(bv_lanes VALUE): VALUE in all lanes, lane 0 in the low bits.">;
def bv_load         : BvOp<"(bv_load SPACE, BYTES, ADDRESS [, CONDITION]): bytes of memory.">;
def bv_read_control : BvOp<"(bv_read_control NUMBER): the control register with the 6-bit number.">;

class MemorySpace<string name, string notation> {
  string Name = name;
  string Notation = notation;
}
def MainMemory : MemorySpace<"Main", "memory">;
def Scratchpad : MemorySpace<"Scratchpad", "scratchpad">;

//===----------------------------------------------------------------------===//
// Statements
//===----------------------------------------------------------------------===//

class DoOp<string summary> {
  string Summary = summary;
}

def do_nothing       : DoOp<"(do_nothing).">;
def do_set           : DoOp<"(do_set VALUE [, MASK]): the result. If its register has the number of rm, MASK or else the low half of VALUE becomes the lane mask. A vector register is written in the lanes that the mask enables.">;
def do_set_of_lanes  : DoOp<"(do_set_of_lanes VALUE): the result of a scalar register, in place of do_set, if a source is a vector.">;
def do_store         : DoOp<"(do_store SPACE, BYTES, ADDRESS, VALUE [, CONDITION]): bytes of memory.">;
def do_each_lane     : DoOp<"(do_each_lane STATEMENT...): once for each lane.">;
def do_trap_if       : DoOp<"(do_trap_if REASON, CONDITION, STATEMENT...): a trap if CONDITION holds; the inner statements then replace the following ones.">;
def do_never_if      : DoOp<"(do_never_if CONDITION): the instruction never completes.">;
def do_jump          : DoOp<"(do_jump TARGET).">;
def do_branch        : DoOp<"(do_branch CONDITION, TARGET).">;
def do_barrier       : DoOp<"(do_barrier NUMBER, OTHERS): arrival at a barrier; NUMBER has 9 bits, OTHERS 7.">;
def do_write_control : DoOp<"(do_write_control NUMBER, VALUE): writes the control register with the 6-bit number.">;
def do_flush         : DoOp<"(do_flush ADDRESS): the cache line is written back.">;
def do_invalidate    : DoOp<"(do_invalidate ADDRESS): the cache line is written back and dropped.">;
def do_erratum       : DoOp<"(do_erratum NAME, IS, OUGHT): the statement on the hardware, and the statement without the erratum.">;

// The operator of Inputs.
def inputs;
