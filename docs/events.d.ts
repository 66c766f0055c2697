// The events of Compact as JSON: compactions, resets, hooks and runs (docs/observability.md).
// Written by `cargo xtask docs` from the types of the program.

/** One event. `event` tells its kind: `if (event.event === "context_compacted") event.tokens_after`. */
export type CompactEvent = EventBase & EventKind;

/** The name of a kind of event. */
export type EventName = CompactEvent["event"];

/** The events of one kind: `EventOf<"run_finished">`. */
export type EventOf<Name extends EventName> = Extract<CompactEvent, { event: Name }>;

/** What every event says, whatever its kind. */
export type EventBase = {
  /** When, as ISO-8601 with Z. */
  ts: string;
  /** The session. */
  session_id: string;
  /** How much a reader should care. */
  severity: Severity;
  /** The trace: the caller's own, where it told it. */
  trace_id?: string;
  /** The call itself. */
  span_id?: string;
  /** The caller's span, within which the call was made. */
  parent_span_id?: string;
  /** The model, when known. */
  model: string | null;
  /** The estimate of the whole context. */
  t_est: Tokens;
  /** The window. */
  max: Tokens;
  /** Trigger and buffer. */
  policy: PolicyBrief;
  /** What stayed. */
  kept: KeptCounts;
  /** How many entries left. */
  pruned_count: number;
  /** What the summary costs. */
  summary_tokens: Tokens;
  /** Why there is a compaction, if there is one. */
  cause?: CompactionCause;
  /** The receipt, if there is one. */
  receipt_id?: string;
};

/** How much a reader should care. */
export type Severity = "info" | "warning" | "high" | "error";

/** A number of model tokens. */
export type Tokens = number;

/** Trigger and buffer: the two numbers of a policy that readers ask for first. */
export type PolicyBrief = {
  /** The trigger ratio. */
  trigger_pct: number;
  /** The reserve. */
  buffer: number;
};

/** Counts of what stayed and what went. */
export type KeptCounts = {
  /** Pinned entries, leading instructions included. */
  pinned: number;
  /** Turns of which a message stayed. */
  recent_turns: number;
  /** Tool exchanges that stayed. */
  tool_pairs: number;
  /** Entries that stayed with their texts cut. */
  clipped: number;
  /** Of what was said last and nobody has answered, entries that were cut or left out. */
  newest_cut: number;
};

/** Why there is to be a compaction: the few words that reports count by. */
export type CompactionCause = "threshold" | "tokens_left" | "soft_threshold" | "exceeded" | "asked" | "idle" | "overflow" | "economy";

