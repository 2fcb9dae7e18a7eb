//! Media type of a file, by its name, as a file server sends it.
//!
//! The contents are not read.

/// Returns the media type of a file with this path.
pub fn media_type(path: &str) -> &'static str {
    let (_, suffix) = path.rsplit_once('.').unwrap_or_default();
    match suffix.to_ascii_lowercase().as_str() {
        "html" | "htm" => "text/html; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "js" | "mjs" => "text/javascript; charset=utf-8",
        "txt" | "md" => "text/plain; charset=utf-8",
        "json" => "application/json",
        "xml" => "application/xml",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "gif" => "image/gif",
        "webp" => "image/webp",
        "avif" => "image/avif",
        "ico" => "image/x-icon",
        "woff2" => "font/woff2",
        "pdf" => "application/pdf",
        "wasm" => "application/wasm",
        "mp4" => "video/mp4",
        "gz" => "application/gzip",
        "zip" => "application/zip",
        _ => "application/octet-stream",
    }
}

/// Whether a media type is text, and worth compressing: images are compressed already.
pub fn is_text(content_type: &str) -> bool {
    let kind = content_type.split(';').next().unwrap_or_default().trim();
    let known = ["application/javascript", "application/json", "application/xml", "image/svg+xml"];
    kind.starts_with("text/") || known.contains(&kind)
}
