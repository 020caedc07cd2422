// A parent class with an error causes no follow-up errors about its missing fields.
class C<int n> { int a = n; int b = 2; }
let a = 3 in def x : C<nowhere> { let b = 4; }
def y : Unknown { let c = 1; }
def z : C<1> { let c = 1; }
