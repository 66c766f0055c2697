//! Means with 95 % confidence intervals, by resampling whole sessions.
//!
//! Cuts of one session are alike, so the bootstrap draws sessions, not cuts. The draws come from a
//! seed: the same scores give the same interval.

use serde::Serialize;

use crate::random::Random;

/// How many times the sessions are drawn.
const DRAWS: usize = 1000;
/// The seed of the draws.
const SEED: u64 = 0x5EED;

/// A mean and where it would fall in 95 of 100 samples of sessions.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Interval {
    /// The mean of all scores.
    pub mean: f64,
    /// The lower end of the interval.
    pub low: f64,
    /// The upper end of the interval.
    pub high: f64,
}

/// The scores of one dataset, by session.
pub type SessionScores = Vec<Vec<f64>>;

impl Interval {
    /// Returns the interval of one dataset; `None` without a score.
    pub fn from_scores(sample: &SessionScores) -> Option<Interval> {
        Interval::over_datasets(std::slice::from_ref(sample))
    }

    /// Returns the interval of the mean over datasets, each with its own sessions. Those without a score do
    /// not count.
    pub fn over_datasets(samples: &[SessionScores]) -> Option<Interval> {
        let filled: Vec<SessionScores> = samples.iter().map(without_empty).collect();
        let filled: Vec<&SessionScores> = filled.iter().filter(|s| !s.is_empty()).collect();
        if filled.is_empty() {
            return None;
        }
        let mut random = Random::new(SEED);
        let mut draws: Vec<f64> = (0..DRAWS)
            .map(|_| mean_or_zero(filled.iter().map(|s| draw_mean(s, &mut random))))
            .collect();
        draws.sort_by(f64::total_cmp);
        let at = |share: f64| draws.get((DRAWS as f64 * share) as usize).copied();
        let mean = mean_or_zero(
            filled
                .iter()
                .map(|s| mean_or_zero(s.iter().flatten().copied())),
        );
        Some(Interval {
            mean,
            low: at(0.025).unwrap_or(mean),
            high: at(0.975).unwrap_or(mean),
        })
    }
}

fn without_empty(sample: &SessionScores) -> SessionScores {
    sample.iter().filter(|s| !s.is_empty()).cloned().collect()
}

/// Returns the mean of as many sessions as there are, drawn with repetition.
fn draw_mean(sample: &SessionScores, random: &mut Random) -> f64 {
    let draws = (0..sample.len()).filter_map(|_| random.pick(sample));
    mean_or_zero(draws.flatten().copied().collect::<Vec<_>>())
}

/// Returns the mean of some numbers; zero of none.
pub fn mean_or_zero(numbers: impl IntoIterator<Item = f64>) -> f64 {
    let (mut sum, mut count) = (0.0, 0);
    for number in numbers {
        sum += number;
        count += 1;
    }
    if count == 0 {
        0.0
    } else {
        sum / f64::from(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_is_over_scores_and_the_interval_over_sessions() {
        let interval = Interval::from_scores(&vec![vec![0.0, 0.0], vec![1.0]]).unwrap();
        assert!((interval.mean - 1.0 / 3.0).abs() < 1e-12);
        assert_eq!((interval.low, interval.high), (0.0, 1.0));
    }

    #[test]
    fn equal_scores_leave_no_doubt_and_none_give_no_answer() {
        let sure = Interval {
            mean: 0.5,
            low: 0.5,
            high: 0.5,
        };
        assert_eq!(
            Interval::from_scores(&vec![vec![0.5], vec![0.5], vec![]]),
            Some(sure)
        );
        assert_eq!(Interval::from_scores(&vec![vec![], vec![]]), None);
    }

    #[test]
    fn datasets_weigh_the_same_whatever_their_size() {
        let large = vec![vec![1.0]; 50];
        let interval = Interval::over_datasets(&[large, vec![vec![0.0]], vec![]]).unwrap();
        assert_eq!(
            (interval.mean, interval.low, interval.high),
            (0.5, 0.5, 0.5)
        );
    }
}
