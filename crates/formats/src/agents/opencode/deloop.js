// The plugin of deloop for opencode. Written by `deloop install opencode`, removed by `deloop uninstall opencode`.
//
// It tells one `deloop stream` about every call and every result, a line of JSON each way, and does what comes back:
// a nudge is added to a result, a refused call throws, a stopped session is aborted. When deloop is missing, dies or
// is slow, opencode goes on as if it were not there.
import { spawn } from "node:child_process"
import { createInterface } from "node:readline"

const COMMAND = ["deloop", "stream", "--agent", "opencode"]
// Milliseconds that opencode waits for an answer, and how many answers in a row may be late.
const PATIENCE = 2000
const LATE = 3

/** Starts deloop; gives back a function from a Step to its Decision, or to null when there is none. */
const start = () => {
  const [program, ...words] = COMMAND
  const child = spawn(program, words, { stdio: ["pipe", "pipe", "ignore"] })
  const waiting = []
  let gone = false
  let late = 0
  const end = () => {
    gone = true
    for (const resolve of waiting.splice(0)) resolve(null)
  }
  child.on("error", end)
  child.on("exit", end)
  child.stdin.on("error", end)
  createInterface({ input: child.stdout }).on("line", (line) => {
    let answer = null
    try {
      answer = JSON.parse(line)
    } catch {}
    // Answers come in the order of the questions; one that nobody waits for any more still takes its place.
    waiting.shift()?.(answer)
  })
  child.unref()
  return (step) => {
    if (gone) return null
    return new Promise((resolve) => {
      const timer = setTimeout(() => {
        resolve(null)
        late += 1
        if (late >= LATE) {
          child.kill("SIGKILL")
          end()
        }
      }, PATIENCE)
      waiting.push((answer) => {
        clearTimeout(timer)
        if (answer) late = 0
        resolve(answer)
      })
      try {
        child.stdin.write(JSON.stringify(step) + "\n")
      } catch {
        end()
      }
    })
  }
}

/** How a call ended, where opencode says so. */
const outcome = (metadata) => {
  if (typeof metadata?.exit === "number") return metadata.exit === 0 ? "ok" : "error"
  return metadata?.exit === null ? "cancelled" : undefined
}

export const Deloop = async ({ client }) => {
  if (process.env.DELOOP?.toLowerCase() === "off") return {}
  const ask = start()
  // By session: what it is yet to be told. By call: that it has begun and not ended.
  const untold = new Map()
  const open = new Set()

  const keep = (session, decision) => {
    if (["nudge", "ask"].includes(decision?.action) && decision.message) untold.set(session, decision.message)
  }
  const stop = async (session) => {
    try {
      await client.session.abort({ path: { id: session } })
    } catch {}
  }
  // A person reads it on the screen of opencode, or where there is none on standard error.
  const told = async (message) => {
    if (process.argv.includes("run")) console.error(message)
    try {
      await client.tui.showToast({ body: { title: "deloop", message, variant: "warning" } })
    } catch {}
  }
  const summary = (decision) => decision.findings?.[0]?.summary ?? "it repeats itself"

  return {
    "chat.message": async ({ sessionID }, { parts }) => {
      const text = parts.filter((p) => p.type === "text" && !p.synthetic).map((p) => p.text).join("\n")
      if (!text) return
      untold.delete(sessionID)
      await ask({ type: "user", session: sessionID, text, origin: "human" })
    },

    "tool.execute.before": async ({ tool, sessionID: session, callID: id }, { args }) => {
      open.add(id)
      const decision = await ask({ type: "call", session, id, tool, args })
      if (decision?.action === "block" || decision?.action === "stop") {
        open.delete(id)
        await ask({ type: "result", session, id, outcome: "denied" })
        const stopped = decision.action === "stop"
        told(`deloop ${stopped ? "ended the run" : "refused a call"}: ${summary(decision)}`)
        if (stopped) await stop(session)
        throw new Error(decision.message ?? "[deloop] refused: this call repeats itself")
      }
      keep(session, decision)
    },

    "tool.execute.after": async ({ sessionID: session, callID: id }, output) => {
      open.delete(id)
      const how = outcome(output.metadata)
      const decision = await ask({ type: "result", session, id, output: output.output, outcome: how })
      if (decision?.action === "stop") {
        told(`deloop ended the run: ${summary(decision)}`)
        await stop(session)
        return
      }
      keep(session, decision)
      const message = untold.get(session)
      if (message && typeof output.output === "string") {
        untold.delete(session)
        output.output += `\n\n${message}`
        told("deloop told the agent that it seems stuck")
      }
    },

    event: async ({ event }) => {
      const { type, properties } = event
      if (type === "session.compacted") await ask({ type: "compact", session: properties.sessionID })
      if (type === "session.deleted") {
        untold.delete(properties.info?.id)
        await ask({ type: "end", session: properties.info?.id })
      }
      const part = type === "message.part.updated" ? properties.part : undefined
      // A tool that throws has no `tool.execute.after`.
      if (part?.type === "tool" && part.state?.status === "error" && open.delete(part.callID)) {
        const { sessionID: session, callID: id } = part
        const decision = await ask({ type: "result", session, id, output: part.state.error, outcome: "error" })
        keep(session, decision)
        if (decision?.action === "stop") await stop(session)
      }
      if (part?.type === "step-finish" && part.tokens) {
        const { input, output, reasoning = 0, cache } = part.tokens
        await ask({
          type: "usage",
          session: part.sessionID,
          input_tokens: input,
          output_tokens: output + reasoning,
          cache_read_tokens: cache?.read ?? 0,
          cost_usd: part.cost ?? 0,
        })
      }
    },
  }
}
