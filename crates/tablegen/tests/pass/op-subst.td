class R; def r : R; def s : R;
class C<string t, R k> { string v = !subst("a", "bb", t); R w = !subst(r, s, k); }
def x : C<"banana", r>; def y : C<"", s>;
