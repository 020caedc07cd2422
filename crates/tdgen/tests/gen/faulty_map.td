class Instruction;
class InstrMapping { string FilterClass; list<string> RowFields; list<string> ColFields; list<string> KeyCol; list<list<string>> ValueCols; }
class Rel : Instruction { string Row = "r"; string Col = "a"; }
def A : Rel; def B : Rel { let Col = "b"; } def B2 : Rel { let Col = "b"; }
class Map : InstrMapping { let FilterClass = "Rel"; let RowFields = ["Row"]; let ColFields = ["Col"]; let KeyCol = ["a"]; let ValueCols = [["c"]]; }
def empty : Map { let ValueCols = []; }
def shortEntry : Map { let ValueCols = [[]<string>]; }
def noRow : Map { let RowFields = ["Nope"]; }
def noCol : Map { let ColFields = ["Nope"]; }
def shortKey : Map { let KeyCol = []; }
def longKey : Map { let KeyCol = ["a", "b"]; }
def noClass : Map { let FilterClass = "Missing"; }
def unsetClass : Map { let FilterClass = ?; }
def twice : Map { let ValueCols = [["b"]]; }
