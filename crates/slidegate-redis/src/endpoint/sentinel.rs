//! The URL of a primary that sentinels watch.

use std::fs;

use redis::{RedisConnectionInfo, parse_redis_url};

use super::authority::Authority;
use super::{Address, Endpoint, Servers};
use crate::options::OptionsError;

/// The form of its URL, for remedies.
pub(crate) const FORM: &str = "redis+sentinel://[USER:PASSWORD@]HOST[:PORT],HOST[:PORT]/MASTER[/DATABASE]";

const PORT_DEFAULT: u16 = 26379;

const USERNAME: &str = "sentinel_username";
const PASSWORD: &str = "sentinel_password";
const PASSWORD_FILE: &str = "sentinel_password_file";

/// Its parameters, beside those of one server.
pub(super) const PARAMETERS: &[&str] = &["protocol", USERNAME, PASSWORD, PASSWORD_FILE];

/// The sentinels of one primary.
#[derive(Debug, Clone)]
pub(crate) struct SentinelServers {
    /// Of the sentinels; at least one.
    pub(crate) addresses: Vec<Address>,
    /// The name under which they watch the primary.
    pub(crate) master: String,
    /// The login to the sentinels. Its `Debug` redacts the password.
    pub(crate) login: RedisConnectionInfo,
}

/// Parses what follows the scheme.
pub(super) fn parse(rest: &str, tls: bool) -> Result<Endpoint, OptionsError> {
    let authority = Authority::split(rest);
    let addresses = authority.addresses(PORT_DEFAULT, tls).map_err(malformed)?;
    let (master, database) = authority.path.split_once('/').unwrap_or((authority.path, ""));
    let master = percent_decoded(master)
        .ok_or_else(|| malformed("the name of the primary is not UTF-8; percent-encode it as UTF-8"))?;
    if master.is_empty() {
        let why = "the name of the primary is missing; write it after the hosts, as in /mymaster";
        return Err(malformed(why));
    }
    let url = authority.with_database(database);
    let login = login_of_sentinels(&url)?;
    let servers = Servers::Sentinels(SentinelServers { addresses, master, login });
    Ok(Endpoint { servers, ..Endpoint::parse_one(&url, tls, PARAMETERS)? })
}

/// Reads the sentinels' own login from the parameters.
fn login_of_sentinels(url: &str) -> Result<RedisConnectionInfo, OptionsError> {
    let parsed = parse_redis_url(url).ok_or_else(|| {
        malformed("it cannot be read; percent-encode what is special in its login and parameters")
    })?;
    let parameter = |name: &str| {
        let mut values = parsed.query_pairs().filter(|(other, _)| other == name).map(|(_, value)| value);
        match (values.next(), values.next()) {
            (_, Some(_)) => Err(malformed(&format!("{name} is given twice; give it once"))),
            (value, None) => Ok(value.map(String::from)),
        }
    };
    let (username, password, file) = (parameter(USERNAME)?, parameter(PASSWORD)?, parameter(PASSWORD_FILE)?);
    let password = match (password, file) {
        (Some(_), Some(_)) => {
            return Err(malformed(&format!("it has {PASSWORD} and {PASSWORD_FILE}; give one of them")));
        }
        (None, Some(path)) => Some(read_password(&path)?),
        (password, None) => password,
    };
    login(username.as_deref(), password.as_deref())
}

/// The login to the sentinels.
fn login(username: Option<&str>, password: Option<&str>) -> Result<RedisConnectionInfo, OptionsError> {
    let login = RedisConnectionInfo::default().set_lib_name("slidegate", env!("CARGO_PKG_VERSION"));
    match (username, password) {
        (None, None) => Ok(login),
        (None, Some(password)) => Ok(login.set_password(password)),
        (Some(username), Some(password)) => Ok(login.set_username(username).set_password(password)),
        (Some(_), None) => {
            let why = format!("it has {USERNAME} and no password; give {PASSWORD} or {PASSWORD_FILE} too");
            Err(malformed(&why))
        }
    }
}

/// The password in a file, without the end of its line. The error has no path, in case that is the password.
fn read_password(path: &str) -> Result<String, OptionsError> {
    let failed =
        |why: &str| malformed(&format!("{PASSWORD_FILE}: {why}; give a file that has only the password"));
    let text = fs::read_to_string(path).map_err(|error| failed(&format!("it cannot be read ({error})")))?;
    let password = text.strip_suffix('\n').unwrap_or(&text);
    let password = password.strip_suffix('\r').unwrap_or(password);
    if password.is_empty() || password.contains('\n') {
        return Err(failed("it has no line, or several"));
    }
    Ok(password.to_owned())
}

