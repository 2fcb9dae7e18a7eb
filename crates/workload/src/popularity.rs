//! Number of requests for each file, their order, and the size of each file.
//!
//! Three distributions are combined here. *Popularity*: the file of rank r is requested floor(C / r) times. *Temporal
//! locality*: the number of other files requested since a file's last request, which is its depth in an LRU stack.
//! *Sizes of requests*: files are few and requests many, so the sizes of the popular files determine them.

use wire::seed::Random;

use crate::distribution::Distribution;

/// Returns the number of requests for each of `files`, the most popular first: floor(C / rank^exponent), with the
/// smallest C by which they add up to `requests`. Where requests are few, the least popular files are not
/// requested.
pub fn counts(files: u32, requests: usize, exponent: f64) -> Vec<u32> {
    let power =
        |rank: u32| if exponent == 1.0 { f64::from(rank) } else { libm::pow(f64::from(rank), exponent) };
    let powers: Vec<f64> = (1..=files).map(power).collect();
    // For whole numbers of 32 bits the quotient is never rounded up to the next. Positive, and no larger than
    // C.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let counts_for = |c: u32| powers.iter().map(move |power| (f64::from(c) / power) as u32);
    let is_enough =
        |c: u32| counts_for(c).map(u64::from).sum::<u64>() >= u64::try_from(requests).unwrap_or(u64::MAX);
    let (mut low, mut high) = (1, 1);
    while !is_enough(high) && high < u32::MAX / 2 {
        (low, high) = (high, 2 * high);
    }
    while low < high {
        let middle = low.midpoint(high);
        if is_enough(middle) { high = middle } else { low = middle + 1 }
    }
    counts_for(high).collect()
}

/// Returns an order of requests in which each file occurs `counts` times, and stack depths follow `depth` as nearly as
/// that allows.
///
/// New files come in the order in which independent requests would first meet them, as evenly as the whole
/// allows. For every other request a depth is sampled; of the files near it, one is chosen at random, more
/// likely the further it is behind its due count.
pub fn order(counts: &[u32], depth: Distribution, random: &mut Random) -> Vec<u32> {
    let total: u64 = counts.iter().map(|count| u64::from(*count)).sum();
    let mut unrequested = first_requests(counts, random);
    let mut stack = Stack { counts, used: vec![0; counts.len()], files: Vec::new(), total };
    let mut order = Vec::with_capacity(usize::try_from(total).unwrap_or(0));
    for at in 0..total {
        let remaining = total - at;
        // The probability of a new file is the share of unrequested files among the remaining requests.
        let is_new = random.unit() * (remaining as f64) < unrequested.len() as f64;
        let position = if is_new { None } else { stack.find_near(depth.sample(random), at, random) };
        let file = match position {
            Some(index) => stack.move_to_top(index),
            None => match unrequested.pop() {
                Some(file) => stack.push(file),
                // Unreachable: all requests are used up, and the loop has ended.
                None => break,
            },
        };
        order.push(file);
    }
    order
}

/// Samples the order, reversed, of the first requests for each file among independent requests.
fn first_requests(counts: &[u32], random: &mut Random) -> Vec<u32> {
    let clock = |count: u32, random: &mut Random| -libm::log1p(-random.unit()) / f64::from(count);
    let expected = (0..).zip(counts).filter(|(_, count)| **count > 0);
    let mut clocks: Vec<(f64, u32)> = expected.map(|(file, count)| (clock(*count, random), file)).collect();
    clocks.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    clocks.into_iter().map(|(_, file)| file).collect()
}

/// LRU stack: the files requested so far, the latest last.
struct Stack<'a> {
    counts: &'a [u32],
    used: Vec<u32>,
    files: Vec<u32>,
    total: u64,
}

