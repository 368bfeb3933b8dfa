//! What no two runs have in common, replaced by a word for what it is.

use std::sync::LazyLock;

use regex::Regex;

/// Patterns and what stands in their place, in this order.
///
/// Ages keep the width of their column. They are seconds: a story is shorter than two minutes.
const MASKS: &[(&str, &str)] = &[
    // Of kubectl's own log lines only the words matter.
    (r"(?m)^([EIW])\d{4} \d\d:\d\d:\d\d\.\d+ +\d+ (\S+?):\d+\]", "$1 $2]"),
    (r"eyJ[\w-]+\.[\w-]+\.[\w-]+", "TOKEN"),
    (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "UID"),
    (r"X509SHA256=[0-9a-f]{64}", "X509SHA256=DIGEST"),
    (r"https://127\.0\.0\.1:\d+", "https://SERVER"),
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "TIME"),
    (r"(Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d \w{3} \d{4} \d\d:\d\d:\d\d \+0000", "TIME"),
    (r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+ \+0000( UTC)?", "TIME"),
    (r#"(resourceVersion\\?"?: ?)\\?"\d+\\?""#, "${1}RV"),
    (r"(Resource Version: +)\d+", "${1}RV"),
    (r"\b(LIVE|MERGED|kubectl-edit)-\d+", "$1"),
    (r"\bmany-[a-z0-9]{5}\b", "many-RANDOM"),
    // A patched object in the middle of an error: the real server writes its fields in the order of its Go types.
    (r#"patch: Invalid value: "\{.*\}": "#, r#"patch: Invalid value: "OBJECT": "#),
    (r"Server Version: v1\.36\.\S+", "Server Version: VERSION"),
    // The administrators of the two beds.
    (r"berth-bed-admin|berth-admin", "ADMIN"),
    (r"(?m)( {2}|\t)\d{1,3}s$", "${1}AGE"),
    (r"  (?:\d\ds|\ds )( {2}|\t)", "  AGE$1"),
    (r"\d{1,3}s \(x(\d+) over \d{1,3}s\)", "AGE (x$1 over AGE)"),
    (r"(?m)^\d{1,3}s ", "AGE "),
    (r" \d{1,3}s( \d+ two\.1)", " AGE$1"),
];

/// The text without what changes from run to run.
pub(crate) fn mask(text: &str, folder: &str) -> String {
    static COMPILED: LazyLock<Vec<(Regex, &str)>> =
        LazyLock::new(|| MASKS.iter().map(|(pattern, word)| (Regex::new(pattern).unwrap(), *word)).collect());
    COMPILED.iter().fold(text.replace(folder, "FOLDER"), |text, (pattern, word)| {
        pattern.replace_all(&text, *word).into_owned()
    })
}

#[test]
fn ages_keep_the_width_of_their_column() {
    let wide = |age: &str| mask(&format!("a   {age}   x\nb   {age}"), "/tmp/x");
    assert_eq!(wide("12s"), "a   AGE   x\nb   AGE");
    assert_eq!(mask("a   4s    x\nb   4s", "/tmp/x"), "a   AGE   x\nb   AGE");
}

#[test]
fn what_is_not_of_the_run_stays() {
    let text = "timeout 30s exceeded\nreplicas: 3\nresourceVersion: not a number";
    assert_eq!(mask(text, "/tmp/x"), text);
}
