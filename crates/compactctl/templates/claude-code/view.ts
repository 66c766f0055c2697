// Written by `compactctl hook install --agent claude-code --replace-summary`; `compactctl hook uninstall` removes it.
// Asks `compactctl` for the view that takes the place of a compacted conversation. Whatever goes wrong,
// Claude Code writes its own summary, as it does without this plugin.
const COMMAND = COMPACTCTL

// What `compactctl` reads of a message. Results of tools stand in two places; one is enough.
const row = ({ role, text, toolUses, toolResults }) => ({
  role,
  text,
  toolUses: (toolUses ?? []).map(({ tool_use_id, tool, input }) => ({ tool_use_id, tool, input })),
  toolResults: (toolResults ?? []).map(({ tool_use_id, text, isError }) => ({ tool_use_id, text, isError })),
})

export const register = (on) => {
  on("session.compact", async ($, event, next) => {
    // A view takes milliseconds, so none is made ahead of time.
    if (event.trigger === "precompute") return { skip: "Compact makes the view when it is needed" }
    let messages = []
    try {
      const stdin = JSON.stringify({
        session_id: await $.session.id(),
        cwd: await $.session.cwd(),
        agent_id: event.agentId,
        model: await $.session.model(),
        instructions: event.instructions,
        messages: event.messages.map(row),
      })
      const argv = [COMMAND, "hook", "view", "--agent", "claude-code"]
      const done = await $.process.run(argv, { stdin, timeoutMs: 30000 })
      const view = JSON.parse(done.stdout).messages
      messages = view.map((message) => (message.kept === undefined ? message : event.messages[message.kept]))
    } catch {
      messages = []
    }
    const isWhole = messages.length > 0 && messages.every((message) => message !== undefined)
    return isWhole ? { messages } : next(event)
  })
}
