//! What a scenario's client means to `proto`'s robot: the same for every engine that runs it.
//!
//! Not a plan: which protocols an engine can honour, and with what objects, is for the engine to say.

use proto::robot::{Release, Shape};

use crate::Requests;

impl Requests {
    /// When a robot of this shape lets requests go, and a note where that is not what was asked for.
    pub fn release(self, shape: Shape) -> (Release, Option<&'static str>) {
        match (self, shape) {
            // Who does not wait for answers waits once: the first object names the others.
            (Self::Dependent, Shape::Http11Pipelined(_)) => (Release::AfterFirst, None),
            (Self::Dependent, Shape::Http10 { parallel: _ } | Shape::Http10KeepAlive | Shape::Http11) => {
                (Release::Dependent, None)
            }
            (Self::Independent, Shape::Http10 { parallel: _ } | Shape::Http11Pipelined(_)) => {
                (Release::Independent, None)
            }
            (Self::Independent, Shape::Http10KeepAlive | Shape::Http11) => (
                Release::Independent,
                Some("requests were dependent: one connection carries one request at a time"),
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_connection_without_pipelining_waits_whatever_was_asked_for() {
        assert_eq!(Requests::Dependent.release(Shape::Http11), (Release::Dependent, None));
        let (_, note) = Requests::Independent.release(Shape::Http10KeepAlive);
        assert!(note.is_some_and(|note| note.starts_with("requests were dependent")));
    }
}
