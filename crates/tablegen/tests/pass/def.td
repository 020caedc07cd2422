class A<int n> { int N = n; string me = NAME; }
def plain; def : A<1>; def "quoted" : A<2>; defvar p = "par"; def p # "t" : A<3>; def "p" # p # 1 : A<4>; def 8i : A<5>; def own { list<A> l = []; int n = 1; int m = n; }
def : A<6> { let N = 7; }
