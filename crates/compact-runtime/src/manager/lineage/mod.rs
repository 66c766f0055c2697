//! The line that a history is on: the compaction that it goes on from, and the session that it belongs to.
//!
//! A session is what its caller names. Without a name, a view of ours that opens the history tells it, then
//! the wire, then the chain of entry hashes: never how a conversation begins. A frame is believed when
//! its full receipt id is on record for the session and the history opens with that record's view up to
//! its summary; what the view shows beyond that, and the history does not, was taken back, and the
//! ledger ends before it. Some agents put the summary first, and some clients drop what stands before it: a history
//! that does so has to show what comes next, and the whole rest of the view if nobody named its session. A line that
//! somebody went on from otherwise is a session of its own, and so is a history that is called like one on record and
//! does not go on from it: what a name stands for does not change by how another history begins.

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;

use compact_core::engine::{self, Prior, TakenBack};
use compact_core::frame;
use compact_core::identity::{Chain, EntryHash};
use compact_core::ledger::Ledger;
use compact_core::message::{Conversation, Entry, EntryKind, Role};

use super::{CompactionRequest, Manager, clearing, restore};
use crate::error::Error;
use crate::port::catalog::{CompactionRecord, branch_ends};
use crate::port::event::call_within;

/// The most frames of one history that are looked up.
const MOST_CLAIMS: usize = 16;

/// What opens the names of sessions that nobody named.
const UNNAMED: &str = "session-";

/// Characters that tell a session from the one that it is called like.
const NAMESAKE_MARK: usize = 12;

/// How the name of a session opens that is called like another one.
pub fn namesake_opening(name: &str) -> String {
    format!("{name}@")
}

/// Whether a session is the one of a name, or another one that is called so.
fn is_namesake(session: &str, name: &str) -> bool {
    session == name || session.starts_with(&namesake_opening(name))
}

/// Where a history stands.
pub(super) struct ResolvedHistory<'a> {
    /// The session's name.
    pub(super) session_id: String,
    /// The session's last compaction.
    pub(super) latest: Option<CompactionRecord>,
    /// The compaction that it goes on from.
    pub(super) prior: Option<Prior>,
    /// The conversation with every summary in it classified.
    pub(super) conversation: Cow<'a, Conversation>,
    /// The identities of its entries.
    pub(super) hashes: Vec<EntryHash>,
}

/// A record whose view opens a history.
struct OpeningRecord {
    record: CompactionRecord,
    shown: ShownPrefix,
    /// The history as versions hashed it that knew no canonical form of JSON.
    written: Vec<EntryHash>,
}

/// What a history shows of a view that it opens with.
struct ShownPrefix {
    /// The history, without the instructions at its head.
    history: Vec<EntryHash>,
    /// How many entries of it are the view's.
    known: usize,
}

