// The smallest server that the official TypeScript SDK can make over Streamable HTTP with sessions: one tool. Benchmarks
// measure codehand beside it, so it does nothing of its own. Node's own HTTP server, because a framework would only cost.
// With the argument json its answers are no event streams.
import { createServer } from "node:http";
import { randomUUID } from "node:crypto";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { z } from "zod";

const enableJsonResponse = process.argv[2] === "json";
const sessions = new Map();

// One transport is one session, and one server is for one transport.
async function open() {
  const transport = new StreamableHTTPServerTransport({
    enableJsonResponse,
    sessionIdGenerator: () => randomUUID(),
    onsessioninitialized: (id) => sessions.set(id, transport),
    onsessionclosed: (id) => sessions.delete(id),
  });
  const server = new McpServer({ name: "node", version: "1" });
  server.registerTool(
    "ping",
    { description: "Returns pong, or the text it is given.", inputSchema: { text: z.string().optional() } },
    async ({ text }) => ({ content: [{ type: "text", text: text || "pong" }] }),
  );
  await server.connect(transport);
  return transport;
}

const http = createServer(async (req, res) => {
  const id = req.headers["mcp-session-id"];
  const transport = id === undefined ? await open() : sessions.get(id);
  if (transport === undefined) {
    res.writeHead(404).end();
    return;
  }
  await transport.handleRequest(req, res);
});
http.keepAliveTimeout = 0; // a client that measures does not come back every 5 s
http.listen(0, "127.0.0.1", () => console.log(`http://127.0.0.1:${http.address().port}/mcp`));
