//! The environment variables, as a value that a test can make.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;

/// Environment variables: the real ones of the process, or made ones.
///
/// `Debug` shows names only, because the values are secrets more often than not.
#[derive(Clone, Default)]
pub struct Env(BTreeMap<String, OsString>);

impl Env {
    /// Those of this process. A variable whose name is not UTF-8 is left out, because no key of
    /// the configuration could name it.
    pub fn process() -> Env {
        std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value)))
            .collect()
    }

    /// The value of `name`, possibly empty.
    pub fn get(&self, name: &str) -> Option<&OsStr> {
        self.0.get(name).map(OsString::as_os_str)
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }
}

impl<N: Into<String>, V: Into<OsString>> FromIterator<(N, V)> for Env {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(variables: I) -> Env {
        Env(variables.into_iter().map(|(name, value)| (name.into(), value.into())).collect())
    }
}

impl<const N: usize> From<[(&str, &str); N]> for Env {
    fn from(variables: [(&str, &str); N]) -> Env {
        variables.into_iter().collect()
    }
}

impl fmt::Debug for Env {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}