impl Stack<'_> {
    fn push(&mut self, file: u32) -> u32 {
        self.used[file as usize] += 1;
        self.files.push(file);
        file
    }

    fn move_to_top(&mut self, index: usize) -> u32 {
        let file = self.files.remove(index);
        self.push(file)
    }

    /// Returns the index of a file near this depth with requests left; `None` if no file has any.
    fn find_near(&self, depth: f64, at: u64, random: &mut Random) -> Option<usize> {
        // From 1 to the depth of the stack.
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let depth = (depth.ceil() as usize).clamp(1, self.files.len().max(1));
        let slack = depth / 3;
        let to = self.files.len() - (depth - slack - 1).min(self.files.len());
        let mut from = self.files.len().saturating_sub(depth + slack);
        loop {
            let weights = || self.files[from..to].iter().map(|file| self.weight(*file, at));
            let sum: f64 = weights().sum();
            if sum > 0.0 {
                let mut remainder = random.unit() * sum;
                let index = weights().position(|weight| {
                    remainder -= weight;
                    remainder < 0.0
                });
                return index.map(|index| from + index);
            }
            if from == 0 {
                return (to..self.files.len()).find(|index| self.weight(self.files[*index], at) > 0.0);
            }
            // No file in this range has requests left: look deeper.
            from = from.saturating_sub(to - from);
        }
    }

    /// Returns the weight of a file: its deficit against an even distribution over time, and at least 0.01 while it has
    /// requests left.
    fn weight(&self, file: u32, at: u64) -> f64 {
        let (count, used) = (self.counts[file as usize], self.used[file as usize]);
        if used == count {
            return 0.0;
        }
        let due = f64::from(count) * (at + 1) as f64 / self.total as f64;
        (due - f64::from(used)).max(0.01)
    }
}

/// Assigns one of `sizes` to each file, so that the sizes of *requests* follow `requests` as nearly as
/// possible.
///
/// Sizes are bisected repeatedly. Each half gets as many files as it has sizes, such that the share of
/// requests for them is that of `requests` there. The most popular files are assigned first, to the half with
/// the larger deficit.
pub fn match_sizes(counts: &[u32], mut sizes: Vec<u64>, requests: Distribution) -> Vec<u64> {
    sizes.sort_unstable();
    let mut assigned = vec![0; counts.len()];
    let files: Vec<usize> = (0..counts.len().min(sizes.len())).collect();
    assign_files(&mut assigned, counts, &sizes, files, requests, (0.0, f64::INFINITY));
    assigned
}

/// Assigns `files`, the most popular first, to the same number of `sizes`, which lie between `bounds`.
fn assign_files(
    assigned: &mut [u64],
    counts: &[u32],
    sizes: &[u64],
    files: Vec<usize>,
    requests: Distribution,
    bounds: (f64, f64),
) {
    if let ([size], [file]) = (sizes, files.as_slice()) {
        assigned[*file] = *size;
        return;
    }
    if sizes.is_empty() {
        return;
    }
    let (small, large) = sizes.split_at(sizes.len() / 2);
    let between = match (small.last(), large.first()) {
        (Some(below), Some(above)) => f64::midpoint(*below as f64, *above as f64),
        _either_is_empty => bounds.0,
    };
    let share =
        |from: f64, to: f64| (if to.is_finite() { requests.cdf(to) } else { 1.0 }) - requests.cdf(from);
    let (both, lower) = (share(bounds.0, bounds.1), share(bounds.0, between));
    let total: f64 = files.iter().map(|file| f64::from(counts[*file])).sum();
    let expected = if both > 0.0 { total * lower / both } else { total / 2.0 };
    let (mut deficits, mut capacities) = ([expected, total - expected], [small.len(), large.len()]);
    let mut halves = [Vec::with_capacity(small.len()), Vec::with_capacity(large.len())];
    for file in files {
        let half = usize::from(capacities[0] == 0 || capacities[1] > 0 && deficits[1] > deficits[0]);
        deficits[half] -= f64::from(counts[file]);
        capacities[half] -= 1;
        halves[half].push(file);
    }
    let [low, high] = halves;
    assign_files(assigned, counts, small, low, requests, (bounds.0, between));
    assign_files(assigned, counts, large, high, requests, (between, bounds.1));
}

/// Returns the stack depth of each request's file, from 1; first requests have none.
pub fn depths(order: &[u32], files: usize) -> Vec<f64> {
    let mut last = vec![None; files];
    // Marks whether a position of the order is its file's latest: a Fenwick tree counts those behind a
    // position.
    let mut latest = Fenwick(vec![0; order.len() + 1]);
    let mut depths = Vec::new();
    for (at, file) in order.iter().enumerate() {
        if let Some(before) = last[*file as usize].replace(at) {
            depths.push(f64::from(latest.to(at) - latest.to(before)));
            latest.add(before, -1);
        }
        latest.add(at, 1);
    }
    depths
}

