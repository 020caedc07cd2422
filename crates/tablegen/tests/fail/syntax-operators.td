// Incomplete values.
defvar a1 = !cond 1;
defvar a2 = !cond(1, 2);
defvar a4 = !cond();
defvar a5 = !switch 1;
defvar a6 = !switch(1);
defvar a7 = !switch(1, 1: 2);
defvar a8 = !switch(1, 2 3);
defvar a9 = !add 1;
defvar a10 = !cast<int(1);
defvar a12 = [1]<int;
defvar a18 = A<1 = 2>;
defvar a19 = !isa<list<int)>(1);
defvar a19b = !nonsense<int(1);
