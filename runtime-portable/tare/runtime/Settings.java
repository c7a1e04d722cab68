package tare.runtime;

/** System properties that say what is to be done. Whoever may not read them gets the default. */
final class Settings {
    private Settings() {}

    static String text(String name, String otherwise) {
        try {
            String value = System.getProperty(name);
            return value == null || value.isEmpty() ? otherwise : value;
        } catch (SecurityException e) {
            return otherwise;
        }
    }

    static int number(String name, int otherwise) {
        String value = text(name, null);
        if (value == null) {
            return otherwise;
        }
        try {
            int number = Integer.parseInt(value);
            if (number >= 0) {
                return number;
            }
        } catch (NumberFormatException e) {
            // Said below.
        }
        System.err.println("tare: -D" + name + "=" + value + " is no number; " + otherwise + " is used");
        return otherwise;
    }
}
