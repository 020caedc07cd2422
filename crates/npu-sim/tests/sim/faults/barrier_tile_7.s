// cores: 2
// fault: none
// Tile 7 has a core, which does not run.
        .org 0x400
_start:
        movei s50, 224
        movei s51, 1
        barrier s50, s51

        movei   s40, 2
        movei   s41, 11
        write_cr s40, s41
        jmp     .
