//! The controller in a small world: it looks, writes, reads again and acts, and may crash in between.

use berth_engine::replace::{Act, Cause, Memory, Phase, Step, Verdict, confirm};

use super::super::fixtures::restored;
use super::world::{ANY, Broken, Event, Hand, KEYS, Life, PERMANENT, State, Telling, World, name};

impl World {
    fn is_confirmed(&self, state: &State, member: usize, act: &Act) -> bool {
        self.is_careless
            || self.ask(state, &state.memories, |view, entries| {
                confirm(act, &name(member), self.policy(state), view, entries, state.now).is_ok()
            })
    }

    /// All that the controller can do next.
    pub(super) fn controller(&self, state: &State, next: &mut Vec<(Event, State)>) -> Result<(), Broken> {
        let Some(hand) = &state.hand else {
            let looked = self.plan(state, &state.memories);
            for (member, step) in looked.steps.into_iter().enumerate() {
                if !step.is_changed && step.acts.is_empty() {
                    continue;
                }
                // What is only seen and leads to nothing yet is written at once: nothing depends on when.
                let is_seen_only =
                    step.acts.is_empty() && step.memory.course == state.memories[member].course;
                let hand = Hand { member, step, is_written: false };
                let after = if is_seen_only {
                    self.write(state, &hand)?.1
                } else {
                    State { hand: Some(hand), ..state.clone() }
                };
                next.push((Event::Look(member), after));
            }
            return Ok(());
        };
        next.push((Event::Crash, State { hand: None, ..state.clone() }));
        if !hand.is_written {
            next.push(self.write(state, hand)?);
            return Ok(());
        }
        let mut rest = hand.step.acts.clone();
        let act = rest.remove(0);
        let mut after = state.clone();
        if self.is_confirmed(state, hand.member, &act) {
            self.act(&mut after, hand.member, &act)?;
            after.hand = (!rest.is_empty()).then(|| Hand {
                member: hand.member,
                step: Step { acts: rest, ..hand.step.clone() },
                is_written: true,
            });
            next.push((Event::Act(act), after));
        } else {
            after.hand = None;
            next.push((Event::Refuse(act), after));
        }
        Ok(())
    }

    fn write(&self, state: &State, hand: &Hand) -> Result<(Event, State), Broken> {
        let mut after = state.clone();
        let mut acts = hand.step.acts.clone();
        if acts.first() == Some(&Act::Begin) {
            // The object that is created is both what is written and what is done.
            acts.remove(0);
            if !self.is_confirmed(state, hand.member, &Act::Begin) {
                after.hand = None;
                return Ok((Event::Refuse(Act::Begin), after));
            }
        }
        after.memories[hand.member] = hand.step.memory.clone();
        // Who comes after a crash has only the objects, and decides the same by them.
        let mut read = after.memories.clone();
        read[hand.member] = restored(&hand.step);
        let (by_heart, by_objects) = (self.plan(&after, &after.memories), self.plan(&after, &read));
        for (one, other) in by_heart.steps.iter().zip(&by_objects.steps) {
            if (one.state, &one.acts, &one.memory) != (other.state, &other.acts, &other.memory) {
                return Err(format!("what is written of {} is not what was decided", one.name));
            }
        }
        after.hand = (!acts.is_empty()).then(|| Hand {
            member: hand.member,
            step: Step { acts, ..hand.step.clone() },
            is_written: true,
        });
        Ok((Event::Write, after))
    }

    /// Does something in the world, if that is not against the rules.
    fn act(&self, state: &mut State, member: usize, act: &Act) -> Result<(), Broken> {
        let others_ready = state
            .actors
            .iter()
            .enumerate()
            .all(|(index, actor)| index == member || actor.life == Life::Ready);
        let actor = state.actors[member];
        let is_the_pod = |uid: &str| uid == format!("{member}-{}", actor.pod);
        if act.is_irreversible() {
            if state.gate != Verdict::Pass {
                return Err(format!("{act} although the gate says {:?}", state.gate));
            }
            if !state.is_target_known {
                return Err(format!("{act} although nobody knows how the others are"));
            }
            if self.telling == Telling::Handshake && !actor.told {
                return Err(format!("{act} before anybody was told"));
            }
            let is_away = |(other, memory): (usize, &Memory)| {
                let is_ending =
                    matches!(state.actors[other].life, Life::Leaving | Life::Gone | Life::Starting);
                let is_over = |phase| matches!(phase, Phase::AwaitingSuccessor | Phase::Verifying);
                other != member && memory.under_way().is_some_and(|course| is_ending || is_over(course.phase))
            };
            let away = state.memories.iter().enumerate().filter(|one| is_away(*one)).count();
            if !self.by_domain && away >= state.max {
                return Err(format!("{act} although {away} are away, and at most {} may be", state.max));
            }
            if state.is_suspended && member == 0 {
                return Err(format!("{act} although it is suspended"));
            }
        }
        // What is there now and could be read now, and was marked before.
        let marked = |bits: u8| {
            let sightings = &state.memories[member].sightings;
            let is_marked = |key: &str| {
                let is_it = |cause: &Cause| matches!(cause, Cause::Taint { key: of, .. } if &**of == key);
                sightings.iter().any(|sighting| is_it(&sighting.cause) && sighting.replacing.is_some())
            };
            let there = state.taints[actor.node] & bits;
            let mut keys = KEYS.iter().enumerate().filter(|(bit, _)| there & (1 << bit) != 0);
            !state.unreadable[actor.node] && keys.any(|(_, key)| is_marked(key))
        };
        let (is_given_up, is_ill) = (marked(PERMANENT), marked(ANY));
        match act {
            Act::DeleteClaim { uid, .. } => {
                let Some((number, _)) = actor.claim else { return Err(format!("{act} twice")) };
                if **uid != *format!("data-{member}-{number}") {
                    return Err(format!("{act} of a claim that was made since"));
                }
                if !others_ready {
                    return Err(format!("{act} while another is not ready"));
                }
                if state.keeps {
                    return Err(format!("{act} although the policy keeps volumes"));
                }
                if !is_given_up {
                    return Err(format!("{act} although nothing that can be seen gives the node up"));
                }
                state.actors[member].claim = Some((number, true));
            }
            Act::Evict { uid } => {
                if !is_the_pod(uid) {
                    return Err(format!("{act} of a pod that was made since"));
                }
                if actor.claim.is_some_and(|(_, is_leaving)| is_leaving) && !others_ready {
                    return Err(
                        "a pod is evicted, and a volume lost with it, while another is not ready".into()
                    );
                }
                // Once its claim has been deleted, there is no way back.
                if !is_ill && actor.claim.is_some_and(|(_, is_leaving)| !is_leaving) {
                    return Err(format!("{act} although nothing that can be seen is wrong with its node"));
                }
                if self.telling == Telling::Operator {
                    return Err("a pod is evicted that is its operator's".into());
                }
                state.actors[member].life = Life::Leaving;
            }
            Act::TurnBack => {
                if actor.claim.is_none_or(|(_, is_leaving)| is_leaving) {
                    return Err("called off although a claim has gone".into());
                }
                state.memories[member].turn_back(state.now);
            }
            Act::Annotate { uid, .. } if is_the_pod(uid) => state.actors[member].told = true,
            Act::Retract { uid, .. } if is_the_pod(uid) => state.actors[member].told = false,
            Act::Annotate { .. } | Act::Retract { .. } | Act::KeepVolume { .. } => {}
            other => return Err(format!("nobody asked for this: {other}")),
        }
        Ok(())
    }
}
