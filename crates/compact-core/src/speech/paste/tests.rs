use proptest::prelude::*;

use super::*;

fn own(text: &str) -> String {
    let own = own_words(text);
    own.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A message in which `ORDER` is somebody else's, and what is left of it as its writer's own.
const BROUGHT_ALONG: [(&str, &str); 56] = [
    (
        "The server sends\n{\"text\": \"Hello,\nORDER\nBye\"}",
        "The server sends",
    ),
    (
        "See @guide.md\n--- Content from referenced files ---\nContent from @guide.md:\nORDER\n--- End of content ---",
        "See @guide.md",
    ),
    (
        "Shorten it.\n<attached>\n<file path=\"b.md\">\nORDER\n</file>\n</attached>\nThanks a lot.",
        "Shorten it. Thanks a lot.",
    ),
    (
        "<doc><body>ORDER</body></doc> Which port is it",
        "Which port is it",
    ),
    ("Is <quote>ORDER</quote> polite", "Is polite"),
    ("<page>\nORDER", ""),
    (
        "Results of the search:\n1. one.example: ORDER\n2. nothing",
        "Results of the search:",
    ),
    (
        "Which page is it?\n\nTitle: Guide\nORDER",
        "Which page is it?",
    ),
    (
        "notes/today.md:\nORDER\n\nfix the spelling",
        "notes/today.md:",
    ),
    (
        "What we talked about:\n- Ann: ORDER\n- Bob: no",
        "What we talked about:",
    ),
    (
        "- Ann: ORDER\n- Bob: no\nWrite the minutes.",
        "Write the minutes.",
    ),
    ("Translate for me: ORDER", "Translate for me:"),
    (
        "It failed. The last message was: ORDER",
        "It failed. The last message was:",
    ),
    ("stderr:\nORDER\nexit code 2", "stderr:"),
    ("From: c@d.example\nSubject: hello\n\nORDER", ""),
    (
        "I got this.\n\nDear client,\nORDER\nBest regards,\nShop\n\nORDER",
        "I got this.",
    ),
    ("Dear client,\nORDER", ""),
    ("Look at this\n> ORDER\nHa.", "Look at this Ha."),
    (
        "They sent a patch\n+ // ORDER\n@@ ORDER\nHm.",
        "They sent a patch Hm.",
    ),
    ("Try this\n```\nORDER\n```\nand that", "Try this and that"),
    (
        "Try this\n```md\nORDER\n```sh\nORDER\n```\nORDER\n```\nand that",
        "Try this and that",
    ),
    ("Try this\n~~~\nORDER\n~~~\nand that", "Try this and that"),
    ("Try this\n```\nORDER", "Try this"),
    ("\"\"\"\nORDER\n\"\"\"\nWho wrote it", "Who wrote it"),
    (
        "{\"role\":\"system\",\"content\":\"ORDER\"}\nIs it JSON",
        "Is it JSON",
    ),
    ("{\n\"role\": \"ORDER\"\n}", "{ }"),
    ("2026-01-02 10:00:00 ERROR ORDER\nWhy", "Why"),
    ("[10:00] ORDER\nWhy", "Why"),
    ("$ cat a.txt\nORDER", ""),
    ("Look at this\n---\nORDER", "Look at this"),
    ("Look\n===== page 2 =====\nORDER", "Look"),
    ("Look\ndiff --git a/x b/x\nORDER", "Look"),
    ("User: hello\nAssistant: ORDER", ""),
    ("System: ORDER", ""),
    (
        "Here is the log:\n```\nORDER\n```\nWhat is it",
        "Here is the log: What is it",
    ),
    // A writer who directs goes on in their own words where the list ends, or with the next heading.
    (
        "Fix the errors in these files:\n- a.rs: ORDER\n  ORDER\n- b.rs\n\nRun the tests.",
        "Fix the errors in these files: Run the tests.",
    ),
    (
        "## Job\nFix these errors:\nORDER\n# ORDER\n## Rules\nNo globals.",
        "## Job Fix these errors: ## Rules No globals.",
    ),
    (
        "Put the following below the title:\nORDER",
        "Put the following below the title:",
    ),
    (
        "Add this to the readme:\n\nORDER",
        "Add this to the readme:",
    ),
    (
        "- Commit message: ORDER\n- Run the tests.",
        "- Commit message: - Run the tests.",
    ),
    // What somebody else wrote has headings too.
    (
        "## Question\nWhat does the page say:\n## Setup\nORDER",
        "## Question What does the page say:",
    ),
    ("See this\n---\n# Rules\nORDER", "See this"),
    ("# Job\nSee this\n---\n## Rules\nORDER", "# Job See this"),
    (
        "Here are the notes:\n- ORDER\n\nORDER",
        "Here are the notes:",
    ),
    // A text needs no colon before it, and may stand before what its reader wants.
    (
        "Here is the README.\n\n# Tool\n## Rules\n- ORDER",
        "Here is the README.",
    ),
    (
        "can you summarize this page?\nORDER",
        "can you summarize this page?",
    ),
    (
        "what do you think of this?\n- ORDER",
        "what do you think of this?",
    ),
    (
        "# Guide\n\n## Rules\n- ORDER\n\n^ shorten this to half",
        "^ shorten this to half",
    ),
    (
        "# Guide\nORDER\nORDER\n\nCould you translate this page?",
        "Could you translate this page?",
    ),
    ("Translate to German\nORDER", "Translate to German"),
    ("please proofread:\n\nORDER", "please proofread:"),
    ("why\nmain.c:10: warning: ORDER", "why"),
    ("optimise\n-- ORDER\n// ORDER", "optimise"),
    ("From the page below:\n- ORDER", "From the page below:"),
    (
        "See the page below.\n---\nRules: ORDER",
        "See the page below.",
    ),
    (
        "**Job**\nApply the patch:\nORDER\n**Rules**\nNo globals.",
        "**Job** Apply the patch: **Rules** No globals.",
    ),
];

#[test]
fn what_a_person_brings_along_is_not_their_own() {
    for (text, expected) in BROUGHT_ALONG {
        assert_eq!(own(text), expected, "{text}");
    }
}

#[test]
fn what_a_person_writes_is_their_own() {
    let texts = [
        "Fix the parser. Never push to main.",
        "Please do this:\n- Never push to main.\n- Rename it.",
        "Rules:\n- Never push to main.",
        "## Rules\n- Never push to main.",
        "One condition: never push to main.",
        "Fix src/a.rs: it must not panic.",
        "Database: never use another one.",
        "Hi Ann,\nnever push to main.",
        "Use a < b and Vec<String> here.",
        "<rules>Never push to main.</rules>",
        "**Important:** never push to main.",
        "Run it at 10:30.",
        "Add two jobs in `ci.yml`:\n\n**`scan.yml`**\n- Run on push.\n\nNever push to main.",
        "## One\nFix it.\n---\n## Two\nNever push to main.",
        "Work through the following in order:\n1. Never push to main.\n2. Rename it.",
        "- Run the tests after each step:\n  - all of them\n- Never push to main.",
        "Commit message: `ci: scan`\n\nNever push to main.",
        "We run three services:\n- invoicing\n- dunning\n\n## Rules\n- Never push to main.",
        "Fix it.\n\nOut of scope:\n- never push to main\n\n**Don't:**\n- inline styles",
        "Fix it.\n---\nConstraints: never push to main.",
        "Deadline: Friday.\nBudget: at most 200 lines.\nNever push to main.",
        "My answers to your questions:\n1. yes\n2. no, never push to main",
        "For each ticket:\nNever include names.",
        "Please do this one now: report the lists. Ticket is B-49.\nNever push to main.",
        "Could you do this in Rust?\nNever push to main.",
        "",
    ];
    for text in texts {
        assert_eq!(own_words(text), text);
    }
}

#[test]
fn what_was_pasted_is_marked_or_counted() {
    let text = "Is it right?\n> No.\nHm.";
    assert_eq!(mark_pasted(text), "Is it right?\n[pasted: > No.]\nHm.");
    assert_eq!(
        leave_out_pasted(text),
        "Is it right?\n[pasted: 5 characters]\nHm."
    );
}

#[test]
fn a_letter_is_known_by_its_end() {
    let rows = [
        ("Send it.\nBest regards,\nShop", true),
        ("Send it.\nKind regards", true),
        ("Regards are sent by the job.", false),
        ("Send it.", false),
    ];
    for (text, expected) in rows {
        assert_eq!(is_letter(text), expected, "{text}");
    }
}

#[test]
fn what_nothing_closes_goes_on() {
    let rows = [
        ("Here is the file:", true),
        ("```\nx", true),
        ("--- a.md ---\nx", true),
        ("```\nx\n```", false),
        ("<a>x</a>", false),
        ("Fix it.", false),
    ];
    for (text, expected) in rows {
        assert_eq!(PastedParts::find(text).is_open, expected, "{text}");
    }
}

proptest! {
    #[test]
    fn parts_are_in_order_and_replaced_once(text in "([a-z <>/:\"`>+\\-$é\n]|</a>|<a>|```|\nFrom: |: ){0,60}") {
        let parts = PastedParts::find(&text);
        let mut end = 0;
        for place in &parts.places {
            prop_assert!(place.start >= end && place.end > place.start);
            prop_assert!(text.get(place.clone()).is_some());
            end = place.end;
        }
        let kept = parts.replace(&text, str::to_owned);
        prop_assert_eq!(kept, text.as_str());
    }
}
