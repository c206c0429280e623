//! Standard output, whose reader may have had enough.

use tokio::io::AsyncWriteExt;

/// Nobody reads standard output any longer, which is how `| head` ends a command: no failure.
#[derive(Debug, thiserror::Error)]
#[error("nobody reads the output")]
pub(super) struct Closed;

/// Writes `bytes` to standard output, through to its reader.
pub(super) async fn print(bytes: impl AsRef<[u8]>) -> anyhow::Result<()> {
    let mut stdout = tokio::io::stdout();
    let written = match stdout.write_all(bytes.as_ref()).await {
        Ok(()) => stdout.flush().await,
        failed => failed,
    };
    match written {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Err(Closed.into()),
        Err(error) => Err(anyhow::anyhow!(
            "the output cannot be written ({error}): make room for it, or send it elsewhere"
        )),
        Ok(()) => Ok(()),
    }
}
