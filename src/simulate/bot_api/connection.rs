//! One connection: request after request, each with the faults that strike it.

use std::io;
use std::pin::pin;
use std::sync::Arc;

use bytes::Bytes;
use tokio::net::TcpStream;

use super::answer::Reply;
use super::barrier::{Arrival, Point};
use super::bot::RequestId;
use super::call::{Accepted, Call};
use super::fault::{Action, Api, Net};
use super::journal::{Answered, What};
use super::outgoing::{self, Outgoing};
use super::request::Incoming;
use super::rules::Seconds;
use super::shared::Shared;
use super::token::BotKey;
use super::wire::Wire;
use super::world::Answer;

/// Serves a connection until either side closes it.
pub(super) async fn run(shared: Arc<Shared>, stream: Arc<TcpStream>) {
    let mut connection = Connection { wire: Wire::new(stream), shared, gone: false };
    while let Ok(Some(incoming)) = Incoming::read(&mut connection.wire).await {
        let accepted = connection.shared.act(|world, now| world.receive(&incoming, now));
        let mut open = Open { shared: Arc::clone(&connection.shared), request: accepted.request };
        let goes_on = connection.serve(accepted).await;
        open.request = 0;
        drop(open);
        if !goes_on || connection.gone || incoming.closes() {
            return;
        }
    }
}

/// A request that is not answered yet. Dropped with its connection, it says that it is over.
struct Open {
    shared: Arc<Shared>,
    /// 0 once it is answered.
    request: RequestId,
}

impl Drop for Open {
    fn drop(&mut self) {
        let request = self.request;
        if request != 0 {
            self.shared.act(|world, now| world.journal.note(now, What::ClientGone { request }));
        }
    }
}

struct Connection {
    wire: Wire,
    shared: Arc<Shared>,
    /// The client has closed its side.
    gone: bool,
}

impl Connection {
    /// Does one request; `false` if the connection ends with it.
    async fn serve(&mut self, accepted: Accepted) -> bool {
        let Accepted { request, call, actions } = accepted;
        self.stop_at(Point::Received, request, &actions).await;
        if let Ok(call) = &call {
            let mut gates = self.shared.gates.subscribe();
            let open = gates.wait_for(|closed| !closed.contains(&call.bot));
            let open = async { open.await.map(drop) };
            // An error says that the fake is shutting down.
            let _ = self.attend(request, open).await;
        }
        let net = actions.iter().find_map(|action| match action {
            Action::Net(net) => Some(*net),
            _ => None,
        });
        if self.turned_away(request, net).await {
            self.note_answered(request, 0, Vec::new(), false);
            return false;
        }
        let Some(answer) = self.answer(request, &call, &actions, net).await else { return false };
        self.attend_until(request, answer.at).await;
        self.stop_at(Point::BeforeReply, request, &actions).await;
        let out = outgoing::outgoing(&answer.reply, &actions);
        let genuine = matches!(answer.reply, Reply::Updates(_));
        let bot = call.as_ref().ok().map(|call| call.bot);
        for arrival in stops(&actions, Point::AfterReply) {
            self.close_gate(request, bot, arrival.clone());
        }
        let whole = self.write(request, &out, &actions, net).await;
        if let (true, Some(bot)) = (genuine, bot) {
            self.shared.act(|world, _| world.settle(bot, request, whole));
        }
        self.note_answered(request, out.status, out.updates, whole);
        for arrival in stops(&actions, Point::AfterReply) {
            arrival.reach(request);
        }
        self.stop_at(Point::FullBody, request, &actions).await;
        if let (Some(Net::Twice), Ok(call)) = (net, call) {
            self.repeat(call);
        }
        match net {
            Some(Net::ResetInHead(_) | Net::ResetInBody(_)) => {
                self.wire.reset();
                false
            }
            Some(Net::StallInBody(_)) => {
                self.until_gone(request).await;
                false
            }
            _ => out.keep_alive,
        }
    }

    /// Faults that strike before the request is looked at; `true` ends the connection.
    async fn turned_away(&mut self, request: RequestId, net: Option<Net>) -> bool {
        match net {
            Some(Net::Reset) => self.wire.reset(),
            Some(Net::Close) => {}
            Some(Net::Blackhole) => self.until_gone(request).await,
            Some(Net::Down(lasting)) => {
                self.shared.go_down(lasting).await;
                self.wire.reset();
            }
            _ => return false,
        }
        true
    }

    /// What the request is answered, and when.
    async fn answer(
        &mut self,
        request: RequestId,
        call: &Result<Call, Reply>,
        actions: &[Action],
        net: Option<Net>,
    ) -> Option<Answer> {
        let now = self.shared.now();
        let call = match call {
            Ok(call) => call,
            Err(reply) => return Some(Answer { request, at: now, reply: reply.clone() }),
        };
        if let Some(Net::Overtaken) = net {
            let mut processed = self.shared.processed.subscribe();
            let _ = self.attend(request, async { processed.changed().await }).await;
        }
        for action in actions {
            if let Action::Queue(change) = action {
                self.shared.act(|world, now| world.change(call.bot, change, now));
            }
            if let Action::Api(Api::Conflict(text)) = action {
                let reply = Reply::error(409, text);
                let at = self.shared.act(|world, now| world.conflict_at(call.bot, now));
                return Some(Answer { request, at, reply });
            }
        }
        let canned = actions.iter().find_map(|action| Some((action, outgoing::canned(action)?)));
        if let Some((action, reply)) = &canned
            && !matches!(action, Action::AfterProcessing(_))
        {
            return Some(Answer { request, at: now, reply: reply.clone() });
        }
        let shared = Arc::clone(&self.shared);
        let mut answer = self.attend(request, shared.process(request, call)).await?;
        if let Some((_, reply)) = canned {
            answer.reply = reply;
        }
        if let Some(Net::Late(by)) = net {
            answer.at = answer.at.max(self.shared.now()) + by;
        }
        Some(answer)
    }