impl Manager {
    /// Finds the line of a request.
    pub(super) async fn resolve_history<'a>(
        &self,
        request: &CompactionRequest<'a>,
    ) -> Result<ResolvedHistory<'a>, Error> {
        let hashes = EntryHash::from_entries(&request.conversation.entries);
        let opening = self
            .find_opening(request.conversation, &hashes, request.session_id)
            .await?;
        let prior = match &opening {
            Some(opening) => self.rebuild_prior(&opening.record, &opening.shown).await?,
            None => None,
        };
        let (session_id, latest) = self
            .resolve_session(request, opening.as_ref(), &hashes)
            .await?;
        Ok(ResolvedHistory {
            session_id,
            latest,
            conversation: settle_summaries(request.conversation, &hashes, prior.as_ref()),
            prior,
            hashes,
        })
    }

    /// The session of a request, and its last record. That is read before the name is settled, so that
    /// whoever finds another one later knows that the name may not be right any more.
    async fn resolve_session(
        &self,
        request: &CompactionRequest<'_>,
        opening: Option<&OpeningRecord>,
        hashes: &[EntryHash],
    ) -> Result<(String, Option<CompactionRecord>), Error> {
        if let Some(name) = request.session_id {
            return Ok((name.to_owned(), self.catalog.latest_record(name).await?));
        }
        let entries = request.conversation.entries.iter().zip(hashes);
        let beginnings = Chain::prefix_chains(entries);
        let find = || self.session_name(request, opening, hashes, &beginnings);
        let mut name = find().await?;
        loop {
            let latest = self.catalog.latest_record(&name).await?;
            let settled = find().await?;
            if settled == name {
                return Ok((name, latest));
            }
            name = settled;
        }
    }

    /// The session that an unnamed history goes on from, in any process before, among those whose names
    /// open with `scope`: clients that must not find each other's have a scope each.
    pub async fn find_session(
        &self,
        conversation: &Conversation,
        scope: &str,
    ) -> Result<Option<String>, Error> {
        let hashes = EntryHash::from_entries(&conversation.entries);
        let opening = self.find_opening(conversation, &hashes, None).await?;
        let opening = opening.filter(|opening| opening.record.session_id.starts_with(scope));
        if let Some(opening) = opening {
            let is_its = opening.is_shown_whole() && !self.is_left(&opening).await?;
            return Ok(is_its.then_some(opening.record.session_id));
        }
        let entries = conversation.entries.iter().zip(&hashes);
        let beginnings = Chain::prefix_chains(entries);
        self.session_on_record(&beginnings, scope).await
    }

    /// The record whose view opens a history: in the session, if one is named.
    async fn find_opening(
        &self,
        conversation: &Conversation,
        hashes: &[EntryHash],
        session_id: Option<&str>,
    ) -> Result<Option<OpeningRecord>, Error> {
        let mut of_session: Option<Vec<CompactionRecord>> = None;
        for (at, receipt) in claimed_receipts(conversation).take(MOST_CLAIMS) {
            let record = match (session_id, &of_session) {
                (None, _) => self.catalog.find_record(&receipt).await?,
                (Some(_), Some(chain)) => find_receipt(chain, &receipt),
                (Some(name), None) => {
                    let chain = self.catalog.session_records(name).await?;
                    find_receipt(of_session.insert(chain), &receipt)
                }
            };
            let record = record.map(|record| match session_id {
                // An agent may put words of its own around the summary that it was given; in its own
                // session that is the same summary.
                Some(_) => with_quoted_summary(record, conversation, hashes, at),
                None => record,
            });
            let opening = record
                .and_then(|record| OpeningRecord::match_view(record, conversation, hashes, at))
                .filter(|opening| session_id.is_some() || opening.is_provable(conversation));
            if opening.is_some() {
                return Ok(opening);
            }
        }
        Ok(None)
    }

    /// A name for a request that its caller did not name.
    async fn session_name(
        &self,
        request: &CompactionRequest<'_>,
        opening: Option<&OpeningRecord>,
        hashes: &[EntryHash],
        beginnings: &[Chain],
    ) -> Result<String, Error> {
        let wire_name = request.conversation.session_id.as_deref();
        if let Some(opening) = opening {
            let name = &opening.record.session_id;
            let is_called_so = wire_name.is_some_and(|wire| is_namesake(name, wire));
            if (is_called_so || opening.is_shown_whole()) && !self.is_left(opening).await? {
                return Ok(name.clone());
            }
        }
        if let Some(name) = wire_name {
            return self.find_namesake(name, request, hashes, beginnings).await;
        }
        let known = match opening {
            Some(_) => None,
            None => self.session_on_record(beginnings, "").await?,
        };
        let whole = beginnings.last().copied().unwrap_or(Chain::EMPTY);
        Ok(known.unwrap_or_else(|| format!("{UNNAMED}{whole}")))
    }

    /// The session that a history is of those called as its wire says: the one of that name, if nothing is on record
    /// there or the history goes on from it, else one of its own.
    async fn find_namesake(
        &self,
        name: &str,
        request: &CompactionRequest<'_>,
        hashes: &[EntryHash],
        beginnings: &[Chain],
    ) -> Result<String, Error> {
        let chain = self.catalog.session_records(name).await?;
        if chain.is_empty() || self.goes_on(&chain, request, hashes, beginnings).await {
            return Ok(name.to_owned());
        }
        let opening = namesake_opening(name);
        for known in self.catalog.sessions().await? {
            let known = known.session_id;
            if known.starts_with(&opening) {
                let chain = self.catalog.session_records(&known).await?;
                if self.goes_on(&chain, request, hashes, beginnings).await {
                    return Ok(known);
                }
            }
        }
        let whole = beginnings.last().copied().unwrap_or(Chain::EMPTY);
        let mark: String = whole.to_string().chars().take(NAMESAKE_MARK).collect();
        Ok(format!("{opening}{mark}"))
    }

    /// Whether a history goes on from a branch of a session, or is one that was compacted there.
    async fn goes_on(
        &self,
        chain: &[CompactionRecord],
        request: &CompactionRequest<'_>,
        hashes: &[EntryHash],
        beginnings: &[Chain],
    ) -> bool {
        let ends = branch_ends(chain);
        let mut compacted = chain.iter().filter_map(|record| record.source_chain);
        let mut begun = ends.iter().filter_map(|end| end.source_chain);
        if compacted.any(|known| beginnings.last() == Some(&known))
            || begun.any(|known| beginnings.contains(&known))
        {
            return true;
        }
        for end in ends {
            if self.holds_input(end, request, hashes).await {
                return true;
            }
        }
        false
    }

    /// Whether a history holds all that a compaction was given, though its entries are others: a file of which its
    /// agent compacted the beginning, or a history whose old results were cleared in place.
    async fn holds_input(
        &self,
        record: &CompactionRecord,
        request: &CompactionRequest<'_>,
        hashes: &[EntryHash],
    ) -> bool {
        let Ok(before) = self.input_of(record).await else {
            return false;
        };
        let original = self.bytes_to_archive(&request.original);
        if original.starts_with(&before.bytes) {
            return true;
        }
        let Ok((before, _)) = restore::read_conversation(&before.bytes, record) else {
            return false;
        };
        let old = EntryHash::from_entries(&before.entries);
        let skipped = (
            before.leading_instructions(),
            request.conversation.leading_instructions(),
        );
        let old = before.entries.iter().zip(&old).skip(skipped.0);
        let new = request.conversation.entries.iter().zip(hashes);
        clearing::is_history_cleared(old, new.skip(skipped.1))
    }

    /// Whether somebody went on otherwise from the view that a history opens with.
    async fn is_left(&self, opening: &OpeningRecord) -> Result<bool, Error> {
        let record = &opening.record;
        let ShownPrefix { history, known } = &opening.shown;
        let beyond = [history, &opening.written].map(|all| all.get(*known..).unwrap_or_default());
        let is_other = |later: &CompactionRecord| {
            let goes_on = later.previous.as_ref() == Some(&record.receipt_id);
            let new = later.entry_hashes.get(later.new_from as usize..);
            let is_line = |beyond| is_same_branch(new.unwrap_or_default(), beyond);
            goes_on && !beyond.into_iter().any(is_line)
        };
        let chain = self.catalog.session_records(&record.session_id).await?;
        Ok(chain.iter().any(is_other))
    }

    /// The unnamed session of a scope whose last compaction was of a beginning of this history, or that
    /// compacted just this.
    async fn session_on_record(
        &self,
        beginnings: &[Chain],
        scope: &str,
    ) -> Result<Option<String>, Error> {
        let Some(whole) = beginnings.last() else {
            return Ok(None);
        };
        let mut found = self.catalog.find_sessions(beginnings).await?;
        found.retain(|(name, _)| name.strip_prefix(scope).is_some_and(is_unnamed));
        found.sort_by_key(|(_, chain)| beginnings.iter().position(|known| known == chain));
        for (name, chain) in found.into_iter().rev() {
            let latest = self
                .catalog
                .latest_record(&name)
                .await?
                .and_then(|r| r.source_chain);
            if chain == *whole || latest.is_some_and(|latest| beginnings.contains(&latest)) {
                return Ok(Some(name));
            }
        }
        Ok(None)
    }

    /// The compaction that a history goes on from, if its view opens it.
    pub(super) async fn find_prior(
        &self,
        conversation: &Conversation,
        hashes: &[EntryHash],
        session_id: &str,
    ) -> Result<Option<Prior>, Error> {
        let opening = self
            .find_opening(conversation, hashes, Some(session_id))
            .await?;
        match opening {
            Some(opening) => self.rebuild_prior(&opening.record, &opening.shown).await,
            None => Ok(None),
        }
    }

    /// What the engine needs of a record, as far as a history shows its view: with the ledger that this process
    /// keeps, else drawn again from the archived inputs that led to it. It says nothing
    /// that the originals do not. An earlier input that
    /// is gone is skipped; without the record's own nothing is known.
    async fn rebuild_prior(
        &self,
        record: &CompactionRecord,
        shown: &ShownPrefix,
    ) -> Result<Option<Prior>, Error> {
        // Where nothing was taken back since, the ledger is the one that its compaction was made with.
        let is_whole = shown.taken_back(record.view_identity()).is_nothing();
        if is_whole && let Some(ledger) = self.kept_ledger(record).await {
            let mut prior = prior_with(record, ledger);
            align(&mut prior, shown);
            return Ok(Some(prior));
        }
        self.draw_prior(record, shown).await
    }

    /// The same, drawn from the archive alone.
    async fn draw_prior(
        &self,
        record: &CompactionRecord,
        shown: &ShownPrefix,
    ) -> Result<Option<Prior>, Error> {
        let lineage = self.lineage(record).await?;
        let taken_back = taken_back_since(&lineage, shown);
        let mut prior: Option<Prior> = None;
        for (record, taken_back) in lineage.iter().zip(taken_back) {
            let Ok(original) = self.input_of(record).await else {
                continue;
            };
            let (mut conversation, _) = restore::read_conversation(&original.bytes, record)?;
            let hashes = recorded_hashes(record, &conversation);
            if let Some(prior) = &mut prior {
                let shown = ShownPrefix::in_record(record, &prior.view);
                align(prior, &shown);
            }
            engine::classify_summaries(&mut conversation, &hashes, prior.as_ref());
            let before = prior.as_ref();
            let redactor = &self.redactor;
            let ledger =
                engine::ledger_without(&conversation, &hashes, before, redactor, &taken_back);
            prior = Some(prior_with(record, Arc::new(ledger)));
        }
        let mut prior = prior.filter(|prior| prior.receipt_id == record.receipt_id);
        if let Some(prior) = &mut prior {
            align(prior, shown);
        }
        Ok(prior)
    }

    /// The compaction that a record says it was made after, as that one was made with it.
    pub(super) async fn prior_of(&self, record: &CompactionRecord) -> Result<Option<Prior>, Error> {
        let Some(previous) = &record.previous else {
            return Ok(None);
        };
        let Some(previous) = self.catalog.find_record(previous).await? else {
            return Ok(None);
        };
        let shown = ShownPrefix::in_record(record, &previous.view_identity());
        // Who asks wants to see what the archive comes to, whatever this process remembers.
        self.draw_prior(&previous, &shown).await
    }

    /// The records that led to this one and itself, the oldest first.
    pub(super) async fn lineage(
        &self,
        record: &CompactionRecord,
    ) -> Result<Vec<CompactionRecord>, Error> {
        let mut line = vec![record.clone()];
        let mut seen = HashSet::from([record.receipt_id.clone()]);
        let mut next = record.previous.clone();
        while let Some(receipt) = next.filter(|r| seen.insert(r.clone())) {
            let Some(earlier) = self.catalog.find_record(&receipt).await? else {
                break;
            };
            next = earlier.previous.clone();
            line.push(earlier);
        }
        line.reverse();
        Ok(line)
    }
}

