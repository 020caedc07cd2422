class C<int a, int b = 2, int c = !add(a, b)> { list<int> l = [a, b, c]; }
def p : C<1>; def q : C<1, c = 9>; def r : C<b = 5, a = 6>; multiclass M<int x, int y = 3> { def _d : C<x, b = y>; } defm m : M<y = 8, x = 7>;
