//! The first words on a connection: they must come in time.
//!
//! Which version of HTTP a client speaks is told by its first bytes, and HTTP keeps no time before it knows. Owns the
//! clock until then, and passes everything through afterwards.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;

/// What a client of HTTP/2 begins with; anything else is HTTP/1.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// A stream whose client has to begin before a deadline.
#[derive(Debug)]
pub(super) struct Opening<S> {
    stream: S,
    /// None once the client has begun.
    waiting: Option<Waiting>,
}

#[derive(Debug)]
struct Waiting {
    /// How much of the preface was read.
    read: usize,
    deadline: Pin<Box<Sleep>>,
}

impl<S> Opening<S> {
    pub(super) fn new(stream: S, patience: Duration) -> Self {
        let deadline = Box::pin(tokio::time::sleep(patience));
        Self { stream, waiting: Some(Waiting { read: 0, deadline }) }
    }
}

impl Waiting {
    /// Takes in what was read; whether it tells the version.
    fn decides(&mut self, bytes: &[u8]) -> bool {
        let expected = &PREFACE[self.read..];
        self.read += bytes.len().min(expected.len());
        !expected.starts_with(bytes) || self.read == PREFACE.len()
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Opening<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buffer.filled().len();
        let read = Pin::new(&mut this.stream).poll_read(context, buffer);
        let Some(waiting) = &mut this.waiting else { return read };
        if read.is_ready() {
            if waiting.decides(&buffer.filled()[before..]) {
                this.waiting = None;
            }
            return read;
        }
        waiting.deadline.as_mut().poll(context).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Opening<S> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decides(parts: &[&[u8]]) -> bool {
        let mut waiting = Waiting { read: 0, deadline: Box::pin(tokio::time::sleep(Duration::ZERO)) };
        parts.iter().any(|part| waiting.decides(part))
    }

    #[tokio::test]
    async fn a_client_has_begun_when_its_version_is_known() {
        assert!(!decides(&[]) && !decides(&[b"P", b"RI * HT"]) && !decides(&[&PREFACE[..23]]));
        assert!(
            decides(&[PREFACE])
                && decides(&[&PREFACE[..5], &PREFACE[5..]])
                && decides(&[&[PREFACE, b"more"].concat()])
        );
        assert!(decides(&[b"GET"]) && decides(&[b"PATCH"]) && decides(&[b"P", b"UT"]));
    }
}
