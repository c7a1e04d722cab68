package bench;

import com.google.gson.Gson;
import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonParser;
import com.google.gson.reflect.TypeToken;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * JSON: orders are written to texts, read back as objects and as trees, and summed up. A text has as
 * many of them as a page of an answer would.
 */
final class Json implements Workload {
    private static final int PAGE = 50;

    static final class Line {
        String item;
        int quantity;
        double price;
    }

    static final class Order {
        long id;
        String customer;
        boolean shipped;
        List<Line> lines = new ArrayList<>();
        Map<String, String> notes = new LinkedHashMap<>();
    }

    private final Gson gson = new Gson();
    private final List<Order> orders = new ArrayList<>();

    Json(String[] args) {
        int count = Integer.parseInt(args[0]);
        for (int i = 0; i < count; i++) {
            Order order = new Order();
            order.id = 1_000_000L + i;
            order.customer = "customer " + i * 37 % 500;
            order.shipped = i % 3 == 0;
            for (int j = 0; j <= i % 7; j++) {
                Line line = new Line();
                line.item = "item \"" + (i * 13 + j) % 200 + "\"";
                line.quantity = 1 + j;
                line.price = (100 + (i * 31 + j) % 900) / 100.0;
                order.lines.add(line);
            }
            order.notes.put("packed by", "clerk " + i % 11);
            orders.add(order);
        }
    }

    @Override
    public long iterate() {
        long result = 0;
        for (int first = 0; first < orders.size(); first += PAGE) {
            result = result * 31 + page(orders.subList(first, Math.min(first + PAGE, orders.size())));
        }
        return result;
    }

    private long page(List<Order> page) {
        String text = gson.toJson(page);
        List<Order> read = gson.fromJson(text, new TypeToken<List<Order>>() {}.getType());
        long result = text.length();
        for (Order order : read) {
            result = result * 31 + order.id + order.customer.length() + order.notes.size();
            for (Line line : order.lines) {
                result += Math.round(line.price * 100) * line.quantity;
            }
        }
        JsonArray tree = JsonParser.parseString(text).getAsJsonArray();
        for (JsonElement order : tree) {
            result += order.getAsJsonObject().getAsJsonArray("lines").size();
        }
        return result;
    }
}
