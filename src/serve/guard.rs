//! Access control.

use super::fault::Fault;
use super::fields::Fields;
use axum::http::header::{AUTHORIZATION, HOST};
use axum::http::{HeaderMap, StatusCode};
use sha2::{Digest, Sha256};
use std::net::IpAddr;
use subtle::ConstantTimeEq;

/// Checks that a request may be answered.
#[derive(Debug)]
pub(super) struct Guard {
    /// The SHA-256 of the token, so that tokens of any length are compared in the same time.
    token: Option<[u8; 32]>,
    /// Whether names of other machines are refused.
    is_local: bool,
}

fn digest(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}

impl Guard {
    /// With `token`, callers have to give it. Without, a server that listens on this machine only (`is_loopback`) answers only
    /// if it is called by a number or as localhost: a web page can point a name of its own at this machine.
    pub(super) fn new(token: Option<&str>, is_loopback: bool) -> Self {
        Self { token: token.map(digest), is_local: token.is_none() && is_loopback }
    }

    /// Checks the name that the server is called by.
    pub(super) fn check_host(&self, headers: &HeaderMap) -> Result<(), Fault> {
        let Some(host) = headers.get(HOST).filter(|_| self.is_local) else { return Ok(()) };
        let host = host.to_str().unwrap_or_default();
        let name = match host.rsplit_once(':') {
            Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
            _ => host,
        };
        let number = name.trim_start_matches('[').trim_end_matches(']');
        if name.eq_ignore_ascii_case("localhost") || number.parse::<IpAddr>().is_ok() {
            return Ok(());
        }
        let message = "without a token, this server answers to localhost and to numbers only; call it by 127.0.0.1, or \
                       start it with --token";
        Err(Fault::new(StatusCode::FORBIDDEN, message))
    }

    /// Checks the token: `Authorization: Bearer TOKEN`, or the field `api_key`, as clients of LibreTranslate send it.
    pub(super) fn check_token(&self, headers: &HeaderMap, fields: &Result<Fields, Fault>) -> Result<(), Fault> {
        let Some(expected) = &self.token else { return Ok(()) };
        let header = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
        let bearer = header.and_then(|value| {
            let (scheme, token) = value.split_once(' ')?;
            scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
        });
        let field = fields.as_ref().ok().and_then(|fields| fields.text("api_key").ok().flatten());
        match bearer.or(field) {
            Some(token) if bool::from(digest(token).ct_eq(expected)) => Ok(()),
            given => {
                let what = if given.is_some() { "the token is wrong" } else { "the token is missing" };
                let message = format!("{what}; send it as Authorization: Bearer TOKEN, or as the field api_key");
                Err(Fault::new(StatusCode::UNAUTHORIZED, message))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    fn headers(host: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(HOST, HeaderValue::from_static(host))])
    }

    #[test]
    fn a_local_server_without_a_token_answers_to_no_foreign_name() {
        let guard = Guard::new(None, true);
        for host in ["localhost:5000", "LOCALHOST", "127.0.0.1:5000", "[::1]:5000", "192.168.1.4"] {
            assert!(guard.check_host(&headers(host)).is_ok(), "{host}");
        }
        for host in ["evil.example:5000", "localhost.evil.example", "127.0.0.1.evil.example", ""] {
            assert!(guard.check_host(&headers(host)).is_err(), "{host}");
        }
        assert!(Guard::new(Some("a"), true).check_host(&headers("server.example")).is_ok());
        assert!(Guard::new(None, false).check_host(&headers("server.example")).is_ok());
    }
}
