//! Who is measured: how a contender is started, and which process that is.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow, ensure};
use berth_bed::{Bed, Companion, Port, tool};
use clap::ValueEnum;

use crate::process;
use crate::report::progress;

/// Client limits that do not limit: the load on the machine does.
const RAISED: [&str; 2] = ["--kube-api-qps=5000", "--kube-api-burst=10000"];

/// How little of a processor a contender that rests may use, and for how long it has to.
const REST_CORES_MAX: f64 = 0.04;
const REST: Duration = Duration::from_secs(3);
/// How often is looked whether it rests.
const LOOK: Duration = Duration::from_millis(500);
/// How often it is told that somebody still waits.
const WORD: Duration = Duration::from_secs(30);
/// How much of a log is told where something goes wrong.
const LOG_LINES: usize = 20;
/// How long a contender may take to come to rest.
const REST_PATIENCE: Duration = Duration::from_mins(20);

/// A program, and how it is set up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum Contender {
    /// Berth's placement controller alone
    Berth,
    /// All of Berth's fleet controllers
    BerthAll,
    /// OCM's placement controller without its needless conversion, client limits raised
    Patched,
    /// OCM's placement controller as shipped, client limits raised
    Shipped,
    /// OCM's placement controller as shipped, with the client limits it comes with
    ShippedDefault,
    /// Berth's taint eviction: nodes and pods instead of clusters and placements
    BerthEvict,
    /// Kubernetes' taint eviction, client limits raised
    Kcm,
    /// Kubernetes' taint eviction, with the client limits it comes with
    KcmDefault,
    /// Berth's node lifecycle: nodes whose leases are renewed, or are not
    BerthLifecycle,
    /// Kubernetes' node lifecycle, client limits raised
    KcmLifecycle,
}

/// What a contender is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Scale {
    /// Clusters and placements.
    Fleet,
    /// Nodes and pods.
    Nodes,
    /// Nodes that say they are there, or fall silent.
    Silence,
}

impl Scale {
    /// Who the others are told in multiples of.
    pub(crate) fn ours(self) -> Contender {
        match self {
            Self::Fleet => Contender::Berth,
            Self::Nodes => Contender::BerthEvict,
            Self::Silence => Contender::BerthLifecycle,
        }
    }

    /// Who has to be left behind: the best that others can be made to do.
    pub(crate) fn peer(self) -> Contender {
        match self {
            Self::Fleet => Contender::Patched,
            Self::Nodes => Contender::Kcm,
            Self::Silence => Contender::KcmLifecycle,
        }
    }
}

