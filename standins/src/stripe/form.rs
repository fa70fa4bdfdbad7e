//! Form fields with nested names such as `line_items[0][price_data][unit_amount]`, parsed into a tree.

use std::collections::BTreeMap;

use super::error::StripeError;

/// More levels than any of Stripe's parameters has.
const MAX_DEPTH: usize = 8;

/// The fields of one level.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Form(BTreeMap<String, Field>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Field {
    Text(String),
    Inner(Form),
}

impl Form {
    pub fn parse(encoded: &[u8]) -> Result<Self, StripeError> {
        let mut form = Self::default();
        for (name, value) in url::form_urlencoded::parse(encoded) {
            let invalid = || {
                StripeError::invalid(format!("Invalid parameter name: {name}")).with_param(&name)
            };
            let path = path(&name).ok_or_else(invalid)?;
            form.insert(&path, value.into_owned()).ok_or_else(invalid)?;
        }
        Ok(form)
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Returns the text of a field. Like Stripe, treats an empty field as missing.
    pub fn text(&self, name: &str) -> Option<&str> {
        match self.0.get(name)? {
            Field::Text(text) => Some(text.as_str()).filter(|text| !text.is_empty()),
            Field::Inner(_) => None,
        }
    }

    /// Parses an integer field; `param` is its full name, for the error.
    pub fn integer(&self, name: &str, param: &str) -> Result<Option<i64>, StripeError> {
        let Some(text) = self.text(name) else { return Ok(None) };
        let invalid =
            |_| StripeError::invalid(format!("Invalid integer: {text}")).with_param(param);
        text.parse().map(Some).map_err(invalid)
    }

    /// Returns the fields nested in a field.
    pub fn inner(&self, name: &str) -> Option<&Self> {
        match self.0.get(name)? {
            Field::Inner(form) => Some(form),
            Field::Text(_) => None,
        }
    }

    /// Returns the entries of a list of objects in the order of their indexes; `None` if the field is not such a list.
    pub fn list(&self, name: &str) -> Option<Vec<&Self>> {
        let indexed = self.inner(name)?.0.iter().map(|(index, field)| match field {
            Field::Inner(form) => Some((index.parse::<usize>().ok()?, form)),
            Field::Text(_) => None,
        });
        let mut entries: Vec<_> = indexed.collect::<Option<_>>()?;
        entries.sort_by_key(|(index, _)| *index);
        Some(entries.into_iter().map(|(_, form)| form).collect())
    }

    /// Returns the text fields nested in a field.
    pub fn texts(&self, name: &str) -> BTreeMap<String, String> {
        let inner = self.inner(name).into_iter().flat_map(|form| &form.0);
        let texts = inner.filter_map(|(name, field)| match field {
            Field::Text(text) => Some((name.clone(), text.clone())),
            Field::Inner(_) => None,
        });
        texts.collect()
    }

    /// Returns a text that depends on the fields but not on their order.
    pub fn canonical(&self) -> String {
        let fields = self.0.iter().map(|(name, field)| match field {
            Field::Text(text) => format!("{name:?}={text:?}"),
            Field::Inner(form) => format!("{name:?}={{{}}}", form.canonical()),
        });
        fields.collect::<Vec<_>>().join("&")
    }

    fn insert(&mut self, path: &[&str], value: String) -> Option<()> {
        let (first, rest) = path.split_first()?;
        if rest.is_empty() {
            self.0.insert((*first).to_owned(), Field::Text(value));
            return Some(());
        }
        let field = self.0.entry((*first).to_owned());
        match field.or_insert_with(|| Field::Inner(Self::default())) {
            Field::Inner(form) => form.insert(rest, value),
            Field::Text(_) => None,
        }
    }
}

/// Splits `a[b][0]` into `a`, `b` and `0`; `None` if the brackets do not match.
fn path(name: &str) -> Option<Vec<&str>> {
    let Some((first, rest)) = name.split_once('[') else {
        return (!name.is_empty() && !name.contains(']')).then(|| vec![name]);
    };
    let inner = rest.strip_suffix(']')?.split("][");
    let path: Vec<_> = std::iter::once(first).chain(inner).collect();
    let is_valid = path.iter().all(|part| !part.is_empty() && !part.contains(['[', ']']));
    (is_valid && path.len() <= MAX_DEPTH).then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nested_names_become_a_tree() {
        let body = b"mode=payment&line_items[0][price_data][unit_amount]=200&line_items%5B0%5D%5Bquantity%5D=1\
            &metadata[pack]=a+b%26c";
        let form = Form::parse(body).unwrap();
        assert_eq!(form.text("mode"), Some("payment"));
        assert_eq!(form.texts("metadata")["pack"], "a b&c");
        let items = form.list("line_items").unwrap();
        assert_eq!(items[0].integer("quantity", "quantity"), Ok(Some(1)));
        assert_eq!(items[0].inner("price_data").unwrap().text("unit_amount"), Some("200"));
    }

    #[test]
    fn list_entries_are_sorted_by_index() {
        let form = Form::parse(b"item[10][n]=c&item[2][n]=b&item[0][n]=a").unwrap();
        let items = form.list("item").unwrap();
        assert_eq!(items.iter().map(|item| item.text("n").unwrap()).collect::<String>(), "abc");
    }

    #[test]
    fn malformed_names_are_rejected() {
        for body in ["a[b=1", "a]=1", "[a]=1", "a[]=1", "a[b]c=1", "a[[b]]=1", "a=1&a[b]=2", "=1"] {
            assert!(Form::parse(body.as_bytes()).is_err(), "{body}");
        }
        assert!(Form::parse("a[b]".repeat(9).as_bytes()).is_err());
    }

    #[test]
    fn the_canonical_text_depends_on_nesting_but_not_on_order() {
        let canonical = |body: &str| Form::parse(body.as_bytes()).unwrap().canonical();
        assert_eq!(canonical("a=1&b[c]=2"), canonical("b[c]=2&a=1"));
        assert_ne!(canonical("a[b]=1&c=2"), canonical("a[b]=1&a[c]=2"));
        assert_ne!(canonical("a=1%22%26%22b%22%3D%222"), canonical("a=1&b=2"));
    }
}
