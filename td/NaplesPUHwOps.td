//===- NaplesPUHwOps.td - operations of the hardware ------------------------===//
//
// Every opcode number that has a meaning to the hardware, including those without an instruction
// (docs/machine/operations.md). Instructions take opcode bits, unit, latency and semantics from
// here.
//
//===----------------------------------------------------------------------===//

class InstFormat<string name> {
  string Name = name;
}

def FrmRR   : InstFormat<"RR">;   // register-register
def FrmRI   : InstFormat<"RI">;   // register-immediate
def FrmMVI  : InstFormat<"MVI">;  // move immediate
def FrmMEM  : InstFormat<"MEM">;  // loads and stores
def FrmCTR  : InstFormat<"CTR">;  // control
def FrmJBA  : InstFormat<"JBA">;  // jump through a register, conditional branch
def FrmJRA  : InstFormat<"JRA">;  // jump relative to the program counter
def FrmNOP  : InstFormat<"NOP">;  // the word of ones

class HwUnit<string name> {
  string Name = name;
}

def UnitNone : HwUnit<"none">;     // dropped at decode
def UnitINT  : HwUnit<"int">;
def UnitFP   : HwUnit<"fp">;
def UnitLSU  : HwUnit<"lsu">;      // main memory and I/O
def UnitSPM  : HwUnit<"spm">;      // scratchpad
def UnitBR   : HwUnit<"branch">;
def UnitCTL  : HwUnit<"control">;  // barrier, control registers

// How well the machine implements an operation.
class HwStatus<string name> {
  string Name = name;
}

def HwOk   : HwStatus<"ok">;
def HwBug  : HwStatus<"bug">;   // the result differs from what the name says
def HwNo   : HwStatus<"no">;    // not implemented, harmless
def HwHang : HwStatus<"hang">;  // the thread never continues

class HwOp<InstFormat fmt, bits<6> num, string name, HwUnit unit, int latency> {
  InstFormat Format = fmt;
  bits<6> Code = num;
  string Name = name;
  HwUnit Unit = unit;
  HwStatus Status = HwOk;
  // Cycles from the issue of the operation to the issue of a dependent instruction, for a cache hit
  // without write-back contention (docs/machine/pipeline.md); 0 without a result.
  int Latency = latency;
  // Two floating-point operations may not have the same issue cycle + slot
  // (docs/machine/pipeline.md); -1: no slot.
  int FpSlot = -1;
  // Status and latency of the same operation on the scratchpad. Only loads and stores have them.
  HwStatus ScratchpadStatus = HwNo;
  int ScratchpadLatency = 0;
  // Bytes accessed: for a scalar, or for one lane of a vector; 0 without a memory access.
  int AccessBytes = 0;
  // Alignment in main memory that the hardware checks, in bytes.
  int Alignment = 0;
  // Semantics, in the language of NaplesPUSemantics.td; unset without an instruction.
  list<dag> Does = ?;
  list<dag> DoesInScratchpad = ?;
  // Semantics of a register-register operation whose destination has number 63: the hardware takes
  // the number of the operation for that of a jump (erratum vector_result_in_63).
  list<dag> DoesAt63 = [(do_nothing)];
}

// Tests whether the address is not a multiple of `bytes`, a power of two above 1.
class Misaligned<int bytes> {
  dag Test = (bv_ne (bv_extract $address, !sub(!logtwo(bytes), 1), 0), 0);
}

//===----------------------------------------------------------------------===//
// R format, and I format for numbers below 32 (docs/machine/operations.md)
//===----------------------------------------------------------------------===//

class IntOp<bits<6> num, string name, dag result> : HwOp<FrmRR, num, name, UnitINT, 7> {
  let Does = [(do_set result)];
}

// Returns 1 or 0; with a vector operand, one bit per lane, regardless of the lane mask.
class IntCompare<bits<6> num, string name, dag test> : HwOp<FrmRR, num, name, UnitINT, 7> {
  let Does = [(do_set (bv_zext 32, test)),
              (do_set_of_lanes (bv_concat (bv_erratum "vector_compare_upper_half", (bv_undefined 16), 0),
                                          (bv_lanes test)))];
}

