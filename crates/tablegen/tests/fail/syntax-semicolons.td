// An unexpected token where the statement should end.
defvar x = 1 2;
defvar y 1;
dump "x" 1;
assert 1, "x" 1;
