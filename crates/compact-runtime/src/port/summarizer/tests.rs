use super::*;

#[tokio::test]
async fn the_scripted_summarizer_conforms() {
    let scripted = ScriptedSummarizer::new([ScriptedAnswer::Says("the port is 8080".to_owned())]);
    conformance::suite(&scripted).await;
    assert_eq!(scripted.asked_questions().len(), 5);
    let question = conformance::sample_question();
    assert_eq!(scripted.asked_questions().first(), Some(&question));
}

#[tokio::test]
async fn a_failure_happens_once_and_the_end_of_a_script_is_told() {
    let fails = ScriptedAnswer::Fails(SummarizerError::Timeout(Duration::from_millis(1500)));
    let scripted = ScriptedSummarizer::new([fails]);
    let question = conformance::sample_question();
    let first = scripted.answer(&question).await.unwrap_err().to_string();
    assert_eq!(first, "no answer within 1.5 s");
    let second = scripted.answer(&question).await.unwrap_err().to_string();
    assert_eq!(second, "the script has ended");
}
