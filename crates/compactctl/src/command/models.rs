//! `models`: what the registry knows about windows, prices and tokenizers.

use compact::token::{self, ModelInfo};
use owo_colors::Style;
use serde_json::json;

use crate::answer::CommandAnswer;
use crate::args::ModelsArgs;
use crate::failure::{Failure, FailureCode};
use crate::report::number;
use crate::report::table::{Column, Table};

/// Lists the models.
pub(super) fn run(args: &ModelsArgs) -> Result<CommandAnswer, Failure> {
    let found = select(args.name.as_deref());
    if found.is_empty() {
        let name = args.name.as_deref().unwrap_or_default();
        let words = format!("no model '{name}' in the registry");
        return Err(Failure::new(FailureCode::Input, words)
            .help("an unknown model gets 128,000 tokens; set its own with --window"));
    }
    let rows: Vec<_> = found.iter().map(|model| json!(model)).collect();
    Ok(CommandAnswer::new(json!(rows), render_models(&found)))
}

/// Models whose name or alias contains the words, or the one that a vendor's spelling means.
fn select(name: Option<&str>) -> Vec<ModelInfo> {
    let Some(name) = name else {
        return token::models().to_vec();
    };
    let wanted = name.to_lowercase();
    let contains = |text: &&str| text.to_lowercase().contains(&wanted);
    let found: Vec<ModelInfo> = token::models()
        .iter()
        .filter(|model| contains(&model.name) || model.aliases.iter().any(contains))
        .cloned()
        .collect();
    if found.is_empty() {
        return token::find_model(name).into_iter().collect();
    }
    found
}

fn render_models(models: &[ModelInfo]) -> String {
    let mut table = Table::new([
        Column::left(),
        Column::right(),
        Column::right(),
        Column::right(),
        Column::right(),
        Column::left().style(Style::new().dimmed()),
    ]);
    table.add_row(
        [
            "model",
            "window",
            "answer",
            "$/M in",
            "$/M out",
            "tokenizer",
        ]
        .map(str::to_owned),
    );
    for model in models {
        let price = |of: fn(&token::ModelPrice) -> f64| {
            let price = model.price.as_ref();
            price.map_or_else(String::new, |p| format!("{:.2}", of(p)))
        };
        table.add_row([
            model.name.to_owned(),
            number::group_digits(model.input),
            model.output.map_or_else(String::new, number::group_digits),
            price(|p| p.input),
            price(|p| p.output),
            model.tokenizer.to_owned(),
        ]);
    }
    table.render()
}
