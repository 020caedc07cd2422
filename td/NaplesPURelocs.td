//===- NaplesPURelocs.td - object files and relocations ----------------------===//
//
// docs/machine/objects.md.
//
//===----------------------------------------------------------------------===//

// How the value of a relocation is computed: S is the symbol, A the addend, P the address of the
// field.
class RelocFormula<string name> {
  string Name = name;
}

def RelNone     : RelocFormula<"none">;
def RelAbs      : RelocFormula<"abs">;       // S + A
def RelPc       : RelocFormula<"pc">;        // S + A - P
def RelAbsHigh  : RelocFormula<"abs_high">;  // ((S + A) >> 16) & 0xFFFF
def RelAbsLow   : RelocFormula<"abs_low">;   // (S + A) & 0xFFFF

class RelocCheck<string name> {
  string Name = name;
}

def CheckNone   : RelocCheck<"none">;
def CheckSigned : RelocCheck<"signed">;      // the value fits the field as a signed number

// The field is FieldWidth bits from bit FieldLow up of the little-endian word at P.
class Reloc<int num, string name, RelocFormula formula, int low, int width, RelocCheck chk> {
  int Number = num;
  string Name = name;
  RelocFormula Formula = formula;
  int FieldLow = low;
  int FieldWidth = width;
  RelocCheck Check = chk;
  bit PCRel = !eq(formula.Name, RelPc.Name);
}

def R_NPU_NONE         : Reloc<0, "R_NPU_NONE", RelNone, 0, 0, CheckNone>;
def R_NPU_ABS32        : Reloc<1, "R_NPU_ABS32", RelAbs, 0, 32, CheckNone>;
def R_NPU_BRANCH       : Reloc<2, "R_NPU_BRANCH", RelPc, 0, 18, CheckSigned>;
// The old linker resolves the next three against an entry of a global offset table. The formulas
// here are what they mean.
def R_NPU_PCREL_MEM    : Reloc<3, "R_NPU_PCREL_MEM", RelPc, 3, 9, CheckSigned>;
def R_NPU_PCREL_LEA    : Reloc<4, "R_NPU_PCREL_LEA", RelPc, 3, 9, CheckSigned>;
def R_NPU_PCREL_EXT    : Reloc<5, "R_NPU_PCREL_EXT", RelPc, 3, 9, CheckSigned>;
def R_NPU_ABS_HIGH_LEA : Reloc<6, "R_NPU_ABS_HIGH_LEA", RelAbsHigh, 2, 16, CheckNone>;
def R_NPU_ABS_LOW_LEA  : Reloc<7, "R_NPU_ABS_LOW_LEA", RelAbsLow, 2, 16, CheckNone>;

class ElfTarget {
  int Machine = 0;
  int Class = 0;        // EI_CLASS
  int Data = 0;         // EI_DATA
  int Flags = 0;
  int OsAbi = 0;
  int TextAlign = 0;    // bytes
  int PageSize = 0;     // bytes
  string ScratchpadSection = "";
  // Sections for unwinding exceptions: frames of a fixed number of words; the last word is the
  // address of a list of calls.
  string UnwindFramesSection = "";
  string UnwindCallsSection = "";
  int UnwindFrameWords = 0;
  int UnwindNone = 0;   // means: no return address is saved, or: a handler for every tag
  int CodeAlignFactor = 0;
  int DataAlignFactor = 0;
}

def NaplesPUElf : ElfTarget {
  let Machine = 9876;
  let Class = 1;        // ELFCLASS32
  let Data = 1;         // ELFDATA2LSB
  let TextAlign = 4;
  let PageSize = 0x1000;
  let ScratchpadSection = "scratchpad";
  let UnwindFramesSection = ".npu_frames";
  let UnwindCallsSection = ".npu_calls";
  let UnwindFrameWords = 6;
  let UnwindNone = 0xffffffff;
  let CodeAlignFactor = 1;
  let DataAlignFactor = -4;
}
