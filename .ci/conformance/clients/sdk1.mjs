// The official TypeScript SDK, version 1: the protocols up to 2025-11-25.
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';

import { run } from './checks.mjs';

run(async ({ url, headers, transport, era, elicit }) => {
	if (era !== 'legacy') throw new Error('this SDK has no other era than legacy');
	const client = new Client({ name: 'typescript-sdk-1', version: '1.0.0' }, { capabilities: { elicitation: {} } });
	client.setRequestHandler(ElicitRequestSchema, (request) => elicit(request.params.message));
	const Transport = transport === 'sse' ? SSEClientTransport : StreamableHTTPClientTransport;
	await client.connect(new Transport(url, { requestInit: { headers } }));
	return {
		server: () => client.getServerVersion().name,
		list: async () => (await client.listTools()).tools.map((t) => t.name),
		call: (name, args, { meta, ...options }) => client.callTool({ name, arguments: args, ...(meta && { _meta: meta }) }, undefined, options),
		close: () => client.close(),
	};
});
