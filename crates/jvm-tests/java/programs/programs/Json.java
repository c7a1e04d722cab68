package programs;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Reads JSON into lists and maps, turns it inside out, and writes it again. */
public final class Json {
    private final String text;
    private int at;

    private Json(String text) {
        this.text = text;
    }

    public static int run() {
        StringBuilder big = new StringBuilder("{\"rows\":[");
        for (int i = 0; i < 60; i++) {
            big.append(i == 0 ? "" : ", ").append("{\"id\":").append(i * 37 % 101)
                .append(",\"name\":\"n\\\"").append(i).append("\",\"tags\":[true,null,-")
                .append(i).append("]}");
        }
        String text = big.append("]}").toString();
        int hash = 0;
        for (int round = 0; round < 3; round++) {
            text = write(turned(new Json(text).value()), new StringBuilder()).toString();
            hash = hash * 31 + text.hashCode();
        }
        return hash;
    }

    private Object value() {
        char c = next();
        switch (c) {
            case '{': {
                Map<String, Object> map = new LinkedHashMap<>();
                while (peek() != '}') {
                    String key = (String) value();
                    next();
                    map.put(key, value());
                    if (peek() == ',') {
                        next();
                    }
                }
                next();
                return map;
            }
            case '[': {
                List<Object> list = new ArrayList<>();
                while (peek() != ']') {
                    list.add(value());
                    if (peek() == ',') {
                        next();
                    }
                }
                next();
                return list;
            }
            case '"':
                return string();
            case 't':
                at += 3;
                return true;
            case 'n':
                at += 3;
                return null;
            default:
                return number(c);
        }
    }

    private String string() {
        StringBuilder out = new StringBuilder();
        for (char c = text.charAt(at++); c != '"'; c = text.charAt(at++)) {
            out.append(c == '\\' ? text.charAt(at++) : c);
        }
        return out.toString();
    }

    private Integer number(char first) {
        int number = first == '-' ? 0 : first - '0';
        while (Character.isDigit(text.charAt(at))) {
            number = number * 10 + text.charAt(at++) - '0';
        }
        return first == '-' ? -number : number;
    }

    private char peek() {
        while (text.charAt(at) == ' ') {
            at++;
        }
        return text.charAt(at);
    }

    private char next() {
        char c = peek();
        at++;
        return c;
    }

    private static Object turned(Object value) {
        if (value instanceof List<?> list) {
            List<Object> out = new ArrayList<>();
            for (int i = list.size() - 1; i >= 0; i--) {
                out.add(turned(list.get(i)));
            }
            return out;
        }
        if (value instanceof Map<?, ?> map) {
            Map<String, Object> out = new LinkedHashMap<>();
            map.forEach((key, inner) -> out.put(key.toString(), turned(inner)));
            return out;
        }
        return value;
    }

    private static StringBuilder write(Object value, StringBuilder out) {
        if (value instanceof List<?> list) {
            out.append('[');
            for (Object one : list) {
                write(one, out).append(',');
            }
            trim(out);
            return out.append(']');
        }
        if (value instanceof Map<?, ?> map) {
            out.append('{');
            for (Map.Entry<?, ?> one : map.entrySet()) {
                write(one.getKey(), out).append(':');
                write(one.getValue(), out).append(',');
            }
            trim(out);
            return out.append('}');
        }
        if (value instanceof String s) {
            out.append('"');
            for (int i = 0; i < s.length(); i++) {
                char c = s.charAt(i);
                if (c == '"' || c == '\\') {
                    out.append('\\');
                }
                out.append(c);
            }
            return out.append('"');
        }
        return out.append(value);
    }

    private static void trim(StringBuilder out) {
        if (out.charAt(out.length() - 1) == ',') {
            out.setLength(out.length() - 1);
        }
    }
}
