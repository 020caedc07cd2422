class C<int n> { int v = [1, 2][n]; } def a : C<5>; def b { int h = !head([]<int>); list<int> t = !tail([]<int>); list<int> s = !listsplat(1, -1); list<int> r = !range(0, 5, 0); }