class FpOp<bits<6> num, string name, int latency, int slot, dag result>
    : HwOp<FrmRR, num, name, UnitFP, latency> {
  let FpSlot = slot;
  let Does = [(do_set result)];
}

class FpCompare<bits<6> num, string name, dag test> : HwOp<FrmRR, num, name, UnitFP, 8> {
  let FpSlot = 0;
  let Does = [(do_set (bv_erratum "float_compare_value", (bv_select test, (bv_const 32, 0xFFFF), 0),
                                  (bv_zext 32, test))),
              (do_set_of_lanes (bv_zext 32, (bv_lanes test)))];
}

// Issued to a unit that was not built: the thread waits at issue forever.
class MissingUnitOp<bits<6> num, string name> : HwOp<FrmRR, num, name, UnitFP, 0> {
  let Status = HwHang;
}

// The hardware uses the whole amount, not its low five bits.
class ShiftOp<bits<6> num, string name, dag is, dag ought>
    : IntOp<num, name, (bv_erratum "shift_amount_not_modulo", is, ought)>;

// The upper half of a product of 64 bits.
class HighProduct<BvOp extend> {
  dag Value = (bv_extract (bv_mul (extend 64, $a), (extend 64, $b)), 63, 32);
}

// Tests whether the bit pattern `x` is above `y`: by the sign, then by the magnitude. The order of
// magnitudes is not reversed for negative numbers.
class FloatAbove<dag x, dag y> {
  dag Test = (bv_select (bv_eq (bv_extract x, 31, 31), (bv_extract y, 31, 31)),
                        (bv_ult (bv_extract y, 30, 0), (bv_extract x, 30, 0)),
                        (bv_extract y, 31, 31));
}

def RR_NOT : IntOp<0, "not", (bv_not $a)> {
  let DoesAt63 = [(do_jump (bv_lane_of $a, 0))];
}
def RR_OR : IntOp<1, "or", (bv_or $a, $b)> {
  let DoesAt63 = [(do_jump (bv_lane_of $a, 0))];
}
def RR_AND : IntOp<2, "and", (bv_and $a, $b)>;
def RR_XOR : IntOp<3, "xor", (bv_xor $a, $b)> {
  let DoesAt63 = [(do_jump (bv_lane_of $a, 0))];
}
def RR_ADD : IntOp<4, "add", (bv_add $a, $b)> {
  let DoesAt63 = [(do_jump (bv_lane_of $a, 0))];
}
def RR_SUB : IntOp<5, "sub", (bv_sub $a, $b)> {
  let DoesAt63 = [(do_branch (bv_eq (bv_lane_of $a, 0), 0), (bv_add (bv_pc), (bv_lane_of $b, 0)))];
}
def RR_MULL : IntOp<6, "mull", (bv_mul $a, $b)> {
  let DoesAt63 = [(do_branch (bv_ne (bv_lane_of $a, 0), 0), (bv_add (bv_pc), (bv_lane_of $b, 0)))];
}
def RR_MULHS : IntOp<7, "mulhs", HighProduct<bv_sext>.Value>;
def RR_MULHU : IntOp<8, "mulhu", HighProduct<bv_zext>.Value>;
// The operand is sign-extended to 64 bits. Bits above these are zeros.
def RR_ASHR : ShiftOp<9, "ashr", (bv_extract (bv_lshr (bv_sext 64, $a), (bv_zext 64, $b)), 31, 0),
                                 (bv_ashr $a, (bv_and $b, 31))>;
