//! Sessions and compactions as a person looks at them: numbers over time, and what went in beside what came out.

use compact_runtime::manager::RestoredOriginal;
use compact_runtime::port::catalog::CompactionRecord;
use compact_runtime::reading::{CompactionReading, LeftOutName, SessionCurve};

use crate::compact::Compact;
use crate::error::Error;

impl Compact {
    /// Counts a session call by call from what is archived of it.
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
    /// let records = compact.session_records("runs").await?;
    /// let curve = compact.session_curve(&records).await?;
    /// assert_eq!(curve.calls.len(), 40);
    /// assert!(curve.calls[0].tokens < curve.calls[39].tokens);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn session_curve(&self, records: &[CompactionRecord]) -> Result<SessionCurve, Error> {
        let Some(latest) = records.last() else {
            return Ok(SessionCurve::default());
        };
        let manager = self.manager_under_terms(self.store_to_read()?, latest)?;
        Ok(manager.session_curve(records).await?)
    }

    /// Returns all that a session held up to a compaction: its first input and what was appended since, byte for byte as it
    /// was archived.
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
    /// let records = compact.session_records("runs").await?;
    /// let original = compact.restore_session(&records[0]).await?;
    /// assert!(original.exact && original.bytes.len() > 30_000);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn restore_session(
        &self,
        latest: &CompactionRecord,
    ) -> Result<RestoredOriginal, Error> {
        let manager = self.reading_manager()?;
        Ok(manager.restore_session(latest).await?)
    }

    /// Reads what a compaction was given and what it made of it.
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
    /// let reading = compact.read_compaction("runs").await?;
    /// assert_eq!(reading.opening(0, 80), "Measure run 0.");
    /// assert!(reading.view().unwrap().len() < reading.entry_count());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn read_compaction(
        &self,
        session_or_receipt: &str,
    ) -> Result<CompactionReading, Error> {
        let store = self.store_to_read()?;
        let record = store.find_named(session_or_receipt).await?.into_record();
        let manager = self.manager_under_terms(store, &record)?;
        Ok(manager.read_compaction(&record).await?)
    }

    /// Returns what mattered in what a compaction left out and its view says nowhere, the most needed first. Each is in
    /// the archive: [`Compact::expand`] brings its entry back.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), compact::Error> {
    /// # use serde_json::{Value, json};
    /// # let compact = compact::Compact::builder().in_memory().window(20_000).build()?;
    /// # let turn = |n: u32| [
    /// #     json!({"role": "user", "content": format!("Fix src/part_{n}/file_{n}.rs and ticket SHOP-{n}77.")}),
    /// #     json!({"role": "assistant", "content": format!("It was E0{n}99 in src/part_{n}/file_{n}.rs. ").repeat(9)}),
    /// # ];
    /// # let messages: Vec<Value> = (100..300).flat_map(turn).collect();
    /// # use compact::token::Tokens;
    /// compact.session("runs").compact(&messages, None).await?;
    /// compact.compact_archived("runs", Some(Tokens(1_500))).await?;
    /// let record = compact.session_records("runs").await?.remove(1);
    /// let left = compact.left_out_names(&record).await?;
    /// let counted = record.receipt.retention().unwrap().recoverable;
    /// assert!(counted > 0 && left.len() as u64 == counted);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn left_out_names(
        &self,
        record: &CompactionRecord,
    ) -> Result<Vec<LeftOutName>, Error> {
        let manager = self.manager_under_terms(self.store_to_read()?, record)?;
        Ok(manager.left_out_names(record).await?)
    }
}
