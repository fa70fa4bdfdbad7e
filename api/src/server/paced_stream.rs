//! A connection whose client must read at a minimum speed: a client that stops reading, or reads a byte now and then,
//! would keep the memory and the connections behind its response forever.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};

/// Maximum time without reading, and the most time that a client saves up by reading faster.
const PATIENCE: Duration = Duration::from_mins(1);
/// Minimum speed in bytes per second while we wait for the client: a tenth of a slow mobile connection.
const PACE: f64 = 4096.0;

/// Fails to write once the client has read too little for too long. Only time in which we wait for the client counts.
pub struct PacedStream<S> {
    stream: S,
    /// How long we may still wait.
    credit: Duration,
    waiting: Option<Waiting>,
}

struct Waiting {
    since: Instant,
    end: Pin<Box<Sleep>>,
}

impl<S> PacedStream<S> {
    pub const fn new(stream: S) -> Self {
        Self { stream, credit: PATIENCE, waiting: None }
    }

    /// Counts an attempt to write.
    fn count(
        &mut self,
        attempt: Poll<io::Result<usize>>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        match attempt {
            Poll::Ready(written) => {
                if let Some(Waiting { since, .. }) = self.waiting.take() {
                    self.credit = self.credit.saturating_sub(since.elapsed());
                }
                if let Ok(bytes) = &written {
                    self.credit += Duration::from_secs_f64(*bytes as f64 / PACE);
                    self.credit = self.credit.min(PATIENCE);
                }
                Poll::Ready(written)
            }
            Poll::Pending => {
                let credit = self.credit;
                let waiting = self.waiting.get_or_insert_with(|| {
                    let since = Instant::now();
                    Waiting { since, end: Box::pin(sleep_until(since + credit)) }
                });
                waiting.end.as_mut().poll(context).map(|()| Err(io::ErrorKind::TimedOut.into()))
            }
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for PacedStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for PacedStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let attempt = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.count(attempt, context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let attempt = Pin::new(&mut self.stream).poll_write_vectored(context, bytes);
        self.count(attempt, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

    use super::*;

    /// Returns a stream that may wait for so long, and its client.
    fn stream(credit: Duration) -> (PacedStream<DuplexStream>, DuplexStream) {
        let (server, client) = tokio::io::duplex(1 << 10);
        (PacedStream { credit, ..PacedStream::new(server) }, client)
    }

    #[tokio::test]
    async fn a_client_that_reads_nothing_is_cut_off() {
        let (mut server, _client) = stream(Duration::from_millis(100));
        let cut_off = server.write_all(&[7; 2 << 10]).await.expect_err("nobody reads");
        assert_eq!(cut_off.kind(), io::ErrorKind::TimedOut);
    }

    #[tokio::test]
    async fn a_client_that_reads_too_slowly_is_cut_off() {
        let (mut server, mut client) = stream(Duration::from_millis(100));
        let reads = async {
            let mut byte = [0; 1];
            while client.read_exact(&mut byte).await.is_ok() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        let body = vec![7; 100 << 10];
        tokio::select! {
            sent = server.write_all(&body) => {
                assert_eq!(sent.expect_err("a byte at a time").kind(), io::ErrorKind::TimedOut);
            }
            () = reads => panic!("the client gave up first"),
        }
    }

    #[tokio::test]
    async fn a_slow_client_gets_everything_and_a_pause_between_responses_does_not_count() {
        let (mut server, mut client) = stream(Duration::from_millis(300));
        let body = vec![7; 12 << 10];
        let reads = async {
            let mut left = 2 * body.len();
            let mut chunk = [0; 1 << 10];
            while left > 0 {
                // Four times the pace.
                tokio::time::sleep(Duration::from_millis(60)).await;
                left -= client.read(&mut chunk).await.expect("it goes on");
            }
        };
        let writes = async {
            server.write_all(&body).await.expect("it is sent");
            tokio::time::sleep(Duration::from_millis(600)).await;
            server.write_all(&body).await.expect("it is sent");
        };
        tokio::join!(reads, writes);
    }
}
