// Written by `compactctl hook install --agent opencode`; `compactctl hook uninstall` removes it.
// Archives a session before opencode compacts it, tells the summarizer what to keep, and tells the
// model afterwards what the summary left out. A hook that fails is as if it were not there.
import { spawn } from "node:child_process"

const COMMAND = COMPACTCTL
const told = new Map()

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
  const call = async (sessionID, more) => {
    try {
      const info = (await client.session.get({ path: { id: sessionID } })).data
      const messages = (await client.session.messages({ path: { id: sessionID } })).data
      return await hook({ session_id: sessionID, cwd: directory, transcript: { info, messages }, ...more })
    } catch {
      return ""
    }
  }
  return {
    "experimental.session.compacting": async ({ sessionID }, output) => {
      const text = await call(sessionID, { hook_event_name: "PreCompact" })
      if (text) output.context.push(text)
    },
    event: async ({ event }) => {
      if (event.type !== "session.compacted") return
      const sessionID = event.properties.sessionID
      const text = await call(sessionID, { hook_event_name: "SessionStart", source: "compact" })
      if (text) told.set(sessionID, text)
    },
    "experimental.chat.system.transform": async ({ sessionID }, output) => {
      const text = told.get(sessionID)
      if (text) output.system.push(text)
    },
  }
}
