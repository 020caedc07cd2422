        jmpsr   helpr
        leah    s0, table
        leal    s0, table
helper: jret
