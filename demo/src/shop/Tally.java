// All counters of one worker, one field for each method whose number of invocations is known. A worker
// increments its own tally without locks; the tallies are added up when the shop closes. The words of
// @Prints stand before the number in the report; README.md explains the kinds of lines.
package shop;

public final class Tally {
    // Orders
    @Prints("count shop.load.Worker.run")
    public long workerRun;
    @Prints({"count shop.Till.serve", "count shop.load.Progress.orderDone"})
    public long tillServe;
    @Prints("count shop.orders.OrderDesk.handle")
    public long orderDeskHandle;
    @Prints("count shop.orders.OrderDesk.fulfil")
    public long orderDeskFulfil;
    @Prints("unwound shop.orders.OrderDesk.fulfil")
    public long orderDeskFulfilUnwound;
    @Prints({"event orders-accepted", "count shop.orders.OrderDesk.remember"})
    public long ordersAccepted;
    @Prints("event orders-rejected")
    public long ordersRejected;
    @Prints("event orders-failed")
    public long ordersFailed;
    @Prints("event revenue-cents")
    public long revenueCents;
    @Prints("event requests")
    public long requests;
    @Prints({"count shop.orders.OrderBook.write", "count shop.orders.OrderBook.card",
            "count shop.orders.OrderBook.lines", "count shop.orders.OrderBook.coupons",
            "count shop.orders.OrderBook.wishes"})
    public long orderBookWrite;
    @Prints("count shop.orders.Order.<init>")
    public long orderInit;
    @Prints("count shop.orders.Order.items")
    public long orderItems;
    @Prints({"count shop.orders.Line.<init>", "count shop.orders.Catalog.product"})
    public long lineInit;
    @Prints("count shop.orders.Line.category")
    public long lineCategory;
    @Prints("count shop.Dice.<init>")
    public long diceInit;
    @Prints("count shop.Dice.oneIn")
    public long diceOneIn;
    @Prints({"count shop.Dice.next", "count shop.Dice.below"})
    public long diceNext;

    // Pricing
    @Prints("count shop.pricing.Pricer.price")
    public long pricerPrice;
    @Prints("count shop.pricing.Pricer.priceLine")
    public long pricerPriceLine;
    @Prints("count shop.orders.Part.cost")
    public long partCost;
    @Prints("count shop.orders.Kit.cost")
    public long kitCost;
    @Prints("count shop.pricing.PriceCurve.forecast")
    public long priceCurveForecast;
    @Prints({"count shop.pricing.PriceCurve.step", "count shop.pricing.PriceCurve.demand"})
    public long priceCurveStep;
    @Prints({"count shop.pricing.PromotionPicker.discount", "count shop.pricing.PromotionPicker.<init>"})
    public long promotionPickerDiscount;
    @Prints("count shop.pricing.PromotionPicker.best")
    public long promotionPickerBest;
    @Prints("count shop.pricing.Money.perMille")
    public long moneyPerMille;
    @Prints("count shop.pricing.Money.clamp")
    public long moneyClamp;
    @Prints("count shop.pricing.CouponDrawer.read")
    public long couponDrawerRead;
    @Prints("count shop.pricing.CouponDrawer.lambda$read$0")
    public long couponDrawerLambda;
    @Prints("event coupons-voided")
    public long couponDrawerVoided;
    @Prints({"count shop.pricing.Coupon.<init>", "count shop.pricing.Coupon.checked"})
    public long couponInit;
    @Prints({"unwound shop.pricing.Coupon.<init>", "unwound shop.pricing.CouponDrawer.lambda$read$0"})
    public long couponInitUnwound;
    @Prints("count shop.pricing.Voucher.<init>")
    public long voucherInit;
    @Prints("unwound shop.pricing.Coupon.checked")
    public long couponCheckedUnwound;
    @Prints({"count shop.pricing.BadCoupon.<init>", "thrown shop.pricing.BadCoupon"})
    public long badCouponInit;
    @Prints("count shop.pricing.TaxTable.tax")
    public long taxTableTax;
    @Prints("count shop.pricing.TaxTable.standard")
    public long taxTableStandard;
    @Prints("count shop.pricing.TaxTable.reduced")
    public long taxTableReduced;
    @Prints("count shop.pricing.TaxTable.exempt")
    public long taxTableExempt;
    @Prints("count shop.pricing.TaxTable.toCoin")
    public long taxTableToCoin;
    @Prints("event method-handle-calls")
    public long methodHandleCalls;

