defvar a = [1][0;
