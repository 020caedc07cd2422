defvar value = 1;
def a { int x = valu; int y = x; int z = C; }
class C<int count> { int n = cout; }
