//! What a person does: a form that carries the token, and what came of it, told where it was sent from.

use axum::extract::Path;
use axum::response::Redirect;
use compact::chart::describe_change;
use compact::manager::VerifiedBy;
use compact::message::EntryHash;
use compact::overview::compaction_numbers;
use compact::store::CompactionRecord;
use compact::token::Tokens;
use serde::Deserialize;

use crate::Dashboard;
use crate::comparison::EntryPlace;
use crate::notice::{NextSession, Notice, NoticeSubject};
use crate::page::PageError;
use crate::text::{clip_name, count, encode, is_deceptive};
use crate::visit::{Asked, Visit};

/// The longest name of a new session.
const LONGEST_NAME: usize = 200;

/// The fields of all forms; which of them count depends on what is to be done.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ActionForm {
    token: String,
    /// The session.
    name: String,
    /// The page that has the form.
    page: FormPage,
    /// The compaction.
    receipt: String,
    /// The entry of its input.
    at: usize,
    /// The most tokens of a view; empty for the policy's.
    budget: String,
    /// The name of a new session.
    new: String,
}

/// Which page has the form, and so tells what came of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum FormPage {
    /// That of the session.
    #[default]
    Session,
    /// That of the compaction.
    Compaction,
    /// That of the entry.
    Entry,
}

/// What came of an action.
struct ActionOutcome {
    words: String,
    /// A session that was made.
    made: Option<String>,
}

impl From<String> for ActionOutcome {
    fn from(words: String) -> ActionOutcome {
        ActionOutcome { words, made: None }
    }
}

impl Asked for ActionForm {
    fn session(&self) -> Option<&str> {
        Some(&self.name)
    }

    fn token(&self) -> &str {
        &self.token
    }
}

impl ActionForm {
    /// Returns the address of the page that has the form.
    fn address(&self) -> String {
        let (name, receipt, at) = (encode(&self.name), encode(&self.receipt), self.at);
        match self.page {
            FormPage::Session => format!("/session?name={name}"),
            FormPage::Compaction => format!("/compaction?name={name}&receipt={receipt}"),
            FormPage::Entry => format!("/entry?name={name}&receipt={receipt}&at={at}"),
        }
    }

    /// Returns what on that page the action is about.
    fn subject(&self, action: &str) -> NoticeSubject {
        match (self.page, action) {
            (FormPage::Session, "verify" | "undo") => {
                NoticeSubject::Compaction(self.receipt.clone())
            }
            (FormPage::Session, "pin" | "unpin") => NoticeSubject::Entry(self.at),
            _ => NoticeSubject::Page,
        }
    }
}

/// Does what the address names.
pub(crate) async fn perform(
    Path(action): Path<String>,
    visit: Visit<ActionForm>,
) -> Result<Redirect, PageError> {
    let (dashboard, form) = (&visit.dashboard, &visit.asked);
    let outcome = find_and_perform(&visit, &action).await;
    // Only who may see the session comes this far.
    let outcome =
        outcome.map_err(|error| error.asked_from(&form.name, dashboard.link(&form.address())))?;
    dashboard.changes.announce(&form.name);
    let page_of = |session: &str| dashboard.link(&format!("/session?name={}", encode(session)));
    let address = match (&outcome.made, action.as_str()) {
        // Whoever starts a session goes on in it, and whoever removes one in the list.
        (Some(made), "start") => page_of(made),
        (_, "remove") => dashboard.link("/?page=0"),
        _ => dashboard.link(&form.address()),
    };
    let is_here = action != "start";
    let number = dashboard.notices.add(Notice {
        session: match outcome.made.as_ref().filter(|_| !is_here) {
            Some(made) => made.clone(),
            // It is gone: the list tells it.
            None if action == "remove" => visit.viewer.scope.clone(),
            None => form.name.clone(),
        },
        subject: form.subject(&action),
        words: outcome.words,
        leads_to: outcome.made.filter(|_| is_here).map(|name| NextSession {
            address: page_of(&name),
            name,
        }),
    });
    Ok(Redirect::to(&format!("{address}&done={number}#notice")))
}

async fn find_and_perform(
    visit: &Visit<ActionForm>,
    action: &str,
) -> Result<ActionOutcome, PageError> {
    let (dashboard, form) = (&*visit.dashboard, &visit.asked);
    match action {
        "verify" => Ok(check_receipt(dashboard, form).await?.into()),
        "compact" => Ok(compact_now(dashboard, form).await?.into()),
        "retry" => Ok(retry(dashboard, form).await?.into()),
        "pin" => Ok(pin(dashboard, form).await?.into()),
        "unpin" => Ok(unpin(dashboard, form).await?.into()),
        "remove" => remove(dashboard, form).await,
        "undo" => undo(dashboard, form).await,
        "start" => start(visit).await,
        _ => Err(PageError::not_found(action)),
    }
}

