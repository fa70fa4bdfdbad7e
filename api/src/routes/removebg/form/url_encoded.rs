//! Splits `application/x-www-form-urlencoded` into fields as it arrives (URL Standard, 5.1).

/// What a byte of the body means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    /// A byte of a name, or of a value after [`Piece::Equals`].
    Byte(u8),
    /// The name ends and the value begins.
    Equals,
    /// The field ends.
    End,
}

/// The state between two bytes.
#[derive(Default)]
pub(super) struct UrlEncoded {
    /// The start of an escape sequence such as `%2B`.
    escape: Vec<u8>,
    is_value: bool,
}

impl UrlEncoded {
    /// Calls `take` with what `body` means.
    pub fn push<E>(
        &mut self,
        body: &[u8],
        mut take: impl FnMut(Piece) -> Result<(), E>,
    ) -> Result<(), E> {
        for &byte in body {
            if !self.escape.is_empty() {
                if byte.is_ascii_hexdigit() {
                    self.escape.push(byte);
                    if let [_, high, low] = self.escape[..] {
                        self.escape.clear();
                        take(Piece::Byte(value(high) << 4 | value(low)))?;
                    }
                    continue;
                }
                self.flush(&mut take)?;
            }
            match byte {
                b'%' => self.escape.push(byte),
                b'+' => take(Piece::Byte(b' '))?,
                b'=' if !self.is_value => {
                    self.is_value = true;
                    take(Piece::Equals)?;
                }
                b'&' => {
                    self.is_value = false;
                    take(Piece::End)?;
                }
                _ => take(Piece::Byte(byte))?,
            }
        }
        Ok(())
    }

    /// Ends the last field.
    pub fn finish<E>(mut self, mut take: impl FnMut(Piece) -> Result<(), E>) -> Result<(), E> {
        self.flush(&mut take)?;
        take(Piece::End)
    }

    /// Passes on what looked like an escape sequence, as it is.
    fn flush<E>(&mut self, take: &mut impl FnMut(Piece) -> Result<(), E>) -> Result<(), E> {
        std::mem::take(&mut self.escape).into_iter().try_for_each(|byte| take(Piece::Byte(byte)))
    }
}

/// Returns the value of a hexadecimal digit.
const fn value(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        _ => (digit | 0x20) - b'a' + 10,
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    /// Parses `body` in pieces of `size` bytes.
    fn fields(body: &str, size: usize) -> Vec<(String, String)> {
        let (mut fields, mut name, mut part) = (Vec::new(), None, Vec::new());
        let mut take = |piece| {
            let text =
                |part: &mut Vec<u8>| String::from_utf8_lossy(&std::mem::take(part)).into_owned();
            match piece {
                Piece::Byte(byte) => part.push(byte),
                Piece::Equals => name = Some(text(&mut part)),
                Piece::End => {
                    let last = text(&mut part);
                    let field = match name.take() {
                        Some(name) => (name, last),
                        None => (last, String::new()),
                    };
                    fields.extend((field != Default::default()).then_some(field));
                }
            }
            Ok::<_, Infallible>(())
        };
        let mut parser = UrlEncoded::default();
        for chunk in body.as_bytes().chunks(size) {
            let Ok(()) = parser.push(chunk, &mut take);
        }
        let Ok(()) = parser.finish(&mut take);
        fields
    }

    #[test]
    fn fields_are_those_of_the_url_standard() {
        for body in [
            "a=1&b=2",
            "size=full&crop=true&crop_margin=10%25+20px",
            "a=b=c&d&&=e&f=",
            "%E2%89%A1=%f0%9f%8e%89&x=%zz%4&y=%",
            "a%3Db=c%26d&+=%2B",
            "",
            "&&&",
        ] {
            let expected: Vec<(String, String)> =
                url::form_urlencoded::parse(body.as_bytes()).into_owned().collect();
            let expected: Vec<_> =
                expected.into_iter().filter(|field| *field != Default::default()).collect();
            for size in [1, 2, 3, 100] {
                assert_eq!(fields(body, size), expected, "{body} in pieces of {size}");
            }
        }
    }
}
