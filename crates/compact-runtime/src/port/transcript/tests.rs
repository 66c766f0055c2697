use super::*;

#[tokio::test]
async fn memory_conforms() {
    conformance::suite(&MemoryTranscripts::default()).await;
}
