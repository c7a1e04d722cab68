package same;

import org.apache.commons.lang3.StringUtils;

/** Works with strings, by commons-lang3. */
public final class Strings {
    private Strings() {}

    public static void main(String[] args) {
        int sum = 0;
        String text = "the quick brown fox jumps over the lazy dog";
        for (int i = 0; i < 40; i++) {
            String other = StringUtils.rotate(text, i);
            sum += StringUtils.getLevenshteinDistance(text, other);
            sum += StringUtils.replaceEach(other, new String[] {"o", "th"}, new String[] {"0", "+"}).length();
            sum += StringUtils.split(other, ' ').length;
            sum += StringUtils.capitalize(StringUtils.reverse(other)).hashCode() % 7;
        }
        System.out.println(sum);
    }
}
