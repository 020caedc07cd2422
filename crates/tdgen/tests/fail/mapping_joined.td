include "machine.inc"

class Rel<string row, string form> {
  string Row = row;
  string Form = form;
}

class Two<HwOp op, string row, string form>
    : InstRR2<op, 0, 0, 0, 0, (outs GPR32:$dst), (ins GPR32:$src0, GPR32:$src1), "x $dst, $src0, $src1">,
      Rel<row, form>;

def ADD : Two<RR_ADD, "add", "old">;
def SUB : Two<RR_SUB, "add", "new">;

// Two records of one relation that map the same key.
class Map : InstrMapping {
  let Relation = "renew";
  let FilterClass = "Rel";
  let RowFields = ["Row"];
  let ColFields = ["Form"];
  let KeyCol = ["old"];
  let ValueCols = [["new"]];
}
def One : Map;
def Other : Map;
def Wider : Map { let ValueCols = [["new"], ["old"]]; }
