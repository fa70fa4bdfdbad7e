//! Finds the files that contain tensors of an ONNX file ("external data"). ONNX Runtime would open any path that the
//! graph names, so the graph is read before the runtime gets it. The reader visits only the protobuf fields that lead
//! to tensors and trusts no length.

use std::collections::BTreeSet;

pub use super::wire::Malformed;
use super::wire::{Fields, MAX_DEPTH, Value};

/// Returns the files that contain tensors of `model`, as the graph spells them. Empty for a model in one file.
///
/// # Errors
/// [`Malformed`] if the bytes are not an ONNX file.
pub fn locations(model: &[u8]) -> Result<BTreeSet<String>, Malformed> {
    let mut found = BTreeSet::new();
    walk(Kind::Model, model, MAX_DEPTH, &mut |message| tensor(message, &mut found))?;
    Ok(found)
}

/// Returns the element types of the tensors that `model` contains or names, by their numbers in onnx.proto.
///
/// # Errors
/// [`Malformed`] if the bytes are not an ONNX file.
pub fn element_types(model: &[u8]) -> Result<BTreeSet<u64>, Malformed> {
    const DATA_TYPE: u64 = 2;
    let mut found = BTreeSet::new();
    walk(Kind::Model, model, MAX_DEPTH, &mut |message| {
        for field in Fields(message) {
            if let (DATA_TYPE, Value::Number(number)) = field?.pair() {
                found.insert(number);
            }
        }
        Ok(())
    })?;
    Ok(found)
}

/// The messages of onnx.proto that lead to tensors.
#[derive(Clone, Copy)]
enum Kind {
    Model,
    Training,
    Function,
    Graph,
    Node,
    Attribute,
    Sparse,
    Tensor,
}

impl Kind {
    /// Returns the kind of message in a field, if it can lead to tensors. onnx.proto defines the field numbers.
    const fn child(self, field: u64) -> Option<Self> {
        match (self, field) {
            (Self::Model, 7) | (Self::Training, 1 | 2) | (Self::Attribute, 6 | 11) => {
                Some(Self::Graph)
            }
            (Self::Model, 20) => Some(Self::Training),
            (Self::Model, 25) => Some(Self::Function),
            (Self::Graph, 1) | (Self::Function, 7) => Some(Self::Node),
            (Self::Node, 5) | (Self::Function, 11) => Some(Self::Attribute),
            (Self::Graph, 5) | (Self::Attribute, 5 | 10) | (Self::Sparse, 1 | 2) => {
                Some(Self::Tensor)
            }
            (Self::Graph, 15) | (Self::Attribute, 22 | 23) => Some(Self::Sparse),
            _ => None,
        }
    }
}

fn walk(
    kind: Kind,
    message: &[u8],
    depth: u32,
    visit: &mut impl FnMut(&[u8]) -> Result<(), Malformed>,
) -> Result<(), Malformed> {
    if let Kind::Tensor = kind {
        return visit(message);
    }
    let depth = match kind {
        Kind::Graph => depth.checked_sub(1).ok_or(Malformed::TooDeep)?,
        _ => depth,
    };
    for field in Fields(message) {
        let (number, value) = field?.pair();
        if let (Some(child), Value::Bytes(bytes)) = (kind.child(number), value) {
            walk(child, bytes, depth, visit)?;
        }
    }
    Ok(())
}

fn tensor(message: &[u8], found: &mut BTreeSet<String>) -> Result<(), Malformed> {
    const EXTERNAL_DATA: u64 = 13;
    const DATA_LOCATION: u64 = 14;
    const EXTERNAL: u64 = 1;
    let (mut is_external, mut is_named) = (false, false);
    for field in Fields(message) {
        match field?.pair() {
            // Counted even if the tensor does not say that it is external: nothing else needs such an entry.
            (EXTERNAL_DATA, Value::Bytes(entry)) => {
                let (key, value) = key_and_value(entry)?;
                if key == b"location" {
                    found.insert(String::from_utf8_lossy(value).into_owned());
                    is_named = true;
                }
            }
            (DATA_LOCATION, Value::Number(location)) => is_external = location == EXTERNAL,
            _ => {}
        }
    }
    if is_external && !is_named { Err(Malformed::Nameless) } else { Ok(()) }
}

