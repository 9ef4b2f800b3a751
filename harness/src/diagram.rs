//! What happened, as a picture: a lane a process, time downward.
//!
//! An SVG of its own: no script, no font and nothing else from outside; its colors follow the reader's
//! light or dark scheme. Calls are ticks with a label, in which files have names instead of numbers; a
//! green line is a process that may use the directory, a blue bar a lock that it has a descriptor of.
//!
//! Invariants: the same run makes the same bytes, all of whose numbers are whole; whatever a name holds,
//! it is text of the picture and never a part of its markup.

mod plan;

use std::fmt::{self, Write as _};

use mortmain::sys::Pid;

use self::plan::{Plan, Span, Thing};
use crate::judge::Violation;
use crate::timeline::{Event, EventKind, Timeline};

/// Between two events.
const ROW: usize = 18;
/// What a letter takes at most, in the one font.
const LETTER: usize = 7;
/// The same, of the title.
const TITLE_LETTER: usize = 9;
/// Left of the first lane, for the numbers of the events.
const GUTTER: usize = 52;
/// What is left free around everything, and between lanes.
const MARGIN: usize = 16;
/// Left of a lane's line, for one bar.
const BAR: usize = 6;
/// From a lane's line to its labels.
const LABEL_AT: usize = 10;
/// Letters that a line of the caption has at least, however few lanes there are.
const CAPTION_MIN: usize = 110;

const STYLE: &str = "\
:root{color-scheme:light dark;--paper:#fff;--ink:#1f2328;--dim:#6e7781;--lane:#c4ccd4;--use:#2da44e;\
--lock:#0969da;--kill:#bc4c00;--harm:#cf222e;--swap:#8250df}\
@media(prefers-color-scheme:dark){:root{--paper:#0d1117;--ink:#e6edf3;--dim:#8b949e;--lane:#3d444d;\
--use:#3fb950;--lock:#58a6ff;--kill:#f0883e;--harm:#ff7b72;--swap:#d2a8ff}}\
text{font:11px ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace;fill:var(--ink);white-space:pre}\
.paper{fill:var(--paper)}.title{font-size:14px;font-weight:bold}.head{font-weight:bold}\
.dim{fill:var(--dim)}.at{fill:var(--dim);text-anchor:end}.lane{stroke:var(--lane);stroke-width:2}\
.use{stroke:var(--use);stroke-width:4}.lock{fill:var(--lock)}.fork{stroke:var(--dim);stroke-dasharray:3 2}\
.tick{stroke:var(--ink);stroke-width:2}.born{fill:var(--paper);stroke:var(--ink);stroke-width:2}\
.end{fill:var(--ink)}.kill{stroke:var(--kill);stroke-width:3}.bad{fill:var(--kill)}\
.clock{stroke:var(--dim);stroke-dasharray:6 4}\
.passes{fill:var(--dim);paint-order:stroke;stroke:var(--paper);stroke-width:8px}\
.over{stroke:var(--paper);stroke-width:2}.band{fill:var(--harm);opacity:.14}\
.harm{fill:var(--harm);font-weight:bold}.hit{fill:none;stroke:var(--harm);stroke-width:2}\
.blow{fill:var(--harm)}.swap{fill:none;stroke:var(--swap);stroke-width:2}";

/// A picture of a run.
#[derive(Debug)]
pub struct Diagram<'d> {
    /// What happened.
    pub timeline: &'d Timeline,
    /// What it ended with, if that is harm to somebody.
    pub violation: Option<&'d Violation>,
    /// What it is of, in a few words.
    pub title: &'d str,
    /// What is to be read beside it, a paragraph each.
    pub caption: &'d [String],
    /// Two events that would have had to come in the other order.
    pub swap: Option<[usize; 2]>,
}

