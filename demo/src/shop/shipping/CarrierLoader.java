// Loads the plug-ins of package shop.carriers itself, from the bytes on the class path, and leaves all
// else to its parent. Each loader has classes of its own, with the same names as those of the others.
package shop.shipping;

import java.io.IOException;
import java.io.InputStream;

final class CarrierLoader extends ClassLoader {
    private static final String PLUGINS = "shop.carriers.";

    private int defined;

    CarrierLoader(int contract, ClassLoader parent) {
        super("carriers-" + contract, parent);
    }

    @Override
    protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
        if (!name.startsWith(PLUGINS)) {
            return super.loadClass(name, resolve);
        }
        synchronized (getClassLoadingLock(name)) {
            Class<?> known = findLoadedClass(name);
            return known != null ? known : findClass(name);
        }
    }

    @Override
    protected Class<?> findClass(String name) throws ClassNotFoundException {
        try (InputStream in = getParent().getResourceAsStream(name.replace('.', '/') + ".class")) {
            if (in == null) {
                throw new ClassNotFoundException(name);
            }
            byte[] bytes = in.readAllBytes();
            defined++;
            return defineClass(name, bytes, 0, bytes.length);
        } catch (IOException broken) {
            throw new ClassNotFoundException(name, broken);
        }
    }

    int defined() {
        return defined;
    }
}
