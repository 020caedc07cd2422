defvar a = 1; defvar l = [1, 2]; defvar s = "x" # a;
class C<int n> { defvar m = !add(n, a); int v = m; int w = !add(m, m); }
def x : C<5> { defvar q = !add(v, 1); int y = q; } def z { list<int> ll = l; string ss = s; }
