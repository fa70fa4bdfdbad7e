//! Form fields with names such as `line_items[0][price_data][unit_amount]`, read into a tree.

use std::collections::BTreeMap;

use serde_json::Value;

use super::refusal::Refusal;

/// Deeper than any parameter of Stripe's.
const DEEPEST: usize = 8;

/// The fields of one level.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Form(BTreeMap<String, Field>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Field {
    Text(String),
    Inner(Form),
}

impl Form {
    /// Reads a form-encoded body or query.
    pub fn parse(encoded: &[u8]) -> Result<Self, Refusal> {
        let mut form = Self::default();
        for (name, value) in url::form_urlencoded::parse(encoded) {
            let wrong = || Refusal::invalid(format!("Invalid parameter name: {name}")).about(&name);
            let path = path(&name).ok_or_else(wrong)?;
            form.insert(&path, value.into_owned()).ok_or_else(wrong)?;
        }
        Ok(form)
    }

    /// Reads the fields of a JSON object, so that a route may take either.
    pub fn from_json(object: &Value) -> Self {
        let fields = object.as_object().into_iter().flatten();
        let named = fields.map(|(name, value)| {
            let field = match value {
                Value::Object(_) => Field::Inner(Self::from_json(value)),
                Value::String(text) => Field::Text(text.clone()),
                other => Field::Text(other.to_string()),
            };
            (name.clone(), field)
        });
        Self(named.collect())
    }

    /// The names of this level.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// The text of a field; an empty one counts as absent, as with Stripe.
    pub fn text(&self, name: &str) -> Option<&str> {
        match self.0.get(name)? {
            Field::Text(text) => Some(text.as_str()).filter(|text| !text.is_empty()),
            Field::Inner(_) => None,
        }
    }

    /// The whole number in a field; `param` is its full name, for the refusal.
    pub fn integer(&self, name: &str, param: &str) -> Result<Option<i64>, Refusal> {
        let Some(text) = self.text(name) else { return Ok(None) };
        let wrong = |_| Refusal::invalid(format!("Invalid integer: {text}")).about(param);
        text.parse().map(Some).map_err(wrong)
    }

    /// The fields below a field.
    pub fn inner(&self, name: &str) -> Option<&Self> {
        match self.0.get(name)? {
            Field::Inner(form) => Some(form),
            Field::Text(_) => None,
        }
    }

    /// The entries of a list of objects, in the order of their numbers; none where something else stands there.
    pub fn list(&self, name: &str) -> Option<Vec<&Self>> {
        let numbered = self.inner(name)?.0.iter().map(|(number, field)| match field {
            Field::Inner(form) => Some((number.parse::<usize>().ok()?, form)),
            Field::Text(_) => None,
        });
        let mut entries: Vec<_> = numbered.collect::<Option<_>>()?;
        entries.sort_by_key(|(number, _)| *number);
        Some(entries.into_iter().map(|(_, form)| form).collect())
    }

    /// The texts below a field: metadata, or a list of words.
    pub fn texts(&self, name: &str) -> BTreeMap<String, String> {
        let inner = self.inner(name).into_iter().flat_map(|form| &form.0);
        let texts = inner.filter_map(|(name, field)| match field {
            Field::Text(text) => Some((name.clone(), text.clone())),
            Field::Inner(_) => None,
        });
        texts.collect()
    }

    /// The same text for the same fields, whatever order they came in.
    pub fn canonical(&self) -> String {
        let fields = self.0.iter().map(|(name, field)| match field {
            Field::Text(text) => format!("{name:?}={text:?}"),
            Field::Inner(form) => format!("{name:?}={{{}}}", form.canonical()),
        });
        fields.collect::<Vec<_>>().join("&")
    }

    fn insert(&mut self, path: &[&str], value: String) -> Option<()> {
        let (first, rest) = path.split_first()?;
        let name = if first.is_empty() { self.0.len().to_string() } else { (*first).to_owned() };
        if rest.is_empty() {
            self.0.insert(name, Field::Text(value));
            return Some(());
        }
        match self.0.entry(name).or_insert_with(|| Field::Inner(Self::default())) {
            Field::Inner(form) => form.insert(rest, value),
            Field::Text(_) => None,
        }
    }
}

/// `a[b][0]` as `a`, `b`, `0`; none if the brackets do not match.
fn path(name: &str) -> Option<Vec<&str>> {
    let Some((first, rest)) = name.split_once('[') else {
        return (!name.is_empty() && !name.contains(']')).then(|| vec![name]);
    };
    let inner = rest.strip_suffix(']')?.split("][");
    let path: Vec<_> = std::iter::once(first).chain(inner).collect();
    let clean = path.iter().all(|part| !part.contains(['[', ']']));
    (clean && !first.is_empty() && path.len() <= DEEPEST).then_some(path)
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
    fn list_entries_come_in_the_order_of_their_numbers() {
        let form = Form::parse(b"item[10][n]=c&item[2][n]=b&item[0][n]=a").unwrap();
        let items = form.list("item").unwrap();
        assert_eq!(items.iter().map(|item| item.text("n").unwrap()).collect::<String>(), "abc");
    }

    #[test]
    fn empty_brackets_append() {
        let form = Form::parse(b"expand[]=line_items&expand[]=payment_intent").unwrap();
        let words: Vec<_> = form.texts("expand").into_values().collect();
        assert_eq!(words, ["line_items", "payment_intent"]);
    }

    #[test]
    fn brackets_that_do_not_match_are_refused() {
        for body in ["a[b=1", "a]=1", "[a]=1", "a[b]c=1", "a[[b]]=1", "a=1&a[b]=2", "=1"] {
            assert!(Form::parse(body.as_bytes()).is_err(), "{body}");
        }
        assert!(Form::parse("a[b]".repeat(9).as_bytes()).is_err());
    }

    #[test]
    fn the_order_of_fields_does_not_matter_and_their_nesting_does() {
        let canonical = |body: &str| Form::parse(body.as_bytes()).unwrap().canonical();
        assert_eq!(canonical("a=1&b[c]=2"), canonical("b[c]=2&a=1"));
        assert_ne!(canonical("a[b]=1&c=2"), canonical("a[b]=1&a[c]=2"));
        assert_ne!(canonical("a=1%22%26%22b%22%3D%222"), canonical("a=1&b=2"));
    }
}
