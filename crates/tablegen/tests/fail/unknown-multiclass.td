multiclass Alu<int n> { def x; }
defm a : Alo<1>;
class C; def b : Alu<1>;
