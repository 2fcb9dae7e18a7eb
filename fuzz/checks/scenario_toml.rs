//! Invariants for any file: it is rejected with a position in it, or it is a scenario that is printed and read back
//! unchanged, and its plan is possible. Not a generator: the bytes are the file.

use scenario::{Defaults, Spec};

/// Panics if these bytes violate an invariant.
pub(crate) fn check(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match Spec::from_toml(text, "any.toml") {
        Ok(spec) => {
            assert_eq!(Spec::from_toml(&spec.to_toml(), "printed.toml").as_ref(), Ok(&spec));
            let scenarios =
                |spec: &Spec| spec.plan(&Defaults::predict()).map(|plan| (plan.scenarios, plan.engines));
            assert_eq!(scenarios(&spec.clone().over(Spec::default())), scenarios(&spec));
            plan(&spec);
        }
        Err(error) => {
            assert!((1..=text.matches('\n').count() + 1).contains(&error.line), "{error}");
            assert!((1..=text.chars().count() + 1).contains(&error.column), "{error}");
            assert!(!error.to_string().contains(char::is_control), "{error:?}");
        }
    }
}

fn plan(spec: &Spec) {
    match spec.plan(&Defaults::laboratory()) {
        Ok(plan) => {
            assert!(!plan.scenarios.is_empty() && !plan.engines.is_empty());
            for scenario in plan.scenarios {
                assert_eq!((scenario.network.check(), scenario.page.check()), (Ok(()), Ok(())));
                let links = scenario.network.links();
                assert_eq!(links.up.delay + links.down.delay, scenario.network.rtt);
            }
        }
        Err(error) => assert!(!error.to_string().contains(char::is_control), "{error:?}"),
    }
}
