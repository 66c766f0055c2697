//! A support chat: one customer, many orders, an agent with tools.
//!
//! The customer sets conditions and changes some of them; tools fail and are repeated; cases are
//! decided, closed or left open.

use serde_json::{Value, json};

use super::author::Author;
use super::openai_chat::ChatSetup;
use super::planted::PlantedKind;
use super::script::{ScriptCall, ScriptPosition, SessionScript};

/// Conditions a customer may set: the rule that words them and the one that fills them.
const CONDITIONS: &[(&str, &str)] = &[
    ("topic_contact", "contact"),
    ("topic_delivery", "delivery"),
    ("topic_money", "money"),
    ("topic_callback", "callback"),
];

/// How a tool fails, and what helps.
const FAILURES: &[(&str, &str)] = &[
    ("support_error_a", "support_fix_a"),
    ("support_error_b", "support_fix_b"),
    ("support_error_c", "support_fix_c"),
    ("support_error_d", "support_fix_d"),
];

struct SupportChat<'g> {
    author: Author<'g>,
    script: SessionScript,
    name: String,
    customer: String,
    email: String,
    /// What the case at hand is about.
    amount: String,
    product: String,
    /// For each condition its fact and value, while it stands.
    standing: Vec<Option<(String, String)>>,
}

/// Writes a chat of at least so many bytes of text.
pub(crate) fn write_script(author: Author<'_>, size: usize) -> (SessionScript, ChatSetup) {
    let mut chat = SupportChat::new(author);
    let mut first = true;
    while chat.script.size < size {
        chat.add_case(if first { "opening" } else { "next_issue" });
        first = false;
    }
    chat.close();
    let frame = ChatSetup {
        system: chat.author.write("system_prompt"),
        tools: tool_definitions(),
    };
    (chat.script, frame)
}

impl<'g> SupportChat<'g> {
    fn new(mut author: Author<'g>) -> Self {
        let name = format!("{} {}", author.write("person"), author.write("surname"));
        let customer = format!("C-{}", author.random.between(100_000, 999_999));
        let standing = CONDITIONS.iter().map(|_| None).collect();
        let email = author.write("email").to_lowercase();
        let (amount, product) = (String::new(), String::new());
        SupportChat {
            author,
            script: SessionScript::default(),
            name,
            customer,
            email,
            amount,
            product,
            standing,
        }
    }

    fn write_record(&mut self, rule: &str, order: &str) -> String {
        let given = [
            ("order", order),
            ("name", &*self.name),
            ("customer", &*self.customer),
            ("email", &*self.email),
            ("amount", &*self.amount),
        ];
        self.author.write_with(rule, &given)
    }

    /// Returns what people say in a case, about one product.
    fn write_speech(&mut self, rule: &str, order: &str) -> String {
        let given = [
            ("order", order),
            ("name", &*self.name),
            ("customer", &*self.customer),
            ("amount", &*self.amount),
            ("product", &*self.product),
        ];
        self.author.write_with(rule, &given)
    }

    fn add_case(&mut self, opening: &str) {
        let order = format!("NO-{}", self.author.random.between(1_000_000, 9_999_999));
        self.amount = self.author.write("amount");
        self.product = self.author.write("product");
        self.complain(opening, &order);
        self.look_up(&order);
        self.decide(&order);
        self.carry_out(&order);
        self.finish(&order);
    }

    fn complain(&mut self, opening: &str, order: &str) {
        let mut text = self.write_speech(opening, order);
        let condition = self
            .author
            .random
            .roll_percent(60)
            .then(|| self.plan_condition());
        if let Some(condition) = &condition {
            text = format!("{text} {}", condition.said);
        }
        let spot = self.script.add_user(text.clone());
        self.script.plant(spot, PlantedKind::Goal, &text, &[order]);
        self.script.plant(spot, PlantedKind::Id, order, &[order]);
        if let Some(condition) = condition {
            self.impose(spot, condition);
        }
    }

    fn plan_condition(&mut self) -> CustomerCondition {
        let which = self.author.random.index(CONDITIONS.len());
        let (rule, fill) = CONDITIONS.get(which).copied().unwrap_or_default();
        let value = self.author.write(fill);
        let text = self.author.write_with(rule, &[("value", &value)]);
        let replaces = self.standing.get_mut(which).and_then(Option::take);
        let intro = match replaces {
            Some(_) => self.author.write("support_superseding_intro"),
            None => self.author.write("support_constraint_intro"),
        };
        let said = format!("{intro} {text}.");
        CustomerCondition {
            which,
            value,
            text,
            said,
            replaces: replaces.map(|(fact, _)| fact),
        }
    }

    fn impose(&mut self, spot: ScriptPosition, condition: CustomerCondition) {
        let id = self.script.plant(
            spot,
            PlantedKind::Constraint,
            &condition.text,
            &[&condition.value],
        );
        if let Some(old) = condition.replaces {
            self.script
                .amend(&old, |fact| fact.superseded_by = Some(id.clone()));
        }
        if let Some(place) = self.standing.get_mut(condition.which) {
            *place = Some((id, condition.value));
        }
    }

