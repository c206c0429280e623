//! The escapes of JSON strings, surrogates that stand alone included.

use std::borrow::Cow;

/// The bytes that a string without its quotes stands for. An escaped surrogate without its other
/// half becomes the three bytes that UTF-8 would give it if it could (WTF-8), so that texts that
/// differ stay different; the result is then not UTF-8.
pub(super) fn decode(raw: &[u8]) -> Cow<'_, [u8]> {
    if !raw.contains(&b'\\') {
        return Cow::Borrowed(raw);
    }
    let mut decoded = Vec::with_capacity(raw.len());
    let mut rest = raw;
    loop {
        rest = match rest {
            [] => return Cow::Owned(decoded),
            [b'\\', b'u', tail @ ..] => {
                let (code_point, tail) = code_point(tail);
                push(code_point, &mut decoded);
                tail
            }
            [b'\\', escape, tail @ ..] => {
                decoded.push(match escape {
                    b'b' => 0x08,
                    b'f' => 0x0c,
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    itself => *itself,
                });
                tail
            }
            [byte, tail @ ..] => {
                decoded.push(*byte);
                tail
            }
        };
    }
}

/// Where, in JSON text, the four digits of escaped surrogates stand that have no other half.
pub(super) fn lone_surrogates(text: &[u8]) -> impl Iterator<Item = usize> {
    let mut rest = text;
    std::iter::from_fn(move || {
        loop {
            let backslash = rest.iter().position(|byte| *byte == b'\\')?;
            match rest.get(backslash + 1..)? {
                [b'u', digits @ ..] => {
                    let at = text.len() - digits.len();
                    let (code_point, tail) = code_point(digits);
                    rest = tail;
                    if is_surrogate(code_point) && digits.len() >= 4 {
                        return Some(at);
                    }
                }
                after => rest = after.get(1..)?,
            }
        }
    })
}

/// The code point whose `\u` has just been read, and what follows it. A surrogate is returned only
/// if its other half does not follow.
fn code_point(text: &[u8]) -> (u32, &[u8]) {
    let (unit, rest) = code_unit(text);
    if let (0xd800..0xdc00, [b'\\', b'u', second @ ..]) = (unit, rest)
        && let (low @ 0xdc00..0xe000, rest) = code_unit(second)
    {
        return (0x1_0000 + ((unit - 0xd800) << 10) + (low - 0xdc00), rest);
    }
    (unit, rest)
}

fn code_unit(text: &[u8]) -> (u32, &[u8]) {
    let (digits, rest) = text.split_at_checked(4).unwrap_or((text, &[]));
    let unit = digits
        .iter()
        .fold(0, |unit, digit| unit * 16 + char::from(*digit).to_digit(16).unwrap_or_default());
    (unit, rest)
}

fn is_surrogate(code_point: u32) -> bool {
    (0xd800..0xe000).contains(&code_point)
}

fn push(code_point: u32, decoded: &mut Vec<u8>) {
    if let Some(character) = char::from_u32(code_point) {
        decoded.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
    } else {
        let continuation = |shift: u32| (code_point >> shift & 0x3f | 0x80).to_be_bytes()[3];
        decoded.extend_from_slice(&[0xed, continuation(6), continuation(0)]);
    }
}
