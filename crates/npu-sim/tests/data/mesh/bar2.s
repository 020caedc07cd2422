; cores 2 threads 1 cycles 521
movei s0, 0
 read_cr s1, s0
 movei s0, 2
 read_cr s2, s0
 movei s55, 4
 movei s50, 5
 movei s51, 1
 movei s9, 10
again:
 barrier s50, s51
 subi s9, s9, 1
 bnez s9, again
movei s40, 2
 movei s41, 11
 write_cr s40, s41
 jmp .
