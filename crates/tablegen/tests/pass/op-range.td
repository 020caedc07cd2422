class C<int n, list<int> l> { list<int> v = !range(n); list<int> w = !range(1, n); list<int> x = !range(n, 0, -2); list<int> y = !range(l); }
def x : C<5, [7, 8]>; def y : C<0, []>; def z : C<-1, [1]>;
