//! Packet loss: the models of [`Loss`], each as a sequence of decisions.
//!
//! Gilbert's model with Elliott's extension has the four parameters of netem(8) (`p`, `r`, `1-h`, `1-k`).

use std::collections::VecDeque;

use crate::Probability;
use crate::link::Loss;
use crate::seed::Random;

/// State of a loss model; it decides once for every packet offered.
#[derive(Clone, Debug)]
pub(super) enum LossProcess {
    None,
    Independent {
        probability: Probability,
        random: Random,
    },
    GilbertElliott {
        good: State,
        bad: State,
        is_bad: bool,
        random: Random,
    },
    /// Number of packets so far, and the remaining numbers of packets to lose, ascending.
    Exactly {
        offered: u64,
        remaining: VecDeque<u64>,
    },
}

/// One of the two states: the loss probability in it, and the probability of leaving it after a packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct State {
    loss: Probability,
    leave: Probability,
}

impl LossProcess {
    /// Creates the state; `random` is called only if the model needs it.
    pub(super) fn new(loss: &Loss, random: impl FnOnce() -> Random) -> Self {
        match loss {
            Loss::None => Self::None,
            Loss::Independent(probability) => {
                Self::Independent { probability: *probability, random: random() }
            }
            Loss::GilbertElliott { to_bad, to_good, loss_in_good, loss_in_bad } => Self::GilbertElliott {
                good: State { loss: *loss_in_good, leave: *to_bad },
                bad: State { loss: *loss_in_bad, leave: *to_good },
                is_bad: false,
                random: random(),
            },
            Loss::Exactly(packets) => {
                Self::Exactly { offered: 0, remaining: packets.iter().copied().collect() }
            }
        }
    }

    /// Returns whether the next packet is lost.
    pub(super) fn is_next_lost(&mut self) -> bool {
        match self {
            Self::None => false,
            Self::Independent { probability, random } => random.chance(*probability),
            Self::GilbertElliott { good, bad, is_bad, random } => {
                let State { loss, leave } = if *is_bad { *bad } else { *good };
                let is_lost = random.chance(loss);
                *is_bad ^= random.chance(leave);
                is_lost
            }
            Self::Exactly { offered, remaining } => {
                *offered += 1;
                remaining.pop_front_if(|packet| packet == offered).is_some()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Seed;

    fn decisions(loss: &Loss, packets: usize) -> Vec<bool> {
        let mut losses = LossProcess::new(loss, || Seed::default().stream("loss", 0));
        (0..packets).map(|_| losses.is_next_lost()).collect()
    }

    fn share_lost(decisions: &[bool]) -> f64 {
        decisions.iter().filter(|is_lost| **is_lost).count() as f64 / decisions.len() as f64
    }

    fn probability(number: f64) -> Probability {
        Probability::new(number).unwrap()
    }

    #[test]
    fn exactly_the_packets_named_are_lost() {
        let lost = decisions(&Loss::Exactly([5, 1, 2].into()), 7);
        assert_eq!(lost, [true, true, false, false, true, false, false]);
        assert!(!decisions(&Loss::None, 7).contains(&true));
    }

    #[test]
    fn gilbert_elliott_starts_good_and_applies_the_current_state() {
        let alternating = Loss::GilbertElliott {
            to_bad: Probability::ALWAYS,
            to_good: Probability::ALWAYS,
            loss_in_good: Probability::NEVER,
            loss_in_bad: Probability::ALWAYS,
        };
        assert_eq!(decisions(&alternating, 5), [false, true, false, true, false]);
    }

    #[test]
    fn independent_loss_has_its_mean_and_no_memory() {
        let lost = decisions(&Loss::Independent(probability(0.1)), 200_000);
        assert!((share_lost(&lost) - 0.1).abs() < 0.003, "{}", share_lost(&lost));
        let after_a_loss: Vec<bool> = lost.windows(2).filter(|pair| pair[0]).map(|pair| pair[1]).collect();
        assert!((share_lost(&after_a_loss) - 0.1).abs() < 0.01, "{}", share_lost(&after_a_loss));
    }

    #[test]
    fn gilbert_elliott_mean_loss_agrees_with_theory() {
        for (p, r, in_good, in_bad) in [(0.01, 0.2, 0.0, 1.0), (0.05, 0.5, 0.001, 0.4), (0.3, 0.3, 0.2, 0.2)]
        {
            let model = Loss::GilbertElliott {
                to_bad: probability(p),
                to_good: probability(r),
                loss_in_good: probability(in_good),
                loss_in_bad: probability(in_bad),
            };
            let packets = 300_000;
            let measured = share_lost(&decisions(&model, packets));
            let (share_good, share_bad) = (r / (p + r), p / (p + r));
            let theory = share_good * in_good + share_bad * in_bad;
            // Losses come in bursts, so the mean varies more than that of independent losses.
            let memory = 1.0 - p - r;
            let bursts = 2.0 * share_good * share_bad * (in_bad - in_good).powi(2) * memory / (1.0 - memory);
            let standard_error = ((theory * (1.0 - theory) + bursts) / packets as f64).sqrt();
            assert!((measured - theory).abs() < 4.0 * standard_error, "{measured} against {theory}");
        }
    }

    #[test]
    fn gilbert_elliott_burst_length_agrees_with_theory() {
        let model = Loss::GilbertElliott {
            to_bad: probability(0.01),
            to_good: probability(0.2),
            loss_in_good: Probability::NEVER,
            loss_in_bad: Probability::ALWAYS,
        };
        let lost = decisions(&model, 300_000);
        let bursts = lost.windows(2).filter(|pair| !pair[0] && pair[1]).count();
        let mean = share_lost(&lost) * lost.len() as f64 / bursts as f64;
        assert!((mean - 5.0).abs() < 0.2, "{mean}");
    }
}
