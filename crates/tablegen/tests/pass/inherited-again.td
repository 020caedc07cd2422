// A field that is inherited again keeps its type; only the new value has to fit.
class Wide {
  field bits<21> Offset;
  let Offset{20-7} = 5;
  int Size = 4;
}
class Narrow {
  bit Offset = ?;
  bits<3> Size = 2;
}
def Both : Wide, Narrow;
