class C<int a> { bit v = !initialized(a); int u = a; }
def x : C<1>; def y : C<0>;
def z { bit v = !initialized(?); bit w = !initialized("s"); }
