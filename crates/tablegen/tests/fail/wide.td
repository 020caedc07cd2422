class W { bits<100000000> w; int big = 99999999999999999999; }
foreach i = 0-99999999 in def a#i;
def r { list<int> l = !range(0, 10000000000); list<int> m = !listsplat(1, 10000000000); bits<4> b = 1; let b{4000000000} = 1; let b{100-0} = 1; }
