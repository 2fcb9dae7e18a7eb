//! Validation of a stored response, and the changes that follow from the server's response (RFC 9111, sections 4.3 and 4.4).
//!
//! Not when to validate: that is [`super::policy`].

use crate::message::{FieldLines, Fields, Method, RequestHead, ResponseHead};

/// Returns the request for the server: with a stored response, the cache's conditions replace the client's.
pub fn for_server(request: &RequestHead, stored: Option<FieldLines<'_>>) -> RequestHead {
    const CONDITIONS: [&str; 4] = ["If-None-Match", "If-Modified-Since", "If-Range", "Range"];
    let RequestHead { method, target, version, fields } = request;
    let is_ours = stored.is_some();
    let mut fields_to_send = Fields::new();
    for (name, value) in fields.iter() {
        let is_condition = CONDITIONS.iter().any(|known| name.eq_ignore_ascii_case(known.as_bytes()));
        if !(is_ours && is_condition) {
            fields_to_send.push_checked(name, value);
        }
    }
    if let Some(stored) = stored {
        if let Some(tag) = stored.get("ETag") {
            fields_to_send.push_checked(b"If-None-Match", tag);
        }
        if let Some(date) = stored.get("Last-Modified") {
            fields_to_send.push_checked(b"If-Modified-Since", date);
        }
    }
    RequestHead { method: method.clone(), target: target.clone(), version: *version, fields: fields_to_send }
}

/// Returns whether the stored response has a validator.
pub fn has_validator(stored: FieldLines<'_>) -> bool {
    stored.get("ETag").is_some() || stored.get("Last-Modified").is_some()
}

/// Returns whether a response is an unsolicited 304: no condition was sent, so it is a response to no client (RFC 9110,
/// section 15.4.5).
pub fn is_unsolicited(request: &RequestHead, status: u16) -> bool {
    let has_field = |name: &str| request.fields.get(name).is_some();
    status == 304 && !has_field("If-None-Match") && !has_field("If-Modified-Since")
}

/// Returns the stored fields, updated by a 304 that validated them (section 3.2), or by the response to HEAD.
pub fn freshened(stored: FieldLines<'_>, update: &Fields) -> Fields {
    // They describe the body in the cache, not the omitted one.
    const OF_THE_BODY: [&str; 6] =
        ["Content-Encoding", "Content-Length", "Content-MD5", "Content-Range", "ETag", "Transfer-Encoding"];
    let is_of_body =
        |name: &[u8]| OF_THE_BODY.iter().any(|known| name.eq_ignore_ascii_case(known.as_bytes()));
    // `Age` belongs to one response only.
    let is_replaced = |name: &[u8]| {
        name.eq_ignore_ascii_case(b"Age")
            || (!is_of_body(name) && update.iter().any(|(new, _)| new.eq_ignore_ascii_case(name)))
    };
    let mut fields = Fields::new();
    for (name, value) in stored.iter().filter(|(name, _)| !is_replaced(name)) {
        fields.push_checked(name, value);
    }
    for (name, value) in update.iter().filter(|(name, _)| !is_of_body(name)) {
        fields.push_checked(name, value);
    }
    fields
}

/// Returns whether a 304 is about the stored response (section 4.3.4): its tag, if any, is the stored one; without one,
/// the date.
pub fn is_about(stored: FieldLines<'_>, update: &Fields) -> bool {
    let opaque = |tag: &'_ [u8]| tag.strip_prefix(b"W/").unwrap_or(tag).to_vec();
    match (update.get("ETag"), update.get("Last-Modified")) {
        (Some(tag), _) => stored.get("ETag").is_some_and(|stored_value| opaque(stored_value) == opaque(tag)),
        (None, Some(date)) => stored.get("Last-Modified").is_none_or(|stored_value| stored_value == date),
        (None, None) => true,
    }
}

/// Returns whether the response to HEAD is about the stored one (section 4.3.5).
pub fn describes(stored: FieldLines<'_>, length: u64, update: &Fields) -> bool {
    let is_same_field = |name: &str| update.get(name).is_none_or(|new| stored.get(name) == Some(new));
    let same_length = update.get("Content-Length").is_none_or(|new| new == length.to_string().as_bytes());
    is_same_field("ETag") && is_same_field("Last-Modified") && same_length
}

/// Returns the paths that a successful response to this request invalidates (section 4.4): its own and, of the same
/// server, those that it names. Empty if it changes nothing, or failed.
pub fn obsolete(request: &RequestHead, authority: &str, response: &ResponseHead) -> Vec<String> {
    let is_change = match &request.method {
        Method::Get | Method::Head | Method::Options => false,
        Method::Other(name) => name != "TRACE",
    };
    if !is_change || !(200..400).contains(&response.status) {
        return Vec::new();
    }
    let mut paths = vec![request.target.clone()];
    for name in ["Location", "Content-Location"] {
        let named = response.fields.get(name).and_then(|value| std::str::from_utf8(value).ok());
        paths.extend(named.and_then(|address| path_here(address, authority, &request.target)));
    }
    paths
}

/// Returns the path of a URL on this server.
fn path_here(address: &str, authority: &str, base: &str) -> Option<String> {
    let address = address.split('#').next()?;
    let path = match address.split_once("://") {
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => {
            let end = rest.find(['/', '?']).unwrap_or(rest.len());
            let (host, path) = rest.split_at(end);
            let is_same_host = host.strip_suffix(":80").unwrap_or(host).eq_ignore_ascii_case(authority);
            return is_same_host
                .then(|| if path.starts_with('/') { path.to_owned() } else { format!("/{path}") });
        }
        Some(_) => return None,
        None => address,
    };
    if path.starts_with("//") {
        return path_here(&format!("http:{path}"), authority, base);
    }
    if path.starts_with('/') {
        return Some(path.to_owned());
    }
    let directory = base.split('?').next()?.rsplit_once('/')?.0;
    Some(format!("{directory}/{path}"))
}
