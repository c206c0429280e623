//! An answer as bytes, with the damage that faults do to it.

use std::fmt::Write as _;

use bytes::{BufMut, Bytes, BytesMut};

use super::answer::{self, Plain, Reply};
use super::fault::{Action, Http, Ids};

/// An answer ready to be written.
#[derive(Debug)]
pub(super) struct Outgoing {
    pub(super) status: u16,
    pub(super) head: Bytes,
    pub(super) body: Bytes,
    /// The connection can be used again.
    pub(super) keep_alive: bool,
    /// The updates in it: id in the queue and bytes.
    pub(super) updates: Vec<(i32, Bytes)>,
    /// A client that gets all of it can read it.
    pub(super) readable: bool,
}

/// The answer that hides what the server would say, if `action` has one of its own.
pub(super) fn canned(action: &Action) -> Option<Reply> {
    let html = |status: u16, body: String| {
        let content_type = "text/html";
        Plain { status, body: body.into(), content_type, ..Plain::default() }
    };
    let plain = match action {
        Action::Api(api) => return api.reply(),
        Action::AfterProcessing(inner) => return canned(inner),
        Action::Http(Http::Html(status)) => {
            let title = format!("{status} {}", reason(*status));
            let page = format!(
                "<html>\r\n<head><title>{title}</title></head>\r\n<body>\r\n<center><h1>{title}\
                 </h1></center>\r\n<hr><center>nginx/1.18.0</center>\r\n</body>\r\n</html>\r\n"
            );
            html(*status, page)
        }
        Action::Http(Http::ForeignNotFound) => {
            html(404, "<!doctype html><h1>Hotel Wi-Fi</h1><p>Please log in.</p>".into())
        }
        Action::Http(Http::Json(status, body)) => return Some(Reply::json(*status, body.clone())),
        Action::Http(Http::Empty) => Plain { status: 200, ..Plain::default() },
        Action::Http(Http::Redirect(url)) => {
            let page = html(302, "<html><body>Moved</body></html>".into());
            Plain { location: Some(url.clone()), ..page }
        }
        Action::Http(Http::Huge(size)) => {
            let mut body = Vec::from(br#"{"ok":true,"result":["#.as_slice());
            body.resize(size.saturating_sub(2), b' ');
            body.extend(b"]}");
            Plain { status: 200, body: body.into(), ..Plain::default() }
        }
        _ => return None,
    };
    Some(Reply::Plain(plain))
}

/// The bytes of `reply`, damaged as `actions` say.
pub(super) fn outgoing(reply: &Reply, actions: &[Action]) -> Outgoing {
    let ids = actions.iter().find_map(|action| match action {
        Action::Ids(ids) => Some(*ids),
        _ => None,
    });
    let updates = match reply {
        Reply::Updates(updates) => wired(updates, ids),
        Reply::Plain(_) => Vec::new(),
    };
    let body = match reply {
        Reply::Updates(_) => answer::batch(updates.iter().map(|(_, bytes)| bytes.clone())),
        Reply::Plain(plain) => plain.body.clone(),
    };
    let http = actions.iter().find_map(|action| match action {
        Action::Http(http) => Some(http),
        _ => None,
    });
    let close = matches!(reply, Reply::Plain(Plain { close: true, .. }));
    let mut out = Outgoing {
        status: reply.status(),
        head: Bytes::new(),
        keep_alive: !close,
        body,
        updates,
        readable: true,
    };
    let mut length = format!("Content-Length: {}\r\n", out.body.len());
    match http {
        Some(Http::Truncated(right_length)) => {
            out.body.truncate(out.body.len() / 2);
            out.readable = false;
            if *right_length {
                length = format!("Content-Length: {}\r\n", out.body.len());
            } else {
                out.keep_alive = false;
            }
        }
        Some(Http::Chunked) => {
            out.body = chunked(&out.body);
            "Transfer-Encoding: chunked\r\n".clone_into(&mut length);
        }
        Some(Http::Gzip) => {
            out.body = gzip(&out.body);
            out.readable = false;
            length = format!("Content-Encoding: gzip\r\nContent-Length: {}\r\n", out.body.len());
        }
        Some(Http::ByteOrderMark) => {
            out.body = [b"\xef\xbb\xbf", out.body.as_ref()].concat().into();
            out.readable = false;
            length = format!("Content-Length: {}\r\n", out.body.len());
        }
        _ => {}
    }
    out.head = head(reply, &length, out.keep_alive);
    out
}

fn wired(updates: &[(i32, Bytes)], ids: Option<Ids>) -> Vec<(i32, Bytes)> {
    match ids {
        Some(ids) => ids.apply(updates),
        None => updates.iter().map(|(id, member)| (*id, answer::wire(*id, member))).collect(),
    }
}

fn head(reply: &Reply, length: &str, keep_alive: bool) -> Bytes {
    let status = reply.status();
    let connection = if keep_alive { "keep-alive" } else { "close" };
    let none = Plain::default();
    let plain = match reply {
        Reply::Plain(plain) => plain,
        Reply::Updates(_) => &none,
    };
    let content_type =
        if plain.content_type.is_empty() { "application/json" } else { plain.content_type };
    let mut head = format!(
        "HTTP/1.1 {status} {}\r\nServer: nginx/1.18.0\r\nContent-Type: {content_type}\r\n\
         {length}Connection: {connection}\r\n",
        reason(status)
    );
    // Writing to a String cannot fail.
    if let Some(seconds) = &plain.retry_after {
        let _ = write!(head, "Retry-After: {seconds}\r\n");
    }
    if let Some(url) = &plain.location {
        let _ = write!(head, "Location: {url}\r\n");
    }
    head.push_str("\r\n");
    head.into()
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        302 => "Found",
        400 => "Bad Request",
        401 => "Unauthorized",
        404 => "Not Found",
        409 => "Conflict",
        413 => "Request Entity Too Large",
        421 => "Misdirected Request",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        502 => "Bad Gateway",
        504 => "Gateway Time-out",
        _ => "Unknown",
    }
}

fn chunked(body: &[u8]) -> Bytes {
    let mut out = BytesMut::new();
    for chunk in body.chunks(body.len().div_ceil(3).max(1)) {
        out.put_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
        out.put_slice(chunk);
        out.put_slice(b"\r\n");
    }
    out.put_slice(b"0\r\n\r\n");
    out.freeze()
}

/// RFC 1952 around RFC 1951's stored blocks: valid, and small only in code.
fn gzip(body: &[u8]) -> Bytes {
    let mut out = BytesMut::new();
    out.put_slice(&[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255]);
    for block in body.chunks(0xffff) {
        let length = u16::try_from(block.len()).unwrap_or(u16::MAX);
        out.put_u8(0);
        out.put_u16_le(length);
        out.put_u16_le(!length);
        out.put_slice(block);
    }
    out.put_slice(&[1, 0, 0, 0xff, 0xff]);
    out.put_u32_le(crc32(body));
    // RFC 1952 wants the length modulo 2^32.
    out.put_u32_le(body.len() as u32);
    out.freeze()
}

fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0u32, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 }
        })
    })
}
