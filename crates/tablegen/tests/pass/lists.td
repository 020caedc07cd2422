// Operators on lists, slices, element types.
class C<int n> { int N = n; }
class D<int n> : C<n>;
def c1 : C<1>; def d2 : D<2>;
def lists {
  list<int> a = [1, 2, 3,];
  list<int> b = !listconcat(a, [4], []<int>);
  list<int> c = !listsplat(7, 3);
  list<int> d = !listremove([1, 2, 3, 2], [2]);
  list<int> e = !range(4) # !range(2, 5) # !range(10, 0, -4) # !range(a);
  list<int> f = !listflatten([[1, 2], []<int>, [3]]);
  int g = !head(a);
  list<int> h = !tail(a);
  int i = !size(a);
  bit j = !empty([]<int>);
  int k = a[1];
  list<int> l = a[0, 2];
  list<int> m = a[0...1];
  list<int> n = a[2,];
  list<int> o = !foreach(x, a, !mul(x, x));
  list<int> p = !filter(x, a, !ne(x, 2));
  int q = !foldl(100, a, acc, x, !sub(acc, x));
  list<C> r = [c1, d2];
  list<string> s = !foreach(x, r, !cast<string>(x) # x.N);
  list<list<int>> t = [[1], []<int>, [2, 3]];
  list<string> u = []<string>;
  list<int> v = !foreach(x, !foreach(y, a, !add(y, 1)), !foldl(0, !range(x), sum, z, !add(sum, z)));
  list<C> w = !listremove(r, [c1]);
  list<bit> z = [0, 1, 1];
  list<int> zz = z;
}
