//! Basic authorization, as FE and BE look at it.

use std::net::IpAddr;
use std::sync::PoisonError;

use data_encoding::BASE64;
use hyper::HeaderMap;
use hyper::header::AUTHORIZATION;

use super::state::State;
use crate::transactions::Refusal;

/// Name and password of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Credentials {
    /// Without `@cluster`.
    pub(crate) user: String,
    pub(crate) password: String,
}

impl Credentials {
    /// Reads a Basic `Authorization` header; `None` when there is none that can be read.
    pub(crate) fn of(headers: &HeaderMap) -> Option<Self> {
        let value = headers.get(AUTHORIZATION)?.to_str().ok()?;
        let encoded = value.strip_prefix("Basic ").or_else(|| value.strip_prefix("basic "))?;
        let decoded = String::from_utf8(BASE64.decode(encoded.trim().as_bytes()).ok()?).ok()?;
        let (user, password) = decoded.split_once(':')?;
        let user = user.split_once('@').map_or(user, |(user, _)| user);
        Some(Self { user: user.to_owned(), password: password.to_owned() })
    }

    /// Checks the password, and the LOAD privilege where it is needed.
    pub(crate) fn check(&self, state: &State, peer: IpAddr, needs_load: bool) -> Result<(), Refusal> {
        let users = state.users.read().unwrap_or_else(PoisonError::into_inner);
        let known = users.iter().find(|user| user.name == self.user && user.password == self.password);
        let known = known.ok_or_else(|| Refusal::AccessDenied {
            user: self.user.clone(),
            ip: peer.to_string(),
            with_password: !self.password.is_empty(),
        })?;
        if needs_load && !known.may_load { Err(Refusal::NoPrivilege) } else { Ok(()) }
    }
}

/// What the FE says to a BE's two-phase call without credentials: they arrive there as empty ones.
pub(crate) fn check_or_denied(credentials: Option<&Credentials>, state: &State, peer: IpAddr) -> Result<(), Refusal> {
    match credentials {
        Some(credentials) => credentials.check(state, peer, true),
        None => Err(Refusal::AccessDenied { user: String::new(), ip: peer.to_string(), with_password: false }),
    }
}
