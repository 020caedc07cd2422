def a;
/* never /* ends */
def b;
