//===- TargetSelectionDAG.td - the classes of selection patterns -------------===//
//
// Each pattern becomes an ISLE rule. Where LLVM has C++ fragments, these records name terms of the
// ISLE prelude.
//
//===----------------------------------------------------------------------===//

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

// Types that one pattern matches. `extractor` is an ISLE extractor on Type that tests for this
// list; if empty, nothing has to be tested.
class TypeSet<list<ValueType> types, string extractor> {
  list<ValueType> Types = types;
  string Extractor = extractor;
  // Only the low 32 bits of the value are used, so its other registers do not matter.
  bit LowWordOnly = false;
}

// A type constraint of an SDNode. The result has index 0, operands have 1, 2, ...; without a result
// the operands start at 0.
class SDTypeConstraint<int opnum> {
  int OperandNum = opnum;
}
class SDTCisInt<int opnum> : SDTypeConstraint<opnum>;
class SDTCisVT<int opnum, ValueType vt> : SDTypeConstraint<opnum> {
  ValueType VT = vt;
}
class SDTCisSameAs<int opnum, int other> : SDTypeConstraint<opnum> {
  int OtherOperandNum = other;
}

class SDTypeProfile<int numresults, int numoperands, list<SDTypeConstraint> constraints> {
  int NumResults = numresults;
  int NumOperands = numoperands;
  list<SDTypeConstraint> Constraints = constraints;
}

def SDTIntUnaryOp : SDTypeProfile<1, 1, [SDTCisSameAs<0, 1>, SDTCisInt<0>]>;
def SDTIntBinOp   : SDTypeProfile<1, 2, [SDTCisSameAs<0, 1>, SDTCisSameAs<0, 2>, SDTCisInt<0>]>;
def SDTIntShiftOp : SDTypeProfile<1, 2, [SDTCisSameAs<0, 1>, SDTCisInt<0>, SDTCisInt<2>]>;
// The results are the number and the overflow flag.
def SDTOverflowOp : SDTypeProfile<2, 2, [SDTCisSameAs<0, 2>, SDTCisSameAs<0, 3>, SDTCisInt<0>, SDTCisVT<1, i8>]>;
// The same with an incoming carry or borrow.
def SDTCarryOp    : SDTypeProfile<2, 3, [SDTCisSameAs<0, 2>, SDTCisSameAs<0, 3>, SDTCisInt<0>, SDTCisVT<1, i8>,
                                         SDTCisVT<4, i8>]>;
def SDTSplitOp    : SDTypeProfile<2, 1, [SDTCisSameAs<0, 1>, SDTCisInt<0>, SDTCisInt<2>]>;
def SDTPairOp     : SDTypeProfile<1, 2, [SDTCisInt<0>, SDTCisSameAs<1, 2>, SDTCisInt<1>]>;
def SDTIntExtendOp : SDTypeProfile<1, 1, [SDTCisInt<0>, SDTCisInt<1>]>;
// The operands are the two numbers and the condition.
def SDTSetCC      : SDTypeProfile<1, 3, [SDTCisVT<0, i8>, SDTCisSameAs<1, 2>, SDTCisInt<1>]>;
// The same for floats.
def SDTFSetCC     : SDTypeProfile<1, 3, [SDTCisVT<0, i8>, SDTCisSameAs<1, 2>]>;
// Conversions between integers and floats.
def SDTConvert    : SDTypeProfile<1, 1, []>;
// Result and operands have the same type; the pattern determines which.
def SDTBinOp      : SDTypeProfile<1, 2, [SDTCisSameAs<0, 1>, SDTCisSameAs<0, 2>]>;
def SDTTernaryOp  : SDTypeProfile<1, 3, [SDTCisSameAs<0, 1>, SDTCisSameAs<0, 2>, SDTCisSameAs<0, 3>]>;
// The last operand is a trap code.
def SDTTrapOp     : SDTypeProfile<1, 3, [SDTCisSameAs<0, 1>, SDTCisSameAs<0, 2>, SDTCisInt<0>]>;
// The type of the condition is independent of the others.
def SDTSelect     : SDTypeProfile<1, 3, [SDTCisSameAs<0, 2>, SDTCisSameAs<0, 3>]>;
def SDTUnaryOp    : SDTypeProfile<1, 1, [SDTCisSameAs<0, 1>]>;
def SDTBitcast    : SDTypeProfile<1, 1, []>;
// Effects without a result.
def SDTNone       : SDTypeProfile<0, 0, []>;
def SDTUse        : SDTypeProfile<0, 1, []>;
def SDTUse2       : SDTypeProfile<0, 2, []>;
// A node whose operands are fields of the CLIF instruction, not values.
def SDTLeaf       : SDTypeProfile<1, 0, []>;
def SDTLeaf1      : SDTypeProfile<1, 1, []>;
def SDTLeaf2      : SDTypeProfile<1, 2, []>;
def SDTLoad       : SDTypeProfile<1, 1, []>;
def SDTStore      : SDTypeProfile<0, 2, []>;

