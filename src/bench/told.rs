//! What the process in the cell tells the one outside, a line of JSON each.

use std::io::{self, Write};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::cost::Cost;

/// One line.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Told {
    /// So many of so many rounds are done, and this is being done.
    At { done: u64, of: u64, now: String },
    /// Something that a reader of the results has to know.
    Note(String),
    /// A result.
    Row(Row),
    /// Something was harmed or left.
    Wrong(String),
    /// It could not go on.
    Failed { why: String },
    /// That was all.
    Done,
}

impl Told {
    /// Says it.
    pub(crate) fn tell(&self) {
        // OK because it is text and numbers.
        let line = serde_json::to_string(self).expect("it is plain");
        // Whoever does not read any more has ended us.
        let _ = writeln!(io::stdout(), "{line}");
    }
}

/// A result: medians of several rounds.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Row {
    /// The file system, or what stands for it.
    pub(crate) place: String,
    /// How many claims there were.
    pub(crate) claims: u64,
    /// What was measured.
    pub(crate) what: String,
    /// Processor time, in microseconds per unit, where it was measured.
    pub(crate) cpu_us: Option<f64>,
    /// Time on the wall, in microseconds per unit.
    pub(crate) wall_us: f64,
    /// What the two are counted by: a claim, a scan, a start.
    pub(crate) unit: String,
    /// The same as multiples of the yardstick's; none for the yardstick itself.
    pub(crate) times_cpu: Option<f64>,
    pub(crate) times_wall: Option<f64>,
    /// What was aimed at, in words, and whether it was reached.
    pub(crate) aim: Option<String>,
    pub(crate) reached: Option<bool>,
}

impl Row {
    /// A result without a yardstick.
    pub(crate) fn new(place: &str, claims: u64, what: &str, unit: &str, medians: Medians) -> Row {
        Row {
            place: place.into(),
            claims,
            what: what.into(),
            cpu_us: Some(medians.cpu_us),
            wall_us: medians.wall_us,
            unit: unit.into(),
            times_cpu: None,
            times_wall: None,
            aim: None,
            reached: None,
        }
    }

    /// What so many claims cost, for each of them.
    pub(crate) fn of_claims(place: &str, claims: u64, what: &str, costs: &[Cost]) -> Row {
        Row::new(place, claims, what, "claim", Medians::of(costs, claims))
    }

    /// What starts among so many claims cost, of which nobody knows the processor time.
    pub(crate) fn of_starts(place: &str, claims: u64, what: &str, costs: &[Cost]) -> Row {
        let row = Row::new(place, claims, what, "start", Medians::of(costs, 1));
        Row { cpu_us: None, ..row }
    }

    /// The same beside its yardstick.
    pub(crate) fn beside(mut self, yardstick: &Row) -> Row {
        self.times_cpu = self.cpu_us.zip(yardstick.cpu_us).map(|(own, other)| own / other);
        self.times_wall = Some(self.wall_us / yardstick.wall_us);
        self
    }

    /// What was aimed at.
    pub(crate) fn aiming(mut self, aim: &str, reached: bool) -> Row {
        (self.aim, self.reached) = (Some(aim.into()), Some(reached));
        self
    }

    /// Says it.
    pub(crate) fn tell(self) {
        Told::Row(self).tell();
    }
}

/// The middle of several rounds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Medians {
    pub(crate) cpu_us: f64,
    pub(crate) wall_us: f64,
}

impl Medians {
    /// Of these costs, for each of so many units.
    pub(crate) fn of(costs: &[Cost], units: u64) -> Medians {
        let per_unit = |of: fn(&Cost) -> Duration| {
            let mut all: Vec<Duration> = costs.iter().map(of).collect();
            all.sort_unstable();
            let middle = all.get(all.len() / 2).copied().unwrap_or_default();
            middle.as_secs_f64() * 1e6 / units.max(1) as f64
        };
        Medians { cpu_us: per_unit(|cost| cost.cpu), wall_us: per_unit(|cost| cost.wall) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_is_taken_of_each_kind_of_time_by_itself() {
        let cost =
            |cpu, wall| Cost { cpu: Duration::from_micros(cpu), wall: Duration::from_micros(wall) };
        let medians = Medians::of(&[cost(30, 100), cost(10, 300), cost(20, 200)], 10);
        assert_eq!((medians.cpu_us, medians.wall_us), (2.0, 20.0));
    }

    #[test]
    fn a_row_beside_its_yardstick_is_told_as_a_multiple() {
        let medians = |cpu_us, wall_us| Medians { cpu_us, wall_us };
        let yardstick = Row::new("tmpfs", 10, "rm -rf", "claim", medians(10.0, 20.0));
        let row = Row::new("tmpfs", 10, "sweep", "claim", medians(13.0, 10.0)).beside(&yardstick);
        assert_eq!((row.times_cpu, row.times_wall), (Some(1.3), Some(0.5)));
    }
}
