//===- NaplesPUHwOps.td - opcode numbers of the hardware --------------------===//
//
// Every number the hardware gives a meaning to, also those without an instruction
// (microarch.md 4). Instructions take opcode bits, unit and latency from here.
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

// What comes of the operation on the machine.
class HwStatus<string name> {
  string Name = name;
}

def HwOk   : HwStatus<"ok">;
def HwBug  : HwStatus<"bug">;   // gives something else than the name says
def HwNo   : HwStatus<"no">;    // not implemented, harmless
def HwHang : HwStatus<"hang">;  // the thread never goes on

class HwOp<InstFormat fmt, bits<6> num, string name, HwUnit unit, int latency> {
  InstFormat Format = fmt;
  bits<6> Code = num;
  string Name = name;
  HwUnit Unit = unit;
  HwStatus Status = HwOk;
  // Issue of the producer to issue of a dependent instruction, in cycles, for a cache hit
  // without write-back contention (microarch.md 9.2); 0 without a result.
  int Latency = latency;
  // Floating point operations may not have equal issue cycle + slot (microarch.md 9.3); -1: none.
  int FpSlot = -1;
  // The same operation on the scratchpad. Only loads and stores have one.
  HwStatus ScratchpadStatus = HwNo;
  int ScratchpadLatency = 0;
  // Bytes accessed for a scalar, for one lane of a vector; 0 if no memory is touched.
  int AccessBytes = 0;
  // Alignment in main memory that the hardware checks, in bytes.
  int Alignment = 0;
}

//===----------------------------------------------------------------------===//
// R format, and I format for numbers below 32 (microarch.md 4.1)
//===----------------------------------------------------------------------===//

class IntOp<bits<6> num, string name> : HwOp<FrmRR, num, name, UnitINT, 7>;

class FpOp<bits<6> num, string name, int latency, int slot>
    : HwOp<FrmRR, num, name, UnitFP, latency> {
  let FpSlot = slot;
}

def RR_NOT     : IntOp<0, "not">;
def RR_OR      : IntOp<1, "or">;
def RR_AND     : IntOp<2, "and">;
def RR_XOR     : IntOp<3, "xor">;
def RR_ADD     : IntOp<4, "add">;
def RR_SUB     : IntOp<5, "sub">;
def RR_MULL    : IntOp<6, "mull">;
def RR_MULHS   : IntOp<7, "mulhs">;
def RR_MULHU   : IntOp<8, "mulhu">;
def RR_ASHR    : IntOp<9, "ashr">;
def RR_SHR     : IntOp<10, "shr">;
def RR_SHL     : IntOp<11, "shl">;
def RR_CLZ     : IntOp<12, "clz">;
def RR_CTZ     : IntOp<13, "ctz">;
def RR_CMPEQ   : IntOp<14, "cmpeq">;
def RR_CMPNE   : IntOp<15, "cmpne">;
def RR_CMPGT   : IntOp<16, "cmpgt">;
def RR_CMPGE   : IntOp<17, "cmpge">;
def RR_CMPLT   : IntOp<18, "cmplt">;
def RR_CMPLE   : IntOp<19, "cmple">;
def RR_CMPUGT  : IntOp<20, "cmpugt">;
def RR_CMPUGE  : IntOp<21, "cmpuge">;
def RR_CMPULT  : IntOp<22, "cmpult">;
def RR_CMPULE  : IntOp<23, "cmpule">;
def RR_SHUFFLE : IntOp<24, "shuffle">;
def RR_GETLANE : IntOp<25, "getlane">;
def RR_MOVE    : IntOp<32, "move">;
let Status = HwBug in {
  def RR_FADD   : FpOp<33, "fadd", 12, 4>;
  def RR_FSUB   : FpOp<34, "fsub", 12, 4>;
  def RR_FMUL   : FpOp<35, "fmul", 11, 3>;
  def RR_FDIV   : FpOp<36, "fdiv", 24, 16>;
  def RR_CMPFEQ : FpOp<37, "cmpfeq", 8, 0>;
  def RR_CMPFNE : FpOp<38, "cmpfne", 8, 0>;
  def RR_CMPFGT : FpOp<39, "cmpfgt", 8, 0>;
  def RR_CMPFGE : FpOp<40, "cmpfge", 8, 0>;
  def RR_CMPFLT : FpOp<41, "cmpflt", 8, 0>;
  def RR_CMPFLE : FpOp<42, "cmpfle", 8, 0>;
}
def RR_SEXT8  : IntOp<43, "sext8">;
def RR_SEXT16 : IntOp<44, "sext16">;
def RR_SEXT32 : IntOp<45, "sext32">;
let Status = HwHang in {
  def RR_F32TOF64 : FpOp<46, "f32tof64", 0, -1>;
  def RR_F64TOF32 : FpOp<47, "f64tof32", 0, -1>;
}
let Status = HwBug in {
  def RR_ITOF : FpOp<48, "itof", 13, 5>;
  def RR_FTOI : FpOp<49, "ftoi", 11, 3>;
}
def RR_CRTMASK : IntOp<50, "crt_mask">;
let Status = HwHang in
  def RR_CRP : HwOp<FrmRR, 63, "crp", UnitNone, 0>;