def RR_SHR : ShiftOp<10, "shr", (bv_lshr $a, $b), (bv_lshr $a, (bv_and $b, 31))>;
def RR_SHL : ShiftOp<11, "shl", (bv_shl $a, $b), (bv_shl $a, (bv_and $b, 31))>;
def RR_CLZ : IntOp<12, "clz", (bv_clz $a)>;
def RR_CTZ : IntOp<13, "ctz", (bv_ctz $a)>;
def RR_CMPEQ  : IntCompare<14, "cmpeq", (bv_eq $a, $b)>;
def RR_CMPNE  : IntCompare<15, "cmpne", (bv_ne $a, $b)>;
def RR_CMPGT  : IntCompare<16, "cmpgt", (bv_slt $b, $a)>;
def RR_CMPGE  : IntCompare<17, "cmpge", (bv_sle $b, $a)>;
def RR_CMPLT  : IntCompare<18, "cmplt", (bv_slt $a, $b)>;
def RR_CMPLE  : IntCompare<19, "cmple", (bv_sle $a, $b)>;
def RR_CMPUGT : IntCompare<20, "cmpugt", (bv_ult $b, $a)>;
def RR_CMPUGE : IntCompare<21, "cmpuge", (bv_ule $b, $a)>;
def RR_CMPULT : IntCompare<22, "cmpult", (bv_ult $a, $b)>;
def RR_CMPULE : IntCompare<23, "cmpule", (bv_ule $a, $b)>;
// The result is undefined if the index is above 15.
class LaneChoice {
  dag Value = (bv_select (bv_ult $b, 16), (bv_lane_of $a, (bv_extract $b, 3, 0)), (bv_undefined 32));
}
def RR_SHUFFLE : IntOp<24, "shuffle", LaneChoice<>.Value>;
def RR_GETLANE : IntOp<25, "getlane", LaneChoice<>.Value>;
def RR_MOVE : IntOp<32, "move", (bv_copy $a)>;
let Status = HwBug in {
  def RR_FADD : FpOp<33, "fadd", 12, 4, (fp_add $a, $b)>;
  def RR_FSUB : FpOp<34, "fsub", 12, 4, (fp_sub $a, $b)>;
  def RR_FMUL : FpOp<35, "fmul", 11, 3, (fp_mul $a, $b)>;
  def RR_FDIV : FpOp<36, "fdiv", 24, 16, (fp_div $a, $b)>;
  // Bit patterns are compared (erratum float_compare_order).
  def RR_CMPFEQ : FpCompare<37, "cmpfeq", (bv_eq $a, $b)>;
  def RR_CMPFNE : FpCompare<38, "cmpfne", (bv_ne $a, $b)>;
  def RR_CMPFGT : FpCompare<39, "cmpfgt", FloatAbove<(bv_copy $a), (bv_copy $b)>.Test>;
  def RR_CMPFGE : FpCompare<40, "cmpfge", (bv_or FloatAbove<(bv_copy $a), (bv_copy $b)>.Test, (bv_eq $a, $b))>;
  def RR_CMPFLT : FpCompare<41, "cmpflt", FloatAbove<(bv_copy $b), (bv_copy $a)>.Test>;
  def RR_CMPFLE : FpCompare<42, "cmpfle", (bv_or FloatAbove<(bv_copy $b), (bv_copy $a)>.Test, (bv_eq $a, $b))>;
}
def RR_SEXT8  : IntOp<43, "sext8", (bv_sext 32, (bv_extract $a, 7, 0))>;
def RR_SEXT16 : IntOp<44, "sext16", (bv_sext 32, (bv_extract $a, 15, 0))>;
def RR_SEXT32 : HwOp<FrmRR, 45, "sext32", UnitINT, 7>;
def RR_F32TOF64 : MissingUnitOp<46, "f32tof64">;
def RR_F64TOF32 : MissingUnitOp<47, "f64tof32">;
let Status = HwBug in {
  def RR_ITOF : FpOp<48, "itof", 13, 5, (fp_from_int $a)>;
  def RR_FTOI : FpOp<49, "ftoi", 11, 3, (fp_to_int $a)>;
}
// Bit 0 of every lane, regardless of the lane mask.
def RR_CRTMASK : IntOp<50, "crt_mask", (bv_zext 32, (bv_lanes (bv_extract $a, 0, 0)))>;
// Issued to a unit that does not exist.
let Status = HwHang in
  def RR_CRP : HwOp<FrmRR, 63, "crp", UnitNone, 0> {
    let Does = [(do_never_if (bv_const 1, 1))];
  }

//===----------------------------------------------------------------------===//
// MOVEI format (docs/machine/operations.md). A write to rm loads the lane mask from the result bus,
// not from the register.
//===----------------------------------------------------------------------===//

