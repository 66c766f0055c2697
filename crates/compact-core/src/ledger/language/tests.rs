use super::*;
use crate::ledger::{Ledger, Voice};
use crate::message::{Entry, Role};

/// What the ledger draws of a message: rules, work put off, decisions.
fn facts(role: Role, text: &str) -> [Vec<String>; 4] {
    let facts = Ledger::from_entries(&[Entry::from_text("0", role, text)], 0).facts;
    [facts.rules, facts.open, facts.decisions, facts.done]
        .map(|list| list.iter().map(|f| f.text.to_string()).collect())
}

/// What a user says, the rules in it, and the work that it puts off.
type LanguageRow = (
    &'static str,
    &'static [&'static str],
    &'static [&'static str],
);

const ROWS: [LanguageRow; 11] = [
    (
        "Bitte baue die Suche neu. Die Tabelle kunden darf nicht geändert werden. Wir nehmen höchstens zwei Abfragen. Muss das sein? Die Doku machen wir später.",
        &[
            "Die Tabelle kunden darf nicht geändert werden.",
            "Wir nehmen höchstens zwei Abfragen.",
        ],
        &["Die Doku machen wir später."],
    ),
    (
        "Corrige la recherche dans le module. Il ne faut jamais modifier la table clients. Les tests doivent passer avant le commit. La doc, on la fera plus tard.",
        &[
            "Il ne faut jamais modifier la table clients.",
            "Les tests doivent passer avant le commit.",
        ],
        &["La doc, on la fera plus tard."],
    ),
    (
        "Arregla la búsqueda en el módulo. No toques la tabla de clientes. Las pruebas siempre deben pasar antes del commit. La documentación queda pendiente.",
        &[
            "No toques la tabla de clientes.",
            "Las pruebas siempre deben pasar antes del commit.",
        ],
        &["La documentación queda pendiente."],
    ),
    (
        "Conserte a busca no módulo, por favor. Não mexa na tabela de clientes. Os testes devem passar antes do commit. A documentação fica para depois.",
        &[
            "Não mexa na tabela de clientes.",
            "Os testes devem passar antes do commit.",
        ],
        &["A documentação fica para depois."],
    ),
    (
        "Sistema la ricerca nel modulo. Non toccare la tabella dei clienti. I test devono passare prima del commit. La documentazione è da fare più tardi.",
        &[
            "Non toccare la tabella dei clienti.",
            "I test devono passare prima del commit.",
        ],
        &["La documentazione è da fare più tardi."],
    ),
    (
        "Почини поиск в модуле. Никогда не меняй таблицу клиентов. Тесты должны проходить до коммита. Нужно ли это? Документацию сделаем позже.",
        &[
            "Никогда не меняй таблицу клиентов.",
            "Тесты должны проходить до коммита.",
        ],
        &["Документацию сделаем позже."],
    ),
    (
        "修复模块里的搜索。不要修改客户表。提交之前测试必须通过。文档稍后再写。",
        &["不要修改客户表。", "提交之前测试必须通过。"],
        &["文档稍后再写。"],
    ),
    (
        "修復模組裡的搜尋。請務必保留客戶表！文件稍後再寫。",
        &["請務必保留客戶表！"],
        &["文件稍後再寫。"],
    ),
    (
        "検索を直してください。顧客テーブルは変更しないでください。コミットの前に必ずテストを実行する。ドキュメントは後で書きます。",
        &[
            "顧客テーブルは変更しないでください。",
            "コミットの前に必ずテストを実行する。",
        ],
        &["ドキュメントは後で書きます。"],
    ),
    (
        "검색을 고쳐 주세요. 고객 테이블은 절대 바꾸지 마세요. 커밋 전에 반드시 테스트를 돌려야 합니다. 문서는 나중에 씁시다.",
        &[
            "고객 테이블은 절대 바꾸지 마세요.",
            "커밋 전에 반드시 테스트를 돌려야 합니다.",
        ],
        &["문서는 나중에 씁시다."],
    ),
    (
        "أصلح البحث في الوحدة. لا تغير جدول العملاء. يجب أن تنجح الاختبارات قبل الحفظ. هل هذا ضروري؟ سنكتب الوثائق لاحقا.",
        &["لا تغير جدول العملاء.", "يجب أن تنجح الاختبارات قبل الحفظ."],
        &["سنكتب الوثائق لاحقا."],
    ),
];

/// A session's beginning in each language: a request, a rule, a rule of another form, a question, and work put off.
#[test]
fn rules_are_recognised_in_the_languages_people_use() {
    for (text, rules, open) in ROWS {
        let [found_rules, found_open, ..] = facts(Role::User, text);
        assert_eq!(
            (found_rules, found_open),
            (
                rules.iter().map(ToString::to_string).collect(),
                open.iter().map(ToString::to_string).collect()
            ),
            "{text}"
        );
    }
}

#[test]
fn a_model_decides_and_finishes_in_other_languages() {
    let [rules, _, decisions, done] = facts(
        Role::Assistant,
        "Причина в кэше, потому что он устарел. Поиск исправлен. Всё готово.",
    );
    assert_eq!(rules, [""; 0]);
    assert_eq!(decisions, ["Причина в кэше, потому что он устарел."]);
    assert_eq!(done, ["Всё готово."]);
}

#[test]
fn every_section_of_every_file_is_used() {
    for language in ALL {
        for (name, cue) in CUES {
            let first = language.section(name).next();
            let phrase = first.map(|line| line.replace('*', "x")).unwrap_or_default();
            assert!(!phrase.is_empty(), "{name} of {}", language.file);
            assert!(language.shows(cue, &format!("x {phrase} x")), "{phrase}");
            assert!(!language.shows(cue, "x y z"), "{name}");
        }
        assert!(language.file.starts_with("# "));
        let known = |line: &&str| line.starts_with('[');
        assert_eq!(language.file.lines().filter(known).count(), CUES.len() + 1);
        assert!(language.file.lines().all(|line| line.trim() == line));
    }
}

#[test]
fn english_and_code_are_not_taken_for_another_language() {
    let texts = [
        "Please fix the search in src/search.rs and run the tests.",
        "La la la",
        "fn main() { let naïve = 1; }",
        "ok",
        "Use el.solo() in the module, it is fine.",
    ];
    for text in texts {
        let [rules, ..] = facts(Role::User, text);
        assert_eq!(rules, [""; 0], "{text}");
    }
}

/// The words stay; that their rules are not recognised is on record.
#[test]
fn a_language_without_cues_is_counted() {
    let messages = [
        ("Διόρθωσε την αναζήτηση και μην αλλάξεις τον πίνακα.", 1),
        ("โปรดแก้ไขการค้นหา อย่าเปลี่ยนตาราง", 1),
        (
            "Proszę, napraw wyszukiwanie, nigdy przy tym nie zmieniając tabeli klientów bez pytania.",
            1,
        ),
        ("Please fix the search.", 0),
        ("Почини поиск и не трогай таблицу.", 0),
    ];
    for (text, unheard) in messages {
        let ledger = Ledger::from_entries(&[Entry::from_text("0", Role::User, text)], 0);
        let requests: Vec<_> = ledger
            .facts
            .requests
            .iter()
            .map(|f| (f.voice, &*f.text))
            .collect();
        assert_eq!(requests, [(Voice::User, text)]);
        assert_eq!(ledger.facts.unheard_requests, unheard, "{text}");
    }
}
