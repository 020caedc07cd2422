// The arguments of a parent multiclass are not converted to the types of its parameters.
class Component<bits<5> op, string s> {
  string Name = "v_" # !substr(s, 2);
  bits<5> Op = op;
}
class Plain {
  int Plain = 1;
}
class Operator;
def none : Operator;
def add : Operator;
multiclass Base<bits<5> op, string s, dag pattern> {
  if !eq(op, -1) then
    def _e : Plain;
  else
    def _e : Plain, Component<op, s>;
  def _v {
    int Value = op;
    bits<5> Bits = op;
    dag Pattern = (add pattern, op);
  }
}
multiclass Without : Base<-1, "", none>;
multiclass With<bits<5> op, string s> : Base<op, s, (add 1)>;
defm A : Without;
defm B : With<3, "a_name">;
defm C : Base<-2, "c_name", (add none)>;

multiclass Bit<bit high, bit low> {
  def _i {
    field bits<4> Inst;
    bits<1> P;
    let Inst{3} = high;
    let Inst{2} = low;
    let Inst{1} = P;
    let Inst{0} = 1;
  }
}
multiclass FromBits<bits<2> two> : Bit<two{1}, {two{0}}>;
multiclass FromNumber : Bit<{1}, 0b0>;
defm D : FromBits<2>;
defm E : FromNumber;
