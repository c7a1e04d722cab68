// Scores an order in a FutureTask that runs on the calling thread; FutureTask.run catches what the
// score throws, and get() throws it again, wrapped.
package shop.payment;

import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import shop.orders.Order;
import shop.orders.Rejected;

public final class FraudScreen {
    public void screen(Order order) {
        order.tally.fraudScreenScreen++;
        FutureTask<Integer> task = new FutureTask<>(() -> {
            order.tally.fraudScreenLambda++;
            return score(order, order.card.length());
        });
        task.run();
        try {
            task.get();
        } catch (ExecutionException wrapped) {
            order.tally.fraudScreenScreenUnwound++;
            throw (Rejected) wrapped.getCause();
        } catch (InterruptedException stop) {
            Thread.currentThread().interrupt();
        }
    }

    /** Walks the digits of the card by recursion; a suspicious order throws at the innermost call. */
    private static int score(Order order, int digits) {
        order.tally.fraudScreenScore++;
        if (digits > 0) {
            return order.card.charAt(digits - 1) % 7 + score(order, digits - 1);
        }
        if (order.customer % 61 == 0) {
            order.tally.fraudScreenScoreUnwound += order.card.length() + 1;
            order.tally.fraudScreenLambdaUnwound++;
            throw new FraudSuspected(order);
        }
        return 0;
    }
}
