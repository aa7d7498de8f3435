// What a client that nobody here wrote must do with sign-in. The programs beside this file bring the client.
//
// usage: node PROGRAM.mjs --url URL --redirect URI [--document URL]
//
// The program says OPEN and the URL that its browser would open, and reads the URL that the browser was sent to. It says
// RESTART and REVOKE, and goes on when it reads a line. Each check is a line, `ok NAME` or `FAIL NAME: why`.
import assert from 'node:assert/strict';
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';

const { values: flags } = parseArgs({
	options: { url: { type: 'string' }, redirect: { type: 'string' }, document: { type: 'string' } },
});
const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const answer = async (line) => {
	console.log(line);
	return (await lines.next()).value;
};

/** A provider that keeps everything in memory. SDKs of both versions ask for the same. */
class Provider {
	client; kept; verifier; opened; discovery; wanted = 0;
	get redirectUrl() { return flags.redirect; }
	get clientMetadataUrl() { return flags.document; }
	get clientMetadata() {
		return {
			client_name: 'An SDK', redirect_uris: [flags.redirect], token_endpoint_auth_method: 'none',
			grant_types: ['authorization_code', 'refresh_token'], response_types: ['code'],
		};
	}
	state() { return this.said ??= 'state-' + Math.random().toString(36).slice(2); }
	clientInformation() { return this.client; }
	saveClientInformation(c) { this.client = c; }
	tokens() { return this.kept; }
	saveTokens(t) { this.kept = t; }
	redirectToAuthorization(url) { this.opened = url; this.wanted++; }
	saveCodeVerifier(v) { this.verifier = v; }
	codeVerifier() { return this.verifier; }
	saveDiscoveryState(d) { this.discovery = d; }
	discoveryState() { return this.discovery; }
	invalidateCredentials(what) {
		if (what === 'all' || what === 'tokens') this.kept = undefined;
		if (what === 'all' || what === 'client') this.client = undefined;
		if (what === 'all' || what === 'discovery') this.discovery = undefined;
	}
}

/**
 * run signs in, refreshes, lists after a restart, and is refused after a revocation.
 * connect(url, provider) resolves to { list, close }, or rejects; finish(url, provider, params) redeems the code.
 */
export async function run({ connect, finish, unauthorized }) {
	const url = new URL(flags.url), provider = new Provider();
	let failed = false;
	const check = async (name, body) => {
		if (failed) return;
		try {
			await body();
			console.log(`ok ${name}`);
		} catch (e) {
			failed = true;
			console.log(`FAIL ${name}: ${String(e.stack ?? e).split('\n').slice(0, 6).join(' | ')}`);
		}
	};
	const lists = async () => {
		const client = await connect(url, provider);
		const names = await client.list();
		assert(names.includes('read_file'), names.join());
		await client.close();
	};
	await check('signs in', async () => {
		await assert.rejects(connect(url, provider), (e) => unauthorized(e) || assert.fail(e));
		assert(provider.opened, 'no browser was opened');
		assert.equal(provider.opened.searchParams.get('code_challenge_method'), 'S256');
		if (flags.document) assert.equal(provider.opened.searchParams.get('client_id'), flags.document);
		const back = new URL(await answer(`OPEN ${provider.opened}`));
		assert.equal(back.searchParams.get('state'), provider.said);
		await finish(url, provider, back.searchParams);
		assert(provider.kept?.refresh_token, 'there is no refresh token');
		await lists();
	});
	const refreshes = async () => {
		const before = provider.kept;
		provider.kept = { ...before, access_token: 'cha_' + 'A'.repeat(43) }; // one that has expired looks the same
		await lists();
		assert.notEqual(provider.kept.refresh_token, before.refresh_token, 'the refresh token did not rotate');
		assert.notEqual(provider.kept.access_token, before.access_token);
		assert.equal(provider.wanted, 1, 'a person was asked again');
	};
	await check('refreshes', refreshes);
	await check('survives a restart', async () => {
		await answer('RESTART');
		await lists();
		assert.equal(provider.wanted, 1, 'a person was asked again');
	});
	await check('refreshes after a restart', refreshes);
	await check('is refused after a revocation', async () => {
		await answer('REVOKE');
		await assert.rejects(lists(), (e) => unauthorized(e) || assert.fail(e));
		assert.equal(provider.wanted, 2, 'the refresh token still works');
	});
	process.exit(failed ? 1 : 0);
}
