//! `docs/why-each-rule.md`: what goes wrong without each rule, as the searches show it.

use std::fmt::Write as _;

use crate::catalogue::{NOT_EXPRESSED, OTHER_SYSTEMS};
use crate::explore::{Counts, Limits};
use crate::model::{Model, Searched, Verdict};
use crate::rules::Rule;
use crate::setting::Setting;

const HEAD: &str = "\
# Why each rule

Made by `cargo lab model --write-docs`; a test holds it equal to what that would write.

The [protocol](protocol.md) says what each rule is for. Here the model says it: a search through every
order of the steps of owners, commands and sweeps, with the rule left out, ends at a shortest run in
which a property does not hold, and of a rule whose absence shows in no run it is told why it stays.
With the rule in place the same search goes through all runs and finds nothing; both are made anew for
this page. A rule of several parts has a name for each, `c2:sweep`.

What a search looks at is in its bounds, given with each rule: how many of whom, what is done besides,
and how often something is killed or fails. `cargo lab model --without c2:sweep` makes the first of the
two again, with a line for every step; here steps that are routine share a line.
";

/// Why there is no page. Each says which rule it is about.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NoPage {
    /// The model and the catalogue do not agree, and how.
    Disagree(String),
    /// A search did not come to its end, and why.
    NotDecided(String),
}

/// The page. `told` hears of each rule before it is looked at; `watch` says in each search whether to
/// go on.
///
/// # Errors
///
/// See [`NoPage`].
pub fn page(
    limits: &Limits,
    told: &mut dyn FnMut(Rule),
    watch: &mut dyn FnMut(&Counts) -> bool,
) -> Result<String, NoPage> {
    let mut rows = String::new();
    let mut sections = String::new();
    for rule in Rule::ALL {
        told(*rule);
        let section = Section::of(*rule, limits, watch)?;
        rows += &section.row();
        sections += &section.text();
    }
    let mut page =
        format!("{HEAD}\n| rule | without it | breaks | steps |\n|---|---|---|---:|\n{rows}\n");
    page += "## What the model cannot say\n\n";
    for missing in NOT_EXPRESSED {
        let _ = writeln!(page, "- **{}**: {}", missing.rule, missing.reason);
    }
    let others = OTHER_SYSTEMS.iter().map(|(letter, what)| format!("{what} ({letter})"));
    let others = others.collect::<Vec<_>>().join(", ");
    let _ = writeln!(page, "\nThe rules of other systems than claims are not in it: {others}.");
    page += &sections;
    Ok(page)
}

/// What is shown of one rule.
struct Section {
    rule: Rule,
    setting: Setting,
    present: Searched,
    absent: Searched,
    stays: Option<&'static str>,
}

impl Section {
    fn of(
        rule: Rule,
        limits: &Limits,
        watch: &mut dyn FnMut(&Counts) -> bool,
    ) -> Result<Section, NoPage> {
        let shown = rule.shown();
        let disagree = |how: String| NoPage::Disagree(format!("{rule}: {how}"));
        let mut search = |setting: Setting| -> Result<Searched, NoPage> {
            let model = Model::new(setting).map_err(|error| disagree(error.to_string()))?;
            let searched = model.search(limits, watch);
            match searched.verdict {
                Verdict::NotDecided(why) => Err(NoPage::NotDecided(format!("{rule}: {why}"))),
                _ => Ok(searched),
            }
        };
        let present = search(shown.setting)?;
        if let Verdict::Found(run) = &present.verdict {
            return Err(disagree(format!("also with the rule: {run}")));
        }
        let absent = search(rule.absent())?;
        match (&absent.verdict, shown.stays) {
            (Verdict::Found(run), Some(_)) => {
                return Err(disagree(format!("it is said to be seen nowhere, and is seen: {run}")));
            }
            (Verdict::Holds, None) => {
                return Err(disagree(format!("its absence is not seen: {}", shown.setting)));
            }
            _ => {}
        }
        Ok(Section { rule, setting: shown.setting, present, absent, stays: shown.stays })
    }

    fn row(&self) -> String {
        let (rule, without) = (self.rule, self.rule.without());
        // The anchor that a heading gets: colons go.
        let anchor = rule.id().replace(':', "");
        let (breaks, steps) = match &self.absent.verdict {
            Verdict::Found(run) => (run.broken.property.to_string(), run.len().to_string()),
            _ => ("nothing".to_owned(), "-".to_owned()),
        };
        format!("| [{rule}](#{anchor}) | {without} | {breaks} | {steps} |\n")
    }

    fn text(&self) -> String {
        let (rule, without, setting) = (self.rule, self.rule.without(), self.setting);
        let unique = self.present.counts.unique;
        let mut text = format!("\n## {rule}\n\n{without}\n\n");
        let _ = writeln!(text, "Bounds: {setting}. With the rule: holds, {unique} states.");
        match (&self.absent.verdict, self.stays) {
            (Verdict::Found(run), _) => {
                let _ = write!(text, "\n```text\n{run:#}```\n");
            }
            (_, stays) => {
                let looked_at = self.absent.counts.unique;
                let why = stays.unwrap_or_default();
                let _ = writeln!(text, "Without it: holds as well, {looked_at} states.\n\n{why}");
            }
        }
        text
    }
}