impl fmt::Display for Diagram<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plan = Plan::of(&self.timeline.events);
        let right = plan.lanes.iter().map(|lane| lane.x + lane.width).max().unwrap_or(GUTTER);
        let title = self.title.chars().count() * TITLE_LETTER;
        let width = (right + MARGIN).max(title.max(CAPTION_MIN * LETTER) + 2 * MARGIN);
        let letters = (width - 2 * MARGIN) / LETTER;
        let caption: Vec<String> =
            self.caption.iter().flat_map(|text| wrapped(text, letters)).collect();
        let heads_y = MARGIN + 14 + 8 + caption.len() * 15 + 22;
        let page = Page { plan: &plan, events: &self.timeline.events, top: heads_y + 20, width };
        let below = page.y(self.timeline.events.len());
        let left = match self.violation {
            Some(Violation::Left { .. }) => ROW,
            _ => 0,
        };
        let height = below + left + 20 + MARGIN;
        writeln!(
            f,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\" role=\"img\">"
        )?;
        writeln!(f, "<title>{}</title>", Escaped(self.title))?;
        writeln!(f, "<style>{STYLE}</style>")?;
        writeln!(f, "<rect class=\"paper\" width=\"{width}\" height=\"{height}\"/>")?;
        text(f, "title", MARGIN, MARGIN + 14, self.title)?;
        for (at, line) in caption.iter().enumerate() {
            text(f, "", MARGIN, MARGIN + 14 + 8 + (at + 1) * 15, line)?;
        }
        for lane in &plan.lanes {
            text(f, "head", lane.x - 4, heads_y, &lane.who.to_string())?;
        }
        if let Some(violation) = self.violation {
            page.harm(f, self.timeline, violation)?;
        }
        page.lanes(f)?;
        if let Some(events) = self.swap {
            page.swap(f, events)?;
        }
        page.events(f, self.violation.and_then(|violation| self.timeline.blamed(violation)))?;
        if let Some(violation) = self.violation {
            page.victims(f, self.timeline, violation)?;
        }
        if let Some(Violation::Left { paths }) = self.violation {
            let paths = paths.iter().map(ToString::to_string);
            let tops: Vec<String> = paths.filter(|path| !path.contains('/')).collect();
            text(f, "harm", GUTTER, below + 6, &format!("left for ever: {}", tops.join(", ")))?;
        }
        legend(f, below + left + 16, self.swap.is_some())?;
        writeln!(f, "</svg>")
    }
}

/// Where everything is.
struct Page<'p> {
    plan: &'p Plan,
    events: &'p [Event],
    /// Where the first event is.
    top: usize,
    width: usize,
}

impl Page<'_> {
    fn y(&self, event: usize) -> usize {
        self.top + event * ROW
    }

    fn x(&self, pid: Pid) -> Option<usize> {
        self.plan.lanes.iter().find(|lane| lane.who.pid == pid).map(|lane| lane.x)
    }

    /// The band behind the step that harms.
    fn harm(
        &self,
        f: &mut fmt::Formatter<'_>,
        timeline: &Timeline,
        violation: &Violation,
    ) -> fmt::Result {
        let Some(at) = timeline.blamed(violation) else { return Ok(()) };
        let (y, width) = (self.y(at) - ROW / 2, self.width);
        writeln!(f, "<rect class=\"band\" x=\"0\" y=\"{y}\" width=\"{width}\" height=\"{ROW}\"/>")
    }

    /// An arrow each way between two events, beside their numbers.
    fn swap(&self, f: &mut fmt::Formatter<'_>, [first, later]: [usize; 2]) -> fmt::Result {
        let (x, from, to) = (GUTTER - 6, self.y(first), self.y(later));
        writeln!(
            f,
            "<path class=\"swap\" d=\"M{} {} L{x} {from} L{} {} M{x} {from} L{x} {to} M{} {} L{x} {to} \
             L{} {}\"><title>in the other order it would hold</title></path>",
            x - 4,
            from + 5,
            x + 4,
            from + 5,
            x - 4,
            to - 5,
            x + 4,
            to - 5
        )
    }

    /// Rings around those whom it hits.
    fn victims(
        &self,
        f: &mut fmt::Formatter<'_>,
        timeline: &Timeline,
        violation: &Violation,
    ) -> fmt::Result {
        let (Violation::InUse { users, .. } | Violation::NotAlone { who: users, .. }) = violation
        else {
            return Ok(());
        };
        let Some(y) = timeline.blamed(violation).map(|at| self.y(at)) else { return Ok(()) };
        for x in users.iter().filter_map(|who| self.x(who.pid)) {
            writeln!(f, "<circle class=\"hit\" cx=\"{x}\" cy=\"{y}\" r=\"8\"/>")?;
        }
        Ok(())
    }

    fn lanes(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let x = |lane: usize| self.plan.lanes[lane].x;
        for Span { lane, thing, slot, from, to } in &self.plan.spans {
            let (y, end) = (self.y(*from), self.y(*to));
            let class = match thing {
                Thing::Life => "lane",
                Thing::Use => "use",
                Thing::Lock(path) => {
                    let (x, y, height) = (x(*lane) - 9 - slot * BAR, y - 4, end - y + 8);
                    let who = self.plan.lanes[*lane].who;
                    writeln!(
                        f,
                        "<rect class=\"lock\" x=\"{x}\" y=\"{y}\" width=\"4\" height=\"{height}\">\
                         <title>{who} has the lock of {}</title></rect>",
                        Escaped(path)
                    )?;
                    continue;
                }
            };
            line(f, class, (x(*lane), y), (x(*lane), end))?;
        }
        for (parent, child, at) in &self.plan.forks {
            line(f, "fork", (x(*parent), self.y(*at)), (x(*child), self.y(*at)))?;
        }
        Ok(())
    }

    fn events(&self, f: &mut fmt::Formatter<'_>, harmful: Option<usize>) -> fmt::Result {
        for (at, (event, label)) in self.events.iter().zip(&self.plan.labels).enumerate() {
            let y = self.y(at);
            text(f, "at", GUTTER - 20, y + 4, &(at + 1).to_string())?;
            let Some(x) = self.x(event.who.pid) else {
                line(f, "clock", (GUTTER, y), (self.width - MARGIN, y))?;
                text(f, "passes", GUTTER + 28, y + 4, &format!("{}: {label}", event.who))?;
                continue;
            };
            writeln!(f, "<g><title>{} {}: {}</title>", at + 1, event.who, Escaped(&event.text))?;
            let harms = harmful == Some(at);
            match event.kind {
                _ if harms => {
                    writeln!(f, "<circle class=\"blow\" cx=\"{x}\" cy=\"{y}\" r=\"6\"/>")?;
                    if event.kind == EventKind::Killed {
                        cross(f, "over", (x, y), 3)?;
                    }
                }
                EventKind::Step | EventKind::Failed => line(f, "tick", (x - 5, y), (x + 5, y))?,
                EventKind::Born => {
                    writeln!(f, "<circle class=\"born\" cx=\"{x}\" cy=\"{y}\" r=\"4\"/>")?;
                }
                EventKind::Ended => {
                    let (x, y) = (x - 4, y - 4);
                    writeln!(
                        f,
                        "<rect class=\"end\" x=\"{x}\" y=\"{y}\" width=\"8\" height=\"8\"/>"
                    )?;
                }
                EventKind::Killed => cross(f, "kill", (x, y), 5)?,
            }
            let class = match event.kind {
                _ if harms => "harm",
                EventKind::Failed | EventKind::Killed => "bad",
                EventKind::Born | EventKind::Ended => "dim",
                EventKind::Step => "",
            };
            text(f, class, x + LABEL_AT, y + 4, label)?;
            writeln!(f, "</g>")?;
        }
        Ok(())
    }
}

