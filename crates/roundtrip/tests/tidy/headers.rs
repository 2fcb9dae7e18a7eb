//! Every source file says at its head what it is. That it also says what it is not is for the reader to judge.

use crate::tree;

#[test]
fn every_source_file_opens_with_what_it_is() {
    let complaints: Vec<String> = tree::files("", &[".rs"])
        .into_iter()
        .filter(|file| !tree::text(file).starts_with("//! "))
        .map(|file| format!("{file}: the first line is not `//! ...`"))
        .collect();
    tree::expect_none("Every .rs file opens with a //! sentence that says what it is.", &complaints);
}
