; cores 8 threads 8 cycles 143
movei s0, 0
 read_cr s1, s0
 movei s0, 2
 read_cr s2, s0
 movei s55, 4
movei s40, 2
 movei s41, 11
 write_cr s40, s41
 jmp .
