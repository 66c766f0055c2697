//! `verify`: a receipt held against the archive, with the policy and the estimator it names: by the
//! engine that made it, by its archived view where that engine or its redaction rules are not those in
//! force, and what a hook or a run left by its checksum.

use std::path::Path;

use compact::manager::{FieldMismatch, RerunObstacle, VerificationReport, VerifiedBy};
use compact::store::StorePair;
use compact::store::{ArchiveError, CompactionRecord};
use compact::token::Tokens;
use owo_colors::OwoColorize;
use serde_json::{Value, json};

use crate::answer::CommandAnswer;
use crate::app::{App, block_on, estimator_by_name};
use crate::args::{GlobalArgs, VerifyArgs};
use crate::failure::{Failure, FailureCode};
use crate::input::InputSource;
use crate::progress::TerminalProgress;
use crate::report::COLUMNS;
use crate::report::number::{format_count, format_share, group_digits};
use crate::report::text::one_line;

/// Fields that a repeated compaction may tell differently, because they are of the moment and its program.
const MOMENTARY: [&str; 3] = ["created_at", "elapsed_ms", "window"];

/// Checks a receipt.
pub(super) fn run(
    args: &VerifyArgs,
    app: &App,
    global: &GlobalArgs,
) -> Result<CommandAnswer, Failure> {
    let given = GivenReceipt::read(&args.receipt)?;
    let store = app.compact().store_to_read()?;
    let _progress = TerminalProgress::over_bytes(global, usize::MAX, "verifying");
    let (record, checked) = block_on(async {
        let record = store.find_named(given.id()).await?.into_record();
        let mut checked = match record.receipt.origin() {
            Some(_) => check_session_file(&store, &record).await?,
            None => recompute_receipt(app, store, &record).await?,
        };
        let mut mismatches = given.differs_from(record.receipt.as_json());
        mismatches.append(&mut checked.mismatches);
        Ok((
            record,
            ReceiptCheck {
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
        "engine": record.receipt.engine(),
        "verified_by": checked.by.as_str(),
        "reason": checked.by.obstacle().map(describe_obstacle),
        "mismatches": checked.mismatches,
    });
    let code = if ok { 0 } else { FailureCode::Check as u8 };
    Ok(CommandAnswer::new(json, render_check(&record, &checked)).with_code(code))
}

/// What a receipt was held against, and where it says something else.
struct ReceiptCheck {
    by: CheckBasis,
    mismatches: Vec<FieldMismatch>,
}

/// What a receipt was held against.
#[derive(Clone, Copy)]
enum CheckBasis {
    Archive(VerifiedBy),
    Checksum,
    /// The archive could not be read, or the receipt is of a version that is not known.
    Nothing,
}

impl CheckBasis {
    fn as_str(self) -> &'static str {
        match self {
            CheckBasis::Archive(VerifiedBy::Engine) => "engine",
            CheckBasis::Archive(VerifiedBy::View(_)) => "view",
            CheckBasis::Archive(VerifiedBy::Original(_)) => "original",
            CheckBasis::Checksum => "checksum",
            CheckBasis::Nothing => "nothing",
        }
    }

    /// Why the engine was not run again, where it was not.
    fn obstacle(self) -> Option<RerunObstacle> {
        match self {
            CheckBasis::Archive(VerifiedBy::View(why) | VerifiedBy::Original(why)) => Some(why),
            _ => None,
        }
    }

    fn in_words(self) -> String {
        match self {
            CheckBasis::Archive(VerifiedBy::Engine) => {
                "every field recomputes from the archive".to_owned()
            }
            CheckBasis::Archive(VerifiedBy::View(why)) => format!(
                "{}; hashes, counts and sums agree with the archived view",
                describe_obstacle(why)
            ),
            CheckBasis::Archive(VerifiedBy::Original(why)) => format!(
                "{}, and no view was kept; the original is whole",
                describe_obstacle(why)
            ),
            CheckBasis::Checksum | CheckBasis::Nothing => "the file is what was written".to_owned(),
        }
    }
}

fn describe_obstacle(why: RerunObstacle) -> &'static str {
    match why {
        RerunObstacle::OtherEngine => "made by another version of the engine",
        RerunObstacle::OtherRedaction => "made under other redaction settings",
        RerunObstacle::NoCompaction => "nothing was compacted",
        RerunObstacle::RedactedOriginal => "secrets were redacted when its original was archived",
    }
}

/// What a hook or a run left has no receipt but its own bytes.
async fn check_session_file(
    store: &StorePair,
    record: &CompactionRecord,
) -> Result<ReceiptCheck, Failure> {
    let Some(pack) = &record.input_pack else {
        return Err(compact::manager::RuntimeError::NotArchived(record.receipt_id.clone()).into());
    };
    let mismatches = match store.archive.verify(pack).await {
        Ok(()) => Vec::new(),
        Err(error) => archive_mismatch(record, error)?,
    };
    Ok(ReceiptCheck {
        by: CheckBasis::Checksum,
        mismatches,
    })
}

/// What the person holds: a name, or a whole receipt.
enum GivenReceipt {
    Name(String),
    Receipt { id: String, fields: Value },
}

impl GivenReceipt {
    fn read(argument: &str) -> Result<GivenReceipt, Failure> {
        let path = Path::new(argument);
        if argument != "-" && !path.is_file() {
            return Ok(GivenReceipt::Name(argument.to_owned()));
        }
        let source = InputSource::read(path)?;
        let fields: Value = serde_json::from_slice(&source.bytes).map_err(|error| {
            Failure::from_error(FailureCode::Input, &error)
                .with_context(&format!("{} is not a receipt", source.name))
                .help("pass what `compactctl compact --json` printed, or a receipt's id")
        })?;
        match fields.get("receipt_id").and_then(Value::as_str) {
            Some(id) => Ok(GivenReceipt::Receipt {
                id: id.to_owned(),
                fields,
            }),
            None => Err(Failure::new(
                FailureCode::Input,
                format!("{} has no `receipt_id`", source.name),
            )
            .help("pass what `compactctl compact --json` printed; an unchanged session has no receipt")),
        }
    }

    fn id(&self) -> &str {
        match self {
            GivenReceipt::Name(id) | GivenReceipt::Receipt { id, .. } => id,
        }
    }

    /// Where the person's copy is not what was recorded.
    fn differs_from(&self, recorded: &Value) -> Vec<FieldMismatch> {
        let (GivenReceipt::Receipt { fields, .. }, Some(known)) = (self, recorded.as_object())
        else {
            return Vec::new();
        };
        known
            .iter()
            .filter(|(field, _)| !MOMENTARY.contains(&field.as_str()))
            .filter_map(|(field, value)| {
                let given = fields.get(field).unwrap_or(&Value::Null);
                (given != value).then(|| FieldMismatch {
                    field: field.clone(),
                    recorded: given.clone(),
                    recomputed: value.clone(),
                })
            })
            .collect()
    }
}

/// What the archive says, under the receipt's own terms.
async fn recompute_receipt(
    app: &App,
    store: StorePair,
    record: &CompactionRecord,
) -> Result<ReceiptCheck, Failure> {
    let unread = |mismatches| ReceiptCheck {
        by: CheckBasis::Nothing,
        mismatches,
    };
    let Some(terms) = record.receipt.terms() else {
        return Ok(unread(vec![FieldMismatch {
            field: "policy".to_owned(),
            recorded: record.receipt.as_json().clone(),
            recomputed: json!("a policy and an estimator that this version knows"),
        }]));
    };
    let manager =
        app.compact()
            .build_manager(store, terms.policy, estimator_by_name(&terms.estimator)?)?;
    match manager.verify_receipt(&record.receipt_id).await {
        Ok(VerificationReport { by, mismatches }) => Ok(ReceiptCheck {
            by: CheckBasis::Archive(by),
            mismatches,
        }),
        Err(compact::manager::RuntimeError::Archive(error)) => {
            archive_mismatch(record, error).map(unread)
        }
        Err(other) => Err(other.into()),
    }
}

/// An original that is gone or damaged is what a check is there to find.
fn archive_mismatch(
    record: &CompactionRecord,
    error: ArchiveError,
) -> Result<Vec<FieldMismatch>, Failure> {
    match error {
        ArchiveError::Missing { .. }
        | ArchiveError::MissingBase { .. }
        | ArchiveError::Damaged { .. } => Ok(vec![FieldMismatch {
            field: "archive".to_owned(),
            recorded: record
                .receipt
                .as_json()
                .get("archive")
                .cloned()
                .unwrap_or_default(),
            recomputed: json!(error.to_string()),
        }]),
        other => Err(other.into()),
    }
}

fn render_check(record: &CompactionRecord, checked: &ReceiptCheck) -> String {
    let mismatches = &checked.mismatches;
    if mismatches.is_empty() {
        return render_verified(record, checked.by);
    }
    let found = format_count(mismatches.len() as u64, "field does", "fields do");
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

fn render_verified(record: &CompactionRecord, by: CheckBasis) -> String {
    let head = format!(
        "{} receipt {}\n",
        "verified".green().bold(),
        record.receipt_id
    );
    if let CheckBasis::Checksum = by {
        return format!("{head}  {}\n", by.in_words());
    }
    let number = |tokens: Option<Tokens>| group_digits(tokens.unwrap_or_default().0);
    let receipt = &record.receipt;
    format!(
        "{head}  {} to {} tokens, retention {}: {}\n",
        number(receipt.tokens_before()),
        number(receipt.tokens_after()),
        format_share(receipt.retention_score()),
        by.in_words(),
    )
}
