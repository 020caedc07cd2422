class R; def r : R; def s : R;
class C<int a, string t, R k> { bit v = !eq(a, 3); bit w = !eq(t, "a"); bit x = !eq(k, r); bit b = !eq(0b11, a); }
def x : C<3, "a", r>; def y : C<4, "b", s>;
