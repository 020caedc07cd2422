//===- NaplesPULegalize.td - legalization of CLIF instructions ----------------===//
//
// One cell for each CLIF opcode and type: how the compiler legalizes it. The terms are LLVM's. The
// type is the controlling type of the instruction: the type of the result or, if results do not
// determine it, of the first operand. `validate` refuses instructions by this table.
// `docs/clif-support.md` is generated from it and compared with what compiles.
//
//===----------------------------------------------------------------------===//

//===----------------------------------------------------------------------===//
// Classes
//===----------------------------------------------------------------------===//

class LegalizeAction<string summary> {
  string Summary = summary;
}
def LegalizeAction : GenericEnum {
  let FilterClass = "LegalizeAction";
}

def Legal     : LegalizeAction<"At most one machine instruction.">;
def Promote   : LegalizeAction<"Operands are extended to the 32 bits of a register or lane, and the operation works on these.">;
def Expand    : LegalizeAction<"Several machine instructions.">;
def Split     : LegalizeAction<"The value occupies several registers, one word each, and the operation works word by word.">;
def Scalarize : LegalizeAction<"The scalar operation is applied to each lane; a routine of the runtime applies it to the lanes of a vector register.">;
def LibCall   : LegalizeAction<"A routine of the runtime is called.">;
def Custom    : LegalizeAction<"The code depends on more than the operands: the frame, the users, constants, other blocks.">;
def Refused   : LegalizeAction<"Not compiled.">;

// The condition under which a record applies. A record without one always applies.
class LegalizeCondition<string summary> {
  string Summary = summary;
  bit OfInstruction = false; // depends on the instruction, not only on the settings
}
def LegalizeCondition : GenericEnum {
  let FilterClass = "LegalizeCondition";
}
class InstructionCondition<string summary> : LegalizeCondition<summary> {
  let OfInstruction = true;
}

def Always          : LegalizeCondition<"Always.">;
def SoftFloat       : LegalizeCondition<"With `strict_float=true`, or without a float unit.">;
def NoFloatUnit     : LegalizeCondition<"Without a float unit.">;
def AtomicsRefused  : LegalizeCondition<"With `atomics=refuse`.">;
def AtomicsUnlocked : LegalizeCondition<"Unless `atomics=core` or `atomics=machine`.">;
def AtomicsOfMachine : LegalizeCondition<"With `atomics=machine`.">;
def PinnedReg       : LegalizeCondition<"With `enable_pinned_reg=true`.">;
def NoPinnedReg     : LegalizeCondition<"Unless `enable_pinned_reg=true`.">;
def MaybeUnaligned  : InstructionCondition<"Without the flag `aligned`, unless the address is known to be aligned.">;
def OperandIsNarrow : InstructionCondition<"On an operand with less than 32 bits, or with lanes of less than 32 bits.">;
def LanesDiffer     : InstructionCondition<"Between types with different numbers of lanes.">;
def DynamicSize     : InstructionCondition<"On vectors of dynamic size.">;
def ThreadLocal     : InstructionCondition<"Of a thread-local symbol.">;
def NotThreadLocal  : InstructionCondition<"Of a global value that is not a thread-local symbol.">;
def NotASymbol      : InstructionCondition<"Of a global value that is not a symbol.">;
// The name, the signature and the kind of the call. The message for each fault is not in td.
def BadCallee       : InstructionCondition<"Of an intrinsic or with a signature that cannot be called this way.">;

// The action for these opcodes on these types. If a cell has several records, the first one whose
// condition holds applies. Exactly one record of a cell has no condition; it applies if no
// condition holds.
class OperationAction<list<string> opcodes, list<ClifType> types, LegalizeAction action,
                      LegalizeCondition when = Always> {
  list<string> Opcodes = opcodes; // as in CLIF
  list<ClifType> Types = types;
  LegalizeAction Action = action;
  LegalizeCondition When = when;
  // For refusals: the refused form, with `$op` for the opcode and `$ty` for the type, and the
  // nearest form that compiles.
  string What = "";
  string NearestForm = "";
  // For LibCall and Scalarize: the routine of the runtime that does the whole operation, on the
  // words of the operands or on each of their lanes. f16 is computed in f32. If unset, lowering
  // rules call routines.
  RuntimeRoutine Routine = ?;
}

