//! What can be configured without a file: one bot, one endpoint, one operator token.

use super::Config;
use super::fault::Place;
use super::read::Reader;
use super::secret::{self, Secret};
use super::telegram::{self, Telegram};
use super::token::{self, Role, Token};
use super::unifyport::Unifyport;

/// Makes the bot named `telegram`.
pub(super) const TELEGRAM_TOKEN: &str = "INBOXD_TELEGRAM_TOKEN";
/// Makes the endpoint named `main`.
pub(super) const UNIFYPORT_SECRET: &str = "INBOXD_UNIFYPORT_SECRET";
/// Makes the operator token named `operator`.
pub(super) const TOKEN: &str = "INBOXD_TOKEN";

/// Adds to what the file configured, once all of it has been read: a variable that the file names
/// is the file's, and makes nothing.
pub(super) fn add(reader: &Reader<'_>, config: &mut Config) {
    if let Some(token) = value(reader, TELEGRAM_TOKEN, telegram::check_token) {
        let bots = &config.telegram;
        if bots.iter().any(|bot| bot.name == "telegram") {
            taken(reader, TELEGRAM_TOKEN, "a bot named \"telegram\"", "token");
        } else if let Some(bot) = bots.iter().find(|bot| bot.token == token) {
            same(reader, TELEGRAM_TOKEN, &format!("the bot {:?}", bot.name));
        } else {
            config.telegram.push(Telegram::new("telegram", token));
        }
    }
    if let Some(secret) = value(reader, UNIFYPORT_SECRET, Ok) {
        if config.unifyport.iter().any(|endpoint| endpoint.name == "main") {
            taken(reader, UNIFYPORT_SECRET, "an endpoint named \"main\"", "secrets");
        } else {
            config.unifyport.push(Unifyport::new("main", vec![secret]));
        }
    }
    if let Some(value) = value(reader, TOKEN, token::check_value) {
        let tokens = &config.tokens;
        if tokens.iter().any(|token| token.name == "operator") {
            taken(reader, TOKEN, "a token named \"operator\"", "value");
        } else if let Some(token) = tokens.iter().find(|token| token.value == value) {
            same(reader, TOKEN, &format!("the token {:?}", token.name));
        } else {
            let name = "operator".to_owned();
            config.tokens.push(Token { name, value, role: Role::Operator });
        }
    }
}

/// The checked value of the variable `name`, if it is set and the file does not name it.
fn value(
    reader: &Reader<'_>,
    name: &str,
    check: impl FnOnce(Secret) -> Result<Secret, String>,
) -> Option<Secret> {
    if !reader.stands_alone(name) {
        return None;
    }
    secret::from_variable(reader, name)
        .and_then(check)
        .map_err(|message| {
            reader.fault(Place::Environment(name.to_owned()), format!("{message}, or unset it"));
        })
        .ok()
}

fn taken(reader: &Reader<'_>, name: &str, thing: &str, key: &str) {
    reader.fault(
        Place::Environment(name.to_owned()),
        format!(
            "this variable makes {thing}, and the file has one too; unset it, rename the file's, \
             or name the variable at the file's {key} as {{ env = \"{name}\" }}"
        ),
    );
}

fn same(reader: &Reader<'_>, name: &str, holder: &str) {
    reader.fault(
        Place::Environment(name.to_owned()),
        format!("this variable has the same value as {holder} of the file; unset it"),
    );
}