//===----------------------------------------------------------------------===//
// MOVEI format (microarch.md 4.2)
//===----------------------------------------------------------------------===//

def MVI_MOVEIL : HwOp<FrmMVI, 0, "moveil", UnitINT, 7>;
def MVI_MOVEIH : HwOp<FrmMVI, 1, "moveih", UnitINT, 7>;
def MVI_MOVEI  : HwOp<FrmMVI, 2, "movei", UnitINT, 7>;

//===----------------------------------------------------------------------===//
// M format (microarch.md 4.3)
//===----------------------------------------------------------------------===//

class LoadOp<bits<6> num, string name, int bytes, int align>
    : HwOp<FrmMEM, num, name, UnitLSU, 9> {
  let ScratchpadLatency = 11;
  let ScratchpadStatus = HwOk;
  let AccessBytes = bytes;
  let Alignment = align;
}

class StoreOp<bits<6> num, string name, int bytes, int align>
    : HwOp<FrmMEM, num, name, UnitLSU, 0> {
  let ScratchpadStatus = HwOk;
  let AccessBytes = bytes;
  let Alignment = align;
}

def MEM_LOAD32_S8  : LoadOp<0, "load32_s8", 1, 1>;
def MEM_LOAD32_S16 : LoadOp<1, "load32_s16", 2, 2>;
def MEM_LOAD32     : LoadOp<2, "load32", 4, 4>;
let Status = HwBug, ScratchpadStatus = HwBug in
  def MEM_LOAD64   : LoadOp<3, "load64", 8, 1>;
def MEM_LOAD32_U8  : LoadOp<4, "load32_u8", 1, 1>;
def MEM_LOAD32_U16 : LoadOp<5, "load32_u16", 2, 2>;
def MEM_LOAD32_U   : LoadOp<6, "load32_u", 4, 4>;
let Status = HwBug in {
  def MEM_LOAD_V16I8  : LoadOp<7, "load_v16i8", 1, 16>;
  def MEM_LOAD_V16I16 : LoadOp<8, "load_v16i16", 2, 32>;
}
def MEM_LOAD_V16I32 : LoadOp<9, "load_v16i32", 4, 64>;
let Status = HwBug, ScratchpadStatus = HwBug in
  def MEM_LOAD_V8I64 : LoadOp<10, "load_v8i64", 8, 1>;
let Status = HwBug in {
  def MEM_LOAD_V16U8  : LoadOp<11, "load_v16u8", 1, 16>;
  def MEM_LOAD_V16U16 : LoadOp<12, "load_v16u16", 2, 32>;
}
def MEM_LOAD_V16U32 : LoadOp<13, "load_v16u32", 4, 64>;

// Scalar base, scalar destination that becomes zero.
let Status = HwNo, ScratchpadStatus = HwNo in {
  def MEM_LOADG_I8  : LoadOp<14, "loadg_i8", 1, 1>;
  def MEM_LOADG_I16 : LoadOp<15, "loadg_i16", 2, 1>;
  def MEM_LOADG_I32 : LoadOp<16, "loadg_i32", 4, 1>;
  def MEM_LOADG_I64 : LoadOp<17, "loadg_i64", 8, 1>;
  def MEM_LOADG_U8  : LoadOp<18, "loadg_u8", 1, 1>;
  def MEM_LOADG_U16 : LoadOp<19, "loadg_u16", 2, 1>;
  def MEM_LOADG_U32 : LoadOp<20, "loadg_u32", 4, 1>;
}

