// The official TypeScript SDK, version 1: the protocols up to 2025-11-25.
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { CreateMessageRequestSchema, ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';

import { run } from './sampling.mjs';

run(({ transport, url, token, command, work }) => {
	if (transport === 'stdio') return new StdioClientTransport({ command, args: ['stdio', work], cwd: work, env: process.env });
	const Transport = transport === 'sse' ? SSEClientTransport : StreamableHTTPClientTransport;
	return new Transport(new URL(url), { requestInit: { headers: { Authorization: `Bearer ${token}` } } });
}, async ({ transport, era, capabilities, elicit, sample }) => {
	if (era !== 'legacy') throw new Error('this SDK has no other era than legacy');
	const client = new Client({ name: 'typescript-sdk-1', version: '1.0.0' }, { capabilities });
	client.setRequestHandler(CreateMessageRequestSchema, (request) => sample(request.params));
	if (capabilities.elicitation) client.setRequestHandler(ElicitRequestSchema, (request) => elicit(request.params));
	await client.connect(transport);
	return {
		call: (name, args, meta) => client.callTool({ name, arguments: args, _meta: meta }),
		close: () => client.close(),
	};
});
