//! The README's tour, run as a new user would: every `$ berth …` line of its `console` blocks, with exactly the output
//! that is printed there.

use std::fmt::Write as _;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A command of the README, with what it should print.
struct Step {
    line: usize,
    command: String,
    output: String,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The commands of all `console` blocks.
fn steps(text: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut inside = false;
    for (number, line) in text.lines().enumerate() {
        match (inside, line) {
            (false, "```console") => inside = true,
            (true, "```") => inside = false,
            (true, line) => {
                if let Some(command) = line.strip_prefix("$ ") {
                    steps.push(Step { line: number + 1, command: command.into(), output: String::new() });
                } else {
                    let step = steps.last_mut().expect("a block begins with a command");
                    step.output.push_str(line);
                    step.output.push('\n');
                }
            }
            (false, _) => {}
        }
    }
    steps
}

#[test]
fn the_tour_of_the_readme_prints_what_it_says() {
    let text = std::fs::read_to_string(root().join("README.md")).unwrap();
    let steps = steps(&text);
    assert!(steps.len() >= 5, "the tour has {} steps; it should show more", steps.len());
    for Step { line, command, output } in steps {
        let words: Vec<&str> = command.split_whitespace().collect();
        // `; echo $?` shows the exit code on a line of its own.
        let (words, shows_code) = match words.split_last_chunk::<3>() {
            Some((rest, [";", "echo", "$?"])) => (rest, true),
            _ => (&words[..], false),
        };
        assert_eq!(words[0], "berth", "README.md:{line}: only berth is run in console blocks");
        // One pipe for both, as a terminal has it: the order of warnings and output is part of what a user sees.
        let (mut reader, writer) = std::io::pipe().unwrap();
        let mut run = Command::new(env!("CARGO_BIN_EXE_berth"));
        run.args(&words[1..]).current_dir(root()).env("NO_COLOR", "1");
        let mut child = run.stdout(writer.try_clone().unwrap()).stderr(writer).spawn().unwrap();
        // The command holds writing ends of its own, which would keep the pipe open.
        drop(run);
        let mut printed = String::new();
        reader.read_to_string(&mut printed).unwrap();
        let status = child.wait().unwrap();
        if shows_code {
            writeln!(printed, "{}", status.code().unwrap()).unwrap();
        } else {
            assert!(status.success(), "README.md:{line}: `{command}` failed:\n{printed}");
        }
        assert_eq!(printed, output, "README.md:{line}: `{command}` prints something else");
    }
}
