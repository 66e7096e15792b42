//! Headers that repeat what the body of a request says.

use http::{HeaderMap, HeaderName, HeaderValue};
use proto::header;
use spec::header as name;

/// Every text that is written as a header is read as the same text. What a peer writes is read or refused.
pub(crate) fn read(input: &[u8]) {
    if let Ok(text) = std::str::from_utf8(input) {
        let mut headers = HeaderMap::new();
        headers.insert(HeaderName::from_static(name::NAME), header::encode(text));
        assert_eq!(header::read(&headers, name::NAME).expect("ours is readable").as_deref(), Some(text));
        assert_eq!(header::must_equal(&headers, name::NAME, text), Ok(()));
    }
    let (schema, value) = crate::input::halves(input);
    if let Ok(value) = HeaderValue::from_bytes(value) {
        let headers = HeaderMap::from_iter([
            (HeaderName::from_static(name::NAME), value.clone()),
            (HeaderName::from_static(name::PROTOCOL_VERSION), value),
        ]);
        for header in [name::NAME, name::PROTOCOL_VERSION] {
            if let Ok(Some(read)) = header::read(&headers, header) {
                assert_eq!(header::must_equal(&headers, header, &read), Ok(()));
                // The peer may have used another form; written again, the text is read as the same.
                let ours =
                    HeaderMap::from_iter([(HeaderName::from_static(name::NAME), header::encode(&read))]);
                assert_eq!(header::read(&ours, name::NAME).expect("readable").as_deref(), Some(&*read));
            }
        }
    }
    mirrored(schema);
}

/// A request carries the headers that a schema asks for, and is accepted with them.
fn mirrored(schema: &[u8]) {
    let Ok(schema) = proto::Raw::parse(bytes::Bytes::copy_from_slice(schema), crate::input::DEPTH) else {
        return;
    };
    let Ok(mirrors) = header::header_params(&schema) else { return };
    // Any object will do for arguments: the schema itself is one.
    let headers = HeaderMap::from_iter(header::mirrored(&mirrors, Some(&schema)));
    assert_eq!(header::check_header_params(&headers, &mirrors, Some(&schema)), Ok(()));
}
