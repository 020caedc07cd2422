// llvm-tblgen 22: a subst of the empty string never ends; an empty list in a top-level let needs a type.
class C<string t> { string x = !subst("", "q", t); list<int> l = [1]; int n = [4, 5][1]; }
let l = [] in def x : C<"ab">;
