//! Every source file begins with a description of itself.

use super::tree;

#[test]
fn every_source_file_begins_with_a_description() {
    let complaints: Vec<String> = tree::files("", &[".rs"])
        .into_iter()
        .filter(|file| !tree::text(file).starts_with("//! "))
        .map(|file| format!("{file}: the first line is not `//! ...`"))
        .collect();
    tree::expect_none("Every .rs file begins with a //! sentence that describes it.", &complaints);
}
