class C<bits<8> v, int i> { bits<4> hi = v{7-4}; bits<4> rev = v{0...3}; bit one = v{3}; bits<3> pick = v{7, 0, 2-2}; bits<2> ofint = 0x5{2-1}; }
def x : C<0xA5, 3>;
def y { bits<4> a = 0b0110; bits<8> cat = {a, a{3}, 0b101}; bits<2> both = {a{0}, a{2}}; }