/// What the signs mean.
fn legend(f: &mut fmt::Formatter<'_>, y: usize, swaps: bool) -> fmt::Result {
    let mut x = MARGIN;
    let middle = y - 4;
    for (sign, meaning) in [
        ("born", "born"),
        ("tick", "a call"),
        ("kill", "killed"),
        ("end", "ended"),
        ("use", "may use it"),
        ("lock", "has a lock"),
        ("blow", "does harm"),
        ("swap", "their order decides"),
    ] {
        if sign == "swap" && !swaps {
            continue;
        }
        match sign {
            "born" | "blow" => {
                writeln!(f, "<circle class=\"{sign}\" cx=\"{}\" cy=\"{middle}\" r=\"4\"/>", x + 5)?;
            }
            "end" | "lock" => {
                let width = if sign == "end" { 8 } else { 4 };
                let (x, y) = (x + 3, middle - 4);
                writeln!(
                    f,
                    "<rect class=\"{sign}\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"8\"/>"
                )?;
            }
            "kill" => cross(f, sign, (x + 5, middle), 5)?,
            "swap" => line(f, sign, (x + 5, middle - 5), (x + 5, middle + 5))?,
            _ => line(f, sign, (x, middle), (x + 10, middle))?,
        }
        text(f, "dim", x + 15, y, meaning)?;
        x += 15 + meaning.chars().count() * LETTER + 14;
    }
    Ok(())
}

fn cross(f: &mut fmt::Formatter<'_>, class: &str, (x, y): (usize, usize), r: usize) -> fmt::Result {
    line(f, class, (x - r, y - r), (x + r, y + r))?;
    line(f, class, (x - r, y + r), (x + r, y - r))
}

fn line(
    f: &mut fmt::Formatter<'_>,
    class: &str,
    (x1, y1): (usize, usize),
    (x2, y2): (usize, usize),
) -> fmt::Result {
    writeln!(f, "<line class=\"{class}\" x1=\"{x1}\" y1=\"{y1}\" x2=\"{x2}\" y2=\"{y2}\"/>")
}

