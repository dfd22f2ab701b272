// Asks one co-process about every call, a line each way, and goes on without it when it fails.
import { spawn } from "node:child_process"
import { createInterface } from "node:readline"

const start = () => {
  const child = spawn("deloop", ["hook", "opencode"], { stdio: ["pipe", "pipe", "ignore"] })
  const waiting = []
  let dead = false
  const end = () => {
    dead = true
    for (const resolve of waiting.splice(0)) resolve({})
  }
  child.on("error", end)
  child.on("exit", end)
  child.stdin.on("error", end)
  createInterface({ input: child.stdout }).on("line", (line) => waiting.shift()?.(JSON.parse(line || "{}")))
  child.unref()
  return (event) => {
    if (dead) return {}
    return new Promise((resolve) => {
      const late = setTimeout(() => {
        child.kill("SIGKILL")
        end()
      }, TIMEOUT)
      waiting.push((answer) => {
        clearTimeout(late)
        resolve(answer)
      })
      child.stdin.write(JSON.stringify(event) + "\n")
    })
  }
}

export const Deloop = async ({ client }) => {
  const ask = start()
  return {
    "tool.execute.before": async (input, output) => {
      const answer = await ask({ event: "before", ...input, args: output.args })
      if (answer.refuse) throw new Error(answer.refuse)
    },
    "tool.execute.after": async (input, output) => {
      const answer = await ask({ event: "after", ...input, output: output.output, metadata: output.metadata })
      if (answer.append) output.output += "\n\n" + answer.append
      if (answer.stop) await client.session.abort({ path: { id: input.sessionID } })
    },
  }
}
