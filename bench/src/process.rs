//! Processes that are measured: where their binary is, and what they have had of the machine.

use std::path::PathBuf;
use std::process::Command;
use std::{env, fs};

use anyhow::{Context as _, ensure};

use crate::report::progress;

/// The optimised binary beside this one, as the sources are now.
pub(crate) fn berth() -> anyhow::Result<PathBuf> {
    if let Some(named) = env::var_os("BERTH_BIN") {
        return Ok(named.into());
    }
    let own = env::current_exe().context("the path of this program is unknown")?;
    let berth = own.with_file_name("berth");
    // Built every time: one from yesterday would be measured as today's.
    progress("building the berth binary, if it is not up to date");
    // With this one beside it, as `./dev bench` built it: alone it would be compiled with other features, from the ground up.
    let build = ["build", "--release", "--locked", "--quiet", "-p", "berth", "-p", "berth-bench", "--bins"];
    let status = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into())).args(build).status()?;
    ensure!(status.success() && berth.is_file(), "{} could not be built", berth.display());
    Ok(berth)
}

/// What this process has had of the processors.
pub(crate) fn own_processor_seconds() -> anyhow::Result<f64> {
    processor_seconds("self")
}

/// From the system's account of a process, which is in hundredths of a second.
pub(crate) fn processor_seconds(process: &str) -> anyhow::Result<f64> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat"))?;
    // The second field is a name in parentheses, which may contain anything.
    let (_, fields) = stat.rsplit_once(')').context("no account of a process")?;
    let ticks: Vec<f64> =
        fields.split_whitespace().skip(11).take(2).filter_map(|field| field.parse().ok()).collect();
    Ok(ticks.iter().sum::<f64>() / 100.0)
}

/// The most memory a process has had.
pub(crate) fn peak_megabytes(process: &str) -> anyhow::Result<f64> {
    let status = fs::read_to_string(format!("/proc/{process}/status"))?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB"));
    let kilobytes: f64 = peak.context("no memory is told of it")?.trim().parse()?;
    Ok(kilobytes / 1024.0)
}

/// Lets a process begin anew to count the most memory it has had.
pub(crate) fn forget_peak(process: &str) -> anyhow::Result<()> {
    // As proc(5) has it: 5 resets the peak to what is in use now.
    fs::write(format!("/proc/{process}/clear_refs"), "5")
        .context("cannot reset the peak of a process's memory")
}

/// What the machine's processors have been used for, by everybody; time that was not given to it does not count.
pub(crate) fn machine_seconds() -> anyhow::Result<f64> {
    let stat = fs::read_to_string("/proc/stat")?;
    let line = stat.lines().next().context("no account of the machine")?;
    let ticks: Vec<f64> = line.split_whitespace().skip(1).filter_map(|field| field.parse().ok()).collect();
    // user, nice, system; not idle and iowait; irq, softirq.
    let busy = [0, 1, 2, 5, 6].iter().filter_map(|place| ticks.get(*place)).fold(0.0, |all, one| all + one);
    Ok(busy / 100.0)
}
