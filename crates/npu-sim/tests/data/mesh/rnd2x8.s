; cores 2 threads 8 cycles 6046
movei s0, 0
 read_cr s1, s0
 movei s0, 2
 read_cr s2, s0
 movei s55, 4
 movei s50, 5
 movei s51, 15
moveil s3, 0
 moveih s3, 32
 shli s4, s1, 3
 add_i32 s4, s4, s2
 moveil s8, 1959
 mull_i32 s8, s8, s4
 addi s8, s8, 15
 barrier s50, s51
 movei s9, 24
again:
 moveil s10, 25173
 mull_i32 s8, s8, s10
 moveil s10, 13849
 add_i32 s8, s8, s10
 shri s11, s8, 6
 andi s12, s11, 15
 shli s12, s12, 6
 add_i32 s13, s3, s12
 shri s14, s8, 13
 andi s14, s14, 3
 shli s14, s14, 28
 add_i32 s13, s13, s14
 shri s15, s8, 17
 andi s15, s15, 15
 subi s15, s15, 4
 shri s15, s15, 31
 beqz s15, ld
 andi s16, s4, 15
 shli s16, s16, 2
 add_i32 s16, s16, s13
 store32 s9, (s16)
ld:
 load32 s17, (s13)
 add_i32 s18, s17, s17
 subi s9, s9, 1
 bnez s9, again
movei s40, 2
 movei s41, 11
 write_cr s40, s41
 jmp .
