//! A folder with a store in it, and a session whose n-th entry is always the same.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use compact_adapters::archive::ObjectArchive;
use compact_adapters::catalog::SqliteCatalog;
use compact_adapters::exporter::BackgroundSink;
use compact_adapters::transcript::TranscriptFiles;
use compact_core::event::Event;
use compact_core::message::{Block, Entry, EntryId, EntryMeta, Role};
use compact_core::policy::Policy;
use compact_core::redact::Redactor;
use compact_core::token::{Chars4, Tokens};
use compact_runtime::Manager;
use compact_runtime::port::event::{EventSink, FanoutSink};

pub(crate) const WINDOW: Tokens = Tokens(2_000);

/// Short, since the next process is started at once when one was killed.
const LEASE: Duration = Duration::from_millis(50);

/// A sink that never comes back.
struct Hanging;

impl EventSink for Hanging {
    fn emit(&self, _: &Event) {
        loop {
            std::thread::park();
        }
    }
}

/// A sink that always breaks.
struct Breaking;

impl EventSink for Breaking {
    fn emit(&self, event: &Event) {
        // Not `panic!`: its message would fill the output of the test.
        std::panic::resume_unwind(Box::new(event.kind.name()));
    }
}

/// A manager on the stores in `dir`; whoever is told of events hangs or breaks.
pub(crate) fn manager(dir: &Path) -> Arc<Manager> {
    let sinks: [Box<dyn EventSink>; 2] = [
        Box::new(BackgroundSink::new(Hanging)),
        Box::new(BackgroundSink::new(Breaking)),
    ];
    let archive = ObjectArchive::open(&dir.join("archive")).unwrap();
    let catalog = SqliteCatalog::open(&dir.join("catalog.db")).unwrap();
    let catalog = Arc::new(catalog.with_lease_time(LEASE));
    let redactor = Arc::new(Redactor::new(&Default::default()).unwrap());
    let policy = Policy {
        soft_pct: Some(0.4),
        ..Policy::default()
    };
    let manager = Manager::new(catalog, Arc::new(Chars4), redactor, WINDOW)
        .with_archive(Some(Arc::new(archive)))
        .with_sink(Arc::new(FanoutSink(sinks.into())));
    Arc::new(manager.with_policy(policy))
}

pub(crate) fn transcripts(dir: &Path) -> TranscriptFiles {
    TranscriptFiles::new(dir.join("transcripts"))
}

/// The n-th entry of every session: a request, then calls and results in turn.
pub(crate) fn entry(n: usize) -> Entry {
    let (role, block) = match n {
        0 => (Role::User, Block::Text("Port the parser.".into())),
        n if n % 2 == 1 => (
            Role::Assistant,
            Block::ToolCall {
                id: format!("call{n}"),
                name: "read_file".into(),
                arguments: format!("{{\"path\":\"src/module_{n}.rs\"}}"),
            },
        ),
        n => (
            Role::Tool,
            Block::ToolResult {
                call: format!("call{}", n - 1),
                content: format!("pub fn handler_{n}() {{}}\n").repeat(20),
                is_error: false,
            },
        ),
    };
    Entry {
        id: EntryId(format!("e{n}")),
        role,
        blocks: vec![block],
        meta: EntryMeta::default(),
    }
}
