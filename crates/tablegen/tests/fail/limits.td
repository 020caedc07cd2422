// Programs that exceed limits.
class B<int n> { B b = B<!add(n, 1)>; }
def z : B<0>;
