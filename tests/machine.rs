//! The machine that all scenarios of a process run on: shared by those that can live with a busy one, and had alone by those
//! that measure.

use tokio::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};

static MACHINE: RwLock<()> = RwLock::const_new(());

/// A part of the machine, beside others.
pub async fn shared() -> RwLockReadGuard<'static, ()> {
    MACHINE.read().await
}

/// The whole machine, when all who have a part of it have ended. Who comes later waits.
pub async fn alone() -> RwLockWriteGuard<'static, ()> {
    MACHINE.write().await
}
