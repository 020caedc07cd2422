// one
/* two /* nested */ still */ def x; /* end */ def y /**/ { /* in */ int a = /* v */ 1; }
