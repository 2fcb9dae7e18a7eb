//! Values of JSON that some implementations write as texts.

use serde_json::Value;
use wire::varint;

/// Returns the first of these members that is present.
pub(crate) fn any<'a>(object: &'a Value, names: &[&str]) -> Option<&'a Value> {
    names.iter().find_map(|name| object.get(name))
}

/// Returns an integer as QUIC has them, also from a whole float or a text.
pub(crate) fn integer(value: &Value) -> Option<u64> {
    /// Below it a float is exact.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let number = value.as_u64().or_else(|| {
        let float = value.as_f64().filter(|float| (0.0..EXACT).contains(float) && float.fract() == 0.0)?;
        // It is whole and not negative.
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked")]
        Some(float as u64)
    });
    number.or_else(|| value.as_str()?.parse().ok()).filter(|number| *number <= varint::MAX)
}

/// Returns an integer member with one of these names.
pub(crate) fn member(object: &Value, names: &[&str]) -> Option<u64> {
    any(object, names).and_then(integer)
}

/// Returns a finite number, also from a text.
pub(crate) fn float(value: &Value) -> Option<f64> {
    value.as_f64().or_else(|| value.as_str()?.parse().ok()).filter(|number| number.is_finite())
}

/// Returns a name without case and separators: `0RTT`, `0-rtt`, `version_negotiation`, `VERSION NEGOTIATION`.
pub(crate) fn name(value: &Value) -> Option<String> {
    let letters = value.as_str()?.chars().filter(char::is_ascii_alphanumeric);
    Some(letters.take(64).map(|letter| letter.to_ascii_lowercase()).collect())
}

/// Returns a text without control characters, cut.
pub(crate) fn text(value: &Value) -> Option<String> {
    let text: String = value.as_str()?.chars().filter(|letter| !letter.is_control()).take(60).collect();
    (!text.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn numbers_may_be_floats_or_texts_and_others_are_none() {
        let integers = [json!(7), json!(7.0), json!("7")].map(|value| integer(&value));
        assert_eq!(integers, [Some(7); 3]);
        let others =
            [json!(-1), json!(7.5), json!(1e300), json!(u64::MAX), json!("x"), json!(null), json!([])];
        assert_eq!(others.map(|value| integer(&value)), [None; 7]);
        assert_eq!(
            [json!("1.5"), json!("NaN"), json!("inf")].map(|value| float(&value)),
            [Some(1.5), None, None]
        );
        assert_eq!(name(&json!("VERSION_Negotiation")).as_deref(), Some("versionnegotiation"));
    }
}
