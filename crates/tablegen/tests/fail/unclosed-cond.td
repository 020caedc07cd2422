defvar a = !cond(1: 2;