def MEM_STORE32_8  : StoreOp<32, "store32_8", 1, 1>;
def MEM_STORE32_16 : StoreOp<33, "store32_16", 2, 2>;
def MEM_STORE32    : StoreOp<34, "store32", 4, 4>;
let Status = HwNo, ScratchpadStatus = HwBug in
  def MEM_STORE64  : StoreOp<35, "store64", 8, 1>;
// In main memory they ignore the lane mask.
let Status = HwBug in {
  def MEM_STORE_V16I8  : StoreOp<36, "store_v16i8", 1, 16>;
  def MEM_STORE_V16I16 : StoreOp<37, "store_v16i16", 2, 32>;
  def MEM_STORE_V16I32 : StoreOp<38, "store_v16i32", 4, 64>;
}
let Status = HwNo, ScratchpadStatus = HwBug in
  def MEM_STORE_V8I64 : StoreOp<39, "store_v8i64", 8, 1>;
// A scalar store in main memory; in the scratchpad the scalar goes to 16 words.
let Status = HwBug, ScratchpadStatus = HwBug in {
  def MEM_STORES_8  : StoreOp<40, "stores_8", 1, 1>;
  def MEM_STORES_16 : StoreOp<41, "stores_16", 2, 2>;
  def MEM_STORES_32 : StoreOp<42, "stores_32", 4, 4>;
}

//===----------------------------------------------------------------------===//
// Control (microarch.md 4.5)
//===----------------------------------------------------------------------===//

def CTR_BARRIER        : HwOp<FrmCTR, 0, "barrier", UnitCTL, 0>;
let Status = HwNo in
  def CTR_BARRIER_THREAD : HwOp<FrmCTR, 1, "barrier_thread", UnitCTL, 0>;
def CTR_FLUSH          : HwOp<FrmCTR, 2, "flush", UnitLSU, 0>;
def CTR_READ_CR        : HwOp<FrmCTR, 3, "read_cr", UnitCTL, 7>;
def CTR_WRITE_CR       : HwOp<FrmCTR, 4, "write_cr", UnitCTL, 0>;
let Status = HwBug in
  def CTR_DCACHE_INV   : HwOp<FrmCTR, 5, "dcache_inv", UnitLSU, 0>;

//===----------------------------------------------------------------------===//
// Branches (microarch.md 4.4)
//===----------------------------------------------------------------------===//

class JbaOp<bits<6> num, string name, int latency = 0> : HwOp<FrmJBA, num, name, UnitBR, latency>;
class JraOp<bits<6> num, string name, int latency = 0> : HwOp<FrmJRA, num, name, UnitBR, latency>;

def JBA_JMP   : JbaOp<0, "jmp">;
let Status = HwBug in // ra becomes target + 4
  def JBA_JMPSR : JbaOp<1, "jmpsr", 7>;
let Status = HwNo in
  def JBA_JSYS  : JbaOp<2, "jsys">;
def JBA_JRET  : JbaOp<3, "jret">;
let Status = HwBug in // a plain jump to the register
  def JBA_JERET : JbaOp<4, "jeret">;
def JBA_BEQZ  : JbaOp<5, "beqz">;
def JBA_BNEZ  : JbaOp<6, "bnez">;

def JRA_JMP   : JraOp<0, "jmp">;
def JRA_JMPSR : JraOp<1, "jmpsr", 7>;
let Status = HwNo in
  def JRA_JSYS  : JraOp<2, "jsys">;
// Jump to the program counter plus offset.
let Status = HwBug in {
  def JRA_JRET  : JraOp<3, "jret">;
  def JRA_JERET : JraOp<4, "jeret">;
  // Test an operand that no scoreboard tracks.
  def JRA_BEQZ  : JraOp<5, "beqz">;
  def JRA_BNEZ  : JraOp<6, "bnez">;
}
