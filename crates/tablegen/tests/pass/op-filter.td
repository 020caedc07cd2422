class C<list<int> l> { int n = 2; list<int> v = !filter(i, l, !gt(i, n)); }
def x : C<[1, 2, 3, 4]>; def y : C<[5, 1]> { let n = 0; }
