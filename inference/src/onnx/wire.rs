//! Protobuf, as far as reading and rewriting ONNX files needs it. A rewrite copies every field that it does not change, so
//! nothing that this program does not know gets lost.

/// Levels of nested graphs (the branches of an `If`) that are followed; real models have two or three.
pub const MAX_DEPTH: u32 = 32;

/// Why bytes cannot be read as an ONNX file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// A field is longer than the rest of the file.
    #[error("it ends in the middle of a field")]
    Truncated,
    /// A field has a wire type or number that protobuf does not allow.
    #[error("it is not a protobuf message")]
    NotProtobuf,
    #[error("its graphs are nested more than {MAX_DEPTH} levels deep")]
    TooDeep,
    /// A tensor is external but names no file.
    #[error("it keeps a tensor in another file without naming the file")]
    Nameless,
}

#[derive(Clone, Copy)]
pub enum Value<'a> {
    /// A varint.
    Number(u64),
    /// Bytes, a text, or a message.
    Bytes(&'a [u8]),
    /// Four or eight bytes; no field of interest has this type.
    Fixed,
}

#[derive(Clone, Copy)]
pub struct Field<'a> {
    /// Its number in onnx.proto.
    pub number: u64,
    pub value: Value<'a>,
    /// The whole field, as encoded in the file.
    pub raw: &'a [u8],
}

impl<'a> Field<'a> {
    pub const fn pair(self) -> (u64, Value<'a>) {
        (self.number, self.value)
    }
}

/// Iterates over the fields of one message; ends after the first malformed one.
pub struct Fields<'a>(pub &'a [u8]);

impl<'a> Iterator for Fields<'a> {
    type Item = Result<Field<'a>, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_err() {
            self.0 = &[];
        }
        Some(field)
    }
}

impl<'a> Fields<'a> {
    fn field(&mut self) -> Result<Field<'a>, Malformed> {
        let before = self.0;
        let tag = self.number()?;
        let value = match tag & 7 {
            0 => Value::Number(self.number()?),
            1 => self.bytes(8).map(|_| Value::Fixed)?,
            2 => {
                let length = self.number()?;
                Value::Bytes(self.bytes(length)?)
            }
            5 => self.bytes(4).map(|_| Value::Fixed)?,
            _ => return Err(Malformed::NotProtobuf),
        };
        match tag >> 3 {
            0 => Err(Malformed::NotProtobuf),
            number => Ok(Field { number, value, raw: &before[..before.len() - self.0.len()] }),
        }
    }

    /// Reads a varint: seven bits per byte, lowest first; the top bit marks that another byte follows.
    ///
    /// # Errors
    /// If it ends early or is longer than 64 bits.
    pub fn number(&mut self) -> Result<u64, Malformed> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.0.split_first().ok_or(Malformed::Truncated)?;
            self.0 = rest;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(Malformed::NotProtobuf)
    }

    fn bytes(&mut self, length: u64) -> Result<&'a [u8], Malformed> {
        let length = usize::try_from(length).map_err(|_| Malformed::Truncated)?;
        let (bytes, rest) = self.0.split_at_checked(length).ok_or(Malformed::Truncated)?;
        self.0 = rest;
        Ok(bytes)
    }
}

/// Appends a field with bytes, a text, or a message.
pub fn put_bytes(to: &mut Vec<u8>, number: u64, bytes: &[u8]) {
    put_head(to, number, bytes.len());
    to.extend_from_slice(bytes);
}

/// Appends what precedes the `length` bytes of a field.
pub fn put_head(to: &mut Vec<u8>, number: u64, length: usize) {
    put_varint(to, number << 3 | 2);
    put_varint(to, length as u64);
}

/// Appends a field with a number. Negative ones are cast, which makes ten bytes, as protobuf has it.
pub fn put_number(to: &mut Vec<u8>, number: u64, value: u64) {
    put_varint(to, number << 3);
    put_varint(to, value);
}

fn put_varint(to: &mut Vec<u8>, mut value: u64) {
    while value > 0x7f {
        to.push(value as u8 | 0x80);
        value >>= 7;
    }
    to.push(value as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        let mut message = Vec::new();
        put_number(&mut message, 1, u64::MAX);
        put_bytes(&mut message, 200, &[7; 300]);
        put_number(&mut message, 3, 0);
        let fields: Vec<_> = Fields(&message).map(Result::unwrap).collect();
        let [one, two, three] = fields.as_slice() else { panic!("{} fields", fields.len()) };
        assert!(matches!(one.pair(), (1, Value::Number(u64::MAX))));
        assert!(matches!(two.pair(), (200, Value::Bytes(bytes)) if bytes == [7; 300]));
        assert!(matches!(three.pair(), (3, Value::Number(0))));
        assert_eq!([one.raw, two.raw, three.raw].concat(), message);
    }
}