/// What a record hands on, with the ledger up to it.
fn prior_with(record: &CompactionRecord, ledger: Arc<Ledger>) -> Prior {
    Prior {
        ledger,
        receipt_id: record.receipt_id.clone(),
        summary_version: record.summary_version,
        view: record.view_identity(),
        trimmed: 0,
    }
}

/// The hashes under which the entries of a record's input are known to its view and to those after it:
/// another version may have hashed them otherwise.
pub(crate) fn recorded_hashes(
    record: &CompactionRecord,
    conversation: &Conversation,
) -> Vec<EntryHash> {
    let recorded = &record.entry_hashes;
    match recorded.len() == conversation.entries.len() {
        true => recorded.clone(),
        false => EntryHash::from_entries(&conversation.entries),
    }
}

impl<'a> ResolvedHistory<'a> {
    /// A history of a session that goes on from a compaction that is known already.
    pub(super) fn after(
        prior: Option<Prior>,
        session_id: &str,
        latest: Option<CompactionRecord>,
        conversation: &'a Conversation,
        hashes: Vec<EntryHash>,
    ) -> ResolvedHistory<'a> {
        ResolvedHistory {
            session_id: session_id.to_owned(),
            latest,
            conversation: settle_summaries(conversation, &hashes, prior.as_ref()),
            prior,
            hashes,
        }
    }
}

