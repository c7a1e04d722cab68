//! What a Java method is in a profile, whoever met it: an exact recording and samples name the same
//! method by the same row, so that counts and samples of it can be joined.
//!
//! A method is its class, name, descriptor and class loader. The class is called as in every run:
//! without the numbers that the JVM and libraries make up for proxies, lambdas and other generated
//! classes.

use crate::origins::Origins;
use tare_arena::MethodName;
use tare_arena::samples::SampleMethod;
use tare_java_names::stable;
use tare_profile::{Method, MethodId, MethodKind, Profile};

/// What is told of a method inside the JVM. Classes are spelled as in class files.
pub struct JavaMethod<'a> {
    class: &'a str,
    name: &'a str,
    descriptor: &'a str,
    file: &'a str,
    line: Option<u32>,
    loader: u32,
    loader_class: &'a str,
}

impl<'a> JavaMethod<'a> {
    /// A method that was woven.
    pub fn woven(method: &'a MethodName) -> Self {
        JavaMethod {
            class: &method.class,
            name: &method.name,
            descriptor: &method.descriptor,
            file: &method.file,
            line: (method.line > 0).then_some(method.line),
            loader: method.loader,
            loader_class: &method.loader_class,
        }
    }

    /// A method that was sampled; `None` if its class was gone before its name was asked for.
    pub fn sampled(method: &'a SampleMethod) -> Option<Self> {
        (!method.name.is_empty()).then(|| JavaMethod {
            class: &method.class,
            name: &method.name,
            descriptor: &method.descriptor,
            file: &method.file,
            line: method.lines.iter().map(|entry| u32::from(entry.line)).min(),
            loader: method.loader,
            loader_class: &method.loader_class,
        })
    }

    /// Its row in a profile.
    pub fn add(&self, profile: &mut Profile, origins: Option<&Origins>) -> MethodId {
        let origin = origins.and_then(|origins| origins.of_class(self.class));
        let mut intern = |text: &str| profile.strings.intern(text);
        let method = Method {
            kind: MethodKind::Java,
            class: intern(&stable(self.class).replace('/', ".")),
            name: intern(self.name),
            descriptor: intern(self.descriptor),
            file: intern(self.file),
            line: self.line,
            loader: intern(&loader_name(self.loader, self.loader_class)),
            module: intern(origin.as_deref().unwrap_or_default()),
        };
        profile.methods.intern(method)
    }
}

/// The JDK's own loaders by the names that its documentation gives them, others by class and
/// number.
pub fn loader_name(number: u32, class: &str) -> String {
    match (number, class) {
        (0, _) => "boot".to_owned(),
        (_, "jdk/internal/loader/ClassLoaders$AppClassLoader") => "app".to_owned(),
        (_, "jdk/internal/loader/ClassLoaders$PlatformClassLoader") => "platform".to_owned(),
        (_, "") => format!("loader {number}"),
        (_, class) => format!("{} #{number}", class.replace('/', ".")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tare_arena::samples::LineEntry;

    #[test]
    fn counted_and_sampled_it_is_the_same_method() {
        let check = |class: &str, loader: u32, loader_class: &str, name: &str, from: &str| {
            let woven = MethodName {
                loader,
                loader_class: loader_class.into(),
                class: class.into(),
                name: "place".into(),
                descriptor: "()V".into(),
                file: "Orders.java".into(),
                line: 7,
                ..MethodName::default()
            };
            let lines = [9, 7].map(|line| LineEntry { bci: 0, line }).to_vec();
            let sampled = SampleMethod {
                loader,
                loader_class: loader_class.into(),
                class: class.into(),
                name: "place".into(),
                descriptor: "()V".into(),
                file: "Orders.java".into(),
                lines,
                ..SampleMethod::default()
            };
            let mut profile = Profile::new();
            let counted = JavaMethod::woven(&woven).add(&mut profile, None);
            let met = JavaMethod::sampled(&sampled).unwrap().add(&mut profile, None);
            assert_eq!(counted, met, "{class}");
            let method = profile.methods.get(met);
            assert_eq!(profile.strings.get(method.class), name);
            assert_eq!(profile.strings.get(method.loader), from);
        };
        let app = "jdk/internal/loader/ClassLoaders$AppClassLoader";
        check("com/acme/Orders", 2, app, "com.acme.Orders", "app");
        check("jdk/proxy2/$Proxy12", 2, app, "jdk.proxy2.$Proxy", "app");
        check(
            "com/acme/A$ByteBuddy$x7Yz",
            4,
            "com/acme/L",
            "com.acme.A$ByteBuddy",
            "com.acme.L #4",
        );
        check("java/lang/String", 0, "", "java.lang.String", "boot");
        assert!(JavaMethod::sampled(&SampleMethod::default()).is_none());
    }
}
