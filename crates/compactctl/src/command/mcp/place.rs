//! Where the tool `compact` may write: beside its input or into the store, and nothing that something would run.
//!
//! A model may have been talked into the path by what it read. So a view is a new file of its owner alone,
//! under a name that no program takes for settings or a script, in no folder that a version control
//! keeps its own files in. Links are followed before a folder is judged.

use std::ffi::OsStr;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use compact::hook::private;

use crate::failure::{Failure, FailureCode};

/// The folder for views in the store.
pub(super) const VIEWS_FOLDER: &str = "views";

/// How the name of a view may end. Plenty of programs obey a `.json` that lies in the right place; none a `.jsonl`.
const ENDINGS: [&str; 2] = [".jsonl", ".view.json"];

/// Folders that version controls keep hooks and settings in.
const VERSION_CONTROL: [&str; 4] = [".git", ".hg", ".svn", ".jj"];

/// Returns where a view of `input` goes that was asked for as `output`; the folder is there then.
pub(super) fn find_output(output: &str, input: &Path, store: &Path) -> Result<PathBuf, Failure> {
    let wanted = super::compact::absolute_path(output, &advice(store))?;
    let name = wanted.file_name().filter(|name| is_view_name(name));
    let (Some(name), Some(folder)) = (name, wanted.parent()) else {
        return Err(Failure::usage(
            format!("'{output}' is no name for a view"),
            &advice(store),
        ));
    };
    let views = store.join(VIEWS_FOLDER);
    if folder == views {
        private::create_dir(&views).map_err(|error| {
            Failure::from_error(FailureCode::Unexpected, &error)
                .with_context(&format!("cannot create {}", views.display()))
        })?;
    }
    let found = folder.canonicalize();
    let is_allowed =
        |place: &Path| matches!((&found, place.canonicalize()), (Ok(a), Ok(b)) if *a == b);
    match &found {
        Ok(found) if is_version_control(found) => {}
        Ok(found) if is_allowed(&views) || input.parent().is_some_and(is_allowed) => {
            return Ok(found.join(name));
        }
        Err(error) if error.kind() != ErrorKind::NotFound => {
            return Err(Failure::from_error(FailureCode::Input, error)
                .with_context(&format!("cannot write to {}", folder.display())));
        }
        _ => {}
    }
    Err(Failure::usage(
        format!("a view is not written to {}", folder.display()),
        &advice(store),
    ))
}

fn advice(store: &Path) -> String {
    let views = store.join(VIEWS_FOLDER);
    format!(
        "name a new file *.jsonl or *.view.json in the transcript's folder or in {}, or leave output out",
        views.display()
    )
}

fn is_view_name(name: &OsStr) -> bool {
    name.to_str().is_some_and(|name| {
        !name.starts_with('.') && ENDINGS.iter().any(|ending| name.ends_with(ending))
    })
}

fn is_version_control(folder: &Path) -> bool {
    let mut parts = folder.iter().filter_map(OsStr::to_str);
    parts.any(|part| {
        VERSION_CONTROL
            .iter()
            .any(|kept| part.eq_ignore_ascii_case(kept))
    })
}