    // Rules
    @Prints("count shop.rules.Rule.appliesTo")
    public long ruleAppliesTo;
    @Prints("count shop.rules.Discount.apply")
    public long discountApply;
    @Prints("count shop.rules.PercentOff.adjust")
    public long percentOffAdjust;
    @Prints("count shop.rules.AmountOff.adjust")
    public long amountOffAdjust;
    @Prints("count shop.rules.Loyalty.appliesTo")
    public long loyaltyAppliesTo;
    @Prints("count shop.rules.Loyalty.adjust")
    public long loyaltyAdjust;
    @Prints("count shop.rules.Loyalty.afterYears")
    public long loyaltyAfterYears;
    @Prints("count shop.rules.BulkRebate.appliesTo")
    public long bulkRebateAppliesTo;
    @Prints("count shop.rules.BulkRebate.adjust")
    public long bulkRebateAdjust;
    @Prints("count shop.rules.InOrder.apply")
    public long inOrderApply;
    @Prints("count shop.rules.BestOf.apply")
    public long bestOfApply;
    @Prints("count shop.rules.OnlyIf.appliesTo")
    public long onlyIfAppliesTo;
    @Prints("count shop.rules.OnlyIf.apply")
    public long onlyIfApply;
    @Prints("count shop.rules.RuleBook.lambda$standard$0")
    public long ruleBookIsNew;
    @Prints("count shop.rules.RuleBook.isClub")
    public long ruleBookIsClub;

    // Payment
    @Prints("count shop.payment.AddressCheck.check")
    public long addressCheckCheck;
    @Prints("unwound shop.payment.AddressCheck.check")
    public long addressCheckCheckUnwound;
    @Prints("count shop.payment.AddressCheck.lambda$check$0")
    public long addressCheckLambda;
    @Prints("unwound shop.payment.AddressCheck.lambda$check$0")
    public long addressCheckLambdaUnwound;
    @Prints("count shop.payment.AddressCheck.normalise")
    public long addressCheckNormalise;
    @Prints("unwound shop.payment.AddressCheck.normalise")
    public long addressCheckNormaliseUnwound;
    @Prints({"count shop.payment.AddressUnknown.<init>", "thrown shop.payment.AddressUnknown"})
    public long addressUnknownInit;
    @Prints("count shop.payment.FraudScreen.screen")
    public long fraudScreenScreen;
    @Prints("unwound shop.payment.FraudScreen.screen")
    public long fraudScreenScreenUnwound;
    @Prints("count shop.payment.FraudScreen.lambda$screen$0")
    public long fraudScreenLambda;
    @Prints("unwound shop.payment.FraudScreen.lambda$screen$0")
    public long fraudScreenLambdaUnwound;
    @Prints("count shop.payment.FraudScreen.score")
    public long fraudScreenScore;
    @Prints("unwound shop.payment.FraudScreen.score")
    public long fraudScreenScoreUnwound;
    @Prints({"count shop.payment.FraudSuspected.<init>", "thrown shop.payment.FraudSuspected"})
    public long fraudSuspectedInit;
    @Prints({"count shop.payment.Gateway.authorise", "count shop.payment.Gateway.checksum"})
    public long gatewayAuthorise;
    @Prints("unwound shop.payment.Gateway.authorise")
    public long gatewayAuthoriseUnwound;
    @Prints("count shop.payment.Gateway.submit")
    public long gatewaySubmit;
    @Prints("unwound shop.payment.Gateway.submit")
    public long gatewaySubmitUnwound;
    @Prints("count shop.payment.Gateway.attempt")
    public long gatewayAttempt;
    @Prints("unwound shop.payment.Gateway.attempt")
    public long gatewayAttemptUnwound;
    @Prints("count shop.payment.Gateway.askBank")
    public long gatewayAskBank;
    @Prints("unwound shop.payment.Gateway.askBank")
    public long gatewayAskBankUnwound;
    @Prints("count shop.payment.Gateway.digit")
    public long gatewayDigit;
    @Prints({"count shop.payment.BankBusy.<init>", "thrown shop.payment.BankBusy"})
    public long bankBusyInit;
    @Prints({"count shop.payment.CardDeclined.<init>", "thrown shop.payment.CardDeclined"})
    public long cardDeclinedInit;
    @Prints("count shop.payment.Newsletter.subscribe")
    public long newsletterSubscribe;
    @Prints("count shop.payment.Newsletter.lambda$subscribe$0")
    public long newsletterLambda;
    @Prints("unwound shop.payment.Newsletter.lambda$subscribe$0")
    public long newsletterLambdaUnwound;
    @Prints("count shop.payment.Newsletter.send")
    public long newsletterSend;
    @Prints({"unwound shop.payment.Newsletter.send", "thrown java.lang.IllegalStateException"})
    public long newsletterSendUnwound;

