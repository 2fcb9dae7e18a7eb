//! A page in one word: its name, or its objects' sizes separated by `+`, the document first.
//!
//! After a slash, the size of an object after deflate: `43008/11264+3883+1866`. Directories and recorded
//! visits are read by the caller ([`Page::new`]): pure code reads no files.

use quantity::ValueError;

use crate::{Object, Page};

/// The page with this name or these sizes.
///
/// # Errors
/// An unknown name, with the nearest one; invalid sizes; more than [`Page::MAX_OBJECTS`] of them.
pub fn page(text: &str) -> Result<Page, ValueError> {
    if !text.starts_with(|first: char| first.is_ascii_digit()) {
        return if text.contains("://") {
            Err(invalid_value(
                "a page that can be read: nothing is fetched from a URL",
                text,
                "a recording of it (FILE.har, saved in the browser's network tools), a directory, FILE.toml, a name, or \
                 sizes such as 6651+3883+1866",
            ))
        } else if text.contains(['/', '\\', '.']) {
            Err(invalid_value(
                "a page that can be read",
                text,
                "a directory, FILE.har, FILE.toml, a name, or sizes such as 6651+3883+1866",
            ))
        } else {
            Page::named(text).map_err(ValueError::from)
        };
    }
    let invalid_page = || invalid_value("a page", text, "1 to 10000 sizes, such as 6651+3883+1866");
    if text.split(['+', '/']).any(|size| size.trim().is_empty()) {
        return Err(invalid_page());
    }
    let objects: Vec<Object> =
        text.split('+').take(Page::MAX_OBJECTS + 1).map(object).collect::<Result<_, _>>()?;
    let unnamed = Page::of("", objects);
    Page::new(&name(text, &unnamed), unnamed.objects).map_err(|_| invalid_page())
}

fn object(text: &str) -> Result<Object, ValueError> {
    match text.split_once('/') {
        None => quantity::object_size(text).map(Object::sized),
        Some((size, deflated)) => {
            let (size, deflated) = (quantity::object_size(size)?, quantity::object_size(deflated)?);
            Ok(Object::deflatable(size, deflated))
        }
    }
}

/// The sizes as given, unless they would fill a table's column or disturb its layout.
fn name(text: &str, page: &Page) -> String {
    const MAX_NAME_CHARS: usize = 40;
    if text.len() <= MAX_NAME_CHARS && !text.contains(char::is_control) {
        text.to_owned()
    } else {
        format!("{}-objects-{}", page.objects.len(), page.size().get())
    }
}

fn invalid_value(what: &'static str, given: &str, example: &'static str) -> ValueError {
    ValueError::NotA { what, given: given.to_owned(), example }
}

#[cfg(test)]
mod tests {
    use wire::Bytes;

    use super::*;
    use crate::Dependency;

    #[test]
    fn a_page_is_a_name_or_sizes() {
        assert_eq!(page("small-cluster"), Ok(Page::named("small-cluster").unwrap()));
        let sizes = page("6651+3883+1866").unwrap();
        assert_eq!(sizes.objects, Page::named("small-cluster").unwrap().objects);
        assert_eq!(sizes.name, "6651+3883+1866");
        let document = Object::deflatable(Bytes::new(43_008), Bytes::new(11_264));
        let image = Object { after: vec![Dependency::on_end(0)], ..Object::sized(Bytes::new(70)) };
        assert_eq!(page("42kib/11kib+70").unwrap().objects, [document, image]);
    }

    #[test]
    fn sizes_are_printed_as_they_are_read() {
        for text in ["1", "6651+3883+1866", "43008/11264+70"] {
            assert_eq!(page(text).unwrap().sizes(), text);
        }
    }

    #[test]
    fn rejects_other_texts() {
        for invalid in
            ["", "1+", "0", "5x", "1++2", "1/", "1/2/3", "visit.har", "./folder", "small-pag", "-5"]
        {
            assert!(page(invalid).is_err(), "{invalid}");
        }
        let many = |count| vec!["1"; count].join("+");
        assert_eq!(page(&many(10_000)).unwrap().name, "10000-objects-10000");
        assert!(page(&many(10_001)).is_err());
    }
}
