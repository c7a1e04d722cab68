// Asks the bank. A busy bank is asked again by recursion; a card that is declined at the third attempt
// unwinds all attempts, submit (through its finally block) and authorise.
package shop.payment;

import shop.Tally;
import shop.orders.Order;

public final class Gateway {
    public void authorise(Order order, long cents) {
        order.tally.gatewayAuthorise++;
        if (checksum(order) >= 0) {
            submit(order, cents);
        }
    }

    private void submit(Order order, long cents) {
        Tally tally = order.tally;
        tally.gatewaySubmit++;
        boolean answered = false;
        try {
            attempt(order, cents, 1);
            answered = true;
        } finally {
            if (!answered) {
                tally.gatewaySubmitUnwound++;
                tally.gatewayAuthoriseUnwound++;
            }
        }
    }

    private void attempt(Order order, long cents, int number) {
        order.tally.gatewayAttempt++;
        try {
            askBank(order, number);
        } catch (BankBusy busy) {
            attempt(order, cents, number + 1);
        }
    }

    private static void askBank(Order order, int number) throws BankBusy {
        Tally tally = order.tally;
        tally.gatewayAskBank++;
        char mood = order.card.charAt(order.card.length() - 1);
        if (mood == '9' && number < 3 || mood == '5' && number < 2) {
            tally.gatewayAskBankUnwound++;
            throw new BankBusy(order);
        }
        if (mood == '9') {
            tally.gatewayAskBankUnwound++;
            tally.gatewayAttemptUnwound += number;
            throw new CardDeclined(order);
        }
    }

    private static int checksum(Order order) {
        int sum = 0;
        for (int i = 0; i < order.card.length(); i++) {
            sum = sum * 3 + digit(order.card, i) & 0xffff;
        }
        order.tally.gatewayDigit += order.card.length();
        return sum;
    }

    private static int digit(String card, int index) {
        return card.charAt(index) - '0';
    }
}
