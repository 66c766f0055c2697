//! Compacting what is on record: from where a session stands, because a person asks for it.
//!
//! What is archived is never compacted anew from its first word: a session that was compacted goes on from its view, as its
//! agent does.

use compact_core::token::Tokens;
use compact_runtime::manager::{ArchivedState, RETRY_ASKED, RequestOutcome};
use compact_runtime::port::catalog::{Attempt, CompactionRecord, StoredReceipt};

use crate::compact::Compact;
use crate::error::Error;
use crate::session_action::not_found;

/// What a session is compacted from.
struct CompactionBase {
    state: ArchivedState,
    /// The most tokens of its view, where that must not be more than what there is.
    most: Option<Tokens>,
}

impl Compact {
    /// Compacts a session from where it stands, whatever the pressure, to a budget or to the policy's. What is protected and
    /// has left the session comes back. Without a budget the view is no larger than what there is. Returns the receipt;
    /// `None` if there is nothing to gain.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), compact::Error> {
    /// # use serde_json::{Value, json};
    /// # let compact = compact::Compact::builder().in_memory().window(20_000).build()?;
    /// # let turn = |n: u32| [
    /// #     json!({"role": "user", "content": format!("Measure run {n}.")}),
    /// #     json!({"role": "assistant", "content": format!("Run {n} took {n} ms. ").repeat(60)}),
    /// # ];
    /// # let messages: Vec<Value> = (0..40).flat_map(turn).collect();
    /// use compact::token::Tokens;
    ///
    /// compact.session("runs").compact(&messages, None).await?;
    /// let smaller = compact.compact_archived("runs", Some(Tokens(2_000))).await?.unwrap();
    /// assert!(smaller.tokens_after() <= Some(Tokens(2_000)));
    /// assert_eq!(compact.session_records("runs").await?.len(), 2);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn compact_archived(
        &self,
        session: &str,
        budget: Option<Tokens>,
    ) -> Result<Option<StoredReceipt>, Error> {
        let store = self.store_to_change()?;
        let latest = store.catalog.latest_record(session).await?;
        let latest = latest.ok_or_else(|| not_found(session))?;
        let base = self.compaction_base(&latest).await?;
        let model = base.state.conversation.model.as_deref();
        let model = model.or(latest.receipt.model());
        let policy = self.config().policy.clone();
        let manager = self.build_manager(store, policy, self.estimator(model))?;
        let manager = manager.with_window(self.window_on_record(&latest, model).tokens);
        let manager = manager.with_summarizer(self.summarizer(model)?);
        let mut request = base
            .state
            .request()
            .with_session(session)
            .with_budget(budget);
        if let (Some(most), None) = (base.most, budget) {
            // What comes back must not make more of what there is.
            let allowed = manager.measure(&request).await?.measured.budget;
            request = request.with_budget(allowed.min(most));
        }
        if budget.is_some() {
            request = request.as_trial();
        }
        match manager.compact(&request).await? {
            RequestOutcome::Done(commit) => Ok(Some(commit.receipt)),
            RequestOutcome::Unchanged { .. } => {
                // What fits under the policy leaves nothing to try again.
                if budget.is_none() {
                    self.forget_failure(session).await?;
                }
                Ok(None)
            }
            RequestOutcome::Declined { reason, .. } => {
                Err(compact_runtime::Error::Declined(reason).into())
            }
        }
    }

    /// Finds what a session is compacted from: where it stands, or all that it held where something that is protected
    /// has left it, so that this comes back.
    async fn compaction_base(&self, latest: &CompactionRecord) -> Result<CompactionBase, Error> {
        let manager = self.reading_manager()?;
        let state = manager.state_after(latest).await?;
        let session = latest.session_id.as_str();
        if !manager.protected_entries(session).await?.is_empty() {
            let whole = manager.whole_state(latest).await?;
            if manager.lacks_protected(session, &whole, &state).await? {
                let most = latest.receipt.tokens_after();
                return Ok(CompactionBase { state: whole, most });
            }
        }
        Ok(CompactionBase { state, most: None })
    }

    /// Returns where a session stands after a record, in the format of what went in: the view, or the copy where nothing
    /// was compacted.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), compact::Error> {
    /// # use serde_json::{Value, json};
    /// # let compact = compact::Compact::builder().in_memory().window(20_000).build()?;
    /// # let turn = |n: u32| [
    /// #     json!({"role": "user", "content": format!("Measure run {n}.")}),
    /// #     json!({"role": "assistant", "content": format!("Run {n} took {n} ms. ").repeat(60)}),
    /// # ];
    /// # let messages: Vec<Value> = (0..40).flat_map(turn).collect();
    /// compact.session("runs").compact(&messages, None).await?;
    /// let record = compact.session_records("runs").await?.remove(0);
    /// let state = compact.state_after(&record).await?;
    /// assert!(state.conversation.entries.len() < messages.len());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn state_after(&self, record: &CompactionRecord) -> Result<ArchivedState, Error> {
        Ok(self.reading_manager()?.state_after(record).await?)
    }

    /// Forgets that the last attempt failed, and compacts what is archived of the session. Returns the receipt; `None` if
    /// it fits as it is, or nothing of it is archived: then its own program tries again with its next call.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), compact::Error> {
    /// let compact = compact::Compact::builder().in_memory().build()?;
    /// assert!(compact.retry_compaction("runs").await?.is_none());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn retry_compaction(&self, session: &str) -> Result<Option<StoredReceipt>, Error> {
        self.forget_failure(session).await?;
        let store = self.store_to_change()?;
        match store.catalog.latest_record(session).await? {
            Some(_) => self.compact_archived(session, None).await,
            None => Ok(None),
        }
    }

    /// Records that the last attempt is no reason to wait, nor to warn.
    async fn forget_failure(&self, session: &str) -> Result<(), Error> {
        let attempt = Attempt {
            at: self.clock().timestamp(),
            turn: String::new(),
            outcome: RETRY_ASKED.to_owned(),
            tokens: 0,
        };
        let store = self.store_to_change()?;
        Ok(store.catalog.save_attempt(session, &attempt).await?)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use compact_core::message::{Conversation, Entry, Role};
    use compact_core::wire::WireRules;
    use compact_runtime::manager::{CompactionRequest, ENTRIES_FORMAT, serialize_entries};
    use compact_runtime::reading::NameLoss;
    use serde_json::{Value, json};

    use super::*;

    fn turns(first: u32, count: u32) -> Vec<Value> {
        let turn = |n: u32| {
            let run = format!("SHOP-{n} took {n} ms in src/run_{n}.rs. ");
            [
                json!({"role": "user", "content": format!("Measure SHOP-{n}.")}),
                json!({"role": "assistant", "content": run.repeat(30)}),
            ]
        };
        (first..first + count).flat_map(turn).collect()
    }

    fn engine() -> Compact {
        let builder = Compact::builder().in_memory().window(20_000);
        builder.build().unwrap()
    }

    /// Compacts a session twice, the second time what the first left with new turns behind it.
    async fn compact_twice(compact: &Compact) -> Vec<CompactionRecord> {
        let mut first = compact.session("runs");
        let view = first.compact(&turns(100, 60), None).await;
        let mut messages: Vec<Value> = view.unwrap().messages().unwrap();
        messages.extend(turns(300, 40));
        let mut second = compact.session("runs");
        let view = second.compact(&messages, None).await;
        assert!(view.unwrap().receipt().is_some());
        compact.session_records("runs").await.unwrap()
    }

    #[tokio::test]
    async fn a_session_is_compacted_from_its_view_and_never_grows() {
        let (sender, events) = mpsc::channel();
        let compact = Compact::builder()
            .events(move |event| drop(sender.send(serde_json::to_value(event).unwrap())))
            .in_memory()
            .window(20_000)
            .build()
            .unwrap();
        let records = compact_twice(&compact).await;
        let latest = records.last().unwrap();
        let whole = compact.restore_session(latest).await.unwrap().bytes;
        assert!(
            compact
                .compact_archived("runs", None)
                .await
                .unwrap()
                .is_none()
        );
        let size = latest.receipt.tokens_after().unwrap();
        let same = compact.compact_archived("runs", Some(size)).await.unwrap();
        assert!(same.is_none(), "there is nothing to gain");
        let _ = events.try_iter().count();
        let smaller = compact.compact_archived("runs", Some(Tokens(1_500))).await;
        let smaller = smaller.unwrap().unwrap();
        assert_eq!(smaller.tokens_before(), Some(size));
        assert!(smaller.tokens_after() <= Some(Tokens(1_500)));
        let causes: Vec<Value> = events
            .try_iter()
            .filter_map(|event| event.get("cause").cloned())
            .filter(|cause| !cause.is_null())
            .collect();
        assert!(!causes.is_empty() && causes.iter().all(|cause| cause == "asked"));
        let records = compact.session_records("runs").await.unwrap();
        let made = records.last().unwrap();
        assert_eq!(made.previous.as_ref(), Some(&latest.receipt_id));
        assert_eq!(made.source_chain, latest.source_chain);
        assert_eq!(compact.restore_session(made).await.unwrap().bytes, whole);
        assert!(
            compact
                .verify(&made.receipt_id)
                .await
                .unwrap()
                .mismatches
                .is_empty()
        );
    }

    #[tokio::test]
    async fn a_number_that_does_not_fit_is_no_failure_of_the_session() {
        let compact = engine();
        compact_twice(&compact).await;
        let tried = compact.compact_archived("runs", Some(Tokens(1))).await;
        assert!(tried.is_err());
        let told = compact.describe_session("runs").await.unwrap().unwrap();
        assert_eq!(told.failed, None);
    }

    #[tokio::test]
    async fn what_is_protected_after_it_left_comes_back_and_goes_along() {
        let compact = engine();
        let records = compact_twice(&compact).await;
        let reading = compact.read_compaction(&records[0].receipt_id).await;
        let reading = reading.unwrap();
        let latest = records.last().unwrap();
        let words = reading.text(1).unwrap();
        assert!(!reading.is_shown_after(1, latest));
        assert_eq!(reading.ordinal(1), Some(1));
        let name = reading.entry_name(1).unwrap();
        compact.protect_entry("runs", name).await.unwrap();
        let carried = compact.carried_memory("runs").await.unwrap();
        assert_eq!(carried.pinned, std::slice::from_ref(&words));
        let back = compact.compact_archived("runs", None).await.unwrap();
        assert!(back.unwrap().tokens_after() <= latest.receipt.tokens_after());
        let records = compact.session_records("runs").await.unwrap();
        let state = compact.state_after(records.last().unwrap()).await.unwrap();
        let mut shown = state.conversation.entries.iter();
        assert!(shown.any(|entry| entry.plain_text() == words));
        assert!(reading.is_shown_after(1, records.last().unwrap()));
        // From there on it is like any other.
        let again = compact.compact_archived("runs", None).await.unwrap();
        assert!(again.is_none());
        compact.release_entry("runs", name).await.unwrap();
        let carried = compact.carried_memory("runs").await.unwrap();
        assert!(!carried.pinned.contains(&words));
    }

    #[tokio::test]
    async fn what_an_earlier_compaction_took_is_not_told_as_the_later_ones() {
        let compact = engine();
        compact_twice(&compact).await;
        for budget in [1_500, 900] {
            let smaller = compact.compact_archived("runs", Some(Tokens(budget))).await;
            assert!(smaller.unwrap().is_some());
        }
        let records = compact.session_records("runs").await.unwrap();
        let [first, second] = [&records[2], &records[3]];
        let lost_first = compact.left_out_names(first).await.unwrap();
        assert!(lost_first.iter().all(|name| name.loss == NameLoss::Now));
        let lost_second = compact.left_out_names(second).await.unwrap();
        let of = |loss| lost_second.iter().filter(move |name| name.loss == loss);
        let gone: Vec<&str> = lost_first.iter().map(|name| name.text.as_str()).collect();
        assert!(of(NameLoss::Before).count() > 0 && of(NameLoss::Now).count() > 0);
        assert!(of(NameLoss::Before).all(|name| gone.contains(&name.text.as_str())));
        assert!(of(NameLoss::Now).all(|name| !gone.contains(&name.text.as_str())));
        let counted = second.receipt.retention().unwrap().recoverable;
        assert_eq!(lost_second.len() as u64, counted);
    }

    /// A client that keeps its whole history finds its session again after somebody compacted it beside.
    #[tokio::test]
    async fn a_history_that_goes_on_is_still_of_the_session_that_was_compacted_beside() {
        let compact = engine();
        let entries: Vec<Entry> = (0..80)
            .map(|n| match n % 2 {
                0 => Entry::from_text(format!("{n}"), Role::User, format!("Measure run {n}.")),
                _ => Entry::from_text(
                    format!("{n}"),
                    Role::Assistant,
                    format!("Run {n} took {n} ms. ").repeat(60),
                ),
            })
            .collect();
        let manager = compact.manager().unwrap();
        let mut named = Vec::new();
        for length in [60, 80] {
            let conversation = Conversation {
                session_id: Some("wire".to_owned()),
                entries: entries[..length].to_vec(),
                ..Conversation::default()
            };
            let original = serialize_entries(&conversation.entries);
            let request = CompactionRequest::new(
                &conversation,
                &WireRules::LENIENT,
                ENTRIES_FORMAT,
                original,
            );
            match manager.compact(&request).await.unwrap() {
                RequestOutcome::Done(made) => named.push(made.compaction.receipt.session_id),
                other => panic!("{other:?}"),
            }
            let smaller = compact.compact_archived("wire", Some(Tokens(1_500))).await;
            assert!(smaller.unwrap().is_some());
        }
        assert_eq!(named, ["wire", "wire"]);
    }
}
