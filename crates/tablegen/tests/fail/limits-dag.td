class Op; def op : Op;
defvar a = !foldl((op 1), !range(21), d, at, !con(d, d));
