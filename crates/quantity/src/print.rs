//! Printer of values, in the notation that parses to exactly the same value.

use wire::link::{CoDel, Jitter, Loss, Order, QueueDiscipline, QueueLimit, Reordering};
use wire::modem::Dictionary;
use wire::{Probability, modem};

use crate::decimal;

/// Text of an absent value.
pub const NONE: &str = "none";

/// Prints the notation of [`crate::path::queue`].
pub fn queue(queue: QueueLimit) -> String {
    let QueueLimit { bytes, packets } = queue;
    match (packets, bytes) {
        (Some(packets), Some(bytes)) => format!("{packets}p+{}", bytes.get()),
        (Some(packets), None) => format!("{packets}p"),
        (None, Some(bytes)) => bytes.get().to_string(),
        (None, None) => NONE.to_owned(),
    }
}

/// Prints the notation of [`crate::path::queue_discipline`].
pub fn queue_discipline(discipline: QueueDiscipline) -> String {
    let named = |name: &str, codel: CoDel| match codel == CoDel::default() {
        true => name.to_owned(),
        false => format!("{name}:{}/{}", codel.target, codel.interval),
    };
    match discipline {
        QueueDiscipline::DropTail => "drop-tail".to_owned(),
        QueueDiscipline::CoDel(codel) => named("codel", codel),
        QueueDiscipline::FqCoDel(codel) => named("fq-codel", codel),
    }
}

/// Prints the notation of [`crate::path::loss`].
pub fn loss(loss: &Loss) -> String {
    match loss {
        Loss::None => NONE.to_owned(),
        Loss::Independent(share) => probability(*share),
        Loss::GilbertElliott { to_bad, to_good, loss_in_good, loss_in_bad } => {
            let shares = [to_bad, to_good, loss_in_bad, loss_in_good].map(|share| probability(*share));
            format!("burst:{}", shares.join("/"))
        }
        Loss::Exactly(packets) => {
            let packets: Vec<_> = packets.iter().map(u64::to_string).collect();
            format!("packets:{}", packets.join("+"))
        }
    }
}

/// Prints the notation of [`crate::path::jitter`].
pub fn jitter(jitter: Option<Jitter>) -> String {
    match jitter {
        None => NONE.to_owned(),
        Some(Jitter { up_to, order: Order::Preserved }) => up_to.to_string(),
        Some(Jitter { up_to, order: Order::Free }) => format!("{up_to}/free"),
    }
}

/// Prints the notation of [`crate::path::modem`].
pub fn modem(modem: Option<modem::Config>) -> String {
    let Some(modem::Config { dictionary, port, compresses_headers }) = modem else { return NONE.to_owned() };
    let kind = match dictionary {
        None => "v42".to_owned(),
        Some(dictionary) if dictionary == Dictionary::default() => "v42bis".to_owned(),
        Some(Dictionary { codewords, max_string_length }) => {
            format!("v42bis:{codewords}x{max_string_length}")
        }
    };
    let port = port.map(|port| format!("/{port}")).unwrap_or_default();
    let headers = if compresses_headers { "+vj" } else { "" };
    format!("{kind}{headers}{port}")
}

/// Prints the notation of [`crate::path::reordering`].
pub fn reordering(reordering: Option<Reordering>) -> String {
    match reordering {
        None => NONE.to_owned(),
        Some(Reordering { probability: share, by }) => format!("{}/{by}", probability(share)),
    }
}

/// Prints the notation of [`crate::scalar::probability`], with every digit (`Display` rounds).
pub fn probability(share: Probability) -> String {
    format!("{}%", decimal::times_hundred(&share.get().to_string()))
}