def MVI_MOVEIL : HwOp<FrmMVI, 0, "moveil", UnitINT, 7> {
  let Does = [(do_set (bv_concat (bv_extract $old, 31, 16), $imm), $imm)];
}
def MVI_MOVEIH : HwOp<FrmMVI, 1, "moveih", UnitINT, 7> {
  let Does = [(do_set (bv_concat $imm, (bv_extract $old, 15, 0)),
                      (bv_erratum "half_write_to_mask", 0, (bv_extract $old, 15, 0)))];
}
def MVI_MOVEI : HwOp<FrmMVI, 2, "movei", UnitINT, 7> {
  let Does = [(do_set (bv_zext 32, $imm))];
}

//===----------------------------------------------------------------------===//
// M format (docs/machine/memory.md). A misaligned access is performed at the address with its low
// bits cleared, and traps.
//===----------------------------------------------------------------------===//

class MemoryOp<bits<6> num, string name, int latency, int bytes, int align>
    : HwOp<FrmMEM, num, name, UnitLSU, latency> {
  let ScratchpadStatus = HwOk;
  let AccessBytes = bytes;
  let Alignment = align;
}

// A scalar load. For a misaligned address the scratchpad returns the low bits of the word that
// contains it.
class LoadOp<bits<6> num, string name, int bytes, BvOp extend>
    : MemoryOp<num, name, 9, bytes, bytes> {
  let ScratchpadLatency = 11;
  defvar load = [(do_set (extend 32, (bv_load MainMemory, bytes, $address)))];
  defvar spm_load = [(do_set (extend 32, (bv_load Scratchpad, bytes, $address)))];
  let Does = !if(!eq(bytes, 1), load, !listconcat([
      (do_trap_if TRAP_MEMORY_MISALIGNED, Misaligned<bytes>.Test,
                  (do_set (extend 32, (bv_load MainMemory, bytes, (bv_and $address, !sub(0, bytes))))))],
      load));
  let DoesInScratchpad = !if(!eq(bytes, 1), spm_load, !listconcat([
      (do_trap_if TRAP_SCRATCHPAD_MISALIGNED, Misaligned<bytes>.Test,
                  (do_set (extend 32, (bv_load Scratchpad, bytes, (bv_and $address, -4)))))],
      spm_load));
}

// A load of lanes of `bytes` bytes. From main memory, lane i takes the low bytes of word i of the
// cache line, even if the elements are packed. In the scratchpad, lane i is at the address plus 4i
// bytes.
class VectorLoadOp<bits<6> num, string name, int bytes, BvOp extend>
    : MemoryOp<num, name, 9, bytes, !mul(bytes, 16)> {
  let ScratchpadLatency = 11;
  defvar word = (bv_add (bv_and $address, -64), (bv_lane 4));
  defvar element = (bv_add $address, (bv_lane bytes));
  defvar address = !if(!eq(bytes, 4), element, (bv_erratum "packed_vector_loads", word, element));
  let Does = [
      (do_trap_if TRAP_MEMORY_MISALIGNED, Misaligned<!mul(bytes, 16)>.Test,
                  (do_set (extend 32, (bv_load MainMemory, bytes, word)))),
      (do_set (extend 32, (bv_load MainMemory, bytes, address)))];
  defvar spm = (bv_add $address, (bv_lane 4));
  let DoesInScratchpad = !listconcat(
      [(do_never_if (bv_eq (bv_mask), 0))],
      !if(!eq(bytes, 1), []<dag>, [
          (do_trap_if TRAP_SCRATCHPAD_MISALIGNED, Misaligned<bytes>.Test,
                      (do_set (extend 32, (bv_load Scratchpad, bytes, (bv_and spm, -4), (bv_lane_enabled)))))]),
      [(do_set (extend 32, (bv_load Scratchpad, bytes, spm, (bv_lane_enabled))))]);
}

// One byte of a misaligned store to main memory, at `offset` from the address. The data are rotated
// by the low bits of the address, and nothing is written past the end of the cache line.
class RotatedByte<int width, dag data, dag offset> {
  defvar at = (bv_add $address, offset);
  defvar place = (bv_extract at, !sub(!logtwo(width), 4), 0);
  defvar shift = (bv_shl (bv_zext width, place), 3);
  dag Store = (do_store MainMemory, 1, at, (bv_extract (bv_lshr data, shift), 7, 0),
                        (bv_ult (bv_add (bv_and $address, 63), offset), 64));
}

