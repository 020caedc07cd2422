; cores 2 threads 1 cycles 98
movei s0, 0
 read_cr s1, s0
 movei s0, 2
 read_cr s2, s0
 movei s55, 4
 movei s50, 5
 movei s51, 1
moveil s3, 0
 moveih s3, 2
 shli s4, s1, 16
 add_i32 s3, s3, s4
 barrier s50, s51
 store32 s1, (s3)
movei s40, 2
 movei s41, 11
 write_cr s40, s41
 jmp .