impl Contender {
    /// What its column is called.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Berth => "Berth",
            Self::BerthAll => "Berth, all controllers",
            Self::Patched => "OCM patched",
            Self::Shipped => "OCM",
            Self::ShippedDefault => "OCM, default limits",
            Self::BerthEvict => "Berth, taint eviction",
            Self::Kcm => "kube-controller-manager",
            Self::KcmDefault => "kube-controller-manager, default limits",
            Self::BerthLifecycle => "Berth, node lifecycle",
            Self::KcmLifecycle => "kube-controller-manager, node lifecycle",
        }
    }

    /// What it is about.
    pub(crate) fn scale(self) -> Scale {
        match self {
            Self::BerthEvict | Self::Kcm | Self::KcmDefault => Scale::Nodes,
            Self::BerthLifecycle | Self::KcmLifecycle => Scale::Silence,
            Self::Berth | Self::BerthAll | Self::Patched | Self::Shipped | Self::ShippedDefault => {
                Scale::Fleet
            }
        }
    }

    /// Whether it is of other make.
    pub(crate) fn is_peer(self) -> bool {
        !matches!(self, Self::Berth | Self::BerthAll | Self::BerthEvict | Self::BerthLifecycle)
    }

    /// Whether it takes seconds for what takes others moments.
    pub(crate) fn is_slow(self) -> bool {
        matches!(self, Self::Shipped | Self::ShippedDefault)
    }

    /// The program; an absent one says how it is to be had.
    pub(crate) fn program(self) -> anyhow::Result<PathBuf> {
        match self {
            Self::Berth | Self::BerthAll | Self::BerthEvict | Self::BerthLifecycle => process::berth(),
            Self::Patched => Ok(tool("ocm-placement-patched")?),
            Self::Shipped | Self::ShippedDefault => Ok(tool("ocm-placement")?),
            Self::Kcm | Self::KcmDefault | Self::KcmLifecycle => Ok(tool("kube-controller-manager")?),
        }
    }

    fn log(self) -> &'static str {
        match self {
            Self::Berth => "berth",
            Self::BerthAll => "berth-all",
            Self::Patched => "ocm-patched",
            Self::Shipped => "ocm",
            Self::ShippedDefault => "ocm-default",
            Self::BerthEvict => "berth-evict",
            Self::Kcm => "kcm",
            Self::KcmDefault => "kcm-default",
            Self::BerthLifecycle => "berth-lifecycle",
            Self::KcmLifecycle => "kcm-lifecycle",
        }
    }

    /// Alone on its server, so without a leader to elect; and with a port for its health, as in life.
    fn arguments(self, kubeconfig: &str, port: u16) -> Vec<String> {
        let berth = |controllers: &str| -> Vec<String> {
            let flags = ["--leader-elect=false", "--log=warn"].map(str::to_owned);
            let rest = [format!("--controllers={controllers}"), format!("--metrics-bind=127.0.0.1:{port}")];
            ["run".to_owned(), kubeconfig.to_owned()].into_iter().chain(flags).chain(rest).collect()
        };
        let ocm = |limits: &[&str]| {
            let flags =
                ["controller".to_owned(), kubeconfig.to_owned(), "--disable-leader-election".to_owned()];
            let rest = [format!("--listen=127.0.0.1:{port}"), "--namespace=default".to_owned()];
            flags.into_iter().chain(rest).chain(limits.iter().map(ToString::to_string)).collect()
        };
        let kcm = |controllers: &str, limits: &[&str]| -> Vec<String> {
            let controllers = format!("--controllers={controllers}");
            let flags = [kubeconfig, &controllers, "--leader-elect=false", "--secure-port=0"];
            flags.iter().chain(limits).map(ToString::to_string).collect()
        };
        // By itself the eviction controller finds no pods: the index it looks in is made by the other one, which has
        // nothing to do here.
        let evicting = "taint-eviction-controller,daemonset-controller";
        match self {
            Self::Berth => berth("placement-controller"),
            Self::BerthAll => berth("*"),
            Self::Patched | Self::Shipped => ocm(&RAISED),
            Self::ShippedDefault => ocm(&[]),
            Self::BerthEvict => berth("taint-eviction-controller"),
            Self::Kcm => kcm(evicting, &RAISED),
            Self::KcmDefault => kcm(evicting, &[]),
            Self::BerthLifecycle => berth("node-lifecycle-controller"),
            Self::KcmLifecycle => kcm("node-lifecycle-controller", &RAISED),
        }
    }

    /// Starts it on a bed's API server, with more flags than it always has.
    pub(crate) fn start(self, bed: &Bed, program: &Path, flags: &[String]) -> anyhow::Result<Running> {
        let port = Port::reserve()?;
        let kubeconfig = format!("--kubeconfig={}", bed.kubeconfig().display());
        let mut arguments = self.arguments(&kubeconfig, port.number());
        arguments.extend_from_slice(flags);
        let begun = Instant::now();
        let companion = Companion::launch(bed, self.log(), program.to_owned(), arguments)?;
        Ok(Running { contender: self, companion, begun, _port: port })
    }
}

/// A contender at work.
pub(crate) struct Running {
    contender: Contender,
    companion: Companion,
    begun: Instant,
    _port: Port,
}

/// When a contender came to rest, and what it had had of the processors by then.
pub(crate) struct Rest {
    pub(crate) since: Instant,
    pub(crate) processor_seconds: f64,
}

