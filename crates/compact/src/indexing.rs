//! The recall index, brought up to date: by one process of a machine at a time, off the path of whoever compacts.

use std::time::Duration;

use compact_adapters::store::IndexTurn;
use compact_runtime::recall::IndexUpdate;

use crate::compact::Compact;
use crate::error::Error;
use crate::storage::ConfiguredStores;

/// How long a search waits for another process that brings the index up to date, before it does so itself.
const PATIENCE: Duration = Duration::from_secs(60);

impl Compact {
    /// Adds what was archived to the recall index, until nothing is left or another process has its turn. Nothing
    /// is lost if this is killed: what is missing is added by the next call or by the next search.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), compact::Error> {
    /// let compact = compact::Compact::builder().in_memory().build()?;
    /// assert_eq!(compact.index_archive().await?.added, 0);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn index_archive(&self) -> Result<IndexUpdate, Error> {
        let mut done = IndexUpdate::default();
        while self.has_store() {
            let Some(turn) = self.take_index_turn() else {
                break;
            };
            let recall = self.open_recall()?;
            let update = recall.update_index().await?;
            done += update;
            drop(turn);
            // Who came meanwhile and found the turn taken relies on this look.
            if update.added == 0 || recall.outdated_sessions().await?.is_empty() {
                break;
            }
        }
        Ok(done)
    }

    /// Returns whether another process brings the index up to date just now.
    pub fn is_indexing(&self) -> bool {
        self.take_index_turn().is_none()
    }

    /// Waits until no other process brings the index up to date, within bounds.
    pub async fn wait_for_index_turn(&self) -> Option<IndexTurn> {
        let ConfiguredStores { stores, .. } = self.configured_stores()?;
        stores.wait_for_index_turn(PATIENCE).await
    }

    /// Takes the turn to bring the index up to date, also where no other process could.
    fn take_index_turn(&self) -> Option<Option<IndexTurn>> {
        match self.configured_stores() {
            None => Some(None),
            Some(configured) => configured.stores.take_index_turn().map(Some),
        }
    }
}
