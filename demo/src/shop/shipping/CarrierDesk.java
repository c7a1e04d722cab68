// Ships orders with plug-ins. Every thousandth order renews the contract with the carriers: a new loader
// is made, and the oldest of four is dropped, so that its classes can be unloaded.
package shop.shipping;

import java.lang.ref.ReferenceQueue;
import java.lang.ref.WeakReference;
import java.util.HashSet;
import java.util.Set;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReferenceArray;
import shop.Tally;
import shop.orders.Order;

public final class CarrierDesk {
    private static final int CONTRACTS = 4;
    private static final int RENEW_EVERY = 1000;
    private static final int FREIGHT_FROM_ITEMS = 40;

    private record Contract(Carrier parcel, Carrier freight) {
    }

    private final AtomicReferenceArray<Contract> contracts = new AtomicReferenceArray<>(CONTRACTS);
    private final AtomicInteger signed = new AtomicInteger();
    private final Set<WeakReference<ClassLoader>> loaders = new HashSet<>();
    private final ReferenceQueue<ClassLoader> dead = new ReferenceQueue<>();
    private long unloaded;

    public CarrierDesk(Tally tally) {
        for (int i = 0; i < CONTRACTS; i++) {
            sign(tally);
        }
    }

    /** What shipping costs, in cents. All contracts ask the same prices. */
    public long ship(Order order) {
        Tally tally = order.tally;
        tally.carrierDeskShip++;
        if (order.id % RENEW_EVERY == 0) {
            Contract fresh = sign(tally);
            fresh.parcel.quote(order);
            fresh.freight.quote(order);
        }
        Contract contract = contracts.get((int) (order.id % CONTRACTS));
        tally.orderItems++;
        Carrier carrier = order.items() < FREIGHT_FROM_ITEMS ? contract.parcel : contract.freight;
        return carrier.quote(order);
    }

    private Contract sign(Tally tally) {
        tally.carrierDeskSign++;
        int number = signed.getAndIncrement();
        CarrierLoader loader = new CarrierLoader(number, CarrierDesk.class.getClassLoader());
        Contract contract = new Contract(load(loader, "ParcelCarrier", tally), load(loader, "FreightCarrier", tally));
        tally.pluginLoaders++;
        tally.pluginClasses += loader.defined();
        tally.carrierLoaderFindClass += loader.defined();
        contracts.set(number % CONTRACTS, contract);
        watch(loader);
        return contract;
    }

    private static Carrier load(ClassLoader loader, String name, Tally tally) {
        try {
            tally.constructorCalls++;
            return (Carrier) loader.loadClass("shop.carriers." + name)
                    .getConstructor(Tally.class).newInstance(tally);
        } catch (ReflectiveOperationException broken) {
            throw new IllegalStateException("cannot load the plug-in " + name, broken);
        }
    }

    private synchronized void watch(ClassLoader loader) {
        loaders.add(new WeakReference<>(loader, dead));
        bury();
    }

    private void bury() {
        for (Object ref = dead.poll(); ref != null; ref = dead.poll()) {
            loaders.remove(ref);
            unloaded++;
        }
    }

    /** Says how many loaders the garbage collector took so far. */
    public synchronized void close(Tally tally) {
        bury();
        tally.pluginLoadersUnloaded = unloaded;
    }
}
