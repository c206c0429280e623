//! The receipts of a request, and sorting them by what became of each.

use serde::Deserialize;

use crate::work::Receipt;

/// Receipts as a worker sends them. A text that we never gave names no work, now or ever: it is
/// stale like any other that is past.
#[derive(Debug, Deserialize)]
#[serde(from = "Vec<String>")]
pub(super) struct Receipts(Vec<(String, Option<Receipt>)>);

impl From<Vec<String>> for Receipts {
    fn from(texts: Vec<String>) -> Receipts {
        let known = |text: String| {
            let receipt = text.parse().ok();
            (text, receipt)
        };
        Receipts(texts.into_iter().map(known).collect())
    }
}

impl Receipts {
    /// Those that may name work.
    pub(super) fn known(&self) -> Vec<Receipt> {
        self.0.iter().filter_map(|(_, receipt)| *receipt).collect()
    }

    /// Each text with the result of its receipt, given those of [`Receipts::known`] in order.
    pub(super) fn with<T>(self, results: Vec<T>) -> impl Iterator<Item = (String, Option<T>)> {
        let mut results = results.into_iter();
        self.0.into_iter().map(move |(text, receipt)| (text, receipt.and_then(|_| results.next())))
    }

    /// The texts whose result is true, and the others.
    pub(super) fn partition(self, results: Vec<bool>) -> (Vec<String>, Vec<String>) {
        let (yes, no): (Vec<_>, Vec<_>) =
            self.with(results).partition(|(_, result)| *result == Some(true));
        let texts =
            |of: Vec<(String, Option<bool>)>| of.into_iter().map(|(text, _)| text).collect();
        (texts(yes), texts(no))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_go_to_the_receipts_that_were_asked_about() {
        let one = Receipt { sequence: 1, token: [1; 16] };
        let other = Receipt { sequence: 2, token: [2; 16] };
        let texts = ["x".to_owned(), one.to_string(), other.to_string(), one.to_string()];
        let receipts = Receipts::from(texts.to_vec());
        assert_eq!(receipts.known(), [one, other, one]);
        let (yes, no) = receipts.partition(vec![true, false, true]);
        assert_eq!(yes, [one.to_string(), one.to_string()]);
        assert_eq!(no, ["x".to_owned(), other.to_string()]);
    }
}