// Operations that a routine of the runtime does.
class CallRoutine<list<string> opcodes, list<ClifType> types, string routine, LegalizeCondition when = Always,
                  LegalizeAction action = LibCall>
    : OperationAction<opcodes, types, action, when> {
  let Routine = !cast<RuntimeRoutine>("__npu_"#routine);
}

class Refuse<list<string> opcodes, list<ClifType> types, string form, string what = "$op.$ty",
             LegalizeCondition when = Always>
    : OperationAction<opcodes, types, Refused, when> {
  let What = what;
  let NearestForm = form;
}

// The number of machine instructions of an opcode on each type of the columns, in a function of
// this one instruction at `opt_level=none`; -1 if the form does not exist or is not inline.
// Measured: NaplesPUCosts.td.
class InstructionCounts<string opcode, list<int> counts> {
  string Opcode = opcode;
  list<int> Counts = counts;
}

// The message for a value whose type has no column.
class UnsupportedTypes<string what, string form> {
  string What = what;
  string NearestForm = form;
}

// The columns of the table.
class LegalizeTypes<list<ClifType> types> {
  list<ClifType> Types = types;
}

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

// `untyped` is the column of instructions without a controlling type, `OtherVT` that of all types
// that are not listed.
def NaplesPUTypes : LegalizeTypes<[i8, i16, i32, i64, i128, f16, f32, f64, f128, v16i8, v16i16, v16i32, v16f32,
                                   untyped, OtherVT]>;

def : UnsupportedTypes<"$op with a value of type $ty",
    "integers of 8 to 128 bits, floats of 16 to 128 bits, and vectors of them with a known number of lanes are">;

defvar narrowTypes = [i8, i16];
defvar wordTypes = [i32];
defvar splitTypes = [i64, i128];      // several words
defvar floatTypes = [f16, f32];       // in one register
defvar splitFloatTypes = [f64, f128];
defvar packedTypes = [v16i8, v16i16];  // narrow lanes
defvar laneTypes = [v16i32];
defvar floatLaneTypes = [v16f32];
defvar integerTypes = narrowTypes # wordTypes # splitTypes;
defvar allFloatTypes = floatTypes # splitFloatTypes;
defvar vectorTypes = packedTypes # laneTypes # floatLaneTypes;
defvar allTypes = integerTypes # allFloatTypes # vectorTypes;
defvar registerTypes = narrowTypes # wordTypes # packedTypes # laneTypes;

//===----------------------------------------------------------------------===//
// Integers
//===----------------------------------------------------------------------===//

// Low bits of the result depend only on low bits of the operands, so upper bits of narrow operands
// do not matter.
def : OperationAction<["iadd", "isub", "imul"], registerTypes, Legal>;
def : OperationAction<["iadd", "isub"], splitTypes, Split>;
def : OperationAction<["imul"], [i64], Split>;
def : CallRoutine<["imul"], [i128], "mul128">;
def : OperationAction<["band", "bor", "bxor", "bnot"], registerTypes # floatTypes # floatLaneTypes, Legal>;
def : OperationAction<["band", "bor", "bxor", "bnot"], splitTypes # splitFloatTypes, Split>;
def : OperationAction<["ineg"], narrowTypes # wordTypes, Expand>;
def : OperationAction<["ineg"], packedTypes # laneTypes, Legal>;
def : OperationAction<["ineg"], splitTypes, Split>;

def : OperationAction<["iabs", "smin", "umin", "smax", "umax"], narrowTypes # packedTypes, Promote>;
def : OperationAction<["iabs", "smin", "umin", "smax", "umax"], wordTypes # laneTypes, Expand>;
def : OperationAction<["iabs", "smin", "umin", "smax", "umax"], splitTypes, Split>;

def : OperationAction<["avg_round", "uadd_sat", "sadd_sat", "usub_sat", "ssub_sat"], packedTypes, Promote>;
def : OperationAction<["avg_round", "uadd_sat", "sadd_sat", "usub_sat", "ssub_sat"], laneTypes, Expand>;

def : OperationAction<["umulhi", "smulhi"], narrowTypes # packedTypes, Promote>;
def : OperationAction<["umulhi", "smulhi"], wordTypes # laneTypes, Legal>;
foreach op = ["umulhi", "smulhi"] in {
  def : CallRoutine<[op], [i64], op#"64">;
  def : CallRoutine<[op], [i128], op#"128">;
}

def : OperationAction<["udiv", "sdiv", "urem", "srem"], integerTypes, LibCall>;

defvar overflowOps = ["uadd_overflow", "sadd_overflow", "usub_overflow", "ssub_overflow", "uadd_overflow_cin",
                   "sadd_overflow_cin", "usub_overflow_bin", "ssub_overflow_bin"];
def : OperationAction<overflowOps # ["umul_overflow", "smul_overflow"], narrowTypes, Promote>;
def : OperationAction<overflowOps # ["umul_overflow", "smul_overflow"], wordTypes, Expand>;
def : OperationAction<overflowOps, splitTypes, Split>;
def : OperationAction<["umul_overflow", "smul_overflow"], [i64], LibCall>;
def : OperationAction<["uadd_overflow_trap"], wordTypes, Expand>;
def : OperationAction<["uadd_overflow_trap"], [i64], Split>;

// The amount is taken modulo the width; the machine does not do this.
def : OperationAction<["ishl", "ushr", "sshr", "rotl", "rotr"], narrowTypes # packedTypes, Promote>;
def : OperationAction<["ishl", "ushr", "sshr", "rotl", "rotr"], wordTypes # laneTypes, Expand>;
def : OperationAction<["ishl", "ushr", "sshr", "rotl", "rotr"], [i64], Split>;
def : OperationAction<["ishl", "ushr", "sshr", "rotl", "rotr"], [i128], LibCall>;

def : OperationAction<["clz", "ctz"], narrowTypes, Promote>;
def : OperationAction<["clz", "ctz"], wordTypes, Legal>;
def : OperationAction<["cls", "popcnt", "bitrev"], narrowTypes, Promote>;
def : OperationAction<["cls", "popcnt", "bitrev"], wordTypes, Expand>;
def : OperationAction<["bswap"], [i16, i32], Expand>;
def : OperationAction<["clz", "ctz", "cls", "popcnt", "bitrev", "bswap"], splitTypes, Split>;
def : OperationAction<["popcnt"], packedTypes, Promote>;
def : OperationAction<["popcnt"], laneTypes, Expand>;

def : OperationAction<["icmp"], narrowTypes # packedTypes, Promote>;
def : OperationAction<["icmp"], wordTypes, Legal>;
def : OperationAction<["icmp"], splitTypes, Split>;
// One bit per lane in a scalar register; expanded to lanes only for uses that need lanes.
def : OperationAction<["icmp"], laneTypes, Custom>;

//===----------------------------------------------------------------------===//
// Choices
//===----------------------------------------------------------------------===//

// The machine has no conditional move, so a select is a branch. On lanes it is a masked move.
def : OperationAction<["select", "select_spectre_guard"], narrowTypes # wordTypes # floatTypes # vectorTypes, Custom>;
def : OperationAction<["select", "select_spectre_guard"], splitTypes # splitFloatTypes, Split>;
def : OperationAction<["bitselect"], narrowTypes # wordTypes # floatTypes # vectorTypes, Expand>;
def : OperationAction<["bitselect"], splitTypes # splitFloatTypes, Split>;
def : OperationAction<["blendv"], narrowTypes # packedTypes, Promote>;
def : OperationAction<["blendv"], wordTypes # floatTypes # laneTypes # floatLaneTypes, Expand>;
def : OperationAction<["blendv"], splitTypes # splitFloatTypes, Split>;
def : OperationAction<["bmask"], narrowTypes # wordTypes, Expand>;
def : OperationAction<["bmask"], splitTypes, Split>;

//===----------------------------------------------------------------------===//
// Widths
//===----------------------------------------------------------------------===//

def : OperationAction<["uextend"], [i16], Legal>;
def : OperationAction<["uextend"], [i32], Expand>;
def : OperationAction<["sextend"], [i16, i32], Legal>;
def : OperationAction<["uextend", "sextend"], splitTypes, Split>;
def : OperationAction<["ireduce"], narrowTypes # wordTypes, Legal>;
def : OperationAction<["ireduce"], [i64], Split>;
def : OperationAction<["isplit"], [i16, i32], Legal>;
def : OperationAction<["isplit"], splitTypes, Split>;
def : OperationAction<["iconcat"], narrowTypes, Expand>;
def : OperationAction<["iconcat"], [i32, i64], Split>;
def : OperationAction<["bitcast"], narrowTypes # wordTypes # floatTypes # vectorTypes, Legal>;
def : OperationAction<["bitcast"], splitTypes # splitFloatTypes, Split>;

//===----------------------------------------------------------------------===//
// Constants and addresses
//===----------------------------------------------------------------------===//

def : OperationAction<["iconst"], narrowTypes, Legal>;
def : OperationAction<["iconst"], wordTypes, Expand>;
def : OperationAction<["iconst"], [i64], Split>;
def : OperationAction<["f16const"], [untyped], Legal>;
def : OperationAction<["f32const"], [untyped], Expand>;
def : OperationAction<["f64const", "f128const"], [untyped], Split>;
// Constants that differ between lanes are placed after the code.
def : OperationAction<["vconst"], vectorTypes, Custom>;

def : OperationAction<["stack_addr", "get_frame_pointer"], [i32], Custom>;
def : OperationAction<["get_stack_pointer", "get_return_address"], [i32], Legal>;
def : OperationAction<["stack_addr", "get_frame_pointer", "get_stack_pointer", "get_return_address", "func_addr"],
                      [i64], Split>;
def : Refuse<["func_addr"], [i32, i64], "it is an instruction: wrap it in a function", "the address of an intrinsic",
             BadCallee>;
def : OperationAction<["func_addr"], [i32], Expand>;
// A routine finds the thread-local block of the thread.
def : OperationAction<["symbol_value"], [i32, i64, i128], LibCall, ThreadLocal>;
def : Refuse<["symbol_value"], [i32, i64, i128], "compute it with loads and sums",
             "$op of a global value that is not a symbol", NotASymbol>;
def : OperationAction<["symbol_value"], [i32], Expand>;
def : OperationAction<["symbol_value"], [i64, i128], Split>;
def : Refuse<["symbol_value"], narrowTypes # allFloatTypes # vectorTypes, "an address has 32 bits: use i32">;
def : Refuse<["tls_value"], [i32, i64, i128], "use symbol_value", "$op of a global value that is not a thread-local symbol", NotThreadLocal>;
def : OperationAction<["tls_value"], [i32, i64, i128], LibCall>;
def : Refuse<["tls_value"], narrowTypes # allFloatTypes # vectorTypes, "an address has 32 bits: use i32">;
def : OperationAction<["dynamic_stack_addr"], [i32], Custom>;
def : OperationAction<["dynamic_stack_addr"], [i64], Split>;

def : Refuse<["get_pinned_reg", "set_pinned_reg"], [i32, i64], "switch on enable_pinned_reg", "$op", NoPinnedReg>;
def : OperationAction<["get_pinned_reg", "set_pinned_reg"], [i32], Legal>;
def : OperationAction<["get_pinned_reg", "set_pinned_reg"], [i64], Split>;

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

// Sixteen bytes are loaded from the two cache lines that may contain them.
def : OperationAction<["load"], [v16i8], Expand, MaybeUnaligned>;
def : OperationAction<["load"], !listremove(vectorTypes, [v16i8]), LibCall, MaybeUnaligned>;
def : OperationAction<["store"], vectorTypes, LibCall, MaybeUnaligned>;
def : OperationAction<["load", "store"], [i16, i32] # floatTypes, Expand, MaybeUnaligned>;
def : OperationAction<["load", "store"], narrowTypes # wordTypes # floatTypes # laneTypes # floatLaneTypes, Legal>;
def : OperationAction<["load", "store"], splitTypes # splitFloatTypes, Split>;
// The hardware's packed vector loads read the wrong elements (erratum packed_vector_loads).
def : OperationAction<["load"], packedTypes, Expand>;
def : OperationAction<["store"], packedTypes, Legal>;

def : OperationAction<["uload8", "sload8", "istore8"], [i16, i32], Legal>;
def : OperationAction<["uload16", "sload16", "istore16"], [i32], Expand, MaybeUnaligned>;
def : OperationAction<["uload16", "sload16", "istore16"], [i32], Legal>;
def : OperationAction<["uload8", "sload8", "istore8", "uload16", "sload16", "istore16", "istore32"], [i64], Split>;
// The result is an i64; the controlling type is that of the address.
def : OperationAction<["uload32", "sload32"], [i32, i64], Split>;
defvar wideningLoads = ["uload8x8", "sload8x8", "uload16x4", "sload16x4", "uload32x2", "sload32x2"];
def : OperationAction<wideningLoads, [i32, i64], Scalarize>;

def : OperationAction<["atomic_load"], narrowTypes # wordTypes, LibCall, AtomicsOfMachine>;
def : OperationAction<["atomic_load"], narrowTypes # wordTypes, Legal>;
// A read and write in several steps holds the lock. Stores take the lock too: they could otherwise
// fall between the steps of another thread.
defvar atomicHelp = "`atomics=machine` makes it atomic for all threads, `atomics=core` for those of one core";
def : OperationAction<["atomic_store"], narrowTypes # wordTypes, Expand, AtomicsUnlocked>;
def : OperationAction<["atomic_store"], narrowTypes # wordTypes, LibCall>;
def : Refuse<["atomic_rmw", "atomic_cas"], integerTypes, atomicHelp, "$op.$ty", AtomicsRefused>;
def : Refuse<["atomic_load", "atomic_store"], splitTypes, atomicHelp, "$op.$ty", AtomicsRefused>;
def : OperationAction<["atomic_rmw", "atomic_cas"], narrowTypes # wordTypes, Expand, AtomicsUnlocked>;
def : OperationAction<["atomic_load", "atomic_store", "atomic_rmw", "atomic_cas"], splitTypes, Split, AtomicsUnlocked>;
def : OperationAction<["atomic_rmw", "atomic_cas"], narrowTypes # wordTypes, LibCall>;
def : OperationAction<["atomic_load", "atomic_store", "atomic_rmw", "atomic_cas"], splitTypes, LibCall>;
def : OperationAction<["fence"], [untyped], Legal>;

//===----------------------------------------------------------------------===//
// Floats
//===----------------------------------------------------------------------===//

defvar floatArithmetic = ["fadd", "fsub", "fmul", "fdiv"];
defvar floatFunctions = ["sqrt", "fma", "fmin", "fmax", "ceil", "floor", "trunc", "nearest"];
defvar floatToInteger = ["fcvt_to_uint", "fcvt_to_sint"];
defvar floatToIntegerSat = ["fcvt_to_uint_sat", "fcvt_to_sint_sat"];
defvar integerToFloat = ["fcvt_from_uint", "fcvt_from_sint"];

foreach op = ["add", "sub", "mul", "div"] in {
  def : CallRoutine<["f"#op], [f32], "f32_"#op, SoftFloat>;
  def : CallRoutine<["f"#op], floatLaneTypes, "f32_"#op, SoftFloat, Scalarize>;
  def : CallRoutine<["f"#op], [f16], "f32_"#op>;
  def : CallRoutine<["f"#op], [f64], "f64_"#op>;
  def : CallRoutine<["f"#op], [f128], "f128_"#op>;
}
def : OperationAction<floatArithmetic, [f32] # floatLaneTypes, Legal>;
foreach op = floatFunctions in {
  // The routines of fmin and fmax are called `min` and `max`.
  defvar name = !cond(!eq(op, "fmin"): "min", !eq(op, "fmax"): "max", true: op);
  def : CallRoutine<[op], !if(!eq(op, "fma"), [f32], [f16, f32]), "f32_"#name>;
  def : CallRoutine<[op], [f64], "f64_"#name>;
  def : CallRoutine<[op], [f128], "f128_"#name>;
}
foreach op = ["sqrt", "fma"] in
  def : CallRoutine<[op], floatLaneTypes, "f32_"#op, Always, Scalarize>;
def : OperationAction<!listremove(floatFunctions, ["sqrt", "fma"]), floatLaneTypes, Expand>;
// Computed in f64, whose precision is sufficient for f16.
def : OperationAction<["fma"], [f16], LibCall>;

// The float unit's compares order bit patterns, so float compares become integer compares.
def : OperationAction<["fcmp"], floatTypes # floatLaneTypes, Expand>;
def : OperationAction<["fcmp"], splitFloatTypes, LibCall>;
def : OperationAction<["fneg", "fabs", "fcopysign"], floatTypes # floatLaneTypes, Expand>;
def : OperationAction<["fneg", "fabs", "fcopysign"], splitFloatTypes, Split>;

def : OperationAction<["fpromote"], [f32, f64, f128], LibCall>;
def : OperationAction<["fdemote"], [f16, f32, f64], LibCall>;

// CLIF's verifier accepts the operations that these records refuse.
defvar sameLanes = "convert scalars to scalars and vectors to vectors";
defvar notLanes = "$op between types with different numbers of lanes";
def : Refuse<floatToIntegerSat # ["x86_cvtt2dq"], integerTypes # packedTypes # laneTypes, sameLanes, notLanes, LanesDiffer>;
def : Refuse<integerToFloat, allFloatTypes # floatLaneTypes, sameLanes, notLanes, LanesDiffer>;
def : Refuse<floatToIntegerSat # integerToFloat # ["x86_cvtt2dq"], [OtherVT], sameLanes, notLanes, LanesDiffer>;
def : OperationAction<floatToInteger # floatToIntegerSat # ["x86_cvtt2dq"], integerTypes, LibCall>;
def : OperationAction<floatToIntegerSat # ["x86_cvtt2dq"], packedTypes # laneTypes, Scalarize>;
def : OperationAction<integerToFloat, [f32], LibCall, NoFloatUnit>;
def : OperationAction<integerToFloat, floatLaneTypes, Scalarize, NoFloatUnit>;
def : OperationAction<integerToFloat, [f32] # floatLaneTypes, Promote, OperandIsNarrow>;
def : OperationAction<integerToFloat, allFloatTypes, LibCall>;
def : OperationAction<integerToFloat, floatLaneTypes, Scalarize>;

//===----------------------------------------------------------------------===//
// Lanes
//===----------------------------------------------------------------------===//

def : OperationAction<["splat", "extractlane"], vectorTypes, Legal>;
def : OperationAction<["insertlane", "scalar_to_vector"], vectorTypes, Expand>;
def : OperationAction<["swizzle", "shuffle", "x86_pshufb"], [untyped], Expand>;
def : OperationAction<["vany_true", "vall_true"], packedTypes, Promote>;
def : OperationAction<["vany_true", "vall_true"], laneTypes # floatLaneTypes, Expand>;
// The controlling type is that of the result.
def : OperationAction<["vhigh_bits"], narrowTypes # wordTypes, Expand>;
def : OperationAction<["vhigh_bits"], [i64], Split>;
def : OperationAction<["iadd_pairwise"], packedTypes # laneTypes, Expand>;

// Operands and results have different numbers of lanes.
def : OperationAction<["swiden_low", "swiden_high", "uwiden_low", "uwiden_high"], packedTypes # laneTypes, Scalarize>;
def : OperationAction<["fvdemote", "fvpromote_low", "x86_pmaddubsw"], [untyped], Scalarize>;

// Cranelift types the result of these as a single i8.
def : Refuse<["icmp", "fcmp"], [OtherVT], "take parts with extract_vector", "$op of vectors of dynamic size", DynamicSize>;

// OtherVT covers all other vectors. Those with fewer lanes, or in two or four registers, have the
// action of the type of their registers, with the exceptions in `src/legalize/scalarize.rs`. All
// others are split into lanes there.
def : OperationAction<["load", "store"], [OtherVT], Scalarize>;
def : OperationAction<["iadd", "isub", "imul", "umulhi", "smulhi", "band", "bor", "bxor", "bnot", "ineg", "iabs", "popcnt",
                       "smin", "umin", "smax", "umax", "avg_round", "uadd_sat", "sadd_sat", "usub_sat", "ssub_sat",
                       "ishl", "ushr", "sshr", "rotl", "rotr", "icmp", "fcmp", "select", "select_spectre_guard",
                       "bitselect", "blendv", "bitcast", "vconst", "splat", "extractlane", "insertlane",
                       "scalar_to_vector", "vany_true", "vall_true", "swiden_low", "swiden_high", "uwiden_low",
                       "uwiden_high", "snarrow", "unarrow", "uunarrow", "iadd_pairwise", "sqmul_round_sat",
                       "x86_pmulhrsw", "x86_cvtt2dq", "fadd", "fsub", "fmul", "fdiv", "sqrt", "fma", "fneg", "fabs",
                       "fcopysign", "fmin", "fmax", "ceil", "floor", "trunc", "nearest", "fcvt_to_uint_sat",
                       "fcvt_to_sint_sat", "fcvt_from_uint", "fcvt_from_sint"], [OtherVT], Scalarize>;
// Vectors of dynamic size have a fixed size at this stage (`src/legalize/dynamic.rs`).
def : OperationAction<["extract_vector"], [OtherVT], Scalarize>;

//===----------------------------------------------------------------------===//
// Control
//===----------------------------------------------------------------------===//

def : OperationAction<["jump", "return", "nop", "sequence_point"], [untyped], Legal>;
def : OperationAction<["brif"], narrowTypes, Promote>;
def : OperationAction<["brif"], wordTypes, Legal>;
def : OperationAction<["brif"], splitTypes, Split>;
def : OperationAction<["br_table", "trap"], [untyped], Custom>;
def : OperationAction<["trapz", "trapnz"], narrowTypes # wordTypes, Custom>;
def : OperationAction<["trapz", "trapnz"], splitTypes, Split>;
def : OperationAction<["debugtrap"], [untyped], Expand>;

defvar passable = "what can be passed, and how, is in docs/abi.md";
def : Refuse<["call", "return_call"], [untyped], passable, "$op of this function", BadCallee>;
def : OperationAction<["call", "return_call"], [untyped], Custom>;
def : Refuse<["call_indirect", "return_call_indirect"], [i32, i64], passable, "$op with this signature", BadCallee>;
def : OperationAction<["call_indirect", "return_call_indirect"], [i32], Custom>;
def : OperationAction<["call_indirect", "return_call_indirect"], [i64], Split>;
def : Refuse<["try_call"], [untyped], passable, "$op of this function", BadCallee>;
def : OperationAction<["try_call"], [untyped], Custom>;
def : Refuse<["try_call_indirect"], [i32, i64], passable, "$op with this signature", BadCallee>;
def : OperationAction<["try_call_indirect"], [i32], Custom>;
def : OperationAction<["try_call_indirect"], [i64], Split>;
def : OperationAction<["get_exception_handler_address"], [i32], Expand>;
def : OperationAction<["get_exception_handler_address"], [i64], Split>;
// A stack switch would restore the pinned register to the value saved with the stack.
def : Refuse<["stack_switch"], [i32, i64], "switch off enable_pinned_reg", "$op", PinnedReg>;
def : OperationAction<["stack_switch"], [i32, i64], LibCall>;
