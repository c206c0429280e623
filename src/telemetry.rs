//! Logs: what is written, where, and what can never be.
//!
//! Logs go to stderr, because stdout belongs to a command's answer. A failure is logged once,
//! where it is handled; one that lasts, once when it begins and once when it ends ([`Lasting`]).
use std::io::IsTerminal;
use std::panic::PanicHookInfo;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use anyhow::Context;
use tracing::{Level, Metadata};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::{EnvFilter, Layer, Registry, filter, fmt};

/// Environment variable that holds the filter, in `tracing_subscriber::EnvFilter`'s syntax.
pub const FILTER_VARIABLE: &str = "INBOXD_LOG";

/// The shape of a log line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// For a person, with colours on a terminal.
    Human,
    /// One JSON object a line.
    Json,
}

impl LogFormat {
    /// Human when stderr is a terminal, JSON otherwise.
    pub fn of_stderr() -> Self {
        if std::io::stderr().is_terminal() { Self::Human } else { Self::Json }
    }
}

/// Starts logging for the whole process. `filter` is the value of [`FILTER_VARIABLE`], `info`
/// where it is `None` or empty.
///
/// Records of the `log` crate (reqwest, rustls) are not bridged into `tracing`, because at trace
/// level they print URLs, and a Telegram URL holds the bot's token.
///
/// # Errors
/// The filter is malformed, or logging was started already.
pub fn init(format: LogFormat, filter: Option<&str>) -> anyhow::Result<()> {
    let subscriber = subscriber(format, filter, std::io::stderr)?;
    tracing::subscriber::set_global_default(subscriber).context("logging was started already")?;
    std::panic::set_hook(Box::new(log_panic));
    Ok(())
}

fn subscriber<W>(
    format: LogFormat,
    filter: Option<&str>,
    writer: W,
) -> anyhow::Result<impl tracing::Subscriber + Send + Sync>
where
    W: for<'a> fmt::MakeWriter<'a> + Send + Sync + 'static,
{
    let directives = filter.map(str::trim).filter(|text| !text.is_empty()).unwrap_or("info");
    let wanted = EnvFilter::try_new(directives)
        .with_context(|| format!("{FILTER_VARIABLE} is not a log filter: {directives:?}"))?;
    let lines = fmt::layer().with_writer(writer);
    let lines: Box<dyn Layer<_> + Send + Sync> = match format {
        LogFormat::Human => lines.with_ansi(std::io::stderr().is_terminal()).boxed(),
        LogFormat::Json => lines.json().flatten_event(true).boxed(),
    };
    Ok(Registry::default().with(lines).with(wanted).with(filter::filter_fn(is_presentable)))
}

/// Whether a record may be written whatever the filter says.
///
/// Below `info` only our own records are, because libraries print there what passes through
/// them: hyper and h2 headers with bearer tokens and signatures, reqwest URLs with bot tokens,
/// sqlx statements and connection options. A list of such libraries would miss the next one.
fn is_presentable(record: &Metadata<'_>) -> bool {
    let ours = record.target().split("::").next() == Some(env!("CARGO_CRATE_NAME"));
    ours || *record.level() <= Level::INFO
}

/// Logs a panic by its place. A message is shown only if it is a literal of the source, because
/// a formatted one can hold a part of a body (slicing a string at a wrong place prints it).
fn log_panic(panic: &PanicHookInfo<'_>) {
    let message = panic.payload().downcast_ref::<&'static str>().copied().unwrap_or("(not shown)");
    let place = panic.location().map(ToString::to_string).unwrap_or_default();
    tracing::error!(place, message, "a task panicked; please report this");
}

/// A failure that can last: logged once when it begins and once when it ends, from any thread.
#[derive(Debug, Default)]
pub struct Lasting {
    since: Mutex<Option<Instant>>,
}

impl Lasting {
    /// No failure yet.
    pub const fn new() -> Self {
        Self { since: Mutex::new(None) }
    }

    /// The failure is there: `message` says what happened, to what, and what to do. Logged as a
    /// warning unless it was there already.
    pub fn begin(&self, message: impl std::fmt::Display) {
        let mut since = self.since.lock().unwrap_or_else(PoisonError::into_inner);
        if since.is_none() {
            *since = Some(Instant::now());
            tracing::warn!("{message}");
        }
    }

    /// The failure is gone: `message` says what is well again. Logged with its duration unless
    /// it was not there.
    pub fn end(&self, message: impl std::fmt::Display) {
        let since = self.since.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(since) = since {
            tracing::info!(lasted_seconds = since.elapsed().as_secs(), "{message}");
        }
    }

    /// Whether the failure is there.
    pub fn is_lasting(&self) -> bool {
        self.since.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::Arc;

    use super::*;

    #[derive(Clone, Default)]
    struct Buffer(Arc<Mutex<Vec<u8>>>);

    impl Write for Buffer {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    /// The log lines that `work` makes under `filter`.
    fn logged(format: LogFormat, filter: Option<&str>, work: impl FnOnce()) -> Vec<String> {
        let buffer = Buffer::default();
        let writer = buffer.clone();
        let subscriber = subscriber(format, filter, move || writer.clone()).unwrap();
        tracing::subscriber::with_default(subscriber, work);
        let text = String::from_utf8(buffer.0.lock().unwrap().clone()).unwrap();
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn no_filter_opens_a_library_below_info() {
        for filter in ["trace", "hyper=trace", "inboxd=trace,reqwest::connect=trace"] {
            let lines = logged(LogFormat::Json, Some(filter), || {
                tracing::trace!(target: "hyper::proto", "canary");
                tracing::debug!(target: "reqwest::connect", "canary");
                tracing::debug!(target: "inboxd_like::library", "canary");
            });
            assert!(lines.is_empty(), "{lines:?}");
        }
        let lines = logged(LogFormat::Json, Some("trace"), || {
            tracing::trace!(target: "inboxd::store", "ours");
            tracing::info!(target: "sqlx::pool", "theirs");
        });
        assert_eq!(lines.len(), 2);
    }

    #[test]
    fn the_default_is_info_and_a_malformed_filter_is_refused() {
        for filter in [None, Some(""), Some("info")] {
            let lines = logged(LogFormat::Human, filter, || {
                tracing::debug!("hidden");
                tracing::info!("shown");
            });
            assert_eq!(lines.len(), 1);
            assert!(lines[0].contains("shown"));
        }
        let error = subscriber(LogFormat::Human, Some("a=b=c"), std::io::sink).err().unwrap();
        assert!(error.to_string().contains(FILTER_VARIABLE));
    }

    #[test]
    fn a_json_line_is_one_object_with_its_fields() {
        let lines = logged(LogFormat::Json, None, || tracing::info!(bot = "support", "polling"));
        let line: serde_json::Value = serde_json::from_str(&lines[0]).unwrap();
        assert_eq!(line["bot"], "support");
        assert_eq!(line["message"], "polling");
        assert_eq!(line["level"], "INFO");
    }

    #[test]
    fn a_lasting_failure_is_logged_at_its_begin_and_at_its_end() {
        let lines = logged(LogFormat::Human, None, || {
            let outage = Lasting::new();
            outage.end("well");
            outage.begin("store down");
            outage.begin("store down");
            assert!(outage.is_lasting());
            outage.end("well again");
            outage.end("well again");
            assert!(!outage.is_lasting());
        });
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert!(lines[0].contains("store down") && lines[1].contains("well again"));
    }
}
