//! How often each file is asked for, in which order, and which size it therefore has.
//!
//! Not when: that is the plan's. Three laws meet here. *Popularity*: the file of rank r is asked for floor(C / r) times.
//! *Temporal locality*: how many other files were asked for since the last time, the depth in a stack that keeps the
//! latest on top. *Sizes of requests*: files are few and requests many, so which size the popular files get decides it.

use wire::seed::Random;

use crate::law::Law;

/// How often each of `files` is asked for, the most popular first: floor(C / rank^exponent), with the smallest C by which they
/// come to `requests` in all. Where requests are few, the least popular files are not asked for.
pub fn counts(files: u32, requests: usize, exponent: f64) -> Vec<u32> {
    let power =
        |rank: u32| if exponent == 1.0 { f64::from(rank) } else { libm::pow(f64::from(rank), exponent) };
    let powers: Vec<f64> = (1..=files).map(power).collect();
    // Of whole numbers of 32 bits the quotient is never rounded up to the next. Positive, and no larger than C.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let of = |c: u32| powers.iter().map(move |power| (f64::from(c) / power) as u32);
    let enough = |c: u32| of(c).map(u64::from).sum::<u64>() >= u64::try_from(requests).unwrap_or(u64::MAX);
    let (mut low, mut high) = (1, 1);
    while !enough(high) && high < u32::MAX / 2 {
        (low, high) = (high, 2 * high);
    }
    while low < high {
        let middle = low.midpoint(high);
        if enough(middle) { high = middle } else { low = middle + 1 }
    }
    of(high).collect()
}

/// An order of requests in which each file comes as often as it should, and the depths in the stack of what was asked
/// for last follow `depth` as nearly as that allows.
///
/// Files come in the order in which independent requests would first meet them, as evenly as the whole allows. For every
/// other request a depth is drawn; of the files about there, one is taken by chance, the more likely the further
/// behind it is.
pub fn order(counts: &[u32], depth: Law, random: &mut Random) -> Vec<u32> {
    let total: u64 = counts.iter().map(|count| u64::from(*count)).sum();
    let mut fresh = arrivals(counts, random);
    let mut stack = Stack { counts, used: vec![0; counts.len()], files: Vec::new(), total };
    let mut order = Vec::with_capacity(usize::try_from(total).unwrap_or(0));
    for at in 0..total {
        let left = total - at;
        // Files that were not yet asked for, by the share of what is left that they are.
        let is_new = random.unit() * (left as f64) < fresh.len() as f64;
        let taken = if is_new { None } else { stack.about(depth.draw(random), at, random) };
        let file = match taken {
            Some(place) => stack.lift(place),
            None => match fresh.pop() {
                Some(file) => stack.push(file),
                // Only where all is used up, and the loop would have ended.
                None => break,
            },
        };
        order.push(file);
    }
    order
}

/// The last first: in which order independent requests would meet each file for the first time.
fn arrivals(counts: &[u32], random: &mut Random) -> Vec<u32> {
    let clock = |count: u32, random: &mut Random| -libm::log1p(-random.unit()) / f64::from(count);
    let asked = (0..).zip(counts).filter(|(_, count)| **count > 0);
    let mut clocks: Vec<(f64, u32)> = asked.map(|(file, count)| (clock(*count, random), file)).collect();
    clocks.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    clocks.into_iter().map(|(_, file)| file).collect()
}

/// The files that were asked for, the latest last.
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

    fn lift(&mut self, place: usize) -> u32 {
        let file = self.files.remove(place);
        self.push(file)
    }

    /// Where a file lies that may be asked for again, about as deep as that; `None` if there is none at all.
    fn about(&self, depth: f64, at: u64, random: &mut Random) -> Option<usize> {
        // From 1 to what is there.
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let depth = (depth.ceil() as usize).clamp(1, self.files.len().max(1));
        let slack = depth / 3;
        let to = self.files.len() - (depth - slack - 1).min(self.files.len());
        let mut from = self.files.len().saturating_sub(depth + slack);
        loop {
            let weights = || self.files[from..to].iter().map(|file| self.weight(*file, at));
            let sum: f64 = weights().sum();
            if sum > 0.0 {
                let mut rest = random.unit() * sum;
                let place = weights().position(|weight| {
                    rest -= weight;
                    rest < 0.0
                });
                return place.map(|place| from + place);
            }
            if from == 0 {
                return (to..self.files.len()).find(|place| self.weight(self.files[*place], at) > 0.0);
            }
            // All that lies there is used up: what lies deeper may not be.
            from = from.saturating_sub(to - from);
        }
    }

    /// How much a file wants to be asked for: what it is behind an even course, and a little while anything is left.
    fn weight(&self, file: u32, at: u64) -> f64 {
        let (count, used) = (self.counts[file as usize], self.used[file as usize]);
        if used == count {
            return 0.0;
        }
        let due = f64::from(count) * (at + 1) as f64 / self.total as f64;
        (due - f64::from(used)).max(0.01)
    }
}

/// Gives each file one of `sizes`, so that the sizes of what is *asked for* follow `requests` as nearly as they can.
///
/// Sizes are halved, again and again; of the files, each half gets as many as it has sizes, such that the requests for
/// them are the share that `requests` wants there. The most popular are dealt first, to the half that lacks most.
pub fn matched(counts: &[u32], mut sizes: Vec<u64>, requests: Law) -> Vec<u64> {
    sizes.sort_unstable();
    let mut of = vec![0; counts.len()];
    let files: Vec<usize> = (0..counts.len().min(sizes.len())).collect();
    deal(&mut of, counts, &sizes, files, requests, (0.0, f64::INFINITY));
    of
}

