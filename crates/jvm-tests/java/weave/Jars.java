package weave;

import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.util.ArrayList;
import java.util.Enumeration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.zip.ZipEntry;
import java.util.zip.ZipFile;

/**
 * A loader for the classes of some jars that looks at nothing but the bytes: no signatures, no
 * sealing, no certificates. Weaving breaks a signed jar's digests, and that is not what is tested.
 */
final class Jars extends ClassLoader {
    private static final String VERSIONS = "META-INF/versions/";

    private record Place(ZipFile zip, ZipEntry entry) {}

    private final Map<String, Place> places;
    private final TreeSet<String> versioned = new TreeSet<>();

    /** Another loader of the same jars, with nothing loaded yet. */
    Jars(Jars other) {
        super(ClassLoader.getPlatformClassLoader());
        places = other.places;
    }

    Jars(List<String> jars, boolean multiRelease) throws IOException {
        super(ClassLoader.getPlatformClassLoader());
        places = new HashMap<>();
        Map<String, Integer> versions = new HashMap<>();
        for (String jar : jars) {
            ZipFile zip = new ZipFile(new File(jar));
            Enumeration<? extends ZipEntry> entries = zip.entries();
            while (entries.hasMoreElements()) {
                ZipEntry entry = entries.nextElement();
                String name = entry.getName();
                if (!name.endsWith(".class") || name.endsWith("module-info.class")) {
                    continue;
                }
                int version = 0;
                if (name.startsWith(VERSIONS)) {
                    int end = name.indexOf('/', VERSIONS.length());
                    version = Integer.parseInt(name.substring(VERSIONS.length(), end));
                    name = name.substring(end + 1);
                    if (!multiRelease || version > Runtime.version().feature()) {
                        continue;
                    }
                }
                String type = name.substring(0, name.length() - ".class".length()).replace('/', '.');
                Integer known = versions.get(type);
                if (known == null || version > known) {
                    versions.put(type, version);
                    places.put(type, new Place(zip, entry));
                    if (version > 0) {
                        versioned.add(type);
                    }
                }
            }
        }
    }

    List<String> names() {
        return new ArrayList<>(new TreeSet<>(places.keySet()));
    }

    List<String> versioned() {
        return new ArrayList<>(versioned);
    }

    /** Takes a class before the jars are asked for it. */
    Class<?> define(byte[] bytes) {
        return defineClass(null, bytes, 0, bytes.length);
    }

    byte[] bytes(String name) throws IOException {
        Place place = places.get(name);
        if (place == null) {
            return null;
        }
        try (InputStream in = place.zip.getInputStream(place.entry)) {
            return in.readAllBytes();
        }
    }

    @Override
    protected Class<?> findClass(String name) throws ClassNotFoundException {
        try {
            byte[] bytes = bytes(name);
            if (bytes == null) {
                throw new ClassNotFoundException(name);
            }
            return defineClass(name, bytes, 0, bytes.length);
        } catch (IOException e) {
            throw new ClassNotFoundException(name, e);
        }
    }
}
