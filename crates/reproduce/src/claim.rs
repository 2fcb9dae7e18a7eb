//! Claims of a text, evaluated: arithmetic on cells of the tables, on quantities of a paper's code, and on runs of the
//! engines.
//!
//! A claim's `our_value` is an expression of numbers, `+ - * /`, brackets, `min(a, b)`, `max(a, b)` and references:
//!
//! | reference | value |
//! | --- | --- |
//! | `[w3c/table-4:http11/first.seconds]` | ours for a cell of a table |
//! | `[w3c#apache/lan/http10/first/connections]` | a quantity of the paper's code that no table prints |
//! | `[run:nagle-off:elapsed_ms]` | a result of one of the claims' own runs; a stall's cause stands for its milliseconds |
//!
//! The papers' numbers are in the data.

use std::collections::BTreeMap;

use lab::{Metric, Outcome};
use scenario::{Defaults, Engine, Spec};

use super::catalogue::{Computation, ENTRIES};
use super::digits::Digits;
use super::judgement::Judgement;
use super::laboratory::Laboratory;
use super::published::{Claim, Run, Table};
use super::verdict::Verdict;
use super::{heidemann, p_http, rabinovich, w3c};

/// Value of a reference or an expression; `None` where nothing here can test it.
pub type Value = Result<Option<f64>, String>;

/// Evaluates the claims of one table; each reference is computed once.
pub struct Claims<'t, 'm, 'a> {
    table: &'t Table,
    measured: &'m mut Laboratory<'a>,
    known: BTreeMap<String, Option<f64>>,
    outcomes: BTreeMap<String, Outcome>,
}

impl<'t, 'm, 'a> Claims<'t, 'm, 'a> {
    /// A state in which nothing is computed yet.
    pub const fn new(table: &'t Table, measured: &'m mut Laboratory<'a>) -> Self {
        Self { table, measured, known: BTreeMap::new(), outcomes: BTreeMap::new() }
    }

    /// Ours for an expression.
    ///
    /// # Errors
    /// A sentence about the expression, an unknown reference, or the error of an engine.
    pub fn our_value(&mut self, expression: &str) -> Value {
        evaluate(expression, &mut |name| self.reference(name))
    }

    /// The same arithmetic on the printed cells; `None` where it refers to anything else.
    pub fn printed(expression: &str) -> Option<f64> {
        let printed = evaluate(expression, &mut |name| Ok(printed(name)));
        printed.ok().flatten()
    }

    fn reference(&mut self, name: &str) -> Value {
        if let Some(value) = self.known.get(name) {
            return Ok(*value);
        }
        let value = if let Some(rest) = name.strip_prefix("run:") {
            let (run, field) = rest.rsplit_once(':').ok_or_else(|| format!("[{name}]: unknown result"))?;
            result(self.outcome(run)?, field)?
        } else if let Some((paper, quantity)) = name.split_once('#') {
            match paper {
                "w3c" => w3c::quantity(quantity),
                "heidemann-model" => heidemann::quantity(quantity),
                "p-http" => p_http::quantity(quantity),
                "dhttp" => rabinovich::quantity(quantity, self.measured),
                _ => return Err(format!("[{name}]: unknown paper")),
            }
            .map_err(|error| format!("[{name}]: {error}"))?
        } else {
            self.cell(name)?
        };
        self.known.insert(name.to_owned(), value);
        Ok(value)
    }

    fn cell(&mut self, name: &str) -> Value {
        let (key, cell) = name.split_once(':').ok_or_else(|| format!("[{name}]: unknown cell"))?;
        let entry = ENTRIES.iter().find(|entry| entry.key == key);
        let entry = entry.ok_or_else(|| format!("[{name}]: unknown table"))?;
        let cells = entry.table().cells();
        let cell = cells.iter().find(|known| known.name() == cell);
        match (entry.ours, cell) {
            (Computation::Cells(ours), Some(cell)) => ours(cell, self.measured),
            (Computation::Cells(_) | Computation::Claims | Computation::Study(_), _) => {
                Err(format!("[{name}]: unknown cell"))
            }
        }
    }

    fn outcome(&mut self, name: &str) -> Result<&Outcome, String> {
        if !self.outcomes.contains_key(name) {
            let run = self.table.runs.iter().find(|run| run.name == name);
            let outcome = outcome(run.ok_or_else(|| format!("unknown run {name}"))?)?;
            self.outcomes.insert(name.to_owned(), outcome);
        }
        Ok(&self.outcomes[name])
    }
}

