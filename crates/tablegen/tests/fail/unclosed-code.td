def a;
def b { code c = [{ never ends }
