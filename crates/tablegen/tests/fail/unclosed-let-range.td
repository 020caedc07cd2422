class W { bits<2> a; let a{1 = 1; }