/** What happened. Texts are names and reasons, never a conversation's words. */
export type EventKind =
  /** The context was counted. */
  | {
    event: "compact.token_estimate";
    /** Leading system and developer entries. */
    system?: Tokens;
    /** Tool schemas. */
    tools?: Tokens;
    /** The rewritable history. */
    history?: Tokens;
    /** Summaries. */
    memory?: Tokens;
    /** The user's latest message; not counted after a compaction. */
    user_input?: Tokens;
    /** Tool results; not counted after a compaction. */
    tool_results?: Tokens;
  }
  /** A verdict was reached. */
  | {
    event: "compact.trigger_decision";
    /** What to do. */
    verdict: Verdict;
    /** Why, in words. */
    reason: string;
    /** Tokens over window. */
    pressure: number;
  }
  /** A summary was written. */
  | {
    event: "compact.summary_created";
    /** N of the rolling summary. */
    version: number;
    /** Who wrote it. */
    summarizer: string;
    /** Anchors that the view shows, of those that it should; unknown when there was none. */
    retention: number | null;
  }
  /** Entries left the view. */
  | {
    event: "compact.pruned_messages";
  }
  /** A policy decided what stays. */
  | {
    event: "compact.policy_applied";
    /** How far down the ladder the plan went. */
    rung: string;
  }
  /** A compaction began. */
  | {
    event: "compact.started";
  }
  /** A compaction ended with a new view. */
  | {
    event: "compact.completed";
    /** History tokens before. */
    tokens_before: Tokens;
    /** History tokens after. */
    tokens_after: Tokens;
    /** Tokens by category before. */
    before: CategoryTokens;
    /** Tokens by category after. */
    after: CategoryTokens;
    /** Anchors that the view shows, of those that it should; unknown when there was none. */
    retention: number | null;
    /** Milliseconds from its start to its record. */
    duration_ms: number;
  }
  /** A compaction ended without one; nothing changed. */
  | {
    event: "compact.failed";
    /** Why. */
    error: string;
  }
  /** A model failed and another took its place. */
  | {
    event: "compact.fallback";
    /** The kind of its failure. */
    reason: string;
    /** Who took its place. */
    fallback: Substitute;
  } & (
    /** One that writes summaries. */
    | {
      summarizer: string;
    }
    /** One that compares meanings. */
    | {
      embedder: string;
    })
  /** The original is in the archive. */
  | {
    event: "compact.archived";
    /** Its pack. */
    pack: string;
    /** What that takes in the store. */
    stored_bytes: number;
  }
  /** Something archived was asked for. */
  | {
    event: "compact.recalled";
    /** Milliseconds that it took. */
    duration_ms: number;
  } & (
    /** What a search found. */
    | {
      /** Entries. */
      hits: number;
      /** Terms that were looked for. */
      terms: number;
      /** How well the best answers. */
      best_score: number | null;
    }
    /** What a pointer led to. */
    | {
      /** Entries. */
      entries: number;
    })
  /** A call ended, such as `before_model_call`. The other events of the call carry the same `span_id`. */
  | {
    event: "compact.call_ended";
    /** Which call. */
    call: string;
    /** How it ended. */
    outcome: CallOutcome;
    /** Milliseconds that it took. */
    duration_ms: number;
  }
  /** An original was not archived because there is no archive. */
  | {
    event: "compact.not_archived";
  }
  /** Malformed tool messages were left out of a view. */
  | {
    event: "compact.repaired";
  }
  /** A compaction was due and waits for the next call: the newest step has malformed tool messages. */
  | {
    event: "compact.skipped";
    /** So many. */
    malformed: number;
  }
  /** A gateway sent a request as it came, because something of ours failed. */
  | {
    event: "compact.failed_open";
    /** What failed, in a word. */
    reason: string;
    /** The same in whole words, where there is more to say. */
    detail?: string;
  }
  /** A gateway told a client that its prompt cost more than its provider reported, as its user asked for. */
  | {
    event: "compact.client_nudged";
    /** What the provider reported. */
    reported_tokens: Tokens;
    /** What the client was told. */
    shown_tokens: Tokens;
  }
  /** What was said last did not fit the window and was cut. */
  | {
    event: "compact.newest_cut";
    /** So many entries of it. */
    entries: number;
  }
  /** Redaction is off. */
  | {
    event: "compact.redaction_disabled";
    /** Where. */
    boundary: RedactionBoundary;
  }
  /** A transcript or an artifact of a reset could not be written or read. */
  | {
    event: "compact.transcript_failed";
    /** Why. */
    error: string;
  }
  /** A compaction began beside the session. */
  | {
    event: "compact.scheduled";
  }
  /** A view that was made beside the session took its place. */
  | {
    event: "compact.swapped";
    /** Entries that came meanwhile and stand behind it. */
    appended: number;
  }
  /** A view that was made beside the session came too late and was thrown away. */
  | {
    event: "compact.discarded";
    /** Why. */
    reason: string;
    /** How long the session waited for it. */
    waited_seconds?: number;
  }
  /** A provider refused a prompt because of its size. */
  | {
    event: "compact.overflowed";
    /** What the prompt costs, where the provider said it. */
    tokens: Tokens | null;
    /** What the model takes, where the provider said it. */
    limit: Tokens | null;
    /** What is done about it. */
    answer: OverflowAnswer;
  }
  /** The window will be full in a few calls. */
  | {
    event: "compact.forecast";
    /** In so many. */
    calls_left: number;
    /** What a call adds. */
    tokens_per_call: Tokens;
    /** Whether a call adds more than a fresh view leaves free. */
    outruns_budget: boolean;
  }
  /** A provider reported its usage. */
  | {
    event: "compact.usage";
  } & UsageReport
  /** A provider reported no usage. */
  | {
    event: "compact.usage_missing";
  } & UsageReport
  /** Usage is counted from zero, because the context is a new one. */
  | {
    event: "compact.usage_reset";
  }
  /** A request found less in the provider's cache than the one before it had left there. */
  | {
    event: "compact.cache_missed";
  } & CacheMiss
  /** A reset began or ended. Seed 001 has a `type` for it, which is its name here too. */
  | ResetEvent
  /** Something happened in a run. */
  | RunReport
  /** A hook did something. */
  | HookReport;

/** What to do now. */
export type Verdict = "stay" | "warn" | "compact_soon" | "compact_now" | "exceeded";

/** Tokens by category; memory, user input and tool results are parts of the history. */
export type CategoryTokens = {
  /** Leading system and developer entries. */
  system: Tokens;
  /** Tool schemas. */
  tools: Tokens;
  /** The rewritable history. */
  history: Tokens;
  /** Summaries. */
  memory: Tokens;
  /** The user's latest message; not counted after a compaction. */
  user_input?: Tokens;
  /** Tool results; not counted after a compaction. */
  tool_results?: Tokens;
};

