//===- Target.td - the classes of a target description --------------------===//
//
// The names are LLVM's, so they are familiar from LLVM's back ends. The definitions are our own and
// hold only what our back ends (crates/tdgen) read. Where LLVM has C++ fragments, these classes
// name ISLE terms.
//
//===----------------------------------------------------------------------===//

//===----------------------------------------------------------------------===//
// Value types
//===----------------------------------------------------------------------===//

// A CLIF type, by its name in CLIF.
class ClifType<string clif> {
  string Clif = clif;
}

// A value type of the calling convention and of selection patterns. `Clif` is
// the name of the same type in CLIF.
class ValueType<int size, string clif, bit integer = true> : ClifType<clif> {
  int Size = size;     // in bits
  bit isInteger = integer;
  string IsleName = "";  // the ISLE constant without `$`, if the type is one
  // The ISLE extractor that matches every type with the same register representation and yields
  // this type; empty if no other type has it.
  string Holder = "";
}
class VectorType<int size, string clif, string isle, bit integer = true> : ValueType<size, clif, integer> {
  let IsleName = isle;
  let Holder = "vec";
}

def i1     : ValueType<1, "">;
def i8     : ValueType<8, "i8"> { let IsleName = "I8"; }
def i16    : ValueType<16, "i16"> { let IsleName = "I16"; }
def i32    : ValueType<32, "i32"> { let IsleName = "I32"; }
def i64    : ValueType<64, "i64"> { let IsleName = "I64"; }
def i128   : ValueType<128, "i128"> { let IsleName = "I128"; }
def f16    : ValueType<16, "f16", false> { let IsleName = "F16"; }
def f32    : ValueType<32, "f32", false> { let IsleName = "F32"; }
def f64    : ValueType<64, "f64", false> { let IsleName = "F64"; }
def f128   : ValueType<128, "f128", false> { let IsleName = "F128"; }
def v16i8  : VectorType<128, "i8x16", "I8X16">;
def v16i16 : VectorType<256, "i16x16", "I16X16">;
def v16i32 : VectorType<512, "i32x16", "I32X16">;
def v16f32 : VectorType<512, "f32x16", "F32X16", false>;
// No type, and any type that is not listed.
def untyped : ClifType<"">;
def OtherVT : ClifType<"">;

//===----------------------------------------------------------------------===//
// Registers
//===----------------------------------------------------------------------===//

class Register<string asmName, int encoding, int dwarf> {
  string AsmName = asmName;
  bits<6> HWEncoding = encoding;
  int DwarfNumber = dwarf;
  // The purpose of the register beyond holding values: "" (none), "trap", "mask", "frame-pointer",
  // "stack-pointer", "return-address", "program-counter".
  string Role = "";
  // Set if a read of the register does not return the last value written to it.
  bit isConstantPerInstruction = false;
}

// An input or output of an instruction: a register class or an operand.
class DAGOperand {
  // The ISLE term that converts a number in a pattern's result.
  string IsleConst = "";
}

class RegisterClass<string prefix, list<ValueType> regTypes, int spillSize, int spillAlign,
                    list<Register> memberList> : DAGOperand {
  list<ValueType> RegTypes = regTypes;
  // In bytes.
  int SpillSize = spillSize;
  int SpillAlignment = spillAlign;
  // All registers of the file in encoding order.
  list<Register> MemberList = memberList;
  // Registers that may be allocated, in order of preference.
  list<Register> AllocationOrder = [];
  // Never allocated. AllocationOrder and Reserved together are MemberList.
  list<Register> Reserved = [];
  // The letter of this class in the names of instruction shapes.
  string Shape = prefix;
}

//===----------------------------------------------------------------------===//
// Operands
//===----------------------------------------------------------------------===//

// Operators of operand lists; variable_ops stands for operands that are not encoded.
def ops;
def outs;
def ins;
def variable_ops;

