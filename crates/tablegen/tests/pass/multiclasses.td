// Nested multiclasses, parent multiclasses, loops and conditions over arguments, names.
class Inst<string n, int o> { string Name = n; int Op = o; string Whole = NAME; }
class Tag { bit Tagged = 1; int Level = 0; }
multiclass RR<int o, list<string> ts = ["i", "f"]> {
  def rr : Inst<"rr", o>;
  def NAME : Inst<NAME, o>;
  def pre_ # NAME # _post : Inst<"mid", o>;
  foreach t = ts in { def _ # t : Inst<t, !add(o, 1)>; if !eq(t, "f") then def _is_f : Inst<"F", o>; else def _not_f_#t : Inst<"N", o>; }
}
multiclass Leaf<int o> { def leaf : Inst<"leaf" # NAME, o>; }
multiclass Outer<int o> : RR<o> { defm _in : RR<!add(o, 10), ["z"]>; defm "" : Leaf<o>; defvar twice = !add(o, o); def tw : Inst<"t", twice>; }

defm A : RR<1>;
defm B : Outer<2>, Tag;
let Level = 7 in defm C : Leaf<3>, Tag;
foreach i = 0...2 in defm D#i : Leaf<i>;
defm : Leaf<9>;
defset list<Inst> Set = { defm S : Leaf<1>; def S2 : Inst<"s2", 2>; }
def useset { list<Inst> l = Set; int n = !size(Set); }
foreach x = Set in def from_#x : Inst<x.Name, x.Op>;
