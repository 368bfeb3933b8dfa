//! Keeps a bed open for work by hand: `cargo run -p berth-bed --example bed -- kubernetes` (or `hub`).
//!
//! Prints its kubeconfig and ends it when standard input does.

use std::{
    env,
    error::Error,
    io::{self, Read as _, Write as _},
};

use berth_bed::Bed;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let bed = match env::args().nth(1).as_deref() {
        Some("kubernetes") => Bed::kubernetes().without_fsync().await?,
        Some("hub") => Bed::hub().await?,
        _ => return Err("say which bed: kubernetes or hub".into()),
    };
    writeln!(io::stdout(), "export KUBECONFIG={}", bed.kubeconfig().display())?;
    io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}
