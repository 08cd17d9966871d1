//! Addresses: base URLs of the config, and where a redirect may lead.
//!
//! A front end (FE) never takes a load's body; it answers 307 with the address of a back end (BE), and puts the caller's user and
//! password into that address (Doris: `fe/.../httpv2/rest/RestBaseController.java`, `redirectTo`).

use std::collections::BTreeMap;
use std::fmt;

use http::Uri;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// What stays as it is in a path segment or a query value: RFC 3986's unreserved characters.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// Where a back end serves the rows that a load could not take.
const ERROR_LOG_PATH: &str = "/api/_load_error_log";

/// One server. Equal when scheme, host, port and path prefix are equal.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Endpoint {
    /// TLS or not.
    pub(crate) https: bool,
    /// Lower-case host and explicit port.
    pub(crate) authority: String,
    /// Path in front of `/api`, for servers behind a reverse proxy; mostly empty, never with a slash at its end.
    pub(crate) prefix: String,
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.https { "https" } else { "http" };
        write!(f, "{scheme}://{}{}", self.authority, self.prefix)
    }
}

/// Why a text is not an address that can be used. No message holds user info.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum EndpointError {
    #[error("`{0}` is not an http:// or https:// URL with a host")]
    NotAUrl(String),
    #[error("the URL of {0} carries a user or a password; they have keys of their own")]
    Credentials(String),
    #[error("the URL of {0} carries a query")]
    Query(String),
    #[error("Doris answered with a redirect that names no address")]
    NoLocation,
    #[error("Doris redirected from {from} (https) to {to} (http); credentials are not sent there")]
    Downgrade { from: String, to: String },
    #[error("Doris redirected to {authority}, which the key `addresses` does not list")]
    NotListed { authority: String },
    #[error("Doris redirected to another path of {authority}: {path}")]
    OtherPath { authority: String, path: String },
}

impl Endpoint {
    /// Reads a base URL of the config, for example `http://fe1:8030`.
    pub(crate) fn parse(text: &str) -> Result<Self, EndpointError> {
        let (plain, credentials) = strip_user_info(text).ok_or_else(|| EndpointError::NotAUrl(hide(text)))?;
        let (endpoint, path, query) = split(&plain)?;
        if credentials {
            return Err(EndpointError::Credentials(endpoint.authority));
        }
        if query.is_some() {
            return Err(EndpointError::Query(endpoint.authority));
        }
        Ok(Self { prefix: path.trim_end_matches('/').to_owned(), ..endpoint })
    }

    /// Where a redirect of `self` leads for a request of `path` (without query and prefix). `addresses` maps registered addresses
    /// (`host:port`) to the ones to use instead; when it has entries, others are refused.
    ///
    /// User info is dropped, and so is the query: the caller adds its own again.
    pub(crate) fn redirect(
        &self,
        location: Option<&str>,
        path: &str,
        addresses: &BTreeMap<String, Endpoint>,
    ) -> Result<Self, EndpointError> {
        let location = location.ok_or(EndpointError::NoLocation)?;
        let (plain, _) = strip_user_info(location).ok_or_else(|| EndpointError::NotAUrl(hide(location)))?;
        let (registered, found, _) = split(&plain)?;
        if !same_path(&found, path) {
            return Err(EndpointError::OtherPath { authority: registered.authority, path: found });
        }
        let target = match addresses.get(&registered.authority) {
            Some(instead) => instead.clone(),
            None if addresses.is_empty() => registered,
            None => return Err(EndpointError::NotListed { authority: registered.authority }),
        };
        if self.https && !target.https {
            return Err(EndpointError::Downgrade { from: self.authority.clone(), to: target.authority });
        }
        Ok(target)
    }

    /// Server and path with query of a load's list of bad rows, if it is one and may be fetched.
    pub(crate) fn of_error_log(url: &str, addresses: &BTreeMap<String, Endpoint>) -> Option<(Self, String)> {
        let (plain, _) = strip_user_info(url)?;
        let (registered, path, query) = split(&plain).ok()?;
        if path != ERROR_LOG_PATH {
            return None;
        }
        let server = match addresses.get(&registered.authority) {
            Some(instead) => instead.clone(),
            None if addresses.is_empty() => registered,
            None => return None,
        };
        Some((server, format!("{path}?{}", query?)))
    }
}