    // Stock and ledger
    @Prints("count shop.stock.Inventory.reserve")
    public long inventoryReserve;
    @Prints("unwound shop.stock.Inventory.reserve")
    public long inventoryReserveUnwound;
    @Prints("count shop.stock.Inventory.take")
    public long inventoryTake;
    @Prints("unwound shop.stock.Inventory.take")
    public long inventoryTakeUnwound;
    @Prints("count shop.stock.Inventory.restock")
    public long inventoryRestock;
    @Prints("count shop.stock.Inventory.emptiestBin")
    public long inventoryEmptiestBin;
    @Prints({"count shop.stock.OutOfStock.<init>", "thrown shop.stock.OutOfStock"})
    public long outOfStockInit;
    @Prints("count shop.ledger.Ledger.post")
    public long ledgerPost;
    @Prints("count shop.ledger.Ledger.enter")
    public long ledgerEnter;
    @Prints("count shop.ledger.Ledger.addUp")
    public long ledgerAddUp;
    @Prints("approx ledger-waits")
    public long ledgerWaits;

    // Gifts
    @Prints("count shop.gifts.GiftCounter.serve")
    public long giftCounterServe;
    @Prints("count shop.gifts.GiftCounter.grant")
    public long giftCounterGrant;
    @Prints("event invocation-target-exceptions")
    public long giftCounterFailed;
    @Prints("count shop.gifts.GiftBox.<init>")
    public long giftBoxInit;
    @Prints("count shop.gifts.GiftDesk.wrap")
    public long giftDeskWrap;
    @Prints("count shop.gifts.GiftDesk.card")
    public long giftDeskCard;
    @Prints("count shop.gifts.GiftDesk.engrave")
    public long giftDeskEngrave;
    @Prints("unwound shop.gifts.GiftDesk.engrave")
    public long giftDeskEngraveUnwound;
    @Prints({"count shop.gifts.EngravingFailed.<init>", "thrown shop.gifts.EngravingFailed"})
    public long engravingFailedInit;
    @Prints("event reflective-method-calls")
    public long methodCalls;
    @Prints("event reflective-constructor-calls")
    public long constructorCalls;

    // Shipping
    @Prints("count shop.shipping.CarrierDesk.ship")
    public long carrierDeskShip;
    @Prints("count shop.shipping.CarrierDesk.sign")
    public long carrierDeskSign;
    @Prints("count shop.shipping.CarrierLoader.findClass")
    public long carrierLoaderFindClass;
    @Prints({"count shop.shipping.CarrierLoader.<init>", "event plugin-loaders"})
    public long pluginLoaders;
    @Prints("event plugin-classes")
    public long pluginClasses;
    @Prints("approx plugin-loaders-unloaded")
    public long pluginLoadersUnloaded;
    @Prints("count shop.carriers.ParcelCarrier.<init>")
    public long parcelCarrierInit;
    @Prints("count shop.carriers.ParcelCarrier.quote")
    public long parcelCarrierQuote;
    @Prints("count shop.carriers.ParcelCarrier.lambda$quote$0")
    public long parcelCarrierLambda;
    @Prints("count shop.carriers.FreightCarrier.<init>")
    public long freightCarrierInit;
    @Prints("count shop.carriers.FreightCarrier.quote")
    public long freightCarrierQuote;
    @Prints("count shop.carriers.Zones.zone")
    public long zonesZone;
    @Prints("count shop.carriers.Zones.surcharges")
    public long zonesSurcharges;

    // Invoices
    @Prints("count shop.invoice.InvoicePrinter.print")
    public long invoicePrinterPrint;
    @Prints("count shop.invoice.InvoicePrinter.layout")
    public long invoicePrinterLayout;
    @Prints("count shop.invoice.InvoicePrinter.summary")
    public long invoicePrinterSummary;
    @Prints("count shop.invoice.InvoicePrinter.lambda$summary$0")
    public long invoicePrinterFilterLambda;
    @Prints("count shop.invoice.InvoicePrinter.lambda$summary$1")
    public long invoicePrinterSumLambda;
    @Prints("count shop.invoice.InvoicePrinter.lambda$summary$2")
    public long invoicePrinterMapLambda;
    @Prints("count shop.invoice.InvoicePrinter.page")
    public long invoicePrinterPage;
    @Prints("event invoice-bytes")
    public long invoiceBytes;

    // Packing
    @Prints("count shop.fulfilment.Packing.pack")
    public long packingPack;
    @Prints({"count shop.fulfilment.PackingTask.run", "count shop.fulfilment.PackingTask.<init>"})
    public long packingTaskRun;
    @Prints("count shop.fulfilment.PackingTask.fill")
    public long packingTaskFill;
    @Prints("event items-packed")
    public long itemsPacked;
    @Prints("event pool-tasks")
    public long poolTasks;
    @Prints("event virtual-thread-tasks")
    public long virtualTasks;

    // Leaks
    @Prints("count shop.leak.Sessions.open")
    public long sessionsOpen;
    @Prints("count shop.leak.AuditTrail.note")
    public long auditTrailNote;
}
