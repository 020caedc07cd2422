// In braces, a variable contributes all of its bits, and any other unknown value one bit.
class Enable<bit even> {
  bit Even = even;
}
class Inst<bits<4> o, Enable e, bits<2> two> {
  bits<5> Op = {o{3-1}, !if(!eq(e.Even, 1), 0, o{0}), 1};
  bits<4> Pair = {two, 0, !not(o{2})};
}
def A : Inst<15, Enable<1>, 2>;
def B : Inst<15, Enable<0>, 1>;
// A bit of an unset field remains a reference to the field.
def C {
  bits<8> Inst;
  bits<2> src;
  bit d16;
  bit none = ?;
  let Inst{7...4} = 0xf;
  let Inst{3} = d16;
  let Inst{2} = none;
  let Inst{1...0} = src;
}