/// A database, table or label as part of a URL.
pub(crate) fn encode(segment: &str) -> String {
    utf8_percent_encode(segment, SEGMENT).to_string()
}

/// Lower-case `host:port` of a key of `addresses`.
pub(crate) fn authority(text: &str) -> Result<String, EndpointError> {
    let endpoint = Endpoint::parse(&format!("http://{text}"))?;
    if endpoint.prefix.is_empty() { Ok(endpoint.authority) } else { Err(EndpointError::NotAUrl(hide(text))) }
}

fn same_path(found: &str, asked: &str) -> bool {
    found == asked || percent_decode_str(found).eq(percent_decode_str(asked))
}

/// The URL without user info, and whether there was one. By hand, because Java leaves characters in it that no URL parser takes.
fn strip_user_info(text: &str) -> Option<(String, bool)> {
    let (scheme, rest) = text.trim().split_once("://")?;
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    Some(match authority.rsplit_once('@') {
        Some((_, host)) => (format!("{scheme}://{host}{path}"), true),
        None => (format!("{scheme}://{rest}"), false),
    })
}

/// Endpoint without prefix, path, and the query when it is not empty.
fn split(url: &str) -> Result<(Endpoint, String, Option<String>), EndpointError> {
    let bad = || EndpointError::NotAUrl(hide(url));
    let uri: Uri = url.parse().map_err(|_| bad())?;
    let https = match uri.scheme_str() {
        Some("http") => false,
        Some("https") => true,
        _ => return Err(bad()),
    };
    let host = uri.host().filter(|host| !host.is_empty()).ok_or_else(bad)?.to_ascii_lowercase();
    let port = uri.port_u16().unwrap_or(if https { 443 } else { 80 });
    let endpoint = Endpoint { https, authority: format!("{host}:{port}"), prefix: String::new() };
    let query = uri.query().filter(|query| !query.is_empty()).map(str::to_owned);
    Ok((endpoint, uri.path().to_owned(), query))
}

