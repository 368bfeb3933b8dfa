//! What a client still sends after it was answered.
//!
//! A request may be refused before its body is read to the end. A connection that is cut at that point takes the answer
//! with it: the client sees a broken connection or a reset stream, not why it was refused. Owns reading on and throwing
//! away, within bounds, so that the answer arrives. Never keeps a byte of it.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt as _;
use tokio::runtime::Handle;

use super::talk::Open;

/// How much is thrown away at most.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    pub(super) bytes: usize,
    pub(super) time: Duration,
}

/// A body on its way in. What nobody reads of it is thrown away.
#[derive(Debug)]
pub(super) struct Sent<B: Body<Data = Bytes> + Send + Unpin + 'static> {
    /// None once it has ended or failed.
    body: Option<B>,
    bounds: Bounds,
    open: Option<Arc<Open>>,
}

impl<B: Body<Data = Bytes> + Send + Unpin + 'static> Sent<B> {
    pub(super) fn new(body: B, bounds: Bounds, open: Arc<Open>) -> Self {
        Self { body: Some(body), bounds, open: Some(open) }
    }
}

impl<B: Body<Data = Bytes> + Send + Unpin + 'static> Body for Sent<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let this = self.get_mut();
        let Some(body) = &mut this.body else { return Poll::Ready(None) };
        let frame = Pin::new(body).poll_frame(context);
        if matches!(frame, Poll::Ready(None | Some(Err(_)))) {
            this.body = None;
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map_or_else(|| SizeHint::with_exact(0), Body::size_hint)
    }
}

impl<B: Body<Data = Bytes> + Send + Unpin + 'static> Drop for Sent<B> {
    fn drop(&mut self) {
        let Some(body) = self.body.take().filter(|body| !body.is_end_stream()) else { return };
        let (bounds, open) = (self.bounds, self.open.take());
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(async move {
                // Past the time the client is not told more than it was.
                let _ = tokio::time::timeout(bounds.time, discard(body, bounds.bytes)).await;
                drop(open);
            });
        }
    }
}

async fn discard<B: Body<Data = Bytes> + Unpin>(mut body: B, bytes_max: usize) {
    let mut left = bytes_max;
    while let Some(Ok(frame)) = body.frame().await {
        match left.checked_sub(frame.data_ref().map_or(0, Bytes::len)) {
            Some(less) => left = less,
            None => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::StreamBody;
    use tokio::sync::mpsc;

    use super::*;
    use crate::serve::talk::Talk;

    type Frames = mpsc::Sender<Result<Frame<Bytes>, std::io::Error>>;

    fn sent(bytes: usize) -> (Frames, impl Body<Data = Bytes, Error = std::io::Error> + Unpin) {
        let (sender, receiver) = mpsc::channel(1);
        let stream = Box::pin(futures::stream::unfold(receiver, async |mut receiver| {
            receiver.recv().await.map(|frame| (frame, receiver))
        }));
        let bounds = Bounds { bytes, time: Duration::from_mins(1) };
        (sender, Sent::new(StreamBody::new(stream), bounds, Talk::new().begin()))
    }

    fn data() -> Frame<Bytes> {
        Frame::data(Bytes::from_static(b"12345"))
    }

    #[tokio::test]
    async fn what_is_left_of_a_body_is_thrown_away_up_to_a_bound() {
        let (sender, mut body) = sent(10);
        sender.send(Ok(data())).await.unwrap();
        assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), "12345");
        drop(body);
        for _ in 0..3 {
            sender.send(Ok(data())).await.unwrap();
        }
        sender.closed().await;
    }

    #[tokio::test]
    async fn a_body_that_was_read_leaves_nothing() {
        let (sender, body) = sent(0);
        let read = tokio::spawn(async move { body.collect().await.unwrap().to_bytes() });
        sender.send(Ok(data())).await.unwrap();
        sender.send(Ok(data())).await.unwrap();
        drop(sender);
        assert_eq!(read.await.unwrap(), "1234512345");
    }
}
