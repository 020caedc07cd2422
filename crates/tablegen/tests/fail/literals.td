def a { int big = 99999999999999999999; int hex = 0x11111111111111111; string s = "open
; string t = "bad \q"; code c = 5; int at = 1 @ 2; bits<99999999> w = 0; }
