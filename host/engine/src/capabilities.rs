//! What a plugin may reach. Nothing is granted by default: HTTP goes to the listed addresses, files to the listed folders, and the environment
//! holds the listed variables. Clocks and random numbers are free. Sockets are not lent yet.

use std::collections::BTreeMap;
use std::fmt;
use std::net::Ipv6Addr;
use std::path::PathBuf;
use std::str::FromStr;

use serde::Serialize;

use crate::code::Code;
use crate::error::EngineError;
use crate::model::Description;

/// What the operator grants one sink.
#[derive(Clone, Debug, Default)]
pub struct Grants {
    /// Addresses for HTTP and HTTPS, checked at each request.
    pub http: Vec<HostPort>,
    /// Folders.
    pub folders: Vec<Folder>,
    /// Environment variables.
    pub env: BTreeMap<String, String>,
    /// A PEM file of certificate authorities to trust for HTTPS, besides the public ones.
    pub ca_file: Option<PathBuf>,
}

impl Grants {
    /// Whether a request to that host and port may be sent.
    pub(crate) fn allows_http(&self, host: &str, port: u16) -> bool {
        self.http.iter().any(|granted| granted.port == port && granted.host.eq_ignore_ascii_case(host))
    }
}

/// A folder of this machine, under the name that the plugin sees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Folder {
    /// The absolute path that the plugin uses.
    pub guest: String,
    /// The folder here. It must exist when an instance is made.
    pub host: PathBuf,
    /// False: the plugin reads only.
    pub write: bool,
}

/// A host name or address, and a port. Written `host:port`, IPv6 addresses in brackets.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HostPort {
    /// The name or the address, lower case, without brackets.
    pub host: String,
    /// The port.
    pub port: u16,
}

impl FromStr for HostPort {
    type Err = EngineError;

    fn from_str(text: &str) -> Result<Self, EngineError> {
        parse_host_port(text).ok_or_else(|| {
            let message = "an address is `host:port`, such as `127.0.0.1:8030`, `[::1]:8030` or `fe.example.org:8030`";
            EngineError::load(Code::GrantHttp, format!("`{}`", crate::text::clean_line(text, 200)), message)
        })
    }
}

fn parse_host_port(text: &str) -> Option<HostPort> {
    let (host, port) = text.rsplit_once(':')?;
    let port: u16 = port.parse().ok().filter(|port| *port != 0)?;
    let host = match host.strip_prefix('[') {
        Some(rest) => rest.strip_suffix(']')?.parse::<Ipv6Addr>().ok()?.to_string(),
        None => {
            let named = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_');
            if host.is_empty() || host.len() > 253 || !host.bytes().all(named) {
                return None;
            }
            host.to_ascii_lowercase()
        }
    };
    Some(HostPort { host, port })
}

impl fmt::Display for HostPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') { write!(f, "[{}]:{}", self.host, self.port) } else { write!(f, "{}:{}", self.host, self.port) }
    }
}

/// Something that a plugin wants to reach and may not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MissingGrant {
    /// The interface, without its version.
    pub interface: String,
    /// The plugin's reason, where its description gives one.
    pub why: Option<String>,
    /// True: its description says that it needs this. False: it imports it, which toolchains of scripts always do.
    pub declared: bool,
    /// What to do.
    pub remedy: Remedy,
}

/// How a missing grant is given.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Remedy {
    /// The line to add to the sink in the pipeline file.
    Add(String),
    /// This version of Weir cannot lend it.
    NotSupported,
}

/// The interfaces of WASI 0.2 that are linked. What is not granted answers every use with a refusal.
const WASI_PACKAGES: &[&str] = &["wasi:io", "wasi:cli", "wasi:clocks", "wasi:random", "wasi:filesystem", "wasi:sockets", "wasi:http"];

