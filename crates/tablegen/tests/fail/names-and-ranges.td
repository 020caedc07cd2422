// Names of records must be strings, and ranges must not be negative.
def !add(1, 2);
foreach i = [1, 2] in def i;
foreach i = {-1...2} in def "a" # i;
foreach i = 1...-2 in def "b" # i;
foreach i = 0b110-0b111 in def "c" # i;
def N { int n = -0x1; }
def O { int n = 18446744073709551616; }
multiclass L { def x; }
multiclass M<int i> { def i; foreach j = [1, 2] in def j; defm 7 : L; }
defm P : M<5>;
multiclass Q { def ?; }
defm R : Q;
