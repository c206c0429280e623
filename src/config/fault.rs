//! What is wrong with a configuration, and where.

use std::fmt;
use std::path::PathBuf;

/// Where a value of the configuration stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// In the config file.
    File {
        /// The file as it was named.
        file: PathBuf,
        /// The line, counted from 1; none where the fault is about the whole file.
        line: Option<usize>,
        /// The path of the key, such as `unifyport[0].tolerance`; empty for the whole file.
        key: String,
    },
    /// In the environment variable of this name.
    Environment(String),
    /// In no file, because none was read: the path of the key that has its default.
    Default(String),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::File { file, line, key } => {
                write!(f, "{}", file.display())?;
                if let Some(line) = line {
                    write!(f, ":{line}")?;
                }
                if !key.is_empty() {
                    write!(f, " {key}")?;
                }
                Ok(())
            }
            Place::Environment(name) => write!(f, "environment {name}"),
            Place::Default(key) => f.write_str(key),
        }
    }
}

/// One fault: its place, what is wrong, and the remedy, on one line and without secrets.
///
/// It prints like
/// `inboxd.toml:14 unifyport[0].tolerance: "5 minutes" is not a duration; write it like "5m" or
/// "300s"`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {message}")]
pub struct Fault {
    /// Where.
    pub place: Place,
    /// What is wrong and what to do.
    pub message: String,
}

/// Every fault of a configuration, at least one, in the order of the file; those of the
/// environment come last. It prints one a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Faults(Vec<Fault>);

impl Faults {
    /// The faults in their order.
    pub fn list(&self) -> &[Fault] {
        &self.0
    }

    pub(super) fn one(place: Place, message: String) -> Faults {
        Faults(vec![Fault { place, message }])
    }

    /// `Err` with the faults in their order, or `Ok` when there is none.
    pub(super) fn check(mut faults: Vec<Fault>) -> Result<(), Faults> {
        faults.sort_by_key(|fault| match fault.place {
            Place::File { line, .. } => (0, line.unwrap_or(usize::MAX)),
            Place::Default(_) => (1, 0),
            Place::Environment(_) => (2, 0),
        });
        if faults.is_empty() { Ok(()) } else { Err(Faults(faults)) }
    }
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, fault) in self.0.iter().enumerate() {
            if n > 0 {
                writeln!(f)?;
            }
            write!(f, "{fault}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Faults {}