/// Decodes `%2F` and its like, which the path of a URL keeps; `None` if that is not UTF-8.
fn percent_decoded(text: &str) -> Option<String> {
    let (mut bytes, mut rest) = (Vec::with_capacity(text.len()), text.as_bytes());
    while let Some((&byte, after)) = rest.split_first() {
        let hex = after.first_chunk::<2>().filter(|_| byte == b'%');
        let decoded = hex.and_then(|hex| u8::from_str_radix(str::from_utf8(hex).ok()?, 16).ok());
        rest = if decoded.is_some() { &after[2..] } else { after };
        bytes.push(decoded.unwrap_or(byte));
    }
    String::from_utf8(bytes).ok()
}

fn malformed(why: &str) -> OptionsError {
    OptionsError::Sentinel { why: why.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(url: &str) -> (Endpoint, SentinelServers) {
        let endpoint = Endpoint::parse(url).unwrap_or_else(|error| panic!("{url}: {error}"));
        match endpoint.servers.clone() {
            Servers::Sentinels(sentinels) => (endpoint, sentinels),
            other => panic!("{url}: {other:?}"),
        }
    }

    #[test]
    fn sentinels_are_parsed() {
        for scheme in ["redis+sentinel", "valkey+sentinel", "rediss+sentinel", "valkeys+sentinel"] {
            let (endpoint, sentinels) =
                parsed(&format!("{scheme}://bob:s%40cret@h1:7000,[::1],h3/my%2Fmain/2"));
            let shown: Vec<_> = sentinels.addresses.iter().map(ToString::to_string).collect();
            assert_eq!(shown, ["h1:7000", "[::1]:26379", "h3:26379"]);
            let encrypted = scheme.starts_with("rediss") || scheme.starts_with("valkeys");
            for address in &sentinels.addresses {
                assert!(matches!(address, Address::Tcp { tls, .. } if *tls == encrypted), "{scheme}");
            }
            assert_eq!(sentinels.master, "my/main");
            let login = &endpoint.login;
            assert_eq!((login.username(), login.password(), login.db()), (Some("bob"), Some("s@cret"), 2));
            assert_eq!((sentinels.login.username(), sentinels.login.password()), (None, None));
        }
        let (_, sentinels) = parsed("redis+sentinel://localhost/main");
        assert_eq!((&*sentinels.master, sentinels.addresses.len()), ("main", 1));
    }

    #[test]
    fn the_login_of_sentinels_is_their_own() {
        let (endpoint, sentinels) =
            parsed("redis+sentinel://:hunter2@h1/main?sentinel_username=eve&sentinel_password=hunter3%26");
        assert_eq!((sentinels.login.username(), sentinels.login.password()), (Some("eve"), Some("hunter3&")));
        assert_eq!(endpoint.login.password(), Some("hunter2"));
        let shown = format!("{endpoint:?} {sentinels:?}");
        assert!(!shown.contains("hunter2") && !shown.contains("hunter3"), "{shown}");

        let file = std::env::temp_dir().join(format!("slidegate-sentinel-{}", std::process::id()));
        let url = format!("redis+sentinel://h1/main?sentinel_password_file={}", file.display());
        fs::write(&file, "hunter4\r\n").unwrap();
        assert_eq!(parsed(&url).1.login.password(), Some("hunter4"));
        for text in ["", "\n", "hunter4\nhunter5\n"] {
            fs::write(&file, text).unwrap();
            let error = Endpoint::parse(&url).unwrap_err().to_string();
            assert!(error.contains("sentinel_password_file: ") && !error.contains("hunter"), "{error}");
        }
        fs::remove_file(&file).unwrap();
        let error = Endpoint::parse(&url).unwrap_err().to_string();
        assert!(error.contains("cannot be read") && !error.contains(&*file.to_string_lossy()), "{error}");
    }

    #[test]
    fn what_is_wrong_is_named_without_a_password() {
        for (rest, named) in [
            ("bob:hunter2@h1:26379,h2", "/mymaster"),
            ("bob:hunter2@h1:26379,h2/", "/mymaster"),
            ("bob:hunter2@/main", "empty host"),
            ("bob:hunter2@h1,,h2/main", "empty host"),
            ("bob:hunter2@h1:port/main", "HOST:PORT"),
            ("bob:hunter2@h1/main/one", "number of a database"),
            ("bob:hunter2@h1/main?sentinel=hunter2", "`sentinel`"),
            ("bob:hunter2@h1/main?sentinel_username=hunter2", "sentinel_password"),
            ("h1/main?sentinel_password=hunter2&sentinel_password_file=hunter2", "one of them"),
            (
                "h1/main?sentinel_password=hunter2&sentinel_password=hunter2",
                "sentinel_password is given twice",
            ),
            ("h1/main%FF", "UTF-8"),
            ("bob@h1/main", "no password"),
        ] {
            let error = Endpoint::parse(&format!("redis+sentinel://{rest}")).expect_err(rest).to_string();
            assert!(error.contains(named), "{rest}: {error}");
            assert!(!error.contains("hunter2"), "{rest}: {error}");
        }
    }
}