class StoreOp<bits<6> num, string name, int bytes> : MemoryOp<num, name, 0, bytes, bytes> {
  defvar top = !sub(!mul(bytes, 8), 1);
  defvar store = [(do_store MainMemory, bytes, $address, (bv_extract $value, top, 0))];
  defvar spm_store = [(do_store Scratchpad, bytes, $address, (bv_extract $value, top, 0))];
  defvar data = (bv_extract $value, top, 0);
  let Does = !cond(
      !eq(bytes, 1): store,
      !eq(bytes, 2): !listconcat([
          (do_trap_if TRAP_MEMORY_MISALIGNED, Misaligned<2>.Test,
                      RotatedByte<16, data, (bv_const 32, 0)>.Store,
                      RotatedByte<16, data, (bv_const 32, 1)>.Store)], store),
      true: !listconcat([
          (do_trap_if TRAP_MEMORY_MISALIGNED, Misaligned<4>.Test,
                      RotatedByte<32, data, (bv_const 32, 0)>.Store,
                      RotatedByte<32, data, (bv_const 32, 1)>.Store,
                      RotatedByte<32, data, (bv_const 32, 2)>.Store,
                      RotatedByte<32, data, (bv_const 32, 3)>.Store)], store));
  // A misaligned store to the scratchpad writes the whole word.
  let DoesInScratchpad = !if(!eq(bytes, 1), spm_store, !listconcat([
      (do_trap_if TRAP_SCRATCHPAD_MISALIGNED, Misaligned<bytes>.Test,
                  (do_store Scratchpad, 4, (bv_and $address, -4), $value))],
      spm_store));
}

// A vector store to the scratchpad. Lane i is at the address plus 4i bytes.
class ScratchpadLanes<int bytes, dag condition> {
  defvar at = (bv_add $address, (bv_lane 4));
  defvar store = (do_each_lane
      (do_store Scratchpad, bytes, at, (bv_extract $value, !sub(!mul(bytes, 8), 1), 0), condition));
  list<dag> L = !if(!eq(bytes, 1), [store], [
      (do_trap_if TRAP_SCRATCHPAD_MISALIGNED, Misaligned<bytes>.Test,
                  (do_each_lane (do_store Scratchpad, 4, (bv_and at, -4), $value, condition))),
      store]);
}

// Vector stores to main memory ignore the lane mask.
class VectorStoreOp<bits<6> num, string name, int bytes>
    : MemoryOp<num, name, 0, bytes, !mul(bytes, 16)> {
  defvar part = (bv_extract $value, !sub(!mul(bytes, 8), 1), 0);
  defvar width = !mul(bytes, 128);
  defvar line = (bv_lanes part);
  defvar first = (bv_lane bytes);
  defvar b0 = RotatedByte<width, line, first>.Store;
  defvar b1 = RotatedByte<width, line, (bv_add first, 1)>.Store;
  defvar b2 = RotatedByte<width, line, (bv_add first, 2)>.Store;
  defvar b3 = RotatedByte<width, line, (bv_add first, 3)>.Store;
  let Does = [
      (do_trap_if TRAP_MEMORY_MISALIGNED, Misaligned<!mul(bytes, 16)>.Test,
                  !cond(!eq(bytes, 1): (do_each_lane b0),
                        !eq(bytes, 2): (do_each_lane b0, b1),
                        true: (do_each_lane b0, b1, b2, b3))),
      (do_erratum "main_memory_vector_store_unmasked",
                  (do_store MainMemory, !mul(bytes, 16), $address, line),
                  (do_each_lane (do_store MainMemory, bytes, (bv_add $address, first), part, (bv_lane_enabled))))];
  let DoesInScratchpad =
      !listconcat([(do_never_if (bv_eq (bv_mask), 0))], ScratchpadLanes<bytes, (bv_lane_enabled)>.L);
}

