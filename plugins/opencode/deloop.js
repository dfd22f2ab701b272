// deloop's plugin for opencode, written by `deloop install opencode` and removed by `deloop uninstall opencode`.
//
// It sends every call and every result to one `deloop stream`, one line of JSON each way, and carries out the
// decisions: a nudge is appended to a result, a blocked call throws, a stopped session is aborted, and turns that repeat
// themselves are left out of what is sent to the model. If deloop is missing, crashes or is slow, opencode works as if the
// plugin weren't there.
import { spawn } from "node:child_process"
import { createInterface } from "node:readline"

const COMMAND = ["deloop", "stream", "--agent", "opencode"]
// How many milliseconds opencode waits for an answer, and how many answers in a row may be late.
const PATIENCE = 2000
const LATE = 3

/** Starts deloop. Returns a function from a Step to its Decision, or to null if there is none. */
const start = () => {
  const [program, ...words] = COMMAND
  const child = spawn(program, [...words, "--rollback"], { stdio: ["pipe", "pipe", "ignore"] })
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
    // Answers arrive in the order of the questions. A late one still takes its place in the queue.
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

/** Returns whether a person must answer before more is spent. Plugins can't ask, so the session waits for a message. */
const isOver = (decision) =>
  decision?.action === "ask" && decision.findings?.some((found) => found.repeats === "budget" && found.count >= 100)

/** Returns how a call ended, if opencode reports it. The metadata of other tools is a server's, or a plugin's. */
const outcome = (tool, metadata) => {
  if (tool !== "bash") return undefined
  if (typeof metadata?.exit === "number") return metadata.exit === 0 ? "ok" : "error"
  return metadata?.exit === null ? "cancelled" : undefined
}

export const Deloop = async ({ client }) => {
  if (process.env.DELOOP?.toLowerCase() === "off") return {}
  const ask = start()
  // Messages not delivered yet, by session; calls that have started and not ended; the message each call belongs to; the
  // model's words, by message.
  const untold = new Map()
  const open = new Set()
  const turns = new Map()
  const words = new Map()
  // The step of each call, and by session the calls that are left out of the conversation with the lines in their place.
  const steps = new Map()
  const folded = new Map()

  const keep = (session, decision) => {
    if (["nudge", "ask"].includes(decision?.action) && decision.message) untold.set(session, decision.message)
  }
  const remember = (map, key, value) => {
    map.set(key, value)
    if (map.size > 256) map.delete(map.keys().next().value)
  }
  const fold = (session, { from_step, to_step, summary }) => {
    const calls = folded.get(session) ?? new Map()
    for (const [id, call] of steps) {
      if (call.session === session && call.step >= from_step && call.step <= to_step) calls.set(id, summary)
    }
    if (calls.size) remember(folded, session, calls)
  }
  const stop = async (session) => {
    try {
      await client.session.abort({ path: { id: session } })
    } catch {}
  }
  // Shown in opencode's terminal UI, or on standard error if there is none.
  const told = async (message) => {
    if (process.argv.includes("run")) console.error(message)
    try {
      await client.tui.showToast({ body: { title: "deloop", message, variant: "warning" } })
    } catch {}
  }

  return {
    "chat.message": async ({ sessionID }, { parts }) => {
      const text = parts.filter((p) => p.type === "text" && !p.synthetic).map((p) => p.text).join("\n")
      if (!text) return
      untold.delete(sessionID)
      keep(sessionID, await ask({ type: "user", session: sessionID, text, origin: "human" }))
    },

    "tool.execute.before": async ({ tool, sessionID: session, callID: id }, { args }) => {
      open.add(id)
      const turn_id = turns.get(id)
      const decision = await ask({ type: "turn", session, text: words.get(turn_id), calls: [{ id, tool, args }], turn_id })
      if (typeof decision?.step === "number") remember(steps, id, { session, step: decision.step })
      if (decision?.rollback) fold(session, decision.rollback)
      if (decision?.action === "warn") told(decision.user_message ?? "deloop: the agent repeats itself")
      if (decision?.action === "block" || decision?.action === "stop" || isOver(decision)) {
        open.delete(id)
        await ask({ type: "result", session, id, outcome: "denied" })
        told(decision.user_message ?? "deloop blocked a call")
        if (decision.action !== "block") await stop(session)
        throw new Error(decision.message ?? "[deloop] Blocked: this call repeats itself.")
      }
      keep(session, decision)
    },

    "tool.execute.after": async ({ sessionID: session, callID: id, tool }, output) => {
      open.delete(id)
      turns.delete(id)
      const how = outcome(tool, output.metadata)
      const decision = await ask({ type: "result", session, id, output: output.output, outcome: how })
      if (decision?.action === "stop") {
        told(decision.user_message ?? "deloop stopped the run")
        await stop(session)
        return
      }
      keep(session, decision)
      const message = untold.get(session)
      if (message && typeof output.output === "string") {
        untold.delete(session)
        output.output += `\n\n${message}`
        told("deloop messaged the agent: it seems stuck")
      }
    },

    // Called before every request, with the messages as they are stored: what is left out stays stored.
    "experimental.chat.messages.transform": async (_, output) => {
      if (!folded.size) return
      let user
      const kept = output.messages.filter(({ info, parts }) => {
        if (info.role === "user") user = { info, parts }
        const calls = folded.get(info.sessionID)
        const gone = parts.filter((part) => part.type === "tool" && calls?.has(part.callID))
        if (info.role !== "assistant" || !gone.length || !user) return true
        for (const line of new Set(gone.map((part) => calls.get(part.callID)))) {
          if (user.parts.some((part) => part.text === line)) continue
          const { id: messageID, sessionID } = user.info
          user.parts.push({ id: `prt_deloop${user.parts.length}`, sessionID, messageID, type: "text", text: line, synthetic: true })
        }
        const left = parts.filter((part) => !gone.includes(part))
        const others = left.some((part) => part.type === "tool")
        parts.splice(0, parts.length, ...left)
        // The words before a call that is gone would announce it again.
        return others
      })
      // opencode goes on with the list it passed, not with another one in its place.
      output.messages.splice(0, output.messages.length, ...kept)
    },

    event: async ({ event }) => {
      const { type, properties } = event
      if (type === "session.compacted") await ask({ type: "compact", session: properties.sessionID })
      if (type === "session.deleted") {
        untold.delete(properties.info?.id)
        folded.delete(properties.info?.id)
        await ask({ type: "end", session: properties.info?.id })
      }
      const part = type === "message.part.updated" ? properties.part : undefined
      if (part?.type === "tool" && part.state?.status === "pending") {
        remember(turns, part.callID, part.messageID)
      }
      // A text is complete only after its calls have started, so its pieces are put together as they come.
      if (part?.type === "text") remember(words, part.messageID, part.text)
      if (type === "message.part.delta" && properties.field === "text" && words.has(properties.messageID)) {
        words.set(properties.messageID, words.get(properties.messageID) + properties.delta)
      }
      // A tool that throws has no `tool.execute.after`.
      if (part?.type === "tool" && part.state?.status === "error" && open.delete(part.callID)) {
        const { sessionID: session, callID: id } = part
        const decision = await ask({ type: "result", session, id, output: part.state.error, outcome: "error" })
        keep(session, decision)
        if (decision?.action === "stop") await stop(session)
      }
      if (part?.type === "step-finish" && part.tokens) {
        const { input, output, reasoning = 0, cache } = part.tokens
        const decision = await ask({
          type: "usage",
          session: part.sessionID,
          input_tokens: input,
          output_tokens: output + reasoning,
          cache_read_tokens: cache?.read ?? 0,
          cost_usd: part.cost ?? 0,
        })
        if (["warn", "stop"].includes(decision?.action)) told(decision.user_message ?? "deloop: a ceiling is near")
        if (decision?.action === "stop") await stop(part.sessionID)
      }
    },
  }
}
