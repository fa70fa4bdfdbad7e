//! The mark in XMP beside a manifest: `DigitalSourceType` of the IPTC's extension schema, for programs that
//! read only XMP, and for pictures whose manifest was stripped.

use quick_xml::events::Event;
use quick_xml::name::ResolveResult;
use quick_xml::reader::NsReader;

use crate::SourceType;

/// The namespace of the IPTC's extension schema.
const IPTC_EXTENSION: &str = "http://iptc.org/std/Iptc4xmpExt/2008-02-29/";
const PROPERTY: &[u8] = b"DigitalSourceType";
/// Maximum number of namespaces in a packet that is read; real packets have about 15. The reader looks up each name
/// among all.
const MAX_NAMESPACES: usize = 256;

/// Returns an XMP packet that states `source`.
pub(crate) fn packet(source: &SourceType) -> String {
    format!(
        "<?xpacket begin=\"\u{feff}\" id=\"W5M0MpCehiHzreSzNTczkc9d\"?>\
         <x:xmpmeta xmlns:x=\"adobe:ns:meta/\">\
         <rdf:RDF xmlns:rdf=\"http://www.w3.org/1999/02/22-rdf-syntax-ns#\">\
         <rdf:Description rdf:about=\"\" xmlns:Iptc4xmpExt=\"{IPTC_EXTENSION}\" \
         Iptc4xmpExt:DigitalSourceType=\"{source}\"/>\
         </rdf:RDF></x:xmpmeta><?xpacket end=\"w\"?>"
    )
}

/// Returns the first source type that an XMP packet states, as an attribute or an element; `None` if there is none, or the
/// packet is damaged or has too many namespaces.
pub(crate) fn source_type(packet: &[u8]) -> Option<SourceType> {
    const DECLARATION: &[u8] = b"xmlns";
    if packet.windows(DECLARATION.len()).filter(|found| *found == DECLARATION).count()
        > MAX_NAMESPACES
    {
        return None;
    }
    let mut reader = NsReader::from_reader(packet);
    let mut is_inside = false;
    loop {
        let (namespace, event) = reader.read_resolved_event().ok()?;
        match event {
            Event::Start(element) | Event::Empty(element) => {
                let is_iptc = is_extension(&namespace);
                is_inside = is_iptc && element.local_name().as_ref() == PROPERTY;
                for attribute in element.attributes().flatten() {
                    let (namespace, name) = reader.resolver().resolve_attribute(attribute.key);
                    if is_extension(&namespace) && name.as_ref() == PROPERTY {
                        let value =
                            attribute.normalized_value(quick_xml::XmlVersion::Explicit1_0).ok()?;
                        return SourceType::parse(&value);
                    }
                    // `<Iptc4xmpExt:DigitalSourceType rdf:resource="…"/>`
                    if is_inside && name.as_ref() == b"resource" {
                        let value =
                            attribute.normalized_value(quick_xml::XmlVersion::Explicit1_0).ok()?;
                        return SourceType::parse(&value);
                    }
                }
            }
            Event::Text(text) if is_inside => {
                return SourceType::parse(&text.decode().ok()?);
            }
            Event::End(_) => is_inside = false,
            Event::Eof => return None,
            _ => {}
        }
    }
}

fn is_extension(namespace: &ResolveResult<'_>) -> bool {
    matches!(namespace, ResolveResult::Bound(name) if name.as_ref() == IPTC_EXTENSION.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_packet_says_what_was_written() {
        let source = SourceType::composite_with_trained_media();
        assert_eq!(source_type(packet(&source).as_bytes()), Some(source));
    }

    #[test]
    fn other_writers_use_elements_resources_and_other_prefixes() {
        let uri = SourceType::composite_with_trained_media().uri();
        let wrap = |inner: &str| {
            format!(
                "<x:xmpmeta xmlns:x='adobe:ns:meta/'><rdf:RDF \
                 xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#' xmlns:e='{IPTC_EXTENSION}'>\
                 <rdf:Description rdf:about=''>{inner}</rdf:Description></rdf:RDF></x:xmpmeta>"
            )
        };
        let element = wrap(&format!("<e:DigitalSourceType>{uri}</e:DigitalSourceType>"));
        let resource = wrap(&format!("<e:DigitalSourceType rdf:resource='{uri}'/>"));
        for packet in [element, resource] {
            let found = source_type(packet.as_bytes());
            assert!(found.is_some_and(|it| it.is_generated()), "{packet}");
        }
        let declarations = " xmlns:n='n'".repeat(300);
        let many = wrap(&format!("<a{declarations}/><e:DigitalSourceType rdf:resource='{uri}'/>"));
        assert_eq!(source_type(many.as_bytes()), None);
        let foreign = wrap(&format!("<x:DigitalSourceType>{uri}</x:DigitalSourceType>"));
        for packet in [foreign.as_str(), "", "<", "<a><b></a>", "\0\0", &"<a>".repeat(100_000)] {
            assert_eq!(source_type(packet.as_bytes()), None);
        }
    }
}
