//! The plain text of a rich message.
//!
//! Since Bot API 10.1 a rich message has no `text`: it is a list of blocks, which hold rich text (a
//! string, a list of rich texts, or an object with one inside) and further blocks.

use serde_json::Value;

use super::super::Attachment;

/// What is still to be written, the next last.
enum Part<'a> {
    /// Rich text, written on the line as it goes.
    Inline(&'a Value),
    /// A block or a list of blocks, on lines of its own.
    Block(&'a Value),
    /// Ends the line, if there is anything on it.
    Break,
    /// Stands between the cells of a table.
    Tab,
}

/// Writes blocks as plain text, a line each, and collects what is attached to them. `None` if they
/// say nothing. Blocks and texts of types yet unknown are read by the same members.
pub(super) fn flatten(blocks: &Value, attachments: &mut Vec<Attachment>) -> Option<String> {
    let mut out = String::new();
    let mut parts = vec![Part::Block(blocks)];
    while let Some(part) = parts.pop() {
        match part {
            Part::Inline(Value::String(text)) => out.push_str(text),
            Part::Inline(Value::Array(texts)) => {
                parts.extend(texts.iter().rev().map(Part::Inline));
            }
            Part::Inline(text @ Value::Object(_)) => {
                // A caption is an object too, with a credit.
                if !text["credit"].is_null() {
                    parts.extend([Part::Inline(&text["credit"]), Part::Break]);
                }
                parts.extend(
                    ["alternative_text", "expression", "text"].map(|key| Part::Inline(&text[key])),
                );
            }
            Part::Block(Value::Array(blocks)) => {
                parts.extend(blocks.iter().rev().map(Part::Block));
            }
            Part::Block(block @ Value::Object(_)) => {
                attachments.extend(super::media::attachments(block));
                push_block(block, &mut parts);
            }
            Part::Block(text @ Value::String(_)) => {
                parts.extend([Part::Break, Part::Inline(text)]);
            }
            Part::Break => {
                if !out.is_empty() && !out.ends_with('\n') {
                    out.push('\n');
                }
            }
            Part::Tab => out.push('\t'),
            Part::Inline(_) | Part::Block(_) => {}
        }
    }
    let text = out.trim_end();
    (!text.is_empty()).then(|| text.to_owned())
}

/// Puts the members of a block on the stack, the last to be read first.
fn push_block<'a>(block: &'a Value, parts: &mut Vec<Part<'a>>) {
    for key in ["credit", "caption"] {
        parts.extend([Part::Break, Part::Inline(&block[key])]);
    }
    for row in block["cells"].as_array().into_iter().flatten().rev() {
        parts.push(Part::Break);
        let cells = row.as_array().map(Vec::as_slice).unwrap_or_default();
        for (column, cell) in cells.iter().enumerate().rev() {
            parts.push(Part::Inline(cell));
            if column > 0 {
                parts.push(Part::Tab);
            }
        }
    }
    for key in ["items", "blocks"] {
        parts.extend([Part::Break, Part::Block(&block[key])]);
    }
    for key in ["summary", "alternative_text", "expression", "text"] {
        parts.extend([Part::Break, Part::Inline(&block[key])]);
    }
    parts.push(Part::Break);
}
