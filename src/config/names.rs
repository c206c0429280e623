//! Names of bots, endpoints, consumers and tokens, and the name that a misspelt one meant.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use super::read::Table;

/// Checks that `name` is `[a-z0-9][a-z0-9_-]{0,62}`: it is a path segment of the API, a label of
/// a metric and a word of the command line, and in none of them needs an escape.
///
/// The error says what is wrong and what to write.
pub fn check(name: &str) -> Result<(), String> {
    let plain = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit();
    let bytes = name.as_bytes();
    let good = bytes.len() <= 63
        && bytes.first().is_some_and(|first| plain(*first))
        && bytes.iter().all(|c| plain(*c) || *c == b'_' || *c == b'-');
    if good {
        return Ok(());
    }
    Err(format!(
        "{} is not a name; write 1 to 63 of a-z, 0-9, _ and -, beginning with a letter or digit",
        quote(name)
    ))
}

/// The names of one kind that are taken, each with the path of its table.
#[derive(Default)]
pub(super) struct Taken(BTreeMap<String, String>);

impl Taken {
    /// Reads the key `name` of `table`; a bad name, none, or one that is taken is a fault.
    pub(super) fn read(&mut self, table: &mut Table<'_>) -> Option<String> {
        let path = table.path.clone();
        table.must("name", "give it one, like name = \"main\"", |node| {
            let name = node.text("\"main\"")?;
            check(name)?;
            match self.0.entry(name.to_owned()) {
                Entry::Occupied(taken) => {
                    Err(format!("the name {name:?} is taken by {}; give it another", taken.get()))
                }
                Entry::Vacant(free) => {
                    free.insert(path);
                    Ok(name.to_owned())
                }
            }
        })
    }
}

/// The candidate that `word` probably meant: the nearest, if no more than a third of its letters
/// differ.
pub(super) fn nearest<'a>(word: &str, candidates: &[&'a str]) -> Option<&'a str> {
    candidates
        .iter()
        .map(|candidate| (distance(word, candidate), *candidate))
        .filter(|(distance, candidate)| *distance <= (candidate.chars().count() / 3).max(1))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// How many letters must be put in, taken out or changed to make `a` into `b` (Levenshtein).
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, to) in b.iter().enumerate() {
            let changed = diagonal + usize::from(from != *to);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

/// `text` in quotes on one line, cut short, for a message to a person.
pub(super) fn quote(text: &str) -> String {
    const LONGEST: usize = 60;
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{:?}...", &text[..end]),
        None => format!("{text:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_good() {
        for name in ["a", "0", "support", "crm-workers", "a_b", &"x".repeat(63)] {
            assert_eq!(check(name), Ok(()), "{name}");
        }
    }

    #[test]
    fn names_that_are_not() {
        for name in ["", "-a", "_a", "A", "a b", "a.b", "ä", "a/b", "a\n", &"x".repeat(64)] {
            assert!(check(name).is_err(), "{name}");
        }
    }

    #[test]
    fn the_nearest_is_found_only_when_near() {
        let keys = ["tolerance", "secrets", "stale", "name"];
        assert_eq!(nearest("tolerence", &keys), Some("tolerance"));
        assert_eq!(nearest("secret", &keys), Some("secrets"));
        assert_eq!(nearest("nmae", &keys), None);
        assert_eq!(nearest("names", &keys), Some("name"));
        assert_eq!(nearest("colour", &keys), None);
    }

    #[test]
    fn a_long_text_is_cut() {
        assert_eq!(quote("a\nb"), r#""a\nb""#);
        assert_eq!(quote(&"ä".repeat(61)), format!("\"{}\"...", "ä".repeat(60)));
    }
}
