//! Running the command line inside the test, and reading what it printed.
#![allow(clippy::unwrap_used, reason = "a test fails where it unwraps")]

use std::process::ExitCode;

use berth::console::{Colour, Console};
use berth::{Cli, run};
use clap::Parser as _;
use serde_json::Value;

/// Runs `berth plan -o json` with more arguments; the objects that come out.
///
/// The clock stands far from every time in the data: a plan with `--at` must not depend on it.
pub(crate) fn plan_objects(args: &[String]) -> Vec<Value> {
    let line = ["berth", "plan", "-o", "json"].into_iter().map(str::to_owned).chain(args.iter().cloned());
    let line: Vec<String> = line.collect();
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let mut console = Console {
        input: Box::new(std::io::empty()),
        out: Box::new(&mut out),
        err: Box::new(&mut err),
        colour: Colour::Off,
        warnings: 0,
        now: "2030-01-01T00:00:00Z".parse().unwrap(),
    };
    let code = run(Cli::try_parse_from(&line).unwrap(), &mut console);
    drop(console);
    let told = String::from_utf8_lossy(&err);
    assert_eq!(format!("{code:?}"), format!("{:?}", ExitCode::SUCCESS), "{line:?}\n{told}");
    let list: Value = serde_json::from_slice(&out).unwrap();
    list["items"].as_array().unwrap().clone()
}

/// The text at a place of a value; empty if there is none.
pub(crate) fn text<'v>(value: &'v Value, pointer: &str) -> &'v str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}
