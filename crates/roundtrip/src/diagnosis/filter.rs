//! What is asked for of a capture: some connections, some causes.

use ::diagnose::{Cause, FlowReport};

use crate::failure::Failure;

/// Nothing set wants everything.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Parts of `client:port server:port`; any of them.
    pub flows: Vec<String>,
    /// Any of them.
    pub causes: Vec<Cause>,
}

impl Filter {
    /// From what was typed.
    pub fn new(flows: &[String], causes: &[String]) -> Result<Self, Failure> {
        let known = |name: &String| {
            Cause::by_name(name).ok_or_else(|| {
                let known: Vec<&str> = Cause::ALL.iter().map(|cause| cause.name()).collect();
                Failure::Value(format!(
                    "--cause: unknown cause `{}`; known: {}",
                    name.escape_debug(),
                    known.join(", ")
                ))
            })
        };
        let causes = causes.iter().map(known).collect::<Result<_, _>>()?;
        Ok(Self { flows: flows.to_vec(), causes })
    }

    /// Whether a connection is asked for.
    pub fn wants(&self, flow: &FlowReport) -> bool {
        let name = format!("{} {}", flow.client, flow.server);
        let has_cause = flow.counts.iter().any(|count| self.causes.contains(&count.cause));
        (self.flows.is_empty() || self.flows.iter().any(|part| name.contains(part.as_str())))
            && (self.causes.is_empty() || has_cause)
    }

    /// Leaves out findings that are not asked for.
    pub fn narrow(&self, flow: &mut FlowReport) {
        if !self.causes.is_empty() {
            flow.findings.retain(|finding| self.causes.contains(&finding.cause));
            flow.counts.retain(|count| self.causes.contains(&count.cause));
        }
    }
}
