// Multiclasses with parent multiclasses.
class Room<string f, int n> { string Floor = f; int Number = n; string Sign = NAME; }
multiclass Ground<int n> { def _hall : Room<"ground", n>; def _kitchen : Room<"ground", !add(n, 1)>; }
multiclass First<int n> : Ground<n> { def _bed : Room<"first", !mul(n, 10)>; }
multiclass House<int n> { defm _main : First<n>; defm _annex : Ground<!add(n, 5)>; }
defm red : House<1>; defm blue : House<2>;
