//! The attachments of a Telegram message.

use serde_json::Value;

use super::super::{Attachment, text};

/// Members that are one file each, and the kind of attachment they make.
const FILES: [(&str, &str); 9] = [
    ("animation", "animation"),
    ("audio", "audio"),
    ("document", "document"),
    // Its picture comes as a photo too; this is what moves.
    ("live_photo", "video"),
    ("sticker", "sticker"),
    ("video", "video"),
    ("video_note", "video"),
    ("voice", "voice"),
    ("voice_note", "voice"),
];

/// Members that are no file, by the channel's own word, and which of theirs names them.
const CARDS: [(&str, &str); 4] =
    [("dice", "emoji"), ("game", "title"), ("invoice", "title"), ("story", "title")];

/// What is attached to a message, or to a block of a rich message. A photo is shown in its largest
/// size only, and what Telegram repeats for old clients only once.
pub(super) fn attachments(holder: &Value) -> Vec<Attachment> {
    let mut found = Vec::new();
    add_files(holder, &mut found);
    for paid in holder["paid_media"]["paid_media"].as_array().into_iter().flatten() {
        add_files(paid, &mut found);
    }
    found.extend(location(holder));
    found.extend(contact(&holder["contact"]));
    found.extend(CARDS.iter().filter_map(|(member, name)| card(member, &holder[*member], name)));
    found
}

fn add_files(holder: &Value, found: &mut Vec<Attachment>) {
    if let Some(largest) = holder["photo"].as_array().and_then(|sizes| sizes.last()) {
        found.extend(file("image", largest));
    }
    for (member, kind) in FILES {
        // An animation comes as a document too.
        if member == "document" && !holder["animation"].is_null() {
            continue;
        }
        found.extend(file(kind, &holder[member]));
    }
}

fn file(kind: &str, file: &Value) -> Option<Attachment> {
    Some(Attachment {
        kind: kind.to_owned(),
        name: text(&file["file_name"]).or_else(|| text(&file["title"])),
        mime: text(&file["mime_type"]),
        size: file["file_size"].as_u64(),
        r#ref: Some(text(&file["file_id"])?),
    })
}

/// A venue comes as a location too.
fn location(holder: &Value) -> Option<Attachment> {
    let location = &holder["location"];
    let degrees = |key: &str| location[key].as_f64();
    Some(Attachment {
        kind: "location".to_owned(),
        name: text(&holder["venue"]["title"]),
        mime: None,
        size: None,
        r#ref: Some(format!("geo:{},{}", degrees("latitude")?, degrees("longitude")?)),
    })
}

fn card(kind: &str, card: &Value, name: &str) -> Option<Attachment> {
    card.is_object().then(|| Attachment {
        kind: kind.to_owned(),
        name: text(&card[name]),
        mime: None,
        size: None,
        r#ref: None,
    })
}

fn contact(contact: &Value) -> Option<Attachment> {
    let number = text(&contact["phone_number"])?;
    Some(Attachment {
        kind: "contact".to_owned(),
        name: super::full_name(contact),
        mime: None,
        size: None,
        r#ref: Some(format!("tel:{number}")),
    })
}
