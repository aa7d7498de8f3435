// The sign-in of the official TypeScript SDK, version 2.
import { Client, StreamableHTTPClientTransport, UnauthorizedError } from '@modelcontextprotocol/client';

import { run } from './oauth.mjs';

run({
	connect: async (url, authProvider) => {
		const client = new Client({ name: 'typescript-sdk-2', version: '1.0.0' }, { capabilities: {} });
		await client.connect(new StreamableHTTPClientTransport(url, { authProvider }));
		return {
			list: async () => (await client.listTools()).tools.map((t) => t.name),
			close: () => client.close(),
		};
	},
	finish: (url, authProvider, params) => new StreamableHTTPClientTransport(url, { authProvider }).finishAuth(params),
	unauthorized: (e) => e instanceof UnauthorizedError,
});
