//! One server process that cannot outlive whoever started it.
//!
//! The program is started by a shell that first leaves a watcher behind in the same process group and then becomes the
//! program. The watcher reads a pipe whose other end only we hold: when we end, in whatever way, the pipe closes and
//! the watcher kills the group. (`PR_SET_PDEATHSIG` would need unsafe code, and it fires when the starting *thread*
//! ends, which in tests is long before the process does.)

use std::{
    ffi::{OsStr, OsString},
    fs::{self, File},
    future::ready,
    io::{self, Read as _, Seek as _, SeekFrom},
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use tokio::time::sleep;

use crate::BedError;

/// `$$` is the process that becomes the program and leads the group; the group's number stays taken while the watcher
/// is in it, so the signal cannot hit a stranger. Without its own standard output and error the watcher keeps no pipe
/// of the program open.
const START: &str = r#"exec 3<&0 0</dev/null
{ read -r _ <&3; kill -s KILL -- -$$; } >/dev/null 2>&1 &
exec "$@" 3<&-"#;

/// How often a condition is looked at again.
const POLL: Duration = Duration::from_millis(20);

/// How long a server may take to stand still.
const PAUSE_PATIENCE: Duration = Duration::from_secs(5);

/// How much of a log is shown in an error.
const TAIL_BYTES: u64 = 4 * 1024;

/// How a server was started.
#[derive(Debug, Clone)]
struct Start {
    program: PathBuf,
    arguments: Vec<OsString>,
    folder: PathBuf,
    apart: bool,
}

/// A running server.
#[derive(Debug)]
pub(crate) struct Process {
    name: &'static str,
    /// Also holds the watcher's pipe, as its standard input.
    child: Child,
    log: PathBuf,
    start: Start,
    ended: Option<ExitStatus>,
    /// The group was killed. Its number may be somebody else's by now, so it is never signalled again.
    gone: bool,
}

impl Process {
    /// Starts `program`, its standard output and error appended to `NAME.log` in `folder`, its standard output alone
    /// to `NAME.out` when `apart` is set.
    pub(crate) fn start<A: AsRef<OsStr>>(
        name: &'static str,
        program: &Path,
        arguments: impl IntoIterator<Item = A>,
        folder: &Path,
        apart: bool,
    ) -> Result<Self, BedError> {
        let arguments = arguments.into_iter().map(|argument| argument.as_ref().to_owned()).collect();
        let start = Start { program: program.to_owned(), arguments, folder: folder.to_owned(), apart };
        Self::begin(name, start)
    }

    /// Starts what has been killed once more, as it was started before.
    pub(crate) fn begin_again(&mut self) -> Result<(), BedError> {
        self.kill();
        *self = Self::begin(self.name, self.start.clone())?;
        Ok(())
    }

    fn begin(name: &'static str, start: Start) -> Result<Self, BedError> {
        let Start { program, arguments, folder, apart } = &start;
        let log = folder.join(format!("{name}.log"));
        let spawned = (|| {
            let errors = append(&log)?;
            let output = if *apart {
                File::create(folder.join(format!("{name}.out")))?
            } else {
                errors.try_clone()?
            };
            Command::new("/bin/sh")
                .args(["-c", START, "berth-bed"])
                .arg(program)
                .args(arguments)
                .stdin(Stdio::piped())
                .stdout(output)
                .stderr(errors)
                .current_dir(folder)
                .process_group(0)
                .spawn()
        })();
        let child = spawned.map_err(BedError::system(format!("start {}", program.display())))?;
        Ok(Self { name, child, log, start, ended: None, gone: false })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// How the server ended, if it did.
    pub(crate) fn ended(&mut self) -> Option<ExitStatus> {
        if self.ended.is_none() {
            self.ended = self.child.try_wait().ok().flatten();
        }
        self.ended
    }

    /// Stops the server's clock, as it were: it keeps its connections and answers nothing.
    /// Holds the server, and waits until it stands still: a signal that is sent is not yet one that was taken.
    pub(crate) fn pause(&self) -> Result<(), BedError> {
        self.signal(Signal::STOP)?;
        let deadline = Instant::now() + PAUSE_PATIENCE;
        while !self.stands_still() {
            if Instant::now() > deadline {
                return Err(self.late("stopped", PAUSE_PATIENCE));
            }
            std::thread::yield_now();
        }
        Ok(())
    }

    /// Whether every thread of the server is stopped.
    fn stands_still(&self) -> bool {
        let Ok(threads) = fs::read_dir(format!("/proc/{}/task", self.child.id())) else { return true };
        threads.flatten().all(|thread| {
            let Ok(stat) = fs::read_to_string(thread.path().join("stat")) else { return true };
            // The state follows the name, which is in parentheses and may hold anything.
            stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with(['T', 't', 'Z', 'X']))
        })
    }

    pub(crate) fn resume(&self) -> Result<(), BedError> {
        self.signal(Signal::CONT)
    }

    /// Asks the server to end and waits until it has.
    pub(crate) async fn stop(&mut self, patience: Duration) -> Result<(), BedError> {
        if self.ended().is_none() {
            self.signal(Signal::TERM)?;
            self.signal(Signal::CONT)?;
            let deadline = Instant::now() + patience;
            while self.ended().is_none() {
                if Instant::now() > deadline {
                    return Err(self.late("ended", patience));
                }
                sleep(POLL).await;
            }
        }
        self.kill(); // the watcher
        Ok(())
    }

    /// Ends the server and its watcher without asking, and waits until the server is gone.
    pub(crate) fn kill(&mut self) {
        if self.gone {
            return;
        }
        // Refused only when nobody of the group is left.
        let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
        self.gone = true;
        if self.ended.is_none() {
            self.ended = self.child.wait().ok();
        }
    }

    /// Waits until `ready` gives a value, or the server ended, or `patience` is over.
    pub(crate) async fn until<T, F: Future<Output = Option<T>>>(
        &mut self,
        patience: Duration,
        mut ready: impl FnMut() -> F,
    ) -> Result<T, BedError> {
        let deadline = Instant::now() + patience;
        loop {
            if let Some(status) = self.ended() {
                let (log, tail) = (self.log.clone(), self.tail());
                return Err(BedError::Ended { server: self.name, status, log, tail });
            }
            if let Some(value) = ready().await {
                return Ok(value);
            }
            if Instant::now() > deadline {
                return Err(self.late("ready", patience));
            }
            sleep(POLL).await;
        }
    }

    /// Waits for the first line of standard output, of a process that was started with it `apart`.
    pub(crate) async fn announcement(
        &mut self,
        folder: &Path,
        patience: Duration,
    ) -> Result<String, BedError> {
        let output = folder.join(format!("{}.out", self.name));
        let announced = || {
            let text = fs::read_to_string(&output).unwrap_or_default();
            ready(text.split_once('\n').map(|(line, _)| line.to_owned()))
        };
        self.until(patience, announced).await
    }

    /// The end of the log.
    pub(crate) fn tail(&self) -> String {
        let read = || -> io::Result<String> {
            let mut file = File::open(&self.log)?;
            let from = file.metadata()?.len().saturating_sub(TAIL_BYTES);
            file.seek(SeekFrom::Start(from))?;
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes)?;
            Ok(String::from_utf8_lossy(&bytes).into_owned())
        };
        read().unwrap_or_else(|error| format!("(the log cannot be read: {error})"))
    }

    fn signal(&self, signal: Signal) -> Result<(), BedError> {
        let sent = if self.gone {
            Err(rustix::io::Errno::SRCH)
        } else {
            kill_process(Pid::from_child(&self.child), signal)
        };
        sent.map_err(|error| BedError::system(format!("signal {}", self.name))(error.into()))
    }

    fn late(&self, awaited: &'static str, patience: Duration) -> BedError {
        let (log, tail) = (self.log.clone(), self.tail());
        BedError::Late { server: self.name, awaited, seconds: patience.as_secs(), log, tail }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

fn append(path: &Path) -> io::Result<File> {
    fs::OpenOptions::new().append(true).create(true).open(path)
}

#[cfg(test)]
mod tests {
    use std::{env, thread};

    use rustix::process::test_kill_process;

    use super::*;

    /// Names the file that the killed owner of the test below writes its server's number to.
    const FILE: &str = "BERTH_BED_TEST_FILE";

    fn alive(pid: i32) -> bool {
        test_kill_process(Pid::from_raw(pid).unwrap()).is_ok()
    }

    /// Looks until `condition` holds; a minute is forever here.
    fn wait_until(mut condition: impl FnMut() -> bool) -> bool {
        let deadline = Instant::now() + Duration::from_mins(1);
        while Instant::now() < deadline {
            if condition() {
                return true;
            }
            thread::sleep(POLL);
        }
        false
    }

    #[test]
    #[ignore = "run by a_server_ends_with_its_killed_owner, which kills it"]
    fn owner_of_a_server() {
        let Some(file) = env::var_os(FILE) else { return };
        let folder = tempfile::tempdir().unwrap();
        let server = Process::start("sleep", Path::new("sleep"), ["1000"], folder.path(), false).unwrap();
        fs::write(file, format!("{}\n", server.pid())).unwrap();
        loop {
            thread::park();
        }
    }

    #[test]
    fn a_server_ends_with_its_killed_owner() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("pid");
        let mut owner = Command::new(env::current_exe().unwrap())
            .args(["--exact", "process::tests::owner_of_a_server", "--ignored"])
            .env(FILE, &file)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let written = || fs::read_to_string(&file).unwrap_or_default();
        assert!(wait_until(|| written().ends_with('\n')));
        let pid = written().trim().parse().unwrap();
        assert!(alive(pid));
        owner.kill().unwrap();
        owner.wait().unwrap();
        assert!(wait_until(|| !alive(pid)), "server {pid} outlived its owner");
    }

    #[tokio::test]
    async fn a_server_that_ends_early_is_reported_with_the_end_of_its_log() {
        let folder = tempfile::tempdir().unwrap();
        let script = ["-c", "echo first; echo last >&2; exit 7"];
        let mut server = Process::start("sh", Path::new("sh"), script, folder.path(), false).unwrap();
        let error = server.until(Duration::from_mins(1), || ready(None::<()>)).await.unwrap_err();
        assert!(matches!(&error, BedError::Ended { status, .. } if status.code() == Some(7)), "{error}");
        assert!(error.to_string().ends_with("first\nlast\n"), "{error}");
        assert!(server.pause().is_err());
    }

    #[tokio::test]
    async fn a_paused_server_can_be_stopped_and_is_never_signalled_again() {
        let folder = tempfile::tempdir().unwrap();
        let mut server = Process::start("sleep", Path::new("sleep"), ["1000"], folder.path(), false).unwrap();
        server.pause().unwrap();
        server.stop(Duration::from_mins(1)).await.unwrap();
        assert!(server.gone && !alive(server.pid() as i32));
        assert!(server.resume().is_err());
    }

    #[test]
    fn a_dropped_server_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        let server = Process::start("sleep", Path::new("sleep"), ["1000"], folder.path(), false).unwrap();
        let pid = server.pid() as i32;
        assert!(alive(pid));
        drop(server);
        assert!(!alive(pid));
    }
}
