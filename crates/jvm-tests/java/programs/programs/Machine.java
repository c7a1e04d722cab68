package programs;

/** An interpreter: one large switch in a loop that runs a small program. */
public final class Machine {
    private static final int[] PROGRAM = {
        1, 0, 0, 1, 1, 1, 2, 0, 1, 3, 5, 0, 4, 1, 0, 5, 1, 1013, 6, 0, 1000, 6, 9, 7,
    };

    private Machine() {}

    public static long run() {
        long[] registers = new long[4];
        long steps = 0;
        int at = 0;
        while (true) {
            steps++;
            switch (PROGRAM[at]) {
                case 1:
                    registers[PROGRAM[at + 1]] = PROGRAM[at + 2];
                    at += 3;
                    break;
                case 2:
                    registers[PROGRAM[at + 1]] += PROGRAM[at + 2];
                    at += 3;
                    break;
                case 3:
                    registers[2] ^= registers[1] << PROGRAM[at + 1];
                    at += 3;
                    break;
                case 4:
                    registers[PROGRAM[at + 1]] += registers[PROGRAM[at + 2]];
                    at += 3;
                    break;
                case 5:
                    registers[PROGRAM[at + 1]] %= PROGRAM[at + 2];
                    at += 3;
                    break;
                case 6:
                    at = registers[PROGRAM[at + 1]] < PROGRAM[at + 2] ? 6 : at + 5;
                    break;
                default:
                    return registers[2] * 1000 + steps;
            }
        }
    }
}
