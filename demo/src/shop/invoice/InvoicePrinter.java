// Writes the invoice of an order: strings, builders and byte arrays that die at once. page() is the
// method that allocates most.
package shop.invoice;

import java.nio.charset.StandardCharsets;
import java.util.TreeMap;
import java.util.stream.Collectors;
import shop.Tally;
import shop.orders.Line;
import shop.orders.Order;

public final class InvoicePrinter {
    private static final int PAGE_BYTES = 4096;

    public void print(Order order, long cents) {
        Tally tally = order.tally;
        tally.invoicePrinterPrint++;
        String text = layout(order, cents);
        int copies = 1 + order.customer % 3;
        for (int copy = 0; copy < copies; copy++) {
            tally.invoicePrinterPage++;
            tally.invoiceBytes += page(text).length;
        }
    }

    private static String layout(Order order, long cents) {
        order.tally.invoicePrinterLayout++;
        StringBuilder text = new StringBuilder();
        text.append("Invoice ").append(order.id).append('\n').append(order.address).append('\n');
        for (Line line : order.lines) {
            text.append(line.quantity).append(" x ").append(line.product.sku()).append('\n');
        }
        return text.append(summary(order)).append("\ntotal ").append(cents).append('\n').toString();
    }

    /** Items by category, of the lines with more than one item. */
    private static String summary(Order order) {
        Tally tally = order.tally;
        tally.invoicePrinterSummary++;
        return order.lines.stream()
                .filter(line -> {
                    tally.invoicePrinterFilterLambda++;
                    return line.quantity > 1;
                })
                .collect(Collectors.groupingBy(Line::category, TreeMap::new, Collectors.summingInt(line -> {
                    tally.lineCategory++;
                    tally.invoicePrinterSumLambda++;
                    return line.quantity;
                })))
                .entrySet().stream()
                .map(entry -> {
                    tally.invoicePrinterMapLambda++;
                    return entry.getKey() + ": " + entry.getValue();
                })
                .collect(Collectors.joining(", "));
    }

    private static byte[] page(String text) {
        byte[] page = new byte[PAGE_BYTES];
        byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
        System.arraycopy(bytes, 0, page, 0, Math.min(bytes.length, PAGE_BYTES));
        return page;
    }
}