impl OpeningRecord {
    /// The record's view, if a history opens with it up to its summary, which stands at `at`.
    fn match_view(
        record: CompactionRecord,
        conversation: &Conversation,
        hashes: &[EntryHash],
        at: usize,
    ) -> Option<OpeningRecord> {
        let instructions = conversation.entries.iter().take(at);
        let leading = instructions.take_while(|e| e.role.is_instruction()).count();
        let history = hashes.get(leading..)?;
        let view = PlacedView::in_history(record.view_identity(), history);
        let entries = conversation.entries.iter().skip(leading);
        let written: Vec<EntryHash> = entries.map(EntryHash::as_written).collect();
        let known = history.iter().zip(&written).zip(&view.entries);
        let known = known.take_while(|((is, or), (was, _))| *is == was || *or == was);
        let known = known.count();
        // Put first, a summary proves nothing alone: it was not given out in that place.
        if view.is_moved && known == 1 {
            return None;
        }
        let shown = ShownPrefix {
            history: history.to_vec(),
            known,
        };
        (at < leading + known).then_some(OpeningRecord {
            record,
            shown,
            written,
        })
    }

    /// Whether a history that nobody named shows enough: the view as it was made, as far as the history goes on
    /// from it, or all of it with the summary first. Its agent may have named it.
    fn is_provable(&self, conversation: &Conversation) -> bool {
        let view = PlacedView::in_history(self.record.view_identity(), &self.shown.history);
        let is_as_made = !view.is_moved && view.trimmed.is_empty();
        let is_named = conversation.session_id.as_ref() == Some(&self.record.session_id);
        is_as_made || is_named || self.shown.known >= view.entries.len()
    }

