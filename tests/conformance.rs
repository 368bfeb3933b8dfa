//! Which test shows what upstream's suites ask for: the tables of `docs/conformance*.md` and the tests' own words agree.
//!
//! A test says which case it shows in its doc comment, in a sentence that begins a line:
//!
//! ```text
//! /// Upstream: e2e/placement_test.go "Should schedule successfully".
//! /// Upstream: scheduling_controller_test.go "TestBind: no change", "TestBind: update one of placementdecisions".
//! ```
//!
//! The file is the end of a heading in a document, long enough to mean one; a name is a row's first cell, or a test
//! function that stands for all its cases. The last cell of a row names the tests, or says in words why there are none.
//! `BERTH_UPDATE=1` writes the last cells anew.

#![allow(clippy::unwrap_used, reason = "a test fails loudly")]

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

/// One for each of those whose place we take.
const DOCUMENTS: [&str; 3] =
    ["docs/conformance.md", "docs/conformance-nodes.md", "docs/conformance-replacement.md"];

/// What a claim begins with.
const MARK: &str = "Upstream: ";

/// What may stand before a test's `fn`; all but the first are scenarios' ways to run.
const BEFORE_FN: [&str; 12] = [
    "async",
    "beside",
    "calm",
    "eviction",
    "fresh",
    "health",
    "lifecycle",
    "managed",
    "numbers",
    "ours",
    "quiet",
    "turn",
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

/// What one test says it shows.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Claim {
    file: String,
    name: String,
    /// As the document names it.
    test: String,
}

/// A row of a document: the heading it is under, its first cell and its last.
#[derive(Debug, PartialEq, Eq)]
struct Row<'d> {
    document: usize,
    line: usize,
    file: &'d str,
    name: String,
    ours: &'d str,
}

impl Row<'_> {
    /// Whether a claim of that name is about this row: its own name, or that of the function whose case it is.
    fn is_meant(&self, name: &str) -> bool {
        self.name == name || self.name.strip_prefix(name).is_some_and(|case| case.starts_with(": "))
    }
}

/// The cells of a table's line; bars within a cell are escaped.
fn cells(line: &str) -> Option<Vec<String>> {
    let inner = line.strip_prefix("| ")?.strip_suffix(" |")?;
    Some(inner.split(" | ").map(|cell| cell.replace("\\|", "|")).collect())
}

fn rows(documents: &[String]) -> Vec<Row<'_>> {
    let numbered = documents.iter().enumerate();
    numbered.flat_map(|(number, document)| rows_of(number, document)).collect()
}

fn rows_of(number: usize, document: &str) -> Vec<Row<'_>> {
    let mut file = "";
    let mut rows = Vec::new();
    for (line, text) in document.lines().enumerate() {
        if let Some(heading) = text.strip_prefix("### ") {
            file = heading;
        } else if let Some(cells) = cells(text)
            && !file.is_empty()
            && cells[0] != "upstream"
            && !text.starts_with("|---")
        {
            let ours = text.strip_suffix(" |").unwrap().rsplit(" | ").next().unwrap();
            rows.push(Row { document: number, line, file, name: cells[0].clone(), ours });
        }
    }
    rows
}

/// The claims in a doc comment, or what is wrong with them.
fn parse(comment: &str) -> Result<Vec<(String, String)>, String> {
    let mut claims = Vec::new();
    let mut rest = comment;
    while let Some((_, after)) = rest.split_once(MARK) {
        let (file, names) =
            after.split_once(' ').ok_or_else(|| format!("{MARK}without a name: {after:?}"))?;
        let mut names = names.trim_start();
        loop {
            let quoted = names.strip_prefix('"').and_then(|quoted| quoted.split_once('"'));
            let (name, after) =
                quoted.ok_or_else(|| format!("{MARK}{file} wants a name in quotes: {names:?}"))?;
            claims.push((file.to_owned(), name.to_owned()));
            rest = after;
            match after.trim_start().strip_prefix(',') {
                Some(more) => names = more.trim_start(),
                None => break,
            }
        }
    }
    Ok(claims)
}

