// What a person in front of a client that nobody here wrote decides about commands, over a real connection. The programs
// beside this file bring the client.
//
// usage: node PROGRAM.mjs --transport stdio|http|sse --era legacy|modern --work DIR
//        (--url URL --token T | --command codehand, started in DIR with the environment of this program)
//
// Each check is a line, `ok NAME` or `FAIL NAME: why`; the exit code is 1 after a failure.
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

import { check, flags, text, verdict } from './checking.mjs';

/** Keeps every message that goes through a transport. */
function tapped(transport, wire) {
	const send = transport.send.bind(transport);
	transport.send = (message, options) => {
		wire.push(JSON.stringify(message));
		return send(message, options);
	};
	let handler;
	Object.defineProperty(transport, 'onmessage', {
		configurable: true,
		get: () => handler && ((message, extra) => {
			wire.push(JSON.stringify(message));
			return handler(message, extra);
		}),
		set: (h) => { handler = h; },
	});
	return transport;
}

/**
 * Runs all checks. connect makes a client and returns {call(name, args, meta), close()}; it is called with the transport,
 * already made by make(flags), the client's capabilities, and elicit(params), which answers a question.
 */
export async function run(make, connect) {
	const say = [], asked = [];
	const elicit = (params) => {
		asked.push(params);
		return say.shift() ?? { action: 'cancel' };
	};
	const open = async (capabilities) => {
		const wire = [];
		const client = await connect({ transport: tapped(make(flags), wire), era: flags.era, capabilities, elicit });
		return { ...client, wire };
	};
	const handle = { 'codehand/session': `asking-${flags.transport}-${flags.era}` };
	const shell = (client, command) => client.call('run_shell', { command }, handle);
	const accept = (decision, reason) => ({ action: 'accept', content: { decision, ...(reason && { reason }) } });
	const file = (name) => join(flags.work, name);

	const client = await open({ elicitation: {} });
	await check('permission is asked once, and the call runs', async () => {
		say.push(accept('allow once'));
		const result = await shell(client, `echo one | tee ${file('a.txt')}`);
		assert(!result.isError, text(result));
		assert.equal(readFileSync(file('a.txt'), 'utf8'), 'one\n');
		assert.equal(asked.length, 1);
		assert.match(asked[0].message, /^Allow run_shell: echo one [^\n]*\nAsked because: /);
		assert(asked[0].message.includes(`echo one | tee ${file('a.txt')}`), asked[0].message);
		// "always" writes to the user's file: where one person calls, and nowhere else.
		const always = flags.transport === 'stdio' ? ['always allow'] : [];
		assert.deepEqual(asked[0].requestedSchema.properties.decision.enum, ['allow once', 'allow for this session', ...always, 'deny']);
		assert.deepEqual(asked[0].requestedSchema.required, ['decision']);
		assert.deepEqual(result._meta['codehand/decision'], { decision: 'allow', asked: true });
	});
	await check('it is asked for the same again', async () => {
		say.push(accept('allow for this session'));
		const result = await shell(client, `echo two | tee ${file('a.txt')}`);
		assert(!result.isError, text(result));
		assert.equal(asked.length, 2);
		assert.equal(readFileSync(file('a.txt'), 'utf8'), 'two\n');
	});
	await check('a call like one that is allowed for the session is not asked about', async () => {
		const result = await shell(client, `echo three | tee ${file('a.txt')}`);
		assert(!result.isError, text(result));
		assert.equal(asked.length, 2);
		assert.equal(readFileSync(file('a.txt'), 'utf8'), 'three\n');
	});
	for (const [name, answer, words] of [
		['closed', { action: 'cancel' }, "ASK_UNAVAILABLE: Permission denied: run_shell needs a person's approval. No person answered."],
		['denied', accept('deny', 'not now'), 'USER_DECLINED: The user declined this action. They said: not now'],
		['declined', { action: 'decline' }, 'USER_DECLINED: The user declined this action.'],
		['denied again', accept('deny'), 'USER_DECLINED: The user declined this action.'],
	]) {
		await check(name, async () => {
			const before = asked.length;
			say.push(answer);
			const result = await shell(client, `echo ${name} | tee ${file('b.txt')}`);
			assert(result.isError);
			assert(text(result).startsWith(words), text(result));
			assert.equal(asked.length, before + 1);
			assert(!existsSync(file('b.txt')), 'it ran');
		});
	}
	await check('nobody is asked again about a call just declined', async () => {
		const before = asked.length;
		const result = await shell(client, `echo declined | tee ${file('b.txt')}`);
		assert(text(result).startsWith('USER_DECLINED: The user has just declined exactly this call'), text(result));
		assert.equal(asked.length, before);
	});
	await check('the wire of who is asked', () => {
		const kind = flags.era === 'modern' ? 'input_required' : 'elicitation/create';
		assert(client.wire.some((m) => m.includes(kind)), `no ${kind}`);
	});
	await client.close();

	for (const capabilities of [{}, { sampling: {} }]) {
		await check(`a client that declares ${JSON.stringify(capabilities)} is never asked`, async () => {
			const mute = await open(capabilities);
			const before = asked.length;
			const result = await mute.call('run_shell', { command: `echo five | tee ${file('c.txt')}` }, { 'codehand/session': 'asking-nobody' });
			assert(result.isError);
			assert.match(text(result), /^ASK_UNAVAILABLE: Permission denied: run_shell needs a person's approval and this client cannot ask one\. /);
			assert(!existsSync(file('c.txt')), 'it ran');
			assert.equal(asked.length, before);
			assert(mute.wire.length > 1, 'nothing was recorded');
			for (const m of mute.wire) assert(!/elicitation\/create|input_required|requestState/.test(m), m);
			await mute.close();
		});
	}
	verdict();
}
