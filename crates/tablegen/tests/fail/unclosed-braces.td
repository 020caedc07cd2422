defvar a = {1;
