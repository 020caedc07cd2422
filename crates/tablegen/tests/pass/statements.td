// Loops, conditions, variables, types, assertions, preprocessor, paste.
#define HERE
#ifdef HERE
def here;
#ifndef NOT_HERE /* comment */
def nested; // comment
#else
def broken : Nothing<{;
#endif
#else
#ifdef HERE
this is skipped
#endif
#endif
deftype Word = bits<8>;
defvar g = "G";
def vars { Word w = 3; defvar local = !add(1, 2); int l = local; string s = g#g; string t = g # "x"; string u = "lit"#g; }
foreach i = {0-2, 5, 9-8} in def num#i { int n = i; }
foreach i = 3-1 in def down#i;
foreach i = ["a", "b"] in foreach j = !range(2) in { defvar k = i # j; def both_#k { string s = k; } }
if !lt(1, 2) then { def then1; defvar z = 1; } else { def else1; }
if false then def never; else if true then def chain; else def never2;
class Checked<int n> { assert !gt(n, 0), "positive: " # n; int N = n; }
def checked : Checked<1>;
assert true, "fine";
def cond { string c = !cond(!eq(1, 2): "no", !eq(1, 1): "yes", true: "default",); int i = !if(1, 2, !div(1, 1)); string n = !if(0, "a", ""); }
def "quoted name" { int x = 1; }
def "8" # i;
def 7up { int x = 7; }
def if_ { bit b = true; bit c = !if(true, true, false); }
