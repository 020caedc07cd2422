//===- NaplesPUIntrinsics.td - calls that become instructions -----------------===//
//
// The compiler replaces a call of one of these names by an instruction or a short sequence. Names,
// types and meaning are those of the C compiler's builtins (docs/intrinsics.md): `i32x16` stands
// for <16 x i32>, `f32x16` for <16 x float>, i32 for pointers.
//
//===----------------------------------------------------------------------===//

// The replacement of the call.
class IntrinsicKind<string summary> {
  string Summary = summary;
}
def Operation      : IntrinsicKind<"`Instruction` on the arguments, in their order.">;
def LaneBits       : IntrinsicKind<"`Instruction`; only the lane bits of its result are used.">;
def ShiftLeft      : IntrinsicKind<"A shift to the left by the whole amount.">;
def ShiftRight     : IntrinsicKind<"A logical shift to the right by the whole amount.">;
def Compare        : IntrinsicKind<"A compare of lanes by `Condition`, one bit per lane.">;
def BlockLoad      : IntrinsicKind<"A load of a vector.">;
def BlockStore     : IntrinsicKind<"A store of a vector.">;
def Gather         : IntrinsicKind<"A load of one word per lane, from the address in the lane.">;
def Scatter        : IntrinsicKind<"A store of one word per lane, to the address in the lane.">;
def Mix            : IntrinsicKind<"The lanes of the mask from the first vector, the others from the second.">;
def ReadMask       : IntrinsicKind<"The mask.">;
def WriteMask      : IntrinsicKind<"Sets the mask.">;
def WriteMaskLanes : IntrinsicKind<"Sets the mask from the lowest bits of lanes.">;
def ReadRegister   : IntrinsicKind<"Reads the control register `Register`.">;
def ReadCycles     : IntrinsicKind<"Reads all 64 bits of the cycle counter.">;
def Missing        : IntrinsicKind<"Refused: its meaning is not documented.">;

def IntrinsicKind : GenericEnum {
  let FilterClass = "IntrinsicKind";
}

class Intrinsic<string name, IntrinsicKind kind, string result, string params, string summary> {
  string Name = "__builtin_npu_"#name;
  IntrinsicKind Kind = kind;
  string Result = result;      // a CLIF type, or empty
  string Params = params;      // CLIF types
  string Summary = summary;
  string Instruction = "";
  string Condition = "";
  // For loads and stores: the bits of an element in memory, whether a load sign-extends, and
  // whether the access is to the scratchpad.
  bits<8> ElementBits = 32;
  bit Signed = false;
  bit Scratchpad = false;
  // Affects only the lanes of the mask.
  bit Masked = false;
  bits<8> Register = 0;
}

def Intrinsics : GenericTable {
  let FilterClass = "Intrinsic";
  let CppTypeName = "IntrinsicInfo";
  let Fields = ["Name", "Kind", "Result", "Params", "Summary", "Instruction", "Condition", "ElementBits", "Signed",
                "Scratchpad", "Masked", "Register"];
  string TypeOf_Kind = "IntrinsicKind";
  let PrimaryKey = ["Name"];
  let PrimaryKeyName = "intrinsicByName";
}

//===----------------------------------------------------------------------===//
// Instructions
//===----------------------------------------------------------------------===//

class IntrinsicOp<string name, Instruction instruction, string result, string params, string summary>
    : Intrinsic<name, Operation, result, params, summary> {
  let Instruction = !cast<string>(instruction);
}

def : IntrinsicOp<"barrier", BARRIER, "", "i32 i32",
         "Waits at the barrier with the number of the first argument, until as many threads as the second argument plus one are there.">;