/// Whether an import can be satisfied at all.
pub(crate) fn is_served(import: &str, contract: &str) -> bool {
    if import == format!("weir:sink/types@{contract}") {
        return true; // types only
    }
    let (interface, version) = import.split_once('@').unwrap_or((import, ""));
    let package = interface.split_once('/').map_or(interface, |(package, _)| package);
    let served = WASI_PACKAGES.contains(&package) && interface != "wasi:http/incoming-handler";
    served && version.split('.').take(2).eq(["0", "2"])
}

/// What a plugin wants beyond its grants.
pub(crate) fn missing(description: &Description, imports: &[String], grants: &Grants) -> Vec<MissingGrant> {
    let mut missing: Vec<MissingGrant> = Vec::new();
    for need in &description.needs {
        if let Some(remedy) = remedy(&need.name, grants) {
            missing.push(MissingGrant { interface: need.name.clone(), why: Some(need.why.clone()), declared: true, remedy });
        }
    }
    for import in imports {
        let interface = import.split_once('@').map_or(import.as_str(), |(name, _)| name);
        if missing.iter().any(|known| known.interface == interface) {
            continue;
        }
        // Of each package, the one interface without which the others are of no use.
        if !matches!(
            interface,
            "wasi:http/outgoing-handler" | "wasi:filesystem/preopens" | "wasi:sockets/tcp-create-socket" | "wasi:sockets/udp-create-socket"
        ) {
            continue;
        }
        if let Some(remedy) = remedy(interface, grants) {
            missing.push(MissingGrant { interface: interface.to_owned(), why: None, declared: false, remedy });
        }
    }
    missing
}

/// How an interface is granted; `None` where it is, or needs no grant.
fn remedy(interface: &str, grants: &Grants) -> Option<Remedy> {
    let package = interface.split_once('/').map_or(interface, |(package, _)| package);
    match package {
        "wasi:http" if grants.http.is_empty() => Some(Remedy::Add("grant: { http: [\"HOST:PORT\"] }".to_owned())),
        "wasi:filesystem" if grants.folders.is_empty() => Some(Remedy::Add("grant: { folders: { /GUEST/PATH: ./HOST/PATH } }".to_owned())),
        "wasi:sockets" => Some(Remedy::NotSupported),
        "wasi:http" | "wasi:filesystem" | "wasi:io" | "wasi:cli" | "wasi:clocks" | "wasi:random" => None,
        _ => Some(Remedy::NotSupported),
    }
}

#[cfg(test)]
mod tests {
    use super::{Grants, HostPort, is_served};

    #[test]
    fn addresses_are_host_and_port_and_nothing_else() {
        for (text, shown) in [("127.0.0.1:8030", "127.0.0.1:8030"), ("FE.Example:80", "fe.example:80"), ("[::1]:9", "[::1]:9")] {
            assert_eq!(text.parse::<HostPort>().map(|address| address.to_string()).ok().as_deref(), Some(shown));
        }
        for text in ["http://fe:8030", "fe", "fe:", "fe:0", "fe:70000", ":80", "::1:80", "[::1]", "user@fe:80", "fe/x:80", "*:80"] {
            assert!(text.parse::<HostPort>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_grant_is_for_one_port() {
        let grants = Grants { http: "fe:8030".parse().into_iter().collect(), ..Grants::default() };
        assert!(grants.allows_http("FE", 8030));
        assert!(!grants.allows_http("fe", 8031));
        assert!(!grants.allows_http("fe.evil", 8030));
    }

    #[test]
    fn only_wasi_0_2_and_the_types_of_the_contract_are_served() {
        for good in ["wasi:io/streams@0.2.9", "wasi:http/types@0.2.0", "weir:sink/types@0.1.0"] {
            assert!(is_served(good, "0.1.0"), "{good}");
        }
        for bad in
            ["wasi:http/types@0.3.0", "wasi:keyvalue/store@0.2.0", "env", "weir:sink/types@0.2.0", "wasi:http/incoming-handler@0.2.0"]
        {
            assert!(!is_served(bad, "0.1.0"), "{bad}");
        }
    }
}
