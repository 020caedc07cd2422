class { int x; }
class A<int> { }
class B : { }
class C { int ; }
class D { int x = ; }
def ok : D;
