// Written by `compactctl hook install --agent opencode`; `compactctl hook uninstall` removes it.
// Sends a smaller view of a session that fills its model's window. Should opencode compact it all the same,
// archives it before, tells the summarizer what to keep, and tells the model afterwards what the summary left
// out. A hook that fails is as if it were not there.
import { spawn } from "node:child_process"

const COMMAND = COMPACTCTL
// What a session's summary left out, told with every request from then on.
const told = new Map()
// Sessions whose summary is being written.
const due = new Set()

// The share of a model's input at which a view takes the place of a session; opencode compacts later.
const FULL = 0.75
// What stands for the beginning of a session, and the last message that it covers.
const views = new Map()

const run = (argv, payload) =>
  new Promise((done) => {
    const out = []
    const child = spawn(COMMAND, argv, { stdio: ["pipe", "pipe", "ignore"] })
    const timer = setTimeout(() => child.kill(), 30000)
    const end = (text) => { clearTimeout(timer); done(text) }
    child.on("error", () => end(""))
    child.stdin.on("error", () => {})
    child.stdout.on("data", (chunk) => out.push(chunk))
    child.on("close", (code) => end(code === 0 ? Buffer.concat(out).toString() : ""))
    child.stdin.end(JSON.stringify(payload))
  })
const hook = (payload) => run(["hook", "--agent", "opencode"], payload)

// The messages of a session as they would be sent: what its view covers is left out. A view of messages that
// are no longer there is none.
const shorten = (sessionID, messages) => {
  const known = views.get(sessionID)
  const at = known ? messages.findIndex((message) => message.info.id === known.covered) : -1
  return at < 0 ? { shown: messages } : { known, shown: [...known.view, ...messages.slice(at + 1)] }
}

// What the model was last sent, as its provider counts; a session that nobody counted, by its letters.
const tokensOf = (messages, known) => {
  const counted = messages.findLast((message) => message.info.tokens?.input || message.info.tokens?.cache?.read)
  const { input = 0, output = 0, cache = {} } = counted?.info.tokens ?? {}
  const sent = input + output + (cache.read ?? 0) + (cache.write ?? 0)
  return known ? sent : Math.max(sent, JSON.stringify(messages.map((message) => message.parts)).length / 4)
}

export const Compact = async ({ client, directory }) => {
  const call = async (sessionID, more, onlyIf = () => true) => {
    try {
      const info = (await client.session.get({ path: { id: sessionID } })).data
      const messages = (await client.session.messages({ path: { id: sessionID } })).data
      if (!onlyIf(messages)) return ""
      return await hook({ session_id: sessionID, cwd: directory, transcript: { info, messages }, ...more })
    } catch {
      return ""
    }
  }
  // The window of a session's model and what of it is input.
  const windowOf = async (messages) => {
    const info = messages.findLast((message) => message.info.modelID ?? message.info.model)?.info
    const [provider, model] = info?.modelID ? [info.providerID, info.modelID] : [info?.model?.providerID, info?.model?.modelID]
    const known = (await client.config.providers()).data.providers.find(({ id }) => id === provider)
    const { context = 0, output = 0 } = known?.models[model]?.limit ?? {}
    return { context, input: context - output }
  }
  // A view of the session, or what was passed where there is none.
  const compact = async (sessionID, messages, window) => {
    const argv = ["compact", "-", "--format", "opencode", "--session", sessionID, "--summarizer", "extractive"]
    const text = await run([...argv, "--window", String(window), "--quiet", "-o", "-"], { info: { id: sessionID }, messages })
    const view = text ? JSON.parse(text).messages : []
    return view.length && JSON.stringify(view).length < JSON.stringify(messages).length ? view : messages
  }
  const isCompacted = (messages) => messages.some((message) => message.info.summary)
  const compare = (sessionID) => {
    const lost = call(sessionID, { hook_event_name: "SessionStart", source: "compact" }, isCompacted)
    told.set(sessionID, lost)
    return lost
  }
  return {
    "experimental.session.compacting": async ({ sessionID }, output) => {
      due.add(sessionID)
      const text = await call(sessionID, { hook_event_name: "PreCompact" })
      if (text) output.context.push(text)
    },
    "experimental.compaction.autocontinue": async ({ sessionID }) => {
      if (due.delete(sessionID)) await compare(sessionID)
    },
    event: async ({ event }) => {
      if (event.type !== "session.compacted") return
      if (due.delete(event.properties.sessionID)) await compare(event.properties.sessionID)
    },
    "experimental.chat.messages.transform": async (_, output) => {
      try {
        const messages = output.messages
        const sessionID = messages.at(-1)?.info.sessionID
        let { known, shown } = shorten(sessionID, messages)
        const { context, input } = await windowOf(messages)
        // A view that is full again must have grown first, or each request would try anew.
        if (context && tokensOf(messages, known) > input * FULL && shown.length > (known?.view.length ?? 0) + 1) {
          shown = await compact(sessionID, shown, context)
          views.set(sessionID, { covered: messages.at(-1).info.id, view: shown })
        }
        messages.splice(0, messages.length, ...shown)
      } catch {}
    },
    "experimental.chat.system.transform": async ({ sessionID }, output) => {
      if (!sessionID) return
      const text = await (told.get(sessionID) ?? compare(sessionID))
      if (text) output.system.push(text)
    },
  }
}