/// A compaction that a form or an address is about.
pub(crate) struct FoundCompaction {
    pub(crate) record: CompactionRecord,
    /// Its number among the session's; a copy has none.
    pub(crate) number: Option<usize>,
    /// The last one of its session, which may be the same.
    pub(crate) latest: CompactionRecord,
}

/// Finds the compaction that a form or an address is about.
pub(crate) async fn find_compaction(
    dashboard: &Dashboard,
    name: &str,
    receipt: &str,
) -> Result<FoundCompaction, PageError> {
    let records = dashboard.compact.session_records(name).await?;
    let numbers = compaction_numbers(&records);
    let latest = records.last().cloned();
    let mut records = records.into_iter().zip(numbers);
    let found = records.find(|(record, _)| record.receipt_id == receipt);
    match found.zip(latest) {
        Some(((record, number), latest)) => Ok(FoundCompaction {
            record,
            number,
            latest,
        }),
        None => Err(PageError::not_found(receipt)),
    }
}

/// Recomputes a receipt from the archive.
async fn check_receipt(dashboard: &Dashboard, form: &ActionForm) -> Result<String, PageError> {
    let record = find_compaction(dashboard, &form.name, &form.receipt)
        .await?
        .record;
    let report = dashboard.compact.verify(&record.receipt_id).await?;
    let by = match report.by {
        VerifiedBy::Engine => "the engine made the same view from the archived original again",
        VerifiedBy::View(_) => "the archived original and view agree with the receipt",
        VerifiedBy::Original(_) => "the archived original is whole",
    };
    let short: String = record.receipt_id.chars().take(12).collect();
    Ok(match report.mismatches.len() {
        0 => format!("Verified {short}: {by}."),
        wrong => {
            let names: Vec<&str> = report.mismatches.iter().map(|m| m.field.as_str()).collect();
            let fields = count(wrong as u64, "field does", "fields do");
            let names = names.join(", ");
            format!("{short} is not what its archive says: {fields} not agree ({names}).")
        }
    })
}

fn not_a_budget(text: &str) -> String {
    format!("“{}” is no number of tokens", clip_name(text))
}

/// Compacts what is archived of a session.
async fn compact_now(dashboard: &Dashboard, form: &ActionForm) -> Result<String, PageError> {
    let budget = match form.budget.trim() {
        "" => None,
        text => {
            let plain: String = text.chars().filter(|c| !", _.".contains(*c)).collect();
            let tokens = plain
                .parse()
                .map_err(|_| PageError::wrong(&not_a_budget(text), "type one such as 8,000"))?;
            Some(Tokens(tokens))
        }
    };
    let state = dashboard.compact.describe_session(&form.name).await?;
    let is_open = state.is_some_and(|state| state.is_counted());
    let made = dashboard
        .compact
        .compact_archived(&form.name, budget)
        .await?;
    Ok(match (made, budget) {
        (Some(receipt), _) => format!(
            "Compacted: ≈ {}.{}",
            describe_change(&receipt),
            if is_open { ADOPTION } else { "" }
        ),
        (None, Some(budget)) => format!(
            "Nothing was compacted: it is within ≈ {} as it is.",
            count(budget.0, "token", "tokens")
        ),
        (None, None) => "Nothing was compacted: it fits as it is under the policy. Name a number of tokens to make it smaller."
            .to_owned(),
    })
}

/// What is said of a view whose session goes on elsewhere.
const ADOPTION: &str = " The program that has the session open goes on from it when its next compaction is due; what was said since the one before stays as it is.";

/// Tries again what failed.
async fn retry(dashboard: &Dashboard, form: &ActionForm) -> Result<String, PageError> {
    let known = dashboard.compact.describe_session(&form.name).await?;
    if known.is_none() {
        return Err(PageError::not_found(&form.name));
    }
    let records = dashboard.compact.session_records(&form.name).await?;
    if records.is_empty() {
        return Err(PageError::wrong(
            "nothing of it is archived, so that nothing can be compacted from here",
            "go on with it in its own program, which tries again by itself",
        ));
    }
    let made = dashboard.compact.retry_compaction(&form.name).await?;
    Ok(match made {
        Some(receipt) => format!("Compacted: ≈ {}.", describe_change(&receipt)),
        None => "What is archived of it fits as it is. Its own program may try again at once, too."
            .to_owned(),
    })
}

