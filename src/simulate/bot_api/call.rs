//! A request on its way through the server: route, arguments, lint, faults, method.

use super::answer::Reply;
use super::args::Args;
use super::bot::{RequestId, Status};
use super::fault::Action;
use super::journal::{Cause, Received, What};
use super::kind::Allowed;
use super::lint;
use super::request::Incoming;
use super::rules::Seconds;
use super::token::{self, BotKey, Route};
use super::world::{Answer, World};

/// A request that found its bot.
#[derive(Clone, Debug)]
pub struct Call {
    /// The bot.
    pub bot: BotKey,
    /// The method in lower case.
    pub method: String,
    /// Its arguments.
    pub args: Args,
}

/// A request that has been written down and not yet acted on.
#[derive(Debug)]
pub struct Accepted {
    /// Its number.
    pub request: RequestId,
    /// What it asks for, or the answer to one that asks for nothing.
    pub call: Result<Call, Reply>,
    /// The faults that strike it.
    pub actions: Vec<Action>,
}

impl World {
    /// Numbers a request, writes it down, lints it and draws its faults.
    pub fn receive(&mut self, incoming: &Incoming, now: Seconds) -> Accepted {
        let request = self.next_request();
        let (path, query) = incoming.target.split_once('?').unwrap_or((&incoming.target, ""));
        let content_type = incoming.header("content-type").unwrap_or_default();
        let (args, body_fault) = Args::read(query, content_type, &incoming.body);
        let route = Route::read(path);
        let method = match &route {
            Some(route) if route.method.is_empty() => {
                args.get("method").unwrap_or_default().to_ascii_lowercase()
            }
            Some(route) => route.method.clone(),
            None => String::new(),
        };
        let call = self.call(incoming, route, &method, &args);
        let bot = call.as_ref().ok().map(|call| call.bot);
        if self.strict {
            self.lint(request, incoming, &method, &args, body_fault, bot);
        }
        let received = Received {
            request,
            bot,
            method: method.clone(),
            target: incoming.target.clone(),
            args: args.clone(),
            headers: incoming.headers.clone(),
        };
        self.journal.note(now, What::Received(received));
        let actions = self.faults.strike(&method, &args, &mut self.rng);
        for (class, name) in actions.iter().map(Action::named) {
            self.journal.note(now, What::Faulted { request, class, name });
        }
        Accepted { request, call, actions }
    }

    /// The number of the next request.
    pub(super) fn next_request(&mut self) -> RequestId {
        self.last_request += 1;
        self.last_request
    }

    fn call(
        &self,
        incoming: &Incoming,
        route: Option<Route>,
        method: &str,
        args: &Args,
    ) -> Result<Call, Reply> {
        if incoming.verb != "GET" && incoming.verb != "POST" {
            return Err(Reply::not_implemented());
        }
        if incoming.too_large {
            return Err(Reply::error(413, "Request Entity Too Large"));
        }
        let route = route.ok_or_else(|| Reply::error(404, "Not Found"))?;
        let found = self.tokens.get(&(route.token.clone(), route.test_dc)).copied();
        let bot = found.ok_or_else(|| token::rejection(&route.token, self.cloud_front))?;
        Ok(Call { bot, method: method.to_owned(), args: args.clone() })
    }

    fn lint(
        &mut self,
        request: RequestId,
        incoming: &Incoming,
        method: &str,
        args: &Args,
        body_fault: Option<&'static str>,
        bot: Option<BotKey>,
    ) {
        let mut complaints = lint::request(&incoming.headers, args, body_fault);
        if let Some(bot) = bot.and_then(|key| self.bots.get(&key))
            && method == "getupdates"
        {
            complaints.extend(lint::poll(args, &bot.seen));
        }
        let named = complaints.into_iter().map(|text| format!("request {request}: {text}"));
        self.violations.extend(named);
    }

    /// Does what a request asks for. Its answer is among the effects, at once or later.
    pub fn handle(&mut self, request: RequestId, call: &Call, now: Seconds) {
        let key = call.bot;
        let status = self.bot(key, now).status;
        if status == Status::Closing && call.method == "close" {
            let reply = Reply::error(400, "Bad Request: the bot has already been closed");
            return self.answer(Answer { request, at: now, reply });
        }
        let reply = match (status.rejection(), call.method.as_str()) {
            (Some(rejection), _) => rejection,
            (None, "getupdates") => return self.get_updates(key, request, &call.args, now),
            (None, "getme") => self.bot(key, now).profile(),
            (None, "getwebhookinfo") => self.bot(key, now).webhook_info(),
            (None, "setwebhook") => {
                let url = call.args.get("url").unwrap_or_default().to_owned();
                self.set_webhook(key, &url, &call.args, now)
            }
            (None, "deletewebhook") => self.set_webhook(key, "", &call.args, now),
            (None, "close") => self.close(key, now),
            (None, "logout") => {
                self.remove_all(key, Cause::Dropped, now);
                self.bot(key, now).status = Status::LoggedOut;
                Reply::ok("true")
            }
            (None, _) => Reply::error(404, "Not Found: method not found"),
        };
        self.answer(Answer { request, at: now, reply });
    }

    fn set_webhook(&mut self, key: BotKey, url: &str, args: &Args, now: Seconds) -> Reply {
        let bot = self.bot(key, now);
        let unchanged = bot.webhook_url == url;
        if !unchanged && !url.is_empty() {
            if now < bot.next_webhook_at {
                return Reply::too_many(1);
            }
            bot.next_webhook_at = now + 1.0;
        }
        if let Some(allowed) = args.get("allowed_updates").and_then(Allowed::parse) {
            bot.allowed = allowed;
        }
        if args.flag("drop_pending_updates") {
            self.remove_all(key, Cause::Dropped, now);
        }
        if !unchanged {
            self.place_webhook(key, url, now);
        }
        Reply::done(match (url.is_empty(), unchanged) {
            (true, true) => "Webhook is already deleted",
            (true, false) => "Webhook was deleted",
            (false, true) => "Webhook is already set",
            (false, false) => "Webhook was set",
        })
    }

    /// A bot that has been open for less than ten minutes cannot be closed, unless the server
    /// itself is that young.
    fn close(&mut self, key: BotKey, now: Seconds) -> Reply {
        const MINIMUM: Seconds = 600.0;
        let bot = self.bot(key, now);
        let open_for = now - bot.opened_at;
        if open_for < MINIMUM && now > MINIMUM {
            // Between 0 and 600, so the cast is exact enough.
            return Reply::too_many((MINIMUM - open_for).ceil() as u64);
        }
        bot.status = Status::Closing;
        Reply::ok("true")
    }
}
