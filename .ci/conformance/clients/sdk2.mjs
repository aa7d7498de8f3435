// The official TypeScript SDK, version 2: both eras.
import { Client, SSEClientTransport, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';

import { run } from './checks.mjs';

run(async ({ url, headers, transport, era, elicit }) => {
	const client = new Client({ name: 'typescript-sdk-2', version: '1.0.0' }, {
		capabilities: { elicitation: {} },
		versionNegotiation: { mode: era === 'modern' ? { pin: '2026-07-28' } : 'legacy' },
	});
	client.setRequestHandler('elicitation/create', (request) => elicit(request.params.message));
	const Transport = transport === 'sse' ? SSEClientTransport : StreamableHTTPClientTransport;
	await client.connect(new Transport(url, { requestInit: { headers } }));
	if (client.getProtocolEra() !== era) throw new Error(`the era is ${client.getProtocolEra()}`);
	return {
		server: () => client.getServerVersion().name,
		list: async () => (await client.listTools()).tools.map((t) => t.name),
		call: (name, args, { meta, ...options }) => client.callTool({ name, arguments: args, ...(meta && { _meta: meta }) }, options),
		close: () => client.close(),
	};
});