/** Who takes the place of a model that failed. */
export type Substitute = "deterministic" | "prune_only" | "minimal_prompt" | "host" | "words";

/** How a call ended. */
export type CallOutcome = "compacted" | "unchanged" | "failed";

/** A line that text crosses, each with its own needs. */
export type RedactionBoundary = "archive" | "export" | "summary";

/** What is done about a prompt that a provider refused. */
export type OverflowAnswer = "smaller" | "given_up";

/** What a provider reported: of the last request, and in all. */
export type UsageReport = {
  /** Fresh prompt tokens of the last request. */
  turn_input: number;
  /** Its answer. */
  turn_output: number;
  /** What it read from a cache. */
  turn_cache_read: number;
  /** Fresh prompt tokens in all. */
  input_tokens: number;
  /** Answers in all. */
  output_tokens: number;
  /** Tokens read from a cache in all. */
  cache_read_tokens: number;
  /** Tokens written to a cache in all. */
  cache_creation_tokens: number;
  /** What the last request wrote to a cache. */
  turn_cache_creation: number;
  /** What the last request cost in USD, where the model's prices are known. */
  turn_cost_usd: number | null;
  /** Whether pressure is tracked. */
  tracking: boolean;
  /** Tokens over window. */
  pressure: number;
};

/** Who is behind a miss. */
export type MissOrigin = "expired" | "agent" | "compaction" | "provider";

/** A part of a prompt, in the order in which providers cache them. */
export type PromptPart = "tools" | "instructions" | "message";

/** What a provider's cache did not have, and why. */
export type CacheMiss = {
  /** Tokens of the request before, which the cache should have held. */
  expected_tokens: Tokens;
  /** What was read from it. */
  read_tokens: Tokens;
  /** Seconds between the two requests. */
  idle_seconds: number;
  /** Who is behind it. */
  origin: MissOrigin;
  /** The part of the prompt. */
  part?: PromptPart;
  /** Which message, from 1, where it is one. */
  message?: number;
  /** The byte within the part, from 0. */
  at_byte?: number;
  /** What the request cost more than it would have, where the model's prices are known. */
  extra_usd: number | null;
};

/** What a host is told about the resets of its session. The fields are those of the founding document, and where its text names more than its schemas have, they are here too. */
export type ResetEvent =
  /** A compaction begins: input is closed until one of the other two follows. */
  | {
    event: "context_compaction_started";
    type: "context_compaction_started";
    /** Tokens before. */
    tokens_before: number;
    /** What the model takes. */
    max_tokens: number;
    /** How the tokens were counted. */
    trigger_reason: TriggerReason;
    /** The model whose limit counts. */
    model: string;
  }
  /** The history was replaced by a summary. */
  | {
    event: "context_compacted";
    type: "context_compacted";
    /** Tokens before. */
    tokens_before: number;
    /** Tokens of the context that the session goes on with, by estimate. */
    tokens_after: number;
    /** What the model takes. */
    max_tokens: number;
    /** How the tokens were counted. */
    trigger_reason: TriggerReason;
    /** The model whose limit counts. */
    model: string;
    /** The transcript's file. */
    transcript_path: string | null;
    /** The file of what the summarizer was given. */
    summarizer_input_path: string | null;
    /** The file of the summary. */
    summary_path: string | null;
    /** How many compactions this session has had. */
    compaction_count: number;
  }
  /** Nothing was changed. */
  | {
    event: "context_compaction_failed";
    type: "context_compaction_failed";
    /** Why. */
    error: string;
    /** Whether the context is over the limit: the session is dead. */
    context_exceeded: boolean;
    /** Tokens now. */
    tokens_current: number;
    /** What the model takes. */
    max_tokens: number;
    /** How the tokens were counted. */
    trigger_reason: TriggerReason;
    /** The model whose limit counts. */
    model: string;
    /** The transcript's file. */
    transcript_path: string | null;
    /** The file of what the summarizer was given. */
    summarizer_input_path: string | null;
  };

/** What the tokens of a trigger rest on. */
export type TriggerReason = "provider_usage" | "heuristic";

