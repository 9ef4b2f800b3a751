//! Names, whose mutants are noticed by another process only.

/// A list of names.
#[derive(Debug)]
pub struct Names(Vec<String>);

impl Names {
    /// An empty list.
    pub fn new() -> Names {
        Names(Vec::new())
    }

    /// Adds a name that is not empty, and says whether it was added.
    pub fn add(&mut self, name: &str) -> bool {
        if name.is_empty() {
            return false;
        }
        self.0.push(name.to_owned());
        true
    }

    /// All names, one a line.
    pub fn lines(&self) -> String {
        self.0.join("\n")
    }
}

impl Default for Names {
    fn default() -> Names {
        Names::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_joined() {
        let names = Names(vec!["a".to_owned(), "b".to_owned()]);
        assert_eq!(names.lines(), "a\nb");
    }
}
