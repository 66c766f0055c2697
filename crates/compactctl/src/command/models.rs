//! `models`: what the registry knows about windows, prices and tokenizers.

use compact_core::window::{self, Model};
use owo_colors::Style;
use serde_json::json;

use crate::answer::Answer;
use crate::args::Models;
use crate::failure::{Code, Failure};
use crate::report::number;
use crate::report::table::{Column, Table};

/// Lists the models.
pub fn run(args: &Models) -> Result<Answer, Failure> {
    let found = select(args.name.as_deref());
    if found.is_empty() {
        let name = args.name.as_deref().unwrap_or_default();
        let words = format!("no model '{name}' in the registry");
        return Err(Failure::new(Code::Input, words)
            .help("an unknown model gets 128,000 tokens; set its own with --window"));
    }
    let rows: Vec<_> = found.iter().map(|model| json!(model)).collect();
    Ok(Answer::new(json!(rows), table(&found)))
}

/// Models whose name or alias contains the words, or the one that a vendor's spelling means.
fn select(name: Option<&str>) -> Vec<Model> {
    let Some(name) = name else {
        return window::models().to_vec();
    };
    let wanted = name.to_lowercase();
    let contains = |text: &&str| text.to_lowercase().contains(&wanted);
    let found: Vec<Model> = window::models()
        .iter()
        .filter(|model| contains(&model.name) || model.aliases.iter().any(contains))
        .cloned()
        .collect();
    if found.is_empty() {
        return window::find(name).into_iter().collect();
    }
    found
}

fn table(models: &[Model]) -> String {
    let mut table = Table::new([
        Column::left(),
        Column::right(),
        Column::right(),
        Column::right(),
        Column::right(),
        Column::left().style(Style::new().dimmed()),
    ]);
    table.row(
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
        let price = |of: fn(&window::Price) -> f64| {
            let price = model.price.as_ref();
            price.map_or_else(String::new, |p| format!("{:.2}", of(p)))
        };
        table.row([
            model.name.to_owned(),
            number::grouped(model.input),
            model.output.map_or_else(String::new, number::grouped),
            price(|p| p.input),
            price(|p| p.output),
            model.tokenizer.to_owned(),
        ]);
    }
    table.render()
}
