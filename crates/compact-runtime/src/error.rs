//! What can go wrong while driving a compaction.

use crate::port::archive::ArchiveError;
use crate::port::catalog::CatalogError;

/// An error of the runtime.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The archive could not store or return a pack.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// The catalog could not record or answer.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
}
