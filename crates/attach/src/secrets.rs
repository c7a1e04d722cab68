//! Passwords on command lines: recordings and exports go to other people, who need to know how a
//! program was started, but not with which password.
//!
//! What is masked is guessed by names. It is meant for what people write without thinking, not as
//! a promise that nothing secret is left.

/// In place of a value.
const MASK: &str = "***";

/// What a name of something secret contains, in lower case and without what parts its words.
const SECRET: [&str; 14] = [
    "password",
    "passwd",
    "pwd",
    "passphrase",
    "secret",
    "token",
    "credential",
    "apikey",
    "accesskey",
    "privatekey",
    "encryptionkey",
    "signingkey",
    "masterkey",
    "auth",
];

/// What the words of names are parted by.
const PARTS: [char; 4] = ['.', '-', '_', ':'];

/// Words that end as `dbpass` does, and are no passwords.
const HARMLESS: [&str; 4] = ["bypass", "compass", "overpass", "underpass"];

/// What ends a value among others, as in `jdbc:…?user=x&password=y` or an agent's options.
const BETWEEN: [char; 5] = [',', ';', '&', '?', '|'];

/// A command line, its words as they are but for values whose names say that they are secret
/// (`-Ddb.password=…`, `--token …`), and users in addresses (`://user:password@host`).
#[must_use]
pub fn mask_secrets(words: &[String]) -> Vec<String> {
    let mut out: Vec<String> = Vec::with_capacity(words.len());
    let mut value_follows = false;
    for (at, word) in words.iter().enumerate() {
        let masked = match value_follows && !word.starts_with('-') {
            true => MASK.to_owned(),
            false => mask_addresses(&mask_values(word)),
        };
        // `--password x`; the JVM's own flags have their values in the same word.
        let option =
            word.starts_with('-') && !["-D", "-X", "-J"].iter().any(|p| word.starts_with(p));
        value_follows = at > 0 && option && !word.contains('=') && is_secret(word);
        out.push(masked);
    }
    out
}

/// The same for a command line in one piece.
#[must_use]
pub fn mask_secrets_in(line: &str) -> String {
    // The words may be parted by more than a blank, which stays.
    let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
    mask_secrets(&words).join(" ")
}

fn is_secret(name: &str) -> bool {
    let name = name.to_lowercase();
    let together: String = name.chars().filter(|c| !PARTS.contains(c)).collect();
    let is_pass = |word: &str| {
        word.ends_with("pass") && !HARMLESS.iter().any(|harmless| word.ends_with(harmless))
    };
    SECRET.iter().any(|part| together.contains(part)) || name.split(PARTS).any(is_pass)
}

/// Masks `name=value`, also where there are several in one word.
fn mask_values(word: &str) -> String {
    let mut out = String::with_capacity(word.len());
    let mut rest = word;
    let mut alone = true;
    while let Some(equals) = rest.find('=') {
        let (before, after) = rest.split_at(equals);
        let name = before.rsplit(BETWEEN).next().unwrap_or(before);
        alone &= name.len() == before.len();
        out.push_str(before);
        out.push('=');
        rest = &after[1..];
        if is_secret(name) {
            // The value of an option of its own may hold anything; among others it ends somewhere.
            let end = if alone { rest.len() } else { rest.find(BETWEEN).unwrap_or(rest.len()) };
            out.push_str(if end > 0 { MASK } else { "" });
            rest = &rest[end..];
        }
        alone = false;
    }
    out.push_str(rest);
    out
}

/// Masks the user in `scheme://user:password@host`.
fn mask_addresses(word: &str) -> String {
    let mut out = String::with_capacity(word.len());
    let mut rest = word;
    while let Some(at) = rest.find("://") {
        let (before, after) = rest.split_at(at + 3);
        out.push_str(before);
        let end = after.find(['/', '?', '#', ' ', '"', '\'']).unwrap_or(after.len());
        let user = after[..end].rfind('@');
        rest = match user {
            Some(user) => {
                out.push_str(MASK);
                &after[user..]
            }
            None => after,
        };
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_secret_names_are_masked_and_nothing_else() {
        for (line, masked) in [
            ("java -Ddb.Password=hunter2 -Xmx1g Main", "java -Ddb.Password=*** -Xmx1g Main"),
            ("java -Dtrust.pwd=a=b,c Main", "java -Dtrust.pwd=*** Main"),
            ("java Main --api-key=k --name=x", "java Main --api-key=*** --name=x"),
            ("java Main --token t1 -v", "java Main --token *** -v"),
            ("java Main --password -v", "java Main --password -v"),
            ("java Main spring.datasource.password=x", "java Main spring.datasource.password=***"),
            ("java -XX:+UseAuthTokens Main", "java -XX:+UseAuthTokens Main"),
            ("java -Dsecret= Main", "java -Dsecret= Main"),
            ("java -cp /opt/token.jar:b.jar Main", "java -cp /opt/token.jar:b.jar Main"),
            (
                "java -javaagent:a.jar=host=h,apikey=k,port=1 Main",
                "java -javaagent:a.jar=host=h,apikey=***,port=1 Main",
            ),
            (
                "java -Durl=jdbc:mysql://h/db?user=u&password=p&ssl=true Main",
                "java -Durl=jdbc:mysql://h/db?user=u&password=***&ssl=true Main",
            ),
            (
                "java Main https://me:pw@host/a@b http://h ftp://x@y",
                "java Main https://***@host/a@b http://h ftp://***@y",
            ),
            ("java  Main   a", "java  Main   a"),
            ("java -Ddb.pass=x -DdbPass=y Main", "java -Ddb.pass=*** -DdbPass=*** Main"),
            ("java Main --pass x --db-pass y", "java Main --pass *** --db-pass ***"),
            (
                "java Main --access-key k --private-key p",
                "java Main --access-key *** --private-key ***",
            ),
            (
                "java -Dprivatekey=p -Dprivate.key=q Main",
                "java -Dprivatekey=*** -Dprivate.key=*** Main",
            ),
            ("java -Dapi.key=k -DAPIKEY=k Main", "java -Dapi.key=*** -DAPIKEY=*** Main"),
            ("java -Daws.accessKeyId=k Main", "java -Daws.accessKeyId=*** Main"),
            ("java -Dgit.credentials=c Main", "java -Dgit.credentials=*** Main"),
            ("java -jar a.jar keystore.storepass=s", "java -jar a.jar keystore.storepass=***"),
            // Too much is masked rather than too little, but not just anything.
            ("java -Dpassword.encoder=bcrypt Main", "java -Dpassword.encoder=*** Main"),
            ("java -Dcompass.home=/c -Dpassive=1 Main", "java -Dcompass.home=/c -Dpassive=1 Main"),
            ("java -Dkey.file=/k Main --keys 3", "java -Dkey.file=/k Main --keys 3"),
        ] {
            assert_eq!(mask_secrets_in(line), masked);
        }
        assert!(mask_secrets(&[]).is_empty());
    }
}
