class Op; def op : Op;
defvar a = !foldl((op 1), !range(2000), d, at, (op d));
