include "machine.inc"

class Rel<string row, string form> {
  string Row = row;
  string Form = form;
}

class Two<HwOp op, string row, string form>
    : InstRR2<op, 0, 0, 0, 0, (outs GPR32:$dst), (ins GPR32:$src0, GPR32:$src1), "x $dst, $src0, $src1">,
      Rel<row, form>;

def ADD : Two<RR_ADD, "add", "old">;
def ADD2 : Two<RR_SUB, "add", "new">;
def ADD3 : Two<RR_OR, "add", "new">;
def PSEUDO : Rel<"pseudo", "old">;

class Map : InstrMapping {
  let FilterClass = "Rel";
  let RowFields = ["Row"];
  let ColFields = ["Form"];
  let KeyCol = ["old"];
  let ValueCols = [["new"]];
}

def TwoMatches : Map;
def NoValues : Map { let ValueCols = []; }
def LongEntry : Map { let ValueCols = [["new", "newer"]]; }
def LongKey : Map { let KeyCol = ["old", "older"]; }
def ShortKey : Map { let KeyCol = []; }
def NoClass : Map { let FilterClass = "Relation"; }
def UnsetClass : Map { let FilterClass = ?; }
def NoRowField : Map { let RowFields = ["Rwo"]; }
def NoColField : Map { let ColFields = ["From"]; }
def Duplicate : Map { let ValueCols = [["new"], ["new"]]; }
def NeverKey : Map { let KeyCol = ["odl"]; }
def NeverColumn : Map { let ValueCols = [["nwe"]]; }
