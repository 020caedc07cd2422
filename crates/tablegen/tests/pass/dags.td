// Dags and their operators.
class Op; def op : Op; def op2 : Op; def other;
def dags {
  dag a = (op 1:$x, "s":$y, $z, (op2 ?:$true, op):$n, op2);
  dag b = (op:$name 1);
  dag c = !con((op 1:$a), (op 2:$b), (op));
  dag d = !dag(op, [1, 2], ["x", ?]);
  dag e = !dag(op2, ?, ["p", "q"]);
  Op f = !getdagop<Op>(a);
  dag g = !setdagop(a, op2);
  int h = !getdagarg<int>(a, 0);
  string i = !getdagarg<string>(a, "y");
  string j = !getdagname(a, 1);
  dag k = !setdagarg(a, "z", 7);
  dag l = !setdagname(a, 0, "first");
  string m = !getdagopname(b);
  dag n = !setdagopname(c, "new");
  int o = !size(a);
  bit p = !empty((op));
  dag q = !foreach(x, (op op2, other), !subst(op2, op, x));
  bit s = !empty(a);
}
