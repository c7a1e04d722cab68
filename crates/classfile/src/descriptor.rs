//! Field and method descriptors, read without allocating.

/// One field type at the start of a descriptor: its bytes and what follows.
///
/// `None` when malformed. `V` is not a field type.
pub fn split_field(descriptor: &[u8]) -> Option<(&[u8], &[u8])> {
    let dims = descriptor.iter().take_while(|&&b| b == b'[').count();
    if dims > 255 {
        return None;
    }
    let len = match descriptor.get(dims)? {
        b'B' | b'C' | b'D' | b'F' | b'I' | b'J' | b'S' | b'Z' => dims + 1,
        b'L' => {
            let name = descriptor.get(dims + 1..)?;
            let end = name.iter().position(|&b| b == b';')?;
            if end == 0 {
                return None;
            }
            dims + 1 + end + 1
        }
        _ => return None,
    };
    Some(descriptor.split_at(len))
}

/// A method descriptor: iterate the parameters, then ask for the return type.
#[derive(Clone, Copy, Debug)]
pub struct MethodDescriptor<'a> {
    parameters: &'a [u8],
    /// The return type: a field type, or `V`.
    pub returns: &'a [u8],
}

impl<'a> MethodDescriptor<'a> {
    pub fn parse(descriptor: &'a [u8]) -> Option<Self> {
        let body = descriptor.strip_prefix(b"(")?;
        let mut rest = body;
        while !rest.starts_with(b")") {
            rest = split_field(rest)?.1;
        }
        let parameters = body.get(..body.len() - rest.len())?;
        let returns = rest.get(1..)?;
        let whole = returns == b"V" || split_field(returns).is_some_and(|(_, r)| r.is_empty());
        whole.then_some(Self { parameters, returns })
    }

    pub fn parameters(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let mut rest = self.parameters;
        std::iter::from_fn(move || {
            let (first, next) = split_field(rest)?;
            rest = next;
            Some(first)
        })
    }

    /// How many local-variable slots the parameters take, without a receiver.
    pub fn parameter_slots(&self) -> usize {
        self.parameters().map(slots).sum()
    }
}

/// Slots of a field type or of `V`: 0, 1 or 2.
pub fn slots(ty: &[u8]) -> usize {
    match ty.first() {
        Some(b'J' | b'D') => 2,
        Some(b'V') | None => 0,
        _ => 1,
    }
}

/// The name that a `Class` constant uses for a reference type: `java/lang/String` or `[I`.
pub fn class_constant_name(ty: &[u8]) -> &[u8] {
    match ty {
        [b'L', name @ .., b';'] => name,
        _ => ty,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(descriptor: &str, expected: Option<(&[&str], &str)>) {
        let parsed = MethodDescriptor::parse(descriptor.as_bytes());
        let parsed = parsed.map(|d| {
            let parameters: Vec<_> = d.parameters().map(|p| str::from_utf8(p).unwrap()).collect();
            (parameters, str::from_utf8(d.returns).unwrap())
        });
        assert_eq!(parsed, expected.map(|(p, r)| (p.to_vec(), r)), "{descriptor}");
    }

    #[test]
    fn method_descriptors() {
        check("()V", Some((&[], "V")));
        check("(IJ[[DLa/B;[Lc;)[I", Some((&["I", "J", "[[D", "La/B;", "[Lc;"], "[I")));
        for bad in ["", "()", "(V)V", "(L;)V", "(La)V", "(I", "()II", "([)V", "()VV", "I"] {
            check(bad, None);
        }
    }

    #[test]
    fn slots_of_parameters() {
        let d = MethodDescriptor::parse(b"(IJD[JLx;)V").unwrap();
        assert_eq!(d.parameter_slots(), 7);
    }
}