//===----------------------------------------------------------------------===//
// Nodes
//===----------------------------------------------------------------------===//

class SDNodeProperty;
def SDNPCommutative : SDNodeProperty;
// The node accesses memory: its form binds `flags`, `p` and `offset`, and its last operand is an
// AddrPattern, which uses these.
def SDNPMemOperand  : SDNodeProperty;

// A CLIF instruction. `form` is the ISLE pattern that matches it: `$ty` stands for the type of the
// result, `$0`, `$1`, ... for operands.
class SDNode<string form, SDTypeProfile profile, list<SDNodeProperty> props = []> {
  string IsleForm = form;
  SDTypeProfile TypeProfile = profile;
  list<SDNodeProperty> Properties = props;
}

// A fixed argument of a node, given as ISLE text.
class CondCode<string isle> {
  string IsleName = isle;
}

// Placeholder of a PatFrag's operands.
def node;
// (set GPR32:$dst, pattern) in an instruction's Pattern list.
def set;

// An abbreviation: the operator stands for the fragment with its operands substituted.
class PatFrag<dag operandList, dag frag> {
  dag Operands = operandList;
  dag Fragment = frag;
}
// Alternatives: a pattern that uses the operator is expanded to one pattern for each fragment.
class PatFrags<dag operandList, list<dag> frags> {
  dag Operands = operandList;
  list<dag> Fragments = frags;
}

//===----------------------------------------------------------------------===//
// Leaves other than register classes and types
//===----------------------------------------------------------------------===//

// A constant. `extractor` is an ISLE extractor on Value that yields the operand `encodes`.
class ImmLeaf<DAGOperand encodes, string extractor> {
  DAGOperand Encodes = encodes;
  string Extractor = extractor;
}

// A register value with a property beyond its type. `extractor` is an ISLE extractor from Value to
// Value.
class PatLeaf<TypeSet types, string extractor> {
  TypeSet Types = types;
  string Extractor = extractor;
}

// A value that an ISLE constructor converts to the operand `encodes`. The rules with this pattern
// as their root (SelectPat) and hand-written rules define the constructor, so the conversion is
// written once. In a result it is an operator on a leaf.
class ComplexPattern<TypeSet types, DAGOperand encodes, string selectFunc> {
  TypeSet Types = types;
  DAGOperand Encodes = encodes;
  string SelectFunc = selectFunc;
}

// An address. `predicate` is a pure partial ISLE constructor of flags, pointer, offset and
// alignment; it succeeds if an access is of this kind (empty: always). `selectFunc`, of pointer and
// offset, constructs the operand `encodes`.
class AddrPattern<DAGOperand encodes, int numOperands, string predicate, string selectFunc, int align> {
  DAGOperand Encodes = encodes;
  int NumOperands = numOperands;
  string Predicate = predicate;
  string SelectFunc = selectFunc;
  int Alignment = align; // bytes
}

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

// (seq a:$x, b, c) emits the instructions in this order; later ones use `$x`. The last one is the
// result.
def seq;
// (results a, b) at the end: the results of a node that has several.
def results;
// (COPY $x): the operand itself, no instruction.
def COPY;

