//! What an open listener, one without tokens, answers: whoever speaks to it by a loopback name
//! and is not a foreign page in a browser.
use std::net::{Ipv4Addr, Ipv6Addr};

use axum::http::header::{HOST, ORIGIN};
use axum::http::{HeaderMap, HeaderName, Uri};

use super::problem::Refusal;

/// The header's value, if it occurs exactly once.
pub(super) fn sole<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a [u8]> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (Some(value), None) => Some(value.as_bytes()),
        _ => None,
    }
}

/// Keeps a page in somebody's browser from using an open listener: a DNS name rebound to
/// loopback shows in `Host`, a request from a foreign page in `Origin`.
pub(super) fn check_loopback(uri: &Uri, headers: &HeaderMap) -> Result<(), Refusal> {
    let host = sole(headers, &HOST).and_then(|host| std::str::from_utf8(host).ok());
    let host = host.filter(|host| is_loopback(host)).ok_or(Refusal::Host)?;
    // A target in absolute form names a host of its own, which counts more than the header.
    if uri.authority().is_some_and(|authority| !is_loopback(authority.as_str())) {
        return Err(Refusal::Host);
    }
    if !headers.contains_key(ORIGIN) {
        return Ok(());
    }
    let own = format!("http://{host}");
    match sole(headers, &ORIGIN) {
        Some(origin) if origin.eq_ignore_ascii_case(own.as_bytes()) => Ok(()),
        _ => Err(Refusal::Origin),
    }
}

/// Whether `host`, with or without a port, is a loopback name (RFC 6761) or address.
fn is_loopback(host: &str) -> bool {
    let (name, port) = match host.rsplit_once(':') {
        // Without the bracket's end the colon is part of an IPv6 address.
        Some((name, port)) if !name.starts_with('[') || name.ends_with(']') => (name, port),
        _ => (host, ""),
    };
    if !port.bytes().all(|byte| byte.is_ascii_digit()) {
        return false;
    }
    if let Some(address) = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        return address.parse::<Ipv6Addr>().is_ok_and(|address| address.is_loopback());
    }
    if let Ok(address) = name.parse::<Ipv4Addr>() {
        return address.is_loopback();
    }
    let name = name.to_ascii_lowercase();
    name == "localhost" || name.ends_with(".localhost")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(HeaderName, &'static str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.clone(), value.parse().unwrap())).collect()
    }

    fn open(pairs: &[(HeaderName, &'static str)]) -> Result<(), Refusal> {
        check_loopback(&Uri::from_static("/v1/events"), &headers(pairs))
    }

    #[test]
    fn loopback_hosts() {
        for host in [
            "localhost",
            "localhost:8081",
            "LOCALHOST:1",
            "inbox.localhost",
            "127.0.0.1",
            "127.9.8.7:80",
            "[::1]",
            "[::1]:8081",
            "localhost:",
        ] {
            assert!(is_loopback(host), "{host}");
        }
        for host in [
            "",
            ":80",
            "example.com",
            "localhost.example.com",
            "evillocalhost",
            "127.0.0.1.nip.io",
            "128.0.0.1",
            "0.0.0.0",
            "::1",
            "[::2]:80",
            "[::1",
            "[::1]x:80",
            "localhost:80@evil.com",
            "evil.com#localhost",
            "localhost:8x",
            "2130706433",
            "[::ffff:10.0.0.1]",
        ] {
            assert!(!is_loopback(host), "{host}");
        }
    }

    #[test]
    fn an_open_listener_answers_its_own_origin_alone() {
        assert!(open(&[(HOST, "localhost:8081")]).is_ok());
        assert!(open(&[(HOST, "localhost:8081"), (ORIGIN, "http://localhost:8081")]).is_ok());
        for origin in ["http://localhost:8080", "https://localhost:8081", "null", "http://evil"] {
            let answer = open(&[(HOST, "localhost:8081"), (ORIGIN, origin)]);
            assert_eq!(answer.unwrap_err(), Refusal::Origin, "{origin}");
        }
        for pairs in [
            &[][..],
            &[(HOST, "evil.example")],
            &[(HOST, "localhost"), (HOST, "evil.example")],
            &[(HOST, "evil.example"), (ORIGIN, "http://evil.example")],
        ] {
            assert_eq!(open(pairs).unwrap_err(), Refusal::Host, "{pairs:?}");
        }
        let absolute = Uri::from_static("http://evil.example/v1/events");
        let answer = check_loopback(&absolute, &headers(&[(HOST, "localhost")]));
        assert_eq!(answer.unwrap_err(), Refusal::Host);
    }
}
