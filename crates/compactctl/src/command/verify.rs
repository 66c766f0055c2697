//! `verify`: a receipt held against the archive, with the policy and the estimator it names: by the
//! engine that made it, by its archived view where that was another, and what a hook or a run left by
//! its checksum.

use std::path::Path;

use compact_core::policy::Policy;
use compact_runtime::manager::{Mismatch, Verified, VerifiedBy};
use compact_runtime::port::archive::ArchiveError;
use compact_runtime::port::catalog::CompactionRecord;
use owo_colors::OwoColorize;
use serde_json::{Value, json};

use crate::answer::Answer;
use crate::args::{Global, Verify};
use crate::failure::{Code, Failure};
use crate::host::library::ORIGIN;
use crate::input::Source;
use crate::progress::Progress;
use crate::report::COLUMNS;
use crate::report::number::{count, grouped, percent};
use crate::report::text::one_line;
use crate::world::{Store, World, block_on, estimator_named};

/// Fields that a repeated compaction may tell differently, because they are of the moment.
const MOMENTARY: [&str; 2] = ["created_at", "elapsed_ms"];

/// Checks a receipt.
pub fn run(args: &Verify, world: &World, global: &Global) -> Result<Answer, Failure> {
    let given = Given::read(&args.receipt)?;
    let store = world.store_to_read()?;
    let _progress = Progress::over_bytes(global, usize::MAX, "verifying");
    let (record, checked) = block_on(async {
        let record = find(&store, given.id()).await?;
        let mut checked = match record.receipt.get(ORIGIN) {
            Some(_) => check_file(&store, &record).await?,
            None => recompute(world, store, &record).await?,
        };
        let mut mismatches = given.differs_from(&record.receipt);
        mismatches.append(&mut checked.mismatches);
        Ok((
            record,
            Checked {
                mismatches,
                ..checked
            },
        ))
    })?;
    let ok = checked.mismatches.is_empty();
    let json = json!({
        "ok": ok,
        "receipt_id": record.receipt_id,
        "session_id": record.session_id,
        "engine": record.receipt.get("engine"),
        "verified_by": checked.by.as_str(),
        "mismatches": checked.mismatches,
    });
    let code = if ok { 0 } else { Code::Check as u8 };
    Ok(Answer::new(json, tell(&record, &checked)).with_code(code))
}

/// What a receipt was held against, and where it says something else.
struct Checked {
    by: By,
    mismatches: Vec<Mismatch>,
}

/// What a receipt was held against.
#[derive(Clone, Copy)]
enum By {
    Archive(VerifiedBy),
    Checksum,
    /// The archive could not be read, or the receipt is of a version that is not known.
    Nothing,
}

impl By {
    fn as_str(self) -> &'static str {
        match self {
            By::Archive(VerifiedBy::Engine) => "engine",
            By::Archive(VerifiedBy::View) => "view",
            By::Archive(VerifiedBy::Original) => "original",
            By::Checksum => "checksum",
            By::Nothing => "nothing",
        }
    }

    fn in_words(self) -> &'static str {
        match self {
            By::Archive(VerifiedBy::Engine) => "every field recomputes from the archive",
            By::Archive(VerifiedBy::View) => {
                "made by another version of the engine; hashes, counts and sums agree with the archived view"
            }
            By::Archive(VerifiedBy::Original) => {
                "made by another version of the engine, which kept no view; the original is whole"
            }
            By::Checksum | By::Nothing => "the file is what was written",
        }
    }
}

/// What a hook or a run left has no receipt but its own bytes.
async fn check_file(store: &Store, record: &CompactionRecord) -> Result<Checked, Failure> {
    let Some(pack) = &record.input_pack else {
        return Err(compact_runtime::Error::NotArchived(record.receipt_id.clone()).into());
    };
    let mismatches = match store.archive.verify(pack).await {
        Ok(()) => Vec::new(),
        Err(error) => damage(record, error)?,
    };
    Ok(Checked {
        by: By::Checksum,
        mismatches,
    })
}

/// What the person holds: a name, or a whole receipt.
enum Given {
    Name(String),
    Receipt { id: String, fields: Value },
}

impl Given {
    fn read(argument: &str) -> Result<Given, Failure> {
        let path = Path::new(argument);
        if argument != "-" && !path.is_file() {
            return Ok(Given::Name(argument.to_owned()));
        }
        let source = Source::read(path)?;
        let fields: Value = serde_json::from_slice(&source.bytes).map_err(|error| {
            Failure::of(Code::Input, &error)
                .about(&format!("{} is no receipt", source.name))
                .help("pass what `compactctl compact --json` printed, or a receipt's id")
        })?;
        match fields.get("receipt_id").and_then(Value::as_str) {
            Some(id) => Ok(Given::Receipt {
                id: id.to_owned(),
                fields,
            }),
            None => Err(Failure::new(
                Code::Input,
                format!("{} has no `receipt_id`", source.name),
            )
            .help("pass what `compactctl compact --json` printed; an unchanged session has no receipt")),
        }
    }