fn text(f: &mut fmt::Formatter<'_>, class: &str, x: usize, y: usize, text: &str) -> fmt::Result {
    let class = if class.is_empty() { String::new() } else { format!(" class=\"{class}\"") };
    writeln!(f, "<text{class} x=\"{x}\" y=\"{y}\">{}</text>", Escaped(text))
}

/// Lines of so many letters, broken between words and indented like the first; a word that is longer
/// has a line of its own.
fn wrapped(text: &str, letters: usize) -> Vec<String> {
    let words = text.trim_start();
    let indent = &text[..text.len() - words.len()];
    let mut lines = Vec::new();
    let mut line = String::from(indent);
    for word in words.split(' ') {
        if line.len() > indent.len() {
            if line.chars().count() + 1 + word.chars().count() > letters {
                lines.push(std::mem::replace(&mut line, indent.into()));
            } else {
                line.push(' ');
            }
        }
        line.push_str(word);
    }
    lines.push(line);
    lines
}

/// Text as the content of an element, or in an attribute.
struct Escaped<'t>(&'t str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for letter in self.0.chars() {
            match letter {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                // XML has no way to say these.
                odd if odd.is_control() || matches!(odd, '\u{fffe}' | '\u{ffff}') => {
                    f.write_char('\u{fffd}')?;
                }
                other => f.write_char(other)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use mortmain::sys::{Call, Errno, Handle, Name, PathBytes};

    use super::*;
    use crate::judge::Who;
    use crate::timeline::{Called, SIGKILL};
    use crate::world::Effect;
    use crate::world::request::{Request, Response};

    fn event(pid: i32, program: &'static str, kind: EventKind, text: &str) -> Event {
        Event { who: Who { pid: Pid(pid), program }, kind, text: text.into(), called: None }
    }

    /// What is drawn of these events: the lines between the names of the lanes and the legend.
    fn drawn(events: Vec<Event>, violation: Option<&Violation>) -> Vec<String> {
        let timeline = Timeline { events };
        let caption = [String::new()];
        let timeline = &timeline;
        let diagram = Diagram { timeline, violation, title: "t", caption: &caption, swap: None };
        let text = diagram.to_string();
        let lines = text.lines().skip_while(|line| !line.contains("class=\"head\""));
        lines.take_while(|line| !line.ends_with(">born</text>")).map(str::to_owned).collect()
    }

    #[test]
    fn a_kill_that_harms_is_marked_in_the_lane_of_its_process() {
        let by = Who { pid: Pid(10), program: "owner" };
        let users = vec![Who { pid: Pid(20), program: "sweep" }];
        let step = SIGKILL.into();
        let (claim, missing) = (PathBytes::from(&b"/r/p"[..]), PathBytes::default());
        let violation = Violation::InUse { by, step, claim, missing, users };
        let events = vec![
            event(10, "owner", EventKind::Born, "starts"),
            event(20, "sweep", EventKind::Born, "starts"),
            event(10, "owner", EventKind::Killed, "is killed"),
        ];
        let want = "\
<text class=\"head\" x=\"56\" y=\"75\">owner 10</text>
<text class=\"head\" x=\"153\" y=\"75\">sweep 20</text>
<rect class=\"band\" x=\"0\" y=\"122\" width=\"802\" height=\"18\"/>
<line class=\"lane\" x1=\"60\" y1=\"95\" x2=\"60\" y2=\"131\"/>
<line class=\"lane\" x1=\"157\" y1=\"113\" x2=\"157\" y2=\"149\"/>
<text class=\"at\" x=\"32\" y=\"99\">1</text>
<g><title>1 owner 10: starts</title>
<circle class=\"born\" cx=\"60\" cy=\"95\" r=\"4\"/>
<text class=\"dim\" x=\"70\" y=\"99\">starts</text>
</g>
<text class=\"at\" x=\"32\" y=\"117\">2</text>
<g><title>2 sweep 20: starts</title>
<circle class=\"born\" cx=\"157\" cy=\"113\" r=\"4\"/>
<text class=\"dim\" x=\"167\" y=\"117\">starts</text>
</g>
<text class=\"at\" x=\"32\" y=\"135\">3</text>
<g><title>3 owner 10: is killed</title>
<circle class=\"blow\" cx=\"60\" cy=\"131\" r=\"6\"/>
<line class=\"over\" x1=\"57\" y1=\"128\" x2=\"63\" y2=\"134\"/>
<line class=\"over\" x1=\"57\" y1=\"134\" x2=\"63\" y2=\"128\"/>
<text class=\"harm\" x=\"70\" y=\"135\">is killed</text>
</g>
<circle class=\"hit\" cx=\"157\" cy=\"131\" r=\"8\"/>
<circle class=\"born\" cx=\"21\" cy=\"161\" r=\"4\"/>";
        assert_eq!(drawn(events, Some(&violation)).join("\n"), want);
    }

    #[test]
    fn what_is_left_is_said_below_the_last_event() {
        let violation = Violation::Left { paths: vec![PathBytes::from(&b"<p>"[..])] };
        let lines = drawn(vec![event(10, "owner", EventKind::Ended, "exit 0")], Some(&violation));
        assert!(lines.contains(
            &"<text class=\"harm\" x=\"52\" y=\"119\">left for ever: &lt;p&gt;</text>".to_owned()
        ));
    }

    #[test]
    fn text_is_never_markup() {
        let odd = "</text><script>&\u{7}\u{ffff}\"";
        let lines = drawn(vec![event(10, "owner", EventKind::Step, odd)], None);
        let text = lines.join("\n");
        assert!(!text.contains("<script"), "{text}");
        let escaped = "&lt;/text&gt;&lt;script&gt;&amp;\u{fffd}\u{fffd}&quot;";
        assert_eq!(text.matches(escaped).count(), 2, "{text}");
    }

    #[test]
    fn the_clock_has_no_lane() {
        let mut passes = event(0, "clock", EventKind::Step, "25 hours pass");
        passes.who = Who::CLOCK;
        let lines = drawn(vec![event(10, "owner", EventKind::Born, "starts"), passes], None);
        let heads = lines.iter().filter(|line| line.contains("\"head\""));
        assert_eq!(heads.count(), 1, "{lines:#?}");
        let clock = "<text class=\"passes\" x=\"80\" y=\"117\">the clock: 25 hours pass</text>";
        assert!(lines.contains(&clock.to_owned()), "{lines:#?}");
    }

    #[test]
    fn a_lane_is_called_after_the_first_who_had_its_number() {
        let events = vec![
            event(10, "owner", EventKind::Born, "starts"),
            event(10, "owner", EventKind::Killed, "is killed"),
            event(10, "stranger", EventKind::Born, "starts, a stranger with this number"),
            event(10, "stranger", EventKind::Ended, "exit 0"),
        ];
        let lines = drawn(events, None);
        let heads: Vec<&String> = lines.iter().filter(|line| line.contains("\"head\"")).collect();
        assert!(matches!(heads[..], [head] if head.contains(">owner 10<")), "{heads:#?}");
    }

    #[test]
    fn a_caption_is_broken_between_words() {
        assert_eq!(wrapped("a bb ccc dddddddd e", 6), ["a bb", "ccc", "dddddddd", "e"]);
        assert_eq!(wrapped("  a  bb ccc", 8), ["  a  bb", "  ccc"]);
        assert_eq!(wrapped("", 8), [""]);
    }

    #[test]
    fn a_title_has_room() {
        let timeline = &Timeline { events: Vec::new() };
        let title = &*"t".repeat(200);
        let diagram = Diagram { timeline, violation: None, title, caption: &[], swap: None };
        let head = diagram.to_string();
        assert!(head.contains("width=\"1832\""), "{head}");
    }

    #[test]
    fn how_a_call_fails_is_told_beside_a_long_name() {
        let name = Name::new("n".repeat(80).as_bytes()).expect("one component");
        let call = Call::Mkdir { dir: Handle(3), name };
        for (done, how) in
            [("fails", ": fails: EIO"), ("is done, and fails", ": is done, and fails: EIO")]
        {
            let text = format!("{call} {done}: EIO");
            let effect = Effect::Answer(Response::Reply(Err(Errno::EIO)));
            let called = Called { request: Arc::new(Request::Call(call.clone())), effect };
            let failed =
                Event { called: Some(called), ..event(10, "owner", EventKind::Failed, &text) };
            let lines = drawn(vec![failed], None);
            let label = format!("…{how}</text>");
            assert!(lines.iter().any(|line| line.ends_with(&label)), "{lines:#?}");
        }
    }

    #[test]
    fn a_label_has_a_bound() {
        let long = "x".repeat(100);
        let lines = drawn(vec![event(10, "owner", EventKind::Step, &long)], None);
        let label = format!(">{}…</text>", "x".repeat(47));
        assert!(lines.iter().any(|line| line.ends_with(&label)), "{lines:#?}");
    }
}