/// Note of a claim: its words, its value computed from the printed cells, and the record's explanation.
pub fn note(claim: &Claim, judgement: &Judgement) -> Option<String> {
    let printed = claim.ours.as_deref().and_then(Claims::printed);
    let printed = printed.map(|value| {
        let digits = if claim.digits.is_bound() { Digits::Decimals(2) } else { claim.digits };
        format!("the printed cells make {}", digits.print(value))
    });
    let own = match judgement.verdict {
        Verdict::NotTestableHere => claim.without.clone(),
        Verdict::Exact
        | Verdict::WithinTolerance
        | Verdict::Holds
        | Verdict::Fitted
        | Verdict::Explained
        | Verdict::Differs => Some(claim.note.clone()).filter(|note| !note.is_empty()),
    };
    let parts = [Some(claim.says.clone()), printed, own];
    Some(parts.into_iter().flatten().collect::<Vec<_>>().join("; "))
}

/// The printed number of a cell.
fn printed(name: &str) -> Option<f64> {
    let (key, cell) = name.split_once(':')?;
    let entry = ENTRIES.iter().find(|entry| entry.key == key)?;
    entry.table().cells().iter().find(|known| known.name() == cell).map(|cell| cell.published)
}

/// Runs a scenario of the data, which must be a single one.
fn outcome(run: &Run) -> Result<Outcome, String> {
    let Run { name, engine, scenario, graph } = run;
    let mut spec = Spec::from_toml(scenario, name).map_err(|error| error.to_string())?;
    if let Some(graph) = graph {
        spec.pages = vec![page::file::read(name, graph).map_err(|error| format!("{name}: {error}"))?];
    }
    let engine = Engine::named(engine).map_err(|unknown| format!("{name}: {unknown}"))?;
    let defaults = match engine {
        Engine::Model => Defaults::predict(),
        Engine::Simulate | Engine::Measure => Defaults::laboratory(),
    };
    let plan = spec.plan(&defaults).map_err(|error| format!("{name}: {error}"))?;
    let [scenario] = plan.scenarios.as_slice() else {
        return Err(format!("{name}: {} scenarios, and one is needed", plan.scenarios.len()));
    };
    let outcome = match engine {
        Engine::Model => lab::predict::outcome(scenario, plan.acks(scenario)),
        Engine::Simulate => lab::simulate::outcome(scenario, |_| ()),
        Engine::Measure => return Err(format!("{name}: a claim is not measured")),
    };
    match (outcome.missing, outcome.remarks.first()) {
        (Some(lab::Missing::Refused), Some(reason)) => Err(format!("{name}: {reason}")),
        (Some(_) | None, _) => Ok(outcome),
    }
}

fn result(outcome: &Outcome, field: &str) -> Value {
    if field == "packets" {
        let metrics = &outcome.metrics;
        return Ok(metrics.packets_up.zip(metrics.packets_down).map(|(up, down)| up + down));
    }
    if let Some(metric) = Metric::ALL.into_iter().find(|metric| metric.name() == field) {
        return Ok(metric.value(outcome));
    }
    let cause = trace::Cause::ALL.iter().find(|cause| cause.name() == field);
    let cause = cause.ok_or_else(|| format!("unknown result `{field}` of a run"))?;
    let of = outcome.stalls.iter().filter(|stall| stall.cause == *cause);
    // An empty sum is -0.
    Ok(Some(of.map(|stall| stall.lost_ms).sum::<f64>() + 0.0))
}

/// Evaluates an expression; a reference without a value leaves it without one.
///
/// # Errors
/// The position of the syntax error, or the error of a reference.
pub fn evaluate(expression: &str, reference: &mut dyn FnMut(&str) -> Value) -> Value {
    let mut parser = Parser { rest: expression, reference, depth: 0 };
    let value = parser.sum()?;
    match parser.rest.trim_start() {
        "" => Ok(value),
        rest => Err(format!("`{expression}`: unexpected `{rest}`")),
    }
}

struct Parser<'e, 'r> {
    rest: &'e str,
    reference: &'r mut dyn FnMut(&str) -> Value,
    depth: u8,
}

/// Maximum depth of brackets.
const DEEPEST: u8 = 16;

impl Parser<'_, '_> {
    fn sum(&mut self) -> Value {
        let mut sum = self.product()?;
        loop {
            if self.takes('+') {
                sum = sum.zip(self.product()?).map(|(one, other)| one + other);
            } else if self.takes('-') {
                sum = sum.zip(self.product()?).map(|(one, other)| one - other);
            } else {
                return Ok(sum);
            }
        }
    }

