//! Constants in 16 bits.

use half::f16;

use crate::onnx::graph::{self, FLOAT, FLOAT16, bytes_in, number_in};
use crate::onnx::wire::{Fields, Value, put_bytes};

/// The smallest number above 0 in 16 bits, 2⁻²⁴.
const SMALLEST: f16 = f16::from_bits(1);

/// Returns the element type of a tensor, by its number in onnx.proto.
pub fn element_type(tensor: &[u8]) -> Option<u64> {
    number_in(tensor, 2)
}

/// Returns a tensor of 32-bit floats in 16 bits, under another name, and how many of its numbers were clamped.
///
/// # Errors
/// Why it cannot be read, in a few words.
pub fn halve(tensor: &[u8], name: &str) -> Result<(Vec<u8>, usize), String> {
    let mut halves = Vec::new();
    let mut clamped = 0;
    let floats = floats(tensor)?;
    for float in floats.as_chunks::<4>().0 {
        let float = f32::from_le_bytes(*float);
        let half = nearest(float);
        clamped += usize::from(half != f16::from_f32(float) && !float.is_nan());
        halves.extend(half.to_le_bytes());
    }
    let dims = dims(tensor)?;
    if dims.iter().product::<u64>() != halves.len() as u64 / 2 {
        return Err("a constant does not have the size that it states".to_owned());
    }
    Ok((graph::tensor(&dims, FLOAT16, name, &halves), clamped))
}

/// Returns the nearest number in 16 bits. A number that is too large becomes the largest, and a number that would
/// become 0 the smallest, because a divisor may be tiny but not 0. Infinities stay.
fn nearest(float: f32) -> f16 {
    let half = f16::from_f32(float);
    if half.is_infinite() && float.is_finite() {
        return if float > 0.0 { f16::MAX } else { f16::MIN };
    }
    if half.to_f32() == 0.0 && float != 0.0 {
        return if float > 0.0 { SMALLEST } else { -SMALLEST };
    }
    half
}

/// Returns a tensor under another name.
pub fn renamed(tensor: &[u8], name: &str) -> Vec<u8> {
    const NAME: u64 = 8;
    let mut message = Vec::with_capacity(tensor.len() + name.len());
    for field in Fields(tensor).flatten().filter(|field| field.number != NAME) {
        message.extend_from_slice(field.raw);
    }
    put_bytes(&mut message, NAME, name.as_bytes());
    message
}

/// Returns a tensor of 32-bit floats.
pub fn of_floats(name: &str, dims: &[u64], bytes: &[u8]) -> Vec<u8> {
    graph::tensor(dims, FLOAT, name, bytes)
}

/// Returns the bytes of a tensor of 32-bit floats, however they are stored.
fn floats(tensor: &[u8]) -> Result<Vec<u8>, String> {
    const FLOAT_DATA: u64 = 4;
    const RAW_DATA: u64 = 9;
    const DATA_LOCATION: u64 = 14;
    if number_in(tensor, DATA_LOCATION).is_some_and(|location| location != 0) {
        return Err("it keeps 32-bit floats in another file; store them in the graph".to_owned());
    }
    match bytes_in(tensor, RAW_DATA) {
        Some(raw) => Ok(raw.to_vec()),
        None => fixed(tensor, FLOAT_DATA),
    }
}

/// Returns the four bytes of each number of a repeated field, packed or not.
pub fn fixed(message: &[u8], wanted: u64) -> Result<Vec<u8>, String> {
    let mut found = Vec::new();
    for field in Fields(message) {
        let field = field.map_err(|error| format!("a constant cannot be read: {error}"))?;
        match field.value {
            Value::Bytes(packed) if field.number == wanted => found.extend_from_slice(packed),
            Value::Fixed if field.number == wanted => {
                found.extend(field.raw.iter().rev().take(4).rev());
            }
            _ => {}
        }
    }
    Ok(found)
}

fn dims(tensor: &[u8]) -> Result<Vec<u64>, String> {
    const DIMS: u64 = 1;
    let mut found = Vec::new();
    for field in Fields(tensor) {
        let field = field.map_err(|error| format!("a constant cannot be read: {error}"))?;
        match field.pair() {
            (DIMS, Value::Number(size)) => found.push(size),
            (DIMS, Value::Bytes(packed)) => {
                let mut packed = Fields(packed);
                while !packed.0.is_empty() {
                    found.push(packed.number().map_err(|error| error.to_string())?);
                }
            }
            _ => {}
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::onnx::wire::put_number;

    fn values(tensor: &[u8]) -> Vec<f32> {
        let raw = bytes_in(tensor, 9).unwrap();
        raw.as_chunks::<2>().0.iter().map(|two| f16::from_le_bytes(*two).to_f32()).collect()
    }

    #[test]
    fn numbers_beyond_16_bits_are_clamped_and_infinities_stay() {
        let numbers = [1.0, -0.1, 1e6, -1e6, 1e-9, -1e-9, 0.0, f32::INFINITY, f32::NEG_INFINITY];
        let bytes: Vec<u8> = numbers.iter().flat_map(|number: &f32| number.to_le_bytes()).collect();
        let (tensor, clamped) = halve(&of_floats("own", &[3, 3], &bytes), "half").unwrap();
        let smallest = 2.0_f32.powi(-24);
        let near = f16::from_f32(-0.1).to_f32();
        assert_eq!(
            values(&tensor),
            [
                1.0,
                near,
                65504.0,
                -65504.0,
                smallest,
                -smallest,
                0.0,
                f32::INFINITY,
                f32::NEG_INFINITY
            ]
        );
        assert_eq!(clamped, 4);
        assert_eq!(dims(&tensor), Ok(vec![3, 3]));
        assert_eq!(
            (element_type(&tensor), bytes_in(&tensor, 8)),
            (Some(FLOAT16), Some(&b"half"[..]))
        );
    }

    #[test]
    fn floats_are_read_however_they_are_stored() {
        let bytes: Vec<u8> =
            [1.5_f32, -2.0].iter().flat_map(|number| number.to_le_bytes()).collect();
        let mut head = Vec::new();
        put_bytes(&mut head, 1, &[2]);
        put_number(&mut head, 2, FLOAT);
        let mut packed = head.clone();
        put_bytes(&mut packed, 4, &bytes);
        let mut single = head;
        for number in bytes.as_chunks::<4>().0 {
            single.push(4 << 3 | 5);
            single.extend(number);
        }
        for tensor in [packed, single] {
            assert_eq!(values(&halve(&tensor, "half").unwrap().0), [1.5, -2.0]);
        }
    }

    #[test]
    fn a_constant_that_is_elsewhere_or_incomplete_is_refused() {
        let mut external = of_floats("own", &[1], &[]);
        put_number(&mut external, 14, 1);
        assert!(halve(&external, "half").unwrap_err().contains("in another file"));
        let short = of_floats("own", &[2], &1.0_f32.to_le_bytes());
        assert!(halve(&short, "half").unwrap_err().contains("does not have the size"));
    }
}
