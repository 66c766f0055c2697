//! Styles as template files: which sections, in which order, what they are headed, how much each
//! voice weighs, and which sections are filled first and never cut.
//!
//! A template opens with a line that says what it is, then `weight VOICE NUMBER` and
//! `section TOPIC [protected|lead]: HEADING` lines. What a model is asked for the same style is in
//! [`crate::prompt`].

use std::sync::LazyLock;

use super::Style;
use crate::ledger::Voice;

/// What a section tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum SectionTopic {
    Goals,
    Rules,
    State,
    Plan,
    Open,
    Done,
    Made,
    Failures,
    Decisions,
    Story,
    Files,
    Code,
    Steps,
}

impl SectionTopic {
    fn from_name(name: &str) -> Option<SectionTopic> {
        Some(match name {
            "goals" => SectionTopic::Goals,
            "rules" => SectionTopic::Rules,
            "state" => SectionTopic::State,
            "plan" => SectionTopic::Plan,
            "open" => SectionTopic::Open,
            "done" => SectionTopic::Done,
            "made" => SectionTopic::Made,
            "failures" => SectionTopic::Failures,
            "decisions" => SectionTopic::Decisions,
            "story" => SectionTopic::Story,
            "files" => SectionTopic::Files,
            "code" => SectionTopic::Code,
            "steps" => SectionTopic::Steps,
            _ => return None,
        })
    }

    /// Sections of the user's own words stand outside the fence.
    pub(super) fn may_instruct(self) -> bool {
        matches!(self, SectionTopic::Goals | SectionTopic::Rules)
    }
}

/// One section of a style.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct StyleSection {
    pub topic: SectionTopic,
    pub heading: &'static str,
    pub rank: SectionRank,
}

/// How a section stands to the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SectionRank {
    /// Filled first and never cut for the others' sake.
    Protected,
    /// What the style is about.
    Lead,
    /// The rest.
    Plain,
}

/// A parsed template.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct StyleTemplate {
    pub weights: [f64; Voice::COUNT],
    pub sections: Vec<StyleSection>,
}

/// How much a summary can hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SummarySize {
    /// Little more than the user's words.
    Small,
    /// Everything, in its sections.
    Full,
}

static TEMPLATES: LazyLock<Vec<StyleTemplate>> = LazyLock::new(|| SOURCES.map(parse_style).into());

const SOURCES: [&str; 7] = [
    include_str!("../../templates/task_state.txt"),
    include_str!("../../templates/brief.txt"),
    include_str!("../../templates/decision_log.txt"),
    include_str!("../../templates/step_ledger.txt"),
    include_str!("../../templates/requirements_ledger.txt"),
    include_str!("../../templates/code_delta.txt"),
    include_str!("../../templates/extractive_brief.txt"),
];

/// The template of a style.
pub(super) fn style_template(style: Style) -> &'static StyleTemplate {
    static NONE: LazyLock<StyleTemplate> = LazyLock::new(StyleTemplate::default);
    TEMPLATES.get(style as usize).unwrap_or(&NONE)
}

/// The template of a style for a summary of this size: a small one of the task's state is the user's words first.
pub(super) fn sized_template(style: Style, size: SummarySize) -> &'static StyleTemplate {
    static SMALL: LazyLock<StyleTemplate> =
        LazyLock::new(|| parse_style(include_str!("../../templates/small_task_state.txt")));
    match (style, size) {
        (Style::TaskState, SummarySize::Small) => &SMALL,
        _ => style_template(style),
    }
}

fn parse_style(source: &'static str) -> StyleTemplate {
    let mut template = StyleTemplate {
        weights: [1.0; Voice::COUNT],
        sections: Vec::new(),
    };
    for line in source.lines() {
        if let Some(rest) = line.strip_prefix("weight ") {
            template.weigh(rest);
        } else if let Some(rest) = line.strip_prefix("section ") {
            template.sections.extend(parse_section(rest));
        }
    }
    template
}

impl StyleTemplate {
    fn weigh(&mut self, rest: &str) {
        let Some((name, number)) = rest.split_once(' ') else {
            return;
        };
        let voices: &[Voice] = match name {
            "user" => &[Voice::User, Voice::System, Voice::Host],
            "model" => &[Voice::Model],
            "call" => &[Voice::Call],
            _ => &[Voice::Tool],
        };
        for voice in voices {
            if let (Some(slot), Ok(number)) =
                (self.weights.get_mut(*voice as usize), number.parse())
            {
                *slot = number;
            }
        }
    }

    /// How much a voice weighs.
    pub(super) fn weight(&self, voice: Voice) -> f64 {
        self.weights.get(voice as usize).copied().unwrap_or(1.0)
    }

    /// How the section of a topic stands to the others, if the style has one.
    pub(super) fn rank(&self, topic: SectionTopic) -> Option<SectionRank> {
        self.sections
            .iter()
            .find(|s| s.topic == topic)
            .map(|s| s.rank)
    }
}

fn parse_section(rest: &'static str) -> Option<StyleSection> {
    let (name, heading) = rest.split_once(": ")?;
    let (name, rank) = match name.split_once(' ') {
        Some((name, "protected")) => (name, SectionRank::Protected),
        Some((name, _)) => (name, SectionRank::Lead),
        None => (name, SectionRank::Plain),
    };
    Some(StyleSection {
        topic: SectionTopic::from_name(name)?,
        heading,
        rank,
    })
}
