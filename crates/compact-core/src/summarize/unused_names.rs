//! Making a ledger that is kept for a long time small: it lets go of names that nobody used.

use std::collections::HashSet;

use crate::ledger::{Entity, Ledger, Voice};

use super::{NameRanking, Style};

/// Leaves a ledger every name that somebody used, and of those that only tools said the `most` heaviest. What they said around the others goes too; facts stay.
pub fn drop_unused_names(ledger: &mut Ledger, most: usize) {
    if ledger.entities.iter().filter(|e| is_unused(e)).count() <= most {
        return;
    }
    let ranking = NameRanking::from_ledger(ledger, Style::TaskState, None);
    let entity = |nth: &usize| ledger.entities.get(*nth);
    let unused = ranking
        .indices()
        .filter(|nth| entity(nth).is_some_and(is_unused));
    let gone: HashSet<usize, foldhash::fast::FixedState> = unused.skip(most).collect();
    ledger.retain(|nth| !gone.contains(&nth));
}

fn is_unused(entity: &Entity) -> bool {
    entity.counts.iter().sum::<u32>() == entity.voice_count(Voice::Tool)
}
