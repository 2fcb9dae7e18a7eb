//! Wildcards in the names of files and objects.

/// Matches a wildcard pattern: `*` for any characters, `?` for one.
pub(crate) fn fits(pattern: &[u8], name: &[u8]) -> bool {
    // The position of the last star, and the length it has matched so far.
    let (mut at, mut letter, mut star) = (0, 0, None);
    while letter < name.len() {
        if pattern.get(at) == Some(&b'*') {
            star = Some((at, letter));
            at += 1;
        } else if pattern.get(at).is_some_and(|wanted| *wanted == b'?' || *wanted == name[letter]) {
            at += 1;
            letter += 1;
        } else if let Some((position, matched_to)) = star {
            at = position + 1;
            letter = matched_to + 1;
            star = Some((position, letter));
        } else {
            return false;
        }
    }
    pattern[at..].iter().all(|rest| *rest == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_and_question_marks_are_wildcards() {
        let cases = [
            ("access*.gz", "access.log.1.gz", true),
            ("access*.gz", "access.log.1", false),
            ("*", "", true),
            ("?", "", false),
            ("a?c*", "abc", true),
            ("*a*b", "xaxbxab", true),
            ("*a*b", "xaxbxa", false),
            ("abc", "abcd", false),
        ];
        for (pattern, name, expected) in cases {
            assert_eq!(fits(pattern.as_bytes(), name.as_bytes()), expected, "{pattern} {name}");
        }
    }
}
