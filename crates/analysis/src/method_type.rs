//! What kind of code a traced method ran in: the interpreter's, a compiler's with its tier, or
//! native; and whether the method is static.

/// HotSpot's tiers are 1 to 4; 0 is the interpreter, and what comes after them native code.
const KINDS: u8 = 6;
const NATIVE: u8 = 5;

/// The type of a method at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MethodType(u8);

impl MethodType {
    /// Code that is not traced, below all that is.
    pub const OUTSIDE: MethodType = MethodType(2 * KINDS);
    /// All of them, that one included.
    pub const COUNT: usize = 2 * KINDS as usize + 1;

    pub fn new(is_static: bool, tier: u8) -> Self {
        MethodType(tier.min(NATIVE - 1) + if is_static { KINDS } else { 0 })
    }

    pub fn native(is_static: bool) -> Self {
        MethodType(NATIVE + if is_static { KINDS } else { 0 })
    }

    /// By its number, as the agent's calibration of a trace has it.
    pub fn from_index(index: u32) -> Option<Self> {
        u8::try_from(index).ok().filter(|index| usize::from(*index) < Self::COUNT).map(MethodType)
    }

    pub fn index(self) -> usize {
        usize::from(self.0)
    }

    pub fn is_static(self) -> bool {
        (KINDS..2 * KINDS).contains(&self.0)
    }

    pub fn is_interpreted(self) -> bool {
        self == MethodType::new(false, 0) || self == MethodType::new(true, 0)
    }

    pub fn is_native(self) -> bool {
        self == MethodType::native(false) || self == MethodType::native(true)
    }

    /// As it stands in a recording.
    pub fn name(self) -> String {
        if self == MethodType::OUTSIDE {
            return "outside".to_owned();
        }
        let code = match self.0 % KINDS {
            0 => "interpreted".to_owned(),
            NATIVE => "native".to_owned(),
            tier => format!("tier {tier}"),
        };
        if self.is_static() { format!("static {code}") } else { code }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        MethodType::all().find(|kind| kind.name() == name)
    }

    pub fn all() -> impl Iterator<Item = MethodType> {
        (0..MethodType::COUNT as u8).map(MethodType)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_back() {
        for kind in MethodType::all() {
            assert_eq!(MethodType::from_name(&kind.name()), Some(kind));
            assert_eq!(MethodType::from_index(kind.index() as u32), Some(kind));
        }
        assert_eq!(MethodType::new(false, 200).name(), "tier 4");
        assert_eq!(MethodType::native(true).name(), "static native");
        assert!(MethodType::new(true, 0).is_interpreted() && !MethodType::OUTSIDE.is_static());
        assert_eq!(MethodType::from_name("jitted"), None);
        assert_eq!(MethodType::from_index(13), None);
    }
}