impl Running {
    /// When it was started.
    pub(crate) fn begun(&self) -> Instant {
        self.begun
    }

    /// The process to measure.
    pub(crate) fn pid(&self) -> anyhow::Result<String> {
        Ok(self
            .companion
            .pid()
            .with_context(|| format!("{} does not run", self.contender.title()))?
            .to_string())
    }

    /// What it has had of the processors.
    pub(crate) fn processor_seconds(&self) -> anyhow::Result<f64> {
        process::processor_seconds(&self.pid()?)
    }

    /// The most memory it has had since [`Self::forget_peak`].
    pub(crate) fn peak_megabytes(&self) -> anyhow::Result<f64> {
        process::peak_megabytes(&self.pid()?)
    }

    /// Begins to look for the most memory anew.
    pub(crate) fn forget_peak(&self) -> anyhow::Result<()> {
        process::forget_peak(&self.pid()?)
    }

    /// Fails, with the end of its log, if it has ended by itself.
    pub(crate) fn alive(&mut self) -> anyhow::Result<()> {
        let Some(status) = self.companion.ended() else { return Ok(()) };
        anyhow::bail!("{} ended ({status}):\n{}", self.contender.title(), self.log_end())
    }

    /// The last lines it logged.
    fn log_end(&self) -> String {
        let log = self.companion.log();
        let lines: Vec<_> = log.lines().collect();
        lines[lines.len().saturating_sub(LOG_LINES)..].join("\n")
    }

    /// Waits for something that is seen elsewhere; not for ever, if this contender is gone. What is not seen comes with the
    /// end of the contender's log, which may say why.
    pub(crate) async fn until(
        &mut self,
        seen: impl Future<Output = anyhow::Result<()>>,
    ) -> anyhow::Result<()> {
        let mut seen = std::pin::pin!(seen);
        let mut told = Instant::now();
        loop {
            tokio::select! {
                done = &mut seen => return done.map_err(|error| {
                    anyhow!("{error:#}\n{} logged last:\n{}", self.contender.title(), self.log_end())
                }),
                () = tokio::time::sleep(LOOK) => self.alive()?,
            }
            self.tell("is not seen to be done", &mut told)?;
        }
    }

    /// Says that something takes long, and what the contender has had of the processors: whether it works on it.
    fn tell(&self, what: &str, told: &mut Instant) -> anyhow::Result<()> {
        if told.elapsed() >= WORD {
            *told = Instant::now();
            let (title, used) = (self.contender.title(), self.processor_seconds()?);
            progress(&format!("  {title} {what} yet; {used:.2} s of processor so far"));
        }
        Ok(())
    }

    /// Waits until it rests.
    pub(crate) async fn rest(&mut self) -> anyhow::Result<Rest> {
        self.rest_for(REST).await
    }

    /// Waits until it has rested so long; the beginning of that comes back.
    pub(crate) async fn rest_for(&mut self, long: Duration) -> anyhow::Result<Rest> {
        let look = LOOK.min(long);
        let begun = Instant::now();
        let mut rest = Rest { since: begun, processor_seconds: self.processor_seconds()? };
        let mut before = rest.processor_seconds;
        let mut told = begun;
        while rest.since.elapsed() < long {
            ensure!(begun.elapsed() < REST_PATIENCE, "{} does not rest", self.contender.title());
            let looked = Instant::now();
            tokio::time::sleep(look).await;
            self.alive()?;
            let now = self.processor_seconds()?;
            if now - before >= REST_CORES_MAX * looked.elapsed().as_secs_f64() {
                rest = Rest { since: Instant::now(), processor_seconds: now };
            }
            before = now;
            self.tell("does not rest", &mut told)?;
        }
        Ok(rest)
    }

    /// Ends it as an operator would.
    pub(crate) async fn stop(mut self) -> anyhow::Result<()> {
        Ok(self.companion.stop().await?)
    }
}
