//===- NaplesPUSemantics.td - the language of what instructions do ----------===//
//
// `Does` and `DoesInScratchpad` of an operation of the hardware are lists of statements
// (do_*) over values (bv_*, fp_*). `Inputs` of an instruction names the values that the
// operation calls $a, $b, $address and so on; `Output` is the register of the result.
// docs/td.md documents the language. tdgen checks names, numbers of operands and widths.
//
// A value is a vector of bits. A value with a vector register in it has another value in
// each lane. A number takes the width of its neighbour.
//
//===----------------------------------------------------------------------===//

// An operation that gives a value.
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

def bv_and  : BvBinary<"And", "&", "Bits that both have.">;
def bv_or   : BvBinary<"Or", "|", "Bits that one has.">;
def bv_xor  : BvBinary<"Xor", "^", "Bits that exactly one has.">;
def bv_add  : BvBinary<"Add", "+", "The sum.">;
def bv_sub  : BvBinary<"Sub", "-", "The difference.">;
def bv_mul  : BvBinary<"Mul", "*", "The product.">;
def bv_shl  : BvBinary<"Shl", "<<", "Shift to the left; 0 from the width on.">;
def bv_lshr : BvBinary<"Lshr", ">>u", "Shift to the right with zeros; 0 from the width on.">;
def bv_ashr : BvBinary<"Ashr", ">>s", "Shift to the right with the sign; nothing but signs from the width on.">;

def bv_eq  : BvCompare<"Eq", "==", "Equal.">;
def bv_ne  : BvCompare<"Ne", "!=", "Not equal.">;
def bv_ult : BvCompare<"Ult", "<u", "Less, without signs.">;
def bv_ule : BvCompare<"Ule", "<=u", "Less or equal, without signs.">;
def bv_slt : BvCompare<"Slt", "<s", "Less, with signs.">;
def bv_sle : BvCompare<"Sle", "<=s", "Less or equal, with signs.">;

def bv_const     : BvOp<"(bv_const WIDTH, NUMBER): a number.">;
def bv_copy      : BvOp<"(bv_copy VALUE): the value itself.">;
def bv_select    : BvOp<"(bv_select CONDITION, THEN, OTHER): one of two.">;
def bv_extract   : BvOp<"(bv_extract VALUE, HIGH, LOW): bits HIGH to LOW.">;
def bv_concat    : BvOp<"(bv_concat HIGH, LOW): the bits of both.">;
def bv_zext      : BvOp<"(bv_zext WIDTH, VALUE): zeros above.">;
def bv_sext      : BvOp<"(bv_sext WIDTH, VALUE): copies of the sign above.">;
def bv_undefined : BvOp<"(bv_undefined WIDTH): bits that the hardware leaves undefined.">;
def bv_erratum   : BvOp<"(bv_erratum NAME, IS, OUGHT): what the hardware gives, and what it would give without the erratum.">;

//===----------------------------------------------------------------------===//
// The float unit, one lane: patterns of 32 bits
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
def fp_from_int : FloatFunction<"FromInt", 1, "itof", "The float nearest to a signed integer, with the fault of the hardware.">;
def fp_to_int   : FloatFunction<"ToInt", 1, "ftoi", "The signed integer of a float, with the faults of the hardware.">;

//===----------------------------------------------------------------------===//
// State
//===----------------------------------------------------------------------===//

def bv_reg          : BvOp<"(bv_reg $operand): the register of an operand; of a vector register the lane.">;
def bv_scalar       : BvOp<"(bv_scalar $operand): the scalar register with the number of an operand.">;
def bv_register     : BvOp<"(bv_register REGISTER): a scalar register.">;
def bv_imm          : BvOp<"(bv_imm $operand): a number in the word, 32 bits.">;
def bv_pc           : BvOp<"(bv_pc): the address of the instruction.">;
def bv_lane         : BvOp<"(bv_lane FACTOR): the number of the lane times FACTOR, 32 bits.">;
def bv_mask         : BvOp<"(bv_mask): the lane mask, 16 bits.">;
def bv_lane_enabled : BvOp<"(bv_lane_enabled): the bit of the lane mask of this lane.">;
def bv_lane_of      : BvOp<"(bv_lane_of VALUE, INDEX): VALUE in another lane, by 4 bits.">;
def bv_lanes        : BvOp<"(bv_lanes VALUE): VALUE in all lanes, lane 0 in the low bits.">;
def bv_load         : BvOp<"(bv_load SPACE, BYTES, ADDRESS [, CONDITION]): bytes of memory.">;
def bv_read_control : BvOp<"(bv_read_control NUMBER): a control register, by 6 bits.">;

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
def do_set           : DoOp<"(do_set VALUE [, MASK]): the result. If its register has the number of rm, MASK or else the low half of VALUE becomes the lane mask. A vector register takes it in the lanes that the mask enables.">;
def do_set_of_lanes  : DoOp<"(do_set_of_lanes VALUE): the result of a scalar register, in place of do_set, if a source is a vector.">;
def do_store         : DoOp<"(do_store SPACE, BYTES, ADDRESS, VALUE [, CONDITION]): bytes of memory.">;
def do_each_lane     : DoOp<"(do_each_lane STATEMENT...): once for each lane.">;
def do_trap_if       : DoOp<"(do_trap_if REASON, CONDITION, STATEMENT...): a trap, which does the inner statements in place of those that follow.">;
def do_never_if      : DoOp<"(do_never_if CONDITION): the instruction never completes.">;
def do_jump          : DoOp<"(do_jump TARGET).">;
def do_branch        : DoOp<"(do_branch CONDITION, TARGET).">;
def do_barrier       : DoOp<"(do_barrier NUMBER, OTHERS): arrival at a barrier; 9 and 7 bits.">;
def do_write_control : DoOp<"(do_write_control NUMBER, VALUE): a control register, by 6 bits.">;
def do_flush         : DoOp<"(do_flush ADDRESS): the cache line is written back.">;
def do_invalidate    : DoOp<"(do_invalidate ADDRESS): the cache line is written back and dropped.">;
def do_erratum       : DoOp<"(do_erratum NAME, IS, OUGHT): the statement that the hardware does, and what it would do without the erratum.">;

// The operator of Inputs.
def inputs;
