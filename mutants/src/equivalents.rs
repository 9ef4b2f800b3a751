//! `mutants/equivalents.toml`: mutants that no test can notice, each with the reason.
//!
//! ```toml
//! [[equivalent]]
//! file = "mortmain/src/walk.rs"
//! function = "Walk::depth"
//! from = "depth > most"
//! to = "depth >= most"
//! reason = "the depth is never the most: the caller has looked"
//! ```
//!
//! Invariants:
//! * A declaration is about one mutant; `nth` tells which, where several are alike. One that is about
//!   none is an error, so that none outlives its code, and so is a second one about the same.
//! * A declared mutant is still run, and an error if a test notices it: then the reason is wrong.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::document::{read_toml, wrong};
use crate::mutant::Mutant;
use crate::workspace::Workspace;

/// Where the declarations are, from the root of the workspace.
const PATH: &str = "mutants/equivalents.toml";

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    #[serde(default)]
    equivalent: Vec<Declaration>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Declaration {
    file: PathBuf,
    function: String,
    from: String,
    to: String,
    nth: Option<usize>,
    reason: String,
}

/// The reasons, by the numbers of the mutants.
pub(crate) type Equivalents = BTreeMap<u32, String>;

/// Reads the declarations at the root of a workspace. Those about files of other packages than the
/// mutants' are passed over.
///
/// # Errors
///
/// [`Exit::CatalogueWrong`](crate::exit::Exit::CatalogueWrong) with everything that does not fit.
pub(crate) fn read(
    workspace: &Workspace,
    packages: &[String],
    mutants: &[Mutant],
) -> anyhow::Result<Equivalents> {
    let document: Document = read_toml(&workspace.root, PATH)?.unwrap_or_default();
    let elsewhere = |file: &Path| {
        let member = workspace.member_of(file);
        member.is_some_and(|member| !packages.contains(&member.name))
            && workspace.root.join(file).is_file()
    };
    document.fit(mutants, elsewhere).map_err(|problems| wrong(PATH, problems))
}

impl Document {
    /// The declarations with their mutants, but for those about files elsewhere; or all that does not
    /// fit.
    fn fit(
        &self,
        mutants: &[Mutant],
        elsewhere: impl Fn(&Path) -> bool,
    ) -> Result<Equivalents, String> {
        let (mut equivalents, mut problems) = (Equivalents::new(), String::new());
        for declaration in self.equivalent.iter().filter(|one| !elsewhere(&one.file)) {
            let Declaration { file, function, from, to, reason, .. } = declaration;
            let found = declaration.find(mutants).and_then(|number| {
                match equivalents.insert(number, reason.clone()) {
                    None => Ok(()),
                    Some(_) => Err("it is declared twice".to_owned()),
                }
            });
            if let Err(problem) = found {
                let file = file.display();
                let _ = write!(problems, "\n  {file}, {function}, {from} → {to}: {problem}");
            }
        }
        if problems.is_empty() { Ok(equivalents) } else { Err(problems) }
    }
}

impl Declaration {
    fn find(&self, mutants: &[Mutant]) -> Result<u32, String> {
        if self.reason.trim().is_empty() {
            return Err("it gives no reason".to_owned());
        }
        let alike = mutants.iter().filter(|mutant| {
            mutant.file == self.file
                && mutant.function == self.function
                && mutant.from == self.from
                && mutant.to == self.to
        });
        let alike: Vec<u32> = alike.map(|mutant| mutant.number).collect();
        match (&alike[..], self.nth) {
            ([], _) => Err("there is no such mutant".to_owned()),
            ([one], None | Some(1)) => Ok(*one),
            (many, Some(nth)) => many
                .get(nth.wrapping_sub(1))
                .copied()
                .ok_or_else(|| format!("there are {} of them, and `nth` is {nth}", many.len())),
            (many, None) => {
                Err(format!("there are {} of them: `nth` tells which, from 1", many.len()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit::{Exit, exit_of};
    use crate::mutant::tests::plan_one;
    use crate::tree::tests::{Directory, put};
    use crate::workspace::tests::{member, workspace};

    const SOURCE: &str = "fn f() { g(a == b); g(a == b); g(c < d); }";

    fn find(toml: &str) -> Result<u32, String> {
        let document: Document = toml::from_str(toml).unwrap();
        document.equivalent[0].find(&plan_one(SOURCE).mutants)
    }

    fn declared(change: &str, reason: &str) -> String {
        let (from, to) = change.split_once(" -> ").unwrap();
        format!(
            "[[equivalent]]\nfile = 'src/lib.rs'\nfunction = 'f'\nfrom = '{from}'\nto = '{to}'\nreason = '{reason}'\n"
        )
    }

    #[test]
    fn a_declaration_is_about_one_mutant() {
        assert_eq!(find(&declared("c < d -> c <= d", "why")), Ok(6));
        let twice = declared("a == b -> a != b", "why");
        assert!(find(&twice).unwrap_err().contains("there are 2"));
        assert_eq!(find(&format!("{twice}nth = 2\n")), Ok(3));
        assert!(find(&format!("{twice}nth = 3\n")).is_err());
        assert!(find(&format!("{twice}nth = 0\n")).is_err());
        assert!(find(&declared("c < d -> c", "why")).unwrap_err().contains("no such mutant"));
        assert!(find(&declared("c < d -> c <= d", " ")).unwrap_err().contains("no reason"));
    }

    #[test]
    fn what_fits_no_mutant_or_the_same_is_told_at_once() {
        let fit = |toml: &str| {
            let document: Document = toml::from_str(toml).unwrap();
            document.fit(&plan_one(SOURCE).mutants, |file| file == Path::new("other/lib.rs"))
        };
        let one = declared("c < d -> c <= d", "why");
        let elsewhere = one.replace("src/lib.rs", "other/lib.rs");
        let alone = Equivalents::from([(6, "why".to_owned())]);
        assert_eq!(fit(&format!("{one}{elsewhere}")), Ok(alone));
        let empty = one.replace("src/lib.rs", "src/no_mutants.rs");
        assert_eq!(
            fit(&format!("{one}{one}{empty}")).unwrap_err(),
            "\n  src/lib.rs, f, c < d → c <= d: it is declared twice\
             \n  src/no_mutants.rs, f, c < d → c <= d: there is no such mutant"
        );
    }

    #[test]
    fn a_file_of_another_package_is_passed_over_and_one_of_none_is_not() {
        let base = Directory::new("equivalents");
        let workspace = Workspace {
            root: base.0.clone(),
            ..workspace(vec![member("p", "p"), member("other", "other")])
        };
        put(base.0.join("other/lib.rs"), "");
        let read = |file: &str| {
            let declared = declared("c < d -> c <= d", "why").replace("src/lib.rs", file);
            put(base.0.join(PATH), &declared);
            let read = read(&workspace, &["p".to_owned()], &plan_one(SOURCE).mutants);
            read.map_err(|error| exit_of(&error))
        };
        assert_eq!(read("other/lib.rs"), Ok(Equivalents::new()));
        for file in ["other/gone.rs", "p/lib.rs", "lib.rs"] {
            assert_eq!(read(file), Err(Exit::CatalogueWrong), "{file}");
        }
    }
}
