include "machine.inc"
include "NaplesPURelocs.td"

def R_TWICE : Reloc<1, "R_NPU_TWICE", RelAbs, 0, 32, CheckNone>;
def R_WIDE : Reloc<20, "R_NPU_WIDE", RelAbs, 16, 18, CheckNone>;
def RelOdd : RelocFormula<"odd">;
def R_ODD : Reloc<21, "R_NPU_ODD", RelOdd, 0, 32, CheckNone>;
def CR_AGAIN : ControlRegister<0, "again", "r", "A number that is taken.">;
def CR_TILE : ControlRegister<60, "tile_id", "r", "A name that is taken.">;
def TRAP_AGAIN : TrapReason<0x40, "again">;
def ErratumSilent : Erratum<"silent">;
def TRAP_NAME : TrapReason<0x41, "memory_misaligned">;
