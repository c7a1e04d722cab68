package bench;

import java.util.concurrent.locks.LockSupport;

/**
 * Two threads that wake each other and park, and do nothing else: what is done for each park weighs
 * as much as it can.
 */
final class Parks implements Workload {
    private final int rounds;
    private final Thread[] players = new Thread[2];
    private volatile int turn;

    Parks(String[] args) {
        rounds = Integer.parseInt(args[0]);
    }

    @Override
    public long iterate() throws InterruptedException {
        turn = 0;
        for (int i = 0; i < players.length; i++) {
            int mine = i;
            players[i] = new Thread(() -> play(mine), "parks-" + i);
        }
        for (Thread player : players) {
            player.start();
        }
        for (Thread player : players) {
            player.join();
        }
        return rounds;
    }

    private void play(int mine) {
        for (int i = 0; i < rounds; i++) {
            while (turn != mine) {
                LockSupport.park(this);
            }
            turn = 1 - mine;
            LockSupport.unpark(players[1 - mine]);
        }
    }
}
