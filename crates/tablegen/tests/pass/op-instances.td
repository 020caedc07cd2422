class A; def a1 : A; def a10 : A; def a2 : A; def b;
def x { list<A> v = !instances<A>(); list<A> w = !instances<A>("1"); }
defvar top = !instances<A>();
def later : A; def y { list<A> v = top; list<A> w = !instances<A>(); }
