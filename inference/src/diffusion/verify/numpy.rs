//! Reads numpy's files: `.npy`, one array, and `.npz`, a zip archive of such files.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use half::f16;
use ndarray::{ArrayD, IxDyn, ShapeBuilder};
use zip::ZipArchive;

use crate::diffusion::error::DiffusionError;

/// Reads an `.npy` file of any number type.
pub(super) fn read_array(path: &Path) -> Result<ArrayD<f32>, DiffusionError> {
    let bytes = fs::read(path).map_err(|error| DiffusionError::file(path, &error))?;
    let array = parse(&bytes).map_err(|reason| DiffusionError::file(path, &reason))?;
    Ok(array.mapv(|value| value as f32))
}

/// An opened `.npz` file.
pub(super) struct Archive {
    path: PathBuf,
    archive: ZipArchive<File>,
}

impl Archive {
    pub(super) fn open(path: &Path) -> Result<Self, DiffusionError> {
        let invalid = |error: &dyn std::error::Error| DiffusionError::file(path, &error);
        let file = File::open(path).map_err(|error| invalid(&error))?;
        let archive = ZipArchive::new(file).map_err(|error| invalid(&error))?;
        Ok(Self { path: path.to_owned(), archive })
    }

    pub(super) fn array(&mut self, name: &str) -> Result<ArrayD<f32>, DiffusionError> {
        Ok(self.read(name)?.mapv(|value| value as f32))
    }

    /// Reads the values of an array by name, in 64 bits.
    pub(super) fn array64(&mut self, name: &str) -> Result<Vec<f64>, DiffusionError> {
        Ok(self.read(name)?.into_iter().collect())
    }

    fn read(&mut self, name: &str) -> Result<ArrayD<f64>, DiffusionError> {
        let mut read = || -> Result<ArrayD<f64>, String> {
            let entry = self.archive.by_name(&format!("{name}.npy"));
            let mut entry = entry.map_err(|error| format!("{name}: {error}"))?;
            let mut bytes = Vec::new();
            entry.read_to_end(&mut bytes).map_err(|error| format!("{name}: {error}"))?;
            parse(&bytes).map_err(|reason| format!("{name}: {reason}"))
        };
        read().map_err(|reason| DiffusionError::file(&self.path, &reason))
    }
}

/// Parses the format of numpy's `lib/format.py`. Integers beyond 2^53 are rounded.
fn parse(bytes: &[u8]) -> Result<ArrayD<f64>, String> {
    let rest = bytes.strip_prefix(b"\x93NUMPY").ok_or("not an .npy file")?;
    let (length, rest) = match rest {
        [1, _, a, b, rest @ ..] => (usize::from(u16::from_le_bytes([*a, *b])), rest),
        [2 | 3, _, a, b, c, d, rest @ ..] => (u32::from_le_bytes([*a, *b, *c, *d]) as usize, rest),
        _ => return Err("the format version is unknown".to_owned()),
    };
    let (header, data) = rest.split_at_checked(length).ok_or("the file ends in the header")?;
    let header = std::str::from_utf8(header).map_err(|error| error.to_string())?;
    // numpy keeps the memory order, and the last axis of torch's arrays is not always the innermost.
    let is_reversed = value_of(header, "fortran_order")?.starts_with("True");
    let kind = value_of(header, "descr")?.split('\'').nth(1).unwrap_or_default();
    let shape = value_of(header, "shape")?;
    let shape = shape.strip_prefix('(').and_then(|shape| shape.split_once(')'));
    let sizes = shape.ok_or("the header has no shape")?.0.split(',').map(str::trim);
    let shape: Vec<usize> = sizes
        .filter(|size| !size.is_empty())
        .map(|size| size.parse().map_err(|_| format!("the shape has a size of {size:?}")))
        .collect::<Result<_, String>>()?;
    let values = numbers(kind, data)?;
    let shape = IxDyn(&shape).set_f(is_reversed);
    ArrayD::from_shape_vec(shape, values).map_err(|error| error.to_string())
}

/// Returns the text after a key of the header, which is a Python dictionary.
fn value_of<'a>(header: &'a str, key: &str) -> Result<&'a str, String> {
    let (_, rest) = header
        .split_once(&format!("'{key}':"))
        .ok_or_else(|| format!("the header has no {key}"))?;
    Ok(rest.trim_start())
}

fn numbers(kind: &str, data: &[u8]) -> Result<Vec<f64>, String> {
    Ok(match kind {
        "<f8" => each(data, f64::from_le_bytes),
        "<f4" => each(data, |bytes| f64::from(f32::from_le_bytes(bytes))),
        "<f2" => each(data, |bytes| f16::from_le_bytes(bytes).to_f64()),
        "<i8" => each(data, |bytes| i64::from_le_bytes(bytes) as f64),
        "<i4" => each(data, |bytes| f64::from(i32::from_le_bytes(bytes))),
        "|u1" => each(data, |[byte]| f64::from(byte)),
        "|b1" => each(data, |[byte]| f64::from(byte)),
        other => return Err(format!("values of type {other:?} are not supported")),
    })
}

fn each<const N: usize>(data: &[u8], number: impl Fn([u8; N]) -> f64) -> Vec<f64> {
    data.as_chunks::<N>().0.iter().map(|bytes| number(*bytes)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(header: &str, data: &[u8]) -> Vec<u8> {
        let length = (header.len() as u16).to_le_bytes();
        [b"\x93NUMPY\x01\x00", length.as_slice(), header.as_bytes(), data].concat()
    }

    #[test]
    fn every_number_type_is_read() {
        let header = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 1), }\n";
        let data = [1.5_f32.to_le_bytes(), (-2.0_f32).to_le_bytes()].concat();
        let array = parse(&file(header, &data)).unwrap();
        assert_eq!((array.shape(), array[[0, 0]], array[[1, 0]]), ([2, 1].as_slice(), 1.5, -2.0));
        let header = "{'descr': '<i8', 'fortran_order': False, 'shape': (), }\n";
        assert_eq!(
            parse(&file(header, &7_i64.to_le_bytes())).unwrap(),
            ndarray::arr0(7.0).into_dyn()
        );
        let header = "{'descr': '<f8', 'fortran_order': False, 'shape': (0,), }\n";
        assert!(parse(&file(header, &[])).unwrap().is_empty());
    }

    #[test]
    fn fortran_order_is_respected() {
        let header = "{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3), }\n";
        let array = parse(&file(header, &[1, 2, 3, 4, 5, 6])).unwrap();
        assert_eq!(array, ndarray::arr2(&[[1.0, 3.0, 5.0], [2.0, 4.0, 6.0]]).into_dyn());
    }

    #[test]
    fn malformed_files_are_refused() {
        let header = "{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }\n";
        assert!(parse(b"PK").is_err());
        assert!(parse(&file(header, &[0; 8])).is_err());
        assert!(parse(&file(header, &[0; 12])[..20]).is_err());
        assert!(parse(&file(&header.replace("<f4", ">f4"), &[0; 12])).is_err());
    }
}
