//! What a careful client never sends, whether or not the server would forgive it.

use super::args::{Args, lenient_integer};
use super::bot::Seen;
use super::kind::KINDS;
use super::rules::ID_END;

/// Complaints about one `getUpdates` request.
pub(super) fn poll(args: &Args, seen: &Seen) -> Vec<String> {
    let mut complaints = Vec::new();
    for name in ["offset", "limit", "timeout"] {
        if let Some(text) = args.get(name).filter(|text| !is_canonical(text)) {
            complaints.push(format!("{name}={text:?} is not a canonical 32-bit integer"));
        }
    }
    if let Some(offset) = args.get("offset").map(lenient_integer) {
        complaints.extend(offset_complaint(offset, seen));
    }
    if let Some(list) = args.get("allowed_updates") {
        complaints.extend(allowed_complaint(list));
    }
    complaints
}

/// Complaints about any request, by its headers (names in lower case), arguments and body.
pub(super) fn request(
    headers: &[(String, String)],
    args: &Args,
    body_fault: Option<&'static str>,
) -> Vec<String> {
    let mut complaints: Vec<String> = headers
        .iter()
        .filter(|(name, _)| name == "referer" || name == "cookie")
        .map(|(name, _)| format!("the request has a {name} header"))
        .collect();
    complaints.extend(body_fault.map(str::to_owned));
    for (nth, (name, _)) in args.iter().enumerate() {
        if args.iter().take(nth).any(|(earlier, _)| earlier == name) {
            complaints.push(format!("the argument {name} is given twice"));
        }
    }
    complaints
}

fn is_canonical(text: &str) -> bool {
    text.parse::<i32>().is_ok_and(|value| value.to_string() == text)
}

/// A start's first call may hold whatever the store says; every later offset has to follow from
/// a batch: of this sequence, or the very last one even if the sequence has moved since.
fn offset_complaint(offset: i32, seen: &Seen) -> Option<String> {
    if !(0..ID_END).contains(&offset) {
        return Some(format!("offset={offset} is outside 0 … {}", ID_END - 1));
    }
    let known = seen.highest.max(seen.last_batch).map_or(0, |id| id + 1);
    (seen.called && offset > known)
        .then(|| format!("offset={offset} is above {known}, the highest that a batch justifies"))
}

fn allowed_complaint(list: &str) -> Option<String> {
    let Ok(names) = serde_json::from_str::<Vec<String>>(list) else {
        return Some(format!("allowed_updates={list:?} is not an array of strings"));
    };
    names
        .iter()
        .find(|name| !KINDS.contains(&name.as_str()))
        .map(|name| format!("allowed_updates names {name:?}, which is no kind of update"))
}
