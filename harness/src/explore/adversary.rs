//! The adversary's part: which tricks there are, and what one of them does.
//!
//! He changes a name just before somebody's call that names it: whatever he did earlier with it nobody would
//! have seen. Of a directory that is about to be listed it is a name that nobody has, and that a claim could
//! have.

use mortmain::sys::{Call, Handle, Name, Pid};

use super::choice::{Aim, Choice};
use super::machine::{Machine, State};
use crate::judge::Who;
use crate::simulated::Engine;
use crate::timeline::EventKind;
use crate::world::request::Request;
use crate::world::{Spot, Trick};

/// A claim's name to every design, and nobody's.
const OF_NOBODY: &str = "p-ofnobody2222";

/// The directory and the name that a request is about.
fn aimed_at(request: &Request, aim: Aim) -> Option<(Handle, Name)> {
    match (request, aim) {
        (Request::Call(Call::Rename { dir, to, .. }), Aim::NewName) => Some((*dir, to.clone())),
        (_, Aim::NewName) => None,
        (Request::Call(Call::ReadDir { dir, restart: true }), _) => {
            Some((*dir, Name::fixed(OF_NOBODY)))
        }
        _ => request.named().map(|(dir, name)| (dir, name.clone())),
    }
}

impl<E: Engine> Machine<'_, E> {
    /// The tricks that can be played on a process that is about to make this request.
    pub(super) fn tricks(
        &self,
        state: &State<E::Process>,
        pid: Pid,
        request: &Request,
    ) -> Vec<Choice> {
        let mut tricks = Vec::new();
        for aim in [Aim::Name, Aim::NewName] {
            let Some((dir, name)) = aimed_at(request, aim) else { continue };
            let spot = Spot { pid, dir, name: &name };
            let can = |(_, trick): &(&str, Trick)| state.world.can_trick(spot, *trick);
            let all = Trick::WORDS.into_iter().filter(can);
            tricks.extend(all.map(|(_, trick)| Choice::Trick { pid, aim, trick }));
        }
        tricks
    }

    /// Plays one, which must be possible.
    pub(super) fn play(&mut self, state: &mut State<E::Process>, pid: Pid, aim: Aim, trick: Trick) {
        let aimed_at = self.request(state, pid).and_then(|request| aimed_at(request, aim));
        let (dir, name) = aimed_at.expect("only possible tricks are played");
        let text = state.world.trick(Spot { pid, dir, name: &name }, trick);
        self.tell(Who::ADVERSARY, EventKind::Step, || text);
    }
}
