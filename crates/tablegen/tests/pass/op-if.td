class A { int n = 1; } class B : A; class D : A; def b : B; def d : D;
class C<bit c, bits<4> q> { int v = !if(c, 1, 2); A r = !if(c, b, d); list<int> l = !if(c, [1], []); bits<4> f = ?; bits<8> i; let i{3-0} = !if(c, f, 0); let i{7-4} = !if(c, q, 9); dag g = !if(c, (b 1), (d)); int z = ?; int lazy = !if(!eq(q, 3), 1, !div(1, !sub(q, 3))); }
def x : C<1, 3>; def y : C<1, 5> { let f = 6; }
