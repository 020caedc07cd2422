; cores 8 threads 1 cycles 3276
movei s0, 0
 read_cr s1, s0
 movei s0, 2
 read_cr s2, s0
 movei s55, 4
 movei s50, 5
 movei s51, 7
moveil s3, 0
 moveih s3, 16
 shli s4, s1, 18
 add_i32 s3, s3, s4
 shli s4, s2, 12
 add_i32 s3, s3, s4
 barrier s50, s51
 movei s9, 16
again:
 load32 s5, (s3)
 add_i32 s6, s5, s5
 addi s3, s3, 64
 subi s9, s9, 1
 bnez s9, again
movei s40, 2
 movei s41, 11
 write_cr s40, s41
 jmp .