def MEM_LOAD32_S8  : LoadOp<0, "load32_s8", 1, bv_sext>;
def MEM_LOAD32_S16 : LoadOp<1, "load32_s16", 2, bv_sext>;
def MEM_LOAD32     : LoadOp<2, "load32", 4, bv_zext>;
// A 64-bit access, which no unit supports.
class DoubleOp<bits<6> num, string name, int latency, HwStatus status> : MemoryOp<num, name, latency, 8, 1> {
  let Status = status;
  let ScratchpadStatus = HwBug;
  let ScratchpadLatency = !if(!eq(latency, 0), 0, 11);
}
def MEM_LOAD64 : DoubleOp<3, "load64", 9, HwBug>;
def MEM_LOAD32_U8  : LoadOp<4, "load32_u8", 1, bv_zext>;
def MEM_LOAD32_U16 : LoadOp<5, "load32_u16", 2, bv_zext>;
def MEM_LOAD32_U   : LoadOp<6, "load32_u", 4, bv_zext>;
let Status = HwBug in {
  def MEM_LOAD_V16I8  : VectorLoadOp<7, "load_v16i8", 1, bv_sext>;
  def MEM_LOAD_V16I16 : VectorLoadOp<8, "load_v16i16", 2, bv_sext>;
}
def MEM_LOAD_V16I32 : VectorLoadOp<9, "load_v16i32", 4, bv_zext>;
def MEM_LOAD_V8I64 : DoubleOp<10, "load_v8i64", 9, HwBug>;
let Status = HwBug in {
  def MEM_LOAD_V16U8  : VectorLoadOp<11, "load_v16u8", 1, bv_zext>;
  def MEM_LOAD_V16U16 : VectorLoadOp<12, "load_v16u16", 2, bv_zext>;
}
def MEM_LOAD_V16U32 : VectorLoadOp<13, "load_v16u32", 4, bv_zext>;

// Takes a scalar base; the destination is a scalar, which becomes zero.
class GatherOp<bits<6> num, string name, int bytes> : MemoryOp<num, name, 9, bytes, 1> {
  let Status = HwNo;
  let ScratchpadStatus = HwNo;
  let ScratchpadLatency = 11;
  let DoesInScratchpad = [(do_set (bv_const 32, 0))];
}
def MEM_LOADG_I8  : GatherOp<14, "loadg_i8", 1>;
def MEM_LOADG_I16 : GatherOp<15, "loadg_i16", 2>;
def MEM_LOADG_I32 : GatherOp<16, "loadg_i32", 4>;
def MEM_LOADG_I64 : GatherOp<17, "loadg_i64", 8>;
def MEM_LOADG_U8  : GatherOp<18, "loadg_u8", 1>;
def MEM_LOADG_U16 : GatherOp<19, "loadg_u16", 2>;
def MEM_LOADG_U32 : GatherOp<20, "loadg_u32", 4>;

def MEM_STORE32_8  : StoreOp<32, "store32_8", 1>;
def MEM_STORE32_16 : StoreOp<33, "store32_16", 2>;
def MEM_STORE32    : StoreOp<34, "store32", 4>;
def MEM_STORE64 : DoubleOp<35, "store64", 0, HwNo>;
let Status = HwBug in {
  def MEM_STORE_V16I8  : VectorStoreOp<36, "store_v16i8", 1>;
  def MEM_STORE_V16I16 : VectorStoreOp<37, "store_v16i16", 2>;
  def MEM_STORE_V16I32 : VectorStoreOp<38, "store_v16i32", 4>;
}
def MEM_STORE_V8I64 : DoubleOp<39, "store_v8i64", 0, HwNo>;
// Stores a scalar: once in main memory; in the scratchpad to 16 words, regardless of the lane mask.
class ScatterOp<bits<6> num, string name, int bytes> : MemoryOp<num, name, 0, bytes, bytes> {
  let Status = HwBug;
  let ScratchpadStatus = HwBug;
  let DoesInScratchpad = ScratchpadLanes<bytes, (bv_const 1, 1)>.L;
}
def MEM_STORES_8  : ScatterOp<40, "stores_8", 1>;
def MEM_STORES_16 : ScatterOp<41, "stores_16", 2>;
def MEM_STORES_32 : ScatterOp<42, "stores_32", 4>;