    /// Writes as much of the answer as the faults let through; whether that was all of it, and
    /// of use to a client.
    async fn write(
        &mut self,
        request: RequestId,
        out: &Outgoing,
        actions: &[Action],
        net: Option<Net>,
    ) -> bool {
        let (head, body) = (out.head.len(), out.body.len());
        let bytes: Bytes = [out.head.as_ref(), out.body.as_ref()].concat().into();
        let end = match net {
            Some(Net::ResetInHead(at)) => at.min(head),
            Some(Net::ResetInBody(at) | Net::StallInBody(at)) => head + at.min(body),
            _ => bytes.len(),
        };
        let half = (head + body / 2).min(end);
        let written = async {
            if stops(actions, Point::HalfBody).next().is_some() {
                self.send(request, &bytes[..half], net).await?;
                self.stop_at(Point::HalfBody, request, actions).await;
                self.note(What::Answering { request });
                self.send(request, &bytes[half..end], net).await
            } else {
                self.note(What::Answering { request });
                self.send(request, &bytes[..end], net).await
            }
        }
        .await;
        written.is_ok() && end == bytes.len() && out.readable && !self.gone
    }

    async fn send(&mut self, request: RequestId, bytes: &[u8], net: Option<Net>) -> io::Result<()> {
        let Some(Net::Slow(size, pause)) = net else { return self.wire.write(bytes).await };
        for piece in bytes.chunks(size.max(1)) {
            let at = self.shared.now() + pause;
            self.attend_until(request, at).await;
            self.wire.write(piece).await?;
        }
        Ok(())
    }

    /// Waits for `future` and notices meanwhile if the client goes away; the request lives on.
    async fn attend<T>(&mut self, request: RequestId, future: impl Future<Output = T>) -> T {
        let mut future = pin!(future);
        loop {
            if self.gone {
                return future.await;
            }
            tokio::select! {
                biased;
                output = &mut future => return output,
                more = self.wire.read_more() => if !more { self.lose(request) }
            }
        }
    }

    async fn attend_until(&mut self, request: RequestId, at: Seconds) {
        let shared = Arc::clone(&self.shared);
        if at > shared.now() {
            self.attend(request, shared.sleep_until(at)).await;
        }
    }

    async fn until_gone(&mut self, request: RequestId) {
        while !self.gone {
            if !self.wire.read_more().await {
                self.lose(request);
            }
        }
    }

    fn lose(&mut self, request: RequestId) {
        self.gone = true;
        self.note(What::ClientGone { request });
    }

    async fn stop_at(&mut self, point: Point, request: RequestId, actions: &[Action]) {
        for arrival in stops(actions, point) {
            arrival.reach(request);
            self.attend(request, arrival.released()).await;
        }
    }

    /// Makes the bot's next request wait until `arrival` is released.
    fn close_gate(&self, request: RequestId, bot: Option<BotKey>, arrival: Arrival) {
        let Some(bot) = bot else { return arrival.reach(request) };
        self.shared.gates.send_modify(|closed| closed.push(bot));
        let shared = Arc::clone(&self.shared);
        self.shared.tasks.spawn(async move {
            tokio::select! {
                () = arrival.released() => {}
                () = shared.stop.cancelled() => {}
            }
            shared.gates.send_modify(|closed| {
                if let Some(at) = closed.iter().position(|closed| *closed == bot) {
                    closed.swap_remove(at);
                }
            });
        });
    }

    /// Runs a request again behind the next one, with nobody to answer, as a proxy that repeats
    /// it would: a client whose next poll is held then gets a 409 of its own making.
    fn repeat(&self, call: Call) {
        let shared = Arc::clone(&self.shared);
        let mut processed = shared.processed.subscribe();
        self.shared.tasks.spawn(async move {
            tokio::select! {
                _ = processed.changed() => shared.act(|world, now| {
                    let request = world.next_request();
                    world.handle(request, &call, now);
                }),
                () = shared.stop.cancelled() => {}
            }
        });
    }

    fn note(&self, what: What) {
        self.shared.act(|world, now| world.journal.note(now, what));
    }

    fn note_answered(
        &self,
        request: RequestId,
        status: u16,
        updates: Vec<(i32, Bytes)>,
        whole: bool,
    ) {
        self.note(What::Answered(Answered { request, status, updates, whole }));
    }
}

fn stops(actions: &[Action], point: Point) -> impl Iterator<Item = &Arrival> {
    actions.iter().filter_map(move |action| match action {
        Action::Stop(arrival) if arrival.point() == point => Some(arrival),
        _ => None,
    })
}
