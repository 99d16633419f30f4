// A client of the Agent Client Protocol, made of the TypeScript SDK, that drives the real binary. Usage:
//   node client.mjs SDK BINARY PROJECT SCENARIO
// A scenario that does not hold throws, and the process ends with 1.
import { spawn } from "node:child_process";
import { Readable, Writable } from "node:stream";
import { pathToFileURL } from "node:url";
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";

const [, , sdkDir, binary, project, scenario] = process.argv;
const acp = await import(pathToFileURL(path.join(sdkDir, "dist/v1/stable/acp.js")));
const anything = (params) => params;

// open starts the agent and calls f with what a scenario needs.
async function open(f, options = {}) {
  const child = spawn(binary, ["serve", "--stdio", "--provider", "offline", ...(options.args ?? [])], { cwd: project, stdio: ["pipe", "pipe", "pipe"] });
  let stderr = "";
  child.stderr.on("data", (d) => (stderr += d));
  const exited = new Promise((resolve) => child.on("exit", (code) => resolve(code)));
  const seen = { updates: [], questions: [], toolCalls: [] };
  const waiting = [];
  const note = () => waiting.splice(0).forEach((w) => (w.test() ? w.resolve() : waiting.push(w)));
  const until = (test) => new Promise((resolve) => (test() ? resolve() : waiting.push({ test, resolve })));
  const app = new acp.ClientApp({ name: "interop" })
    .onNotification(acp.methods.client.session.update, ({ params }) => { seen.updates.push(params); note(); })
    .onRequest(acp.methods.client.session.requestPermission, async ({ params }) => {
      seen.questions.push(params); note();
      const answer = options.answer ?? "once";
      return { outcome: { outcome: "selected", optionId: answer } };
    })
    .onRequest(acp.methods.client.fs.readTextFile, async ({ params }) => { seen.read = params.path; return { content: options.buffer ?? "" }; })
    .onRequest(acp.methods.client.fs.writeTextFile, async ({ params }) => { seen.written = params; return {}; })
    .onRequest("_magi-code/tool_call", anything, async ({ params }) => { seen.toolCalls.push(params); return options.clientTool?.(params) ?? { text: "no answer" }; });
  const stream = acp.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout));
  let result;
  await app.connectWith(stream, async (agent) => {
    const hello = await agent.request(acp.methods.agent.initialize, {
      protocolVersion: 1, clientInfo: { name: "interop", version: "1" },
      clientCapabilities: { fs: { readTextFile: options.buffer !== undefined, writeTextFile: options.buffer !== undefined } },
    });
    assert.equal(hello.protocolVersion, 1);
    assert.equal(hello.agentInfo.name, "magi-code");
    assert.equal(hello.agentCapabilities.loadSession, true);
    result = await f({ agent, seen, until, child, stderr: () => stderr });
  });
  child.stdin.end();
  const start = Date.now();
  await Promise.race([exited, new Promise((_, reject) => setTimeout(() => reject(new Error("the agent did not end within 2 s of stdin closing")), 2000).unref())]);
  assert.ok(Date.now() - start < 2000);
  assert.equal(stderr, "", "stderr is quiet");
  return result;
}

const newSession = (agent, more = {}) => agent.request(acp.methods.agent.session.new, { cwd: project, mcpServers: [], ...more });
const say = (agent, sessionId, text) => agent.request(acp.methods.agent.session.prompt, { sessionId, prompt: [{ type: "text", text }] });
const kinds = (seen, sessionId) => seen.updates.filter((u) => !sessionId || u.sessionId === sessionId).map((u) => u.update.sessionUpdate);
const text = (seen, kind, sessionId) => seen.updates.filter((u) => u.update.sessionUpdate === kind && (!sessionId || u.sessionId === sessionId)).map((u) => u.update.content.text).join("");
const fails = async (promise, code, pattern) => {
  const err = await promise.then(() => null, (e) => e);
  assert.ok(err, "it should fail");
  if (code) assert.equal(err.code, code, `${err.message}`);
  assert.match(`${err.message} ${JSON.stringify(err.data ?? {})}`, pattern);
};
const tea = 'call mcp__notes__search_notes {"query": "tea"}';

