// llvm-tblgen 22 never terminates for a `!subst` of the empty string, and requires a type for an empty list in a top-level `let`.
class C<string t> { string x = !subst("", "q", t); list<int> l = [1]; int n = [4, 5][1]; }
let l = [] in def x : C<"ab">;
