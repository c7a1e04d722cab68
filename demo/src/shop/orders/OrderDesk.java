// Takes one order from the first check to the parcel. This is the root of everything worth profiling.
package shop.orders;

import shop.Tally;
import shop.fulfilment.Packing;
import shop.gifts.GiftCounter;
import shop.invoice.InvoicePrinter;
import shop.leak.AuditTrail;
import shop.leak.Sessions;
import shop.ledger.Ledger;
import shop.payment.AddressCheck;
import shop.payment.FraudScreen;
import shop.payment.Gateway;
import shop.payment.Newsletter;
import shop.pricing.Pricer;
import shop.shipping.CarrierDesk;
import shop.stock.Inventory;

public final class OrderDesk {
    /** One order in so many is remembered for ever; 0 means none is. */
    public enum Leak {
        OFF(0), SLOW(256), FAST(1);

        final int every;

        Leak(int every) {
            this.every = every;
        }
    }

    private final OrderBook book;
    private final Pricer pricer;
    private final AddressCheck addresses = new AddressCheck();
    private final FraudScreen fraud = new FraudScreen();
    private final Gateway gateway = new Gateway();
    private final Newsletter newsletter = new Newsletter();
    private final Inventory inventory = new Inventory();
    private final Ledger ledger = new Ledger();
    private final GiftCounter gifts = new GiftCounter();
    private final InvoicePrinter printer = new InvoicePrinter();
    private final CarrierDesk carriers;
    private final Packing packing;
    private final Leak leak;

    public OrderDesk(long seed, Leak leak, Packing packing, Tally setup) {
        this.book = new OrderBook(seed, setup);
        this.pricer = new Pricer(seed, setup);
        this.carriers = new CarrierDesk(setup);
        this.packing = packing;
        this.leak = leak;
    }

    public Receipt handle(long id, Tally tally) {
        tally.orderDeskHandle++;
        try {
            Receipt receipt = fulfil(book.write(id, tally));
            tally.ordersAccepted++;
            tally.revenueCents += receipt.cents();
            return receipt;
        } catch (Rejected rejected) {
            tally.ordersRejected++;
            return new Receipt(id, 0, rejected.getMessage());
        }
    }

    /** Leaves by a Rejected for about one order in ten. */
    private Receipt fulfil(Order order) {
        Tally tally = order.tally;
        tally.orderDeskFulfil++;
        boolean done = false;
        try {
            addresses.check(order);
            fraud.screen(order);
            long cents = pricer.price(order);
            gateway.authorise(order, cents);
            inventory.reserve(order);
            cents += gifts.serve(order);
            cents += carriers.ship(order);
            ledger.post(order, cents);
            printer.print(order, cents);
            packing.pack(order);
            if (order.newsletter) {
                newsletter.subscribe(order);
            }
            remember(order);
            done = true;
            return new Receipt(order.id, cents, null);
        } finally {
            if (!done) {
                tally.orderDeskFulfilUnwound++;
            }
        }
    }

    private void remember(Order order) {
        if (leak.every > 0 && order.id % leak.every == 0) {
            Sessions.open(order);
            AuditTrail.note(order);
        }
    }

    /** For the report at the end: what only the shared parts know. */
    public void close(Tally tally) {
        carriers.close(tally);
        packing.close();
    }
}