/// The name of the function a line begins, where it is one that could be a test.
fn function(line: &str) -> Option<&str> {
    let (before, after) = line.split_once("fn ")?;
    if !before.split_whitespace().all(|word| BEFORE_FN.contains(&word)) {
        return None;
    }
    Some(after.split_once('(')?.0)
}

/// The claims of one source file.
fn claims(path: &str, source: &str) -> Result<Vec<Claim>, String> {
    let mut found = Vec::new();
    let (mut comment, mut is_test) = (String::new(), false);
    // Everything in such a block is a scenario.
    let mut is_in_grounds = false;
    for line in source.lines() {
        let begins = line.starts_with("grounds! {") || line.starts_with("scenario! {");
        is_in_grounds = begins || (is_in_grounds && line != "}");
        let line = line.trim();
        if let Some(text) = line.strip_prefix("///") {
            comment.push(' ');
            comment.push_str(text.trim());
        } else if line.starts_with("#[") {
            is_test |= line == "#[test]" || line.starts_with("#[tokio::test");
        } else {
            if comment.contains(MARK) {
                let name = function(line).ok_or_else(|| format!("{path}: {comment:?} is of no test"))?;
                if !is_in_grounds && !is_test {
                    return Err(format!("{path}: {name} is no test and says what it shows"));
                }
                let claims = parse(&comment).map_err(|why| format!("{path}: {name}: {why}"))?;
                let test = format!("`{path}` `{name}`");
                found.extend(claims.into_iter().map(|(file, case)| Claim {
                    file,
                    name: case,
                    test: test.clone(),
                }));
            }
            comment.clear();
            is_test = false;
        }
    }
    Ok(found)
}

/// All source files below a folder, in order.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    let mut entries: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

fn all_claims() -> Vec<Claim> {
    let mut files = Vec::new();
    for folder in ["crates", "tests"] {
        sources(&root().join(folder), &mut files);
    }
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("conformance.rs");
    files.retain(|file| *file != own);
    let mut found = Vec::new();
    for file in files {
        let path = file.strip_prefix(root()).unwrap().to_str().unwrap().to_owned();
        found
            .extend(claims(&path, &fs::read_to_string(&file).unwrap()).unwrap_or_else(|why| panic!("{why}")));
    }
    found
}

/// What is wrong between documents and claims, and the documents as they should be.
fn compare(documents: &[String], claims: &[Claim]) -> (Vec<String>, Vec<String>) {
    let rows = rows(documents);
    let files: BTreeSet<&str> = rows.iter().map(|row| row.file).collect();
    let mut wrong = Vec::new();
    let mut shown: BTreeMap<(usize, usize), BTreeSet<&str>> = BTreeMap::new();
    for claim in claims {
        let is_end = |file: &&&str| {
            file.strip_suffix(claim.file.as_str())
                .is_some_and(|before| before.is_empty() || before.ends_with('/'))
        };
        let meant: Vec<&&str> = files.iter().filter(is_end).collect();
        let [file] = meant[..] else {
            let what = if meant.is_empty() { "no heading" } else { "several headings" };
            wrong.push(format!("{}: {:?} is the end of {what}", claim.test, claim.file));
            continue;
        };
        let of_file = rows.iter().filter(|row| row.file == *file && row.is_meant(&claim.name));
        let lines: Vec<(usize, usize)> = of_file.map(|row| (row.document, row.line)).collect();
        if lines.is_empty() {
            wrong.push(format!("{}: {file} has no row {:?}", claim.test, claim.name));
        }
        for line in lines {
            shown.entry(line).or_default().insert(&claim.test);
        }
    }
    let split = |document: &String| document.lines().map(str::to_owned).collect();
    let mut lines: Vec<Vec<String>> = documents.iter().map(split).collect();
    for row in &rows {
        let Some(tests) = shown.get(&(row.document, row.line)) else {
            if row.ours.starts_with('`') || row.ours.is_empty() {
                wrong.push(format!("{} {:?}: no test shows it, and no word says why", row.file, row.name));
            }
            continue;
        };
        let tests = tests.iter().copied().collect::<Vec<_>>().join("<br>");
        if row.ours != tests {
            wrong.push(format!(
                "{} {:?}: shown by {tests}, and the document says {}",
                row.file, row.name, row.ours
            ));
            let line = &mut lines[row.document][row.line];
            let kept = line.len() - row.ours.len() - " |".len();
            *line = format!("{}{tests} |", &line[..kept]);
        }
    }
    (wrong, lines.into_iter().map(|lines| lines.join("\n") + "\n").collect())
}

