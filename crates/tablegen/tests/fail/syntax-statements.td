defm a M;
foreach i [1] in def b;
if 1 def c;
let x in def d;
include 5
defvar q 3;
multiclass M;
nonsense;
;
}
def ok;
