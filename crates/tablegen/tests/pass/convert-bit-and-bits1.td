class C<bit b, bits<1> c> { bits<1> x = b; bit y = c; int i = b; } def x : C<1, 0>;
