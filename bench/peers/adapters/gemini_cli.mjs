// gemini-cli: `LoopDetectionService`, fed as the client feeds it: text in pieces (here: lines), then the calls, in order.
// The first detection in a prompt is answered with a message to the model (soft); the second ends the run (hard).
// A person's message is a new prompt and resets it. `turnStarted`, which asks a model every few turns, is left out.
// Speaks the protocol of protocol.py; results are not needed, for the service does not look at them.

import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';
import { join } from 'node:path';

const core = join(process.env.PEERS_NODE_MODULES, '@google/gemini-cli-core/dist/src');
const load = (path) => import(pathToFileURL(join(core, path)).href);
const { LoopDetectionService } = await load('services/loopDetectionService.js');
const { GeminiEventType } = await load('core/turn.js');
const { Config } = await load('config/config.js');

const config = new Config({
  sessionId: 'peers', targetDir: process.cwd(), cwd: process.cwd(), model: 'none', debugMode: false,
  usageStatisticsEnabled: false, telemetry: { enabled: false },
});

class Peer {
  constructor() {
    this.service = new LoopDetectionService(config);
    this.prompts = 0;
    this.prompt('');
  }

  prompt(text) {
    this.service.reset(`prompt-${this.prompts++}`, text);
  }

  user(text, human) {
    if (human) this.prompt(text);
  }

  turn(text, calls) {
    const pieces = text.match(/[^\n]*\n|[^\n]+/g) ?? [];
    const events = [
      ...pieces.map((value) => ({ type: GeminiEventType.Content, value })),
      ...calls.map((call) => ({
        type: GeminiEventType.ToolCallRequest,
        value: { callId: call.id ?? 'none', name: call.tool, args: call.args, isClientInitiated: false, prompt_id: 'peers' },
      })),
    ];
    for (const event of events) {
      const found = this.service.addAndCheck(event);
      if (found.count === 0) continue;
      // The client leaves the rest of the response.
      if (found.count === 1) this.service.clearDetection();
      else this.prompt('');
      return [{ hard: found.count > 1, why: String(found.type) }];
    }
    return [];
  }
}

function judge(steps) {
  const peers = new Map();
  const out = { fires: [], turns: 0, calls: 0, ms: 0 };
  for (const step of steps) {
    const agent = JSON.stringify([step.session, step.agent]);
    if (!peers.has(agent)) peers.set(agent, new Peer());
    const peer = peers.get(agent);
    const start = performance.now();
    if (step.type === 'user') peer.user(step.text ?? '', (step.origin ?? 'human') === 'human');
    if (step.type === 'turn' || step.type === 'call') {
      const calls = step.type === 'call' ? [step] : (step.calls ?? []);
      const turn = out.turns++;
      out.calls += calls.length;
      out.fires.push(...peer.turn(step.text ?? '', calls).map((fire) => ({ turn, ...fire })));
    }
    out.ms += performance.now() - start;
  }
  out.ms = Math.round(out.ms * 1000) / 1000;
  process.stdout.write(`${JSON.stringify(out)}\n`);
}

let steps = [];
for await (const line of createInterface({ input: process.stdin, crlfDelay: Infinity })) {
  const step = JSON.parse(line);
  if (step.type === 'end') {
    judge(steps);
    steps = [];
  } else {
    steps.push(step);
  }
}
if (steps.length > 0) judge(steps);
process.exit(0);
