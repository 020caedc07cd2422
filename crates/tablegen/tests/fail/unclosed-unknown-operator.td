defvar a = !nonsense(1;
