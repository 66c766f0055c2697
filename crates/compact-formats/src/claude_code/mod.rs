//! stub
use crate::error::FormatError;
use crate::source::Reading;
use crate::wire::{Page, Wire};
use crate::{Document, Scope};
use compact_core::view::View;
use compact_core::wire::WireRules;
pub(crate) struct ClaudeCode;
impl Wire for ClaudeCode {
    fn rules(&self) -> &'static WireRules {
        &WireRules::LENIENT
    }
    fn read(&self, _s: &[u8], _scope: Scope) -> Result<Reading, FormatError> {
        Err(FormatError::Empty)
    }
    fn emit(&self, _p: &Page<'_>, _v: &View) -> Result<Vec<u8>, FormatError> {
        Err(FormatError::Empty)
    }
    fn extend(&self, _f: &Document, _l: &Page<'_>, _n: usize) -> Result<Vec<u8>, FormatError> {
        Err(FormatError::Empty)
    }
}