    /// Whether a history shows all that is left of the view.
    fn is_shown_whole(&self) -> bool {
        let view = PlacedView::in_history(self.record.view_identity(), &self.shown.history);
        self.shown.known >= view.entries.len()
    }
}

impl ShownPrefix {
    /// What the input of a record shows of the view before it.
    fn in_record(record: &CompactionRecord, view: &[(EntryHash, u64)]) -> ShownPrefix {
        let first = summary_position(view).and_then(|at| view.get(..=at));
        let first = first.unwrap_or_default();
        let opens = |hash: &EntryHash| first.iter().any(|(known, _)| known == hash);
        let new_from = record.new_from as usize;
        let known = record.entry_hashes.get(..new_from).unwrap_or_default();
        let leading = known.iter().position(opens).unwrap_or(new_from);
        let history = record.entry_hashes.get(leading..).unwrap_or_default();
        ShownPrefix {
            history: history.to_vec(),
            known: new_from.saturating_sub(leading),
        }
    }

    /// What of a view is not shown any more: from the first entry on that is gone, and what was trimmed before.
    fn taken_back(&self, view: Vec<(EntryHash, u64)>) -> TakenBack {
        let view = PlacedView::in_history(view, &self.history);
        let gone = view.entries.get(self.known);
        TakenBack {
            from: gone.map_or(u64::MAX, |(_, ordinal)| *ordinal),
            entries: view.trimmed.into_iter().collect(),
        }
    }
}

