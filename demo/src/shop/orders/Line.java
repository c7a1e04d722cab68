// One line of an order: a product and how many of it.
package shop.orders;

public final class Line {
    public final Product product;
    public final int quantity;

    Line(Product product, int quantity) {
        this.product = product;
        this.quantity = quantity;
    }

    public String category() {
        return product.category();
    }
}
