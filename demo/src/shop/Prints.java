// Marks a counter of Tally with the words that stand before its number in the final report; a counter
// that is the truth about several methods is printed once for each.
package shop;

import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

@Retention(RetentionPolicy.RUNTIME)
@Target(ElementType.FIELD)
public @interface Prints {
    String[] value();
}