/// A view as a history that opens with it has it.
struct PlacedView {
    entries: Vec<(EntryHash, u64)>,
    /// Whether the summary was put first.
    is_moved: bool,
    /// The ordinals of entries before the summary that are gone, though what follows it is there.
    trimmed: Vec<u64>,
}

impl PlacedView {
    /// Finds out what became of what a view has before its summary.
    fn in_history(mut view: Vec<(EntryHash, u64)>, history: &[EntryHash]) -> PlacedView {
        let trimmed = trimmed_entries(&view, history);
        view.retain(|(_, ordinal)| !trimmed.contains(ordinal));
        let mut is_moved = false;
        if let Some(at) = summary_position(&view)
            && at > 0
            && view.get(at).map(|(hash, _)| hash) == history.first()
            && let Some(moved) = view.get_mut(..=at)
        {
            moved.rotate_right(1);
            is_moved = true;
        }
        PlacedView {
            entries: view,
            is_moved,
            trimmed,
        }
    }
}

/// The ordinals of what stands before a view's summary and not in a history that has the summary and, right behind it,
/// what the view has there.
fn trimmed_entries(view: &[(EntryHash, u64)], history: &[EntryHash]) -> Vec<u64> {
    let parts = summary_position(view).and_then(|at| Some((view.get(..at)?, view.get(at..)?)));
    let Some((before, [(summary, _), (next, _), ..])) = parts else {
        return Vec::new();
    };
    let at = history
        .iter()
        .take(before.len())
        .position(|hash| hash == summary);
    let Some((shown, [_, follows, ..])) = at.and_then(|at| history.split_at_checked(at)) else {
        return Vec::new();
    };
    let is_moved = shown.is_empty() && before.first().is_some_and(|(hash, _)| hash == follows);
    if is_moved || follows != next {
        return Vec::new();
    }
    // What is left must stand in the view's order; anything else is another history.
    let mut left = shown.iter().peekable();
    let mut gone = Vec::new();
    for (hash, ordinal) in before {
        if left.next_if(|shown| *shown == hash).is_none() {
            gone.push(*ordinal);
        }
    }
    match left.next() {
        Some(_) => Vec::new(),
        None => gone,
    }
}

/// A record whose view is known by its summary as an entry quotes it, if it does so word for word.
fn with_quoted_summary(
    mut record: CompactionRecord,
    conversation: &Conversation,
    hashes: &[EntryHash],
    at: usize,
) -> CompactionRecord {
    let texts = conversation
        .entries
        .get(at)
        .map(|entry| entry.blocks.iter());
    let mut texts = texts
        .into_iter()
        .flatten()
        .map(|block| block.text_parts()[0]);
    let quoted = texts.find_map(frame::framed_text);
    let place = summary_position(&record.view_identity());
    let known = place.and_then(|place| record.view_hashes.get_mut(place));
    if let (Some(quoted), Some(known), Some(now)) = (quoted, known, hashes.get(at)) {
        let is_same = |role| *known == EntryHash::from_entry(&Entry::from_text("", role, quoted));
        if [Role::User, Role::Assistant].into_iter().any(is_same) {
            *known = *now;
        }
    }
    record
}

