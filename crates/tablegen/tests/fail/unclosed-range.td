defvar a = 5{1;