def : IntrinsicOp<"flush", FLUSH, "", "i32", "Writes the cache line of this address back to memory. With several cores, only for lines that no other core reads.">;
def : IntrinsicOp<"dcache_inv", DCACHE_INV, "", "i32", "Writes the cache line of this address back and invalidates it. With several cores, only for lines that this core has written: the thread hangs if the core has only read the line.">;
def : IntrinsicOp<"read_control_reg", READCR, "i32", "i32", "The control register of this number.">;
def : IntrinsicOp<"write_control_reg", WRITECR, "", "i32 i32", "Writes the first argument to the control register of the second.">;
def : IntrinsicOp<"clzi32", CLZSS_32, "i32", "i32", "Leading zeros.">;
def : IntrinsicOp<"ctzi32", CTZSS_32, "i32", "i32", "Trailing zeros.">;
def : IntrinsicOp<"clzv16i32", CLZVV_U_32, "i32x16", "i32x16", "Leading zeros of each lane.">;
def : IntrinsicOp<"ctzv16i32", CTZVV_U_32, "i32x16", "i32x16", "Trailing zeros of each lane.">;
foreach t = ["i32", "f32"] in
  def : IntrinsicOp<"shuffle"#t, SHUFFLEI_32, t#"x16", t#"x16 i32x16",
           "Each lane of the second vector is the number, 0 to 15, of a lane of the first vector; a larger number gives an undefined lane.">;

// Plain operations of the float unit, and shifts by the whole amount. The runtime uses them.
foreach op = ["add", "mul", "div"] in
  def : IntrinsicOp<"raw_f"#op, !cast<Instruction>(!toupper(op)#"FSSS_32"), "i32", "i32 i32", "The float unit's f"#op#" on bits.">;
def : IntrinsicOp<"raw_itof", I32TOF32_SS, "i32", "i32", "The float unit's conversion to a float, as bits.">;
def : IntrinsicOp<"raw_ftoi", F32TOI32_SS, "i32", "i32", "The float unit's conversion to an integer, from bits.">;
def : Intrinsic<"raw_shl", ShiftLeft, "i32", "i32 i32", "A shift to the left; 0 for amounts of 32 and more.">;
def : Intrinsic<"raw_shr", ShiftRight, "i32", "i32 i32", "A logical shift to the right; 0 for amounts of 32 and more.">;

// Shifts of each lane by the amount in another vector, which CLIF does not have.
class IntrinsicShift<string name, Instruction instruction, string summary>
    : IntrinsicOp<name#"v16i32", instruction, "i32x16", "i32x16 i32x16", summary#" of each lane, by the amount in the same lane, 0 to 31.">;
def : IntrinsicShift<"shl", SLLVVV_U_32, "A shift to the left">;
def : IntrinsicShift<"shr", SRLVVV_U_32, "A logical shift to the right">;
def : IntrinsicShift<"ashr", SRAVVV_U_32, "An arithmetic shift to the right">;

//===----------------------------------------------------------------------===//
// Compares and masks. The mask is state of the function: it has all lanes at the start of the
// function, and calls do not change it.
//===----------------------------------------------------------------------===//

class IntrinsicCompare<string name, string condition, string type>
    : Intrinsic<name, Compare, "i32", type#" "#type, "One bit per lane: whether the first is `"#condition#"` the second."> {
  let Condition = condition;
}

foreach cc = ["eq", "ne", "sgt", "sge", "slt", "sle", "ugt", "uge", "ult", "ule"] in
  def : IntrinsicCompare<"mask_cmpi32_"#cc, cc, "i32x16">;
foreach cc = ["eq", "ne", "gt", "ge", "lt", "le"] in
  def : IntrinsicCompare<"mask_cmpf32_"#cc, cc, "f32x16">;

def : Intrinsic<"createmaskv16i32", LaneBits, "i32", "i32x16", "One bit per lane: its lowest bit."> {
  let Instruction = "CREATEMASK_32";
}
def : Intrinsic<"read_mask_reg", ReadMask, "i32", "", "The mask, one bit per lane.">;
def : Intrinsic<"write_mask_reg", WriteMask, "", "i32", "Sets the mask; bits above the sixteenth are ignored.">;
def : Intrinsic<"write_mask_regv16i32", WriteMaskLanes, "", "i32x16", "Sets the mask from the lowest bit of each lane.">;
foreach t = ["i32", "f32"] in
  def : Intrinsic<"vector_mix"#t, Mix, t#"x16", t#"x16 "#t#"x16",
                  "The lanes of the mask from the first vector, the others from the second."> {
    let Masked = true;
  }

