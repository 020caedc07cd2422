def op; def q; def a { dag c = !con((op), (q)); int g = !getdagarg<int>((op 1), 3); string n = !getdagname((op 1), "x"); dag d = !dag(op, [1, 2], ["a"]); dag e = !dag(op, ?, ?); dag f = (1 2); }
