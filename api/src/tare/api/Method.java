package tare.api;

/** A method of the program. Two of the same name in classes of two loaders are two. */
public final class Method {
    private final String className;
    private final String name;
    private final String descriptor;

    Method(String className, String name, String descriptor) {
        this.className = className;
        this.name = name;
        this.descriptor = descriptor;
    }

    /** As {@code com.acme.Orders}. */
    public String className() {
        return className;
    }

    public String name() {
        return name;
    }

    /** As the class file has it. */
    public String descriptor() {
        return descriptor;
    }

    @Override
    public String toString() {
        return className + "." + name;
    }
}
