use std::net::TcpListener;

use compact_core::event::{
    CallOutcome, CategoryTokens, Event, EventKind, EventScope, FailedModel, Substitute,
    TraceContext, UsageReport,
};
use compact_core::token::Tokens;
use compact_core::trigger::CompactionCause;
use compact_runtime::port::event::EventSink;
use compact_runtime::port::event::conformance::{self, trigger_decision};
use expect_test::{Expect, expect};
use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use serde_json::json;

use super::settings::TraceSampler;
use super::*;

fn set(pairs: &[(&str, &str)]) -> CollectorSettings {
    settings(None, None, pairs)
}

fn settings(
    endpoint: Option<&str>,
    protocol: Option<CollectorProtocol>,
    pairs: &[(&str, &str)],
) -> CollectorSettings {
    let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    CollectorSettings::new(endpoint, protocol, pairs.iter().map(own))
}

fn check(event: &Event, expected: &Expect) {
    let told: Vec<String> = event_attributes(&json!(event))
        .into_iter()
        .map(|attribute| {
            let value = match attribute.value.and_then(|v| v.value) {
                Some(Any::StringValue(text)) => format!("{text:?}"),
                Some(Any::IntValue(number)) => number.to_string(),
                Some(Any::DoubleValue(number)) => format!("{number:?}"),
                other => format!("{other:?}"),
            };
            format!("{} = {value}\n", attribute.key)
        })
        .collect();
    expected.assert_eq(&told.concat());
}

