// What a class that cannot be read would have brought along is not missed as well.
class C<int n> { int a = n; int b = 2; }
let a = 3 in def x : C<nowhere> { let b = 4; }
def y : Unknown { let c = 1; }
def z : C<1> { let c = 1; }