#[test]
fn every_case_of_upstreams_is_shown_by_a_test_or_said_not_to_apply() {
    let paths = DOCUMENTS.map(|name| root().join(name));
    let documents = paths.each_ref().map(|path| fs::read_to_string(path).unwrap());
    let claims = all_claims();
    let (mut wrong, mended) = compare(&documents, &claims);
    if std::env::var_os("BERTH_UPDATE").is_some() && mended != documents {
        for (path, text) in paths.iter().zip(&mended) {
            fs::write(path, text).unwrap();
        }
        wrong = compare(&mended, &claims).0;
    }
    assert!(
        wrong.is_empty(),
        "{} of {DOCUMENTS:?}; `BERTH_UPDATE=1 cargo test -p berth-tests --test conformance` writes who shows what:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    // The parser would not notice if it found nothing at all.
    assert!(claims.len() > 100 && rows(&documents).len() > 300, "{} claims", claims.len());
}

/// What the comparison is there to notice.
#[test]
fn rows_without_tests_and_tests_without_rows_are_noticed() {
    let document = "### a/x_test.go\n\n| upstream | ours |\n|---|---|\n| One | `gone` |\n| TestTwo: \"b\" | `t.rs` `two` |\n\
                    | Three | only an agent can |\n\n### b/x_test.go\n\n| One |  |\n";
    let source = "/// Words.\n///\n/// Upstream: a/x_test.go \"TestTwo\", \"No\n/// such\". More.\n#[test]\nfn two() {}\n\
                  grounds! {\n    /// Upstream: x_test.go \"One\".\n    calm async fn many(fleet: &Fleet) {\n}\n";
    let claims = claims("t.rs", source).unwrap();
    let named: Vec<_> = claims.iter().map(|claim| (&*claim.file, &*claim.name, &*claim.test)).collect();
    let two = "`t.rs` `two`";
    assert_eq!(
        named,
        [
            ("a/x_test.go", "TestTwo", two),
            ("a/x_test.go", "No such", two),
            ("x_test.go", "One", "`t.rs` `many`")
        ]
    );
    let documents = [document.to_owned(), "### c_test.go\n\n| Four | in another document |\n".to_owned()];
    let (wrong, mended) = compare(&documents, &claims);
    assert_eq!(wrong.len(), 4, "{wrong:#?}");
    assert_eq!(mended, documents, "what nobody shows is not made up");
    let claim = Claim { file: "a/x_test.go".into(), name: "One".into(), test: "`t.rs` `one`".into() };
    let (_, mended) = compare(&documents, &[claim]);
    assert!(mended[0].contains("| One | `t.rs` `one` |\n| TestTwo"), "{mended:?}");
    assert_eq!(mended[1], documents[1]);
}

#[test]
fn a_claim_that_cannot_be_read_is_told() {
    for (source, why) in [
        ("/// Upstream: x_test.go One.\n#[test]\nfn f() {}", "wants a name in quotes"),
        ("/// Upstream: x_test.go \"One\".\nfn helper() {}", "is no test"),
        ("/// Upstream: x_test.go \"One\".\nstruct Case;", "is of no test"),
    ] {
        let told = claims("t.rs", source).unwrap_err();
        assert!(told.contains(why), "{told}");
    }
}
