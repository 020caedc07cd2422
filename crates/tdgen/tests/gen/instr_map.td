class Instruction { int Size = 4; }
class InstrMapping { string FilterClass; list<string> RowFields; list<string> ColFields; list<string> KeyCol; list<list<string>> ValueCols; }
class PredRel;
class Insn<string base, string sense> : Instruction, PredRel { string BaseOpcode = base; string PredSense = sense; }
multiclass ALU32_Pred<string base> { def _pt : Insn<base, "true">; def _pf : Insn<base, "false">; }
def Add : Insn<"ADD", "">; defm Add : ALU32_Pred<"ADD">;
def Sub : Insn<"SUB", "">; defm Sub : ALU32_Pred<"SUB">;
def Nop : Insn<"NOP", "">;
def getPredOpcode : InstrMapping { let FilterClass = "PredRel"; let RowFields = ["BaseOpcode"]; let ColFields = ["PredSense"]; let KeyCol = [""]; let ValueCols = [["true"], ["false"]]; }
def getRegOpcode : InstrMapping { let FilterClass = "PredRel"; let RowFields = ["BaseOpcode"]; let ColFields = ["PredSense"]; let KeyCol = ["true"]; let ValueCols = [[""]]; }