/// A URL for a message: nothing in front of an `@`.
fn hide(text: &str) -> String {
    match text.rsplit_once('@') {
        Some((_, rest)) => format!("…@{rest}"),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
    use super::*;

    const PATH: &str = "/api/scm/sku/_stream_load";

    fn fe(url: &str) -> Endpoint {
        Endpoint::parse(url).unwrap()
    }

    #[test]
    fn base_urls_of_the_config() {
        for (text, shown) in [
            ("http://fe1:8030", "http://fe1:8030"),
            ("http://FE1:8030/", "http://fe1:8030"),
            ("https://doris.example", "https://doris.example:443"),
            ("http://10.0.0.1", "http://10.0.0.1:80"),
            ("http://[::1]:8030", "http://[::1]:8030"),
            ("https://proxy/doris/", "https://proxy:443/doris"),
        ] {
            assert_eq!(fe(text).to_string(), shown, "{text}");
        }
    }

    #[test]
    fn base_urls_that_are_refused() {
        assert!(matches!(Endpoint::parse("fe1:8030"), Err(EndpointError::NotAUrl(_))));
        assert!(matches!(Endpoint::parse("ftp://fe1"), Err(EndpointError::NotAUrl(_))));
        assert!(matches!(Endpoint::parse("http://"), Err(EndpointError::NotAUrl(_))));
        assert!(matches!(Endpoint::parse("http://fe1?x=1"), Err(EndpointError::Query(_))));
        let error = Endpoint::parse("http://root:hunter2@fe1:8030").unwrap_err();
        assert!(matches!(error, EndpointError::Credentials(_)));
        assert!(!error.to_string().contains("hunter2"));
    }

    #[test]
    fn a_redirect_loses_user_info_and_query() {
        for location in [
            "http://root:@127.0.0.1:8040/api/scm/sku/_stream_load",
            "http://root:@127.0.0.1:8040/api/scm/sku/_stream_load?",
            "http://ro%40ot:p%2Fw%3A%25@127.0.0.1:8040/api/scm/sku/_stream_load?label=x",
            "http://root:pä$$wörd@127.0.0.1:8040/api/scm/sku/_stream_load?",
            "http://127.0.0.1:8040/api/scm/sku/_stream_load",
            "http://127.0.0.1:8040/api/s%63m/sku/_stream_load",
        ] {
            let to = fe("http://fe:8030").redirect(Some(location), PATH, &BTreeMap::new()).unwrap();
            assert_eq!(to.to_string(), "http://127.0.0.1:8040", "{location}");
        }
    }

    #[test]
    fn a_redirect_never_lowers_tls() {
        let error =
            fe("https://fe").redirect(Some("http://root:pw@be:8040/api/scm/sku/_stream_load?"), PATH, &BTreeMap::new()).unwrap_err();
        assert_eq!(error, EndpointError::Downgrade { from: "fe:443".into(), to: "be:8040".into() });
        let up = fe("http://fe").redirect(Some("https://be/api/scm/sku/_stream_load"), PATH, &BTreeMap::new()).unwrap();
        assert!(up.https);
        let addresses = BTreeMap::from([("be:8040".to_owned(), fe("http://be.public:80"))]);
        let mapped = fe("https://fe").redirect(Some("https://be:8040/api/scm/sku/_stream_load"), PATH, &addresses);
        assert!(matches!(mapped, Err(EndpointError::Downgrade { .. })));
    }

    #[test]
    fn addresses_are_a_map_and_an_allow_list() {
        let addresses = BTreeMap::from([
            ("10.0.0.7:8040".to_owned(), fe("http://be7.example:18040/be7")),
            ("10.0.0.8:8040".to_owned(), fe("http://10.0.0.8:8040")),
        ]);
        let go = |to: &str| fe("http://fe").redirect(Some(&format!("http://u:p@{to}{PATH}?")), PATH, &addresses);
        assert_eq!(go("10.0.0.7:8040").unwrap().to_string(), "http://be7.example:18040/be7");
        assert_eq!(go("10.0.0.8:8040").unwrap().to_string(), "http://10.0.0.8:8040");
        assert_eq!(go("10.0.0.9:8040").unwrap_err(), EndpointError::NotListed { authority: "10.0.0.9:8040".into() });
    }

    #[test]
    fn a_redirect_elsewhere_is_refused_without_showing_credentials() {
        let go = |to: Option<&str>| fe("http://fe").redirect(to, PATH, &BTreeMap::new()).unwrap_err();
        assert_eq!(go(None), EndpointError::NoLocation);
        assert!(matches!(go(Some("http://be:8040/login")), EndpointError::OtherPath { .. }));
        assert!(matches!(go(Some("/api/scm/sku/_stream_load")), EndpointError::NotAUrl(_)));
        let shown = go(Some("gopher://root:hunter2@be/x")).to_string();
        assert!(!shown.contains("hunter2"), "{shown}");
    }

    #[test]
    fn error_logs_are_fetched_from_their_own_path_only() {
        let none = BTreeMap::new();
        let (server, path) = Endpoint::of_error_log("http://be:8040/api/_load_error_log?file=__shard_0/error_log_x", &none).unwrap();
        assert_eq!((server.authority.as_str(), path.as_str()), ("be:8040", "/api/_load_error_log?file=__shard_0/error_log_x"));
        assert_eq!(Endpoint::of_error_log("http://be:8040/api/other?file=x", &none), None);
        assert_eq!(Endpoint::of_error_log("http://be:8040/api/_load_error_log", &none), None);
        assert_eq!(Endpoint::of_error_log("", &none), None);
        let listed = BTreeMap::from([("be:8040".to_owned(), fe("http://public:1"))]);
        assert_eq!(Endpoint::of_error_log("http://be:8040/api/_load_error_log?file=x", &listed).unwrap().0.authority, "public:1");
        assert_eq!(Endpoint::of_error_log("http://be9:8040/api/_load_error_log?file=x", &listed), None);
    }

    #[test]
    fn names_are_encoded() {
        assert_eq!(encode("orders_2"), "orders_2");
        assert_eq!(encode("a/b c?d"), "a%2Fb%20c%3Fd");
        assert_eq!(authority("BE1:8040").unwrap(), "be1:8040");
        assert!(authority("be1:8040/x").is_err());
    }
}
