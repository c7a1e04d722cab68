package programs;

/** Patterns with stars and question marks, matched by going back. */
public final class Matching {
    private Matching() {}

    public static int run() {
        String[] patterns = {"*a*b*c", "??a*", "*abcab*d", "a?c*a?c*a?d", "*", "abc"};
        int hits = 0;
        for (int i = 0; i < 40; i++) {
            StringBuilder text = new StringBuilder();
            for (int j = 0; j < 18; j++) {
                text.append("abcd".charAt((i * 7 + j * j) % 4));
            }
            for (String pattern : patterns) {
                hits = hits * 3 + (matches(pattern, 0, text, 0) ? 1 : 0);
            }
        }
        return hits;
    }

    private static boolean matches(String pattern, int p, CharSequence text, int t) {
        if (p == pattern.length()) {
            return t == text.length();
        }
        char c = pattern.charAt(p);
        if (c == '*') {
            return matches(pattern, p + 1, text, t)
                || t < text.length() && matches(pattern, p, text, t + 1);
        }
        return t < text.length() && (c == '?' || c == text.charAt(t))
            && matches(pattern, p + 1, text, t + 1);
    }
}