//===----------------------------------------------------------------------===//
// Memory. Lanes outside the mask: a load leaves them undefined, a store does not write their
// memory.
//===----------------------------------------------------------------------===//

class IntrinsicBlock<string name, IntrinsicKind kind, string result, string params, string summary, bit scratchpad, bit masked>
    : Intrinsic<name, kind, result, params,
                summary#!if(scratchpad, " in the scratchpad", "")#!if(masked, ", lanes of the mask", "")#"."> {
  let Scratchpad = scratchpad;
  let Masked = masked;
}

// The end of a name: the memory, and whether the access is masked.
class IntrinsicForm<bit scratchpad, bit masked> {
  string Suffix = !if(scratchpad, "_scratchpad", "")#!if(masked, "_masked", "");
  bit Scratchpad = scratchpad;
  bit Masked = masked;
}
defvar Forms = [IntrinsicForm<0, 0>, IntrinsicForm<0, 1>, IntrinsicForm<1, 0>, IntrinsicForm<1, 1>];
// Word accesses to main memory without a mask have no intrinsic: they are ordinary loads and
// stores.
defvar WordForms = [IntrinsicForm<0, 1>, IntrinsicForm<1, 0>, IntrinsicForm<1, 1>];

foreach form = WordForms in
  foreach t = ["i32", "f32"] in {
    def : IntrinsicBlock<"block_loadv16"#t#form.Suffix, BlockLoad, t#"x16", "i32", "Sixteen words", form.Scratchpad, form.Masked>;
    def : IntrinsicBlock<"block_storev16"#t#form.Suffix, BlockStore, "", "i32 "#t#"x16", "Sixteen words", form.Scratchpad,
                form.Masked>;
  }

foreach form = Forms in
  foreach width = [8, 16] in {
    foreach sign = ["i", "u"] in
      def : IntrinsicBlock<"block_loadv16"#sign#width#form.Suffix, BlockLoad, "i32x16", "i32",
                  "Sixteen elements of "#width#" bits, "#!if(!eq(sign, "i"), "sign", "zero")#"-extended", form.Scratchpad,
                  form.Masked> {
        let ElementBits = width;
        let Signed = !eq(sign, "i");
      }
    def : IntrinsicBlock<"block_storev16i"#width#form.Suffix, BlockStore, "", "i32 i32x16",
                "The low "#width#" bits of sixteen lanes", form.Scratchpad, form.Masked> {
      let ElementBits = width;
    }
  }

foreach masked = [0, 1] in
  foreach t = ["i32", "f32"] in {
    def : IntrinsicBlock<"gather_load"#t#"_scratchpad"#!if(masked, "_masked", ""), Gather, t#"x16", "i32x16",
                "The words at the addresses in the lanes", true, masked>;
    def : IntrinsicBlock<"scatter_store"#t#"_scratchpad"#!if(masked, "_masked", ""), Scatter, "", "i32x16 "#t#"x16",
                "The words to the addresses in the lanes, the highest lane last", true, masked>;
  }

def : Intrinsic<"crossprodv16i32", Missing, "i32x16", "i32x16 i32x16",
                "The hardware has no such operation, and its meaning is not documented.">;

//===----------------------------------------------------------------------===//
// Intrinsics that the C compiler does not have
//===----------------------------------------------------------------------===//

class Reads<string name, ControlRegister register, string summary> : Intrinsic<name, ReadRegister, "i32", "", summary> {
  let Register{5-0} = register.Number;
}
def : Reads<"thread_id", CR_THREAD_ID, "Number of the thread in its core.">;
def : Reads<"core_id", CR_CORE_ID, "Number of the core in its tile.">;
def : Reads<"tile_id", CR_TILE_ID, "Number of the tile.">;
def : Reads<"thread_count", CR_THREADS, "Threads per core.">;
def : Intrinsic<"cycles", ReadCycles, "i64", "", "Cycles since reset.">;