/// Where a view has its summary, whose ordinal is the one after all that it stands for.
fn summary_position(view: &[(EntryHash, u64)]) -> Option<usize> {
    let ordinal = |at: &usize| view.get(*at).map(|(_, ordinal)| *ordinal);
    (0..view.len()).rev().max_by_key(ordinal)
}

/// The conversation with every summary told for what it is.
fn settle_summaries<'a>(
    conversation: &'a Conversation,
    hashes: &[EntryHash],
    prior: Option<&Prior>,
) -> Cow<'a, Conversation> {
    let has_frame = |e: &Entry| {
        matches!(e.meta.kind, EntryKind::Summary { .. }) || frame::find_frame(&e.blocks).is_some()
    };
    if !conversation.entries.iter().any(has_frame) {
        return Cow::Borrowed(conversation);
    }
    let mut settled = conversation.clone();
    engine::classify_summaries(&mut settled, hashes, prior);
    Cow::Owned(settled)
}

/// The receipts that frames name by their full ids, with the places of their entries.
pub(super) fn claimed_receipts(
    conversation: &Conversation,
) -> impl Iterator<Item = (usize, String)> {
    let entries = conversation.entries.iter().enumerate();
    let named =
        entries.filter_map(|(at, entry)| Some((at, frame::find_frame(&entry.blocks)?.receipt?)));
    named.filter(|(_, receipt)| is_full_id(receipt))
}

/// Part of an id finds a record as well, and proves nothing.
fn is_full_id(receipt: &str) -> bool {
    receipt.len() == 32 && receipt.bytes().all(|b| b.is_ascii_hexdigit())
}

fn find_receipt(chain: &[CompactionRecord], receipt: &str) -> Option<CompactionRecord> {
    chain
        .iter()
        .find(|record| record.receipt_id == receipt)
        .cloned()
}

/// What was taken back, for the ledger of each record of a lineage: whatever a later history no longer shows.
fn taken_back_since(lineage: &[CompactionRecord], shown: &ShownPrefix) -> Vec<TakenBack> {
    let mut later: Option<&CompactionRecord> = None;
    let mut all = TakenBack::default();
    let mut since = Vec::new();
    for record in lineage.iter().rev() {
        let view = record.view_identity();
        let taken_back = match later {
            Some(later) => ShownPrefix::in_record(later, &view).taken_back(view),
            None => shown.taken_back(view),
        };
        all.from = all.from.min(taken_back.from);
        all.entries.extend(taken_back.entries);
        since.push(all.clone());
        later = Some(record);
    }
    since.reverse();
    since
}

/// Gives a view the order and the identities that it has in a history: agents may put the summary
/// first, and results may have been cleared in place since.
fn align(prior: &mut Prior, shown: &ShownPrefix) {
    let placed = PlacedView::in_history(std::mem::take(&mut prior.view), &shown.history);
    prior.view = placed.entries;
    prior.trimmed = placed.trimmed.len() as u64;
    let known = shown.history.iter().take(shown.known);
    for ((identity, _), now) in prior.view.iter_mut().zip(known) {
        *identity = *now;
    }
}

/// True when one of two continuations goes on from the other.
fn is_same_branch(one: &[EntryHash], other: &[EntryHash]) -> bool {
    one.starts_with(other) || other.starts_with(one)
}

fn is_unnamed(name: &str) -> bool {
    let hex = name.strip_prefix(UNNAMED);
    hex.is_some_and(|hex| hex.len() == 32 && hex.bytes().all(|b| b.is_ascii_hexdigit()))
}

/// A name for a session that nobody named and that goes on from none on record. Two of them may begin
/// alike, in two processes at once: what the history says does not name it alone.
pub fn new_session_name(beginnings: &[Chain]) -> String {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&beginnings.last().copied().unwrap_or(Chain::EMPTY).0);
    hasher.update(call_within(None).trace_id.as_bytes());
    let name: String = hasher.finalize().to_hex().chars().take(32).collect();
    format!("{UNNAMED}{name}")
}