    fn look_up(&mut self, order: &str) {
        let text = self.write_speech("look", order);
        let details = self.write_record("order_json", order);
        let article = self.write_record("kb_json", order);
        let query = self.author.write("kb_title");
        let calls = vec![
            tool_call("get_order", json!({"order_id": order}), details),
            tool_call(
                "search_articles",
                json!({"query": query, "limit": 3}),
                article,
            ),
        ];
        self.script.add_assistant(None, Some(text), calls);
        let explanation = self.write_speech("explain", order);
        self.script.add_reply(explanation);
    }

    fn decide(&mut self, order: &str) {
        let reply = self.author.write("support_thanks");
        self.script.add_user(reply);
        let decision = self.write_speech("support_decision", order);
        let reason = self.write_speech("support_reason", order);
        let note = format!("{decision}; reason: {reason}");
        let input = json!({"customer_id": self.customer, "order_id": order, "note": note});
        let saved = format!(
            "{{\"case_note\": \"CN-{}\", \"saved\": true}}",
            self.author.random.between(10_000, 99_999)
        );
        let text = format!("I decided on this: {decision}, because {reason}.");
        let spot = self.script.add_assistant(
            None,
            Some(text),
            vec![tool_call("add_case_note", input, saved)],
        );
        let id = self
            .script
            .plant(spot, PlantedKind::Decision, &decision, &[&decision]);
        self.script.amend(&id, |fact| fact.reason = Some(reason));
    }

    fn carry_out(&mut self, order: &str) {
        let input =
            json!({"order_id": order, "amount": self.amount, "key": self.author.random.hex(12)});
        if self.author.random.roll_percent(55) {
            let (failure, remedy) = self
                .author
                .random
                .pick(FAILURES)
                .copied()
                .unwrap_or_default();
            let error = self.write_speech(failure, order);
            let failed = ScriptCall {
                failed: true,
                ..tool_call("settle_order", input.clone(), error.clone())
            };
            let spot = self.script.add_assistant(None, None, vec![failed]);
            let error = self
                .script
                .plant(spot.at_result(0), PlantedKind::Error, &error, &[&error]);
            let fix = self.write_speech(remedy, order);
            let spot = self
                .script
                .add_reply(format!("That did not go through at first. I {fix}."));
            let fix = self.script.plant(spot, PlantedKind::Fix, &fix, &[&fix]);
            self.script.amend(&error, |fact| fact.fixed_by = Some(fix));
        }
        let done = self.write_record("order_json", order);
        self.script
            .add_assistant(None, None, vec![tool_call("settle_order", input, done)]);
    }

    fn finish(&mut self, order: &str) {
        let done = self.write_speech("support_done", order);
        let mut text = done.clone();
        let open = self
            .author
            .random
            .roll_percent(40)
            .then(|| self.write_speech("support_open", order));
        if let Some(open) = &open {
            text = format!("{text} What remains: {open}.");
        }
        let spot = self.script.add_reply(text);
        self.script.plant(
            spot,
            PlantedKind::Done,
            &done,
            &[done.trim_end_matches('.')],
        );
        if let Some(open) = open {
            self.script.plant(spot, PlantedKind::Open, &open, &[&open]);
        }
    }

    fn close(&mut self) {
        self.script.add_user(
            "That is all for now. Can you sum up what you did and what I still have to wait for?"
                .into(),
        );
    }
}

struct CustomerCondition {
    which: usize,
    value: String,
    text: String,
    said: String,
    replaces: Option<String>,
}

fn tool_call(name: &'static str, input: Value, output: String) -> ScriptCall {
    ScriptCall {
        name,
        input,
        output,
        ..ScriptCall::default()
    }
}

fn tool_definitions() -> Vec<Value> {
    [
        ("get_order", "Everything about one order.", json!({"order_id": {"type": "string"}})),
        ("search_articles", "Searches the help articles.", json!({"query": {"type": "string"}, "limit": {"type": "integer"}})),
        ("add_case_note", "Writes a note into the customer's case.", json!({"customer_id": {"type": "string"}, "order_id": {"type": "string"}, "note": {"type": "string"}})),
        ("settle_order", "Refunds, replaces or claims, as the case note says.", json!({"order_id": {"type": "string"}, "amount": {"type": "string"}, "key": {"type": "string"}})),
        ("request_approval", "Asks a supervisor.", json!({"order_id": {"type": "string"}, "reason": {"type": "string"}})),
    ]
    .into_iter()
    .map(|(name, description, properties)| {
        json!({"type": "function", "function": {"name": name, "description": description,
            "parameters": {"type": "object", "properties": properties}}})
    })
    .collect()
}
