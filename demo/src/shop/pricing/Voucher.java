// Anything with a code that lowers a price.
package shop.pricing;

abstract class Voucher {
    final String code;

    Voucher(String code) {
        this.code = code;
    }
}
