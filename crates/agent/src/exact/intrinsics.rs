//! Methods in whose place HotSpot runs code of its own.

/// The interpreter does that, too: a woven body would never be run.
const NEVER_RUN: [(&str, &[&str]); 5] = [
    (
        "java/lang/Math",
        &[
            "abs(D)D",
            "sin(D)D",
            "cos(D)D",
            "tan(D)D",
            "tanh(D)D",
            "cbrt(D)D",
            "sqrt(D)D",
            "log(D)D",
            "log10(D)D",
            "pow(DD)D",
            "exp(D)D",
            "fma(DDD)D",
            "fma(FFF)F",
        ],
    ),
    ("java/lang/StrictMath", &["sqrt(D)D"]),
    ("java/lang/Float", &["float16ToFloat(S)F", "floatToFloat16(F)S"]),
    ("java/lang/ref/Reference", &["get()Ljava/lang/Object;"]),
    ("java/util/zip/CRC32C", &["updateBytes(I[BII)I", "updateDirectByteBuffer(IJII)I"]),
];

/// Why those are not woven.
pub const REASON: &str = "the JVM runs code of its own in its place, also where it interprets";

/// Whether no woven body of a method would ever be run.
pub fn is_never_run(class: &str, method: &[u8], descriptor: &[u8]) -> bool {
    NEVER_RUN.iter().filter(|(name, _)| *name == class).any(|(_, methods)| {
        methods.iter().any(|known| {
            let (name, rest) = known.split_at(known.find('(').unwrap_or(known.len()));
            name.as_bytes() == method && rest.as_bytes() == descriptor
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_go_by_name_and_descriptor() {
        assert!(is_never_run("java/lang/Math", b"abs", b"(D)D"));
        assert!(!is_never_run("java/lang/Math", b"abs", b"(I)I"));
        assert!(!is_never_run("java/lang/Math", b"ab", b"s(D)D"));
        assert!(!is_never_run("a/B", b"abs", b"(D)D"));
    }
}
