//! A fixed wait of every response, as long as a delayed acknowledgement: the load does not explain it. A round
//! trip of that length would, so the sentence names it, too.

use wire::Duration;

use crate::record::Record;

/// Linux's minimum delayed ACK, 40 ms (TCP_DELACK_MIN in include/net/tcp.h), less the clock's tick; and with what a path and a
/// server may add.
const DELAYED_ACK: [Duration; 2] = [Duration::from_millis(38), Duration::from_millis(48)];
/// Minimum number of responses that show it.
const FEW: u64 = 5;

/// The wait as a sentence with the command that finds its cause; `None` if response times vary, or are shorter or longer.
pub fn sentence(record: &Record, url: &str) -> Option<String> {
    let at = |share: f64| Duration::from_nanos(record.experienced.value_at_quantile(share));
    let [low, high] = [at(0.1), at(0.9)];
    let [shortest, longest] = DELAYED_ACK;
    let is_fixed = record.responses() >= FEW && low >= shortest && high <= longest;
    is_fixed.then(|| {
        let url = url.replace('\'', "%27");
        format!(
            "A fixed wait: 8 of 10 responses take {:.0} to {:.0} ms, as long as a delayed acknowledgement (40 ms), a timer of the \
             server or the path's round trip, whatever the load. `roundtrip diagnose --run -- curl -s '{url}' '{url}'` names its cause.",
            low.as_millis_f64(),
            high.as_millis_f64()
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Channel;

    fn of(response_ms: impl Fn(u64) -> u64) -> Option<String> {
        let mut record = Record::default();
        for number in 0..100 {
            let took = Duration::from_millis(response_ms(number));
            record.count_response(Duration::from_millis(number), 1, Channel::TcpClient, took, took);
        }
        sentence(&record, "http://h/x")
    }

    #[test]
    fn a_wait_as_long_as_a_delayed_acknowledgement_is_named_with_the_next_command() {
        let named = of(|_| 44).unwrap();
        assert!(named.contains("take 44 to 44 ms"), "{named}");
        assert!(named.contains("roundtrip diagnose --run -- curl -s 'http://h/x' 'http://h/x'"), "{named}");
        assert!(of(|number| 40 + number % 5).is_some());
    }

    #[test]
    fn other_response_times_and_few_responses_are_not() {
        assert_eq!(of(|_| 30), None);
        assert_eq!(of(|_| 60), None);
        assert_eq!(of(|number| 20 + number), None);
        assert_eq!(sentence(&Record::default(), "http://h/x"), None);
    }
}
