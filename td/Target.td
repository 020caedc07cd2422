//===- Target.td - the classes a target description is made of ------------===//
//
// The names are LLVM's, so that whoever has read a back end knows them; the
// definitions are our own and hold only what our back ends (crates/tdgen) read.
// What LLVM writes as C++ fragments is here the name of an ISLE term.
//
//===----------------------------------------------------------------------===//

//===----------------------------------------------------------------------===//
// Value types
//===----------------------------------------------------------------------===//

// A type of CLIF instructions, by its name there.
class ClifType<string clif> {
  string Clif = clif;
}

// A value type of the calling convention and of selection patterns. `Clif` is
// the name of the same type in CLIF.
class ValueType<int size, string clif, bit integer = true> : ClifType<clif> {
  int Size = size;     // in bits
  bit isInteger = integer;
  string IsleName = "";  // the ISLE constant without `$`, if the type is one
  // The ISLE extractor that yields this type for each type whose values are held like its; empty if it alone is.
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
  string Namespace = "";
  string AsmName = asmName;
  bits<6> HWEncoding = encoding;
  int DwarfNumber = dwarf;
  // What the register is for beyond holding values: "" (nothing), "trap", "mask",
  // "frame-pointer", "stack-pointer", "return-address", "program-counter".
  string Role = "";
  // True if reading the register gives something else than what was last written to it.
  bit isConstantPerInstruction = false;
}

// What an instruction can take or give: a register class or an operand.
class DAGOperand {
  // The ISLE term that makes one from a number written in a pattern's result.
  string IsleConst = "";
}

class RegisterClass<string prefix, list<ValueType> regTypes, int spillSize, int spillAlign,
                    list<Register> memberList> : DAGOperand {
  string Namespace = "";
  list<ValueType> RegTypes = regTypes;
  // In bytes.
  int SpillSize = spillSize;
  int SpillAlignment = spillAlign;
  // All registers of the file in encoding order.
  list<Register> MemberList = memberList;
  // What the register allocator may use, in the order it should prefer.
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
  string OperandType = "OPERAND_IMMEDIATE"; // OPERAND_PCREL, OPERAND_MEMORY, OPERAND_ABSOLUTE
  // Width of the field in the word. Bits above SignificantBits repeat the sign.
  int FieldBits = 0;
  int SignificantBits = 0;
  int MinValue = 0;
  int MaxValue = 0;
  bit DecodeSigned = true;
  // Sub-operands by name for an operand of several fields.
  dag MIOperandInfo = (ops);
  // How a compound operand is written; `$name` is a sub-operand. An immediate zero
  // before a parenthesis is not printed.
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
  string Namespace = "";
  dag OutOperandList = (outs);
  dag InOperandList = (ins);
  string AsmString = "";
  list<dag> Pattern = [];
  // Why no pattern selects the instruction, if none does.
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
  // Neither assembler nor disassembler knows the instruction.
  bit isCodeGenOnly = false;
  // The assembler knows the instruction, the disassembler prints the other one with the same bits.
  bit isAsmParserOnly = false;
}

//===----------------------------------------------------------------------===//
// Relations between instructions
//===----------------------------------------------------------------------===//

// Instructions of class FilterClass with equal RowFields form a row; an instruction
// whose ColFields are KeyCol is mapped to the one of its row whose ColFields are an
// element of ValueCols. Records with the same Relation are one function.
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

// The value is widened to destTy and looked at again; upper bits are undefined
// unless an extension attribute of the signature says otherwise.
class CCPromoteToType<ValueType destTy> : CCAction {
  ValueType DestTy = destTy;
}

// The value is split into `count` values of type partTy, least significant first,
// and each is placed on its own.
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
  string Name = "";
  string Triple = "";
  string DataLayout = "";
  int PointerBits = 32;
  bit LittleEndian = true;
}