#[test]
fn every_field_of_an_event_is_an_attribute() {
    check(
        &trigger_decision(),
        &expect![[r#"
            compact.session_id = "abc"
            compact.event = "compact.trigger_decision"
            compact.severity = "info"
            compact.model = "gpt-5-reasoning"
            compact.t_est = 112345
            compact.max = 128000
            compact.policy.trigger_pct = 0.85
            compact.policy.buffer = 1500
            compact.kept.pinned = 3
            compact.kept.recent_turns = 6
            compact.kept.tool_pairs = 4
            compact.kept.clipped = 0
            compact.kept.newest_cut = 0
            compact.pruned_count = 47
            compact.summary_tokens = 480
            compact.cause = "threshold"
            compact.verdict = "compact_now"
            compact.reason = "88 % of the window"
            compact.pressure = 0.88
            gen_ai.conversation.id = "abc"
            gen_ai.request.model = "gpt-5-reasoning"
        "#]],
    );
}

fn call() -> Option<TraceContext> {
    TraceContext::parse("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
}

#[test]
fn a_record_has_the_events_time_name_and_severity() {
    let mut event = trigger_decision();
    event.kind = EventKind::NotArchived;
    event.scope.call = call();
    let record = log_record(&json!(event));
    assert_eq!(record.time_unix_nano, 1_760_853_600_000_000_000);
    assert_eq!(record.event_name, "compact.not_archived");
    assert_eq!(record.severity_text, "WARN");
    assert_eq!((record.trace_id.len(), record.span_id.len()), (16, 8));
    for odd in conformance::odd_events() {
        log_record(&json!(odd));
    }
}

/// What a host exports need not be an event of ours, or one at all.
#[test]
fn what_a_host_exports_is_recorded_and_counted_by_name() {
    let odd = [
        json!({"event": "compact.of_the_host", "trace_id": "4bf92f3577b34da6a3ce929d0e0e4736",
            "span_id": "00f067aa0ba902b7", "ts": "2025-10-19T06:00:00Z", "list": [1, "two"]}),
        json!({}),
        json!(null),
        json!([1, "two"]),
        json!({"event": 7, "session_id": null, "t_est": "many", "max": 0, "kept": []}),
        json!({"event": "compact.call_ended"}),
    ];
    let mut spans = SpanAssembler::new(set(&[]).sampler);
    for json in &odd {
        let exported = ExportedEvent::from(json.clone());
        assert_eq!(exported.event, None);
        assert_eq!(spans.add_event(&exported), None);
        log_record(json);
    }
    let own = log_record(&odd[0]);
    assert_eq!(own.event_name, "compact.of_the_host");
    assert_eq!(own.time_unix_nano, 1_760_853_600_000_000_000);
    expect![[r#"
        compact.events {event=compact.call_ended} AsInt(1)
        compact.events {event=compact.of_the_host} AsInt(1)
        compact.events {event=event} AsInt(4)
        compact.events.dropped {} AsInt(3)"#]]
    .assert_eq(&sums(&odd.map(ExportedEvent::from)).join("\n"));
}

#[test]
fn an_event_of_ours_is_known_by_its_json() {
    let event = trigger_decision();
    let exported = ExportedEvent::from(&event);
    assert_eq!(ExportedEvent::from(json!(event)), exported);
    assert_eq!(exported.event, Some(event));
}

fn event_at(kind: EventKind, ts: &str) -> ExportedEvent {
    let scope = EventScope {
        call: call(),
        ..EventScope::default()
    };
    ExportedEvent::from(&scope.event(kind, ts))
}

#[test]
fn a_calls_events_are_on_its_span_when_it_ends() {
    let mut spans = SpanAssembler::new(set(&[]).sampler);
    let estimate = EventKind::TokenEstimate { tokens: None };
    let estimate = event_at(estimate, "2026-01-01T00:00:00.990Z");
    assert_eq!(spans.add_event(&estimate), None);
    let decision = event_at(trigger_decision().kind, "2026-01-01T00:00:00.991Z");
    assert_eq!(spans.add_event(&decision), None);
    let outside = ExportedEvent::from(&trigger_decision());
    assert_eq!(spans.add_event(&outside), None, "it is part of no call");
    let end = EventKind::CallEnded {
        call: "before_model_call".to_owned(),
        outcome: CallOutcome::Failed,
        duration_ms: 12.5,
    };
    let end = event_at(end, "2026-01-01T00:00:01.000Z");
    let span = spans.add_event(&end).unwrap();
    assert_eq!(span.name, "before_model_call");
    let names: Vec<&str> = span.events.iter().map(|e| e.name.as_str()).collect();
    assert_eq!(
        names,
        ["compact.token_estimate", "compact.trigger_decision"]
    );
    assert_eq!(
        span.end_time_unix_nano - span.start_time_unix_nano,
        12_500_000
    );
    assert_eq!(span.status.unwrap().code, 2);
}

#[test]
fn a_sampler_takes_its_share_of_traces_and_always_the_same_ones() {
    let trace = |n: u64| {
        [
            0_u64.to_be_bytes(),
            (n << 32 | n)
                .wrapping_mul(0x9e37_79b9_7f4a_7c15)
                .to_be_bytes(),
        ]
        .concat()
    };
    let taken =
        |sampler: TraceSampler| (0..4000).filter(|n| sampler.is_sampled(&trace(*n))).count();
    let ratio = [
        ("OTEL_TRACES_SAMPLER", "parentbased_traceidratio"),
        ("OTEL_TRACES_SAMPLER_ARG", "0.25"),
    ];
    assert_eq!(taken(set(&[]).sampler), 4000);
    assert_eq!(
        taken(set(&[("OTEL_TRACES_SAMPLER", "always_off")]).sampler),
        0
    );
    let quarter = taken(set(&ratio).sampler);
    assert!((900..1100).contains(&quarter), "{quarter}");
}

#[test]
fn the_variables_of_opentelemetry_are_honoured() {
    let at = |settings: &CollectorSettings| {
        settings
            .signal_url(OtlpSignal::Logs)
            .unwrap_or("nowhere")
            .to_owned()
    };
    assert_eq!(at(&set(&[])), "http://localhost:4318/v1/logs");
    let all = (
        "OTEL_EXPORTER_OTLP_ENDPOINT",
        "https://otel.acme.dev:443/in/",
    );
    let own = (
        "OTEL_EXPORTER_OTLP_LOGS_ENDPOINT",
        "http://logs.acme.dev/here",
    );
    let grpc = ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc");
    assert_eq!(at(&set(&[all])), "https://otel.acme.dev:443/in/v1/logs");
    assert_eq!(at(&set(&[all, own])), "http://logs.acme.dev/here");
    let service = "/opentelemetry.proto.collector.logs.v1.LogsService/Export";
    assert_eq!(at(&set(&[grpc])), format!("http://localhost:4317{service}"));
    assert_eq!(
        at(&settings(
            Some("http://c:1"),
            Some(CollectorProtocol::Http),
            &[all, own, grpc]
        )),
        "http://c:1/v1/logs"
    );
    assert_eq!(at(&set(&[("OTEL_LOGS_EXPORTER", "none")])), "nowhere");
    assert_eq!(at(&set(&[("OTEL_SDK_DISABLED", "true")])), "nowhere");
    let odd = set(&[
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "pigeon"),
        ("OTEL_EXPORTER_OTLP_TIMEOUT", "soon"),
        (
            "OTEL_EXPORTER_OTLP_HEADERS",
            "api-key=a%20b%zz,,=x, tenant = t",
        ),
        ("OTEL_SERVICE_NAME", "agents"),
        ("OTEL_RESOURCE_ATTRIBUTES", "service.name=no,team=core"),
    ]);
    assert_eq!(
        (odd.protocol, odd.timeout),
        (CollectorProtocol::Http, Duration::from_secs(10))
    );
    let pair = |k: &str, v: &str| (k.to_owned(), v.to_owned());
    assert_eq!(
        odd.headers,
        [pair("api-key", "a b%zz"), pair("tenant", "t")]
    );
    let resource = format!("{:?}", odd.resource());
    assert!(
        resource.contains("agents") && resource.contains("core") && !resource.contains("\"no\"")
    );
}

fn sums(events: &[ExportedEvent]) -> Vec<String> {
    let mut metrics = EventMetrics::new(1);
    events.iter().for_each(|event| metrics.count(event));
    let mut out = Vec::new();
    for metric in metrics.collect(2, 3) {
        let labels = |list: &[opentelemetry_proto::tonic::common::v1::KeyValue]| {
            let one = |a: &opentelemetry_proto::tonic::common::v1::KeyValue| match a
                .value
                .as_ref()
                .and_then(|v| v.value.as_ref())
            {
                Some(Any::StringValue(text)) => format!("{}={text}", a.key),
                other => format!("{}={other:?}", a.key),
            };
            list.iter().map(one).collect::<Vec<_>>().join(" ")
        };
        match metric.data {
            Some(Data::Sum(sum)) => out.extend(sum.data_points.iter().map(|p| {
                format!(
                    "{} {{{}}} {:?}",
                    metric.name,
                    labels(&p.attributes),
                    p.value.unwrap()
                )
            })),
            Some(Data::Histogram(h)) => out.extend(h.data_points.iter().map(|p| {
                assert_eq!(p.bucket_counts.iter().sum::<u64>(), p.count);
                format!(
                    "{} {{{}}} {}×, {}",
                    metric.name,
                    labels(&p.attributes),
                    p.count,
                    p.sum.unwrap()
                )
            })),
            other => panic!("{other:?}"),
        }
    }
    out
}

#[test]
fn events_are_counted_by_what_dashboards_ask_for() {
    let tokens = |system, history| CategoryTokens {
        system: Tokens(system),
        history: Tokens(history),
        ..CategoryTokens::default()
    };
    let completed = EventKind::Completed {
        tokens_before: Tokens(9000),
        tokens_after: Tokens(3000),
        before: CategoryTokens {
            tool_results: Some(Tokens(700)),
            ..tokens(100, 9000)
        },
        after: tokens(100, 3000),
        retention: Some(0.97),
        duration_ms: 40.0,
    };
    let usage = EventKind::Usage(UsageReport {
        turn_input: 10,
        turn_output: 5,
        turn_cache_read: 90,
        turn_cost_usd: Some(0.25),
        ..UsageReport::default()
    });
    let fallback = EventKind::Fallback {
        failed: FailedModel::Summarizer("http".to_owned()),
        reason: "timeout".to_owned(),
        fallback: Substitute::Deterministic,
    };
    let ended = EventKind::CallEnded {
        call: "before_model_call".to_owned(),
        outcome: CallOutcome::Compacted,
        duration_ms: 50.0,
    };
    let error = "busy".to_owned();
    let kinds = [
        completed.clone(),
        completed,
        EventKind::Failed { error },
        usage,
        fallback,
        ended,
    ];
    let scope = EventScope {
        model: Some("m".to_owned()),
        cause: Some(CompactionCause::Threshold),
        ..EventScope::default()
    };
    let events = kinds.map(|kind| ExportedEvent::from(&scope.event(kind, "")));
    expect![[r#"
        compact.compactions {outcome=completed cause=threshold} AsInt(2)
        compact.compactions {outcome=failed cause=threshold} AsInt(1)
        compact.fallbacks {fallback=deterministic reason=timeout} AsInt(1)
        compact.tokens {category=history phase=after} 2×, 6000
        compact.tokens {category=history phase=before} 2×, 18000
        compact.tokens {category=memory phase=after} 2×, 0
        compact.tokens {category=memory phase=before} 2×, 0
        compact.tokens {category=system phase=after} 2×, 200
        compact.tokens {category=system phase=before} 2×, 200
        compact.tokens {category=tool_results phase=before} 2×, 1400
        compact.tokens {category=tools phase=after} 2×, 0
        compact.tokens {category=tools phase=before} 2×, 0
        compact.retention {} 2×, 1.94
        compact.compaction.duration {cause=threshold} 2×, 0.08
        compact.call.duration {call=before_model_call outcome=compacted} 1×, 0.05
        compact.usage.tokens {type=cache_creation gen_ai.request.model=m} AsInt(0)
        compact.usage.tokens {type=cache_read gen_ai.request.model=m} AsInt(90)
        compact.usage.tokens {type=input gen_ai.request.model=m} AsInt(10)
        compact.usage.tokens {type=output gen_ai.request.model=m} AsInt(5)
        compact.usage.cost {gen_ai.request.model=m} AsDouble(0.25)
        gen_ai.client.token.usage {gen_ai.operation.name=chat gen_ai.request.model=m gen_ai.token.type=input} 1×, 100
        gen_ai.client.token.usage {gen_ai.operation.name=chat gen_ai.request.model=m gen_ai.token.type=output} 1×, 5
        compact.events {event=compact.call_ended} AsInt(1)
        compact.events {event=compact.completed} AsInt(2)
        compact.events {event=compact.failed} AsInt(1)
        compact.events {event=compact.fallback} AsInt(1)
        compact.events {event=compact.usage} AsInt(1)
        compact.events.dropped {} AsInt(3)"#]]
    .assert_eq(&sums(&events).join("\n"));
}

#[test]
fn a_dead_collector_and_a_slow_one_hold_up_nobody_and_what_is_lost_is_counted() {
    // It accepts connections, as the system does for it, and never answers.
    let slow = TcpListener::bind("127.0.0.1:0").unwrap();
    let dead = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    for protocol in [CollectorProtocol::Http, CollectorProtocol::Grpc] {
        for place in [slow.local_addr().unwrap(), dead] {
            let endpoint = format!("http://{place}");
            let brief = [("OTEL_EXPORTER_OTLP_TIMEOUT", "100")];
            let queue = otlp_sink(settings(Some(&endpoint), Some(protocol), &brief)).unwrap();
            conformance::suite(&queue);
            queue.emit(&trigger_decision());
            assert_eq!(
                queue.flush(Duration::from_secs(20)),
                0,
                "{protocol:?} {place}"
            );
            assert_eq!(queue.dropped(), 4 * 400 + 1);
        }
    }
}
