//! A walk over JSON text that keeps no document and never recurses.

use std::ops::Range;

/// What a walk comes upon; spans are positions in the scanned text.
pub(super) enum Found {
    /// A container that opens, with the number of containers then open.
    Depth(usize),
    /// A string or a key, without its quotes.
    Text(Range<usize>),
    /// A number.
    Number(Range<usize>),
}

/// A position in a text that should be JSON.
///
/// Every method either moves past what it is named for, or returns `None`: then the text is not
/// JSON. Bytes from 0x80 on are taken inside strings whatever they spell, because one string that
/// is not UTF-8 must not make the rest unreadable.
pub(super) struct Cursor<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(text: &'a [u8]) -> Self {
        Self { text, at: 0 }
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    pub(super) fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    /// Moves past one byte if it is the next.
    pub(super) fn eat(&mut self, byte: u8) -> bool {
        let eaten = self.peek() == Some(byte);
        self.at += usize::from(eaten);
        eaten
    }

    /// Past trailing space, to the very end of the text.
    pub(super) fn end(&mut self) -> Option<()> {
        self.space();
        (self.at == self.text.len()).then_some(())
    }

    /// Past a key and its colon: the key without its quotes.
    pub(super) fn key(&mut self) -> Option<Range<usize>> {
        let key = self.string()?;
        self.space();
        self.eat(b':').then_some(())?;
        self.space();
        Some(key)
    }

    /// Past one value of any kind and depth, telling `visit` what it holds, in order; stops when
    /// `visit` returns `false`.
    pub(super) fn value(&mut self, visit: &mut impl FnMut(Found) -> bool) -> Option<Range<usize>> {
        let start = self.at;
        // The bytes that close the containers now open, the innermost last.
        let mut open: Vec<u8> = Vec::new();
        loop {
            match self.peek()? {
                opening @ (b'{' | b'[') => {
                    self.at += 1;
                    self.space();
                    visit(Found::Depth(open.len() + 1)).then_some(())?;
                    let closing = if opening == b'{' { b'}' } else { b']' };
                    if !self.eat(closing) {
                        open.push(closing);
                        if closing == b'}' {
                            let key = self.key()?;
                            visit(Found::Text(key)).then_some(())?;
                        }
                        continue;
                    }
                }
                b'"' => {
                    let string = self.string()?;
                    visit(Found::Text(string)).then_some(())?;
                }
                b'-' | b'0'..=b'9' => {
                    let number = self.number()?;
                    visit(Found::Number(number)).then_some(())?;
                }
                _ => self.literal()?,
            }
            // A value has ended: on to the next one, closing what ends here too.
            loop {
                let Some(&closing) = open.last() else {
                    return Some(start..self.at);
                };
                self.space();
                if self.eat(closing) {
                    open.pop();
                    continue;
                }
                self.eat(b',').then_some(())?;
                self.space();
                if closing == b'}' {
                    let key = self.key()?;
                    visit(Found::Text(key)).then_some(())?;
                }
                break;
            }
        }
    }

    fn string(&mut self) -> Option<Range<usize>> {
        self.eat(b'"').then_some(())?;
        let start = self.at;
        loop {
            match self.peek()? {
                b'"' => {
                    self.at += 1;
                    return Some(start..self.at - 1);
                }
                b'\\' => self.escape()?,
                0..0x20 => return None,
                _ => self.at += 1,
            }
        }
    }

    fn escape(&mut self) -> Option<()> {
        let length = match self.text.get(self.at + 1)? {
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => 2,
            b'u' => {
                let digits = self.text.get(self.at + 2..self.at + 6)?;
                digits.iter().all(u8::is_ascii_hexdigit).then_some(6)?
            }
            _ => return None,
        };
        self.at += length;
        Some(())
    }

    fn number(&mut self) -> Option<Range<usize>> {
        let start = self.at;
        self.eat(b'-');
        // JSON allows no leading zero.
        if !self.eat(b'0') {
            self.digits()?;
        }
        if self.eat(b'.') {
            self.digits()?;
        }
        if self.eat(b'e') || self.eat(b'E') {
            let _signed = self.eat(b'+') || self.eat(b'-');
            self.digits()?;
        }
        Some(start..self.at)
    }

    fn digits(&mut self) -> Option<()> {
        let start = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        (self.at > start).then_some(())
    }

    fn literal(&mut self) -> Option<()> {
        let rest = self.text.get(self.at..)?;
        let literal =
            [&b"true"[..], b"false", b"null"].into_iter().find(|l| rest.starts_with(l))?;
        self.at += literal.len();
        Some(())
    }
}
