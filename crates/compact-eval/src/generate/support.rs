//! A support chat: one customer, many orders, an agent with tools.
//!
//! The customer sets conditions and changes some of them; tools fail and are repeated; cases are
//! decided, closed or left open.

use serde_json::{Value, json};

use super::author::Author;
use super::openai_chat::Frame;
use super::planted::Kind;
use super::script::{Call, Script, Spot};

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

struct Support<'g> {
    author: Author<'g>,
    script: Script,
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
pub(crate) fn write(author: Author<'_>, size: usize) -> (Script, Frame) {
    let mut chat = Support::new(author);
    let mut first = true;
    while chat.script.size < size {
        chat.case(if first { "opening" } else { "next_issue" });
        first = false;
    }
    chat.close();
    let frame = Frame {
        system: chat.author.write("system_prompt"),
        tools: tools(),
    };
    (chat.script, frame)
}

impl<'g> Support<'g> {
    fn new(mut author: Author<'g>) -> Self {
        let name = format!("{} {}", author.write("person"), author.write("surname"));
        let customer = format!("C-{}", author.random.between(100_000, 999_999));
        let standing = CONDITIONS.iter().map(|_| None).collect();
        let email = author.write("email").to_lowercase();
        let (amount, product) = (String::new(), String::new());
        Support {
            author,
            script: Script::default(),
            name,
            customer,
            email,
            amount,
            product,
            standing,
        }
    }

    fn write(&mut self, rule: &str, order: &str) -> String {
        let given = [
            ("order", order),
            ("name", &*self.name),
            ("customer", &*self.customer),
            ("email", &*self.email),
            ("amount", &*self.amount),
        ];
        self.author.write_with(rule, &given)
    }

    /// What people say in a case, about one product.
    fn tell(&mut self, rule: &str, order: &str) -> String {
        let given = [
            ("order", order),
            ("name", &*self.name),
            ("customer", &*self.customer),
            ("amount", &*self.amount),
            ("product", &*self.product),
        ];
        self.author.write_with(rule, &given)
    }

    fn case(&mut self, opening: &str) {
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
        let mut text = self.tell(opening, order);
        let condition = self.author.random.percent(60).then(|| self.condition());
        if let Some(condition) = &condition {
            text = format!("{text} {}", condition.said);
        }
        let spot = self.script.user(text.clone());
        self.script.plant(spot, Kind::Goal, &text, &[order]);
        self.script.plant(spot, Kind::Id, order, &[order]);
        if let Some(condition) = condition {
            self.impose(spot, condition);
        }
    }

    fn condition(&mut self) -> Condition {
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
        Condition {
            which,
            value,
            text,
            said,
            replaces: replaces.map(|(fact, _)| fact),
        }
    }

    fn impose(&mut self, spot: Spot, condition: Condition) {
        let id = self
            .script
            .plant(spot, Kind::Constraint, &condition.text, &[&condition.value]);
        if let Some(old) = condition.replaces {
            self.script
                .amend(&old, |fact| fact.superseded_by = Some(id.clone()));
        }
        if let Some(place) = self.standing.get_mut(condition.which) {
            *place = Some((id, condition.value));
        }
    }

    fn look_up(&mut self, order: &str) {
        let text = self.tell("look", order);
        let details = self.write("order_json", order);
        let article = self.write("kb_json", order);
        let query = self.author.write("kb_title");
        let calls = vec![
            call("get_order", json!({"order_id": order}), details),
            call(
                "search_articles",
                json!({"query": query, "limit": 3}),
                article,
            ),
        ];
        self.script.act(None, Some(text), calls);
        let explanation = self.tell("explain", order);
        self.script.say(explanation);
    }

    fn decide(&mut self, order: &str) {
        let reply = self.author.write("support_thanks");
        self.script.user(reply);
        let decision = self.tell("support_decision", order);
        let reason = self.tell("support_reason", order);
        let note = format!("{decision}; reason: {reason}");
        let input = json!({"customer_id": self.customer, "order_id": order, "note": note});
        let saved = format!(
            "{{\"case_note\": \"CN-{}\", \"saved\": true}}",
            self.author.random.between(10_000, 99_999)
        );
        let text = format!("I decided on this: {decision}, because {reason}.");
        let spot = self
            .script
            .act(None, Some(text), vec![call("add_case_note", input, saved)]);
        let id = self
            .script
            .plant(spot, Kind::Decision, &decision, &[&decision]);
        self.script.amend(&id, |fact| fact.reason = Some(reason));
    }

    fn carry_out(&mut self, order: &str) {
        let input =
            json!({"order_id": order, "amount": self.amount, "key": self.author.random.hex(12)});
        if self.author.random.percent(55) {
            let (failure, remedy) = self
                .author
                .random
                .pick(FAILURES)
                .copied()
                .unwrap_or_default();
            let error = self.tell(failure, order);
            let failed = Call {
                failed: true,
                ..call("settle_order", input.clone(), error.clone())
            };
            let spot = self.script.act(None, None, vec![failed]);
            let error = self
                .script
                .plant(spot.result(0), Kind::Error, &error, &[&error]);
            let fix = self.tell(remedy, order);
            let spot = self
                .script
                .say(format!("That did not go through at first. I {fix}."));
            let fix = self.script.plant(spot, Kind::Fix, &fix, &[&fix]);
            self.script.amend(&error, |fact| fact.fixed_by = Some(fix));
        }
        let done = self.write("order_json", order);
        self.script
            .act(None, None, vec![call("settle_order", input, done)]);
    }

    fn finish(&mut self, order: &str) {
        let done = self.tell("support_done", order);
        let mut text = done.clone();
        let open = self
            .author
            .random
            .percent(40)
            .then(|| self.tell("support_open", order));
        if let Some(open) = &open {
            text = format!("{text} What remains: {open}.");
        }
        let spot = self.script.say(text);
        self.script
            .plant(spot, Kind::Done, &done, &[done.trim_end_matches('.')]);
        if let Some(open) = open {
            self.script.plant(spot, Kind::Open, &open, &[&open]);
        }
    }

    fn close(&mut self) {
        self.script.user(
            "That is all for now. Can you sum up what you did and what I still have to wait for?"
                .into(),
        );
    }
}

struct Condition {
    which: usize,
    value: String,
    text: String,
    said: String,
    replaces: Option<String>,
}

fn call(name: &'static str, input: Value, output: String) -> Call {
    Call {
        name,
        input,
        output,
        ..Call::default()
    }
}

fn tools() -> Vec<Value> {
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