fn key_and_value(entry: &[u8]) -> Result<(&[u8], &[u8]), Malformed> {
    let (mut key, mut value): (&[u8], &[u8]) = (&[], &[]);
    for field in Fields(entry) {
        match field?.pair() {
            (1, Value::Bytes(bytes)) => key = bytes,
            (2, Value::Bytes(bytes)) => value = bytes,
            _ => {}
        }
    }
    Ok((key, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
        let mut length = bytes.len();
        let mut written = if number < 16 {
            vec![number << 3 | 2]
        } else {
            vec![(number << 3 | 2) | 0x80, number >> 4]
        };
        while length > 0x7f {
            written.push(length as u8 | 0x80);
            length >>= 7;
        }
        written.push(length as u8);
        [&written, bytes].concat()
    }

    fn external_tensor(location: &str) -> Vec<u8> {
        let entry = [field(1, b"location"), field(2, location.as_bytes())].concat();
        [field(13, &entry), vec![14 << 3, 1]].concat()
    }

    fn found(model: &[u8]) -> Vec<String> {
        locations(model).expect("it reads").into_iter().collect()
    }

    #[test]
    fn external_tensors_are_found_in_every_kind_of_message() {
        let tensor = external_tensor("weights.bin");
        let graph = field(5, &tensor);
        let attribute = |inner: Vec<u8>| field(1, &field(5, &inner));
        for (what, model) in [
            ("initializer", field(7, &graph)),
            ("sparse initializer", field(7, &field(15, &field(2, &tensor)))),
            ("attribute", field(7, &attribute(field(5, &tensor)))),
            ("one of an attribute's tensors", field(7, &attribute(field(10, &tensor)))),
            ("sparse attribute", field(7, &attribute(field(22, &field(1, &tensor))))),
            ("branch", field(7, &attribute(field(6, &graph)))),
            ("one of several branches", field(7, &attribute(field(11, &graph)))),
            ("function", field(25, &field(7, &field(5, &field(5, &tensor))))),
            ("default of a function", field(25, &field(11, &field(5, &tensor)))),
            ("training", field(20, &field(2, &graph))),
        ] {
            assert_eq!(found(&model), ["weights.bin"], "{what}");
        }
    }

    #[test]
    fn a_model_in_one_file_has_no_locations() {
        let raw = [vec![1 << 3, 3, 2 << 3, 1], field(9, &[0; 300])].concat();
        assert!(found(&field(7, &field(5, &raw))).is_empty());
        assert!(found(&[]).is_empty());
    }

    #[test]
    fn a_location_counts_even_if_the_tensor_does_not_call_itself_external() {
        let mut tensor = external_tensor("../weights.bin");
        tensor.truncate(tensor.len() - 2);
        assert_eq!(found(&field(7, &field(5, &tensor))), ["../weights.bin"]);
    }

    #[test]
    fn malformed_files_are_refused_without_panicking() {
        let nameless = field(7, &field(5, &[14 << 3, 1]));
        assert_eq!(locations(&nameless), Err(Malformed::Nameless));
        assert_eq!(locations(&[0x3a, 0xff, 0xff, 0xff, 0x0f]), Err(Malformed::Truncated));
        assert_eq!(locations(&[0xff; 12]), Err(Malformed::NotProtobuf));
        assert_eq!(locations(b"\x03"), Err(Malformed::NotProtobuf));
        let nested = (0..MAX_DEPTH).fold(field(5, &external_tensor("a")), |graph, _| {
            field(1, &field(5, &field(6, &graph)))
        });
        assert_eq!(locations(&field(7, &nested)), Err(Malformed::TooDeep));
        let model = field(7, &field(5, &external_tensor("weights.bin")));
        for length in 0..model.len() {
            let _ = locations(&model[..length]);
        }
        for at in 0..model.len() {
            for bit in 0..8 {
                let mut broken = model.clone();
                broken[at] ^= 1 << bit;
                let _ = locations(&broken);
            }
        }
    }
}