// An operand that is not a register. The encoder refuses a value outside
// MinValue..MaxValue; the decoder takes the low SignificantBits of the field and
// sign-extends them if DecodeSigned is set.
class Operand<ValueType ty> : DAGOperand {
  ValueType Type = ty;
  // Whether it is a symbol's address or a part of one, which no pattern supplies.
  bit IsSymbol = false;
  // Width of the field in the word. Bits above SignificantBits repeat the sign.
  int FieldBits = 0;
  int SignificantBits = 0;
  int MinValue = 0;
  int MaxValue = 0;
  bit DecodeSigned = true;
  // The named sub-operands of an operand with several fields.
  dag MIOperandInfo = (ops);
  // The assembly text of a compound operand; `$name` is a sub-operand. An immediate zero before a
  // parenthesis is not printed.
  string AsmFormat = "";
  // The letter of this operand in the names of instruction shapes.
  string Shape = "";
}

class SImmOperand<int width> : Operand<i32> {
  let FieldBits = width;
  let SignificantBits = width;
  let MinValue = !sub(0, !shl(1, !sub(width, 1)));
  let MaxValue = !sub(!shl(1, !sub(width, 1)), 1);
}

//===----------------------------------------------------------------------===//
// Instructions
//===----------------------------------------------------------------------===//

class Instruction {
  dag OutOperandList = (outs);
  dag InOperandList = (ins);
  string AsmString = "";
  list<dag> Pattern = [];
  // The reason if no pattern selects the instruction.
  string NoPattern = "";
  list<Register> Uses = [];
  list<Register> Defs = [];
  // "$a = $b": output a must be the same register as input b; b has no field of its own.
  string Constraints = "";
  int Size = 4; // bytes

  bit isReturn = false;
  bit isBranch = false;
  bit isIndirectBranch = false;
  bit isBarrier = false;      // control never falls through
  bit isCall = false;
  bit isTerminator = false;
  bit isCommutable = false;
  bit isCompare = false;
  bit isMoveReg = false;
  bit mayLoad = false;
  bit mayStore = false;
  bit hasSideEffects = false;
  // Neither the assembler nor the disassembler supports the instruction.
  bit isCodeGenOnly = false;
  // The assembler accepts the instruction; the disassembler prints another instruction with the
  // same bits.
  bit isAsmParserOnly = false;
}

//===----------------------------------------------------------------------===//
// Relations between instructions
//===----------------------------------------------------------------------===//

// Instructions of class FilterClass with equal RowFields form a row. An instruction whose ColFields
// are KeyCol is mapped to the instruction of its row whose ColFields are an element of ValueCols.
// Records with the same Relation define one function together.
class InstrMapping {
  string Relation = "";
  string FilterClass = "";
  list<string> RowFields = [];
  list<string> ColFields = [];
  list<string> KeyCol = [];
  list<list<string>> ValueCols = [];
}

//===----------------------------------------------------------------------===//
// Calling conventions
//===----------------------------------------------------------------------===//

class CCAction;

class CallingConv<list<CCAction> actions> {
  list<CCAction> Actions = actions;
}

class CCPredicateAction<CCAction action> : CCAction {
  CCAction SubAction = action;
}

class CCIfType<list<ValueType> vts, CCAction action> : CCPredicateAction<action> {
  list<ValueType> VTs = vts;
}

class CCAssignToReg<list<Register> regList> : CCAction {
  list<Register> RegList = regList;
}

// Size and alignment in bytes.
class CCAssignToStack<int size, int align> : CCAction {
  int Size = size;
  int Align = align;
}

// The value is widened to destTy and then assigned as that type. Upper bits are undefined unless an
// extension attribute of the signature defines them.
class CCPromoteToType<ValueType destTy> : CCAction {
  ValueType DestTy = destTy;
}

// The value is split into `count` values of type partTy, least significant first, and each is
// assigned separately.
class CCSplitToType<ValueType partTy, int count> : CCAction {
  ValueType PartTy = partTy;
  int Count = count;
}

class CCDelegateTo<CallingConv cc> : CCAction {
  CallingConv CC = cc;
}

class CalleeSavedRegs<list<Register> saveList> {
  list<Register> SaveList = saveList; // in save order
}

//===----------------------------------------------------------------------===//
// Target
//===----------------------------------------------------------------------===//

class Target {
  string Name;
  string Triple;
  string DataLayout;
}
