// Checks the address in a CompletableFuture on the calling thread. The future catches what the check
// throws and wraps it: the exception leaves our frame into a JDK frame, and comes back as another one.
package shop.payment;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import shop.orders.Order;
import shop.orders.Rejected;

public final class AddressCheck {
    public void check(Order order) {
        order.tally.addressCheckCheck++;
        try {
            CompletableFuture.supplyAsync(() -> {
                order.tally.addressCheckLambda++;
                return normalise(order);
            }, Runnable::run).thenApply(String::length).join();
        } catch (CompletionException wrapped) {
            order.tally.addressCheckCheckUnwound++;
            throw (Rejected) wrapped.getCause();
        }
    }

    private static String normalise(Order order) {
        order.tally.addressCheckNormalise++;
        String address = order.address.strip().toUpperCase(java.util.Locale.ROOT);
        if (address.length() < 2) {
            order.tally.addressCheckNormaliseUnwound++;
            order.tally.addressCheckLambdaUnwound++;
            throw new AddressUnknown(order);
        }
        return address + ", " + order.country;
    }
}
