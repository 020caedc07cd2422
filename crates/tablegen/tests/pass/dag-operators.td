// Any named value may be the operator of a dag. `!con` waits until the operators are records.
class Operator;
def add : Operator;
deftype text = string;
class Any<text op, int n, Operator o, dag d> {
  dag Text = (op 1, 2);
  dag Number = (n 3:$x);
  dag Record = (o d);
  dag Joined = !con((o 1), (o 2));
  dag OfNothing = !con((? 1), (add 2), d);
  dag Made = !dag(op, [n], ["name"]);
}
def A : Any<"word", 7, add, (add 1)>;
foreach name = ["p", "q"] in def name { dag Name = (name 1); }