//===----------------------------------------------------------------------===//
// Control (docs/machine/control.md)
//===----------------------------------------------------------------------===//

class CtrOp<bits<6> num, string name, HwUnit unit, int latency, list<dag> does>
    : HwOp<FrmCTR, num, name, unit, latency> {
  let Does = does;
}

def CTR_BARRIER : CtrOp<0, "barrier", UnitCTL, 0, [(do_barrier (bv_extract $a, 8, 0), (bv_extract $b, 6, 0))]>;
let Status = HwNo in
  def CTR_BARRIER_THREAD : CtrOp<1, "barrier_thread", UnitCTL, 0, [(do_nothing)]>;
// The checked alignment is that of the loads with the same opcode numbers.
def CTR_FLUSH : CtrOp<2, "flush", UnitLSU, 0, [
    (do_trap_if TRAP_MEMORY_MISALIGNED, (bv_ne (bv_extract $a, 1, 0), 0), (do_flush $a)),
    (do_flush $a)]>;
def CTR_READ_CR : CtrOp<3, "read_cr", UnitCTL, 7, [(do_set (bv_read_control (bv_extract $b, 5, 0)))]>;
def CTR_WRITE_CR : CtrOp<4, "write_cr", UnitCTL, 0, [(do_write_control (bv_extract $b, 5, 0), $a)]>;
let Status = HwBug in
  def CTR_DCACHE_INV : CtrOp<5, "dcache_inv", UnitLSU, 0, [
      (do_trap_if TRAP_MEMORY_MISALIGNED, (bv_ne (bv_extract $a, 0, 0), 0), (do_invalidate $a)),
      (do_invalidate $a)]>;

//===----------------------------------------------------------------------===//
// Branches (docs/machine/control.md)
//===----------------------------------------------------------------------===//

class JbaOp<bits<6> num, string name, list<dag> does, int latency = 0>
    : HwOp<FrmJBA, num, name, UnitBR, latency> {
  let Does = does;
}
class JraOp<bits<6> num, string name, list<dag> does, int latency = 0>
    : HwOp<FrmJRA, num, name, UnitBR, latency> {
  let Does = does;
}

def JBA_JMP : JbaOp<0, "jmp", [(do_jump $a)]>;
let Status = HwBug in // ra becomes target + 4
  def JBA_JMPSR : JbaOp<1, "jmpsr", [
      (do_set (bv_erratum "indirect_call_link", (bv_add $a, 4), (bv_add (bv_pc), 4))),
      (do_jump $a)], 7>;
let Status = HwNo in
  def JBA_JSYS  : JbaOp<2, "jsys", [(do_nothing)]>;
def JBA_JRET    : JbaOp<3, "jret", [(do_jump (bv_register RA_REG))]>;
let Status = HwBug in // a plain jump to the register
  def JBA_JERET : JbaOp<4, "jeret", [(do_jump $a)]>;
def JBA_BEQZ    : JbaOp<5, "beqz", [(do_branch (bv_eq $a, 0), $target)]>;
def JBA_BNEZ    : JbaOp<6, "bnez", [(do_branch (bv_ne $a, 0), $target)]>;

def JRA_JMP   : JraOp<0, "jmp", [(do_jump $target)]>;
def JRA_JMPSR : JraOp<1, "jmpsr", [(do_set (bv_add (bv_pc), 4)), (do_jump $target)], 7>;
let Status = HwNo in
  def JRA_JSYS  : JraOp<2, "jsys", [(do_nothing)]>;
let Status = HwBug in {
  // Jump to the program counter plus offset.
  def JRA_JRET  : JraOp<3, "jret", [(do_jump $target)]>;
  def JRA_JERET : JraOp<4, "jeret", [(do_jump $target)]>;
  // Test an operand that no scoreboard tracks.
  def JRA_BEQZ  : JraOp<5, "beqz", [(do_branch (bv_undefined 1), $target)]>;
  def JRA_BNEZ  : JraOp<6, "bnez", [(do_branch (bv_undefined 1), $target)]>;
}
