//! Estimators by name, and those that need tables: OpenAI's byte-pair encodings, and the families
//! of other makers as o200k's count times a measured factor (docs/models.md).
//!
//! The tables are part of the program and read where they lie: nothing is unpacked on first use.

mod long_text;
#[cfg(test)]
mod tests;

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::sync::Arc;

use compact_bpe::Encoding;
use compact_core::token::{Chars4, Estimator, Heuristic, Units};
use compact_core::window;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Tokens that a message costs beside its text: role and separators.
const FRAMING: Units = Units(4);

/// An exact count by byte-pair encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BpeEstimator {
    /// gpt-4o and everything since.
    O200k,
    /// gpt-4 and gpt-3.5.
    Cl100k,
}

impl BpeEstimator {
    /// Returns the encoding of a model; `o200k` stands in for those that are not OpenAI's.
    pub fn for_model(model: &str) -> BpeEstimator {
        let old = [
            "gpt-4",
            "gpt-3.5",
            "gpt-35",
            "text-embedding-3",
            "text-embedding-ada",
        ];
        let new = ["gpt-4o", "gpt-4.1", "gpt-4.5"];
        let model = model.to_ascii_lowercase();
        // `azure/gpt-4-32k` and `ft:gpt-4:acme` are gpt-4.
        let is_old = model.split(['/', ':']).any(|name| {
            let is = |families: &[&str]| families.iter().any(|family| name.starts_with(family));
            is(&old) && !is(&new)
        });
        if is_old {
            BpeEstimator::Cl100k
        } else {
            BpeEstimator::O200k
        }
    }

    fn encoding(self) -> Encoding {
        match self {
            BpeEstimator::O200k => Encoding::O200k,
            BpeEstimator::Cl100k => Encoding::Cl100k,
        }
    }
}

impl Estimator for BpeEstimator {
    fn name(&self) -> &str {
        match self {
            BpeEstimator::O200k => "o200k",
            BpeEstimator::Cl100k => "cl100k",
        }
    }

    fn count_units(&self, text: &str) -> Units {
        Units(long_text::count_tokens(self.encoding(), text) as u64)
    }

    fn framing_units(&self) -> Units {
        FRAMING
    }
}

/// Tokens of other families for one hundred of o200k, measured by `xtask/python/token_factors.py`;
/// Claude's from what its API reported. A family that is not here counts as o200k.
const FAMILIES: [(&str, u64); 5] = [
    ("claude", 118),
    ("gemini", 120),
    ("qwen", 106),
    ("mistral", 110),
    ("deepseek", 105),
];

/// The factors that a name may carry, in hundredths.
const FACTORS: RangeInclusive<u64> = 50..=400;

/// o200k's count times a factor: `o200kx1.18`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScaledEstimator {
    name: String,
    /// The factor in hundredths, so that sums of units are exact.
    percent: u64,
}

impl ScaledEstimator {
    fn new(percent: u64) -> ScaledEstimator {
        ScaledEstimator {
            name: format!("o200kx{}.{:02}", percent / 100, percent % 100),
            percent,
        }
    }

    /// Returns the estimator of a model's family, where that is none of OpenAI's.
    pub fn for_model(model: &str) -> Option<ScaledEstimator> {
        let known = window::find_model(model);
        let name = model.to_ascii_lowercase();
        let is_family = |(family, _): &&(&str, u64)| match &known {
            Some(model) => model.tokenizer == *family,
            None => name.contains(family),
        };
        let (_, percent) = FAMILIES.iter().find(is_family)?;
        Some(ScaledEstimator::new(*percent))
    }

    /// Returns the estimator that a receipt names.
    fn from_name(name: &str) -> Option<ScaledEstimator> {
        let factor = name.strip_prefix("o200k")?.strip_prefix(['×', 'x'])?;
        let (whole, hundredths) = factor.split_once('.')?;
        let percent = (hundredths.len() == 2)
            .then(|| format!("{whole}{hundredths}").parse().ok())
            .flatten()?;
        FACTORS
            .contains(&percent)
            .then(|| ScaledEstimator::new(percent))
    }
}

impl Estimator for ScaledEstimator {
    fn name(&self) -> &str {
        &self.name
    }

    fn count_units(&self, text: &str) -> Units {
        Units(
            BpeEstimator::O200k
                .count_units(text)
                .0
                .saturating_mul(self.percent),
        )
    }

    fn units_per_token(&self) -> u64 {
        100
    }

    fn framing_units(&self) -> Units {
        Units(FRAMING.0 * self.percent)
    }
}

/// The estimators that can be chosen by name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum EstimatorChoice {
    /// What fits the model: its encoding, or o200k times its family's factor.
    #[default]
    Auto,
    /// OpenAI's o200k BPE.
    O200k,
    /// OpenAI's cl100k BPE.
    Cl100k,
    /// Characters ÷ 4, a token per CJK character.
    Heuristic,
    /// Code points ÷ 4.
    Chars4,
}

impl EstimatorChoice {
    /// Every choice, in the order of help texts.
    pub const ALL: [EstimatorChoice; 5] = [
        EstimatorChoice::Auto,
        EstimatorChoice::O200k,
        EstimatorChoice::Cl100k,
        EstimatorChoice::Heuristic,
        EstimatorChoice::Chars4,
    ];

    /// Returns the name that people type.
    pub fn as_str(self) -> &'static str {
        match self {
            EstimatorChoice::Auto => "auto",
            EstimatorChoice::O200k => "o200k",
            EstimatorChoice::Cl100k => "cl100k",
            EstimatorChoice::Heuristic => "heuristic",
            EstimatorChoice::Chars4 => "chars4",
        }
    }

    /// Returns the estimator itself; the model matters to [`EstimatorChoice::Auto`] alone.
    pub fn build_estimator(self, model: Option<&str>) -> Arc<dyn Estimator> {
        match self {
            EstimatorChoice::Auto => estimator_for_model(model.unwrap_or_default()),
            EstimatorChoice::O200k => Arc::new(BpeEstimator::O200k),
            EstimatorChoice::Cl100k => Arc::new(BpeEstimator::Cl100k),
            EstimatorChoice::Heuristic => Arc::new(Heuristic),
            EstimatorChoice::Chars4 => Arc::new(Chars4),
        }
    }
}

/// Returns the estimator that fits a model.
fn estimator_for_model(model: &str) -> Arc<dyn Estimator> {
    match ScaledEstimator::for_model(model) {
        Some(scaled) => Arc::new(scaled),
        None => Arc::new(BpeEstimator::for_model(model)),
    }
}

impl fmt::Display for EstimatorChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A name that is no estimator's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown estimator `{0}`: use auto, o200k, cl100k, heuristic or chars4")]
pub struct UnknownEstimator(String);

impl FromStr for EstimatorChoice {
    type Err = UnknownEstimator;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let mut all = EstimatorChoice::ALL.into_iter();
        all.find(|choice| choice.as_str() == name)
            .ok_or_else(|| UnknownEstimator(name.to_owned()))
    }
}

/// Returns the estimator called `name`, for a model if one is known.
pub fn by_name(name: &str, model: Option<&str>) -> Result<Arc<dyn Estimator>, UnknownEstimator> {
    match ScaledEstimator::from_name(name) {
        Some(scaled) => Ok(Arc::new(scaled)),
        None => Ok(name.parse::<EstimatorChoice>()?.build_estimator(model)),
    }
}
