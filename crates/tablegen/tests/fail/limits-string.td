defvar a = !foldl("x", !range(25), text, at, !strconcat(text, text));
