//! Makes a story that fails shorter: whatever it does not need for that is left out.

/// Leaves out of the text of a story what it does not need to fail: tables first, many at once, then
/// single lines of those that stay. `fails` says whether a text still fails in the same way; what is no
/// story does not. It is asked so often at most. Answers the shortest that was found.
#[must_use]
pub fn shrink(text: &str, most: usize, mut fails: impl FnMut(&str) -> bool) -> String {
    let mut left = most;
    let mut fails = |parts: &[String]| {
        left = left.saturating_sub(1);
        left > 0 && fails(&parts.concat())
    };
    let tables = without_needless(tables(text), &mut fails);
    without_needless(lines(&tables.concat()), &mut fails).concat()
}

/// Leaves out as many parts as can be, from the end, in pieces of half of them first and of one last,
/// until a round of single ones changes nothing.
fn without_needless(
    mut parts: Vec<String>,
    fails: &mut impl FnMut(&[String]) -> bool,
) -> Vec<String> {
    let mut size = parts.len().div_ceil(2).max(1);
    loop {
        let before = parts.len();
        let mut end = parts.len();
        while end > 0 {
            let start = end.saturating_sub(size);
            let rest = [&parts[..start], &parts[end..]].concat();
            if fails(&rest) {
                parts = rest;
            }
            end = start;
        }
        if size == 1 && parts.len() == before {
            return parts;
        }
        size = size.div_ceil(2);
    }
}

/// The tables of a file, what stands before the first as one more.
fn tables(text: &str) -> Vec<String> {
    let mut tables = vec![String::new()];
    for line in text.split_inclusive('\n') {
        if line.starts_with('[') {
            tables.push(String::new());
        }
        // OK because there is one from the beginning.
        tables.last_mut().expect("there is a table").push_str(line);
    }
    tables
}

/// The lines of a file, those without a word at the beginning of the next.
fn lines(text: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    for line in text.split_inclusive('\n') {
        // OK because there is one from the beginning.
        lines.last_mut().expect("there is a line").push_str(line);
        if !line.trim().is_empty() {
            lines.push(String::new());
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "about = \"x\"\n\n[a]\none = 1\ntwo = 2\n\n[b]\n\n[c]\nthree = 3\n";

    #[test]
    fn what_is_not_needed_is_left_out() {
        let needs = |text: &str| text.contains("about") && text.contains("two");
        assert_eq!(shrink(TEXT, 1000, needs), "about = \"x\"\ntwo = 2\n");
        assert_eq!(shrink(TEXT, 1000, |text| text == TEXT), TEXT);
    }

    #[test]
    fn neighbours_that_depend_on_each_other_go_together() {
        let needs =
            |text: &str| text.contains("[b]") == text.contains("[c]") && text.contains("one");
        assert_eq!(shrink(TEXT, 1000, needs), "one = 1\n");
    }

    #[test]
    fn it_is_asked_so_often_at_most() {
        let mut asked = 0;
        let text = shrink(TEXT, 3, |_| {
            asked += 1;
            false
        });
        assert_eq!((text.as_str(), asked), (TEXT, 2));
    }
}