/// Deals `files`, the most popular first, to as many `sizes`, which lie between `bounds`.
fn deal(of: &mut [u64], counts: &[u32], sizes: &[u64], files: Vec<usize>, requests: Law, bounds: (f64, f64)) {
    if let ([size], [file]) = (sizes, files.as_slice()) {
        of[*file] = *size;
        return;
    }
    if sizes.is_empty() {
        return;
    }
    let (small, large) = sizes.split_at(sizes.len() / 2);
    let between = match (small.last(), large.first()) {
        (Some(below), Some(above)) => f64::midpoint(*below as f64, *above as f64),
        _one_is_empty => bounds.0,
    };
    let share =
        |from: f64, to: f64| (if to.is_finite() { requests.below(to) } else { 1.0 }) - requests.below(from);
    let (whole, lower) = (share(bounds.0, bounds.1), share(bounds.0, between));
    let total: f64 = files.iter().map(|file| f64::from(counts[*file])).sum();
    let wanted = if whole > 0.0 { total * lower / whole } else { total / 2.0 };
    let (mut lacks, mut rooms) = ([wanted, total - wanted], [small.len(), large.len()]);
    let mut halves = [Vec::with_capacity(small.len()), Vec::with_capacity(large.len())];
    for file in files {
        let half = usize::from(rooms[0] == 0 || rooms[1] > 0 && lacks[1] > lacks[0]);
        lacks[half] -= f64::from(counts[file]);
        rooms[half] -= 1;
        halves[half].push(file);
    }
    let [low, high] = halves;
    deal(of, counts, small, low, requests, (bounds.0, between));
    deal(of, counts, large, high, requests, (between, bounds.1));
}

/// How deep in the stack each request found its file, from 1; first requests have no depth.
pub fn depths(order: &[u32], files: usize) -> Vec<f64> {
    let mut last = vec![None; files];
    // Whether a place of the order is its file's latest: a Fenwick tree counts those behind a place.
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

/// Sums of what lies before a place, in logarithmic time.
struct Fenwick(Vec<i32>);

impl Fenwick {
    fn add(&mut self, place: usize, value: i32) {
        let mut at = place + 1;
        while let Some(sum) = self.0.get_mut(at) {
            *sum += value;
            at += at & at.wrapping_neg();
        }
    }

    /// The sum before `place`.
    fn to(&self, place: usize) -> i32 {
        let (mut at, mut sum) = (place, 0);
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

    const DEPTH: Law = Law::Lognormal { mu: 1.5, sigma: 0.8 };

    #[test]
    fn paper_popularity_is_zipfs_with_whole_counts() {
        assert_eq!(counts(7, 16, 1.0), [7, 3, 2, 1, 1, 1, 1]);
        assert_eq!(counts(4, 2, 1.0), [2, 1, 0, 0]);
        assert_eq!(counts(3, 100, 1.0), [55, 27, 18]);
        assert_eq!(counts(3, 30, 0.0), [10, 10, 10]);
        assert_eq!(counts(4, 20, 2.0), [16, 4, 1, 1]);
    }

    #[test]
    fn every_file_is_asked_for_as_often_as_it_should() {
        let counts = counts(500, 5_000, 1.0);
        let order = order(&counts, DEPTH, &mut Seed::default().stream("order", 0));
        let mut seen = vec![0; counts.len()];
        order.iter().for_each(|file| seen[*file as usize] += 1);
        assert_eq!(seen, counts);
    }

    #[test]
    fn depths_are_those_of_a_stack() {
        assert_eq!(depths(&[0, 1, 2, 0, 0, 2, 1], 3), [3.0, 1.0, 2.0, 3.0]);
    }

    #[test]
    fn depths_follow_their_law_and_what_is_popular_stays_so() {
        let counts = counts(2_000, 15_000, 1.0);
        let order = order(&counts, DEPTH, &mut Seed::default().stream("order", 0));
        let depths = depths(&order, counts.len());
        let fit = fit("", String::new(), depths, 1.0, |x| DEPTH.below(x), |p| DEPTH.quantile(p));
        assert!(fit.distance < 0.06, "{fit:?}");
        for tenth in order.chunks_exact(order.len() / 10) {
            let first = tenth.iter().filter(|file| **file == 0).count();
            assert!((180..=220).contains(&first), "{first} in a tenth");
        }
    }

    #[test]
    fn sizes_are_matched_so_that_requests_follow_their_law() {
        let sizes = Law::Hybrid { mu: 9.357, sigma: 1.318, cut: 133_000.0, body: 0.93, shape: 1.1 };
        let requests = Law::Pareto { least: 1_000.0, shape: 1.0 };
        let (counts, mut random) = (counts(2_000, 15_000, 1.0), Seed::default().stream("sizes", 0));
        // From 1 to the largest that is drawn here.
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let drawn: Vec<u64> = counts.iter().map(|_| sizes.draw(&mut random).ceil() as u64).collect();
        let of = matched(&counts, drawn.clone(), requests);
        let sorted = |mut sizes: Vec<u64>| {
            sizes.sort_unstable();
            sizes
        };
        assert_eq!(sorted(of.clone()), sorted(drawn), "each size is given once");
        let asked = of.iter().zip(&counts).flat_map(|(size, count)| vec![*size as f64; *count as usize]);
        let fit =
            fit("", String::new(), asked.collect(), 1.0, |x| requests.below(x), |p| requests.quantile(p));
        // The most popular file alone is an eighth of the requests: nothing gets nearer than half of that.
        assert!(fit.distance < 0.10, "{fit:?}");
    }
}
