// Written by `compactctl hook install --agent opencode`; `compactctl hook uninstall` removes it.
// Archives a session before opencode compacts it, tells the summarizer what to keep, and tells the
// model afterwards what the summary left out. A hook that fails is as if it were not there.
import { spawn } from "node:child_process"

const COMMAND = COMPACTCTL
// What a session's summary left out, told with every request from then on.
const told = new Map()
// Sessions whose summary is being written.
const due = new Set()

const hook = (payload) =>
  new Promise((done) => {
    let out = ""
    const child = spawn(COMMAND, ["hook", "--agent", "opencode"], { stdio: ["pipe", "pipe", "ignore"] })
    const timer = setTimeout(() => child.kill(), 30000)
    const end = (text) => { clearTimeout(timer); done(text) }
    child.on("error", () => end(""))
    child.stdin.on("error", () => {})
    child.stdout.on("data", (chunk) => { out += chunk })
    child.on("close", () => end(out))
    child.stdin.end(JSON.stringify(payload))
  })

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
    "experimental.chat.system.transform": async ({ sessionID }, output) => {
      if (!sessionID) return
      const text = await (told.get(sessionID) ?? compare(sessionID))
      if (text) output.system.push(text)
    },
  }
}