const scenarios = {
  async prompt() {
    await open(async ({ agent, seen }) => {
      const s = await newSession(agent);
      assert.deepEqual(s.modes.availableModes.map((m) => m.id), ["ask", "accept-edits", "read-only"]);
      const r = await say(agent, s.sessionId, tea);
      assert.equal(r.stopReason, "end_turn");
      assert.equal(seen.questions.length, 1);
      const q = seen.questions[0];
      assert.match(q.toolCall.title, /search_notes.*notes/);
      assert.equal(q.toolCall.rawInput.arguments.query, "tea");
      const call = seen.updates.find((u) => u.update.sessionUpdate === "tool_call").update;
      assert.equal(call.toolCallId, q.toolCall.toolCallId);
      const done = seen.updates.filter((u) => u.update.sessionUpdate === "tool_call_update").map((u) => u.update);
      assert.deepEqual(done.map((d) => d.status), ["in_progress", "completed"]);
      assert.match(done[1].content[0].content.text, /96 degrees/);
      assert.match(text(seen, "agent_message_chunk"), /96 degrees/);
      assert.ok(kinds(seen).filter((k) => k === "agent_message_chunk").length > 1, "the answer streams");
    });
  },
  async refuse() {
    await open(async ({ agent, seen }) => {
      const s = await newSession(agent);
      await say(agent, s.sessionId, tea);
      assert.equal(seen.updates.filter((u) => u.update.status === "failed").length, 1);
      assert.equal(seen.updates.filter((u) => u.update.status === "in_progress").length, 0);
    }, { answer: "no" });
  },
  async modes() {
    await open(async ({ agent, seen }) => {
      const s = await newSession(agent);
      await agent.request(acp.methods.agent.session.setMode, { sessionId: s.sessionId, modeId: "read-only" });
      await say(agent, s.sessionId, tea);
      assert.equal(seen.questions.length, 0);
      assert.equal(seen.updates.filter((u) => u.update.status === "failed").length, 1);
      await agent.request(acp.methods.agent.session.setMode, { sessionId: s.sessionId, modeId: "accept-edits" });
      await say(agent, s.sessionId, 'call write {"path": "made.txt", "content": "made"}');
      assert.equal(seen.questions.length, 0);
      assert.equal(fs.readFileSync(path.join(project, "made.txt"), "utf8"), "made");
      await fails(agent.request(acp.methods.agent.session.setMode, { sessionId: s.sessionId, modeId: "yolo" }), -32602, /no such mode/);
    });
  },
  async cancel() {
    await open(async ({ agent, seen, until }) => {
      const s = await newSession(agent);
      const turn = say(agent, s.sessionId, 'call mcp__zoo__slow {"ms": 60000}');
      await until(() => seen.updates.some((u) => u.update.status === "in_progress"));
      const start = Date.now();
      await agent.notify(acp.methods.agent.session.cancel, { sessionId: s.sessionId });
      assert.equal((await turn).stopReason, "cancelled");
      assert.ok(Date.now() - start < 2500, `${Date.now() - start} ms`);
      assert.equal((await say(agent, s.sessionId, "say still here")).stopReason, "end_turn");
    });
  },
  async load() {
    const id = await open(async ({ agent }) => {
      const s = await newSession(agent);
      await say(agent, s.sessionId, tea);
      return s.sessionId;
    });
    await open(async ({ agent, seen }) => {
      await agent.request(acp.methods.agent.session.load, { sessionId: id, cwd: project, mcpServers: [] });
      assert.match(text(seen, "user_message_chunk"), /search_notes/);
      assert.match(text(seen, "agent_message_chunk"), /96 degrees/);
      assert.ok(seen.updates.some((u) => u.update.sessionUpdate === "tool_call"));
      assert.ok(seen.updates.some((u) => u.update.status === "completed"));
      await say(agent, id, "say and on we go");
      const list = await agent.request(acp.methods.agent.session.list, { cwd: project });
      assert.ok(list.sessions.some((x) => x.sessionId === id));
      await fails(agent.request(acp.methods.agent.session.load, { sessionId: "20000101T000000Z-ffffff", cwd: project, mcpServers: [] }), undefined, /session/);
    });
  },
  async clientTool() {
    await open(async ({ agent, seen }) => {
      const s = await newSession(agent, { _meta: { "magi-code": { tools: [{ name: "pick_colour", description: "Pick a colour.", inputSchema: { type: "object", properties: { from: { type: "string" } } } }] } } });
      await say(agent, s.sessionId, 'call pick_colour {"from": "red or blue"}');
      assert.equal(seen.toolCalls.length, 1);
      assert.equal(seen.toolCalls[0].name, "pick_colour");
      assert.deepEqual(seen.toolCalls[0].input, { from: "red or blue" }, "no intent is added");
      assert.equal(seen.toolCalls[0].sessionId, s.sessionId);
      assert.equal(seen.questions.length, 1, "it passes the gate");
      assert.match(text(seen, "agent_message_chunk"), /teal/);
      await say(agent, s.sessionId, 'call code_mode {"code": "return tools.call(\\"pick_colour\\", {from: \\"a\\"}).content"}');
      assert.equal(seen.toolCalls.length, 2, "Code Mode can call it");
    }, { clientTool: () => ({ content: [{ type: "text", text: "teal" }] }) });
  },
  async badClientTools() {
    await open(async ({ agent }) => {
      const tool = { name: "ok", description: "x", inputSchema: { type: "object" } };
      const bad = [
        [{ ...tool, name: "mcp__a__b" }], [{ ...tool, name: "bash" }], [{ ...tool, name: "a b" }], [tool, tool], [{ ...tool, inputSchema: { type: "string" } }],
        [{ ...tool, inputSchema: 7 }], [{ ...tool, description: "" }], [{ ...tool, timeoutMs: 0 }], [{ ...tool, timeoutMs: "1" }], "tools", [tool, { ...tool, name: "" }],
      ];
      for (const tools of bad) await fails(newSession(agent, { _meta: { "magi-code": { tools } } }), -32602, /invalid params/);
      assert.ok((await newSession(agent, { _meta: { "magi-code": { tools: [tool] } } })).sessionId);
    });
  },
  async frames() {
    await open(async ({ agent, child }) => {
      const raw = (line) => new Promise((resolve) => child.stdin.write(line + "\n", resolve));
      await raw("this is no message");
      await raw('{"jsonrpc": "2.0", "id": ');
      await raw("[]\n");
      await raw('{"jsonrpc":"2.0","id":99999,"method":"session/new","params":{"cwd":"' + "x".repeat(9 << 20) + '"}}');
      await fails(agent.request("no/such_method", {}), -32601, /not found/i);
      await fails(agent.request("_other/extension", {}), -32601, /not found/i);
      await fails(agent.request(acp.methods.agent.session.prompt, { sessionId: "nope", prompt: [{ type: "text", text: "x" }] }), -32602, /session/);
      await fails(newSession(agent, { cwd: "relative" }), -32602, /absolute/);
      const s = await newSession(agent);
      assert.equal((await say(agent, s.sessionId, "say fine")).stopReason, "end_turn");
    });
  },
  async twoSessions() {
    await open(async ({ agent, seen }) => {
      const [a, b] = await Promise.all([newSession(agent), newSession(agent)]);
      assert.notEqual(a.sessionId, b.sessionId);
      const [x, y] = await Promise.all([say(agent, a.sessionId, 'call mcp__notes__add_numbers {"a": 40, "b": 2}'), say(agent, b.sessionId, tea)]);
      assert.equal(x.stopReason, "end_turn");
      assert.equal(y.stopReason, "end_turn");
      assert.match(text(seen, "agent_message_chunk", a.sessionId), /42/);
      assert.match(text(seen, "agent_message_chunk", b.sessionId), /96 degrees/);
    });
  },
  async offeredServers() {
    const touched = path.join(project, "touched");
    await open(async ({ agent, seen }) => {
      const s = await newSession(agent, { mcpServers: [{ name: "offered", command: "/bin/sh", args: ["-c", `touch ${touched}`], env: [] }] });
      await say(agent, s.sessionId, "say one");
      await say(agent, s.sessionId, "say two");
      const told = text(seen, "agent_message_chunk").match(/MCP servers of the editor are not started: offered.*magi-code mcp approve/g);
      assert.equal(told?.length, 1, "said once");
      assert.ok(!fs.existsSync(touched));
    });
  },
  async failingServer() {
    await open(async ({ agent }) => {
      await fails(newSession(agent), -32603, /server "broken": (connect|initialize).*magi-code mcp revoke broken/);
    });
  },
  async buffers() {
    await open(async ({ agent, seen }) => {
      const s = await newSession(agent);
      fs.writeFileSync(path.join(project, "open.txt"), "on disk");
      await say(agent, s.sessionId, 'call read {"path": "open.txt"}');
      assert.equal(seen.read, path.join(project, "open.txt"));
      assert.match(text(seen, "agent_message_chunk"), /in the editor/);
      await say(agent, s.sessionId, 'call write {"path": "open.txt", "content": "new"}');
      assert.equal(seen.written.content, "new");
      assert.equal(fs.readFileSync(path.join(project, "open.txt"), "utf8"), "on disk", "the editor saves, not the agent");
      const call = seen.updates.find((u) => u.update.kind === "edit").update;
      assert.equal(call.content[0].oldText, "in the editor");
      assert.equal(call.locations[0].path, path.join(project, "open.txt"));
    }, { buffer: "in the editor" });
  },
};

assert.ok(scenarios[scenario], `no scenario ${scenario}`);
await scenarios[scenario]();
console.log(`ok ${scenario}`);
process.exit(0);