/// Prefix sums in logarithmic time (a Fenwick tree).
struct Fenwick(Vec<i32>);

impl Fenwick {
    fn add(&mut self, index: usize, value: i32) {
        let mut at = index + 1;
        while let Some(sum) = self.0.get_mut(at) {
            *sum += value;
            at += at & at.wrapping_neg();
        }
    }

    /// Returns the sum before `index`.
    fn to(&self, index: usize) -> i32 {
        let (mut at, mut sum) = (index, 0);
        while at > 0 {
            sum += self.0[at];
            at &= at - 1;
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use wire::Seed;

    use super::*;
    use crate::fit::fit;

    const DEPTH: Distribution = Distribution::Lognormal { mu: 1.5, sigma: 0.8 };

    #[test]
    fn paper_popularity_is_zipfs_with_whole_counts() {
        assert_eq!(counts(7, 16, 1.0), [7, 3, 2, 1, 1, 1, 1]);
        assert_eq!(counts(4, 2, 1.0), [2, 1, 0, 0]);
        assert_eq!(counts(3, 100, 1.0), [55, 27, 18]);
        assert_eq!(counts(3, 30, 0.0), [10, 10, 10]);
        assert_eq!(counts(4, 20, 2.0), [16, 4, 1, 1]);
    }

    #[test]
    fn every_file_is_requested_its_number_of_times() {
        let counts = counts(500, 5_000, 1.0);
        let order = order(&counts, DEPTH, &mut Seed::default().stream("order", 0));
        let mut seen = vec![0; counts.len()];
        order.iter().for_each(|file| seen[*file as usize] += 1);
        assert_eq!(seen, counts);
    }

    #[test]
    fn depths_are_those_of_a_move_to_front_stack() {
        assert_eq!(depths(&[0, 1, 2, 0, 0, 2, 1], 3), [3.0, 1.0, 2.0, 3.0]);
    }

    #[test]
    fn depths_follow_their_distribution_and_popularity_is_preserved() {
        let counts = counts(2_000, 15_000, 1.0);
        let order = order(&counts, DEPTH, &mut Seed::default().stream("order", 0));
        let depths = depths(&order, counts.len());
        let fit = fit("", String::new(), depths, 1.0, |x| DEPTH.cdf(x), |p| DEPTH.quantile(p));
        assert!(fit.distance < 0.06, "{fit:?}");
        for tenth in order.chunks_exact(order.len() / 10) {
            let first = tenth.iter().filter(|file| **file == 0).count();
            assert!((180..=220).contains(&first), "{first} in a tenth");
        }
    }

    #[test]
    fn sizes_are_matched_so_that_requests_follow_their_distribution() {
        let sizes = Distribution::Hybrid { mu: 9.357, sigma: 1.318, cut: 133_000.0, body: 0.93, shape: 1.1 };
        let requests = Distribution::Pareto { min: 1_000.0, shape: 1.0 };
        let (counts, mut random) = (counts(2_000, 15_000, 1.0), Seed::default().stream("sizes", 0));
        // From 1 to the maximum sampled here.
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let sampled: Vec<u64> = counts.iter().map(|_| sizes.sample(&mut random).ceil() as u64).collect();
        let assigned = match_sizes(&counts, sampled.clone(), requests);
        let sorted = |mut sizes: Vec<u64>| {
            sizes.sort_unstable();
            sizes
        };
        assert_eq!(sorted(assigned.clone()), sorted(sampled), "each size is assigned once");
        let expected =
            assigned.iter().zip(&counts).flat_map(|(size, count)| vec![*size as f64; *count as usize]);
        let fit =
            fit("", String::new(), expected.collect(), 1.0, |x| requests.cdf(x), |p| requests.quantile(p));
        // The most popular file alone is an eighth of the requests: no fit is closer than half of that.
        assert!(fit.distance < 0.10, "{fit:?}");
    }
}
