class C; def c : C;
defvar a = (c 1;