    fn product(&mut self) -> Value {
        let mut product = self.factor()?;
        loop {
            if self.takes('*') {
                product = product.zip(self.factor()?).map(|(one, other)| one * other);
            } else if self.takes('/') {
                product = product.zip(self.factor()?).map(|(one, other)| one / other);
            } else {
                return Ok(product);
            }
        }
    }

    fn factor(&mut self) -> Value {
        if self.takes('[') {
            let (name, rest) = self.rest.split_once(']').ok_or("a reference without its end")?;
            self.rest = rest;
            return (self.reference)(name);
        }
        if self.takes('(') {
            return self.list(|one, _| one);
        }
        for (name, choice) in [("min(", f64::min as fn(f64, f64) -> f64), ("max(", f64::max)] {
            if let Some(rest) = self.rest.trim_start().strip_prefix(name) {
                self.rest = rest;
                return self.list(choice);
            }
        }
        self.number()
    }

    /// Expressions between commas, up to the closing bracket.
    fn list(&mut self, choice: fn(f64, f64) -> f64) -> Value {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err("brackets too deep".to_owned());
        }
        let mut chosen = self.sum()?;
        while self.takes(',') {
            chosen = chosen.zip(self.sum()?).map(|(one, other)| choice(one, other));
        }
        self.depth -= 1;
        if self.takes(')') {
            Ok(chosen)
        } else {
            Err(format!("a bracket without its end before `{}`", self.rest))
        }
    }

    fn number(&mut self) -> Value {
        let text = self.rest.trim_start();
        let end = text.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(text.len());
        let (number, rest) = text.split_at(end);
        self.rest = rest;
        number.parse().map(Some).map_err(|_| format!("no number before `{text}`"))
    }

    fn takes(&mut self, sign: char) -> bool {
        let Some(rest) = self.rest.trim_start().strip_prefix(sign) else { return false };
        self.rest = rest;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(expression: &str) -> Value {
        evaluate(expression, &mut |name| match name {
            "two" => Ok(Some(2.0)),
            "none" => Ok(None),
            name => Err(format!("no {name}")),
        })
    }

    #[test]
    fn arithmetic_has_its_usual_order() {
        assert_eq!(value("1 + 2 * 3 - 4 / [two]"), Ok(Some(5.0)));
        assert_eq!(value("(1 + 2) * min(4, [two], 3)"), Ok(Some(6.0)));
        assert_eq!(value("max(1, 2.5)"), Ok(Some(2.5)));
    }

    #[test]
    fn a_reference_without_a_value_leaves_the_claim_untested() {
        assert_eq!(value("1 + [none]"), Ok(None));
    }

    #[test]
    fn an_invalid_expression_is_an_error() {
        for text in ["", "1 +", "(1", "[two", "1 2", "[three]", "zebra", &"(".repeat(100)] {
            assert!(value(text).is_err(), "{text}");
        }
    }

    #[test]
    fn every_claim_refers_to_cells_quantities_and_runs_that_there_are() {
        for entry in ENTRIES.iter().filter(|entry| matches!(entry.ours, Computation::Claims)) {
            let table = entry.table();
            for claim in &table.claims {
                let Some(expression) = &claim.ours else {
                    assert!(
                        claim.without.is_some(),
                        "{}: {} does not state what is missing",
                        entry.key,
                        claim.claim
                    );
                    continue;
                };
                let mut names = Vec::new();
                evaluate(expression, &mut |name| {
                    names.push(name.to_owned());
                    Ok(Some(1.0))
                })
                .unwrap_or_else(|error| panic!("{}: {}: {error}", entry.key, claim.claim));
                assert!(!names.is_empty(), "{}: {} is a constant", entry.key, claim.claim);
                for name in names.iter().filter(|name| !name.contains('#')) {
                    let is_known = match name.strip_prefix("run:").and_then(|rest| rest.rsplit_once(':')) {
                        Some((run, _)) => table.runs.iter().any(|known| known.name == run),
                        None => printed(name).is_some(),
                    };
                    assert!(is_known, "{}: {}: [{name}]", entry.key, claim.claim);
                }
            }
            for run in &table.runs {
                Spec::from_toml(&run.scenario, &run.name)
                    .unwrap_or_else(|error| panic!("{}: {error}", run.name));
                assert!(["simulate", "model"].contains(&run.engine.as_str()), "{}", run.name);
            }
        }
    }
}
