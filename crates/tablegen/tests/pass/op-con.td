def op; def q;
class C<dag d> { dag v = !con(d, (op 1:$x)); dag n = !con((op), d, (op 2, 3:$y)); dag u = !con((? 5), d); }
def x : C<(op 4:$z)>; def y : C<(op)>;
