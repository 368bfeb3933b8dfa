//! Somebody outside is asked whether a pod may go.
//!
//! Only who leads asks, and what comes of it is told to who wanted to know, also that nothing came. The way there and the meaning
//! of an answer are in [`crate::review`].

use berth_engine::gate::Address;

use super::write::Target;
use super::writer::{WriteError, Writer};
use crate::lead::Term;
use crate::names::ControllerName;
use crate::review::Question;
use crate::world::{Finding, Found, Told};

impl Writer {
    /// Asks somebody outside whether a pod may go. That there is no answer is one, too.
    pub(super) async fn review(
        &self,
        term: Term,
        target: &Target,
        address: &Address,
        question: &Question,
        asker: ControllerName,
    ) -> Result<Told, WriteError> {
        // Who is asked may act on it, so only who leads asks.
        if !self.fence.holds_in(term) {
            return Err(WriteError::Fenced);
        }
        let answer = self.reviewer.ask(address, question).await;
        self.metrics.reviewed_by_policy(&question.policy, answer.word());
        tracing::debug!(pod = %target.key, policy = question.policy, gate = question.gate, %answer, "reviewed");
        let (policy, gate) = (question.policy.as_str().into(), question.gate.as_str().into());
        let finding = Finding::Review { policy, gate, answer };
        Ok(Told::Found(Box::new(Found { asker, subject: target.key.clone(), finding })))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::super::fixtures::{ending, pod, run, writer};
    use super::super::write::Write;
    use super::*;
    use crate::review::{NodeFacts, PodFacts, TaintFacts};

    fn review() -> Write {
        let question = Question {
            policy: "databases".to_owned(),
            gate: "backup".to_owned(),
            pod: PodFacts::default(),
            node: NodeFacts::default(),
            taint: TaintFacts::default(),
            due_at: "2026-01-01T00:00:00Z".to_owned(),
            is_dry_run: false,
            replacement: None,
        };
        // Nobody listens there.
        let address = Address::parse("https://127.0.0.1:1/", None, Some(5)).unwrap();
        let asker = ControllerName::TaintEviction;
        Write::Review { target: pod(), address, question: Box::new(question), asker }
    }

    #[tokio::test]
    async fn what_comes_of_a_review_is_told_to_who_asks_and_the_server_has_no_part_in_it() {
        let (writer, asked, mut told) = writer(200, ending(&json!({})));
        let metrics = Arc::clone(&writer.metrics);
        run(writer, vec![review()]).await.unwrap();
        let Some(Told::Found(found)) = told.recv().await else { panic!("nothing was found") };
        let Finding::Review { policy, gate, answer } = found.finding else { panic!("it is no review") };
        assert_eq!((&*policy, &*gate, answer.word()), ("databases", "backup", "unanswered"), "{answer}");
        assert!(asked.lock().unwrap().is_empty());
        let text = metrics.text();
        assert!(
            text.contains("berth_policy_reviews_total{policy=\"databases\",answer=\"unanswered\"} 1"),
            "{text}"
        );
    }
}