// An operand that only pseudo-instructions have, with its ISLE type.
class PseudoOperand<string isleType> : DAGOperand {
  string IsleType = isleType;
}
// A field of a CLIF instruction that is not a value. A leaf of this class matches any content of
// the field.
class ClifOperand<string isleType> : PseudoOperand<isleType>;

// An operand in a register of this class, or one that is put there once an instruction needs it.
// Until then it can be a constant, or a scalar that stands for all lanes. `IsleMatch` is the ISLE
// extractor for a number in the pattern of a target node.
class RegOperand<RegisterClass regs, string isleType> : PseudoOperand<isleType> {
  RegisterClass RegClass = regs;
  string IsleMatch = "";
  // Variables of a pattern have this kind until an instruction needs them in a register.
  bit HoldsValues = false;
}
// The lane mask of a masked instruction: its first operand in results. It is in the register `mask`
// while the instruction executes.
class MaskOperand<RegisterClass regs, Register mask, string isleType> : RegOperand<regs, isleType> {
  Register Mask = mask;
  string Shape = "k";
}

// A pseudo-instruction. The compiler turns it into machine instructions once registers, frame and
// labels are known. It has no encoding, so it is not an Instruction. `isle` is its constructor,
// which the compiler supplies.
class PseudoInst<dag outs, dag ins, string isle> {
  dag OutOperandList = outs;
  dag InOperandList = ins;
  string IsleName = isle;
  bit isPseudo = true;
  // The constructor can refuse; the rule then refuses, too.
  bit mayRefuse = false;
}

// A node of the target, between CLIF and instructions. Results use it if the form of an instruction
// depends on its operands; the patterns that start with the node choose the form. The operands of
// such a pattern are those of the node, leaves that match a property of them (OperandLeaf), numbers
// and types.
class TargetNode<dag outs, dag ins, list<SDNodeProperty> props = []> {
  dag OutOperandList = outs;
  dag InOperandList = ins;
  // SDNPCommutative: the first two neighbours of the same kind can be exchanged.
  list<SDNodeProperty> Properties = props;
  // Computes the node on constants. `Fold` is a pure partial ISLE constructor of this opcode and
  // the constants.
  Instruction FoldedBy = ?;
  string Fold = "";
}

// An operand of a target node with a known property: `extractor` is an ISLE extractor from `of` to
// `encodes`.
class OperandLeaf<DAGOperand of, DAGOperand encodes, string extractor> {
  DAGOperand Of = of;
  DAGOperand Encodes = encodes;
  string Extractor = extractor;
  int Complexity = 4;
}

// Several instructions under one name, for results. `isle` is the name of the ISLE term.
class OutPatFrag<dag outs, dag ins, string isle, dag result> {
  dag OutOperandList = outs;
  dag InOperandList = ins;
  string IsleName = isle;
  dag ResultInstr = result;
}

// Computes an operand from other operands, types (`$ty` of `(int32:$ty ...)`), constants and
// numbers, by a pure ISLE constructor. A leaf is passed as the value it matched.
class SDNodeXForm<DAGOperand encodes, int numOperands, string isle> {
  DAGOperand Encodes = encodes;
  int NumOperands = numOperands;
  string IsleName = isle;
}

//===----------------------------------------------------------------------===//
// Patterns
//===----------------------------------------------------------------------===//

// A condition: a pure partial ISLE constructor without arguments.
class Predicate<string isle> {
  string IsleName = isle;
}
// A condition on the current CLIF instruction.
class InstPredicate<string isle> : Predicate<isle>;

// A condition on two operands of the pattern, given by their names.
class OperandPredicate<string isle, list<string> operands> : Predicate<isle> {
  list<string> Operands = operands;
}

// A pattern and the instructions that compute the same. Of several patterns that match, the most
// complex one wins; AddedComplexity decides if the complexity is equal.
class Pat<dag pattern, dag result> {
  dag PatternToMatch = pattern;
  dag ResultInstr = result;
  int AddedComplexity = 0;
  list<Predicate> Predicates = []; // all have to hold
}

// A rule of a ComplexPattern's SelectFunc. The pattern may be a leaf with its type.
class SelectPat<ComplexPattern root, dag pattern, dag result> : Pat<pattern, result> {
  ComplexPattern Root = root;
}
