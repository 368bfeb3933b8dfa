//! Events in: one watch for each kind, told to the loop.
//!
//! Owns the only readers of the API. A lost server is waited for, and an object that cannot be read is left out with a
//! warning: neither ends anything, and what was known stays known.
//!
//! ```text
//!   reader: list, watch, begin anew     lines: bytes -> lines     news: a line -> Told     vigil: does it work?
//! ```
//!
//! The reader is our own because most of what a controller costs is reading what concerns nobody: an event is read once
//! and in place, without which fields somebody owns. A general reader reads it two or three times, that part too.

mod lines;
mod news;
mod reader;
mod vigil;

use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use self::reader::Reader;
pub(crate) use self::vigil::Vigil;
use crate::serve::Metrics;
use crate::world::{Kind, Known, Told, Visitor};

/// The wait after a watch ended by a defect.
const DEFECT_WAIT: Duration = Duration::from_secs(2);

/// Where watches tell what they see.
#[derive(Clone)]
pub(crate) struct Watches {
    pub(crate) client: Client,
    /// The namespace of this installation.
    pub(crate) home: String,
    pub(crate) told: mpsc::Sender<Told>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) vigil: Arc<Vigil>,
    pub(crate) stop: CancellationToken,
}

impl Watches {
    /// Follows a kind in a task of its own until the process stops.
    pub(crate) fn follow(&self, kind: Kind) {
        kind.visit(Follow(self.clone()));
    }
}

struct Follow(Watches);

impl Visitor for Follow {
    type Output = ();

    fn visit<K: Known>(self) {
        let watches = self.0;
        tokio::spawn(async move {
            // A watch that ended by a defect begins anew with a list: one that is silently missing would be taken for
            // a world in which nothing happens.
            while !watches.stop.is_cancelled() {
                let watch = tokio::spawn(Reader::<K>::new(watches.clone()).run());
                let mut watch = AbortOnDropHandle::new(watch);
                tokio::select! {
                    // Whoever stops ends what the watch tells its news to, and that is no defect.
                    biased;
                    () = watches.stop.cancelled() => return,
                    ended = &mut watch => {
                        watches.metrics.watch_failed(K::KIND);
                        watches.vigil.fails(K::KIND);
                        tracing::error!(kind = %K::KIND, ?ended, "the watch ended; it begins anew");
                    }
                }
                tokio::time::sleep(DEFECT_WAIT).await;
            }
        });
    }
}

#[cfg(test)]
mod tests;
