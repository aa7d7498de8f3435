// The official TypeScript SDK, version 2: both eras.
import { Client, SSEClientTransport, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';

import { run } from './sampling.mjs';

run(({ transport, url, token, command, work }) => {
	if (transport === 'stdio') return new StdioClientTransport({ command, args: ['stdio', work], cwd: work, env: process.env });
	const Transport = transport === 'sse' ? SSEClientTransport : StreamableHTTPClientTransport;
	return new Transport(new URL(url), { requestInit: { headers: { Authorization: `Bearer ${token}` } } });
}, async ({ transport, era, capabilities, elicit, sample }) => {
	const client = new Client({ name: 'typescript-sdk-2', version: '1.0.0' }, {
		capabilities, versionNegotiation: { mode: era === 'modern' ? { pin: '2026-07-28' } : 'legacy' },
	});
	client.setRequestHandler('sampling/createMessage', (request) => sample(request.params));
	if (capabilities.elicitation) client.setRequestHandler('elicitation/create', (request) => elicit(request.params));
	await client.connect(transport);
	if (client.getProtocolEra() !== era) throw new Error(`the era is ${client.getProtocolEra()}`);
	return {
		call: (name, args, meta) => client.callTool({ name, arguments: args, _meta: meta }),
		close: () => client.close(),
	};
});
