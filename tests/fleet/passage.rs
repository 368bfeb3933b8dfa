//! A way to the API server that can be cut, as a network between two machines can.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use berth_bed::Bed;
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinHandle,
};

/// Carries connections to the API server of a bed. While it is cut they stay open and nothing comes through, in either
/// direction; what was under way arrives when it is mended.
pub(crate) struct Passage {
    kubeconfig: PathBuf,
    is_cut: watch::Sender<bool>,
    callers: Arc<AtomicU64>,
    porter: JoinHandle<()>,
}

impl Passage {
    pub(crate) async fn open(bed: &Bed) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = bed.url().strip_prefix("https://").unwrap().to_owned();
        let kubeconfig = bed.folder().join(format!("kubeconfig-{port}"));
        let text = fs::read_to_string(bed.kubeconfig()).unwrap();
        assert!(text.contains(bed.url()), "{text}");
        fs::write(&kubeconfig, text.replace(bed.url(), &format!("https://127.0.0.1:{port}"))).unwrap();
        let (is_cut, cut) = watch::channel(false);
        let callers = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&callers);
        let porter = tokio::spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                count.fetch_add(1, Ordering::Relaxed);
                let (server, cut) = (server.clone(), cut.clone());
                tokio::spawn(async move {
                    let Ok(far) = TcpStream::connect(server).await else { return };
                    let ((near_in, near_out), (far_in, far_out)) = (near.into_split(), far.into_split());
                    tokio::join!(carry(near_in, far_out, cut.clone()), carry(far_in, near_out, cut));
                });
            }
        });
        Self { kubeconfig, is_cut, callers, porter }
    }

    pub(crate) fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// How many connections were asked for so far.
    pub(crate) fn callers(&self) -> u64 {
        self.callers.load(Ordering::Relaxed)
    }

    pub(crate) fn cut(&self) {
        self.is_cut.send_replace(true);
    }

    pub(crate) fn mend(&self) {
        self.is_cut.send_replace(false);
    }
}

impl Drop for Passage {
    fn drop(&mut self) {
        self.porter.abort();
    }
}

async fn carry(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    mut cut: watch::Receiver<bool>,
) {
    let mut bytes = vec![0; 16 * 1024];
    while let Ok(count @ 1..) = from.read(&mut bytes).await {
        if cut.wait_for(|is_cut| !is_cut).await.is_err() || to.write_all(&bytes[..count]).await.is_err() {
            return;
        }
    }
    // Whoever ended it; the other side hears of it.
    let _ = to.shutdown().await;
}
