//! What everybody on the machine had of it while something was measured.

use std::time::Instant;

use berth_bed::Bed;
use kube::Client;
use serde::Serialize;

use super::contender::Running;
use super::requests::{Own, Requests};
use crate::process;

/// An open account.
pub(crate) struct Window {
    begun: Instant,
    accounts: Accounts,
    requests: Requests,
}

/// Processor seconds so far.
#[derive(Clone, Copy)]
struct Accounts {
    contender: f64,
    server: f64,
    backing: f64,
    load: f64,
    machine: f64,
}

/// A closed account.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Spent {
    pub(crate) wall_seconds: f64,
    pub(crate) contender_seconds: f64,
    pub(crate) api_server_seconds: f64,
    pub(crate) etcd_seconds: f64,
    pub(crate) load_generator_seconds: f64,
    /// Processors that others used: what the figure may suffer from.
    pub(crate) foreign_cores: f64,
    pub(crate) requests: Requests,
}

impl Accounts {
    fn now(bed: &Bed, contender: Option<&Running>) -> anyhow::Result<Self> {
        let (mut server, mut backing) = (0.0, 0.0);
        for (name, pid) in bed.pids() {
            let account = if name == "etcd" { &mut backing } else { &mut server };
            *account += process::processor_seconds(&pid.to_string())?;
        }
        Ok(Self {
            contender: contender.map_or(Ok(0.0), Running::processor_seconds)?,
            server,
            backing,
            load: process::own_processor_seconds()?,
            machine: process::machine_seconds()?,
        })
    }
}

impl Window {
    /// Begins; without a contender, one that is started next.
    pub(crate) async fn open(
        bed: &Bed,
        client: &Client,
        contender: Option<&Running>,
    ) -> anyhow::Result<Self> {
        let requests = Requests::so_far(client).await?;
        Ok(Self { begun: Instant::now(), accounts: Accounts::now(bed, contender)?, requests })
    }

    /// Ends; what the load generator wrote in between does not count.
    pub(crate) async fn close(
        self,
        bed: &Bed,
        client: &Client,
        contender: Option<&Running>,
        own: Own,
    ) -> anyhow::Result<Spent> {
        let (then, now) = (self.accounts, Accounts::now(bed, contender)?);
        let wall = self.begun.elapsed().as_secs_f64();
        let requests = Requests::so_far(client).await?.since(&self.requests).without(own);
        let (contender, server) = (now.contender - then.contender, now.server - then.server);
        let (backing, load) = (now.backing - then.backing, now.load - then.load);
        let foreign = now.machine - then.machine - contender - server - backing - load;
        Ok(Spent {
            wall_seconds: wall,
            contender_seconds: contender,
            api_server_seconds: server,
            etcd_seconds: backing,
            load_generator_seconds: load,
            foreign_cores: (foreign / wall).max(0.0),
            requests,
        })
    }
}
