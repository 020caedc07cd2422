class C<list<list<int>> l> { list<int> v = !listflatten(l); list<int> w = !listflatten([1, 2]); list<list<int>> x = !listflatten([l, l]); }
def x : C<[[1, 2], [], [3]]>;
