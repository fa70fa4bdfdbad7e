//! Parses a JSON object field by field. Nothing else of it is kept: a list of numbers would take ten times its text.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

use super::fields::{BASE64_FIELD, Form, MAX_TEXT_BYTES, malformed, printable, too_long};
use crate::http::base64_file::Base64File;
use crate::routes::removebg::refusal::Refusal;

/// Adds the fields of `body` to `form`.
pub(super) fn parse(body: &[u8], form: Form) -> Result<Form, Refusal> {
    let mut parser = serde_json::Deserializer::from_slice(body);
    let mut fields = Fields { form, refusal: None };
    let parsed = parser.deserialize_map(&mut fields).and_then(|()| parser.end());
    match (parsed, fields.refusal) {
        (_, Some(refusal)) => Err(refusal),
        (Ok(()), None) => Ok(fields.form),
        (Err(_), None) => Err(malformed("the body is not a JSON object")),
    }
}

struct Fields {
    form: Form,
    /// Why a field was rejected; the parser's own errors cannot carry it.
    refusal: Option<Refusal>,
}

impl Fields {
    fn note<T, E: Error>(&mut self, result: Result<T, Refusal>) -> Result<T, E> {
        result.map_err(|refusal| {
            self.refusal = Some(refusal);
            E::custom("a field was rejected")
        })
    }
}

impl<'de> Visitor<'de> for &mut Fields {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<(), M::Error> {
        while let Some(name) = map.next_key::<String>()? {
            let begun = self.form.begin(&name);
            self.note(begun)?;
            map.next_value_seed(Value { name: &name, fields: self })?;
        }
        Ok(())
    }
}

/// The value of a field.
struct Value<'a> {
    name: &'a str,
    fields: &'a mut Fields,
}

impl Value<'_> {
    fn add<E: Error>(self, text: &str) -> Result<(), E> {
        let form = &mut self.fields.form;
        let added = if self.name == BASE64_FIELD {
            let mut file = Base64File::default();
            form.decode(&mut file, text.as_bytes())
                .and_then(|()| form.add_decoded(file, text.is_empty()))
        } else if text.len() > MAX_TEXT_BYTES {
            Err(too_long(self.name))
        } else {
            form.add(self.name, text.to_owned())
        };
        self.fields.note(added)
    }

    fn reject<E: Error>(self) -> Result<(), E> {
        let title = format!("{} must be a single value.", printable(self.name));
        self.fields.note(Err(Refusal::of_parameter("invalid_parameter", title)))
    }
}

impl<'de> DeserializeSeed<'de> for Value<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Value<'_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a single value")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<(), E> {
        self.add(text)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<(), E> {
        self.add(&value.to_string())
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<(), E> {
        self.add(&value.to_string())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<(), E> {
        self.add(&value.to_string())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<(), E> {
        self.add(&serde_json::Value::from(value).to_string())
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, _: A) -> Result<(), A::Error> {
        self.reject()
    }

    fn visit_map<A: MapAccess<'de>>(self, _: A) -> Result<(), A::Error> {
        self.reject()
    }
}
