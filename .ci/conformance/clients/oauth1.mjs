// The sign-in of the official TypeScript SDK, version 1.
import { UnauthorizedError } from '@modelcontextprotocol/sdk/client/auth.js';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

import { run } from './oauth.mjs';

run({
	connect: async (url, authProvider) => {
		const client = new Client({ name: 'typescript-sdk-1', version: '1.0.0' }, { capabilities: {} });
		await client.connect(new StreamableHTTPClientTransport(url, { authProvider }));
		return {
			list: async () => (await client.listTools()).tools.map((t) => t.name),
			close: () => client.close(),
		};
	},
	finish: (url, authProvider, params) => new StreamableHTTPClientTransport(url, { authProvider }).finishAuth(params.get('code')),
	unauthorized: (e) => e instanceof UnauthorizedError,
});
