// Signs a customer up, and does not care whether that worked: the exception ends inside FutureTask.run,
// because nobody calls get().
package shop.payment;

import java.util.concurrent.FutureTask;
import shop.orders.Order;

public final class Newsletter {
    public void subscribe(Order order) {
        order.tally.newsletterSubscribe++;
        new FutureTask<>(() -> {
            order.tally.newsletterLambda++;
            return send(order);
        }).run();
    }

    private static boolean send(Order order) {
        order.tally.newsletterSend++;
        if (order.customer % 7 == 0) {
            order.tally.newsletterSendUnwound++;
            order.tally.newsletterLambdaUnwound++;
            throw new IllegalStateException("mailbox full");
        }
        return true;
    }
}
