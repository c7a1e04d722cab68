//! What belongs to the JDK, by the package.

/// Packages of the JDK and of the compilers that come with one. `javax.` and `com.sun.` hold
/// libraries too that come apart from it; nobody can tell those by their names.
const JDK: [&str; 11] = [
    "java.",
    "javax.",
    "jdk.",
    "sun.",
    "com.sun.",
    "netscape.javascript.",
    "org.graalvm.",
    "org.ietf.jgss.",
    "org.jcp.xml.",
    "org.w3c.dom.",
    "org.xml.sax.",
];

/// Whether a class, or a method by its whole name, is of the JDK. Recordings leave these classes
/// alone unless a pattern names them, and reports hide them with `--hide-jdk`.
#[must_use]
pub fn is_jdk(class: &str) -> bool {
    let same = |(a, b): (u8, u8)| a == b || (a == b'.' && b == b'/');
    JDK.iter()
        .any(|prefix| class.len() >= prefix.len() && prefix.bytes().zip(class.bytes()).all(same))
}

/// `com.acme` of `com.acme.Orders$Line`, spelled with dots; empty for a class without a package.
#[must_use]
pub fn package_of(class: &str) -> &str {
    // A hidden class carries an address after a slash, a lambda form dots in it.
    let class = class.split(['/', '[', '(']).next().unwrap_or_default();
    class.rfind('.').map_or("", |dot| &class[..dot])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_jdk_is_known_in_both_spellings() {
        for class in [
            "java.lang.String",
            "java/lang/String",
            "javax/crypto/Cipher",
            "jdk.internal.misc.Unsafe",
            "sun/nio/ch/Net",
            "com/sun/tools/javac/Main",
            "com.sun.proxy.$Proxy12",
            "netscape.javascript.JSObject",
            "org/graalvm/compiler/core/GraalCompiler",
            "org.ietf.jgss.Oid",
            "org/jcp/xml/dsig/internal/DigesterOutputStream",
            "org.w3c.dom.Node",
            "org/xml/sax/Parser",
            "java.util.HashMap.get",
        ] {
            assert!(is_jdk(class), "{class}");
        }
        for class in [
            "",
            "java",
            "javaX/A",
            "javafx.Stage",
            "com.acme.java.A",
            "com/sunny/A",
            "org/w3c/css/A",
            "org.openjdk.jmh.Main",
            "jakarta.servlet.Servlet",
        ] {
            assert!(!is_jdk(class), "{class}");
        }
    }

    #[test]
    fn packages() {
        for (class, package) in [
            ("com.acme.Orders$Line", "com.acme"),
            ("Main", ""),
            ("com.acme.Orders$$Lambda/0x00007f.12", "com.acme"),
            ("java.lang.String[]", "java.lang"),
        ] {
            assert_eq!(package_of(class), package, "{class}");
        }
    }
}
