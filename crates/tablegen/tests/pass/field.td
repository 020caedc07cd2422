class E { field bits<8> Inst; bits<3> op; let Inst{2-0} = op; let Inst{7-3} = 0b10101; field string free; }
def x : E; def y : E { let op = 5; let free = "set"; }