    fn id(&self) -> &str {
        match self {
            Given::Name(id) | Given::Receipt { id, .. } => id,
        }
    }

    /// Where the person's copy is not what was recorded.
    fn differs_from(&self, recorded: &Value) -> Vec<Mismatch> {
        let (Given::Receipt { fields, .. }, Some(known)) = (self, recorded.as_object()) else {
            return Vec::new();
        };
        known
            .iter()
            .filter(|(field, _)| !MOMENTARY.contains(&field.as_str()))
            .filter_map(|(field, value)| {
                let given = fields.get(field).unwrap_or(&Value::Null);
                (given != value).then(|| Mismatch {
                    field: field.clone(),
                    recorded: given.clone(),
                    recomputed: value.clone(),
                })
            })
            .collect()
    }
}

async fn find(store: &Store, name: &str) -> Result<CompactionRecord, Failure> {
    match store.catalog.by_receipt(name).await? {
        Some(record) => Ok(record),
        None => store
            .catalog
            .latest(name)
            .await?
            .ok_or_else(|| Failure::from(compact_runtime::Error::NotFound(name.to_owned()))),
    }
}

/// What the archive says, under the receipt's own terms.
async fn recompute(
    world: &World,
    store: Store,
    record: &CompactionRecord,
) -> Result<Checked, Failure> {
    let unread = |mismatches| Checked {
        by: By::Nothing,
        mismatches,
    };
    let (Some(policy), Some(estimator)) = (
        field::<Policy>(record, "policy"),
        field::<String>(record, "estimator"),
    ) else {
        return Ok(unread(vec![Mismatch {
            field: "policy".to_owned(),
            recorded: record.receipt.clone(),
            recomputed: json!("a policy and an estimator that this version knows"),
        }]));
    };
    let manager = world.manager_of(store, policy, estimator_named(&estimator)?)?;
    match manager.verify(&record.receipt_id).await {
        Ok(Verified { by, mismatches }) => Ok(Checked {
            by: By::Archive(by),
            mismatches,
        }),
        Err(compact_runtime::Error::Archive(error)) => damage(record, error).map(unread),
        Err(other) => Err(other.into()),
    }
}

fn field<T: serde::de::DeserializeOwned>(record: &CompactionRecord, name: &str) -> Option<T> {
    let value = record.receipt.get(name)?;
    serde_json::from_value(value.clone()).ok()
}

/// An original that is gone or damaged is what a check is there to find.
fn damage(record: &CompactionRecord, error: ArchiveError) -> Result<Vec<Mismatch>, Failure> {
    match error {
        ArchiveError::Missing { .. }
        | ArchiveError::MissingBase { .. }
        | ArchiveError::Damaged { .. } => Ok(vec![Mismatch {
            field: "archive".to_owned(),
            recorded: record
                .receipt
                .get("archive")
                .cloned()
                .unwrap_or(Value::Null),
            recomputed: json!(error.to_string()),
        }]),
        other => Err(other.into()),
    }
}

fn tell(record: &CompactionRecord, checked: &Checked) -> String {
    let mismatches = &checked.mismatches;
    if mismatches.is_empty() {
        return told_whole(record, checked.by);
    }
    let found = count(mismatches.len() as u64, "field does", "fields do");
    let mut out = format!(
        "{} receipt {}: {found} not recompute\n",
        "failed".red().bold(),
        record.receipt_id,
    );
    for mismatch in mismatches {
        let width = COLUMNS - 15;
        out.push_str(&format!(
            "  {}\n    recorded   {}\n    recomputed {}\n",
            mismatch.field.bold(),
            one_line(&mismatch.recorded.to_string(), width),
            one_line(&mismatch.recomputed.to_string(), width),
        ));
    }
    out
}

fn told_whole(record: &CompactionRecord, by: By) -> String {
    let head = format!(
        "{} receipt {}\n",
        "verified".green().bold(),
        record.receipt_id
    );
    if let By::Checksum = by {
        return format!("{head}  {}\n", by.in_words());
    }
    let number = |field: &str| {
        let value = record.receipt.get(field).and_then(Value::as_u64);
        grouped(value.unwrap_or(0))
    };
    let score = record.receipt.pointer("/retention/score");
    format!(
        "{head}  {} to {} tokens, retention {}: {}\n",
        number("tokens_before"),
        number("tokens_after"),
        percent(score.and_then(Value::as_f64).unwrap_or(0.0)),
        by.in_words(),
    )
}