/// Makes a session that stands before a compaction.
async fn undo(dashboard: &Dashboard, form: &ActionForm) -> Result<ActionOutcome, PageError> {
    let found = find_compaction(dashboard, &form.name, &form.receipt).await?;
    let Some(number) = found.number else {
        let reason = "nothing was compacted there, so there is nothing to undo";
        return Err(PageError::wrong(reason, "choose a compaction"));
    };
    let mut branch = format!("{}~before-{number}", form.name);
    let mut again = 2;
    loop {
        let made = dashboard
            .compact
            .branch_before(&form.name, &form.receipt, &branch);
        match made.await {
            Err(compact::Error::NameTaken(_)) => {
                branch = format!("{}~before-{number}-{again}", form.name);
                again += 1;
            }
            made => break made?,
        }
    }
    Ok(ActionOutcome {
        words: format!(
            "Undone in a session of its own, which stands as this one did before compaction {number}. This one is as it was."
        ),
        made: Some(branch),
    })
}

/// Begins a session with what another one knew.
async fn start(visit: &Visit<ActionForm>) -> Result<ActionOutcome, PageError> {
    let form = &visit.asked;
    let new = form.new.trim();
    let scope = visit.viewer.scope.as_str();
    if !visit.viewer.may_see(new) {
        return Err(PageError::wrong(
            &format!(
                "the name of the new session begins with “{scope}”, as those of all your sessions do"
            ),
            &format!("go back and type one such as {scope}next"),
        ));
    }
    if new.len() == scope.len() {
        return Err(PageError::wrong(
            "the new session needs a name of its own",
            "go back and type one",
        ));
    }
    if new.chars().count() > LONGEST_NAME {
        return Err(PageError::wrong(
            &format!("a name has at most {LONGEST_NAME} characters"),
            "go back and type a shorter one",
        ));
    }
    if new.chars().any(is_deceptive) {
        return Err(PageError::wrong(
            "a name has no control characters, and none that turn or hide what is written",
            "go back and type one of letters, digits and signs",
        ));
    }
    find_compaction(&visit.dashboard, &form.name, &form.receipt).await?;
    let compact = &visit.dashboard.compact;
    let started = compact.start_session(&form.name, &form.receipt, new);
    started.await?;
    Ok(ActionOutcome {
        words: "The session is on record. Give its first message to your agent.".to_owned(),
        made: Some(new.to_owned()),
    })
}

/// Removes a session that a person made from another one.
async fn remove(dashboard: &Dashboard, form: &ActionForm) -> Result<ActionOutcome, PageError> {
    dashboard.compact.remove_copied_session(&form.name).await?;
    Ok(format!(
        "Removed {}. The session that it was made from is as it was.",
        clip_name(&form.name)
    )
    .into())
}

/// An entry that a form names.
struct NamedEntry {
    name: EntryHash,
    place: EntryPlace,
}

/// Protects an entry from now on.
async fn pin(dashboard: &Dashboard, form: &ActionForm) -> Result<String, PageError> {
    let entry = find_entry(dashboard, form).await?;
    let protected = dashboard.compact.protect_entry(&form.name, entry.name);
    protected.await?;
    let words = match entry.place {
        EntryPlace::InState => "Pinned: it stands byte for byte in every view from now on.",
        EntryPlace::Left => {
            "Pinned. It has left the view: “Compact now” brings it back byte for byte, and a new session begins with it."
        }
    };
    Ok(words.to_owned())
}

/// Lets a protected entry go.
async fn unpin(dashboard: &Dashboard, form: &ActionForm) -> Result<String, PageError> {
    let entry = find_entry(dashboard, form).await?;
    let released = dashboard.compact.release_entry(&form.name, entry.name);
    released.await?;
    let words = match entry.place {
        EntryPlace::InState => "Unpinned: it may leave the view.",
        EntryPlace::Left => "Unpinned: it stays in the archive.",
    };
    Ok(words.to_owned())
}

async fn find_entry(dashboard: &Dashboard, form: &ActionForm) -> Result<NamedEntry, PageError> {
    let compact = &dashboard.compact;
    let found = find_compaction(dashboard, &form.name, &form.receipt).await?;
    let reading = compact.read_compaction(&found.record.receipt_id).await?;
    let name = reading
        .entry_name(form.at)
        .filter(|_| !reading.is_instruction(form.at));
    let name = name.ok_or_else(|| {
        let reason = "an entry that says nothing, or that is always sent, cannot be pinned";
        PageError::wrong(reason, "choose another one")
    })?;
    let place = EntryPlace::find(&reading, form.at, &found.latest);
    Ok(NamedEntry { name, place })
}