/** One thing that happened in a run. */
export type RunReport = {
  /** The run. */
  run_id: string;
} & (
  /** A run began, or goes on. */
  | {
    event: "run_started";
    /** Its agent. */
    agent: string;
    /** Restarts so far. */
    continuation_count: number;
  }
  /** A session is opened. */
  | {
    event: "session_started";
    /** Which, from 1. */
    number: number;
    /** The session that it takes up again, where it is not a fresh one. */
    resumed: string | null;
    /** What its first prompt costs. */
    prompt_tokens: Tokens;
  }
  /** More is known about the session: its name, its model or its window. */
  | {
    event: "session_named";
  }
  /** A request was counted. */
  | {
    event: "context_usage";
    /** This report. */
    turn: Usage;
    /** Every request of the session so far. */
    cumulative: Usage;
    /** The window. */
    limit: Tokens;
    /** How full that makes it. */
    pressure_ratio: number;
  }
  /** The agent reports no usage. */
  | {
    event: "usage_missing";
  }
  /** The context is full. */
  | {
    event: "context_pressure";
    /** Fresh prompt tokens of the session. */
    input_tokens: number;
    /** Answered tokens. */
    output_tokens: number;
    /** Tokens read from a cache. */
    cache_read_tokens: number;
    /** How full it is. */
    pressure_ratio: number;
  }
  /** The provider refused a prompt because of its size. */
  | {
    event: "prompt_too_long";
  }
  /** The session is asked for its checkpoint. */
  | {
    event: "checkpoint_requested";
  }
  /** There is a checkpoint. */
  | {
    event: "checkpoint";
    /** Where it came from. */
    source: CheckpointSource;
    /** Why not from the agent. */
    reason: string | null;
    /** The context that it stands for. */
    tokens_before: Tokens;
    /** What the continuation costs. */
    tokens_after: Tokens;
    /** What was worth keeping. */
    anchors: number;
    /** Of those, what the agent's own words show. */
    noted: number;
    /** Of those, what the continuation shows. */
    shown: number;
  }
  /** A fresh session goes on. */
  | {
    event: "context_restart";
    /** Which restart, from 1. */
    continuation_count: number;
    /** How full the last session was; unknown when the provider refused it. */
    pressure_ratio: number | null;
    /** What the last session's context cost; unknown where another process saw it. */
    tokens_before: Tokens | null;
    /** What the fresh one begins with. */
    tokens_after: Tokens;
  }
  /** Usage is counted from zero. */
  | {
    event: "usage_reset";
    /** Which restart. */
    continuation_count: number;
  }
  /** The task is finished. */
  | {
    event: "run_finished";
  } & RunTotals
  /** A person stopped the run, which can go on later. */
  | {
    event: "run_stopped";
  } & RunTotals
  /** The run ended without its task being finished. */
  | {
    event: "run_failed";
    /** Why. */
    error: string;
    /** Restarts. */
    continuation_count: number;
    /** How long all sessions took. */
    seconds: number;
    /** What was counted. */
    counters: RunCounters;
  });

/** One report of a provider, normalised: no token is counted under two names. */
export type Usage = {
  /** Prompt tokens that were neither read from a cache nor written to one. */
  input_tokens: number;
  /** Tokens of the answer, its reasoning included. */
  output_tokens: number;
  /** Prompt tokens read from a cache. */
  cache_read_tokens: number;
  /** Prompt tokens written to a cache. */
  cache_creation_tokens: number;
};

/** Where a checkpoint came from. */
export type CheckpointSource = "tagged" | "raw" | "built";

/** What a run counts. */
export type RunCounters = {
  /** Sessions that were opened. */
  sessions: number;
  /** Turns that ended. */
  turns: number;
  /** Checkpoints in their tags. */
  checkpoints_tagged: number;
  /** Answers that were taken whole for one. */
  checkpoints_raw: number;
  /** Checkpoints drawn from the ledger. */
  checkpoints_built: number;
  /** Tokens of all requests. */
  usage: Usage;
};

/** What a run comes to when it ends. */
export type RunTotals = {
  /** Restarts. */
  continuation_count: number;
  /** How long all sessions took. */
  seconds: number;
  /** What was counted. */
  counters: RunCounters;
};

/** One thing that a hook did. */
export type HookReport = {
  /** The agent that called. */
  agent: string;
  /** The agent's own name of the moment. */
  moment: string;
} & (
  /** The transcript was archived, because its agent is about to compact. */
  | {
    event: "hook_archived";
    /** What set the compaction off, in the agent's word. */
    trigger: string;
    /** The archive's file. */
    path: string;
    /** Its bytes. */
    bytes: number;
    /** The context so far, as the provider counted it last; unknown where the transcript does not tell. */
    tokens_before: Tokens | null;
  }
  /** The agent compacted, and its new context was held against what it should know. */
  | {
    event: "hook_compacted";
    /** The context before, as the provider counted it last. */
    tokens_before: Tokens | null;
    /** The messages after, by estimate; what the agent sends beside them is not known. */
    tokens_after: Tokens;
    /** What was worth keeping. */
    anchors: number;
    /** Of those, what the new context shows. */
    shown: number;
    /** How many characters were told again. */
    repeated_chars: number;
  }
  /** Something was left undone; the agent went on without it. */
  | {
    event: "hook_failed";
    /** Why. */
    error: string;
    /** True where the original was not archived. */
    unarchived: boolean;
  });
