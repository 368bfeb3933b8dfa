//! The berth binary: parses arguments, runs the command, ends with its exit code.

use std::process::ExitCode;

use berth::console::Console;
use berth::{Cli, run};
use mimalloc::MiMalloc;

/// Most of what a controller does is to read objects and to let go of them: some hundred pieces of memory for each.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    match Cli::read(std::env::args_os()) {
        Ok(cli) => run(cli, &mut Console::of_process()),
        Err(usage) => {
            // Where even the usage cannot be shown, the exit code is all that is left to say.
            let _ = usage.print();
            ExitCode::from(u8::try_from(usage.exit_code()).unwrap_or(2))
        }
    }
}
